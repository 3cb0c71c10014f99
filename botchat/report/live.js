"use strict";
// Looks again and again, and puts in what has changed; the reader's place stays, and what is unfolded.
(() => {
  const said = () => document.getElementById("said");
  const gone = document.getElementById("gone");
  const inWords = (seconds) => {
    const whole = Math.max(0, Math.floor(seconds));
    return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  };
  let heard = Date.now();
  let failing = "";
  let looking = false;
  let timer;

  const put = (page) => {
    for (const part of ["header", "main", "footer"]) {
      const [before, now] = [document, page].map((one) => one.querySelector(part));
      if (!now || now.outerHTML === before.outerHTML) continue;
      const open = [...before.querySelectorAll("details[open]")].map((one) => one.id);
      now.querySelectorAll("details").forEach((one) => (one.open = open.includes(one.id)));
      before.replaceWith(now);
    }
    document.title = page.title;
  };

  const tell = () => {
    gone.hidden = failing === "";
    if (!failing) return;
    const last = new Date(heard).toLocaleTimeString("en-GB");
    const text = document.createElement("b");
    text.textContent = `✕ No answer for ${inWords((Date.now() - heard) / 1000)}.`;
    const rest = ` ${failing} The last good answer came at ${last}; the numbers below are from then. Nothing stored is lost. `;
    const again = document.createElement("button");
    again.textContent = "Try now";
    again.addEventListener("click", look);
    const typing = gone.contains(document.activeElement);
    gone.replaceChildren(text, rest, again);
    if (typing) again.focus();
  };

  async function look() {
    if (looking) return;
    looking = true;
    clearTimeout(timer);
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (page.getElementById("said")) {
        put(page);
        heard = Date.now();
        failing = "";
      } else {
        failing = page.body.textContent.replace(/\s+/g, " ").slice(0, 400);
      }
    } catch {
      failing = "botchat view has ended, or cannot be reached.";
    }
    looking = false;
    tell();
    timer = setTimeout(look, Number(said().dataset.seconds) * 1000);
  }
  timer = setTimeout(look, Number(said().dataset.seconds) * 1000);
})();
