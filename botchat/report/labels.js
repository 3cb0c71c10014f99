// What a person has answered: in this browser, as a judge file of `human:NAME`, and in the workspace
// where `botchat view` serves the page.
botchat.labels = (() => {
  const { about, el, kept, load, save } = botchat;
  const told = (name) => document.querySelector(`meta[name='botchat-${name}']`)?.content || "";
  const token = told("token");
  // Where the address says who labels: what that person has saved is the truth, in any browser.
  const person = told("person");
  const saved = JSON.parse(told("labels") || "[]");

  // "Amy" and " amy" are one person (`botchat.pipeline.label.rater`).
  const fold = (name) => {
    const folded = name.normalize("NFKC").toUpperCase().toLowerCase().replaceAll("ς", "σ");
    return folded.normalize("NFKC").trim().replace(/\s+/g, " ");
  };

  const status = el("p", { class: "status", role: "status" });
  const say = (text) => {
    status.textContent = text;
  };

  // Labels by `id`: what a judgment has, without `contestants` until they are told. `isCut`: of a
  // case that judges see more of, unless `exact` says otherwise.
  let who = "";
  let made = {};
  const box = (name) => `botchat-labels-of|${about.set}|${name}`;
  const id = (protocol, seed, key) => JSON.stringify([protocol, seed, key]);
  const parsed = (name) => {
    try {
      return JSON.parse(kept(name) || "{}");
    } catch {
      return {};
    }
  };
  const keep = () => {
    const text = JSON.stringify(made);
    if (kept(box(who), text) !== text) say("This browser keeps nothing: export before you close the page.");
  };

  // Goes on as the person of that name; what was answered without a name becomes that person's.
  const enter = (name) => {
    const nobodys = who ? {} : made;
    who = person || fold(name);
    if (who) kept("botchat-rater", name.trim());
    made = { ...parsed(box(who)), ...nobodys };
    if (person) {
      const unsaved = Object.entries(made).filter(([, label]) => label.unsaved);
      const there = saved.map((label) => [id(label.protocol, label.seed_id, label.case), label]);
      made = Object.fromEntries([...there, ...unsaved]);
    }
    if (!who) return;
    if (Object.keys(nobodys).length) {
      keep();
      kept(box(""), "{}");
    }
    resend();
  };

  const put = (key, label) => {
    made[key] = label;
    if (token && !label.isCut) label.unsaved = true;
    keep();
  };
  const drop = (key) => {
    delete made[key];
    keep();
  };

  // One line as botchat.records.Judgment reads it.
  const line = (label) => {
    const { base, n } = about.protocols.find(({ name }) => name === label.protocol);
    const judge = `human:${who}`;
    return {
      protocol: label.protocol,
      seed_id: label.seed_id,
      contestants: label.contestants,
      judge,
      verdict: label.verdict,
      reason: "",
      shown: label.shown,
      case: label.case,
      signature: `${about.signed}|${base}|set:${about.set}${n ? `|n:${n}` : ""}|judge:${judge}|prompt:blind-page|orders:1`,
      outcome: "ok",
      transcript: [],
      calls: [],
    };
  };

  // A label that judges’ verdicts can stand beside.
  const counts = (label) => Boolean(label.contestants) && (!label.isCut || label.exact);

  // Into the workspace, where somebody serves it; whether all of them are there.
  const post = async (protocol, rows, isUndone) => {
    try {
      const answer = await fetch("/labels", {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-BotChat-Token": token },
        body: JSON.stringify({ set: about.set, protocol, rows }),
      });
      const { error } = await answer.json().catch(() => ({}));
      if (!answer.ok) throw new Error(error || answer.statusText);
      say(isUndone ? "Taken back." : `Saved in the workspace as ${rows[0].judge}.`);
      return true;
    } catch (error) {
      say(`${isUndone ? "Not taken back" : "Not saved"} in the workspace, only in this browser: ${error.message}`);
      return false;
    }
  };
  // One after the other: what is taken back was there before.
  let sending = Promise.resolve(true);
  const send = (labels, isUndone = false) => {
    if (!token || !who || !labels.length) return sending;
    const rows = labels.map((label) => ({ ...line(label), undone: isUndone }));
    sending = sending.then(() => post(labels[0].protocol, rows, isUndone)).then((isDone) => {
      if (isDone) {
        for (const label of labels) delete label.unsaved;
        keep();
      }
      return isDone;
    });
    return sending;
  };
  // What was answered while nobody served the page.
  const resend = () => {
    const open = Object.values(made).filter((label) => label.unsaved);
    for (const protocol of new Set(open.map((label) => label.protocol))) send(open.filter((label) => label.protocol === protocol));
  };

  // Whom a person's labels are of, from the chunks that tell.
  const tell = async (protocol) => {
    for (const [list, [, name, cases]] of about.lists.entries()) {
      if (name && name !== protocol) continue;
      for (let k = 0; k * about.per_chunk < cases; k += 1) {
        const open = Object.values(made).some((label) => label.protocol === protocol && !label.contestants);
        if (!open) return;
        const [blind, told] = await Promise.all([load(`game-${list}-${k}`), load(`answers-${list}-${k}`)]);
        blind.forEach(([p, seed, key], i) => {
          const label = made[id(about.protocols[p].name, seed, key)];
          if (label) [label.contestants, label.exact] = told.cases[i];
        });
      }
    }
  };

  // Everything that was labelled in a protocol, as a judge file.
  const write = async (protocol) => {
    await tell(protocol);
    keep();
    const mine = Object.values(made).filter((label) => label.protocol === protocol);
    const rows = mine.filter(counts);
    const cut = mine.filter((label) => label.contestants && !counts(label)).length;
    const gone = mine.length - rows.length - cut;
    if (rows.length) {
      const safe = who.replace(/[^a-z0-9]+/g, "-") || "me";
      const text = rows.map((label) => `${JSON.stringify(line(label))}\n`).join("");
      save(`${protocol}.human-${safe}.jsonl`, text, "application/jsonl");
    }
    say(
      [
        rows.length ? `${rows.length} labels exported.` : "There is no label to export.",
        cut ? `${cut} answers are about conversations that judges see more of, and are no labels.` : "",
        gone ? `${gone} are about cases that are not in this page any more; they stay in this browser.` : "",
      ].join(" "),
    );
  };

  // The labels of an exported file; all of them, or an error that names the line.
  const parse = (text) => {
    const lines = text.split("\n").filter((one) => one.trim());
    return lines.map((one, i) => {
      let row = null;
      try {
        row = JSON.parse(one);
      } catch {} // it is no label either
      const isLabel =
        row && ["protocol", "seed_id", "judge", "verdict", "case"].every((key) => typeof row[key] === "string") && Array.isArray(row.contestants);
      if (!isLabel) throw new Error(`line ${i + 1} is no label of people`);
      if (!row.judge.startsWith("human:")) throw new Error(`line ${i + 1} is of the judge ${row.judge}; people are human:NAME`);
      if (fold(row.judge.slice(6)) !== fold(JSON.parse(lines[0]).judge.slice(6))) throw new Error(`line ${i + 1} is of another person than line 1`);
      return row;
    });
  };
  const take = (text) => {
    const rows = parse(text);
    if (!rows.length) throw new Error("it holds no labels");
    enter(rows[0].judge.slice(6));
    for (const { protocol, seed_id, contestants, verdict, shown, case: key } of rows) {
      made[id(protocol, seed_id, key)] = { protocol, seed_id, contestants, verdict, shown, case: key };
    }
    keep();
    return rows.length;
  };

  // Where a file is chosen; `done` is called when its labels are here.
  const importer = (done) => {
    const input = el("input", { type: "file", accept: ".jsonl", id: "import" });
    input.addEventListener("change", async () => {
      try {
        const n = take(await input.files[0].text());
        done();
        say(`${n} labels of ${who} are here.`);
      } catch (error) {
        say(`Not imported: ${error.message}.`);
      }
    });
    return el("label", { class: "file" }, "Import an earlier export ", input);
  };

  return {
    fold, status, say, id, enter, put, drop, keep, line, counts, send, write, importer,
    isServed: Boolean(token), person,
    get who() {
      return who;
    },
    get made() {
      return made;
    },
  };
})();
