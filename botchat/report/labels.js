// Blind labelling: the judges' cases without names, by keyboard, kept in this browser, exported as
// a judge file of `human:<name>`.
(() => {
  const { about, el, named, load, seed, chosen, percent, numbers, result } = botchat;
  const FEWEST = 5;
  const MOST_BUTTONS = 11;

  // The same order for everyone, so that people label the same cases (mulberry32).
  const shuffled = (items, text) => {
    let state = 2166136261;
    for (const char of text) state = Math.imul(state ^ char.codePointAt(0), 16777619);
    const random = () => {
      state = (state + 0x6d2b79f5) | 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
    for (let i = items.length - 1; i > 0; i -= 1) {
      const j = Math.floor(random() * (i + 1));
      [items[i], items[j]] = [items[j], items[i]];
    }
    return items;
  };

  // Every case that some judge was asked, a pair of dialogues in one of its two orders.
  const casesOf = (index, protocol) => {
    const found = new Map();
    index.judges.forEach((_, who) => {
      for (const [a, codes] of Object.entries((index.single[who] || {})[protocol] || {})) {
        codes.forEach((code, at) => {
          if (code !== null && code !== -2) found.set(`${at}|${a}`, { at, shown: [Number(a)] });
        });
      }
      for (const [key, codes] of Object.entries((index.pairs[who] || {})[protocol] || {})) {
        const shown = key.split(",").map(Number);
        for (let at = 0; at < codes.length; at += 1) {
          if (codes[at] !== "-") found.set(`${at}|${key}`, { at, shown });
        }
      }
    });
    const taken = new Set();
    return shuffled([...found.values()], protocol).filter(({ at, shown }) => {
      const pair = `${at}|${[...shown].sort((x, y) => x - y)}`;
      return !taken.has(pair) && taken.add(pair);
    });
  };

  const sameCase = (row, shown, p) =>
    row[1] === p && row[2].length === shown.length && row[2].every((one, i) => one === shown[i]);

  // Three classes for a comparison, two for a place in a dialogue: what `agree` compares too.
  const category = (asked, verdict) => {
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

  const start = async (place) => {
    const index = await load("index");
    const key = () => `botchat-labels|${about.set}|${who.value.trim()}`;
    let labels = {};
    let queue = [];
    let current = null;
    let history = [];

    const who = el("input", { type: "text", id: "labeller", required: true, maxlength: 60, autocomplete: "off" });
    const protocol = el(
      "select",
      { id: "labelled-protocol" },
      index.about
        .filter(({ name, kind }) => kind !== "report" && [...index.single, ...index.pairs].some((by) => Object.hasOwn(by, name)))
        .map(({ name }) => el("option", { value: name }, name)),
    );
    const question = () => index.about[index.protocols.indexOf(protocol.value)];
    const begin = el("button", { type: "button" }, "Start");
    const save = el("button", { type: "button", disabled: true }, "Export this judge file");
    const state = el("p", { class: "note", "aria-live": "polite" });
    const agreement = el("p", { class: "agreement", "aria-live": "polite" });
    const stage = el("div", { class: "stage" });

    const read = () => {
      try {
        labels = JSON.parse(localStorage.getItem(key()) || "{}");
      } catch {
        labels = {};
      }
    };
    const keep = () => {
      try {
        localStorage.setItem(key(), JSON.stringify(labels));
      } catch {
        state.textContent = "This browser keeps nothing: export before you close the page.";
      }
    };
    const id = (one, name) => JSON.stringify([name, index.seeds[one.at][0], ...one.shown.map((i) => index.contestants[i])]);
    const mine = () => Object.values(labels).filter((label) => label.protocol === protocol.value);

    const report = () => {
      const made = mine();
      save.disabled = made.length === 0;
      state.textContent = `${made.length} labelled of ${queue.length.toLocaleString("en")} cases in ${protocol.value}.`;
      agreement.replaceChildren();
      if (made.length < FEWEST) {
        if (made.length) agreement.textContent = `Agreement with the judges shows from ${FEWEST} labels on.`;
        return;
      }
      const asked = question();
      index.judges.forEach((name) => {
        if (name === `human:${who.value.trim()}`) return;
        const pairs = made
          .filter((label) => label.judges && label.judges[name])
          .map((label) => [label.verdict, label.judges[name]]);
        if (!pairs.length) return;
        const isScore = asked.kind === "score" && asked.shows === "one";
        agreement.append(el("span", null, named(name), isScore ? apart(pairs) : alike(asked, pairs)));
      });
    };

    const apart = (pairs) => {
      const mean = pairs.map(distance).reduce((sum, one) => sum + one, 0) / pairs.length;
      return ` differs from your scores by ${mean.toFixed(1)} on average, in ${pairs.length}. `;
    };

    const alike = (asked, verdicts) => {
      const pairs = verdicts.map((pair) => pair.map((verdict) => category(asked, verdict)));
      const same = pairs.filter(([x, y]) => x === y).length;
      const k = kappa(pairs);
      return ` agrees with you in ${same} of ${pairs.length} (${percent(same, pairs.length)}${k === null ? "" : `, κ ${k.toFixed(2)}`}). `;
    };

    const answer = (verdict) => {
      if (!current) return;
      const { one, row, rows } = current;
      const judges = Object.fromEntries(rows.filter((other) => other[3] !== null).map((other) => [index.judges[other[0]], other[3]]));
      const name = id(one, protocol.value);
      labels[name] = {
        protocol: protocol.value,
        seed_id: index.seeds[one.at][0],
        contestants: one.shown.map((i) => index.contestants[i]),
        verdict,
        shown: row[5],
        case: row[6],
        judges,
      };
      history.push(name);
      keep();
      next();
    };

    const undo = () => {
      const name = history.pop();
      if (name) {
        delete labels[name];
        keep();
        next();
      }
    };

    const skipped = new Set();
    let turn = 0;
    const next = async () => {
      // What is pressed while a case is loaded is about none: it must not change the last answer.
      current = null;
      turn += 1;
      const asked = turn;
      const one = queue.find((each) => !labels[id(each, protocol.value)] && !skipped.has(each));
      if (one) {
        const content = await seed(index, one.at);
        if (asked !== turn) return;
        const p = index.protocols.indexOf(protocol.value);
        const rows = content.verdicts.filter((row) => sameCase(row, one.shown, p));
        current = { one, row: rows[0], rows };
        show(content);
      } else {
        stage.replaceChildren(el("p", { class: "note" }, "No case is left in this protocol."));
      }
      report();
    };

    const choice = (label, keyName, verdict) =>
      el(
        "button",
        { type: "button", "data-key": keyName || null, "aria-keyshortcuts": keyName || null, onclick: () => answer(verdict) },
        label,
        keyName && keyName !== label ? [" ", el("kbd", null, keyName)] : null,
      );

    const HEADS = {
      one: "Does a machine take part in this dialogue, and from which utterance on?",
      pair: "Which of these does a machine take part in?",
      human: "One of these was continued by a machine, the other by people. Which is the machine's?",
    };
    const KEYS = { 1: "1", 2: "2", both: "b", neither: "n" };
    const NAMED = { 1: "The first", 2: "The second", both: "Both", neither: "Neither" };

    // Where a number is given: what to show, and how to read it (null while there is none).
    const field = (name, asked) => {
      const [lowest, highest] = asked.scale;
      const input = el("input", { type: "number", min: lowest, max: highest, step: asked.whole ? 1 : 0.1, required: true });
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
        return [el("b", null, asked.fields[0]), ...steps.map((step) => choice(step, keyOf(step), step))];
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
      return [...fields.map((one) => one.node), el("button", { type: "button", onclick: done }, "Save")];
    };

    const show = (content) => {
      const { one, row } = current;
      const asked = question();
      const said = (which) => content.dialogues[which].said.slice(0, row[5]);
      const tools = [
        el("button", { type: "button", "data-key": "s", "aria-keyshortcuts": "s", onclick: () => { skipped.add(one); next(); } }, "Skip ", el("kbd", null, "s")),
        el("button", { type: "button", "data-key": "u", "aria-keyshortcuts": "u", onclick: undo, disabled: !history.length }, "Undo ", el("kbd", null, "u")),
      ];
      const head = el("h3", { tabindex: "-1" }, asked.about_ai && asked.kind !== "score" ? HEADS[asked.shows] : asked.question);
      const answers = {
        place: () => [choice(asked.about_ai ? "All human" : "Nowhere", "n", "No")],
        choice: () => asked.answers.map(([verdict, label]) => choice(asked.about_ai ? NAMED[verdict] : label, KEYS[verdict], verdict)),
        score: () => scores(asked),
      }[asked.kind]();
      const line = (text, at) => [el("span", { class: "speaker" }, `${at + 1} · ${"AB"[at % 2]}`), text];
      const dialogue = (which) =>
        el("ol", { class: "blind" }, said(which).map((text, at) =>
          el("li", { class: "AB"[at % 2] }, asked.kind === "place"
            ? el("button", { type: "button", class: "bubble", onclick: () => answer(String(at + 1)) }, line(el("span", { class: "said", dir: "auto" }, text), at))
            : el("div", { class: "bubble" }, line(botchat.dialogues.text(text), at)))));
      const wanted = asked.about_ai ? "that is not human" : "that you mean";
      stage.replaceChildren(
        head,
        el("p", { class: "choices" }, answers, tools),
        ...(asked.prompt ? [el("details", null, el("summary", null, "What the judges were asked"), el("pre", { tabindex: "0" }, asked.prompt))] : []),
        ...(asked.kind === "place" ? [el("p", { class: "note" }, `Or choose the first utterance ${wanted}: click it, or move with j and k and press Enter.`)] : []),
        one.shown.length === 1
          ? dialogue(one.shown[0])
          : el("div", { class: "columns" }, one.shown.map((which, i) =>
            el("div", { class: "column" }, el("h4", null, `Conversation ${i + 1}`), dialogue(which)))),
      );
      head.focus({ preventScroll: true });
      if (stage.getBoundingClientRect().top < 0) stage.scrollIntoView();
    };

    stage.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const pressed = event.key.toLowerCase();
      if (pressed === "j" || pressed === "k") {
        const all = [...stage.querySelectorAll("button.bubble")];
        const at = all.indexOf(document.activeElement) + (pressed === "j" ? 1 : -1);
        if (all[at]) all[at].focus();
        return;
      }
      const button = [...stage.querySelectorAll("button[data-key]")].find((one) => one.dataset.key === pressed);
      if (button) {
        event.preventDefault();
        button.click();
      }
    });

    // One line as botchat.records.Judgment reads it.
    const line = (label) => {
      const { base, n } = index.about[index.protocols.indexOf(label.protocol)];
      const judge = `human:${who.value.trim()}`;
      const made = about.version;
      return JSON.stringify({
        protocol: label.protocol,
        seed_id: label.seed_id,
        contestants: label.contestants,
        judge,
        verdict: label.verdict,
        reason: "",
        shown: label.shown,
        case: label.case,
        signature: `botchat:${made}|${base}|set:${about.set}${n ? `|n:${n}` : ""}|judge:${judge}|prompt:blind-page|orders:1`,
        outcome: "ok",
        transcript: [],
        calls: [],
      });
    };

    save.addEventListener("click", () => {
      const body = mine().map(line).join("\n");
      const url = URL.createObjectURL(new Blob([`${body}\n`], { type: "application/jsonl" }));
      const safe = who.value.trim().toLowerCase().replace(/[^a-z0-9]+/g, "-") || "me";
      const anchor = el("a", { href: url, download: `${protocol.value}.human-${safe}.jsonl` });
      document.body.append(anchor);
      anchor.click();
      anchor.remove();
      setTimeout(() => URL.revokeObjectURL(url), 10000);
    });

    const restart = () => {
      if (!who.value.trim()) {
        state.textContent = "Give your name first; the file is written as human:name.";
        who.focus();
        return;
      }
      history = [];
      skipped.clear();
      read();
      queue = casesOf(index, protocol.value);
      next();
    };
    begin.addEventListener("click", restart);
    protocol.addEventListener("change", () => {
      if (queue.length) restart();
    });
    who.addEventListener("input", () => {
      current = null;
      queue = [];
      turn += 1;
      stage.replaceChildren();
      agreement.replaceChildren();
      state.textContent = "";
      save.disabled = true;
    });
    who.addEventListener("keydown", (event) => {
      if (event.key === "Enter") restart();
    });
    chosen.changed(() => {
      if (current) report();
    });

    place.replaceChildren(
      el("p", { class: "tools" }, el("label", { for: "labeller" }, "Your name "), who, el("label", { for: "labelled-protocol" }, "Protocol "), protocol, begin, save),
      state,
      agreement,
      stage,
    );
  };

  const place = document.getElementById("labelling");
  if (!place || !about.folder) return;
  const button = el("button", { type: "button" }, "Label some cases yourself");
  button.addEventListener("click", () => {
    start(place).then(
      () => document.getElementById("labeller").focus(),
      (error) => place.replaceChildren(el("p", { class: "warning" }, `The cases cannot be shown: ${error.message}`)),
    );
  });
  place.replaceChildren(button);
})();
