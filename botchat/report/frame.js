// One view at a time, named by the address; the judge of all views.
(() => {
  const { about, address, choice, chosen, dress, link } = botchat;
  const views = [...document.querySelectorAll("[data-view]")];
  const names = views.map((view) => view.dataset.view);

  // The view of an address: a part of the page, a protocol of the archive, or an element's id.
  const viewOf = (asked) => {
    if (!asked || names.includes(asked)) return asked || "board";
    const shows = Object.hasOwn(about.protocols, asked) ? about.protocols[asked] : "";
    return shows ? (shows === "one" ? "read" : "pair") : "";
  };

  const show = () => {
    const isId = location.hash.length > 1 && !location.hash.includes("=");
    const target = isId ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
    let name = target ? target.closest("[data-view]")?.dataset.view : viewOf(address.get("view"));
    if (!name || (isId && !target)) {
      botchat.wrongLink(`This link does not fit this page: it has no ${isId ? location.hash.slice(1) : address.get("view")}.`);
      name = "board";
    }
    for (const view of views) view.hidden = view.dataset.view !== name;
    for (const anchor of document.querySelectorAll("nav a[data-to]")) {
      const to = anchor.dataset.to;
      anchor.href = link({ view: to === "board" ? "" : to, ...chosen.part });
      if (to === name) anchor.setAttribute("aria-current", "page");
      else anchor.removeAttribute("aria-current");
    }
    if (target) {
      for (let up = target.closest("details"); up; up = up.parentElement.closest("details")) up.open = true;
      target.scrollIntoView({ block: "start" });
    }
  };

  const parts = [...document.querySelectorAll("[data-judge]")];
  const switches = [];
  const judged = () => {
    for (const part of parts) part.hidden = Number(part.dataset.judge) !== chosen.judge;
    for (const one of switches) one.value = String(chosen.judge);
  };
  dress((root) => {
    if (about.judges.length < 2) return;
    for (const place of root.querySelectorAll(".switch")) {
      const one = choice("Judge", about.judges.map((name, i) => [i, name]));
      one.value = String(chosen.judge);
      one.addEventListener("change", () => {
        chosen.judge = Number(one.value);
      });
      switches.push(one);
      place.replaceChildren("judge ", one);
    }
  });

  document.querySelector(".skip")?.addEventListener("click", (event) => {
    event.preventDefault();
    const view = views.find((one) => !one.hidden);
    const goal = view.querySelector("[data-judge]:not([hidden]) table.board") || view.querySelector("h1");
    goal.tabIndex = -1;
    goal.focus();
  });

  document.documentElement.classList.add("scripted");
  chosen.changed(judged);
  address.changed(show);
  chosen.settle();
  judged();
  show();
})();
