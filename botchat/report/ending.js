// What a person sees after the last answer: the score beside each judge's on the same cases, how
// much it says, and what everything was.
botchat.ending = (() => {
  const { about, button, el, named, numbers, result, labels } = botchat;
  const FEWEST = 5;
  const LONG = 120;
  const BOARD = "index.html";

  // What is right where that is known: "No" or "machine", or which of two is the machine's.
  const truth = ({ protocol, contestants, human }) => {
    if (!protocol.about_ai || protocol.kind === "score" || protocol.of_speakers) return null;
    if (protocol.kind === "place") return contestants[0] === human ? "No" : "machine";
    return protocol.shows === "human" ? String(2 - contestants.indexOf(human)) : null;
  };
  const isRight = (one, verdict) => {
    if (verdict === null) return null;
    return one.protocol.kind === "place" ? (verdict === "No") === (truth(one) === "No") : verdict === truth(one);
  };

  // Three classes for a comparison, two for a place in a dialogue: what `agree` compares too.
  const category = (asked, verdict) => {
    if (asked.of_speakers) return verdict;
    if (asked.kind !== "place") return result(asked, verdict);
    return verdict === "No" ? "nowhere" : "somewhere";
  };

  // How far two scores of one dialogue are apart, a mean over the numbers.
  const distance = ([x, y]) => {
    const other = numbers(y);
    return numbers(x).reduce((sum, one, i) => sum + Math.abs(one - other[i]), 0) / other.length;
  };

  const kappa = (pairs) => {
    const n = pairs.length;
    const same = pairs.filter(([x, y]) => x === y).length / n;
    let chance = 0;
    for (const kind of new Set(pairs.flat())) {
      const of = (side) => pairs.filter((pair) => pair[side] === kind).length / n;
      chance += of(0) * of(1);
    }
    return chance === 1 ? null : (same - chance) / (1 - chance);
  };

  // Wilson's 95 % interval of k in n, and how likely guessing has k and more.
  const interval = (k, n) => {
    const z = 1.96;
    const width = 1 + (z * z) / n;
    const middle = (k / n + (z * z) / 2 / n) / width;
    const half = (z * Math.sqrt((k / n) * (1 - k / n) / n + (z * z) / 4 / n / n)) / width;
    return [Math.max(0, middle - half), Math.min(1, middle + half)];
  };
  const guessing = (k, n) => {
    let term = 0.5 ** n;
    let sum = 0;
    for (let i = 0; i <= n; i += 1) {
      if (i >= k) sum += term;
      term = (term * (n - i)) / (i + 1);
    }
    return sum;
  };
  const luck = (k, n) => {
    const p = guessing(k, n);
    if (p > 0.5) return "Guessing would do as well.";
    return p >= 0.05 ? `Guessing does that in ${Math.round(100 * p)} % of all tries.` : `Guessing does that once in ${Math.round(1 / p).toLocaleString("en")} tries.`;
  };

  const percent = (part, whole) => `${Math.round((100 * part) / whole)} %`;

  // ------------------------------------------------------------------------- where truth is known
  const MARKS = new Map([[true, ["✓", "right", "ok"]], [false, ["✕", "wrong", "no"]], [null, ["–", "not asked", "none"]]]);
  const count = (marks) => marks.filter(Boolean).length;
  const asked = (marks) => marks.filter((one) => one !== null).length;

  const table = (told, rows) => {
    const letter = (one) => {
      const right = truth(one);
      const isPlace = one.protocol.kind === "place";
      const full = isPlace ? (right === "No" ? "people" : "a machine") : `the machine is ${right}`;
      return el("td", null, el("i", { class: isPlace && right === "No" ? "people" : "machine", role: "img", "aria-label": full, title: full }, isPlace ? (right === "No" ? "P" : "M") : right));
    };
    return el(
      "table",
      { class: "score" },
      el("caption", { class: "hidden" }, "Right and wrong, case by case"),
      el("tbody", null,
        el("tr", { class: "truth" }, el("th", { scope: "row" }, "truth"), told.map(letter), el("td")),
        rows.map(([name, marks]) =>
          el(
            "tr",
            { class: name === null ? "you" : null },
            el("th", { scope: "row", title: name }, name === null ? "you" : named(name)),
            marks.map((mark) => {
              const [shape, word, kind] = MARKS.get(mark);
              return el("td", null, el("i", { class: kind, role: "img", "aria-label": word, title: word }, shape));
            }),
            el("td", { class: "sum" }, `${count(marks)}/${asked(marks)}`),
          ),
        ),
      ),
    );
  };

  const scored = (chosen, told) => {
    const mine = told.map((one) => isRight(one, one.label.verdict));
    const judges = told[0].judges
      .map((name, j) => [name, told.map((one) => isRight(one, one.verdicts[j]))])
      .filter(([name, marks]) => asked(marks) && name !== `human:${labels.who}`);
    const share = ([, marks]) => count(marks) / asked(marks);
    const rows = [[null, mine], ...judges].sort((a, b) => share(b) - share(a));
    const [k, n] = [count(mine), mine.length];
    const [low, high] = interval(k, n);
    const best = Math.max(...judges.map(share));
    const beside =
      !judges.length ? "" : k / n > best ? "Better than every judge here. " : k / n === best ? "As good as the best judge here. " : `The best judge here is right in ${percent(best, 1)}. `;
    const squares = (marks) => marks.map((mark) => (mark === null ? "·" : mark ? "■" : "□")).join("");
    const text = [
      `Can you tell? ${k}/${n} · ${about.set}${chosen.deal ? `, deal ${chosen.deal}` : ""}`,
      ...rows.map(([name, marks]) => `${squares(marks)} ${name === null ? labels.who || "I" : name} ${count(marks)}/${asked(marks)}`),
      ...(location.protocol === "file:" ? [] : [`${location.origin}${location.pathname}${chosen.deal ? `?deal=${chosen.deal}` : ""}`]),
    ].join("\n");
    const said = `95 % interval ${Math.round(100 * low)} to ${Math.round(100 * high)} %`;
    return {
      head: `You: ${k} of ${n}`,
      text,
      nodes: [
        el("p", { class: "beside" }, beside, luck(k, n)),
        table(told, rows),
        el(
          "div",
          { class: "range" },
          el("span", null, `${n} cases say this much of you: ${said}`),
          el(
            "span",
            { class: "axis", "aria-hidden": "true" },
            el("s"),
            el("i", { style: `inset-inline-start:${100 * low}%;width:${100 * (high - low)}%` }),
            el("b", { style: `inset-inline-start:${(100 * k) / n}%` }),
          ),
          el("span", { class: "ends", "aria-hidden": "true" }, el("span", null, "0 %"), el("span", null, "guessing"), el("span", null, "100 %")),
        ),
      ],
    };
  };

  // ------------------------------------------------------------------------------ where it is not
  const alike = (protocol, verdicts) => {
    const pairs = verdicts.map((pair) => pair.map((verdict) => category(protocol, verdict)));
    const same = pairs.filter(([x, y]) => x === y).length;
    const k = kappa(pairs);
    return ` agrees with you in ${same} of ${pairs.length} (${percent(same, pairs.length)}${k === null ? "" : `, κ ${k.toFixed(2)}`}).`;
  };
  const apart = (pairs) => {
    const mean = pairs.map(distance).reduce((sum, one) => sum + one, 0) / pairs.length;
    return ` differs from your scores by ${mean.toFixed(1)} on average, in ${pairs.length}.`;
  };

  // With one protocol or, of a plan, several.
  const compared = (told) => {
    const names = [...new Set(told.map((one) => one.protocol.name))];
    const lines = names.flatMap((name) => {
      const here = told.filter((one) => one.protocol.name === name);
      const { protocol, judges } = here[0];
      return judges.flatMap((judge, j) => {
        const pairs = here.filter((one) => one.verdicts[j] !== null).map((one) => [one.label.verdict, one.verdicts[j]]);
        if (!pairs.length || judge === `human:${labels.who}`) return [];
        const isScore = protocol.kind === "score" && protocol.shows === "one";
        return [el("li", null, names.length > 1 ? `${name}: ` : "", named(judge), isScore ? apart(pairs) : alike(protocol, pairs))];
      });
    });
    const few = told.length < FEWEST;
    return {
      head: `You labelled ${told.length.toLocaleString("en")}`,
      text: "",
      nodes: few ? [el("p", null, `Agreement with the judges shows from ${FEWEST} labels on.`)] : [el("ul", { class: "agreement" }, lines)],
    };
  };

  // --------------------------------------------------------------------------------- what they were
  const spoken = (protocol, verdict) => {
    if (protocol.of_speakers) return protocol.kind === "place" ? verdict.split(" ").map((word, i) => `${"ABCDEFGH"[i]} ${{ No: "person", Undecided: "undecided" }[word] || "machine"}`).join(", ") : "ABCDEFGH"[verdict - 1] || "none";
    if (protocol.kind === "place") return verdict === "No" ? (protocol.about_ai ? "people" : "nowhere") : (protocol.about_ai ? "a machine" : "somewhere") + (verdict === "Yes" ? "" : `, from line ${verdict} on`);
    return protocol.kind === "choice" ? { 1: "the first", 2: "the second" }[verdict] || verdict : verdict;
  };
  const link = (one) => {
    const [a, b] = one.contestants;
    return `${BOARD}#${new URLSearchParams({ view: one.protocol.name, a, ...(b ? { b } : {}), seed: one.label.seed_id })}`;
  };
  const whose = (one) => one.contestants.flatMap((name, i) => [i ? " and " : "", name === one.human ? "people" : named(name)]);
  // The line that somebody named, as it was said.
  const line = (one, verdict) => {
    const said = one.protocol.kind === "place" && one.said[0][Number(verdict) - 1];
    return said ? el("q", { dir: "auto" }, said.length > LONG ? `${said.slice(0, LONG)} …` : said) : null;
  };
  const mark = (one, verdict) => {
    const [shape, word] = truth(one) === null ? ["", ""] : MARKS.get(isRight(one, verdict));
    return shape ? el("i", { role: "img", "aria-label": word }, `${shape} `) : null;
  };
  const says = (one, name, verdict) => el("li", null, mark(one, verdict), name, `: ${verdict === null ? "not asked" : spoken(one.protocol, verdict)} `, line(one, verdict));
  const revealed = (told) => [
    el("h2", null, "What they were"),
    el(
      "ol",
      { class: "told" },
      told.map((one) =>
        el(
          "li",
          null,
          el("b", null, whose(one)),
          " · ",
          el("a", { href: link(one) }, "read"),
          el("ul", null, says(one, "you", one.label.verdict), one.judges.map((name, j) => (name === `human:${labels.who}` ? null : says(one, named(name), one.verdicts[j])))),
        ),
      ),
    ),
  ];

  const copied = (text) => {
    const shown = el("textarea", { readonly: true, rows: text.split("\n").length, "aria-label": "Result to paste" }, text);
    const copied = async () => labels.say((await botchat.copy(text)) ? "Copied." : "This browser does not let a page copy; the text is below.");
    return [button("Copy result", copied, { class: "solid" }), el("details", null, el("summary", null, "The text to paste"), shown)];
  };

  // `told`: the answered cases with `label`, `contestants`, `human`, `judges` and `verdicts`.
  const nodes = (chosen, told, go) => {
    const heading = { class: "question", tabindex: "-1" };
    if (!told.length) return [el("h1", heading, "Nothing is labelled yet"), el("p", { class: "row" }, go)];
    const knows = !chosen.open && told.every((one) => truth(one) !== null);
    const { head, text, nodes: shown } = knows ? scored(chosen, told) : compared(told);
    const [copy, paste] = text ? copied(text) : [];
    const name = el("input", { type: "text", id: "rater", maxlength: 60, autocomplete: "off" });
    const names = [...new Set(told.map((one) => one.protocol.name))];
    const write = async (protocol) => {
      if (!labels.who) labels.enter(name.value);
      if (!labels.who) {
        labels.say("Give your name first; the file is written as human:name.");
        name.focus();
        return;
      }
      try {
        await labels.write(protocol);
      } catch (error) {
        labels.say(`Not exported: ${error.message}.`);
      }
    };
    const exporters = names.map((one) => button(names.length > 1 ? `Export ${one}` : "Export labels", () => write(one), { class: "line" }));
    return [
      el("h1", heading, head),
      ...shown,
      el("p", { class: "row" }, copy, go, el("a", { class: "plain", href: BOARD }, "See the board")),
      ...(paste ? [paste] : []),
      ...revealed(told),
      ...(chosen.isCut ? [] : [el("p", { class: "row name" }, labels.who ? ["You are ", named(labels.who)] : [el("label", { for: "rater" }, "Your name"), name], exporters)]),
      labels.status,
      chosen.isCut ? null : el("p", { class: "note" }, "The file is that of the judge human:NAME: put it into ", el("code", null, `judgments/${about.set}/PROTOCOL/`), " of the workspace."),
    ];
  };

  return nodes;
})();
