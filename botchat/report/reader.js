// Transcripts: a list with search and filters beside what is read.
(() => {
  const { about, el, named, link, load, seed, chosen, outcome } = botchat;
  const { single, pair, words, scored } = botchat.dialogues;
  const PAGE = 120;

  // Points that are lost; a panel's mean has decimals.
  const points = (lost) => `−${Math.round(10 * lost) / 10}`;

  const capital = (text) => text[0].toUpperCase() + text.slice(1);

  // The state is the hash; the controls only write it.
  const start = async (place) => {
    const index = await load("index");
    const state = { view: about.view, filter: "", term: "", limit: PAGE };
    const byProtocol = new Map(index.about.map((protocol) => [protocol.name, protocol]));
    const reports = index.about.filter(({ kind }) => kind === "report").map(({ name }) => name);
    const isPair = (name) => byProtocol.get(name).shows !== "one";
    const isBesideHuman = (name) => byProtocol.get(name).shows === "human";
    const byName = new Map(index.contestants.map((name, i) => [name, i]));
    const bySeed = new Map(index.seeds.map(([id], i) => [id, i]));
    const texts = new Map();

    const option = (value, label) => el("option", { value }, label);
    const select = (label, options) => el("select", { "aria-label": label }, options);
    const views = select("What to read", index.about.map(({ name, title }) => option(name, title)));
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

    // What a list can be narrowed to; "up-0" and "down-0" put it into the order of the first number.
    const filters = () => {
      if (isPair(state.view)) {
        return [["", "All verdicts"], ["win", `${one.value} wins`], ["lose", `${two.value} wins`], ["tie", "Tie"], ["split", "Depends on the order"], ["none", "Unreadable"]];
      }
      const protocol = byProtocol.get(state.view);
      const { place, none } = words(protocol);
      const isDiagnosed = protocol.kind !== "report" && index.single.some((by) => reports.some((name) => Object.hasOwn(by, name)));
      return [
        ["", "All verdicts"],
        ...{
          place: () => [["lose", capital(place)], ["win", capital(none)]],
          score: () => protocol.numbers.flatMap((name, i) => [[`down-${i}`, `${name}: highest first`], [`up-${i}`, `${name}: lowest first`]]),
          report: () => [["lose", "With errors"], ["win", "Without errors"], ["up-0", "Most points lost first"]],
        }[protocol.kind](),
        ["none", "Unreadable or not judged"],
        ["flagged", "Flagged"],
        ...(isDiagnosed ? [["diagnosed", "Diagnosed errors"]] : []),
      ];
    };

    const opponents = () => {
      if (isBesideHuman(state.view)) return index.human >= 0 ? [index.contestants[index.human]] : [];
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
      const paired = isPair(state.view);
      views.value = state.view;
      two.hidden = !paired || isBesideHuman(state.view);
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

    // A verdict on one dialogue, as `_code` of botchat.report.archive has it: its kind, in words, and
    // numbers to sort by.
    const told = (protocol, code) => {
      if (code === null || code === -2) return { kind: "none", said: "not judged" };
      if (code === -1 || code.length === 0) return { kind: "none", said: "unreadable" };
      if (protocol.kind === "score") return { kind: "score", said: scored(protocol, code), numbers: code };
      if (protocol.kind === "report") {
        return { kind: code[0] ? "lose" : "win", said: code[0] ? points(-code[0]) : "no errors", numbers: code };
      }
      const { place, brief } = words(protocol);
      return code ? { kind: "lose", said: `${place} at ${code}` } : { kind: "win", said: brief };
    };

    const codeOf = (who, name, a, at) => {
      const row = ((index.single[who] || {})[name] || {})[a];
      return row ? row[at] : null;
    };

    const item = (at) => {
      const a = byName.get(one.value);
      const protocol = byProtocol.get(state.view);
      if (!isPair(state.view)) {
        const marks = index.flags[a] ? index.flags[a][at] : -1;
        if (marks < 0) return null;
        const lost = (name, who) => -((codeOf(who, name, a, at) || [])[0] || 0);
        const all = protocol.kind === "report" ? [] : reports.flatMap((name) => index.judges.map((_, who) => lost(name, who)));
        return { at, ...told(protocol, codeOf(chosen.judge, state.view, a, at)), marks, errors: Math.max(0, ...all) };
      }
      const b = byName.get(two.value);
      const codes = (index.pairs[chosen.judge] || {})[state.view] || {};
      const ab = (codes[`${a},${b}`] || "")[at] || "-";
      const ba = (codes[`${b},${a}`] || "")[at] || "-";
      if (ab === "-" && ba === "-") return null;
      const mirrored = { win: "lose", lose: "win" };
      // People label one of the two orders only.
      const results = [...(ab === "-" ? [] : [outcome(ab)]), ...(ba === "-" ? [] : [mirrored[outcome(ba)] || outcome(ba)])];
      const kind = results.includes("none") ? "none" : results.every((one) => one === results[0]) ? results[0] : "split";
      const said = { win: "first wins", lose: "second wins", tie: "tie", split: "depends on order", none: "unreadable" }[kind];
      return { at, kind, said, marks: 0 };
    };

    // Which number the list is in the order of, and which way.
    const sorting = () => {
      const [way, number] = state.filter.split("-");
      return number ? [Number(number), way === "up" ? 1 : -1] : null;
    };

    const matches = (found) => {
      const has = { flagged: found.marks, diagnosed: found.errors };
      const sorted = sorting();
      if (sorted ? !found.numbers : state.filter && !(state.filter in has ? has[state.filter] : found.kind === state.filter)) return false;
      if (!state.term) return true;
      const [id, opening] = index.seeds[found.at];
      if (`${id} ${opening}`.toLowerCase().includes(state.term)) return true;
      const content = texts.get(found.at);
      if (!content) return false;
      const which = [byName.get(one.value)];
      if (isPair(state.view)) which.push(byName.get(two.value));
      return which.some((i) => content.dialogues[i] && content.dialogues[i].said.some((said) => said.toLowerCase().includes(state.term)));
    };

    const to = (at) => {
      const parts = { view: state.view, a: one.value };
      if (isPair(state.view)) parts.b = two.value;
      parts.seed = index.seeds[at][0];
      if (index.judges.length > 1) parts.judge = index.judges[chosen.judge];
      return link(parts);
    };

    let found = [];
    const refresh = () => {
      found = index.seeds.map((_, at) => item(at)).filter((each) => each && matches(each));
      const sorted = sorting();
      if (sorted) found.sort((x, y) => sorted[1] * (x.numbers[sorted[0]] - y.numbers[sorted[0]]));
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
              each.errors ? el("span", { class: "marks", title: "points lost in the diagnosis" }, points(each.errors)) : null,
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
      const protocol = byProtocol.get(view);
      const there = content.dialogues[a] && (!isPair(view) || content.dialogues[b]);
      const place = found.findIndex((each) => each.at === at);
      const step = (by, label) => {
        const next = place < 0 ? null : found[place + by];
        return next ? el("a", { href: to(next.at), rel: by < 0 ? "prev" : "next" }, label) : el("span", null, label);
      };
      reading.replaceChildren(
        el("p", { class: "steps" }, step(-1, "← Previous"), step(1, "Next →"), el("a", { href: to(at) }, "Link to this")),
        ...(there
          ? (isPair(view) ? pair(index, content, protocol, a, b, at) : single(index, content, protocol, a, at)).flat().filter(Boolean)
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
      const known = byProtocol.has(asked.view);
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
      // Somebody who was not chosen is none to compare with.
      history.replaceState(null, "", link(two.hidden ? parts : { ...parts, b: two.value }));
      go(false);
      if (isPair(views.value)) history.replaceState(null, "", link({ ...parts, b: two.value }));
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
