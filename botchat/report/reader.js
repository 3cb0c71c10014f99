// One dialogue with its verdicts: a list with search and filters beside what is read. Opens at the
// accused utterance. The state is the address; the controls only write it.
(() => {
  const { about, address, button, choice, chosen, el, link, wrongLink, named, offer, seed } = botchat;
  const { acts, begin, called, completed, failed, inOrder, keys, marked, reported, scored, stamp, talk, utterance, words } = botchat.dialogues;
  const PAGE = 120;

  // Points that are lost; a panel's mean has decimals.
  const points = (lost) => `−${Math.round(10 * lost) / 10}`;

  // A verdict as `_code` of botchat.report.archive has it: its kind, in words, numbers to sort by.
  const told = (protocol, code) => {
    if (code === null || code === undefined || code === -2) return { kind: "none", said: "not judged", full: "Not judged" };
    if (code === -1 || code.length === 0) return { kind: "none", unread: true, said: "unreadable", full: "No readable verdict" };
    if (protocol.kind === "score") return { kind: "score", said: scored(protocol, code), full: scored(protocol, code), numbers: code };
    if (protocol.kind === "report") {
      return { kind: code[0] ? "lose" : "win", said: code[0] ? points(-code[0]) : "no errors", full: `${protocol.name} ${code[0]}`, numbers: code };
    }
    const { brief, full } = words(protocol);
    return { kind: code ? "lose" : "win", said: brief(code), full: full(code), place: code };
  };

  const start = ({ place, view, index, byName, bySeed, content: seedOf }) => {
    const singles = index.about.filter(({ shows }) => shows === "one");
    const byProtocol = new Map(singles.map((protocol) => [protocol.name, protocol]));
    const reports = singles.filter(({ kind }) => kind === "report").map(({ name }) => name);
    const texts = new Map();
    let state = {};
    let limit = PAGE;
    let found = [];
    let drawn = { list: "", read: "", at: "" };
    let isLoading = false;

    const views = choice("What to read", singles.map(({ name, title }) => [name, title]));
    const [who, filter] = ["Contestant", "Verdict"].map((label) => choice(label));
    const search = el("input", { type: "search", placeholder: "Search", "aria-label": "Search ids and texts" });
    const everywhere = button("Search all utterances", () => searchAll().catch(failed(list)));
    const count = el("output", { class: "count", "aria-live": "polite" });
    const list = el("ul", { class: "cases", "aria-label": "Dialogues" });
    const more = button("Show more", () => {
      limit += PAGE;
      rows();
      reveal();
    }, { class: "more" });
    const listing = el("div", { class: "listing" }, list, more);
    const reading = el("article", { class: "reading", "aria-live": "off" });
    const beside = el("aside", { class: "beside-reading" });
    const reader = el("div", { class: "reader" },
      el("div", { class: "finder" }, el("div", { class: "tools" }, view.querySelector(".switch"), singles.length > 1 ? views : null, who, filter, search, everywhere, count), listing), reading, beside);

    // What a list can be narrowed to; "up-0" and "down-0" put it into the order of the first number.
    const filters = (protocol) => {
      const isDiagnosed = protocol.kind !== "report" && index.single.some((by) => reports.some((name) => Object.hasOwn(by, name)));
      return [
        ["", "All verdicts"],
        ...{
          place: () => (protocol.about_ai ? [["lose", "Accused"], ["win", "Taken for human"]] : [["lose", "Found"], ["win", "Nothing found"]]),
          score: () => protocol.numbers.flatMap((name, i) => [[`down-${i}`, `${name}: highest first`], [`up-${i}`, `${name}: lowest first`]]),
          report: () => [["lose", "With errors"], ["win", "Without errors"], ["up-0", "Most points lost first"]],
        }[protocol.kind](),
        ["none", "Unreadable or not judged"],
        ...(isDiagnosed ? [["diagnosed", "Diagnosed errors"]] : []),
      ];
    };

    const codeOf = (judge, name, a, at) => {
      const row = ((index.single[judge] || {})[name] || {})[a];
      return row ? row[at] : null;
    };

    // Whose dialogues are listed: one contestant's, or those of a group that a number is of.
    const groups = { all: ["everybody", () => true], bots: ["all scripts", (name) => name.startsWith("bot:")], machines: ["all machines", (name, i) => i !== index.human] };
    const group = (of) => [...index.contestants.keys()].filter((i) => groups[of][1](index.contestants[i], i));

    const item = ({ protocol }, a, at) => {
      if (!index.there[a][at]) return null;
      const lost = (name, judge) => -((codeOf(judge, name, a, at) || [])[0] || 0);
      const all = protocol.kind === "report" ? [] : reports.flatMap((name) => index.judges.map((_, judge) => lost(name, judge)));
      return { a, at, ...told(protocol, codeOf(chosen.judge, protocol.name, a, at)), errors: Math.max(0, ...all) };
    };

    // Where the searched words stand: in the id or the opening (0), or in an utterance; -1: nowhere.
    const hit = ({ term }, { a, at }) => {
      if (!term) return 0;
      if (`${index.seeds[at][0]} ${index.seeds[at][1]}`.toLowerCase().includes(term)) return 0;
      const dialogue = texts.has(at) && texts.get(at).dialogues[a];
      return dialogue ? dialogue.said.findIndex((said) => said.toLowerCase().includes(term)) : -1;
    };

    const listed = (asked) => {
      const [way, number] = asked.show.split("-");
      // Whom a success rate at N counts: accused of nothing before, and long enough at people's own length.
      const until = (at) => (number === "own" ? index.lengths[at] : Number(number));
      const counts = (one) => one.kind !== "none" && (number !== "own" || until(one.at) >= 4);
      const passes = (one) => {
        if (way === "win" && number) return counts(one) && one.place >= 0 && (!one.place || one.place > until(one.at));
        if (number) return Boolean(one.numbers);
        return { "": true, diagnosed: one.errors, unread: one.unread, read: one.kind !== "none" }[asked.show] ?? one.kind === asked.show;
      };
      const whole = asked.group.flatMap((a) => index.seeds.map((_, at) => item(asked, a, at))).filter(Boolean);
      asked.whole = ["win", "lose"].includes(way) ? whole.filter(counts).length : whole.length;
      const here = whole.filter(passes).map((one) => ({ ...one, hit: hit(asked, one) })).filter((one) => one.hit >= 0);
      const sign = way === "up" ? 1 : -1;
      return number && way !== "win" ? here.sort((x, y) => sign * (x.numbers[number] - y.numbers[number])) : here;
    };

    // The state that the address asks for, or why there is none.
    const resolve = () => {
      const asked = botchat.hash();
      const protocol = byProtocol.get(asked.view) || byProtocol.get(about.view);
      const order = inOrder(index);
      const of = Object.hasOwn(groups, asked.of || "") ? asked.of : "";
      const a = asked.a ? byName.get(asked.a) : of ? group(of)[0] : byName.get(about.first) ?? order[0];
      const show = asked.show || "";
      const next = { protocol, a, of, group: of ? group(of) : [a], show: "", order, q: asked.q || "", term: (asked.q || "").toLowerCase(), at: -1 };
      if (a === undefined) return { ...next, why: `No contestant ${asked.a} is on this page.` };
      const known = /^(read|unread|win-(own|\d+))$/.test(show) || filters(protocol).some(([value]) => value === show);
      if (!known) next.why = `Dialogues cannot be narrowed to ${show}; all are listed.`;
      else next.show = show;
      next.found = listed(next);
      if (!asked.seed) {
        const one = (!next.show && next.found.find(({ kind }) => kind === "lose")) || next.found[0] || { a, at: -1 };
        Object.assign(next, { a: one.a, at: one.at });
      } else {
        next.at = bySeed.get(asked.seed) ?? -1;
        if (next.at < 0) next.why = `No seed ${asked.seed} is in this set.`;
        else if (!index.there[a][next.at]) Object.assign(next, { at: -1, why: `There is no dialogue of ${asked.a || index.contestants[a]} on ${asked.seed}.` });
      }
      next.utterance = Number(asked.at) || 0;
      next.asked = asked.at || "";
      return next;
    };

    const to = ({ a, at }, others = {}) =>
      link({ view: state.protocol.name, a: index.contestants[a], seed: index.seeds[at][0], ...chosen.part, of: state.of, show: state.show, q: state.q, ...others });
    const isRead = ({ a, at }) => a === state.a && at === state.at;

    // An opening, or the words around a hit further on.
    const excerpt = (one) => {
      const { term } = state;
      const opening = index.seeds[one.at][1];
      if (!one.hit && (!term || opening.toLowerCase().includes(term) || !texts.has(one.at))) return marked(opening, term);
      const said = texts.get(one.at).dialogues[one.a].said[one.hit];
      const from = Math.max(0, said.toLowerCase().indexOf(term) - 24);
      return [el("b", null, `${one.hit + 1} `), from ? "…" : "", ...marked(said.slice(from, from + 120), term)];
    };

    const rows = () => {
      count.textContent = `${found.length.toLocaleString("en")} of ${(state.whole || 0).toLocaleString("en")}`;
      list.replaceChildren(
        ...found.slice(0, limit).map((one) =>
          el(
            "li",
            null,
            el(
              "a",
              { href: to(one), "data-a": one.a, "data-at": one.at },
              el("span", { class: "id" }, el("bdi", null, marked(index.seeds[one.at][0], state.term)), state.of ? [" ", named(called(index, one.a, 24))] : null),
              one.errors ? el("span", { class: "marks", title: "points lost in the diagnosis" }, points(one.errors)) : null,
              el("span", { class: `badge ${one.kind}` }, one.said),
              el("span", { class: "opening", dir: "auto" }, excerpt(one)),
            ),
          ),
        ),
      );
      more.hidden = found.length <= limit;
    };

    // What is read stands in the list where the list can be seen.
    const reveal = () => {
      const place = found.findIndex(isRead);
      if (place >= limit) {
        limit = place + PAGE;
        rows();
      }
      for (const old of list.querySelectorAll("[aria-current]")) old.removeAttribute("aria-current");
      const current = list.querySelector(`[data-a="${state.a}"][data-at="${state.at}"]`);
      if (!current) return;
      current.setAttribute("aria-current", "true");
      const above = current.offsetTop - listing.scrollTop;
      if (above < 0 || above > listing.clientHeight - current.offsetHeight) {
        listing.scrollTop = current.offsetTop - listing.clientHeight / 3;
      }
    };

    const head = () => reading.querySelector(".head");

    // Into the middle of what the head leaves free; a long utterance begins right under the head.
    const lookAt = (at) => {
      for (const one of reading.querySelectorAll(".now")) one.classList.remove("now");
      reading.querySelector(`.rail [data-to="${at}"]`)?.classList.add("now");
      const one = reading.querySelector(`.chat > [data-at="${at}"]`);
      if (!one) return;
      one.classList.add("now");
      const covered = head().getBoundingClientRect().height + (parseFloat(getComputedStyle(head()).top) || 0);
      const { top, height } = one.getBoundingClientRect();
      const room = innerHeight - covered;
      scrollBy({ top: top - covered - (height < room - 24 ? (room - height) / 2 : 12), behavior: "instant" });
    };

    const go = (by, wanted = () => true) => {
      const here = found.findIndex(isRead);
      const rest = by > 0 ? found.slice(here + 1) : found.slice(0, Math.max(here, 0)).reverse();
      const next = rest.find(wanted);
      if (next) address.set({ a: index.contestants[next.a], seed: index.seeds[next.at][0], at: "" }, true);
    };
    const move = (by) => {
      const last = reading.querySelectorAll(".chat:not(.people) > [data-at]").length;
      const now = Number(reading.querySelector(".chat > .now")?.dataset.at) || (by > 0 ? 0 : 2);
      if (last) address.set({ at: String(Math.min(last, Math.max(1, now + by))) });
    };

    const heading = (content, row, one, last) => {
      const { protocol, a, at } = state;
      const open = button("List", () => {
        reader.classList.toggle("open");
        reader.scrollIntoView({ block: "start" });
        reveal();
      }, { class: "to-list" });
      const name = named(called(index, a));
      if (a === index.human) name.className = "people";
      const accused = Math.max(one.place || 0, 0);
      const alsoReported = reported(index, content, a, protocol.kind === "report" ? protocol.name : "").scores
        .filter(([judge]) => protocol.kind !== "report" || judge !== chosen.judge)
        .map(([judge, by, score]) => [" · ", score === null ? `${by} unreadable` : `${by} ${score}`, judge === chosen.judge ? null : [" by ", named(index.judges[judge])]]);
      const why = row && row[4] ? el("p", { class: "reason", dir: "auto" }, row[4]) : null;
      const rail = el("div", { class: "rail", role: "group", "aria-label": "Utterances" });
      for (let k = 1; k <= last; k += 1) {
        const kind = [k <= 2 || a === index.human ? "seed" : "", accused && k === accused ? "accused" : "", accused && k > accused ? "after" : ""].join(" ");
        const said = `Utterance ${k}${k === accused ? `, ${words(protocol).verb}` : ""}`;
        rail.append(button("", () => address.set({ at: String(k) }), { class: kind, "data-to": k, title: `Utterance ${k}`, "aria-label": said }));
      }
      if (why) {
        why.addEventListener("click", () => why.classList.toggle("whole"));
        why.title = row[4].length > 160 ? "Click for all of it" : "";
      }
      return el(
        "header",
        { class: "head" },
        el("div", { class: "line" },
          el("h3", { tabindex: "-1", "aria-level": 2 }, name, " · ", named(index.seeds[at][0])),
          el("span", { class: "acts" }, acts("dialogue", go, help, open))),
        el("p", { class: "verdict" }, stamp(one.kind, one.full, accused ? { href: to(state, { at: accused }), title: "To this utterance" } : {}),
          " by ", named(index.judges[chosen.judge]), alsoReported.flat(2)),
        why,
        rail,
      );
    };

    const chat = (content, row, rows, accused) => {
      const { protocol, a, at, term } = state;
      const dialogue = content.dialogues[a];
      const isHuman = a === index.human;
      const others = {};
      for (const other of rows) {
        if (protocol.kind === "place" && other !== row && other[3] && other[3] !== "No") {
          (others[other[3]] = others[other[3]] || []).push(index.judges[other[0]]);
        }
      }
      const diagnosis = reported(index, content, a, protocol.kind === "report" ? protocol.name : "");
      const options = { errors: diagnosis.at, accused, words: words(protocol), others, human: isHuman, term };
      const said = dialogue.said.map((_, i) => utterance(dialogue, i, options));
      const begins = el("li", { class: "part people" }, isHuman ? "two people, to the end" : "two people begin");
      const goesOn = el("li", { class: "part" }, el("span", null, named(index.contestants[a]), " goes on alone"));
      const human = !isHuman && index.human >= 0 ? content.dialogues[index.human] : null;
      const rest = human ? human.said.slice(2).map((_, i) => utterance(human, i + 2, { accused: 0, human: true, words: options.words })) : [];
      return [
        el("ol", { class: "chat" }, begins, said.slice(0, 2), isHuman || said.length < 3 ? null : goesOn, said.slice(2)),
        diagnosis.at[0] ? el("div", { class: "errors" }, el("h4", { "aria-level": 3 }, "Diagnosed without an utterance"), diagnosis.at[0]) : null,
        dialogue.stopped ? el("p", { class: "warning" }, `Stopped early: ${dialogue.stopped}`) : null,
        rest.length
          ? el("details", { class: "went-on" }, el("summary", null, `How people went on (${rest.length} more)`),
            el("ol", { class: "chat people" }, rest),
            el("p", { class: "note" }, el("a", { href: link({ view: protocol.name, a: index.contestants[index.human], seed: index.seeds[at][0], ...chosen.part }) }, "Read it with its verdicts")))
          : null,
      ];
    };

    const aside = (row) => {
      const { protocol, a, at } = state;
      const judges = index.judges.map((judge, i) => {
        const one = told(protocol, codeOf(i, protocol.name, a, at));
        const address = link({ view: protocol.name, a: index.contestants[a], seed: index.seeds[at][0], judge: i ? judge : "", show: state.show, q: state.q });
        return el("tr", null,
          el("th", { scope: "row" }, el("a", { href: address, "aria-current": i === chosen.judge ? "true" : null }, named(judge))),
          el("td", { class: one.kind }, protocol.kind === "place" && one.place !== undefined ? one.full : one.said));
      });
      const truth = el("tr", { class: "people" }, el("th", { scope: "row" }, "truth"), el("td", null, a === index.human ? about.invented ? "written for the demo, not by people" : "people wrote all of it" : index.human < 0 ? "not known" : "machine from utterance 3 on"));
      const remarks = row ? talk(protocol, row).filter(Boolean) : [];
      return [
        el("h4", { "aria-level": 3 }, "Every judge on this dialogue"),
        el("table", { class: "judges" }, el("tbody", null, judges, protocol.about_ai ? truth : null)),
        remarks.length ? el("h4", { "aria-level": 3 }, row[8] && row[8].length > 1 ? "The panel’s talk" : "The call") : null,
        ...remarks,
      ].filter(Boolean);
    };

    const read = async (arrives) => {
      const { protocol, a, at } = state;
      if (at < 0) {
        const said = state.why ? "Choose a dialogue from the list." : found.length ? "" : "No dialogue is like that.";
        reading.replaceChildren(el("p", { class: "note" }, said));
        reader.classList.add("open");
        beside.replaceChildren();
        return;
      }
      const content = await seedOf(at);
      if (!content) return;
      const p = index.about.indexOf(protocol);
      const rows = content.verdicts.filter((row) => row[1] === p && row[2][0] === a);
      const row = rows.find((each) => each[0] === chosen.judge);
      const one = told(protocol, codeOf(chosen.judge, protocol.name, a, at));
      const last = content.dialogues[a].said.length;
      const accused = protocol.kind === "place" ? Math.max(one.place || 0, 0) : 0;
      reading.replaceChildren(heading(content, row, one, last), ...chat(content, row, rows, accused).filter(Boolean));
      beside.replaceChildren(...aside(row));
      if (!arrives) return;
      reader.classList.remove("open");
      const from = document.activeElement;
      if (from === document.body || list.contains(from)) reading.querySelector("h3").focus({ preventScroll: true });
      position();
    };

    // To the utterance that the address names, or the accused one.
    const position = () => {
      const last = reading.querySelectorAll(".rail > *").length;
      if (state.utterance > last) wrongLink(`This dialogue has no utterance ${state.utterance}.`);
      const accused = Number(reading.querySelector(".rail > .accused")?.dataset.to);
      const target = state.utterance <= last ? state.utterance || accused : 0;
      if (target) lookAt(target);
      else view.scrollIntoView({ block: "start" });
    };

    const searchAll = async () => {
      if (isLoading) return;
      isLoading = true;
      everywhere.disabled = true;
      for (let at = 0; at < index.seeds.length; at += 1) {
        texts.set(at, await seed(index, at));
        if (at % index.per_chunk === 0) everywhere.textContent = `Loading ${at} of ${index.seeds.length}`;
      }
      everywhere.textContent = "Searching all utterances";
      settle();
    };

    const controls = () => {
      views.value = state.protocol.name;
      const many = Object.entries(groups).filter(([of]) => group(of).length > 1);
      const names = state.order.map((i) => [index.contestants[i], called(index, i)]);
      offer(who, [...names, ...many.map(([of, [label]]) => [`of=${of}`, label])], state.of ? `of=${state.of}` : index.contestants[state.a] ?? "");
      const listed = filters(state.protocol);
      if (state.show && !listed.some(([value]) => value === state.show)) listed.push([state.show, { read: "Readable", unread: "Unreadable" }[state.show] || `Human up to ${state.show === "win-own" ? "people’s length" : state.show.slice(4)}`]);
      offer(filter, listed, state.show);
      if (search.value !== state.q) search.value = state.q;
    };

    const settle = () => {
      if (view.hidden) return;
      state = resolve();
      found = state.found || [];
      if (state.q && search.value !== state.q) searchAll().catch(failed(list)); // a link means all of it
      controls();
      if (state.why) wrongLink(state.why);
      else if (state.at >= 0 && completed({ view: state.protocol.name, a: index.contestants[state.a], seed: index.seeds[state.at][0] })) return;
      const listing = [chosen.judge, state.protocol.name, state.of || state.a, state.show, state.q, texts.size].join("|");
      const isNew = listing !== drawn.list;
      if (isNew) {
        limit = PAGE;
        rows();
      }
      reveal();
      const shown = [chosen.judge, state.protocol.name, state.a, state.at].join("|");
      const arrives = shown !== drawn.read;
      const moves = state.asked !== drawn.at;
      drawn = { list: listing, read: shown, at: state.asked };
      if (arrives || isNew || state.at < 0) read(arrives).catch(failed(reading));
      else if (moves) position();
    };

    for (const [control, key] of [[views, "view"], [who, "a"], [filter, "show"]]) {
      control.addEventListener("change", () => {
        // What is read stays where it is in the new list and was judged.
        const next = { ...state, [key]: control.value };
        if (key === "view") Object.assign(next, { protocol: byProtocol.get(control.value), show: "" });
        if (key === "a") next.of = control.value.startsWith("of=") ? control.value.slice(3) : "";
        if (key === "a") next.a = next.of ? undefined : byName.get(control.value);
        const keeps = key !== "a" && listed(next).some((one) => isRead(one) && (key !== "view" || one.kind !== "none"));
        address.set({
          view: next.protocol.name, a: index.contestants[next.a], of: next.of, show: next.show, at: "", ...(keeps ? {} : { seed: "" }),
        });
      });
    }
    search.addEventListener("input", () => address.set({ q: search.value }));
    // Again to the accused utterance, though the address stays.
    reading.addEventListener("click", (event) => {
      const badge = event.target.closest("a.stamp");
      if (badge && badge.hash === location.hash) lookAt(Number(new URLSearchParams(badge.hash.slice(1)).get("at")));
    });

    const fold = () => {
      const remarks = beside.querySelector(".talk");
      if (remarks) remarks.open = !remarks.open;
    };
    const help = keys(view, [
      [["j", "k"], "next, previous utterance", (key) => move(key === "j" ? 1 : -1)],
      [["n", "p"], "next, previous dialogue", (key) => go(key === "n" ? 1 : -1)],
      [["a"], "next dialogue that is accused", () => go(1, ({ kind }) => kind === "lose")],
      [["d"], "the talk of a panel", fold],
    ]);
    place.replaceChildren(reader);
    address.changed(settle);
    settle();
  };

  if (about.folder) begin(document.getElementById("reader"), start);
})();
