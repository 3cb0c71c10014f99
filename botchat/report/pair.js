// Head to head: everybody against everybody, and two contestants seed by seed, with the verdicts of
// both orders and the two dialogues side by side.
(() => {
  const { address, button, choice, chosen, el, link, wrongLink, named, offer, outcome } = botchat;
  const { acts, begin, called, calledNode, compared, completed, failed, inOrder, keys, stamp, talk, utterance } = botchat.dialogues;
  const FEWEST = 20; // seeds below which nobody is called ahead
  const MOST = 400; // pairs that are listed at once

  const MIRRORED = { win: "lose", lose: "win" };
  const percent = (share) => Math.round(100 * share);
  // A halved score is rounded once, so that the two sides make 100.
  const sides = (score) => `${percent(score)} : ${100 - percent(score)}`;
  const isClear = (told) => told.seeds >= FEWEST && (told.low > 0.5 || told.high < 0.5);

  const start = ({ place, view, index, byName, bySeed, content }) => {
    const byProtocol = new Map(index.about.filter(({ shows }) => shows !== "one").map((one) => [one.name, one]));
    const named2 = (i) => () => calledNode(index, i, 32);
    let state = {};
    let drawn = "";

    const [protocols, one, two, show] = ["Protocol", "Left", "Right", "Which seeds"].map((label) => choice(label));
    const board = el("details", { class: "everybody", open: !matchMedia("(max-width: 900px)").matches });
    const duel = el("div", { class: "duel", "aria-live": "off" });

    const kinds = (which) => [...byProtocol.values()].filter(({ shows }) => (shows === "human") === (which === "human"));
    const scoresOf = (name) => (index.scores[chosen.judge] || {})[name] || {};

    // The score of a against b with its interval; null: nothing readable.
    const told = (name, a, b) => {
      const found = scoresOf(name)[a < b ? `${a},${b}` : `${b},${a}`];
      if (!found) return null;
      const [score, low, high, won, tied, lost, seeds] = found;
      return a < b
        ? { score, low, high, won, tied, lost, seeds }
        : { score: 1 - score, low: 1 - high, high: 1 - low, won: lost, tied, lost: won, seeds };
    };

    // Which protocol two contestants are compared in: people have their own.
    const between = (a, b) => (a === index.human || b === index.human ? state.beside : state.pair) || "";

    const to = (parts) => link({ view: "pair", ...parts, ...chosen.part });
    const toPair = (a, b) => to({ protocol: between(a, b), a: index.contestants[a], b: index.contestants[b] });

    // What each order said of a seed, for the left one.
    const casesOf = (name, a, b) => {
      const known = (index.pairs[chosen.judge] || {})[name] || {};
      const codes = [known[`${a},${b}`] || "", known[`${b},${a}`] || ""];
      const read = (code) => (code === undefined || code === "-" ? null : outcome(code));
      return index.seeds.map((_, at) => {
        const left = read(codes[0][at]);
        const second = read(codes[1][at]);
        const right = MIRRORED[second] || second;
        return { at, left, right, contradicts: Boolean(left && right && left !== right) && left !== "none" && right !== "none" };
      }).filter(({ left, right }) => left || right);
    };

    // What a number counts of a seed: how many of how many verdicts, or of one seed in both orders.
    const said = ({ left, right }) => [left, right].filter(Boolean);
    const readable = (one) => said(one).filter((each) => each !== "none");
    const decided = (one) => readable(one).filter((each) => each !== "tie");
    const share = (of, among, is) => [of(among).filter(is).length, of(among).length];
    const both = (of, one, hits) => (of(one).length === 2 ? hits : [0, 0]);
    const counts = {
      "": [(one) => share(readable, one, Boolean), "readable verdicts"],
      win: [(one) => share(decided, one, (each) => each === "win"), "decided verdicts are for the left one"],
      lose: [(one) => share(decided, one, (each) => each === "lose"), "decided verdicts are for the right one"],
      tie: [(one) => share(readable, one, (each) => each === "tie"), "readable verdicts are ties"],
      decided: [(one) => share(readable, one, (each) => each !== "tie"), "readable verdicts decide"],
      readable: [(one) => share(said, one, (each) => each !== "none"), "verdicts can be read"],
      none: [(one) => share(said, one, (each) => each === "none"), "verdicts cannot be read"],
      same: [(one) => both(decided, one, [Number(one.left === one.right), 1]), "seeds decided in both orders have one winner"],
      split: [(one) => both(readable, one, [Number(one.left !== one.right), 1]), "seeds read in both orders contradict themselves"],
      first: [(one) => both(readable, one, [(one.left === "win") + (one.right === "lose"), decided(one).length]), "decided verdicts on seeds read in both orders are for the one shown first"],
    };
    const shows = (name) => (one) => !name || counts[name][0](one)[0] > 0;
    const summed = (cases, name) => cases.map(counts[name][0]).reduce(([a, b], [x, y]) => [a + x, b + y], [0, 0]);

    // The state that the address asks for, or why there is none.
    const resolve = () => {
      const asked = botchat.hash();
      const order = inOrder(index);
      const name = asked.protocol || (byProtocol.has(asked.view) ? asked.view : "");
      const [pairs, beside] = [kinds("pair"), kinds("human")];
      const judged = (list) => (list.find((each) => Object.keys(scoresOf(each.name)).length) || list[0] || {}).name || "";
      const next = { order, pair: state.pair || judged(pairs), beside: state.beside || judged(beside) };
      if (name && !byProtocol.has(name)) return { ...next, why: `No protocol ${name} compares dialogues on this page.` };
      const isPeople = [asked.a, asked.b].some((one) => one && byName.get(one) === index.human);
      const protocol = name || (isPeople || !pairs.length ? next.beside : next.pair);
      if (!protocol) return { ...next, why: "Nothing on this page compares dialogues." };
      const isBeside = byProtocol.get(protocol).shows === "human";
      next[isBeside ? "beside" : "pair"] = protocol;
      for (const given of [asked.a, asked.b]) {
        if (given && !byName.has(given)) return { ...next, protocol, why: `No contestant ${given} is on this page.` };
      }
      const there = (x, y) => Boolean(told(protocol, x, y));
      const models = order.filter((i) => i !== index.human);
      const nearest = (i) => {
        const at = models.indexOf(i);
        const near = models.filter((j) => j !== i).sort((x, y) => Math.abs(models.indexOf(x) - at) - Math.abs(models.indexOf(y) - at));
        return near.find((j) => there(i, j)) ?? near[0];
      };
      const shown = asked.show || "";
      if (!Object.hasOwn(counts, shown)) return { ...next, why: `Seeds cannot be narrowed to ${shown}.` };
      if (asked.of) {
        const mine = asked.a ? [byName.get(asked.a)] : models.filter((i) => asked.of !== "bots" || index.contestants[i].startsWith("bot:"));
        const others = isBeside && mine[0] !== index.human ? [index.human] : models;
        const pairs = mine.flatMap((i, n) => others.filter((j) => j !== i && there(i, j) && !mine.slice(0, n).includes(j)).map((j) => [i, j]));
        return { ...next, protocol, shown, pairs, a: asked.a ? mine[0] : undefined, called: asked.of === "bots" ? "scripts" : "everybody" };
      }
      const first = models.find((i) => order.some((j) => there(i, j))) ?? models[0];
      const a = asked.a ? byName.get(asked.a) : first;
      const b = asked.b ? byName.get(asked.b) : isBeside && a !== index.human ? index.human : isBeside ? first : nearest(a);
      Object.assign(next, { protocol, a, b });
      if (a === undefined || b === undefined || a < 0 || b < 0) return { ...next, why: "There are no two to compare." };
      if (a === b) return { ...next, why: `${index.contestants[a]} cannot be compared with itself.` };
      if (isBeside !== (a === index.human || b === index.human)) {
        return { ...next, why: `${protocol} ${isBeside ? "compares a model with people" : "compares models"}; ${index.contestants[a]} and ${index.contestants[b]} are not in it.` };
      }
      const cases = casesOf(protocol, a, b);
      const found = cases.filter(shows(shown));
      Object.assign(next, { shown, cases, found });
      if (asked.seed && !bySeed.has(asked.seed)) return { ...next, why: `No seed ${asked.seed} is in this set.` };
      const start = found.find(({ contradicts }) => contradicts) || found[0];
      return { ...next, at: asked.seed ? bySeed.get(asked.seed) : start ? start.at : -1 };
    };

    const matrix = () => {
      const { order } = state;
      const size = order.length > 20 ? "small" : order.length > 12 ? "middle" : "large";
      const cell = (a, b) => {
        const classes = [a === index.human ? "across" : "", b === index.human ? "down" : ""].filter(Boolean).join(" ");
        const found = a === b ? null : told(between(a, b), a, b);
        if (!found) return el("td", { class: classes || null });
        const { score, low, high, won, tied, lost, seeds } = found;
        const clear = isClear(found);
        const few = seeds < FEWEST ? `, only ${seeds} seeds` : "";
        const title = `${called(index, a)} against ${called(index, b)}: ${percent(score)} %, 95 % interval ${percent(low)} to ${percent(high)}${few}; ${won} won, ${tied} tied, ${lost} lost`;
        const mix = score > 0.5 ? 63 + 64 * (score - 0.5) : 5 + 62 * score;
        const anchor = el(
          "a",
          { href: toPair(a, b), title, tabindex: -1, class: clear ? (score > 0.5 ? "ahead" : "behind") : "open", style: clear ? `--mix:${Math.round(mix)}%` : null, "data-pair": `${a},${b}` },
          el("span", { class: size === "small" ? "hidden" : null }, String(percent(score))),
        );
        return el("td", { class: classes || null }, anchor);
      };
      const head = (i, scope) => el("th", { scope, title: called(index, i), class: i === index.human ? "people" : null, "data-row": scope === "row" ? i : null },
        el("bdi", null, called(index, i, 22)));
      const table = el(
        "table",
        { class: "matrix", "data-size": size },
        el("caption", { class: "hidden" }, "Score of each row against each column"),
        el("thead", null, el("tr", null, el("td"), order.map((i) => head(i, "col")))),
        el("tbody", null, order.map((a) => el("tr", null, head(a, "row"), order.map((b) => cell(a, b))))),
      );
      // One stop for the Tab key; arrows go from cell to cell.
      table.addEventListener("keydown", (event) => {
        const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] || [];
        const from = event.target.closest("td");
        if (down === undefined || !from) return;
        event.preventDefault();
        let [row, column] = [from.parentElement.rowIndex + down, from.cellIndex + right];
        while (table.rows[row]?.cells[column] && !table.rows[row].cells[column].querySelector("a")) [row, column] = [row + down, column + right];
        table.rows[row]?.cells[column]?.querySelector("a")?.focus();
      });
      const isBeside = state.beside && index.human >= 0;
      board.replaceChildren(
        el("summary", null, "Everybody against everybody"),
        el("div", { class: "scroll" }, table),
        el(
          "p",
          { class: "note" },
          "Row against column, in the order of the board; a win is 1, a tie ½. Strong: the row is clearly ahead; faint: clearly behind. ",
          size === "small" ? "Ring" : "Outlined",
          `: the 95 % interval contains 50 %, or fewer than ${FEWEST} seeds.`,
          isBeside ? [" Between the ", el("span", { class: "people" }, "lines"), `: beside people (${byProtocol.get(state.beside).base}).`] : null,
        ),
      );
    };

    const mark = () => {
      for (const anchor of board.querySelectorAll("[aria-current]")) {
        anchor.removeAttribute("aria-current");
        anchor.tabIndex = -1;
      }
      const now = board.querySelector(`[data-pair="${state.a},${state.b}"]`) || board.querySelector("[data-pair]");
      if (now) {
        now.tabIndex = 0;
        if (now.dataset.pair === `${state.a},${state.b}`) now.setAttribute("aria-current", "true");
      }
      for (const head of board.querySelectorAll("[data-row]")) head.classList.toggle("now", Number(head.dataset.row) === state.a);
    };

    // The two names, the score between them, and a sentence.
    const heading = () => {
      const { a, b, protocol } = state;
      const found = told(protocol, a, b);
      const side = (i) => el("span", { class: "side" }, calledNode(index, i, 36));
      const parts = [el("h3", { tabindex: "-1", "aria-level": 2 }, side(a), el("span", { class: "score" }, found ? sides(found.score) : "–"), side(b))];
      if (!found) return [...parts, el("p", { class: "note" }, named(index.judges[chosen.judge]), " has not judged this.")];
      const { score, low, high, won, tied, lost, seeds } = found;
      const n = won + tied + lost;
      const ahead = score > 0.5 ? a : b;
      const are = ahead === index.human ? "are" : "is";
      const claim = isClear(found)
        ? [calledNode(index, ahead, 32), ` ${are} clearly ahead.`]
        : [seeds < FEWEST ? `too few seeds to say who is ahead.` : "they cannot be told apart."];
      // Nearer to the one who is ahead.
      const [at, from, width] = [1 - score, 1 - high, high - low].map((part) => `${100 * part}%`);
      return [
        ...parts,
        el("span", { class: "balance", role: "img", "aria-label": `95 % interval of the left one: ${percent(low)} to ${percent(high)} %` },
          el("i", { style: `left:${from};width:${width}` }), el("s"), el("b", { style: `left:${at}` })),
        el("p", { class: "note" }, `${won} won, ${tied} tied, ${lost} lost of ${n} comparisons on ${seeds} ${seeds === 1 ? "seed" : "seeds"}; 95 % interval ${percent(low)} to ${percent(high)} %; `, claim),
      ];
    };

    // All pairs that a number is of, with what it counts of each.
    const overview = () => {
      const { pairs, protocol, shown, a } = state;
      const each = pairs.map(([i, j]) => [i, j, summed(casesOf(protocol, i, j), shown), told(protocol, i, j)]);
      const sum = (of) => each.reduce((all, one) => all + of(one), 0);
      const n = (number) => number.toLocaleString("en");
      const results = ({ won, tied, lost }) => `${n(won)} won, ${n(tied)} tied, ${n(lost)} lost`;
      const whole = Object.fromEntries(["won", "tied", "lost"].map((key) => [key, sum(([, , , score]) => score[key])]));
      const [hits, of] = [0, 1].map((k) => sum(([, , counted]) => counted[k]));
      const side = (i, name) => el("span", { class: "side" }, i === undefined ? name : calledNode(index, i, 36));
      const people = byProtocol.get(protocol).shows === "human" && a !== index.human;
      return [
        el("h3", { tabindex: "-1", "aria-level": 2 }, side(a, state.called), el("span", { class: "score" }, shown ? `${percent(hits / (of || 1))} %` : "against"), side(people ? index.human : undefined, "everybody")),
        el("p", { class: "note counted" }, shown ? `${n(hits)} of ${n(of)} ${counts[shown][1]}.` : a === undefined && !people ? `${n(of)} ${counts[""][1]}.` : `${results(whole)} of ${n(of)} ${counts[""][1]}.`),
        el("table", { class: "judges" }, el("tbody", null, each.slice(0, MOST).map(([i, j, counted, score]) =>
          el("tr", null,
            el("th", { scope: "row" }, el("a", { href: to({ protocol, a: index.contestants[i], b: index.contestants[j], show: shown }) }, calledNode(index, i, 32), " – ", calledNode(index, j, 32))),
            el("td", null, shown ? `${n(counted[0])} of ${n(counted[1])}` : results(score)))))),
        each.length > MOST ? el("p", { class: "note" }, `The first ${MOST} of ${n(each.length)} pairs.`) : null,
      ].filter(Boolean);
    };

    const brief = (result, a, b) => ({ win: called(index, a, 24), lose: called(index, b, 24), tie: "tie", none: "unreadable" })[result] || "not judged";

    const boxes = () => {
      const { a, b, cases, found, protocol } = state;
      const open = new Set(found.map(({ at }) => at));
      const each = cases.map((one) => {
        const id = index.seeds[one.at][0];
        const title = `${id}: ${called(index, a, 24)} first: ${brief(one.left, a, b)}; ${called(index, b, 24)} first: ${brief(one.right, a, b)}${one.contradicts ? "; contradicts itself" : ""}`;
        const href = to({ protocol, a: index.contestants[a], b: index.contestants[b], seed: id, show: state.shown });
        return el("a", { href, title, "aria-label": title, class: open.has(one.at) ? null : "dim", "data-at": one.at, tabindex: -1 },
          el("i", { class: one.left || "absent" }), el("i", { class: one.right || "absent" }));
      });
      const n = cases.filter(({ contradicts }) => contradicts).length;
      return [
        el("div", { class: cases.length > 120 ? "boxes many" : "boxes", role: "group", "aria-label": "Seeds" }, each),
        el("p", { class: "note legend" }, "One box a seed, one half an order. Filled: left wins; outlined: right wins; faint: tie; dashed: unreadable. ",
          n ? el("b", null, n === 1 ? "1 contradicts itself." : `${n} contradict themselves.`) : "None contradicts itself."),
      ];
    };

    const step = (by, wanted = () => true) => {
      const { found = [], at } = state;
      const ahead = found.filter(wanted).filter((one) => (by > 0 ? one.at > at : one.at < at));
      const next = by > 0 ? ahead[0] : ahead[ahead.length - 1];
      if (next) address.set({ seed: index.seeds[next.at][0] });
    };
    const contradicts = (one) => one.contradicts;

    // Names in the judge's words instead of the places in which it saw them.
    const reasonOf = (row) => {
      const parts = row[4].split(/\b((?:conversation|dialogue) [12])\b/gi);
      return parts.map((part, i) =>
        i % 2 ? el("span", { class: "name", title: part }, calledNode(index, row[2][Number(part.slice(-1)) - 1], 24)) : part);
    };

    const rulings = (content) => {
      const { a, b, at, protocol } = state;
      const asked = byProtocol.get(protocol);
      const p = index.about.indexOf(asked);
      const rows = content.verdicts.filter((row) => row[1] === p && row[2].includes(a) && row[2].includes(b));
      const isPeople = (row) => row[2].map((i) => i === index.human);
      const saidIn = (row) => compared(asked, row[3], row[2].map(named2), isPeople(row));
      const mine = [a, b].map((first) => [first, rows.find((row) => row[0] === chosen.judge && row[2][0] === first)]);
      const lines = mine.map(([first, row]) =>
        el("div", { class: "ruling" },
          el("p", { class: "shown" }, calledNode(index, first, 32), " first"),
          el("p", { class: "said" }, row ? el("b", null, saidIn(row)) : "not judged"),
          el("div", { class: "because" }, row && row[4] ? el("p", { class: "reason", dir: "auto" }, reasonOf(row)) : null, row ? talk(asked, row, row[2].map(named2), isPeople(row)) : null)));
      const now = state.cases.find((one) => one.at === at);
      const others = index.judges.map((judge, who) => {
        const said = [a, b].map((first) => rows.find((row) => row[0] === who && row[2][0] === first)).filter(Boolean);
        if (who === chosen.judge || !said.length) return null;
        return el("p", { class: "other" }, named(judge), ": ", said.map((row, i) => [i ? "; " : "", calledNode(index, row[2][0], 24), " first: ", saidIn(row)]).flat(2));
      }).filter(Boolean);
      const shown = rows.filter((row) => row[0] === chosen.judge).map((row) => row[5]);
      return [
        [
          el("div", { class: "rulings" },
            el("div", { class: "ruling heads", "aria-hidden": "true" }, el("p", null, "Shown"), el("p", null, named(index.judges[chosen.judge]), " says"), el("p", null, "because")),
            lines),
          now && now.contradicts ? el("p", { class: "contradiction" }, stamp("lose", "Contradicts itself"), " The verdict changes with the order.") : null,
          others.length ? el("div", { class: "others" }, others) : null,
        ],
        shown.length ? Math.max(...shown) : asked.n || Math.min(...[a, b].map((i) => (content.dialogues[i] || { said: [] }).said.length)),
      ];
    };

    // Both dialogues, utterance beside utterance; what the judge did not see is folded.
    const sideBySide = (content, shown) => {
      const { a, b, at } = state;
      const id = index.seeds[at][0];
      const both = [a, b].map((i) => content.dialogues[i]);
      const missing = [a, b].filter((_, i) => !both[i]);
      if (missing.length) return [el("p", { class: "note" }, "There is no dialogue of ", calledNode(index, missing[0]), " on ", named(id), ".")];
      const part = (from, to) => {
        const n = Math.max(...both.map(({ said }) => Math.min(said.length, to))) - from;
        const columns = [a, b].map((which, i) => {
          const options = { accused: 0, human: which === index.human };
          const said = both[i].said.slice(from, to).map((_, k) => utterance(both[i], from + k, options));
          return el("ol", { class: "chat column", style: `grid-row: span ${Math.max(n, 1)}`, "aria-label": called(index, which) }, said);
        });
        return n > 0 ? el("div", { class: "columns" }, columns) : null;
      };
      const most = Math.max(...both.map(({ said }) => said.length));
      return [
        el("ol", { class: "chat shared" }, el("li", { class: "part people" }, el("span", null, named(id), ": two people begin")),
          [0, 1].map((i) => utterance(both[0], i, { accused: 0 }))),
        el("div", { class: "columns names" }, [a, b].map((i) => el("h4", { "aria-level": 3 }, calledNode(index, i, 36)))),
        part(2, shown),
        both.some(({ stopped }) => stopped)
          ? el("div", { class: "columns" }, both.map(({ stopped }) => (stopped ? el("p", { class: "warning" }, `Stopped early: ${stopped}`) : el("span"))))
          : null,
        most > shown ? el("details", { class: "unseen" }, el("summary", null, `Not shown to the judge: from utterance ${shown + 1} on`), part(shown, Infinity)) : null,
      ];
    };

    const steps = () => {
      const next = state.cases.some(contradicts) ? button("Next contradiction", () => step(1, contradicts)) : null;
      return el("p", { class: "steps" }, acts("seed", step, help, [next, el("span", { class: "space" })]));
    };

    const read = async () => {
      const { at } = state;
      for (const box of duel.querySelectorAll(".boxes a")) {
        const isNow = Number(box.dataset.at) === at;
        box.tabIndex = isNow ? 0 : -1;
        if (isNow) box.setAttribute("aria-current", "true");
        else box.removeAttribute("aria-current");
      }
      const before = duel.querySelector(".case");
      if (at === undefined || at < 0) {
        before.replaceChildren(state.shown ? "No seed is like that." : "");
        return;
      }
      const told = await content(at);
      if (!told) return;
      const [said, shown] = rulings(told);
      before.replaceChildren(...[said, sideBySide(told, shown)].flat(2).filter(Boolean));
    };

    const controls = () => {
      const { order, a, b, protocol } = state;
      offer(protocols, [...byProtocol.values()].map(({ name, title }) => [name, title]), protocol || "");
      const all = order.map((i) => [i, called(index, i)]);
      offer(one, a === undefined ? [["", state.called || ""], ...all] : all, a ?? "");
      offer(two, [["", "everybody"], ...all.filter(([i]) => i !== a)], b ?? "");
      const chosenNames = [a, b].map((i) => (i === undefined ? "" : called(index, i, 24)));
      offer(show, [["", "All seeds"], ["split", "Contradictions"], ["win", `${chosenNames[0]} wins`], ["lose", `${chosenNames[1]} wins`], ["tie", "Ties"], ["none", "Unreadable"], ["same", "One winner in both orders"], ["first", "The first shown wins"], ["decided", "Decided"], ["readable", "Readable"]], state.shown || "");
    };

    const go = () => {
      if (view.hidden) return;
      state = resolve();
      controls();
      const key = [chosen.judge, state.pair, state.beside].join();
      if (key !== drawn) {
        drawn = key;
        matrix();
      }
      mark();
      if (state.pairs) {
        duel.dataset.key = "";
        duel.replaceChildren(...overview());
        return;
      }
      if (!state.cases) {
        wrongLink(state.why);
        duel.replaceChildren(el("p", { class: "note" }, "Choose two to compare."));
        duel.dataset.key = "";
        return;
      }
      const { a, b, protocol, shown, at } = state;
      const now = [chosen.judge, protocol, a, b, shown].join();
      if (duel.dataset.key !== now) {
        duel.dataset.key = now;
        duel.replaceChildren(...heading(), ...(state.cases.length ? boxes() : []), steps(), el("div", { class: "case" }));
        if (duel.getBoundingClientRect().top < 0) duel.scrollIntoView({ block: "start" });
      }
      if (state.why) wrongLink(state.why);
      else if (completed({ view: "pair", protocol, a: index.contestants[a], b: index.contestants[b], seed: at < 0 ? "" : index.seeds[at][0] })) return;
      read().catch(failed(duel.querySelector(".case")));
    };

    const choose = (parts) => {
      const [a, b] = [parts.a ?? state.a ?? "", parts.b ?? state.b ?? ""].map((i) => (i === "" ? undefined : Number(i)));
      const names = { a: index.contestants[a], b: a === b ? "" : index.contestants[b], of: b === undefined ? "all" : "" };
      address.set({ view: "pair", protocol: b === undefined ? state.protocol : between(a, b), seed: "", show: "", ...names }, true);
    };
    one.addEventListener("change", () => choose({ a: one.value }));
    two.addEventListener("change", () => choose({ b: two.value }));
    show.addEventListener("change", () => address.set({ show: show.value, seed: "" }));
    protocols.addEventListener("change", () => {
      const isBeside = byProtocol.get(protocols.value).shows === "human";
      const models = state.order.filter((i) => i !== index.human);
      const a = state.a === undefined || state.a === index.human ? models[0] : state.a;
      address.set({ view: "pair", protocol: protocols.value, a: index.contestants[a], b: isBeside ? index.contestants[index.human] : state.b === index.human ? "" : index.contestants[state.b] || "", of: "", seed: "", show: "" }, true);
    });

    const help = keys(view, [
      [["j", "k"], "next, previous seed", (key) => step(key === "j" ? 1 : -1)],
      [["n", "p"], "next, previous contradiction", (key) => step(key === "n" ? 1 : -1, contradicts)],
    ]);
    place.replaceChildren(
      el("div", { class: "tools" }, view.querySelector(".switch"), one, el("span", { class: "versus" }, "against"), two, protocols, show),
      el("div", { class: "against-all" }, board, duel),
    );
    address.changed(go);
    go();
  };

  begin(document.getElementById("pairs"), start);
})();
