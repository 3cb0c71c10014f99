"use strict";
// The conversation is kept here; the server is asked for one utterance at a time.
// What models, seeds and people say reaches the page only as text nodes.
(() => {
  const at = (id) => document.getElementById(id);
  const token = document.querySelector("meta[name=botchat-token]").content;
  const most = Number(document.querySelector(".room").dataset.turns);
  const sides = () => [at("a").value, at("b").value];

  let said = []; // {text, by, person, note}
  let turns = most; // where two models stop
  let asking = null; // what stops the question that is out
  let generation = 0; // of the conversation; answers to an earlier one are dropped

  const make = (tag, attributes, ...children) => {
    const node = Object.assign(document.createElement(tag), attributes);
    node.append(...children);
    return node;
  };

  const status = (text, wrong = false) => {
    at("status").textContent = text;
    at("status").classList.toggle("wrong", wrong);
    if (wrong) at("status").scrollIntoView({ block: "nearest" });
  };

  const post = async (path, sent, signal) => {
    let answer;
    try {
      answer = await fetch(path, {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-BotChat-Token": token },
        body: JSON.stringify(sent),
        signal,
      });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Error("botchat view does not answer; start it again and load this page again");
    }
    const told = await answer.json();
    if (!answer.ok) throw new Error(told.error);
    return told;
  };

  const next = () => sides()[said.length % 2];

  const line = (one, index) =>
    make(
      "li",
      { className: `${"AB"[index % 2]}${one.person ? " person" : ""}` },
      make("span", { className: "who" }, `${index + 1} · ${"AB"[index % 2]} · `, make("bdi", { textContent: one.by }), one.note ? ` · ${one.note}` : ""),
      make("p", { textContent: one.text, dir: "auto" }),
    );

  const draw = () => {
    const shown = at("said");
    while (shown.children.length > said.length) shown.lastChild.remove();
    said.slice(shown.children.length).forEach((one) => shown.append(line(one, shown.children.length)));
    const yours = said.length > 0 && next() === "" && !asking;
    const opened = at("you").hidden && yours;
    at("you").hidden = !yours;
    at("tools").hidden = said.length === 0;
    at("stop").disabled = !asking;
    at("on").disabled = Boolean(asking) || next() === "";
    at("again").disabled = Boolean(asking) || said.length === 0 || said.at(-1).person;
    at("save").hidden = said.length < 2;
    pairs();
    if (opened) at("words").focus();
    if (yours && !at("status").classList.contains("wrong")) status("Your turn.");
    if (said.length) at("tools").scrollIntoView({ block: "nearest" });
  };

  const pairs = () => {
    const before = at("pair").value;
    const made = said.slice(1).map((one, i) => {
      const models = [said[i], one].filter((each) => !each.person).length;
      const who = ["", ", one by a model", ", both by models"][models];
      return make("option", { value: String(i), textContent: `${i + 1} and ${i + 2}${who}` });
    });
    at("pair").replaceChildren(...made);
    if (made.some((option) => option.value === before)) at("pair").value = before;
  };

  const count = (spent) => {
    const digits = spent.usd && spent.usd < 1 ? 4 : 2;
    at("usd").textContent = `$${spent.usd.toFixed(digits)}`;
    for (const name of ["calls", "tokens"]) at(name).textContent = spent[name].toLocaleString("en-US");
  };

  // Ask whoever is next, until it is your turn, the end, or Stop; with `instead` only once, for
  // another utterance in its place, which stays where there is no other.
  const run = async (instead = null) => {
    const mine = ++generation;
    stop();
    asking = new AbortController();
    try {
      while (next() !== "" && (said.length < turns || instead)) {
        const model = next();
        const began = Date.now();
        const wait = () => status(`${model} is asked … ${Math.round((Date.now() - began) / 1000)} s`);
        wait();
        draw();
        const ticking = setInterval(wait, 1000);
        let told;
        try {
          told = await post("/talk/say", { model, utterances: said.map((one) => one.text), again: instead !== null }, asking.signal);
        } finally {
          clearInterval(ticking);
        }
        if (mine !== generation) return;
        const notes = [told.replayed && "from the ledger", told.cut && "cut at its limit", told.dropped && `without the first ${told.dropped}, for its window`];
        said.push({ text: told.text, by: model, person: false, note: notes.filter(Boolean).join(", ") });
        count(told.spent);
        if (instead) break;
      }
      status(next() === "" ? "Your turn." : `${said.length} utterances. “Go on” lets them say more.`);
    } catch (error) {
      if (mine !== generation) return;
      if (instead) said.push(instead);
      if (error.name === "AbortError") status("Stopped. What was asked for is kept in the ledger.");
      else status(`✕ ${error.message}`, true);
    }
    asking = null;
    draw();
  };

  const stop = () => asking?.abort();

  at("start").addEventListener("submit", async (event) => {
    event.preventDefault();
    stop();
    const mine = ++generation;
    asking = null;
    let begun;
    try {
      if (at("start").elements.from.value === "seed") {
        const seed = await post("/talk/seed", { id: at("seed").value.trim() });
        begun = seed.utterances.map((text) => ({ text, by: seed.id, person: true }));
      } else {
        begun = [at("own-a").value, at("own-b").value].filter((text, i) => text.trim() || i === 0).map((text) => ({ text, by: "you", person: true }));
        if (!begun[0].text.trim()) {
          at("own-a").focus();
          throw new Error("Write what A says.");
        }
      }
    } catch (error) {
      if (mine === generation) status(`✕ ${error.message}`, true);
      return;
    }
    if (mine !== generation) return;
    said = begun;
    turns = most;
    at("said").replaceChildren();
    at("saved").textContent = "";
    status("");
    draw();
    run();
  });

  at("start").addEventListener("change", () => {
    const own = at("start").elements.from.value === "own";
    at("from-own").hidden = !own;
    at("from-seed").hidden = own;
    if (said.length) draw();
  });

  at("you").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = at("words").value;
    if (!text.trim() || asking) return;
    said.push({ text, by: "you", person: true });
    at("words").value = "";
    turns = Math.max(turns, said.length + 1);
    draw();
    run();
  });

  at("words").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    at("you").requestSubmit();
  });

  at("stop").addEventListener("click", stop);
  at("on").addEventListener("click", () => {
    turns = Math.max(most, said.length + 2);
    run();
  });
  at("again").addEventListener("click", () => run(said.pop()));
  at("copy").addEventListener("click", async () => {
    const text = said.map((one, i) => `${"AB"[i % 2]} (${one.by}): ${one.text}`).join("\n");
    try {
      await navigator.clipboard.writeText(text);
      status("Copied.");
    } catch {
      status("✕ The browser does not let this page copy.", true);
    }
  });

  at("save").addEventListener("submit", async (event) => {
    event.preventDefault();
    const first = Number(at("pair").value);
    try {
      const told = await post("/talk/save", {
        set: at("set").value.trim(),
        utterances: said.slice(first, first + 2).map((one) => one.text),
      });
      const had = told.new ? "Saved as" : "It is there already, as";
      at("saved").textContent = `✓ ${had} ${told.id} of ${told.set} (${told.n_seeds} in it). Let models go on from it: botchat generate --seeds ${told.set} --model MODEL`;
    } catch (error) {
      at("saved").textContent = `✕ ${error.message}`;
    }
  });
})();
