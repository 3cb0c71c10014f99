"use strict";
// Texts of models, seeds and humans reach the page only as text nodes and escaped attributes:
// nothing here parses markup. Links are built by `link`, so they always begin with "#".

const botchat = (() => {
  // What the page loads, by name: each function reads a struct of report/contract.py, Page… there, whose
  // fields it lists in their order. Nothing else reads a row by position.
  const every = (read, values) => Object.fromEntries(Object.entries(values).map(([key, value]) => [key, read(value)]));
  const read = {
    about: ({ folder, view, protocols, pages, judge, order, lang, invented }) =>
      ({ folder, view, protocols, pages, judge, order, lang, invented }),
    index: ({ seeds, contestants, human, has_dialogue, judges, about, error_types, per_chunk, calls }) =>
      ({ seeds: seeds.map(read.opening), contestants, human, has_dialogue, judges: judges.map(read.judge), about: about.map(read.protocol), error_types, per_chunk, calls }),
    opening: ([id, text]) => ({ id, text }),
    judge: ({ name, single, pairs, scores }) => ({ name, single, pairs, scores: every((by) => every(read.score, by), scores) }),
    score: ([score, low, high, won, tied, lost, seeds]) => ({ score, low, high, won, tied, lost, seeds }),
    protocol: ({ name, base, title, kind, shows, n, about_ai, question, answers = [], numbers = [], fields = [], scale = [] }) =>
      ({ name, base, title, kind, shows, n, about_ai, question, answers: answers.map(read.answer), numbers, fields, scale }),
    answer: ({ verdict, label, result }) => ({ verdict, label, result }),
    seed: ({ dialogues, verdicts }) => ({ dialogues: dialogues.map((each) => each && read.dialogue(each)), verdicts: verdicts.map(read.verdict) }),
    dialogue: ({ utterances, begun = 2, dropped = {}, outcomes = {}, stopped = "" }) => ({ utterances, begun, dropped, outcomes, stopped }),
    verdict: ([judge, protocol, contestants, verdict, reason, shown, outcome, remarks, speakers]) =>
      ({ judge, protocol, contestants, verdict, reason, shown, outcome, remarks: remarks.map(read.remark), speakers: speakers && speakers.map(read.speaker) }),
    remark: ([speaker, text, verdict, outcome]) => ({ speaker, text, verdict, outcome }),
    speaker: ([name, errors]) => ({ name, errors: errors.map(read.error) }),
    error: ([type, utterance, quote, evidence, explanation]) => ({ type, utterance, quote, evidence, explanation }),
    call: ([messages, reply, tokens, usd]) => ({ messages: messages.map(read.message), reply, tokens, usd }),
    message: ([role, text]) => ({ role, text }),
  };
  const chunk = {
    index: read.index,
    seeds: (seeds) => seeds.map(read.seed),
    calls: (seeds) => seeds.map((verdicts) => verdicts.map((calls) => calls.map(read.call))),
  };

  const about = read.about(JSON.parse(document.getElementById("about").textContent));
  const waiting = new Map();
  const chunks = new Map();

  const el = (tag, attributes, ...children) => {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === undefined || value === null || value === false) continue;
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.flat(3).filter((child) => child !== null && child !== undefined));
    return node;
  };

  const named = (text) => el("bdi", null, text);

  const link = (parts) => `#${new URLSearchParams(Object.entries(parts).filter(([, value]) => value))}`;

  const button = (label, onclick, more) => el("button", { type: "button", onclick, ...more }, label);

  // A choice; `entries`: value and words of each.
  const offer = (control, entries, value) => {
    control.replaceChildren(...entries.map(([key, words]) => el("option", { value: key }, words)));
    if (value !== undefined) control.value = value;
    return control;
  };
  const choice = (label, entries = []) => offer(el("select", { "aria-label": label }), entries);

  // Chunks call this: a page from disk may run scripts next to it, but not fetch them.
  const take = (name, packed) => waiting.get(name)?.(packed);

  const unpack = async (packed) => {
    const bytes = Uint8Array.from(atob(packed), (char) => char.charCodeAt(0));
    const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(inflated).text());
  };

  const load = (name) => {
    if (!chunks.has(name)) {
      const packed = new Promise((resolve, reject) => {
        waiting.set(name, resolve);
        const script = el("script", { src: `${about.folder}/${name}.js` });
        script.addEventListener("error", () => {
          chunks.delete(name);
          reject(new Error(`${about.folder}/${name}.js is not beside this page`));
        });
        document.head.append(script);
      });
      chunks.set(name, packed.then(unpack).then(chunk[name.split("-")[0]]));
    }
    return chunks.get(name);
  };

  // What a kind of chunk has of a seed: dialogues and verdicts ("seeds"), or the calls ("calls").
  const seed = async (index, at, kind = "seeds") => {
    const seeds = await load(`${kind}-${Math.floor(at / index.per_chunk)}`);
    return seeds[at % index.per_chunk];
  };

  // Shown where a link does not fit this page; gone with the next address.
  const wrongLink = (text) => {
    const place = document.getElementById("wrong-link");
    place.textContent = text;
    place.hidden = !text;
  };

  // The state of the page is its address: what is at its default is not in it. `set` changes some
  // parts, an empty one goes; with `step` the browser's Back leads here again.
  const listeners = [];
  const announce = () => {
    wrongLink("");
    listeners.forEach((listener) => listener());
  };
  const address = {
    all: () => Object.fromEntries(new URLSearchParams(location.hash.slice(1))),
    set(parts, step = false) {
      const next = link(location.hash.includes("=") ? { ...address.all(), ...parts } : parts);
      if (next === (location.hash || "#")) return;
      if (step) history.pushState(null, "", next);
      else history.replaceState(null, "", next);
      announce();
    },
    changed: (listener) => listeners.push(listener),
  };
  addEventListener("hashchange", announce);
  addEventListener("popstate", announce);

  // The numbers of a score.
  const numbers = (verdict) => verdict.split(" ").map((number) => (number === "?" ? null : Number(number)));

  // Who wins a comparison, for the contestant shown first: "win", "tie", "lose", "none" where that
  // cannot be read, null where nobody was asked. `letter`: of `_LETTERS` in botchat/report/archive.py.
  const OUTCOMES = { w: "win", t: "tie", l: "lose", "-": null };
  const outcome = (letter) => (letter in OUTCOMES ? OUTCOMES[letter] : "none");

  // The same of a verdict. `protocol` is always an entry of the index's `about`.
  const result = (protocol, verdict) => {
    if (verdict === null) return "none";
    const winner = (lead) => (Math.abs(lead) < 1e-9 ? "tie" : lead > 0 ? "win" : "lose");
    if (protocol.answers.length) {
      const given = protocol.answers.find((answer) => answer.verdict === verdict);
      return given ? winner(given.result - 0.5) : "none";
    }
    const all = numbers(verdict);
    const sum = (part) => part.reduce((total, number) => total + number, 0);
    return winner(sum(all.slice(0, all.length / 2)) - sum(all.slice(all.length / 2)));
  };

  // Puts the address where one can paste it from.
  const copyLink = () => button("Link to this", async ({ target }) => {
    try {
      await navigator.clipboard.writeText(location.href);
      target.textContent = "Copied";
    } catch {
      target.textContent = "Copy it from the address";
    }
    setTimeout(() => (target.textContent = "Link to this"), 2000);
  }, { class: "quiet" });

  return { about, el, named, link, button, offer, choice, take, load, seed, wrongLink, address, outcome, numbers, result, copyLink };
})();
