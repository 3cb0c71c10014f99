// Tables that sort and filter, and judges that can be switched.
(() => {
  const { el, chosen, about } = botchat;

  const number = (text) => {
    const value = parseFloat(text.replaceAll(",", ""));
    return Number.isNaN(value) ? null : value;
  };

  const sortable = (table) => {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    const original = [...body.rows];
    heads.forEach((head, column) => {
      const isName = head.classList.contains("name");
      const lowFirst = isName || /^(Rank|Group)/.test(head.textContent.trim());
      const arrow = el("span", { class: "arrow", "aria-hidden": "true" });
      const button = el("button", { type: "button" }, ...head.childNodes, arrow);
      head.append(button);
      button.addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        const first = lowFirst ? "ascending" : "descending";
        const second = lowFirst ? "descending" : "ascending";
        const now = before === first ? second : first;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", now);
        const sign = now === "ascending" ? 1 : -1;
        const key = (row) => {
          const text = row.cells[column].dataset.value || row.cells[column].textContent.trim();
          if (text === "–") return null;
          return isName ? text.toLowerCase() : number(text);
        };
        const keyed = original.map((row) => [key(row), row]);
        keyed.sort(([a], [b]) => {
          if (a === null || b === null) return (a === null) - (b === null);
          if (isName) return sign * a.localeCompare(b, "en", { numeric: true });
          return sign * (a - b);
        });
        body.append(...keyed.map(([, row]) => row));
      });
    });
  };

  const filterable = (table, box) => {
    const rows = [...table.tBodies[0].rows];
    const found = el("output", { class: "count", "aria-live": "polite" });
    const input = el("input", {
      type: "search",
      placeholder: "Filter models",
      "aria-label": "Filter models; several names with commas between",
    });
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase().split(",").map((part) => part.trim());
      const terms = wanted.filter(Boolean);
      let left = 0;
      for (const row of rows) {
        const head = row.querySelector("th");
        const name = `${head.title} ${head.textContent}`.toLowerCase();
        row.hidden = terms.length > 0 && !terms.some((term) => name.includes(term));
        left += row.hidden ? 0 : 1;
      }
      found.textContent = terms.length ? `${left} of ${rows.length}` : "";
    });
    box.append(input, found);
  };

  const linked = (table) => {
    for (const head of table.querySelectorAll("tbody th")) {
      const name = head.title || head.textContent.trim();
      const to = botchat.link({ view: about.view, a: name });
      head.append(el("a", { href: to, title: "Read its dialogues" }, ...head.childNodes));
    }
  };

  const switchable = () => {
    const parts = [...document.querySelectorAll("[data-judge]")];
    const radios = [];
    const show = () => {
      radios.forEach((radio, i) => {
        radio.checked = i === chosen.judge;
      });
      for (const part of parts) part.hidden = Number(part.dataset.judge) !== chosen.judge;
    };
    chosen.changed(show);
    show();
    if (about.judges.length < 2) return;
    const group = el("fieldset", { class: "judges" }, el("legend", null, "Judged by"));
    about.judges.forEach((name, i) => {
      const input = el("input", { type: "radio", name: "judge", value: i, id: `judge-${i}` });
      input.checked = i === chosen.judge;
      radios.push(input);
      input.addEventListener("change", () => {
        chosen.judge = i;
      });
      group.append(el("label", { for: `judge-${i}` }, input, " ", botchat.named(name)));
    });
    document.getElementById("switch").append(group);
  };

  document.documentElement.classList.add("scripted");
  document.querySelectorAll("table").forEach(sortable);
  for (const part of document.querySelectorAll("#leaderboard [data-judge]")) {
    const table = part.querySelector("table");
    const box = el("p", { class: "tools" });
    table.closest(".scroll").before(box);
    filterable(table, box);
    if (about.folder) linked(table);
  }
  switchable();
})();
