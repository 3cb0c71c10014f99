// Blind cases, one on the screen at a time. Names and verdicts are in chunks of their own, which are
// loaded after the last answer; whoever goes on then gets a new document, which knows nothing again.
(() => {
  const { about, el, kept, load, labels } = botchat;
  const BOARD = labels.person ? location.href : "index.html";
  const MOST_BUTTONS = 11;
  const stage = document.getElementById("game");
  const query = new URLSearchParams(location.search);
  const theme = kept("botchat-theme");
  if (theme) document.documentElement.dataset.theme = theme;

  // ------------------------------------------------------------------------- what is asked for
  const protocolOf = (name) => about.protocols.find((one) => one.name === name);
  const find = (kind, name) => about.lists.findIndex((one) => one[0] === kind && one[1] === name);
  const offered = [...new Set(about.lists.map(([, name]) => name).filter(Boolean))];

  // Cases `from` to `to` of a list: a deal, or all of them (`open`). Else what is wrong.
  const wanted = () => {
    const open = query.has("label") || query.has("plan");
    if (query.has("plan")) {
      const list = find("plan", "");
      if (list >= 0) return { list, open, from: 0, to: about.lists[list][2] };
      throw new Error(`There is no label plan in this page; make one with botchat label plan --seeds ${about.set}, and then the page again.`);
    }
    const asked = query.get("protocol");
    const name = asked ? offered.find((one) => one === asked) || offered.find((one) => protocolOf(one).base === asked) : offered[0];
    if (!name) throw new Error(`There are no cases of ${asked || "any protocol"} in this page; there are: ${offered.join(", ") || "none"}.`);
    const deals = open ? -1 : find("deals", name);
    const list = deals < 0 ? find("all", name) : deals;
    if (list < 0) throw new Error(`No judge was asked ${name} in this page, so there is nothing to label.`);
    const cases = about.lists[list][2];
    if (open) return { name, list, open, from: 0, to: cases };
    const last = Math.max(1, Math.floor(cases / about.ten));
    const said = query.get("deal");
    const deal = Number(said);
    if (said !== null && !(Number.isInteger(deal) && deal >= 1 && deal <= last)) throw new Error(`There is no deal ${said} here; there are deals 1 to ${last}.`);
    return { name, list, open, last, isCut: deals >= 0, ...dealt(deal || 1, cases) };
  };
  const dealt = (deal, cases) => ({ deal, from: (deal - 1) * about.ten, to: Math.min(cases, deal * about.ten) });

  const here = (parts) => {
    const rater = query.get("rater");
    return `game.html?${new URLSearchParams({ ...(rater ? { rater } : {}), ...parts })}`;
  };

  const caseAt = async (at) => {
    const chunk = await load(`game-${chosen.list}-${Math.floor(at / about.per_chunk)}`);
    const [p, seed, key, said, by] = chunk[at % about.per_chunk];
    const protocol = about.protocols[p];
    return { at, protocol, seed, key, said, by, id: labels.id(protocol.name, seed, key) };
  };

  // ----------------------------------------------------------------------------------- the play
  let chosen = null;
  let current = null;
  let turn = 0;
  let history = [];
  const skipped = new Set();

  // Of a deal a place is asked in two steps: people or a machine, then which line gave it away.
  let asksWhere = false;
  const where = () => {
    asksWhere = true;
    show(current, current.at - chosen.from);
  };
  const answer = (verdict) => {
    if (!current) return;
    const { id, protocol, seed, key, said } = current;
    const label = { protocol: protocol.name, seed_id: seed, verdict, shown: said[0].length, case: key };
    labels.put(id, chosen.isCut ? { ...label, isCut: true } : label);
    if (!chosen.isCut) labels.send([label]);
    history.push(id);
    next();
  };
  // What could not be taken back where it was saved is still said.
  const undo = async () => {
    if (asksWhere) {
      asksWhere = false;
      show(current, current.at - chosen.from);
      return;
    }
    const id = history.pop();
    if (!id) return;
    const label = labels.made[id];
    if (!skipped.delete(id) && label) {
      labels.drop(id);
      if (!label.isCut && !(await labels.send([label], true)) && !label.unsaved) labels.put(id, label);
    }
    next();
  };
  const skip = () => {
    if (!current) return;
    skipped.add(current.id);
    history.push(current.id);
    next();
  };

  const failed = (error) => {
    stage.className = "mid";
    stage.replaceChildren(el("h1", null, "Can you tell?"), el("p", { class: "warning", role: "alert" }, error.message), el("p", { class: "row" }, el("a", { class: "line", href: "game.html" }, "See what there is")));
  };

  // Goes to the first case without an answer. What is pressed while one is loaded is about none.
  const next = async () => {
    current = null;
    asksWhere = false;
    turn += 1;
    const asked = turn;
    try {
      let done = 0;
      let first = null;
      for (let at = chosen.from; at < chosen.to && (chosen.open || !first); at += 1) {
        const one = await caseAt(at);
        if (asked !== turn) return;
        if (labels.made[one.id]) done += 1;
        else if (!skipped.has(one.id)) first ||= one;
      }
      if (!first) {
        await end();
        return;
      }
      current = first;
      show(first, chosen.open ? done : first.at - chosen.from);
    } catch (error) {
      failed(error);
    }
  };

  const answered = async () => {
    const found = [];
    for (let at = chosen.from; at < chosen.to; at += 1) found.push((await caseAt(at)).id);
    return found.filter((one) => labels.made[one]);
  };

  // Of a team nobody is told before all are done.
  const thanks = async () => {
    const n = (await answered()).length;
    stage.className = "mid";
    stage.replaceChildren(
      el("h1", { class: "question", tabindex: "-1" }, `You labelled ${n} of ${chosen.to - chosen.from}`),
      el("p", null, "Whoever asked you will tell who spoke, and what the judges and the others said, when all are done."),
      el("p", { class: "row" }, el("a", { class: "line", href: location.href }, "Go on labelling")),
      labels.status,
    );
    stage.querySelector("h1").focus({ preventScroll: true });
  };

  const end = async () => {
    current = null;
    turn += 1;
    if (labels.person) {
      await thanks();
      return;
    }
    const told = [];
    for (let at = chosen.from; at < chosen.to; at += 1) {
      const one = await caseAt(at);
      const label = labels.made[one.id];
      if (!label) continue;
      const chunk = await load(`answers-${chosen.list}-${Math.floor(at / about.per_chunk)}`);
      const [contestants, exact, verdicts] = chunk.cases[at % about.per_chunk];
      const known = Object.assign(label, { contestants, exact });
      told.push({ protocol: one.protocol, said: one.said, label: known, contestants, verdicts, judges: chunk.judges, human: chunk.human });
    }
    labels.keep();
    stage.className = "mid";
    stage.replaceChildren(...botchat.ending(chosen, told, onwards()));
    stage.querySelector("h1").focus({ preventScroll: true });
    scrollTo(0, 0);
  };

  // A new document: this one knows the answers.
  const onwards = () => {
    const to = (parts, text) => el("a", { class: "line", href: here(parts) }, text);
    if (chosen.open) return to(Object.fromEntries(query), "Go on labelling");
    const deeper = find("all", chosen.name) >= 0 ? to({ protocol: chosen.name, label: 1 }, "Go on labelling") : null;
    return [chosen.deal < chosen.last ? to({ protocol: chosen.name, deal: chosen.deal + 1 }, "Ten more") : null, deeper];
  };

  // ----------------------------------------------------------------------------------- one case
  const HEADS = {
    one: "Does a machine take part in this conversation, and from which utterance on?",
    pair: "Which of these does a machine take part in?",
    human: "One of these was continued by a machine, the other by people. Which is the machine’s?",
  };
  const KEYS = { 1: "1", 2: "2", both: "b", neither: "n" };
  const NAMED = { 1: "The first", 2: "The second", both: "Both", neither: "Neither" };

  const OF_SPEAKERS = { place: "Who of them are machines?", choice: "Which of them is the machine, if any?" };

  const isAi = (asked) => asked.about_ai && asked.kind !== "score";
  const inSteps = (asked) => Boolean(chosen.isCut) && asked.kind === "place";
  const question = (asked) => {
    if (!isAi(asked)) return asked.question;
    if (asked.of_speakers) return OF_SPEAKERS[asked.kind];
    return inSteps(asked) ? (asksWhere ? "Which line gave it away?" : "Who goes on after the second line: people, or a machine?") : HEADS[asked.shows];
  };

  const kbd = (key) => [" ", el("kbd", { "aria-hidden": "true" }, key)];
  const button = (label, key, onclick, classes, disabled) =>
    el(
      "button",
      { type: "button", class: classes, "data-key": key || null, "aria-keyshortcuts": key || null, onclick, disabled },
      label,
      key && key !== label ? kbd(key) : null,
    );
  const choice = (label, key, verdict) => button(label, key, () => answer(verdict), "solid");

  // Where a number is given: what to show, and how to read it (null while there is none).
  const field = (name, asked) => {
    const [lowest, highest] = asked.scale;
    const input = el("input", { type: "number", min: lowest, max: highest, step: 0.1, required: true });
    return {
      node: el("label", null, `${name} (${lowest} to ${highest}) `, input),
      input,
      read: () => (input.value !== "" && input.validity.valid ? String(Math.round(10 * input.value) / 10 || 0) : null),
    };
  };

  // One number on a small scale is a button each; anything else is written, and then saved.
  const scores = (asked) => {
    const [lowest, highest] = asked.scale;
    if (asked.fields.length === 1 && highest - lowest < MOST_BUTTONS) {
      const steps = Array.from({ length: highest - lowest + 1 }, (_, i) => String(lowest + i));
      const keyOf = (step) => (step === "10" && lowest > 0 ? "0" : step.length === 1 ? step : "");
      return [el("b", null, asked.fields[0]), ...steps.map((step) => button(step, keyOf(step), () => answer(step), "line step"))];
    }
    const fields = asked.fields.map((name) => field(name, asked));
    const done = () => {
      const given = fields.map((one) => one.read());
      const open = given.indexOf(null);
      if (open < 0) answer(given.join(" "));
      else fields[open].input.reportValidity();
    };
    for (const { input } of fields) {
      input.addEventListener("keydown", (event) => {
        if (event.key === "Enter") done();
      });
    }
    return [...fields.map((one) => one.node), button("Save", "", done, "solid")];
  };

  // The letters of those who speak, in the order in which they first do.
  const speakers = ({ said, by }) => [...new Set(by?.[0]?.length ? by[0] : said[0].map((_, at) => "AB"[at % 2]))];

  // One of the speakers is named, or each is a person, a machine, or hard to tell.
  const named = (one) => {
    const letters = speakers(one);
    if (one.protocol.kind === "choice") {
      const some = letters.map((letter, i) => choice(`Speaker ${letter}`, String(i + 1), String(i + 1)));
      return [...some, choice(isAi(one.protocol) ? "None of them" : one.protocol.none, "n", "neither")];
    }
    const said = letters.map(() => "");
    return letters.flatMap((letter, i) => {
      const each = Object.entries({ No: "person", Yes: "machine", Undecided: "cannot tell" }).map(([word, label]) =>
        button(label, "", (event) => {
          for (const other of each) other.classList.toggle("solid", other === event.currentTarget);
          said[i] = word;
          if (said.every(Boolean)) answer(said.join(" "));
        }, "line"));
      return [el("b", null, `Speaker ${letter}`), ...each];
    });
  };

  // `who`: the letters of the speakers, where two do not take turns.
  const utterance = (asked, text, at, who) => {
    const letter = who?.[at] ?? "AB"[at % 2];
    const body = [el("span", { class: "number" }, who?.length || asked.of_speakers ? `${letter} ${at + 1}` : at + 1), el("span", { class: "said", dir: "auto" }, text)];
    const isPeoples = chosen.isCut && at < 2;
    return el(
      "li",
      { class: letter === "B" ? "B" : "A" },
      asked.kind === "place" && !asked.of_speakers && !isPeoples && (asksWhere || !inSteps(asked))
        ? el("button", { type: "button", class: "bubble", onclick: () => answer(String(at + 1)) }, body)
        : el("div", { class: isPeoples ? "bubble people" : "bubble" }, body),
    );
  };

  const bar = (place) => {
    const n = chosen.to - chosen.from;
    const counted = chosen.open ? `${place.toLocaleString("en")} labelled of ${n.toLocaleString("en")} cases` : `Case ${place + 1} of ${n}`;
    const pips = Array.from({ length: n }, (_, i) => el("i", { class: i < place ? "done" : i === place ? "here" : null }));
    return el(
      "header",
      { class: "bar" },
      chosen.open ? null : el("span", { class: "pips", "aria-hidden": "true" }, pips),
      el("span", { class: "counted", "aria-live": "polite" }, counted),
      chosen.open ? button("Finish", "", () => end().catch(failed), "line") : null,
      el("button", { type: "button", class: "plain", onclick: () => leaving.showModal() }, "Leave", kbd("Esc")),
    );
  };

  const show = (one, place) => {
    const asked = one.protocol;
    const chat = (said, i) => el("ol", { class: "chat" }, said.map((text, at) => utterance(asked, text, at, one.by?.[i])));
    const answers = {
      place: () => {
        const nowhere = choice(isAi(asked) ? "People, all of it" : "Nowhere", isAi(asked) ? "h" : "n", "No");
        if (!inSteps(asked)) return [nowhere];
        return asksWhere ? [choice("No single line", "n", "Yes")] : [nowhere, button("A machine", "m", where, "solid")];
      },
      choice: () => asked.answers.map(([verdict, label]) => choice(isAi(asked) ? NAMED[verdict] : label, KEYS[verdict], verdict)),
      score: () => scores(asked),
      named: () => named(one),
    }[asked.of_speakers ? "named" : asked.kind]();
    const hint = `or choose ${inSteps(asked) ? "the line" : isAi(asked) ? "the machine’s first utterance" : "the utterance"}`;
    stage.className = one.said.length > 1 ? "play two" : "play";
    stage.replaceChildren(
      bar(place),
      el("h1", { class: "question", tabindex: "-1" }, question(asked)),
      ...(asked.prompt ? [el("details", null, el("summary", null, "What the judges were asked"), el("pre", { tabindex: "0" }, asked.prompt))] : []),
      one.said.length === 1
        ? el("div", null, chosen.isCut ? el("p", { class: "began" }, "Two people begin:") : null, chat(one.said[0], 0))
        : el("div", { class: "columns" }, one.said.map((said, i) => el("section", { "aria-label": `Conversation ${i + 1}` }, el("h2", null, `Conversation ${i + 1}`), chat(said, i)))),
      el(
        "footer",
        { class: "act" },
        el("div", { class: "answers" }, answers),
        asked.kind === "place" && !asked.of_speakers && (asksWhere || !inSteps(asked)) ? el("span", { class: "hint" }, hint, kbd("j"), kbd("k"), kbd("Enter")) : null,
        el("span", { class: "tools" }, chosen.open ? button("Skip", "s", skip, "plain") : null, button("Undo", "u", undo, "plain", !history.length && !asksWhere)),
        labels.status,
      ),
      leaving,
    );
    stage.querySelector("h1").focus({ preventScroll: true });
    scrollTo(0, 0);
  };

  const leaving = el(
    "dialog",
    { "aria-label": "Leave?" },
    el("p", null, `Leave? Your answers stay in ${labels.isServed ? "the workspace" : "this browser"}.`),
    el("p", { class: "row" }, button("Leave", "", () => location.assign(BOARD), "solid"), button("Stay", "", () => leaving.close(), "line")),
  );

  document.addEventListener("keydown", (event) => {
    if (!current || event.ctrlKey || event.metaKey || event.altKey || event.repeat || leaving.open) return;
    if (event.key === "Escape") {
      event.preventDefault();
      leaving.showModal();
      return;
    }
    if (event.target.tagName === "INPUT") return;
    const { kind } = current.protocol;
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    if (step && kind === "place") {
      event.preventDefault();
      const all = [...stage.querySelectorAll("button.bubble")];
      all[Math.min(Math.max(all.indexOf(document.activeElement) + step, 0), all.length - 1)]?.focus();
      return;
    }
    const pressed = event.key.toLowerCase();
    // "n", not any, is "h" too.
    const key = pressed === "n" && kind === "place" && isAi(current.protocol) && !asksWhere ? "h" : pressed;
    const found = [...stage.querySelectorAll("button[data-key]")].find((one) => one.dataset.key === key && !one.disabled);
    if (found) {
      event.preventDefault();
      found.click();
    }
  });

  // ---------------------------------------------------------------------------------- the start
  const others = () => {
    const to = (parts, text) => el("a", { href: here(parts) }, text);
    const of = (name) =>
      el("li", null, `${protocolOf(name).title}: `, to({ protocol: name }, "ten cases"), find("all", name) < 0 ? null : [" · ", to({ protocol: name, label: 1 }, "label on")]);
    const plan = find("plan", "");
    return el("details", null, el("summary", null, "Other questions, and longer"), el("ul", null, offered.map(of), plan < 0 ? null : el("li", null, to({ plan: 1 }, `the label plan (${about.lists[plan][2]} cases)`))));
  };

  const TOLD = {
    deal: [
      `Ten conversations. Some were written ${about.people} from beginning to end. In the others a machine takes over after the second line and speaks both parts. All are cut short, by chance.`,
      "Say which is which, and what gave it away. The judges of this leaderboard were asked the same; you see their score beside yours at the end, and not before.",
    ],
    pairs: ["The judges of this leaderboard were asked the same; what they said you see beside your answers at the end, and not before."],
    open: [
      "The judges were asked the same, in the same words; the order is the same for everybody. Who speaks and what the judges said is told when you finish.",
      labels.isServed ? "Each label is saved in the workspace at once, under your name." : "Labels are kept in this browser under your name until you export them.",
    ],
  };
  const told = () => {
    const { name, open, isCut, from, to } = chosen;
    const n = to - from;
    if (isCut && n === about.ten) return TOLD.deal;
    const what = name ? question(protocolOf(name)) : "drawn to be labelled.";
    return [`${n.toLocaleString("en")} cases: ${what}`, ...(open ? TOLD.open : TOLD.pairs)];
  };

  // Without a number the first deal that is not answered yet; what is answered can be undone.
  const start = async () => {
    const [, , cases] = about.lists[chosen.list];
    if (!chosen.open) {
      history = await answered();
      while (!query.has("deal") && history.length === chosen.to - chosen.from && chosen.deal < chosen.last) {
        Object.assign(chosen, dealt(chosen.deal + 1, cases));
        history = await answered();
      }
    }
    next();
  };

  const intro = () => {
    const { open, isCut } = chosen;
    const asked = chosen.name && protocolOf(chosen.name);
    const name = el("input", { type: "text", id: "rater", maxlength: 60, autocomplete: "off", readonly: Boolean(labels.person), value: labels.person || query.get("rater") || kept("botchat-rater") });
    const go = () => {
      if (open && !labels.fold(name.value)) {
        labels.say("Give your name first; the file is written as human:name.");
        name.focus();
        return;
      }
      labels.enter(name.value);
      labels.say("");
      start().catch(failed);
    };
    name.addEventListener("keydown", (event) => {
      if (event.key === "Enter") go();
    });
    stage.className = "mid";
    stage.replaceChildren(
      el("h1", null, isCut ? "Can you tell?" : asked ? asked.title : "Label plan"),
      ...told().map((text) => el("p", null, text)),
      el("p", { class: "row name" }, el("label", { for: "rater" }, open ? "Your name" : "Your name (may stay empty)"), name),
      el("p", { class: "row" }, button("Start", "", go, "solid"), isCut ? el("span", { class: "note" }, "about two minutes") : null),
      labels.status,
      labels.person ? null : others(),
      labels.person ? null : el("details", null, el("summary", null, "Labels from another browser"), labels.importer(() => { name.value = labels.who; })),
    );
    if (name.value || !open) stage.querySelector("button.solid").focus();
    else name.focus();
  };

  try {
    chosen = wanted();
    intro();
  } catch (error) {
    failed(error);
  }
})();
