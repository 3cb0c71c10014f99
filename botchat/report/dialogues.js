// One dialogue with the judge's mark, flags in the margin; two side by side with the rulings.
botchat.dialogues = (() => {
  const { el, named, link, chosen, numbers, result } = botchat;
  const LONG = 4000;

  const CRITERIA = {
    ai_phrases: "says it is a machine",
    exact_repeat: "repeated word for word",
    closing_chain: "keeps saying goodbye",
    layout_marks: "layout marks",
    words: "too long",
    verbatim_run: "repeats what was said",
    overlap: "says the same again",
    drift: "off the subject",
    formality: "formal tone",
  };

  // What is said of a verdict with a place, and of one without.
  const words = (protocol) =>
    protocol.about_ai
      ? { place: "accused", none: "taken for human", brief: "human" }
      : { place: "found", none: "nothing found", brief: "nothing found" };

  // A score in words: "Empathy 7", of two dialogues "Empathy 7 to 4".
  const scored = (protocol, verdict) => {
    const given = typeof verdict === "string" ? numbers(verdict) : verdict;
    const half = protocol.numbers.length;
    const of = (i) => (given.length > half ? `${given[i]} to ${given[half + i]}` : given[i]);
    return protocol.numbers.map((name, i) => `${name} ${of(i)}`).join(", ");
  };

  const text = (said) => {
    const shown = el("p", { dir: "auto" }, said.slice(0, LONG));
    if (said.length <= LONG) return shown;
    const more = el("button", { type: "button", class: "more" });
    more.textContent = `… ${(said.length - LONG).toLocaleString("en")} more characters`;
    more.addEventListener("click", () => {
      shown.textContent = said;
    });
    shown.append(" ", more);
    return shown;
  };

  const EVIDENCE = { elsewhere: "said in another utterance", "not found": "not in the dialogue" };

  // One error of a report: its type, the words quoted, whether they were said, and why.
  const error = (index, by, [type, at, quote, evidence, why]) =>
    el(
      "p",
      { class: "error" },
      el("b", null, index.error_types[type] || type),
      quote ? [": ", el("span", { class: "quote", dir: "auto" }, `“${quote}”`)] : null,
      EVIDENCE[evidence] ? el("span", { class: "unfound" }, ` (this quote is ${EVIDENCE[evidence]})`) : null,
      why ? el("span", { dir: "auto" }, ` – ${why}`) : null,
      by ? [" · ", named(by)] : null,
    );

  // Errors by utterance, 0 for those that name none; who found them where that is not the judge,
  // and in which protocol where there are several. All reports, or those of one protocol.
  const reported = (index, content, a, only) => {
    const several = !only && index.about.filter(({ kind }) => kind === "report").length > 1;
    const found = { scores: [], at: {} };
    for (const [who, p, contestant, score, told] of content.reports) {
      const { name } = index.about[p];
      if (contestant !== a || (only && name !== only)) continue;
      found.scores.push([who, name, score]);
      for (const [speaker, errors] of told) {
        const judge = told.length > 1 ? speaker : who === chosen.judge ? "" : index.judges[who];
        const by = [judge, several ? name : ""].filter(Boolean).join(", ");
        for (const one of errors) {
          const at = one[1] || 0;
          (found.at[at] = found.at[at] || []).push(error(index, by, one));
        }
      }
    }
    return found;
  };

  // options: limits, errors (index -> nodes), accused (index), word (for that), by (who accuses),
  // reason, others (index -> judges), human
  const utterance = (dialogue, i, options) => {
    const index = i + 1;
    const accused = index === options.accused;
    const isSeed = i < 2;
    const marks = [];
    for (const [at, criterion, value] of dialogue.flags) {
      if (at !== index) continue;
      const most = options.limits[criterion];
      const said = `${CRITERIA[criterion] || criterion}`;
      const tip = `${criterion.replaceAll("_", " ")}: ${value}, humans at most ${most.toFixed(1)}`;
      marks.push(el("li", { title: tip }, said));
    }
    const dropped = dialogue.dropped && dialogue.dropped[index];
    if (dropped) {
      const tip = "They did not fit the model's context window";
      marks.push(el("li", { class: "dropped", title: tip }, `${dropped} oldest not in the prompt`));
    }
    const odd = dialogue.outcomes && dialogue.outcomes[index];
    if (odd) marks.push(el("li", { class: "dropped" }, odd));
    for (const who of (options.others && options.others[index]) || []) {
      marks.push(el("li", { class: "other" }, `${options.word} by `, named(who)));
    }
    const speaker = `${index} · ${"AB"[i % 2]}`;
    const part = isSeed || options.human ? " · human" : "";
    const classes = ["AB"[i % 2], isSeed ? "seed" : "", accused ? "accused" : ""].join(" ");
    return el(
      "li",
      { class: classes },
      el(
        "div",
        { class: "bubble" },
        el("span", { class: "speaker" }, speaker, part, accused ? ` · ${options.word}` : ""),
        text(dialogue.said[i]),
        accused && options.reason
          ? el("p", { class: "reason", dir: "auto" }, el("b", null, named(options.by), ": "), options.reason)
          : null,
        (options.errors && options.errors[index]) || null,
      ),
      marks.length ? el("ul", { class: "flags", "aria-label": "Flags" }, marks) : null,
    );
  };

  const talk = (row) => {
    const [outcomeOf, turns] = [row[7], row[8]];
    if (!turns || !turns.length) {
      return outcomeOf && outcomeOf !== "ok" ? el("p", { class: "note" }, `The call: ${outcomeOf}.`) : null;
    }
    return el(
      "details",
      { class: "talk" },
      el("summary", null, `What the panel said (${turns.length})`),
      turns.map(([speaker, said, vote, how]) =>
        el(
          "div",
          { class: "turn" },
          el("h4", null, named(speaker), vote ? ` · votes ${vote}` : "", how === "ok" ? "" : ` · ${how}`),
          text(said),
        ),
      ),
    );
  };

  // What the chosen judge said of a dialogue: in words, and how it looks.
  const ruling = (protocol, row, accused) => {
    if (!row) return ["not judged", "none"];
    if (protocol.kind === "report") {
      return row[3] === null ? [`${protocol.name} unreadable`, "none"] : [`${protocol.name} ${row[3]}`, "none"];
    }
    if (row[3] === null) return ["no readable verdict", "none"];
    if (protocol.kind === "score") return [scored(protocol, row[3]), "score"];
    const { place, none } = words(protocol);
    return accused ? [`${place} from utterance ${accused} on`, "lose"] : [none, "win"];
  };

  const single = (index, content, protocol, a, at) => {
    const dialogue = content.dialogues[a];
    const name = index.contestants[a];
    const p = index.about.indexOf(protocol);
    const rows = content.verdicts.filter((row) => row[1] === p && row[2][0] === a);
    const mine = rows.find((row) => row[0] === chosen.judge);
    const isPlace = protocol.kind === "place";
    const isReport = protocol.kind === "report";
    const others = {};
    for (const row of rows) {
      if (isPlace && row !== mine && row[3] && row[3] !== "No") {
        (others[row[3]] = others[row[3]] || []).push(index.judges[row[0]]);
      }
    }
    const accused = isPlace && mine && mine[3] && mine[3] !== "No" ? Number(mine[3]) : 0;
    const diagnosis = reported(index, content, a, isReport ? protocol.name : "");
    const options = {
      limits: Object.fromEntries(index.limits),
      errors: diagnosis.at,
      accused,
      word: words(protocol).place,
      by: index.judges[chosen.judge],
      reason: mine ? mine[4] : "",
      others,
      human: a === index.human,
    };
    const [said, kind] = ruling(protocol, mine, accused);
    const alsoScored = protocol.kind === "score" ? rows.filter((row) => row !== mine && row[3] !== null) : [];
    const alsoReported = diagnosis.scores.filter(([who]) => !isReport || who !== chosen.judge);
    return [
      el("h3", { tabindex: "-1" }, named(name), " · ", named(index.seeds[at][0])),
      el(
        "p",
        { class: "verdict" },
        el("span", { class: `badge ${kind}` }, said),
        " by ",
        named(index.judges[chosen.judge]),
        alsoScored.map((row) => [" · ", el("span", { class: "badge score" }, scored(protocol, row[3])), " by ", named(index.judges[row[0]])]),
        alsoReported.map(([who, by, score]) => [
          " · ",
          el("span", { class: "badge none" }, score === null ? `${by} unreadable` : `${by} ${score}`),
          who === chosen.judge ? null : [" by ", named(index.judges[who])],
        ]).flat(),
      ),
      el("ol", null, dialogue.said.map((_, i) => utterance(dialogue, i, options))),
      diagnosis.at[0] ? el("div", { class: "errors" }, el("h4", null, "Diagnosed without an utterance"), diagnosis.at[0]) : null,
      dialogue.stopped ? el("p", { class: "warning" }, `Stopped early: ${dialogue.stopped}`) : null,
      mine && !accused && mine[4]
        ? el("p", { class: "reason", dir: "auto" }, el("b", null, named(options.by), ": "), mine[4])
        : null,
      mine ? talk(mine) : null,
      index.human >= 0 && a !== index.human
        ? el(
            "p",
            { class: "note" },
            el("a", { href: link({ view: protocol.name, a: index.contestants[index.human], seed: index.seeds[at][0] }) }, "How people went on"),
          )
        : null,
    ];
  };

  const AI_INVOLVED = {
    1: "the first is AI-involved",
    2: "the second is AI-involved",
    both: "both are AI-involved",
    neither: "neither is AI-involved",
  };

  // What a judge said of two dialogues.
  const answered = (protocol, verdict) => {
    if (verdict === null) return "no readable verdict";
    if (protocol.kind === "score") return scored(protocol, verdict);
    if (protocol.about_ai) return AI_INVOLVED[verdict];
    const answer = protocol.answers.find(([said]) => said === verdict);
    return `“${answer ? answer[1] : verdict}”`;
  };

  const pair = (index, content, protocol, a, b, at) => {
    const p = index.about.indexOf(protocol);
    const rows = content.verdicts.filter(
      (row) => row[0] === chosen.judge && row[1] === p && row[2].includes(a) && row[2].includes(b),
    );
    const names = [index.contestants[a], index.contestants[b]];
    const limits = Object.fromEntries(index.limits);
    const shown = rows.length ? Math.max(...rows.map((row) => row[5])) : protocol.n || 16;
    const verdicts = rows.map((row) => {
      const first = row[2][0] === a ? 0 : 1;
      const won = result(protocol, row[3]);
      const winner = won === "win" ? names[first] : won === "lose" ? names[1 - first] : "";
      return el(
        "div",
        { class: "ruling" },
        el(
          "p",
          null,
          el("span", { class: `badge ${winner ? (winner === names[0] ? "win" : "lose") : won}` },
            winner ? [named(winner), " wins"] : won === "tie" ? "tie" : "unreadable"),
          " with ", named(names[first]), " shown first: ", answered(protocol, row[3]), ".",
        ),
        row[4] ? el("p", { class: "reason", dir: "auto" }, row[4]) : null,
        talk(row),
      );
    });
    const column = (which, i) => {
      const dialogue = content.dialogues[which];
      const options = { limits, accused: 0, human: which === index.human };
      const parts = dialogue.said.map((_, at) => utterance(dialogue, at, options));
      const rest = parts.splice(shown);
      return el(
        "div",
        { class: "column" },
        el("h4", null, named(names[i])),
        el("ol", null, parts),
        rest.length
          ? el("details", null, el("summary", null, `${rest.length} more that were not shown`), el("ol", null, rest))
          : null,
      );
    };
    return [
      el("h3", { tabindex: "-1" }, named(names[0]), " and ", named(names[1]), " · ", named(index.seeds[at][0])),
      rows.length
        ? verdicts
        : el("p", { class: "note" }, named(index.judges[chosen.judge]), " has not judged this."),
      el("div", { class: "columns" }, column(a, 0), column(b, 1)),
    ];
  };

  return { text, words, scored, single, pair };
})();
