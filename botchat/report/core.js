"use strict";
// What models, seeds and people wrote reaches the page only as text nodes and escaped attributes:
// nothing here parses markup but `fill`, which takes what the page's own template escaped. Links are
// built by `link`, so they always begin with "#".

const botchat = (() => {
  const about = JSON.parse(document.getElementById("about").textContent);
  const waiting = new Map();
  const chunks = new Map();

  const el = (tag, attributes, ...children) => {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === undefined || value === null || value === false) continue;
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.flat(2).filter((child) => child !== null && child !== undefined));
    return node;
  };

  const named = (text) => el("bdi", null, text);

  const link = (parts) => `#${new URLSearchParams(Object.entries(parts).filter(([, value]) => value))}`;

  // A button, with a word for what is drawn on it.
  const button = (label, onclick, more) => el("button", { type: "button", onclick, ...more }, label);

  // A choice; `entries`: value and words of each.
  const offer = (control, entries, value) => {
    control.replaceChildren(...entries.map(([key, words]) => el("option", { value: key }, words)));
    if (value !== undefined) control.value = value;
    return control;
  };
  const choice = (label, entries = []) => offer(el("select", { "aria-label": label }), entries);

  const hash = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

  // Chunks call this: a page from disk may run scripts beside it, but not fetch them.
  const take = (name, packed) => {
    const asked = waiting.get(name);
    if (asked) asked(packed);
  };

  const unpack = async (packed) => {
    const bytes = Uint8Array.from(atob(packed), (char) => char.charCodeAt(0));
    const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(inflated).text());
  };

  const load = (name) => {
    if (!chunks.has(name)) {
      const packed = new Promise((resolve, reject) => {
        waiting.set(name, resolve);
        const script = el("script", { src: `${about.chunks}/${name}.js` });
        script.addEventListener("error", () => {
          chunks.delete(name);
          reject(new Error(`${about.chunks}/${name}.js is not beside this page`));
        });
        document.head.append(script);
      });
      chunks.set(name, packed.then(unpack));
    }
    return chunks.get(name);
  };

  const seed = async (index, at) => {
    const chunk = await load(`seeds-${Math.floor(at / index.per_chunk)}`);
    return chunk[at % index.per_chunk];
  };

  // Said where a link does not fit this page; nothing takes the place of what was asked for in
  // silence. Gone with the next address.
  const wrongLink = (text) => {
    const place = document.getElementById("wrong-link");
    place.textContent = text;
    place.hidden = !text;
  };

  // The state of the page is its address: what is at its default is not in it. `set` changes some
  // parts, an empty one goes; with `step` the browser's Back leads here again.
  const tellers = [];
  const tell = () => {
    wrongLink("");
    tellers.forEach((one) => one());
  };
  const address = {
    get: (key) => hash()[key] || "",
    set(parts, step = false) {
      const now = location.hash.includes("=") ? { ...hash(), ...parts } : parts;
      const next = link(now);
      if (next === (location.hash || "#")) return;
      if (step) history.pushState(null, "", next);
      else history.replaceState(null, "", next);
      tell();
    },
    changed: (one) => tellers.push(one),
  };
  addEventListener("hashchange", tell);
  addEventListener("popstate", tell);

  // What is done to the page is done to the parts of the other judges, too, when they are here.
  const dressers = [];
  const dress = (one) => {
    dressers.push(one);
    one(document.body);
  };
  const fill = async (which) => {
    const empty = (part) => !part.firstElementChild;
    if (![...document.querySelectorAll(`[data-view] > [data-judge="${which}"]`)].some(empty)) return;
    for (const [view, markup] of Object.entries(await load(`judge-${which}`))) {
      const part = document.querySelector(`#${view} > [data-judge="${which}"]`);
      if (!empty(part)) continue;
      part.innerHTML = markup;
      dressers.forEach((one) => one(part));
    }
  };

  // The judge whose numbers are shown, by its place; listeners are told when it changes.
  const listeners = [];
  let judge = 0;
  const settle = () => {
    const asked = address.get("judge");
    const found = about.judges.indexOf(asked);
    if (asked && found < 0) wrongLink(`No judge ${asked} is on this page; shown is ${about.judges[0]}.`);
    if (judge === Math.max(found, 0)) return;
    judge = Math.max(found, 0);
    listeners.forEach((one) => one());
    fill(judge).catch((error) => wrongLink(`This judge cannot be shown: ${error.message}.`));
  };
  address.changed(settle);
  const chosen = {
    get judge() {
      return judge;
    },
    set judge(value) {
      address.set({ judge: value ? about.judges[value] : "" });
    },
    // For links: the first judge goes without saying.
    get part() {
      return judge ? { judge: about.judges[judge] } : {};
    },
    changed: (one) => listeners.push(one),
    settle,
  };

  // The numbers of a score.
  const numbers = (verdict) => verdict.split(" ").map((one) => (one === "?" ? null : Number(one)));

  // Who wins a comparison, for the contestant shown first: "win", "tie", "lose" or "none".
  const outcome = (code) => ({ w: "win", t: "tie", l: "lose" })[code] || "none";

  // The same of a verdict. `protocol` is always an entry of the index's `about`.
  const result = (protocol, verdict) => {
    if (protocol.kind !== "score") {
      const answer = protocol.answers.find(([said]) => said === verdict);
      return outcome(answer && answer[2]);
    }
    if (verdict === null) return "none";
    const given = numbers(verdict);
    const sum = (part) => part.reduce((all, one) => all + one, 0);
    const lead = sum(given.slice(0, given.length / 2)) - sum(given.slice(given.length / 2));
    return outcome(Math.abs(lead) < 1e-9 ? "t" : lead > 0 ? "w" : "l");
  };

  // Hands text to the browser as a file.
  const save = (name, content) => {
    const url = URL.createObjectURL(new Blob([content], { type: "text/csv" }));
    el("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  };

  // Puts text where one can paste it from; whether it is there.
  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const field = el("textarea", { readonly: true, "aria-label": "Text to copy" }, text);
      document.body.append(field);
      field.select();
      const done = document.execCommand("copy");
      field.remove();
      return done;
    }
  };

  return { about, el, named, link, button, offer, choice, hash, take, load, seed, dress, wrongLink, address, chosen, outcome, numbers, result, save, copy };
})();
