// Utterances with their marks, verdicts in words, a panel's talk, calls, keys. The reader and the
// comparison of two are made of these.
botchat.dialogues = (() => {
  const { about, button, copyLink, el, named, numbers, result, seed } = botchat;
  const LONG = 4000;
  const MARKS = { lose: "✕ ", win: "✓ ", none: "– " };

  // A long name loses "-instruct" first, then its end.
  const short = (name, most) => {
    const letters = [...(name.length > most ? name.replace(/-instruct$/i, "") : name)];
    return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : letters.join("");
  };
  const nameOf = (index, i, most = 34) =>
    el("bdi", { class: i === index.human ? "human" : null, title: index.contestants[i] }, short(index.contestants[i], most));

  // A verdict on a place in a dialogue, and of none: in full, in a list, and at the utterance.
  const words = (protocol) =>
    protocol.about_ai
      ? { full: (at) => (at > 0 ? `AI from utterance ${at} on` : at ? "AI, not known from where" : "Human to the end"), brief: (at) => (at > 0 ? `at ${at}` : at ? "somewhere" : "human"), verb: "called AI", here: "AI from here on" }
      : { full: (at) => (at > 0 ? `Found from utterance ${at} on` : at ? "Found, not known where" : "Nothing found"), brief: (at) => (at > 0 ? `found at ${at}` : at ? "found somewhere" : "nothing found"), verb: "found", here: "Found from here on" };

  // A score in words: "Empathy 7", of two dialogues "Empathy 7 to 4".
  const scored = (protocol, verdict) => {
    const values = (typeof verdict === "string" ? numbers(verdict) : verdict).map((value) => value ?? "missing");
    const half = protocol.numbers.length;
    return protocol.numbers.map((name, i) => `${name} ${values.length > half ? `${values[i]} to ${values[half + i]}` : values[i]}`).join(", ");
  };

  // Points that are lost; a panel's mean has decimals.
  const points = (lost) => `−${Math.round(10 * lost) / 10}`;

  // Every kind of answer about one dialogue (`Kind` of botchat/interfaces.py). `verdict`: what a code of
  // botchat/report/archive.py says, in words, and the numbers to sort by. `vote`: the same of a member's
  // vote. `filters`: what a list can be narrowed to; "up-0", "down-0" sort it by the first number.
  const KINDS = {
    place: {
      verdict: (protocol, code) => {
        const { brief, full } = words(protocol);
        return { kind: code ? "lose" : "win", brief: brief(code), full: full(code), place: code };
      },
      vote: (protocol, vote) => words(protocol).brief(vote === "No" ? 0 : Number(vote) || -1),
      filters: ({ about_ai }) => (about_ai ? [["lose", "Called AI"], ["win", "Human to the end"]] : [["lose", "Found"], ["win", "Nothing found"]]),
    },
    score: {
      verdict: (protocol, code) => ({ kind: "score", brief: scored(protocol, code), full: scored(protocol, code), numbers: code }),
      vote: (protocol, vote) => scored(protocol, vote),
      filters: ({ numbers: names }) => names.flatMap((name, i) => [[`down-${i}`, `${name}: highest first`], [`up-${i}`, `${name}: lowest first`]]),
    },
    report: {
      verdict: ({ name }, code) =>
        ({ kind: code[0] ? "lose" : "win", brief: code[0] ? points(-code[0]) : "no errors", full: `${name} ${code[0]}`, numbers: code }),
      vote: (protocol, vote) => vote,
      filters: () => [["lose", "With errors"], ["win", "Without errors"], ["up-0", "Most points lost first"]],
    },
  };
  const isReport = ({ kind }) => kind === "report";
  const namesPlace = ({ kind }) => kind === "place";

  const stamp = (kind, text, more) => el(more?.href ? "a" : "span", { class: `stamp ${kind}`, ...more }, MARKS[kind] || "", text);

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

  const paragraph = (text, term = "") => {
    const shown = el("p", { dir: "auto", lang: about.lang });
    const isWhole = text.length <= LONG || (term && text.toLowerCase().indexOf(term) + term.length > LONG);
    shown.append(...marked(isWhole ? text : text.slice(0, LONG), term));
    const more = `… ${(text.length - LONG).toLocaleString("en")} more characters`;
    if (!isWhole) shown.append(" ", button(more, () => shown.replaceChildren(...marked(text, term))));
    return shown;
  };

  const EVIDENCE = { elsewhere: "from another utterance", "not found": "not in the dialogue" };

  // One error of a report: its type, the words quoted, whether they are there, and why.
  const error = (index, by, { type, quote, evidence, explanation }) =>
    el("p", { class: "error" },
      el("b", null, index.error_types[type] || type),
      quote ? [": ", el("span", { class: "quote", dir: "auto" }, `“${quote}”`)] : null,
      EVIDENCE[evidence] ? el("b", null, ` (this quote is ${EVIDENCE[evidence]})`) : null,
      explanation ? el("span", { dir: "auto" }, ` – ${explanation}`) : null,
      by ? [" · ", named(by)] : null);

  // Errors by utterance, 0 for those that name none; who found them where that is not the judge,
  // and in which protocol where there are several. All reports, or those of one protocol.
  const reported = (index, content, a, only) => {
    const several = !only && index.about.filter(isReport).length > 1;
    const found = { scores: [], at: {} };
    for (const { judge, protocol, contestants, verdict: score, speakers } of content.verdicts) {
      const { name } = index.about[protocol];
      if (!speakers || contestants[0] !== a || (only && name !== only)) continue;
      found.scores.push({ judge, name, score });
      for (const speaker of speakers) {
        const who = speakers.length > 1 ? speaker.name : judge === about.judge ? "" : index.judges[judge].name;
        const by = [who, several ? name : ""].filter(Boolean).join(", ");
        for (const each of speaker.errors) (found.at[each.utterance || 0] ||= []).push(error(index, by, each));
      }
    }
    return found;
  };

  // What a model was sent for an utterance: it speaks as the assistant, the other side is the user.
  const prompted = (line, dialogue, i) => {
    const open = line.nextSibling;
    if (open?.className === "asked") return open.remove();
    const from = dialogue.dropped[i + 1] || 0;
    const said = dialogue.utterances.slice(from, i).map((text, k) => `${(i - from - k) % 2 ? "user" : "assistant"}: ${text}`);
    const system = "system: the prompt of dialogue generation (Prompts, below the ranking), or the model’s own system_prompt";
    return line.after(el("li", { class: "asked" }, el("pre", { tabindex: 0 }, [system, ...said].join("\n"))));
  };

  // options: errors (index -> nodes), firstAi (index), words, others (index -> judges),
  // human (the whole dialogue is human), term (searched for), prompts (of utterances can be seen)
  const utterance = (dialogue, i, options) => {
    const at = i + 1;
    const isFirstAi = at === options.firstAi;
    const isHuman = i < dialogue.begun || options.human;
    const marks = [];
    const dropped = dialogue.dropped[at];
    const title = "They did not fit the model's context window";
    if (dropped) marks.push(el("li", { title }, `– ${dropped} oldest not in the prompt`));
    if (dialogue.outcomes[at]) marks.push(el("li", null, `– ${dialogue.outcomes[at]}`));
    for (const who of options.others?.[at] || []) marks.push(el("li", null, `✕ ${options.words.verb} by `, named(who)));
    return el("li",
      { class: ["AB"[i % 2], isHuman ? "seed" : "", isFirstAi ? "first-ai" : ""].filter(Boolean).join(" "), "data-at": at },
      el("div", { class: "bubble" },
        isFirstAi ? el("span", { class: "here" }, options.words.here) : null,
        paragraph(dialogue.utterances[i], options.term),
        options.errors?.[at]),
      options.prompts && !isHuman
        ? button([el("span", { class: "hidden" }, "utterance "), String(at)], ({ currentTarget }) => prompted(currentTarget.parentElement, dialogue, i), { class: "no", title: "Its prompt" })
        : el("span", { class: "no" }, el("span", { class: "hidden" }, isHuman ? "human, utterance " : "utterance "), String(at)),
      marks.length ? el("ul", { class: "flags", "aria-label": "Marks" }, marks) : null);
  };

  // Who a verdict on two dialogues is for, in words. `names`: nodes of the two names as shown.
  const compared = (protocol, verdict, names) => {
    if (verdict === null) return ["unreadable"];
    const who = result(protocol, verdict);
    const winner = { win: 0, lose: 1 }[who];
    const best = winner === undefined ? null : names[winner]();
    if (protocol.numbers.length) {
      const values = numbers(verdict);
      const half = protocol.numbers.length;
      const each = protocol.numbers.map((name, i) => [i ? "; " : "", `${name}: `, names[0](), ` ${values[i]}, `, names[1](), ` ${values[half + i]}`]);
      return [best ? [best, " wins"] : "tie", " (", each, ")"];
    }
    if (protocol.about_ai) return best ? [best, " is more human"] : [verdict === "both" ? "tie: both are AI" : "tie: neither is AI"];
    const answer = protocol.answers.find((each) => each.verdict === verdict);
    return [best ? [best, " wins"] : who, ` (“${answer ? answer.label : verdict}”)`];
  };

  // How a member of a panel voted, in words.
  const voted = (protocol, vote, names) =>
    protocol.shows === "one" ? KINDS[protocol.kind].vote(protocol, vote) : compared(protocol, vote, names);

  // A panel at a glance: the first and the last vote of each member; every remark folded.
  const talk = (protocol, given, names) => {
    const turns = given.remarks;
    if (!turns.length) return given.outcome === "ok" ? [] : [el("p", { class: "note" }, `The call: ${given.outcome}.`)];
    const votes = new Map();
    for (const { speaker, verdict } of turns) if (verdict) votes.set(speaker, [...(votes.get(speaker) || []), verdict]);
    const members = [...votes].map(([speaker, cast]) =>
      el("tr", null, el("th", { scope: "row" }, named(speaker)), [cast[0], cast.at(-1)].map((vote) => el("td", null, voted(protocol, vote, names)))));
    const head = ["Member", "first vote", "last vote"].map((name) => el("th", { scope: "col" }, name));
    const remarks = turns.map(({ speaker, text, verdict, outcome: how }) =>
      el("div", { class: "turn" },
        el("h4", { "aria-level": 3 }, named(speaker), verdict ? [" · votes ", voted(protocol, verdict, names)] : "", how === "ok" ? "" : ` · ${how}`),
        paragraph(text)));
    return [
      turns.length > 1 && members.length ? el("table", { class: "votes" }, el("thead", null, el("tr", null, head)), el("tbody", null, members)) : null,
      el("details", { class: "talk" }, el("summary", null, turns.length > 1 ? `All ${turns.length} remarks` : "The reply"), remarks),
    ];
  };

  // The calls of a verdict as the ledger has them, loaded when they are opened.
  const calls = (index, content, at, verdict) => {
    if (!index.calls || !verdict) return null;
    const amount = (tokens, usd) => [tokens === null ? "tokens unknown" : `${tokens.toLocaleString("en")} tokens`, usd === null ? "price unknown" : `USD ${Number(usd.toPrecision(3))}`].join(", ");
    const box = el("details", { class: "calls" }, el("summary", null, "Prompt and reply"));
    const asked = [...document.querySelectorAll("data.asked")].filter(({ value }) => verdict.judge === about.judge && value === index.about[verdict.protocol].name);
    const parameters = asked.map(({ textContent }) => el("p", { class: "note" }, textContent));
    box.addEventListener("toggle", async () => {
      const all = (await seed(index, at, "calls"))[content.verdicts.indexOf(verdict)];
      box.replaceChildren(box.firstChild, ...parameters, all.length ? "" : "The ledger does not have this call.", ...all.map(({ messages, reply, tokens, usd }) =>
        el("div", null, el("p", { class: "note" }, amount(tokens, usd)),
          [...messages, { role: "reply", text: reply }].map(({ role, text }) => [el("b", null, role), el("pre", { tabindex: 0 }, text)]))));
    }, { once: true });
    return box;
  };

  // Keys of a view: they count while it is shown and nobody types; "?" lists them.
  const keys = (view, bound) => {
    const list = bound.map(([names, text]) => [el("dt", null, names.map((name) => el("kbd", null, name))), el("dd", null, text)]);
    const box = el("dialog", { "aria-label": "Keys" }, el("h2", null, "Keys"), el("dl", null, list), button("Close", () => box.close()));
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
    return button("?", () => box.showModal(), { class: "quiet", title: "Keys: ?", "aria-label": "Keys" });
  };

  // What is read as text to paste, and as a page of its own to keep.
  const keeps = (what) => [
    button("Copy text", async ({ target }) => {
      const lines = [...what().querySelectorAll("h3, .verdict, .reason, .said, .part, h4, .bubble p")].map((each) => each.textContent.trim());
      await navigator.clipboard.writeText(lines.join("\n")).catch(() => {});
      target.textContent = "Copied";
      setTimeout(() => (target.textContent = "Copy text"), 2000);
    }, { class: "quiet" }),
    button("Save page", () => {
      const whole = `<!doctype html><meta charset="utf-8">${document.querySelector("style").outerHTML}${what().outerHTML}${el("p", null, location.href).outerHTML}`;
      const url = URL.createObjectURL(new Blob([whole], { type: "text/html" }));
      el("a", { href: url, download: `${document.title}.html` }).click();
      setTimeout(() => URL.revokeObjectURL(url), 10000);
    }, { class: "quiet" }),
  ];

  // Steps through what is listed, the address of what is read, and its keys.
  const acts = (what, step, help, more, kept) => [
    button("‹", () => step(-1), { "aria-label": `Previous ${what}`, title: `Previous ${what}` }),
    button("›", () => step(1), { "aria-label": `Next ${what}`, title: `Next ${what}` }),
    more,
    copyLink(),
    keeps(kept),
    help,
  ];

  // Names all that is shown in the address; whether that was not there, and all begins again.
  const completed = (whole) => {
    const asked = botchat.address.all();
    const lacks = Object.entries(whole).some(([name, value]) => (asked[name] || "") !== value);
    if (lacks) botchat.address.set(whole);
    return lacks;
  };

  // A seed of the archive; nothing, where another was asked for meanwhile.
  const latest = (index) => {
    let ticket = 0;
    return async (at) => {
      const mine = (ticket += 1);
      const content = await seed(index, at);
      return mine === ticket ? content : null;
    };
  };

  // What most human annotators say, next to the judge's verdict: whether it is wrong.
  const annotators = (index) => [...index.judges.keys()].filter((i) => index.judges[i].name.startsWith("human:"));
  const isWrong = (verdict, labels) => {
    const known = labels.filter((label) => label && label !== "none");
    const other = known.filter((label) => label !== verdict).length;
    return verdict && verdict !== "none" && other > known.length / 2;
  };

  // Contestants by number in the order of the board; those not on it come last.
  const inOrder = (index) => {
    const places = new Map(index.contestants.map((name, i) => [name, i]));
    return [...new Set([...about.order.filter((name) => places.has(name)), ...index.contestants])].map((name) => places.get(name));
  };

  // What takes the place of something that could not be loaded.
  const failed = (place) => (error) => place.replaceChildren(el("p", { class: "warning" }, `This cannot be shown: ${error.message}`));

  // What is shown once the index is there; a part of the page begins when it is first looked at.
  const begin = (id, start) => {
    const place = document.getElementById(id);
    const view = place?.closest("[data-view]");
    let begun = !view;
    const look = async () => {
      if (begun || view.hidden) return;
      begun = true;
      try {
        const index = await botchat.load("index");
        const byName = new Map(index.contestants.map((name, i) => [name, i]));
        const bySeed = new Map(index.seeds.map(({ id }, i) => [id, i]));
        start({ place, view, index, byName, bySeed, contentOf: latest(index) });
      } catch (error) {
        failed(place)(error);
      }
    };
    botchat.address.changed(look);
    look();
  };

  return { KINDS, acts, annotators, begin, calls, compared, completed, failed, inOrder, isReport, isWrong, keys, marked, nameOf, namesPlace, points, reported, short, stamp, talk, utterance, words };
})();
