// Transcripts: a list with search and filters beside what is read.
(() => {
  const { about, el, named, link, load, seed, chosen, outcome } = botchat;
  const { single, pair } = botchat.dialogues;
  const PAGE = 120;

  const title = (protocol) => {
    if (protocol === "unieval") return "One dialogue";
    if (protocol === "gteval") return "Beside the human one (GTEval)";
    return protocol.replace(/^arena-n(\d+)$/, "Two models (Arena, N = $1)");
  };

  // The state is the hash; the controls only write it.
  const start = async (place) => {
    const index = await load("index");
    const state = { view: "unieval", filter: "", term: "", limit: PAGE };
    const pairProtocols = index.protocols.filter((name) => name !== "unieval");
    const byName = new Map(index.contestants.map((name, i) => [name, i]));
    const bySeed = new Map(index.seeds.map(([id], i) => [id, i]));
    const texts = new Map();

    const option = (value, label) => el("option", { value }, label);
    const select = (label, options) => el("select", { "aria-label": label }, options);
    const views = select("What to read", ["unieval", ...pairProtocols].map((p) => option(p, title(p))));
    const one = select("Contestant", index.contestants.map((name) => option(name, name)));
    const two = select("Second contestant", index.contestants.map((name) => option(name, name)));
    const filter = select("Verdict", []);
    const search = el("input", { type: "search", placeholder: "Search", "aria-label": "Search ids and texts" });
    const everywhere = el("button", { type: "button" }, "Search all utterances");
    const count = el("output", { class: "count", "aria-live": "polite" });
    const list = el("ul", { class: "cases", "aria-label": "Dialogues" });
    const more = el("button", { type: "button", class: "more" }, "Show more");
    const listing = el("div", { class: "listing" }, list, more);
    const reading = el("article", { class: "reading", "aria-live": "off" });

    const filters = () =>
      state.view === "unieval"
        ? [["", "All verdicts"], ["lose", "Accused"], ["win", "Taken for human"], ["none", "Unreadable or not judged"], ["flagged", "Flagged"], ...(index.diagnosed.some((by) => Object.keys(by).length) ? [["diagnosed", "Diagnosed errors"]] : [])]
        : [["", "All verdicts"], ["win", `${one.value} wins`], ["lose", `${two.value} wins`], ["tie", "Tie"], ["split", "Depends on the order"], ["none", "Unreadable"]];

    const opponents = () => {
      if (state.view === "gteval") return index.human >= 0 ? [index.contestants[index.human]] : [];
      const known = (index.pairs[chosen.judge] || {})[state.view] || {};
      const a = byName.get(one.value);
      const found = new Set();
      for (const key of Object.keys(known)) {
        const [x, y] = key.split(",").map(Number);
        if (x === a) found.add(index.contestants[y]);
        if (y === a) found.add(index.contestants[x]);
      }
      return index.contestants.filter((name) => found.has(name) || name === state.b);
    };

    const sync = () => {
      const paired = state.view !== "unieval";
      views.value = state.view;
      two.hidden = !paired || state.view === "gteval";
      if (paired) {
        const before = two.value;
        const names = opponents();
        two.replaceChildren(...names.map((name) => option(name, name)));
        two.value = names.includes(state.b) ? state.b : names.includes(before) ? before : names[0] || "";
      }
      const kept = state.filter;
      filter.replaceChildren(...filters().map(([value, label]) => option(value, label)));
      filter.value = filters().some(([value]) => value === kept) ? kept : "";
      state.filter = filter.value;
    };

    const item = (at) => {
      const a = byName.get(one.value);
      if (state.view === "unieval") {
        const marks = index.flags[a] ? index.flags[a][at] : -1;
        if (marks < 0) return null;
        const row = index.unieval[chosen.judge] && index.unieval[chosen.judge][a];
        const code = row ? row[at] : -2;
        const kind = code < 0 ? "none" : code ? "lose" : "win";
        const lost = (by) => (by[a] ? Math.max(0, by[a][at]) : 0);
        const errors = Math.max(...index.diagnosed.map(lost));
        const said = code === -2 ? "not judged" : code === -1 ? "unreadable" : code ? `accused at ${code}` : "human";
        return { at, kind, said, marks, errors };
      }
      const b = byName.get(two.value);
      const codes = (index.pairs[chosen.judge] || {})[state.view] || {};
      const ab = (codes[`${a},${b}`] || "")[at] || "-";
      const ba = (codes[`${b},${a}`] || "")[at] || "-";
      if (ab === "-" && ba === "-") return null;
      const mirrored = { win: "lose", lose: "win" };
      const results = [outcome(ab), mirrored[outcome(ba)] || outcome(ba)];
      const kind = results.includes("none") ? "none" : results[0] === results[1] ? results[0] : "split";
      const said = { win: "first wins", lose: "second wins", tie: "tie", split: "depends on order", none: "unreadable" }[kind];
      return { at, kind, said, marks: 0 };
    };

    const matches = (found) => {
      const has = { flagged: found.marks, diagnosed: found.errors };
      if (state.filter && !(state.filter in has ? has[state.filter] : found.kind === state.filter)) return false;
      if (!state.term) return true;
      const [id, opening] = index.seeds[found.at];
      if (`${id} ${opening}`.toLowerCase().includes(state.term)) return true;
      const content = texts.get(found.at);
      if (!content) return false;
      const which = [byName.get(one.value)];
      if (state.view !== "unieval") which.push(byName.get(two.value));
      return which.some((i) => content.dialogues[i] && content.dialogues[i].said.some((said) => said.toLowerCase().includes(state.term)));
    };

    const to = (at) => {
      const parts = { view: state.view, a: one.value };
      if (state.view !== "unieval") parts.b = two.value;
      parts.seed = index.seeds[at][0];
      if (index.judges.length > 1) parts.judge = index.judges[chosen.judge];
      return link(parts);
    };

    let found = [];
    const refresh = () => {
      found = index.seeds.map((_, at) => item(at)).filter((each) => each && matches(each));
      count.textContent = `${found.length.toLocaleString("en")} of ${index.seeds.length.toLocaleString("en")}`;
      list.replaceChildren(
        ...found.slice(0, state.limit).map((each) =>
          el(
            "li",
            null,
            el(
              "a",
              { href: to(each.at), "aria-current": each.at === state.at ? "true" : null },
              el("span", { class: "id" }, named(index.seeds[each.at][0])),
              el("span", { class: `badge ${each.kind}` }, each.said),
              each.marks ? el("span", { class: "marks", title: "flags" }, `⚑ ${each.marks}`) : null,
              each.errors ? el("span", { class: "marks", title: "points lost in the diagnosis" }, `−${each.errors}`) : null,
              el("span", { class: "opening", dir: "auto" }, index.seeds[each.at][1]),
            ),
          ),
        ),
      );
      more.hidden = found.length <= state.limit;
    };

    const read = async (focus) => {
      const at = state.at;
      const [view, a, b] = [state.view, byName.get(one.value), byName.get(two.value)];
      const content = await seed(index, at);
      if (at !== state.at || view !== state.view) return;
      const there = content.dialogues[a] && (view === "unieval" || content.dialogues[b]);
      const place = found.findIndex((each) => each.at === at);
      const step = (by, label) => {
        const next = place < 0 ? null : found[place + by];
        return next ? el("a", { href: to(next.at), rel: by < 0 ? "prev" : "next" }, label) : el("span", null, label);
      };
      reading.replaceChildren(
        el("p", { class: "steps" }, step(-1, "← Previous"), step(1, "Next →"), el("a", { href: to(at) }, "Link to this")),
        ...(there
          ? (view === "unieval" ? single(index, content, a, at) : pair(index, content, view, a, b, at)).flat().filter(Boolean)
          : [el("p", { class: "note" }, "There is no such dialogue.")]),
      );
      if (focus) {
        reading.querySelector("h3")?.focus({ preventScroll: true });
        reading.scrollIntoView({ block: "start" });
      }
    };

    // What is read stands in the list where the list can be seen.
    const reveal = () => {
      const at = found.findIndex((each) => each.at === state.at);
      if (at >= state.limit) {
        state.limit = at + PAGE;
        refresh();
      }
      const current = list.querySelector("[aria-current]");
      if (!current) return;
      const above = current.offsetTop - listing.scrollTop;
      if (above < 0 || above > listing.clientHeight - current.offsetHeight) {
        listing.scrollTop = current.offsetTop - listing.clientHeight / 3;
      }
    };

    const go = (arrived) => {
      const asked = botchat.hash();
      const known = asked.view && (asked.view === "unieval" || pairProtocols.includes(asked.view));
      if (known) {
        state.view = asked.view;
        if (byName.has(asked.a)) one.value = asked.a;
        state.b = asked.b;
      }
      const judge = index.judges.indexOf(asked.judge);
      if (known && judge >= 0 && judge !== chosen.judge) chosen.judge = judge;
      sync();
      const wanted = known ? bySeed.get(asked.seed) : undefined;
      state.at = wanted === undefined ? -1 : wanted;
      refresh();
      if (wanted === undefined && found.length) {
        state.at = (found.find((each) => each.kind === "lose") || found[0]).at;
        refresh();
      }
      reveal();
      if (known && wanted === undefined && arrived) place.scrollIntoView();
      if (state.at >= 0) read(wanted !== undefined && arrived);
      else reading.replaceChildren(el("p", { class: "note" }, "Nothing here with this judge."));
    };

    const rewrite = () => {
      const parts = { view: views.value, a: one.value };
      if (views.value !== "unieval") parts.b = two.value;
      history.replaceState(null, "", link(parts));
      go(false);
    };
    for (const control of [views, one, two]) control.addEventListener("change", rewrite);
    filter.addEventListener("change", () => {
      state.filter = filter.value;
      state.limit = PAGE;
      refresh();
    });
    search.addEventListener("input", () => {
      state.term = search.value.toLowerCase();
      state.limit = PAGE;
      refresh();
    });
    everywhere.addEventListener("click", async () => {
      everywhere.disabled = true;
      for (let at = 0; at < index.seeds.length; at += 1) {
        texts.set(at, await seed(index, at));
        if (at % index.per_chunk === 0) everywhere.textContent = `Loading ${at} of ${index.seeds.length}`;
      }
      everywhere.textContent = "Searching all utterances";
      refresh();
    });
    more.addEventListener("click", () => {
      state.limit += PAGE;
      refresh();
    });
    chosen.changed(() => {
      const asked = botchat.hash();
      if (asked.judge) {
        history.replaceState(null, "", link({ ...asked, judge: index.judges[chosen.judge] }));
      }
      go(false);
    });
    addEventListener("hashchange", () => {
      if (botchat.hash().view) go(true);
    });

    place.replaceChildren(
      el("div", { class: "tools" }, views, one, two, filter, search, everywhere, count),
      el("div", { class: "reader" }, listing, reading),
    );
    const best = about.first;
    if (byName.has(best)) one.value = best;
    go(Boolean(botchat.hash().view));
  };

  const begin = (place) => {
    start(place).catch((error) => {
      document.documentElement.classList.remove("archived");
      place.replaceChildren(el("p", { class: "warning" }, `The transcripts cannot be shown: ${error.message}`));
    });
  };

  const place = document.getElementById("reader");
  if (place && about.folder) {
    document.documentElement.classList.add("archived"); // samples are for those without
    if (botchat.hash().view) begin(place);
    else {
      let begun = false;
      const once = () => {
        if (!begun) begin(place);
        begun = true;
      };
      new IntersectionObserver((seen, observer) => {
        if (seen.some((entry) => entry.isIntersecting)) {
          observer.disconnect();
          once();
        }
      }, { rootMargin: "600px" }).observe(place);
      addEventListener("hashchange", () => {
        if (botchat.hash().view) once();
      });
    }
  }
})();
