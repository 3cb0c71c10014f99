// One part of the page at a time, named by the address; the main table.
(() => {
  const { about, address, button, el, link } = botchat;
  const views = [...document.querySelectorAll("[data-view]")];

  // The part of an address: itself, or that of a protocol of the archive.
  const viewOf = (name) => {
    if (!name) return "ranking";
    if (Object.hasOwn(about.protocols, name)) return about.protocols[name] === "one" ? "read" : "pair";
    return name;
  };

  const show = () => {
    const { hash } = location;
    const name = viewOf(hash.includes("=") ? address.all().view : hash.slice(1));
    const found = views.find((view) => view.dataset.view === name);
    if (!found) botchat.wrongLink(`This link does not fit this page: it has no ${name}.`);
    for (const view of views) view.hidden = view !== (found || views[0]);
    for (const anchor of document.querySelectorAll("nav a")) {
      anchor.href = link({ view: anchor.dataset.to });
      if (anchor.dataset.to === (found || views[0]).dataset.view) anchor.setAttribute("aria-current", "page");
      else anchor.removeAttribute("aria-current");
    }
  };

  const table = document.querySelector("table.board");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];

  // A click on a heading puts the highest first, names and ranks the lowest; missing ones are last.
  heads.forEach((head, column) => {
    const isName = head.classList.contains("name");
    const lowFirst = isName || head.classList.contains("rank");
    head.append(button([...head.childNodes], () => {
      const ascending = head.ariaSort ? head.ariaSort === "descending" : lowFirst;
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      const order = (a, b) => {
        const [x, y] = [a, b].map((row) => (isName ? row.dataset.model : row.cells[column].dataset.value));
        if (!x || !y) return !x - !y;
        return (ascending ? 1 : -1) * (isName ? x.localeCompare(y, "en", { numeric: true }) : x - y);
      };
      body.append(...rows.toSorted(order));
    }));
  });

  const menu = document.querySelector(".menu");
  menu?.addEventListener("toggle", () => {
    for (const box of menu.querySelectorAll("input")) box.checked = heads.find((head) => head.dataset.key === box.value).offsetWidth > 0;
  });
  menu?.addEventListener("change", ({ target }) => {
    for (const cell of table.querySelectorAll("[data-key]")) {
      if (cell.dataset.key === target.value) cell.style.display = target.checked ? "table-cell" : "none";
    }
    fit();
  });
  addEventListener("click", ({ target }) => {
    if (menu && !menu.contains(target)) menu.open = false;
  });

  if (rows.length > 12) {
    const field = el("input", { type: "search", placeholder: "Find a model", "aria-label": "Find a model" });
    field.addEventListener("input", () => {
      for (const row of rows) row.hidden = !row.dataset.model.toLowerCase().includes(field.value.toLowerCase());
    });
    document.querySelector(".tools").append(field);
  }

  // Names in the plot of prices stand where they touch no other name.
  const points = [...document.querySelectorAll(".points .point")];
  const box = (point) => point.lastChild.getBoundingClientRect();
  const apart = (a, b) => a.right < b.left || b.right < a.left || a.bottom < b.top || b.bottom < a.top;
  const place = (_, i) => {
    const fits = ["", "to-left", "below", "to-left below"].some((where) => {
      points[i].classList.remove("to-left", "below", "quiet");
      points[i].classList.add(...where.split(" ").filter(Boolean));
      const { left, right } = box(points[i]);
      const taken = points.slice(0, i).filter((each) => !each.classList.contains("quiet")).map(box);
      const canvas = points[i].parentElement.getBoundingClientRect();
      return left > canvas.left && right < canvas.right && taken.every((each) => apart(each, box(points[i])));
    });
    points[i].classList.toggle("quiet", !fits);
  };

  // A table that is wider than its place takes the whole width.
  const fit = () => {
    const screen = document.getElementById("ranking");
    screen.classList.remove("spread");
    screen.classList.toggle("spread", table.offsetWidth > table.parentElement.clientWidth);
    points.forEach(place);
  };
  addEventListener("resize", fit);

  // The line of the row, or of the name, under the pointer.
  const first = document.getElementById("ranking");
  for (const type of ["mouseover", "mouseout", "focusin", "focusout"]) {
    first.addEventListener(type, ({ target }) => {
      const name = target.closest("[data-model]")?.dataset.model;
      for (const line of first.querySelectorAll(".plot [data-model]")) {
        line.classList.toggle("now", !type.endsWith("out") && line.dataset.model === name);
      }
    });
  }

  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    const view = views.find((each) => !each.hidden);
    const goal = view.querySelector("table.board") || view.querySelector("h1");
    goal.tabIndex = -1;
    goal.focus();
  });

  document.documentElement.classList.add("scripted");
  for (const settle of [show, fit]) {
    address.changed(settle);
    settle();
  }
})();
