// What was said, and what was said of it: utterances with their marks, verdicts in words, a panel's
// talk, keys. The reader and head to head are made of these.
botchat.dialogues = (() => {
  const { about, button, el, named, chosen, numbers, outcome, result } = botchat;
  const LONG = 4000;

  const SHAPES = { lose: "✕", win: "✓", none: "–" };

  // A name in little room keeps its end, where versions stand.
  const short = (name, most) => {
    const letters = [...name];
    if (letters.length <= most) return name;
    const tail = Math.floor((most - 1) / 3);
    return `${letters.slice(0, most - 1 - tail).join("")}…${letters.slice(-tail).join("")}`;
  };

  // The contestant `human` is called people.
  const called = (index, i, most = Infinity) => (i === index.human ? "people" : short(index.contestants[i], most));
  const calledNode = (index, i, most) =>
    el("bdi", { class: i === index.human ? "people" : null, title: index.contestants[i] }, called(index, i, most));

  // What is said of a place in a dialogue, and of none: in full, in a list, and at the utterance.
  const words = (protocol) =>
    protocol.about_ai
      ? { full: (at) => (at > 0 ? `Machine from utterance ${at} on` : at ? "Machine, not said from where" : "Human to the end"), brief: (at) => (at > 0 ? `at ${at}` : at ? "somewhere" : "human"), verb: "accused", here: "Accused from here on" }
      : { full: (at) => (at > 0 ? `Found from utterance ${at} on` : at ? "Found, not said where" : "Nothing found"), brief: (at) => (at > 0 ? `found at ${at}` : at ? "found somewhere" : "nothing found"), verb: "found", here: "Found from here on" };

  // A score in words: "Empathy 7", of two dialogues "Empathy 7 to 4".
  const scored = (protocol, verdict) => {
    const given = (typeof verdict === "string" ? numbers(verdict) : verdict).map((one) => one ?? "missing");
    const half = protocol.numbers.length;
    const of = (i) => (given.length > half ? `${given[i]} to ${given[half + i]}` : given[i]);
    return protocol.numbers.map((name, i) => `${name} ${of(i)}`).join(", ");
  };

  // A state as a shape and words.
  const stamp = (kind, said, more) => {
    const shape = SHAPES[kind];
    return el(more?.href ? "a" : "span", { class: `stamp ${kind}`, ...more }, shape ? `${shape} ` : "", said);
  };

  // Text with what was searched for marked; `term` is in lower case.
  const marked = (text, term) => {
    const low = text.toLowerCase();
    if (!term || low.length !== text.length) return [text];
    const parts = [];
    let from = 0;
    for (let at = low.indexOf(term); at >= 0; at = low.indexOf(term, from)) {
      parts.push(text.slice(from, at), el("mark", null, text.slice(at, at + term.length)));
      from = at + term.length;
    }
    return [...parts, text.slice(from)];
  };

  const text = (said, term = "") => {
    const shown = el("p", { dir: "auto", lang: about.lang });
    const whole = said.length <= LONG || (term && said.toLowerCase().indexOf(term) + term.length > LONG);
    shown.append(...marked(whole ? said : said.slice(0, LONG), term));
    if (whole) return shown;
    const more = `… ${(said.length - LONG).toLocaleString("en")} more characters`;
    shown.append(" ", button(more, () => shown.replaceChildren(...marked(said, term)), { class: "more" }));
    return shown;
  };

  const EVIDENCE = { elsewhere: "said in another utterance", "not found": "not in the dialogue" };

  // One error of a report: its type, the words quoted, whether they were said, and why.
  const error = (index, by, [type, , quote, evidence, why]) =>
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

  // options: errors (index -> nodes), accused (index), words, others (index -> judges),
  // human (people said all of it), term (searched for)
  const utterance = (dialogue, i, options) => {
    const at = i + 1;
    const accused = at === options.accused;
    const isPeoples = i < (dialogue.begun ?? 2) || options.human;
    const marks = [];
    const dropped = dialogue.dropped && dialogue.dropped[at];
    if (dropped) {
      const tip = "They did not fit the model's context window";
      marks.push(el("li", { class: "dropped", title: tip }, `${dropped} oldest not in the prompt`));
    }
    const odd = dialogue.outcomes && dialogue.outcomes[at];
    if (odd) marks.push(el("li", { class: "dropped" }, odd));
    for (const who of (options.others && options.others[at]) || []) {
      marks.push(el("li", { class: "other" }, `${options.words.verb} by `, named(who)));
    }
    return el(
      "li",
      { class: ["AB"[i % 2], isPeoples ? "seed" : "", accused ? "accused" : ""].filter(Boolean).join(" "), "data-at": at },
      el(
        "div",
        { class: "bubble" },
        accused ? el("span", { class: "here" }, options.words.here) : null,
        text(dialogue.said[i], options.term),
        (options.errors && options.errors[at]) || null,
      ),
      el("span", { class: "no" }, el("span", { class: "hidden" }, isPeoples ? "people, utterance " : "utterance "), String(at)),
      marks.length ? el("ul", { class: "flags", "aria-label": "Marks" }, marks) : null,
    );
  };

  // Who a verdict on two dialogues is for, in words. `shown`: nodes of the two names as shown.
  const compared = (protocol, verdict, shown, isPeople) => {
    if (verdict === null) return ["unreadable"];
    const won = result(protocol, verdict);
    const winner = { win: 0, lose: 1 }[won];
    const best = winner === undefined ? null : shown[winner]();
    if (protocol.kind === "score") {
      const given = numbers(verdict);
      const half = protocol.numbers.length;
      const each = protocol.numbers.map((name, i) => [i ? "; " : "", `${name}: `, shown[0](), ` ${given[i]}, `, shown[1](), ` ${given[half + i]}`]);
      return [best ? [best, " wins"] : "tie", " (", each, ")"].flat(3);
    }
    if (protocol.about_ai) {
      if (best) return [best, isPeople[winner] ? " are more human" : " is more human"];
      return [verdict === "both" ? "tie: both are machines" : "tie: neither is a machine"];
    }
    const answer = protocol.answers.find(([said]) => said === verdict);
    return [best ? [best, " wins"] : outcome(answer && answer[2]), ` (“${answer ? answer[1] : verdict}”)`].flat();
  };

  // How one of a panel voted, in words.
  const voted = (protocol, vote, shown, isPeople) => {
    if (vote === null || vote === undefined || vote === "") return ["no vote"];
    if (protocol.shows !== "one") return compared(protocol, vote, shown, isPeople);
    if (protocol.kind === "place") return [words(protocol).brief(vote === "No" ? 0 : Number(vote) || -1)];
    return [protocol.kind === "score" ? scored(protocol, vote) : vote];
  };

  // A panel at a glance: the first and the last vote of each member; every remark folded.
  const talk = (protocol, row, shown, isPeople) => {
    const [ended, turns] = [row[7], row[8]];
    if (!turns || !turns.length) {
      return ended && ended !== "ok" ? [el("p", { class: "note" }, `The call: ${ended}.`)] : [];
    }
    const votes = new Map();
    for (const [speaker, , vote] of turns) {
      if (vote !== null && vote !== "") votes.set(speaker, [...(votes.get(speaker) || []), vote]);
    }
    const members = [...votes].map(([speaker, cast]) => {
      const last = cast[cast.length - 1];
      return el(
        "tr",
        null,
        el("th", { scope: "row" }, named(speaker)),
        el("td", null, voted(protocol, cast[0], shown, isPeople)),
        el("td", null, el(last === cast[0] ? "span" : "b", null, voted(protocol, last, shown, isPeople))),
      );
    });
    const head = el("thead", null, el("tr", null, ["Member", "first", "last"].map((name) => el("th", { scope: "col" }, name))));
    return [
      turns.length > 1 && members.length ? el("table", { class: "votes" }, el("caption", { class: "hidden" }, "First and last vote of each member"), head, el("tbody", null, members)) : null,
      el(
        "details",
        { class: "talk" },
        el("summary", null, turns.length > 1 ? `All ${turns.length} remarks` : "What was said in the talk"),
        turns.map(([speaker, said, vote, how]) =>
          el(
            "div",
            { class: "turn" },
            el("h4", { "aria-level": 3 }, named(speaker), vote ? [" · votes ", voted(protocol, vote, shown, isPeople)].flat() : "", how === "ok" ? "" : ` · ${how}`),
            text(said),
          ),
        ),
      ),
    ];
  };

  // Keys of a view: they count while it is shown and nobody types; "?" lists them.
  const keys = (view, bound) => {
    const list = el("dl", { class: "keys" }, bound.map(([names, said]) => [el("dt", null, names.map((name) => el("kbd", null, name))), el("dd", null, said)]));
    const box = el("dialog", { "aria-label": "Keys" }, el("h2", null, "Keys"), list, button("Close", () => box.close()));
    document.body.append(box);
    addEventListener("keydown", (event) => {
      const types = event.target.closest?.("input, select, textarea, dialog");
      if (view.hidden || types || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "?") return box.showModal();
      const found = bound.find(([names]) => names.includes(event.key));
      if (!found) return;
      event.preventDefault();
      found[2](event.key);
    });
    return button("Keys", () => box.showModal(), { class: "quiet", title: "Keys: ?" });
  };

  // Steps through what is listed, the address of what is read, and its keys.
  const acts = (what, step, help, more) => [
    button("‹", () => step(-1), { "aria-label": `Previous ${what}`, title: `Previous ${what}` }),
    button("›", () => step(1), { "aria-label": `Next ${what}`, title: `Next ${what}` }),
    more,
    botchat.copier("Link to this", { class: "quiet" }),
    help,
  ];

  // Names all that is shown in the address; whether that was not there, and all begins again.
  const completed = (whole) => {
    const asked = botchat.hash();
    const lacks = Object.entries(whole).some(([name, value]) => (asked[name] || "") !== value);
    if (lacks) botchat.address.set(whole);
    return lacks;
  };

  // A seed of the archive; nothing, where another was asked for meanwhile.
  const latest = (index) => {
    let ticket = 0;
    return async (at) => {
      const mine = (ticket += 1);
      const content = await botchat.seed(index, at);
      return mine === ticket ? content : null;
    };
  };

  // Contestants by number in the order of the chosen judge's board; those not on it come last.
  const inOrder = (index) => {
    const places = new Map(index.contestants.map((name, i) => [name, i]));
    const board = ((about.orders || [])[chosen.judge] || []).filter((name) => places.has(name));
    return [...new Set([...board, ...index.contestants])].map((name) => places.get(name));
  };

  // What takes the place of something that could not be loaded.
  const failed = (place) => (error) => place.replaceChildren(el("p", { class: "warning" }, `This cannot be shown: ${error.message}`));

  // What is shown once the index is there; a part of the page begins when it is first looked at.
  const begin = (place, start) => {
    const view = place?.closest("[data-view]");
    let begun = !view;
    const look = async () => {
      if (begun || view.hidden) return;
      begun = true;
      try {
        const index = await botchat.load("index");
        const byName = new Map(index.contestants.map((name, i) => [name, i]));
        const bySeed = new Map(index.seeds.map(([id], i) => [id, i]));
        start({ place, view, index, byName, bySeed, content: latest(index) });
      } catch (error) {
        failed(place)(error);
      }
    };
    botchat.address.changed(look);
    look();
  };

  return { acts, begin, called, calledNode, compared, completed, failed, inOrder, keys, marked, reported, scored, stamp, talk, utterance, words };
})();
