"use strict";
// Looks again and again, and puts in what has changed; the reader's place stays.
(() => {
  const look = async () => {
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of ["header", "nav", "main", "footer"]) {
        const [before, now] = [document, page].map((one) => one.querySelector(part));
        if (now && now.outerHTML !== before.outerHTML) before.replaceWith(now);
      }
    } catch {
      document.querySelector("footer p").textContent = "The server does not answer; this is how it was.";
    }
    setTimeout(look, SECONDS * 1000);
  };
  setTimeout(look, SECONDS * 1000);
})();
