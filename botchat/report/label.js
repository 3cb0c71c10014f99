"use strict";
// Blind cases, one at a time. Labels stay in this browser, by the digest of the case, until they are
// exported as a file for `botchat label FILE`.
(() => {
  const { set, protocol, cases } = JSON.parse(document.getElementById("about").textContent);
  const at = (id) => document.getElementById(id);
  const store = `botchat-label|${set}|${protocol.name}`;
  const el = (tag, text, more = {}) => Object.assign(document.createElement(tag), { textContent: text }, more);
  const button = (text, onclick, more = {}) => el("button", text, { type: "button", onclick, ...more });

  let labels = {};
  try {
    // A page loaded again at once may find what was stored before its last labels; its history has them.
    labels = { ...JSON.parse(localStorage.getItem(store)), ...history.state };
    at("name").value = localStorage.getItem("botchat-annotator") || "";
  } catch {
    // Nothing is kept here; `keep` says so.
  }
  const order = [];
  const skipped = new Set();
  const keep = () => {
    try {
      localStorage.setItem(store, JSON.stringify(labels));
      history.replaceState(labels, "");
      localStorage.setItem("botchat-annotator", at("name").value);
    } catch {
      at("count").textContent = "This browser keeps nothing: export before you close the page.";
    }
  };
  const current = () => cases.find((one) => !(one.case in labels) && !skipped.has(one.case));

  const answer = (verdict) => {
    const one = current();
    labels[one.case] = verdict;
    order.push(one.case);
    keep();
    show();
  };
  const skip = () => {
    skipped.add(current().case);
    show();
  };
  const undo = () => {
    delete labels[order.pop()];
    keep();
    show();
  };

  const AI = {
    one: "Does an AI take part in this dialogue? Choose its first utterance.",
    pair: "Which of these dialogues involves an AI?",
    human: "Which of these dialogues involves an AI? The other is by people.",
  };
  const SIDES = { 1: "The first", 2: "The second", both: "Both", neither: "Neither" };
  const question = protocol.about_ai ? AI[protocol.shows] : protocol.question;
  const steps = () => {
    const [lowest, highest] = protocol.scale;
    const n = protocol.fields.length === 1 && highest - lowest < 12 ? highest - lowest + 1 : 0;
    return Array.from({ length: n }, (_, i) => [String(lowest + i), String(lowest + i)]);
  };
  // Every kind of answer that people give (`is_labelled` of botchat/protocols/kinds.py). A digit
  // answers: the number of the button, of scores its own (0 is 10, where there is no 0).
  const numbered = { key: (verdict, place) => String(place + 1), text: (text, place) => `${place + 1} ${text}` };
  const KINDS = {
    place: { ...numbered, places: true, choices: () => [["No", protocol.about_ai ? "No AI" : "Nowhere"], ["Undecided", "Cannot tell"]] },
    choice: { ...numbered, choices: () => protocol.answers.map(({ verdict, label }) => [verdict, protocol.about_ai ? SIDES[verdict] : label]) },
    score: { key: (verdict) => (verdict === "10" ? "0" : verdict), text: (text) => text, choices: steps },
  };
  const kind = KINDS[protocol.kind];
  const choices = kind.choices();
  const keys = Object.fromEntries(choices.map(([verdict], i) => [kind.key(verdict, i), verdict]).reverse());

  const numbers = () => {
    const [min, max] = protocol.scale;
    const inputs = protocol.fields.map((name) => el("input", "", { type: "number", min, max, step: 0.1, required: true, ariaLabel: name }));
    const save = () => {
      if (inputs.every((input) => input.reportValidity())) answer(inputs.map((input) => String(Math.round(10 * input.value) / 10)).join(" "));
    };
    for (const input of inputs) input.addEventListener("keydown", ({ key }) => key === "Enter" && save());
    const fields = inputs.map((input, i) => {
      const field = el("label", `${protocol.fields[i]} (${min} to ${max}) `);
      field.append(input);
      return field;
    });
    return [...fields, button("Save", save)];
  };

  const dialogue = (utterances) => {
    const list = el("ol", "");
    utterances.forEach((text, i) => {
      const line = el("li", text, { dir: "auto" });
      if (kind.places) {
        Object.assign(line, { className: "can", tabIndex: 0, onclick: () => answer(String(i + 1)) });
        line.addEventListener("keydown", ({ key }) => key === "Enter" && answer(String(i + 1)));
      }
      list.append(line);
    });
    return list;
  };

  const show = () => {
    const one = current();
    const n = cases.filter((each) => each.case in labels).length;
    Object.assign(at("done"), { max: cases.length, value: n });
    at("count").textContent = `${n} of ${cases.length}`;
    at("question").textContent = one ? question : n < cases.length ? "The rest is skipped." : "All labelled. Export, and send the file to whoever asked you.";
    at("dialogues").replaceChildren(...(one ? one.dialogues.map(dialogue) : []));
    const buttons = choices.map(([verdict, text], i) => button(kind.text(text, i), () => answer(verdict)));
    const asked = buttons.length ? buttons : numbers();
    at("answers").replaceChildren(
      ...(one ? [...asked, button("Skip (s)", skip)] : []),
      button("Undo (u)", undo, { disabled: !order.length }),
    );
    scrollTo(0, 0);
  };

  addEventListener("keydown", ({ key, target, ctrlKey, metaKey, altKey }) => {
    if (target.tagName === "INPUT" || ctrlKey || metaKey || altKey) return;
    if (key === "u" && order.length) undo();
    else if (!current()) return;
    else if (key === "s") skip();
    else if (key in keys) answer(keys[key]);
  });
  // Another tab of this page goes on with the same labels.
  addEventListener("storage", ({ key, newValue }) => {
    if (key !== store) return;
    labels = JSON.parse(newValue) || {};
    history.replaceState(labels, "");
    show();
  });
  at("name").addEventListener("change", keep);
  at("export").addEventListener("click", () => {
    const name = at("name").value.trim();
    if (!name) {
      at("name").focus();
      return;
    }
    const lines = cases
      .filter((each) => each.case in labels)
      .map((each) => JSON.stringify({ protocol: protocol.name, seed_id: each.seed_id, judge: `human:${name}`, verdict: labels[each.case], case: each.case }));
    const url = URL.createObjectURL(new Blob(lines.map((line) => `${line}\n`)));
    el("a", "", { href: url, download: `${set}-${protocol.name}.jsonl` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  });
  show();
})();
