// One dialogue with the judge's mark, flags in the margin; two side by side with the rulings.
botchat.dialogues = (() => {
  const { el, named, link, chosen, outcome } = botchat;
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

  // One error of a diagnosis: its type, the words quoted, whether they were said, and why.
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

  // Errors by utterance, 0 for those that name none; who found them where that is not the judge.
  const diagnosed = (index, content, a) => {
    const found = { scores: [], at: {} };
    for (const [who, contestant, score, told] of content.diagnoses) {
      if (contestant !== a) continue;
      found.scores.push([who, score]);
      for (const [speaker, errors] of told) {
        const by = told.length > 1 ? speaker : who === chosen.judge ? "" : index.judges[who];
        for (const one of errors) {
          const at = one[1] || 0;
          (found.at[at] = found.at[at] || []).push(error(index, by, one));
        }
      }
    }
    return found;
  };

  // options: limits, errors (index -> nodes), accused (index), by (who accuses), reason, others (index -> judges), human
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
      marks.push(el("li", { class: "other" }, "accused by ", named(who)));
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
        el("span", { class: "speaker" }, speaker, part, accused ? " · accused" : ""),
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

  const single = (index, content, a, at) => {
    const dialogue = content.dialogues[a];
    const name = index.contestants[a];
    const rows = content.verdicts.filter((row) => row[2].length === 1 && row[2][0] === a);
    const mine = rows.find((row) => row[0] === chosen.judge);
    const others = {};
    for (const row of rows) {
      if (row !== mine && row[3] && row[3] !== "No") {
        (others[row[3]] = others[row[3]] || []).push(index.judges[row[0]]);
      }
    }
    const accused = mine && mine[3] && mine[3] !== "No" ? Number(mine[3]) : 0;
    const diagnosis = diagnosed(index, content, a);
    const options = {
      limits: Object.fromEntries(index.limits),
      errors: diagnosis.at,
      accused,
      by: index.judges[chosen.judge],
      reason: mine ? mine[4] : "",
      others,
      human: a === index.human,
    };
    const said = !mine
      ? "not judged"
      : mine[3] === null
        ? "no readable verdict"
        : accused
          ? `accused from utterance ${accused} on`
          : "taken for human";
    const kind = !mine || mine[3] === null ? "none" : accused ? "lose" : "win";
    return [
      el("h3", { tabindex: "-1" }, named(name), " · ", named(index.seeds[at][0])),
      el(
        "p",
        { class: "verdict" },
        el("span", { class: `badge ${kind}` }, said),
        " by ",
        named(index.judges[chosen.judge]),
        diagnosis.scores.map(([who, score]) => [
          " · ",
          el("span", { class: "badge none" }, score === null ? "diagnosis unreadable" : `diagnosis ${score}`),
          who === chosen.judge ? null : [" by ", named(index.judges[who])],
        ]),
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
            el("a", { href: link({ view: "unieval", a: index.contestants[index.human], seed: index.seeds[at][0] }) }, "How people went on"),
          )
        : null,
    ];
  };

  const pair = (index, content, protocol, a, b, at) => {
    const p = index.protocols.indexOf(protocol);
    const rows = content.verdicts.filter(
      (row) => row[0] === chosen.judge && row[1] === p && row[2].includes(a) && row[2].includes(b),
    );
    const names = [index.contestants[a], index.contestants[b]];
    const limits = Object.fromEntries(index.limits);
    const shown = rows.length ? Math.max(...rows.map((row) => row[5])) : 16;
    const verdicts = rows.map((row) => {
      const first = row[2][0] === a ? 0 : 1;
      const won = outcome(row[3]);
      const winner = won === "win" ? names[first] : won === "lose" ? names[1 - first] : "";
      const said = {
        1: "the first is AI-involved",
        2: "the second is AI-involved",
        both: "both are AI-involved",
        neither: "neither is AI-involved",
      }[row[3]];
      return el(
        "div",
        { class: "ruling" },
        el(
          "p",
          null,
          el("span", { class: `badge ${winner ? (winner === names[0] ? "win" : "lose") : won}` },
            winner ? [named(winner), " wins"] : won === "tie" ? "tie" : "unreadable"),
          " with ", named(names[first]), " shown first: ", said || "no readable verdict", ".",
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

  return { text, single, pair };
})();
