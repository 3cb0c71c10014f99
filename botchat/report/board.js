// The first screen's table: sorts and filters by the address. Any other table sorts, and is a file.
(() => {
  const { address, button, chosen, dress, el, save } = botchat;

  const number = (text) => {
    const value = parseFloat(text.replaceAll(",", ""));
    return Number.isNaN(value) ? null : value;
  };
  const exact = (cell) => (cell.dataset.value === undefined ? cell.childNodes[0]?.textContent.trim() || "" : cell.dataset.value);

  // What a click on a heading puts first: names and ranks the first of them, numbers the highest.
  const sorter = (table) => {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    const original = [...body.rows];
    const sort = (column, ascending) => {
      heads.forEach((head) => head.removeAttribute("aria-sort"));
      if (column < 0) return body.append(...original);
      heads[column].setAttribute("aria-sort", ascending ? "ascending" : "descending");
      const isName = heads[column].classList.contains("name");
      const sign = ascending ? 1 : -1;
      const key = (row) => {
        const text = isName ? row.cells[column].textContent.trim() : exact(row.cells[column]);
        if (text === "–" || text === "") return null;
        return isName ? text.toLowerCase() : number(text);
      };
      const keyed = original.map((row) => [key(row), row]);
      keyed.sort(([a], [b]) => {
        if (a === null || b === null) return (a === null) - (b === null);
        return isName ? sign * a.localeCompare(b, "en", { numeric: true }) : sign * (a - b);
      });
      return body.append(...keyed.map(([, row]) => row));
    };
    const clickable = (tell) =>
      heads.forEach((head, column) => {
        const lowFirst = head.classList.contains("name") || /^(Place|Rank|Group)/.test(head.textContent.trim());
        head.append(button([...head.childNodes], () => {
          const before = head.getAttribute("aria-sort");
          tell(column, before ? before === "descending" : lowFirst);
        }));
      });
    return { heads, sort, clickable };
  };

  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  // No spreadsheet runs a name.
  const inert = (text) => (/^\s*[=+\-@]/.test(text) && number(text) === null ? `'${text}` : text);
  const csv = (table) =>
    [...table.rows].map((row, i) =>
      [...row.cells].map((cell) => {
        if (!i) return cell.textContent.trim();
        return cell.tagName === "TH" ? inert(cell.title || exact(cell)) : exact(cell).replace(/^–$/, "");
      }).map(quoted).join(",") + "\n").join("");

  dress((root) => {
    for (const table of root.querySelectorAll("table.plain")) {
      const { heads, sort, clickable } = sorter(table);
      clickable(sort);
      const told = () => save(`${table.dataset.file}.csv`, csv(table));
      if (heads.length) table.closest(".scroll").before(el("p", { class: "tools" }, button("csv", told, { class: "quiet", title: "This table as a file" })));
    }
  });

  // Copies the address of what is shown.
  botchat.copier = (words, more) => button(words, async ({ target }) => {
    target.textContent = (await botchat.copy(location.href)) ? "Copied" : "Copy it from the address";
    setTimeout(() => (target.textContent = words), 2000);
  }, more);

  const begin = (table) => {
    const part = table.closest("[data-judge]");
    const { heads, sort, clickable } = sorter(table);
    const keys = heads.map((head) => head.dataset.key);
    const rows = [...table.tBodies[0].rows];

    clickable((column, ascending) => address.set({ sort: `${ascending ? "" : "-"}${keys[column]}` }));
    const found = el("output", { class: "count", "aria-live": "polite" });
    const input = el("input", { type: "search", placeholder: "Find a model", "aria-label": "Find a model; several names with commas between" });
    input.addEventListener("input", () => address.set({ filter: input.value }));

    table.querySelector("th.name").append(input);
    part.querySelector(".tools").append(found);

    const filter = () => {
      const asked = address.get("filter");
      if (input.value !== asked) input.value = asked;
      const terms = asked.toLowerCase().split(",").map((word) => word.trim()).filter(Boolean);
      let left = 0;
      for (const row of rows) {
        const name = row.dataset.model.toLowerCase();
        row.hidden = terms.length > 0 && !terms.some((term) => name.includes(term));
        left += row.hidden ? 0 : 1;
      }
      found.textContent = terms.length ? `${left} of ${rows.length}` : "";
    };

    const order = () => {
      const asked = address.get("sort");
      const column = keys.indexOf(asked.replace(/^-/, ""));
      if (asked && column < 0) botchat.wrongLink(`This table has no column ${asked}.`);
      sort(column, !asked.startsWith("-"));
    };

    const settle = () => {
      if (Number(part.dataset.judge) !== chosen.judge) return;
      filter();
      order();
    };
    address.changed(settle);
    chosen.changed(settle);
    settle();
  };
  dress((root) => root.querySelectorAll("#board table.board").forEach(begin));
})();
