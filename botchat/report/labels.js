// Blind labelling: the judges' cases without names, by keyboard, kept in this browser, exported as
// a judge file of `human:<name>`.
(() => {
  const { about, el, named, load, seed, chosen, percent, outcome } = botchat;
  const FEWEST = 5;

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
      if (protocol === "unieval") {
        for (const [a, codes] of Object.entries(index.unieval[who] || {})) {
          codes.forEach((code, at) => {
            if (code !== -2) found.set(`${at}|${a}`, { at, shown: [Number(a)] });
          });
        }
        return;
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

  // Three classes for a comparison, two for a dialogue: what `agree` compares too.
  const category = (protocol, verdict) =>
    protocol === "unieval" ? (verdict === "No" ? "human" : "AI") : outcome(verdict);

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
      index.protocols.map((name) => el("option", { value: name }, name)),
    );
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
      index.judges.forEach((name) => {
        if (name === `human:${who.value.trim()}`) return;
        const pairs = made
          .filter((label) => label.judges && label.judges[name])
          .map((label) => [category(label.protocol, label.verdict), category(label.protocol, label.judges[name])]);
        if (!pairs.length) return;
        const same = pairs.filter(([x, y]) => x === y).length;
        const k = kappa(pairs);
        agreement.append(
          el("span", null, named(name), ` agrees with you in ${same} of ${pairs.length} (${percent(same, pairs.length)}${k === null ? "" : `, κ ${k.toFixed(2)}`}). `),
        );
      });
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
      el("button", { type: "button", "data-key": keyName, "aria-keyshortcuts": keyName, onclick: () => answer(verdict) }, label, " ", el("kbd", null, keyName));

    const show = (content) => {
      const { one, row } = current;
      const paired = one.shown.length === 2;
      const said = (which) => content.dialogues[which].said.slice(0, row[5]);
      const tools = [
        el("button", { type: "button", "data-key": "s", "aria-keyshortcuts": "s", onclick: () => { skipped.add(one); next(); } }, "Skip ", el("kbd", null, "s")),
        el("button", { type: "button", "data-key": "u", "aria-keyshortcuts": "u", onclick: undo, disabled: !history.length }, "Undo ", el("kbd", null, "u")),
      ];
      const head = el("h3", { tabindex: "-1" });
      if (!paired) {
        head.textContent = "Does a machine take part in this dialogue, and from which utterance on?";
        stage.replaceChildren(
          head,
          el("p", { class: "choices" }, choice("All human", "n", "No"), tools),
          el("p", { class: "note" }, "Or choose the first utterance that is not human: click it, or move with j and k and press Enter."),
          el("ol", { class: "blind" }, said(one.shown[0]).map((text, i) =>
            el("li", { class: "AB"[i % 2] }, el("button", { type: "button", class: "bubble", onclick: () => answer(String(i + 1)) },
              el("span", { class: "speaker" }, `${i + 1} · ${"AB"[i % 2]}`), el("span", { class: "said", dir: "auto" }, text))))),
        );
      } else {
        head.textContent = protocol.value === "gteval"
          ? "One of these was continued by a machine, the other by people. Which is the machine's?"
          : "Which of these does a machine take part in?";
        stage.replaceChildren(
          head,
          el("p", { class: "choices" }, choice("The first", "1", "1"), choice("The second", "2", "2"), choice("Both", "b", "both"), choice("Neither", "n", "neither"), tools),
          el("div", { class: "columns" }, one.shown.map((which, i) =>
            el("div", { class: "column" }, el("h4", null, `Conversation ${i + 1}`),
              el("ol", { class: "blind" }, said(which).map((text, at) =>
                el("li", { class: "AB"[at % 2] }, el("div", { class: "bubble" }, el("span", { class: "speaker" }, `${at + 1} · ${"AB"[at % 2]}`), botchat.dialogues.text(text)))))))),
        );
      }
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
      const n = label.protocol.match(/^arena-n(\d+)$/);
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
        signature: `botchat:${made}|${label.protocol.split("-")[0]}|set:${about.set}${n ? `|n:${n[1]}` : ""}|judge:${judge}|prompt:blind-page|orders:1`,
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
