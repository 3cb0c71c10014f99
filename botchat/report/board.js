// The first screen's table: sorts, filters and shows columns by the address. Files of any table and
// figure.
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
  const csv = (table) => {
    const heads = [...table.tHead.rows[0].cells];
    const hasEnds = heads.map((_, i) => [...table.tBodies[0].rows].some((row) => row.cells[i].dataset.low));
    const names = heads.flatMap((head, i) => {
      const name = head.dataset.key || head.textContent.trim();
      return hasEnds[i] ? [name, `${name}_low`, `${name}_high`] : [name];
    });
    const rows = [...table.tBodies[0].rows].map((row) =>
      [...row.cells].flatMap((cell, i) => {
        const name = row.dataset.model && cell.tagName === "TH" ? row.dataset.model : cell.title || exact(cell);
        const value = cell.tagName === "TH" ? inert(name) : exact(cell).replace(/^–$/, "");
        return hasEnds[i] ? [value, cell.dataset.low || "", cell.dataset.high || ""] : [value];
      }),
    );
    return [names, ...rows].map((row) => row.map(quoted).join(",")).join("\n") + "\n";
  };

  const csvButton = (table, words, more) => button(words, () => save(`${table.dataset.file}.csv`, csv(table), "text/csv"), more);

  // The colours of a figure come from the page's style sheet; a file gets them written in, and the title.
  const picture = (svg, title) => {
    const copy = svg.cloneNode(true);
    const [from, to] = [svg.querySelectorAll("*"), copy.querySelectorAll("*")];
    from.forEach((node, i) => {
      const style = getComputedStyle(node);
      for (const key of ["fill", "stroke"]) if (node.hasAttribute(key)) to[i].setAttribute(key, style[key]);
    });
    const { width, height } = svg.viewBox.baseVal;
    const lines = title.match(new RegExp(`.{1,${Math.floor(width / 8.6)}}(\\s|$)|\\S+`, "g"));
    const top = 20 * lines.length + 16;
    const { color, backgroundColor } = getComputedStyle(document.body);
    for (const [i, line] of lines.entries()) {
      const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
      const at = { x: 0, y: 20 * (i + 1) - top, "font-size": 15.5, "font-weight": 700, fill: color };
      for (const [key, value] of Object.entries(at)) text.setAttribute(key, value);
      text.textContent = line;
      copy.append(text);
    }
    const box = [-10, -top - 6, width + 20, height + top + 16];
    for (const [key, value] of Object.entries({ xmlns: "http://www.w3.org/2000/svg", viewBox: box.join(" "), width: box[2], height: box[3], "font-family": "system-ui, sans-serif" })) copy.setAttribute(key, value);
    copy.style.background = backgroundColor;
    return [new XMLSerializer().serializeToString(copy), box[2], box[3]];
  };

  const png = ([text, width, height], name) => {
    const image = new Image();
    image.addEventListener("load", () => {
      const canvas = el("canvas", { width: Math.round(2 * width), height: Math.round(2 * height) });
      const pen = canvas.getContext("2d");
      pen.fillStyle = getComputedStyle(document.body).backgroundColor;
      pen.fillRect(0, 0, canvas.width, canvas.height);
      pen.drawImage(image, 0, 0, canvas.width, canvas.height);
      save(name, canvas.toDataURL("image/png"));
    });
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  };

  dress((root) => {
    for (const table of root.querySelectorAll("table.plain")) {
      const { heads, sort, clickable } = sorter(table);
      clickable((column, ascending) => sort(column, ascending));
      if (heads.length) table.closest(".scroll").before(el("p", { class: "tools" }, csvButton(table, "csv", { class: "quiet", title: "This table as a file" })));
    }
    for (const figure of root.querySelectorAll("figure[data-file]")) {
      const svg = figure.querySelector("svg");
      const { file: name, title } = figure.dataset;
      figure.append(el("p", { class: "tools" },
        button("svg", () => save(`${name}.svg`, picture(svg, title)[0], "image/svg+xml"), { class: "quiet" }),
        button("png", () => png(picture(svg, title), `${name}.png`), { class: "quiet" })));
    }
  });

  // Copies the address of what is shown.
  const copier = (words, more) => button(words, async ({ target }) => {
    target.textContent = (await botchat.copy(location.href)) ? "Copied" : "Copy it from the address";
    setTimeout(() => (target.textContent = words), 2000);
  }, more);
  botchat.copier = copier;

  const begin = (table) => {
    const part = table.closest("[data-judge]");
    const { heads, sort, clickable } = sorter(table);
    const keys = heads.map((head) => head.dataset.key);
    const usual = heads.filter((head) => !head.classList.contains("off")).map((head) => head.dataset.key);
    const rows = [...table.tBodies[0].rows];

    clickable((column, ascending) => address.set({ sort: `${ascending ? "" : "-"}${keys[column]}` }));
    const found = el("output", { class: "count", "aria-live": "polite" });
    const input = el("input", { type: "search", placeholder: "Find a model", "aria-label": "Find a model; several names with commas between" });
    input.addEventListener("input", () => address.set({ filter: input.value }));

    const boxes = keys.map((key) => el("input", { type: "checkbox", disabled: key === "model" || key === "rank", value: key }));
    const labels = boxes.map((box, i) => el("label", null, box, heads[i].dataset.name));
    const reset = button("As it was", () => address.set({ columns: "" }));
    const choose = () => {
      const now = keys.filter((_, i) => boxes[i].checked);
      const same = now.join() === usual.join();
      address.set({ columns: same ? "" : now.join(",") });
    };
    boxes.forEach((box) => box.addEventListener("change", choose));
    const columns = el("details", { class: "quiet" }, el("summary", null, "More columns"), el("div", null, labels, reset));

    const share = el("details", { class: "quiet" }, el("summary", null, "Share"),
      el("div", null, copier("Copy link"), csvButton(table, "Table as csv"), button("Print", () => print())));
    table.querySelector("th.name").append(input);
    part.querySelector(".tools").append(columns, share, found);
    for (const menu of [columns, share]) {
      menu.addEventListener("keydown", (event) => {
        if (event.key !== "Escape") return;
        menu.open = false;
        menu.querySelector("summary").focus();
      });
      document.addEventListener("click", (event) => {
        if (!menu.contains(event.target)) menu.open = false;
      });
    }

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

    const pick = () => {
      const asked = address.get("columns").split(",").filter(Boolean);
      const now = new Set(asked.length ? ["rank", "model", ...asked] : usual);
      const unknown = asked.filter((key) => !keys.includes(key));
      if (unknown.length) botchat.misfit(`This table has no column ${unknown.join(", ")}.`);
      table.classList.toggle("picked", asked.length > 0);
      keys.forEach((key, i) => {
        boxes[i].checked = now.has(key);
        heads[i].classList.toggle("off", !now.has(key));
        for (const row of rows) row.cells[i].classList.toggle("off", !now.has(key));
      });
    };

    const order = () => {
      const asked = address.get("sort");
      const column = keys.indexOf(asked.replace(/^-/, ""));
      if (asked && column < 0) botchat.misfit(`This table has no column ${asked}.`);
      sort(column, !asked.startsWith("-"));
    };

    const settle = () => {
      if (Number(part.dataset.judge) !== chosen.judge) return;
      filter();
      pick();
      order();
    };
    address.changed(settle);
    chosen.changed(settle);
    settle();
  };
  dress((root) => root.querySelectorAll("#board table.board").forEach(begin));

})();
