// One dialogue with its verdicts: a list with search and filters, and what is read. Opens at the
// first AI utterance. The state is the address; the controls only write it.
(() => {
  const { about, address, button, choice, el, link, wrongLink, named, offer, seed } = botchat;
  const { KINDS, acts, annotators, begin, calls, completed, failed, inOrder, isReport, isWrong, keys, marked, nameOf, namesPlace, points, reported, short, stamp, talk, utterance, words } = botchat.dialogues;
  const PAGE = 120;

  // A verdict as the archive has it: its kind, in words, numbers to sort by.
  const verdictOf = (protocol, code) => {
    if (code === null || code === undefined || code === -2) return { kind: "none", brief: "not judged", full: "Not judged" };
    if (code === -1 || code.length === 0) return { kind: "none", brief: "unreadable", full: "No readable verdict" };
    return KINDS[protocol.kind].verdict(protocol, code);
  };

  const start = ({ place, view, index, byName, bySeed, contentOf }) => {
    const singles = index.about.filter(({ shows }) => shows === "one");
    const byProtocol = new Map(singles.map((protocol) => [protocol.name, protocol]));
    const reports = singles.filter(isReport).map(({ name }) => name);
    const texts = new Map(); // seeds that were loaded to be searched
    const order = inOrder(index);
    let state = {};
    let limit = PAGE;
    let drawn = { list: "", read: "", at: "" };
    let isLoading = false;

    const protocols = choice("Protocol", singles.map(({ name, title }) => [name, title]));
    const who = choice("Contestant", order.map((i) => [index.contestants[i], short(index.contestants[i], 34)]));
    const filter = choice("Verdict");
    const search = el("input", { type: "search", placeholder: "Search", "aria-label": "Search ids and texts" });
    const count = el("output", { class: "count", "aria-live": "polite" });
    const list = el("ul", { class: "cases", "aria-label": "Dialogues" });
    const more = button("Show more", () => {
      limit += PAGE;
      rows();
      reveal();
    });
    const listing = el("div", { class: "listing" }, list, more);
    const reading = el("article", { class: "reading", "aria-live": "off" });
    const beside = el("aside", { class: "beside-reading" });
    const reader = el("div", { class: "reader" },
      el("div", { class: "finder" }, el("div", { class: "tools" }, singles.length > 1 ? protocols : null, who, filter, search, count), listing), reading, beside);

    const filters = (protocol) => {
      const isDiagnosed = !isReport(protocol) && index.judges.some(({ single }) => reports.some((name) => Object.hasOwn(single, name)));
      return [
        ["", "All verdicts"],
        ...KINDS[protocol.kind].filters(protocol),
        ["none", "Unreadable or not judged"],
        ...(namesPlace(protocol) && annotators(index).length ? [["wrong", "Judge wrong"]] : []),
        ...(isDiagnosed ? [["diagnosed", "Diagnosed errors"]] : []),
      ];
    };

    const codeOf = (judge, name, a, at) => index.judges[judge]?.single[name]?.[a]?.[at] ?? null;
    const judgedBy = (judge, protocol, a, at) => verdictOf(protocol, codeOf(judge, protocol.name, a, at));

    const item = (protocol, a, at) => {
      const lost = reports.flatMap((name) => index.judges.map((_, judge) => -((codeOf(judge, name, a, at) || [])[0] || 0)));
      const verdict = judgedBy(about.judge, protocol, a, at);
      const labels = annotators(index).map((judge) => judgedBy(judge, protocol, a, at).kind);
      return { a, at, ...verdict, wrong: isWrong(verdict.kind, labels), errors: isReport(protocol) ? 0 : Math.max(0, ...lost) };
    };

    // Where the searched words stand: in the id or the opening (0), or in an utterance; -1: nowhere.
    const hit = (term, { a, at }) => {
      const { id, text: opening } = index.seeds[at];
      if (!term || `${id} ${opening}`.toLowerCase().includes(term)) return 0;
      const dialogue = texts.get(at)?.dialogues[a];
      return dialogue ? dialogue.utterances.findIndex((text) => text.toLowerCase().includes(term)) : -1;
    };

    const listed = ({ protocol, a, show, term }) => {
      const [way, number] = show.split("-");
      const passes = (each) => {
        if (way === "at") return each.place === Number(number);
        if (number) return Boolean(each.numbers);
        return { "": true, diagnosed: each.errors, wrong: each.wrong }[show] ?? each.kind === show;
      };
      const whole = index.seeds.flatMap((_, at) => (index.has_dialogue[a][at] ? [item(protocol, a, at)] : []));
      const found = whole.filter(passes).map((each) => ({ ...each, hit: hit(term, each) })).filter((each) => each.hit >= 0);
      const sign = way === "up" ? 1 : -1;
      if (number && way !== "at") found.sort((x, y) => sign * (x.numbers[number] - y.numbers[number]));
      return { found, whole: whole.length };
    };

    // The state that the address asks for, or why there is none.
    const resolve = () => {
      const asked = address.all();
      const protocol = byProtocol.get(asked.view) || byProtocol.get(about.view);
      const a = asked.a ? byName.get(asked.a) : order[0];
      const next = { protocol, a, show: "", q: asked.q || "", term: (asked.q || "").toLowerCase(), at: -1, found: [], whole: 0, asked: asked.at || "" };
      if (a === undefined) return { ...next, why: `No contestant ${asked.a} is on this page.` };
      const show = asked.show || "";
      if (/^at-\d+$/.test(show) || filters(protocol).some(([value]) => value === show)) next.show = show;
      else next.why = `Dialogues cannot be narrowed to ${show}; all are listed.`;
      Object.assign(next, listed(next));
      if (!asked.seed) return { ...next, at: ((!next.show && next.found.find(({ kind }) => kind === "lose")) || next.found[0] || next).at };
      const at = bySeed.get(asked.seed) ?? -1;
      if (at < 0) return { ...next, why: `No seed ${asked.seed} is in this set.` };
      if (!index.has_dialogue[a][at]) return { ...next, why: `There is no dialogue of ${index.contestants[a]} on ${asked.seed}.` };
      return { ...next, at };
    };

    const to = ({ a, at }, others = {}) =>
      link({ view: state.protocol.name, a: index.contestants[a], seed: index.seeds[at].id, show: state.show, q: state.q, ...others });
    const isRead = ({ a, at }) => a === state.a && at === state.at;

    // An opening, or the words around a hit further on.
    const excerpt = (each) => {
      const { term } = state;
      if (!each.hit) return marked(index.seeds[each.at].text, term);
      const text = texts.get(each.at).dialogues[each.a].utterances[each.hit];
      const from = Math.max(0, text.toLowerCase().indexOf(term) - 24);
      return [el("b", null, `${each.hit + 1} `), from ? "…" : "", ...marked(text.slice(from, from + 120), term)];
    };

    const rows = () => {
      const { found, whole } = state;
      count.textContent = `${found.length.toLocaleString("en")} of ${whole.toLocaleString("en")}`;
      list.replaceChildren(...found.slice(0, limit).map((each) =>
        el("li", null,
          el("a", { href: to(each), "data-at": each.at },
            el("span", { class: "id" }, el("bdi", null, marked(index.seeds[each.at].id, state.term))),
            each.errors ? el("span", { class: "marks", title: "points lost in the diagnosis" }, points(each.errors)) : null,
            el("span", { class: `badge ${each.kind}` }, each.brief),
            el("span", { class: "opening", dir: "auto" }, excerpt(each))))));
      more.hidden = found.length <= limit;
    };

    // What is read stands in the list where the list can be seen.
    const reveal = () => {
      const at = state.found.findIndex(isRead);
      if (at >= limit) {
        limit = at + PAGE;
        rows();
      }
      for (const old of list.querySelectorAll("[aria-current]")) old.removeAttribute("aria-current");
      const current = list.querySelector(`[data-at="${state.at}"]`);
      if (!current) return;
      current.setAttribute("aria-current", "true");
      const above = current.offsetTop - listing.scrollTop;
      if (above < 0 || above > listing.clientHeight - current.offsetHeight) listing.scrollTop = current.offsetTop - listing.clientHeight / 3;
    };

    // Into the middle of what the head leaves free; a long utterance begins right under the head.
    const lookAt = (at) => {
      for (const now of reading.querySelectorAll(".now")) now.classList.remove("now");
      reading.querySelector(`.rail [data-to="${at}"]`)?.classList.add("now");
      const target = reading.querySelector(`.dialogue > [data-at="${at}"]`);
      if (!target) return;
      target.classList.add("now");
      const head = reading.querySelector(".head");
      const covered = head.getBoundingClientRect().height + (parseFloat(getComputedStyle(head).top) || 0);
      const { top, height } = target.getBoundingClientRect();
      const room = innerHeight - covered;
      scrollBy({ top: top - covered - (height < room - 24 ? (room - height) / 2 : 12), behavior: "instant" });
    };

    const go = (by, wanted = () => true) => {
      const here = state.found.findIndex(isRead);
      const rest = by > 0 ? state.found.slice(here + 1) : state.found.slice(0, Math.max(here, 0)).reverse();
      const next = rest.find(wanted);
      if (next) address.set({ seed: index.seeds[next.at].id, at: "" }, true);
    };
    const move = (by) => {
      const last = reading.querySelectorAll(".rail > *").length;
      const now = Number(reading.querySelector(".dialogue > .now")?.dataset.at) || (by > 0 ? 0 : 2);
      if (last) address.set({ at: String(Math.min(last, Math.max(1, now + by))) });
    };

    const heading = (content, given, verdict, firstAi) => {
      const { protocol, a, at } = state;
      const open = button("List", () => {
        reader.classList.toggle("open");
        reader.scrollIntoView({ block: "start" });
        reveal();
      }, { class: "to-list" });
      const alsoReported = reported(index, content, a, isReport(protocol) ? protocol.name : "").scores
        .filter(({ judge }) => !isReport(protocol) || judge !== about.judge)
        .map(({ judge, name, score }) => [" · ", score === null ? `${name} unreadable` : `${name} ${score}`, judge === about.judge ? null : [" by ", named(index.judges[judge].name)]]);
      const rail = el("div", { class: "rail", role: "group", "aria-label": "Utterances" }, content.dialogues[a].utterances.map((_, i) => {
        const kind = [i < 2 || a === index.human ? "seed" : "", firstAi && i + 1 === firstAi ? "first-ai" : "", firstAi && i + 1 > firstAi ? "after" : ""].join(" ");
        const label = `Utterance ${i + 1}${i + 1 === firstAi ? `, ${words(protocol).verb}` : ""}`;
        return button("", () => address.set({ at: String(i + 1) }), { class: kind, "data-to": i + 1, title: `Utterance ${i + 1}`, "aria-label": label });
      }));
      return el("header", { class: "head" },
        el("div", { class: "line" },
          el("h3", { tabindex: "-1", "aria-level": 2 }, nameOf(index, a, Infinity), " · ", named(index.seeds[at].id)),
          el("span", { class: "acts" }, acts("dialogue", go, help, open, () => reading))),
        el("p", { class: "verdict" }, stamp(verdict.kind, verdict.full, firstAi ? { href: to(state, { at: firstAi }), title: "To this utterance" } : {}),
          " by ", named(index.judges[about.judge].name), alsoReported),
        given?.reason ? el("p", { class: "reason", dir: "auto" }, given.reason) : null,
        rail);
    };

    const dialogueParts = (content, given, firstAi) => {
      const { protocol, a, at, term } = state;
      const dialogue = content.dialogues[a];
      const isHuman = a === index.human;
      const others = {};
      for (const { judge, verdict } of given) {
        if (namesPlace(protocol) && judge !== about.judge && verdict && verdict !== "No") (others[verdict] ||= []).push(index.judges[judge].name);
      }
      const diagnosis = reported(index, content, a, isReport(protocol) ? protocol.name : "");
      const options = { errors: diagnosis.at, firstAi, words: words(protocol), others, human: isHuman, term, prompts: true };
      const utterances = dialogue.utterances.map((_, i) => utterance(dialogue, i, options));
      return [
        el("ol", { class: "dialogue" },
          el("li", { class: "part human" }, isHuman ? "two humans, to the end" : "two humans begin"), utterances.slice(0, 2),
          isHuman || utterances.length < 3 ? null : el("li", { class: "part" }, el("span", null, nameOf(index, a), " goes on alone")), utterances.slice(2)),
        diagnosis.at[0] ? el("div", { class: "errors" }, el("h4", { "aria-level": 3 }, "Diagnosed without an utterance"), diagnosis.at[0]) : null,
        dialogue.stopped ? el("p", { class: "warning" }, `Stopped early: ${dialogue.stopped}`) : null,
      ];
    };

    const aside = (content, given) => {
      const { protocol, a, at } = state;
      const judges = index.judges.map((judge, i) => {
        const verdict = judgedBy(i, protocol, a, at);
        const page = about.pages[i] && i !== about.judge ? about.pages[i] + to(state) : null;
        return el("tr", null,
          el("th", { scope: "row" }, page ? el("a", { href: page }, named(judge.name)) : named(judge.name)),
          el("td", { class: verdict.kind }, verdict.brief));
      });
      const truth = a === index.human ? (about.invented ? "written for the demo" : "human to the end") : index.human < 0 ? "not known" : "AI from utterance 3 on";
      const remarks = given ? talk(protocol, given).filter(Boolean) : [];
      const human = a !== index.human && index.human >= 0 ? content.dialogues[index.human] : null;
      const rest = human ? human.utterances.slice(2).map((_, i) => utterance(human, i + 2, { firstAi: 0, human: true, words: words(protocol) })) : [];
      const toHuman = link({ view: protocol.name, a: index.contestants[index.human], seed: index.seeds[at].id });
      return [
        el("h4", { "aria-level": 3 }, "Every judge on this dialogue"),
        el("table", { class: "judges" }, el("tbody", null, judges, protocol.about_ai ? el("tr", { class: "human" }, el("th", { scope: "row" }, "truth"), el("td", null, truth)) : null)),
        calls(index, content, at, given),
        rest.length ? el("section", { class: "went-on" }, el("h4", { class: "human", "aria-level": 3 }, "How the humans went on"), el("ol", { class: "dialogue rest" }, rest), el("p", { class: "note" }, el("a", { href: toHuman }, "With its verdicts"))) : null,
        remarks.length ? el("h4", { "aria-level": 3 }, given.remarks.length > 1 ? "The panel’s talk" : "The call") : null,
        ...remarks,
      ].filter(Boolean);
    };

    const read = async (arrives) => {
      const { protocol, a, at, found, why } = state;
      if (at < 0) {
        reading.replaceChildren(el("p", { class: "note" }, why ? "Choose a dialogue from the list." : found.length ? "" : "No dialogue is like that."));
        reader.classList.add("open");
        beside.replaceChildren();
        return;
      }
      const content = await contentOf(at);
      if (!content) return;
      const p = index.about.indexOf(protocol);
      const all = content.verdicts.filter((each) => each.protocol === p && each.contestants[0] === a);
      const given = all.find(({ judge }) => judge === about.judge);
      const verdict = judgedBy(about.judge, protocol, a, at);
      const firstAi = namesPlace(protocol) ? Math.max(verdict.place || 0, 0) : 0;
      reading.replaceChildren(heading(content, given, verdict, firstAi), ...dialogueParts(content, all, firstAi).filter(Boolean));
      beside.replaceChildren(...aside(content, given));
      if (!arrives) return;
      reader.classList.remove("open");
      const from = document.activeElement;
      if (from === document.body || list.contains(from)) reading.querySelector("h3").focus({ preventScroll: true });
      position();
    };

    // To the utterance that the address names, or the first AI utterance.
    const position = () => {
      const last = reading.querySelectorAll(".rail > *").length;
      const wanted = Number(state.asked) || 0;
      if (wanted > last) wrongLink(`This dialogue has no utterance ${wanted}.`);
      const target = wanted <= last ? wanted || Number(reading.querySelector(".rail > .first-ai")?.dataset.to) : 0;
      if (target) lookAt(target);
      else view.scrollIntoView({ block: "start" });
    };

    const searchAll = async () => {
      if (isLoading) return;
      isLoading = true;
      for (let at = 0; at < index.seeds.length; at += 1) {
        texts.set(at, await seed(index, at));
        if (at % index.per_chunk === 0) count.textContent = `searching ${at} of ${index.seeds.length}`;
      }
      settle();
    };

    const controls = () => {
      const { protocol, a, show, q } = state;
      protocols.value = protocol.name;
      who.value = index.contestants[a] ?? "";
      const [way, number] = show.split("-");
      offer(filter, [...filters(protocol), ...(way === "at" ? [[show, `AI from utterance ${number} on`]] : [])], show);
      if (search.value !== q) search.value = q;
    };

    const settle = () => {
      if (view.hidden) return;
      const isFirst = !state.protocol;
      state = resolve();
      if (state.q && isFirst) searchAll().catch(failed(list)); // a link means all of it
      controls();
      if (state.why) wrongLink(state.why);
      else if (state.at >= 0 && completed({ view: state.protocol.name, a: index.contestants[state.a], seed: index.seeds[state.at].id })) return;
      const listing = [state.protocol.name, state.a, state.show, state.q, texts.size].join("|");
      const isNew = listing !== drawn.list;
      if (isNew) {
        limit = PAGE;
        rows();
      }
      reveal();
      const shown = [state.protocol.name, state.a, state.at].join("|");
      const arrives = shown !== drawn.read;
      const moves = state.asked !== drawn.at;
      drawn = { list: listing, read: shown, at: state.asked };
      if (arrives || isNew || state.at < 0) read(arrives).catch(failed(reading));
      else if (moves) position();
    };

    // What is read stays, where it was judged and is in the new list.
    protocols.addEventListener("change", () => {
      const keeps = judgedBy(about.judge, byProtocol.get(protocols.value), state.a, state.at).kind !== "none";
      address.set({ view: protocols.value, show: "", at: "", ...(keeps ? {} : { seed: "" }) });
    });
    who.addEventListener("change", () => address.set({ a: who.value, at: "", seed: "" }));
    filter.addEventListener("change", () => {
      const keeps = listed({ ...state, show: filter.value }).found.some(isRead);
      address.set({ show: filter.value, at: "", ...(keeps ? {} : { seed: "" }) });
    });
    search.addEventListener("input", () => {
      address.set({ q: search.value });
      if (search.value.length > 2) searchAll().catch(failed(list));
    });
    reading.addEventListener("click", ({ target }) => {
      if (target.closest(".reason")) target.closest(".reason").classList.toggle("whole");
      // Again to the first AI utterance, though the address stays.
      const badge = target.closest("a.stamp");
      if (badge && badge.hash === location.hash) lookAt(Number(new URLSearchParams(badge.hash.slice(1)).get("at")));
    });

    const help = keys(view, [
      [["j", "k"], "next, previous utterance", (key) => move(key === "j" ? 1 : -1)],
      [["n", "p"], "next, previous dialogue", (key) => go(key === "n" ? 1 : -1)],
      [["a"], "next dialogue called AI", () => go(1, ({ kind }) => kind === "lose")],
      [["d"], "the talk of a panel", () => {
        const remarks = beside.querySelector(".talk");
        if (remarks) remarks.open = !remarks.open;
      }],
    ]);
    place.replaceChildren(reader);
    address.changed(settle);
    settle();
  };

  begin("reader", start);
})();
