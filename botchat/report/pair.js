// Compare two: every model against every other, and two contestants seed by seed, with the verdicts
// of both orders and the two dialogues side by side.
(() => {
  const { about, address, button, choice, el, link, wrongLink, named, offer, outcome } = botchat;
  const { acts, annotators, begin, calls, compared, completed, failed, inOrder, isWrong, keys, nameOf, short, stamp, talk, utterance } = botchat.dialogues;
  const FEWEST = 20; // seeds below which nobody is called ahead

  const MIRRORED = { win: "lose", lose: "win" };
  const percent = (share) => Math.round(100 * share);
  const isClear = (score) => score.seeds >= FEWEST && (score.low > 0.5 || score.high < 0.5);

  const start = ({ place, view, index, byName, bySeed, contentOf }) => {
    const byProtocol = new Map(index.about.filter(({ shows }) => shows !== "one").map((protocol) => [protocol.name, protocol]));
    const isBeside = (name) => byProtocol.get(name)?.shows === "human";
    const node = (i) => () => nameOf(index, i);
    const name = (i) => short(index.contestants[i], 34);
    const order = inOrder(index);
    const models = order.filter((i) => i !== index.human);
    let state = {};
    let drawn = "";

    const [protocols, left, right, show] = ["Protocol", "Left", "Right", "Which seeds"].map((label) => choice(label));
    const board = el("details", { class: "everybody", open: !matchMedia("(max-width: 900px)").matches });
    const duel = el("div", { class: "duel", "aria-live": "off" });

    const scoresOf = (protocol) => index.judges[about.judge]?.scores[protocol] || {};
    const judged = (beside) => {
      const all = [...byProtocol.keys()].filter((protocol) => isBeside(protocol) === beside);
      return all.find((protocol) => Object.keys(scoresOf(protocol)).length) || all[0] || "";
    };

    // The score of a against b with its interval; nothing where no verdict can be read.
    const scoreOf = (protocol, a, b) => {
      const found = scoresOf(protocol)[a < b ? `${a},${b}` : `${b},${a}`];
      if (!found) return null;
      if (a < b) return found;
      const { score, low, high, won, tied, lost, seeds } = found;
      return { score: 1 - score, low: 1 - high, high: 1 - low, won: lost, tied, lost: won, seeds };
    };

    // Which protocol two contestants are compared in: human dialogues have their own.
    const between = (a, b) => (a === index.human || b === index.human ? state.beside : state.pair);

    const to = (protocol, a, b, more = {}) => link({ view: "pair", protocol, a: index.contestants[a], b: index.contestants[b], ...more });

    // A judge's verdicts of both orders, by seed, for the left one.
    const verdictsOf = (judge, protocol, a, b) => {
      const known = index.judges[judge]?.pairs[protocol] || {};
      const [first, second] = [known[`${a},${b}`] || "", known[`${b},${a}`] || ""];
      const read = (letter) => outcome(letter ?? "-");
      return index.seeds.map((_, at) => {
        const mirrored = read(second[at]);
        return [read(first[at]), MIRRORED[mirrored] || mirrored];
      });
    };
    const casesOf = (protocol, a, b) => {
      const labels = annotators(index).map((judge) => verdictsOf(judge, protocol, a, b));
      return verdictsOf(about.judge, protocol, a, b)
        .map(([first, second], at) => ({
          at,
          verdicts: [first, second],
          split: Boolean(first && second && first !== second && first !== "none" && second !== "none"),
          wrong: [first, second].some((verdict, i) => isWrong(verdict, labels.map((each) => each[at][i]))),
        }))
        .filter(({ verdicts }) => verdicts.some(Boolean));
    };
    const SHOWS = { "": () => true, split: ({ split }) => split, wrong: ({ wrong }) => wrong };
    for (const kind of ["win", "lose", "tie", "none"]) SHOWS[kind] = ({ verdicts }) => verdicts.includes(kind);

    // The state that the address asks for, or why there is none.
    const resolve = () => {
      const asked = address.all();
      const wanted = asked.protocol || (byProtocol.has(asked.view) ? asked.view : "");
      const next = { pair: state.pair || judged(false), beside: state.beside || judged(true) };
      if (wanted && !byProtocol.has(wanted)) return { ...next, why: `No protocol ${wanted} compares dialogues on this page.` };
      const isHuman = [asked.a, asked.b].some((each) => each && byName.get(each) === index.human);
      const protocol = wanted || (isHuman || !next.pair ? next.beside : next.pair);
      if (!protocol) return { ...next, why: "Nothing on this page compares dialogues." };
      next[isBeside(protocol) ? "beside" : "pair"] = protocol;
      for (const each of [asked.a, asked.b]) {
        if (each && !byName.has(each)) return { ...next, protocol, why: `No contestant ${each} is on this page.` };
      }
      const shown = asked.show || "";
      if (!Object.hasOwn(SHOWS, shown)) return { ...next, why: `Seeds cannot be narrowed to ${shown}.` };
      const first = models.find((i) => order.some((j) => scoreOf(protocol, i, j))) ?? models[0];
      const a = asked.a ? byName.get(asked.a) : first;
      const nearest = () => {
        const apart = (i) => Math.abs(models.indexOf(i) - models.indexOf(a));
        const others = models.filter((i) => i !== a).sort((x, y) => apart(x) - apart(y));
        return others.find((i) => scoreOf(protocol, a, i)) ?? others[0];
      };
      const b = asked.b ? byName.get(asked.b) : !isBeside(protocol) ? nearest() : a === index.human ? first : index.human;
      Object.assign(next, { protocol, a, b });
      if (a === undefined || b === undefined || a < 0 || b < 0) return { ...next, why: "There are no two to compare." };
      if (a === b) return { ...next, why: `${index.contestants[a]} cannot be compared with itself.` };
      if (isBeside(protocol) !== (a === index.human || b === index.human)) {
        return { ...next, why: `${protocol} compares ${isBeside(protocol) ? "a model with the human" : "two models"}; ${index.contestants[a]} and ${index.contestants[b]} are not in it.` };
      }
      const cases = casesOf(protocol, a, b);
      const found = cases.filter(SHOWS[shown]);
      Object.assign(next, { shown, cases, found });
      if (asked.seed && !bySeed.has(asked.seed)) return { ...next, why: `No seed ${asked.seed} is in this set.` };
      const isDecided = ({ verdicts: [x, y] }) => x === y && (x === "win" || x === "lose"); // the same in both orders
      const begin = found.find(isDecided) || found[0];
      return { ...next, at: asked.seed ? bySeed.get(asked.seed) : begin ? begin.at : -1 };
    };

    const matrix = () => {
      const size = models.length > 20 ? "small" : models.length > 12 ? "middle" : "large";
      const cell = (a, b) => {
        const found = a === b ? null : scoreOf(between(a, b), a, b);
        if (!found) return el("td", null);
        const { score, low, high, won, tied, lost, seeds } = found;
        const few = seeds < FEWEST ? `, only ${seeds} seeds` : "";
        const title = `${name(a)} against ${name(b)}: ${percent(score)} %, 95 % interval ${percent(low)} to ${percent(high)}${few}; ${won} won, ${tied} tied, ${lost} lost`;
        const mix = score > 0.5 ? 63 + 64 * (score - 0.5) : 5 + 62 * score;
        const clear = isClear(found);
        return el("td", null,
          el("a", { href: to(between(a, b), a, b), title, tabindex: -1, class: clear ? (score > 0.5 ? "ahead" : "behind") : "open", style: clear ? `--mix:${Math.round(mix)}%` : null, "data-pair": `${a},${b}` },
            el("span", { class: size === "small" ? "hidden" : null }, String(percent(score)))));
      };
      const head = (i, scope) => el("th", { scope, "data-row": scope === "row" ? i : null }, nameOf(index, i, 22));
      const table = el("table", { class: "matrix", "data-size": size },
        el("caption", { class: "hidden" }, "Score of each row against each column"),
        el("thead", null, el("tr", null, el("td"), models.map((i) => head(i, "col")))),
        el("tbody", null, models.map((a) => el("tr", null, head(a, "row"), models.map((b) => cell(a, b))))));
      // One stop for the Tab key; arrows go from cell to cell.
      table.addEventListener("keydown", (event) => {
        const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
        const from = event.target.closest("td");
        if (!step || !from) return;
        event.preventDefault();
        let [row, column] = [from.parentElement.rowIndex, from.cellIndex];
        do [row, column] = [row + step[0], column + step[1]];
        while (table.rows[row]?.cells[column] && !table.rows[row].cells[column].querySelector("a"));
        table.rows[row]?.cells[column]?.querySelector("a")?.focus();
      });
      board.replaceChildren(
        el("summary", null, "Everybody against everybody"),
        el("div", { class: "all" }, el("div", { class: "sideways" }, table), el("p", { class: "note" },
          "Row against column; a win is 1, a tie ½. Strong: the row is clearly ahead; faint: clearly behind. ",
          `${size === "small" ? "Ring" : "Outlined"}: the 95 % interval contains 50 %, or fewer than ${FEWEST} seeds.`)));
    };

    const mark = () => {
      for (const anchor of board.querySelectorAll("[aria-current]")) {
        anchor.removeAttribute("aria-current");
        anchor.tabIndex = -1;
      }
      const now = board.querySelector(`[data-pair="${state.a},${state.b}"]`);
      now?.setAttribute("aria-current", "true");
      const stop = now || board.querySelector("[data-pair]");
      if (stop) stop.tabIndex = 0;
    };

    // The two names, the score between them, and a sentence.
    const heading = () => {
      const { a, b, protocol } = state;
      const found = scoreOf(protocol, a, b);
      const side = (i) => el("span", { class: "side" }, nameOf(index, i));
      // The score is rounded once, so that the two sides make 100.
      const score = found ? `${percent(found.score)} : ${100 - percent(found.score)}` : "–";
      const parts = [el("h3", { tabindex: "-1", "aria-level": 2 }, side(a), el("span", { class: "score" }, score), side(b))];
      if (!found) return [...parts, el("p", { class: "note" }, named(index.judges[about.judge].name), " has not judged this.")];
      const { low, high, won, tied, lost, seeds } = found;
      const claim = isClear(found)
        ? [nameOf(index, found.score > 0.5 ? a : b), " is clearly ahead."]
        : seeds < FEWEST ? "too few seeds to say who is ahead." : "the judge cannot tell them apart.";
      // Nearer to the one who is ahead.
      const [at, from, width] = [1 - found.score, 1 - high, high - low].map((part) => `${100 * part}%`);
      return [
        ...parts,
        el("span", { class: "balance", role: "img", "aria-label": `95 % interval of the left one: ${percent(low)} to ${percent(high)} %` },
          el("i", { style: `left:${from};width:${width}` }), el("s"), el("b", { style: `left:${at}` })),
        el("p", { class: "note" }, `${won} won, ${tied} tied, ${lost} lost of ${won + tied + lost} comparisons on ${seeds} ${seeds === 1 ? "seed" : "seeds"}; 95 % interval ${percent(low)} to ${percent(high)} %; `, claim),
      ];
    };

    const boxes = () => {
      const { a, b, cases, found, protocol } = state;
      const open = new Set(found.map(({ at }) => at));
      const brief = (verdict) => ({ win: name(a), lose: name(b), tie: "tie", none: "unreadable" })[verdict] || "not judged";
      const each = cases.map(({ at, verdicts, split }) => {
        const { id } = index.seeds[at];
        const title = `${id}: ${name(a)} first: ${brief(verdicts[0])}; ${name(b)} first: ${brief(verdicts[1])}${split ? "; contradicts itself" : ""}`;
        return el("a", { href: to(protocol, a, b, { seed: id, show: state.shown }), title, "aria-label": title, class: open.has(at) ? null : "dim", "data-at": at, tabindex: -1 },
          verdicts.map((verdict) => el("i", { class: verdict || "absent" })));
      });
      const n = cases.filter(({ split }) => split).length;
      return [
        el("div", { class: cases.length > 120 ? "boxes many" : "boxes", role: "group", "aria-label": "Seeds" }, each),
        el("p", { class: "note" }, "One box a seed, one half an order. Filled: left wins; outlined: right wins; faint: tie; dashed: unreadable. ",
          n ? el("b", null, n === 1 ? "1 contradicts itself." : `${n} contradict themselves.`) : "None contradicts itself."),
      ];
    };

    const step = (by, wanted = () => true) => {
      const { found = [], at } = state;
      const ahead = found.filter(wanted).filter((each) => (by > 0 ? each.at > at : each.at < at));
      const next = by > 0 ? ahead[0] : ahead.at(-1);
      if (next) address.set({ seed: index.seeds[next.at].id });
    };

    // Names in the judge's words instead of the places in which it saw them.
    const reasonOf = ({ reason, contestants }) =>
      reason.split(/\b((?:conversation|dialogue) [12])\b/gi).map((part, i) => (i % 2 ? el("b", { title: part }, nameOf(index, contestants[Number(part.slice(-1)) - 1], 24)) : part));

    const rulings = (content) => {
      const { a, b, at, protocol } = state;
      const asked = byProtocol.get(protocol);
      const p = index.about.indexOf(asked);
      const verdicts = content.verdicts.filter(({ protocol: of, contestants }) => of === p && contestants.includes(a) && contestants.includes(b));
      const inWords = ({ verdict, contestants }) => compared(asked, verdict, contestants.map(node));
      const verdictOf = (judge, first) => verdicts.find((each) => each.judge === judge && each.contestants[0] === first);
      const lines = [a, b].map((first) => {
        const given = verdictOf(about.judge, first);
        return el("div", { class: "ruling" },
          el("p", { class: "shown" }, nameOf(index, first), " first"),
          el("p", { class: "said" }, given ? el("b", null, inWords(given)) : "not judged"),
          el("div", { class: "because" },
            given?.reason ? el("p", { class: "reason", dir: "auto" }, reasonOf(given)) : null,
            given ? talk(asked, given, given.contestants.map(node)) : null,
            calls(index, content, at, given)));
      });
      const others = index.judges.map((judge, who) => {
        const both = [a, b].map((first) => verdictOf(who, first)).filter(Boolean);
        if (who === about.judge || !both.length) return null;
        return el("p", null, named(judge.name), ": ", both.map((each, i) => [i ? "; " : "", nameOf(index, each.contestants[0], 24), " first: ", ...inWords(each)]));
      }).filter(Boolean);
      return [
        el("div", { class: "rulings" },
          el("div", { class: "ruling heads", "aria-hidden": "true" }, el("p", null, "Shown"), el("p", null, "Verdict of ", named(index.judges[about.judge].name)), el("p", null, "Reason")),
          lines),
        state.cases.find((each) => each.at === at)?.split ? el("p", { class: "contradiction" }, stamp("lose", "Contradicts itself"), " The verdict changes with the order.") : null,
        others.length ? el("div", { class: "others" }, others) : null,
        ...sideBySide(content, Math.max(0, ...verdicts.filter(({ judge }) => judge === about.judge).map(({ shown }) => shown)) || asked.n || Infinity),
      ];
    };

    // Both dialogues, utterance by utterance; what the judge did not see is folded.
    const sideBySide = (content, shown) => {
      const { a, b, at } = state;
      const { id } = index.seeds[at];
      const both = [a, b].map((i) => content.dialogues[i]);
      const missing = [a, b].find((_, i) => !both[i]);
      if (missing !== undefined) return [el("p", { class: "note" }, "There is no dialogue of ", nameOf(index, missing), " on ", named(id), ".")];
      const most = Math.max(...both.map(({ utterances }) => utterances.length));
      const part = (from, end) => {
        const columns = [a, b].map((which, i) => {
          const utterances = both[i].utterances.slice(from, end).map((_, k) => utterance(both[i], from + k, { firstAi: 0, human: which === index.human }));
          return el("ol", { class: "dialogue column", style: `grid-row: span ${Math.max(Math.min(most, end) - from, 1)}`, "aria-label": name(which) }, utterances);
        });
        return most > from ? el("div", { class: "columns" }, columns) : null;
      };
      return [
        el("ol", { class: "dialogue shared" }, el("li", { class: "part human" }, el("span", null, named(id), ": two humans begin")), [0, 1].map((i) => utterance(both[0], i, { firstAi: 0 }))),
        el("div", { class: "columns names" }, [a, b].map((i) => el("h4", { "aria-level": 3 }, nameOf(index, i)))),
        part(2, shown),
        both.some(({ stopped }) => stopped) ? el("div", { class: "columns" }, both.map(({ stopped }) => (stopped ? el("p", { class: "warning" }, `Stopped early: ${stopped}`) : el("span")))) : null,
        most > shown ? el("details", { class: "unseen" }, el("summary", null, `Not shown to the judge: from utterance ${shown + 1} on`), part(shown, Infinity)) : null,
      ];
    };

    const read = async () => {
      const { at, found } = state;
      for (const box of duel.querySelectorAll(".boxes a")) {
        const isNow = Number(box.dataset.at) === at;
        box.tabIndex = isNow ? 0 : -1;
        if (isNow) box.setAttribute("aria-current", "true");
        else box.removeAttribute("aria-current");
      }
      const place = duel.querySelector(".case");
      if (at < 0) place.replaceChildren(found.length || !state.shown ? "" : "No seed is like that.");
      const content = at < 0 ? null : await contentOf(at);
      if (content) place.replaceChildren(...rulings(content).filter(Boolean));
    };

    const controls = () => {
      const { a, b, protocol } = state;
      offer(protocols, [...byProtocol.values()].map(({ name: key, title }) => [key, title]), protocol || "");
      offer(left, order.map((i) => [i, name(i)]), a ?? "");
      offer(right, order.filter((i) => i !== a).map((i) => [i, name(i)]), b ?? "");
      const sides = [a, b].map((i) => (i === undefined ? "–" : name(i)));
      const wrong = annotators(index).length ? [["wrong", "Judge wrong"]] : [];
      offer(show, [["", "All seeds"], ["split", "Contradictions"], ...wrong, ["win", `${sides[0]} wins`], ["lose", `${sides[1]} wins`], ["tie", "Ties"], ["none", "Unreadable"]], state.shown || "");
    };

    const settle = () => {
      if (view.hidden) return;
      state = resolve();
      controls();
      const protocolsNow = [state.pair, state.beside].join();
      if (protocolsNow !== drawn) matrix();
      drawn = protocolsNow;
      mark();
      if (!state.cases) {
        wrongLink(state.why);
        duel.replaceChildren(el("p", { class: "note" }, "Choose two to compare."));
        duel.dataset.key = "";
        return;
      }
      const { a, b, protocol, shown, at } = state;
      const key = [protocol, a, b, shown].join();
      if (duel.dataset.key !== key) {
        duel.dataset.key = key;
        const isSplit = ({ split }) => split;
        const next = state.cases.some(isSplit) ? button("Next contradiction", () => step(1, isSplit)) : null;
        const steps = el("p", { class: "steps" }, acts("seed", step, help, [next, el("span", { class: "space" })], () => duel));
        duel.replaceChildren(...heading(), ...(state.cases.length ? boxes() : []), steps, el("div", { class: "case" }));
        if (duel.getBoundingClientRect().top < 0) duel.scrollIntoView({ block: "start" });
      }
      if (state.why) wrongLink(state.why);
      else if (completed({ view: "pair", protocol, a: index.contestants[a], b: index.contestants[b], seed: at < 0 ? "" : index.seeds[at].id })) return;
      read().catch(failed(duel.querySelector(".case")));
    };

    const choose = (a, b) => address.set({ view: "pair", protocol: between(a, b), a: index.contestants[a], b: a === b ? "" : index.contestants[b], seed: "", show: "" }, true);
    left.addEventListener("change", () => choose(Number(left.value), state.b));
    right.addEventListener("change", () => choose(state.a, Number(right.value)));
    show.addEventListener("change", () => address.set({ show: show.value, seed: "" }));
    protocols.addEventListener("change", () => {
      const model = state.a === undefined || state.a === index.human ? models[0] : state.a;
      const rival = isBeside(protocols.value) ? index.human : state.b === index.human ? undefined : state.b;
      address.set({ view: "pair", protocol: protocols.value, a: index.contestants[model], b: index.contestants[rival], seed: "", show: "" }, true);
    });

    const help = keys(view, [
      [["j", "k"], "next, previous seed", (key) => step(key === "j" ? 1 : -1)],
      [["n", "p"], "next, previous contradiction", (key) => step(key === "n" ? 1 : -1, ({ split }) => split)],
    ]);
    place.replaceChildren(
      el("div", { class: "tools" }, left, el("span", { class: "versus" }, "against"), right, protocols, show),
      el("div", { class: "against-all" }, board, duel),
    );
    address.changed(settle);
    settle();
  };

  begin("pairs", start);
})();
