// Faults of the layout of what is shown: text over text, numbers that touch, cut names, tables that
// scroll, drawings wider than their box.
const box = (e) => e.getBoundingClientRect();
const isSeen = (e) => e.checkVisibility({ visibilityProperty: true }) && box(e).width > 0 && e.textContent.trim();
const seen = (where, selector) => [...where.querySelectorAll(selector)].filter(isSeen);
const faults = [];
const TEXTS = ".est, .value small, .unit, tbody th, thead b, .end, .point b, .y, .xt, li > span:not(.bar), dt, dd, h2, .stamp";
for (const row of seen(document, "#ranking tr, .checks li, .canvas, .ends, .trust header, .facts")) {
  const texts = seen(row, TEXTS);
  texts.forEach((a, i) => texts.slice(i + 1).forEach((b) => {
    if (a.contains(b)) return;
    const wide = Math.min(box(a).right, box(b).right) - Math.max(box(a).left, box(b).left);
    const high = Math.min(box(a).bottom, box(b).bottom) - Math.max(box(a).top, box(b).top);
    if (wide > 0.5 && high > 2.5) faults.push(["over", a.textContent, b.textContent]);
    if (a.matches(".est") && a.nextElementSibling === b && box(b).left - box(a).right < 3) faults.push(["touch", a.textContent, b.textContent]);
  }));
}
for (const name of seen(document, ".board th, .end i")) {
  if (name.scrollWidth > name.clientWidth + 1 && name.clientWidth && name.textContent.length <= 14) faults.push(["cut", name.textContent]);
}
for (const table of seen(document, "#ranking .scroll")) if (table.scrollWidth > table.clientWidth + 1) faults.push(["scrolls", table.ariaLabel]);
for (const svg of document.querySelectorAll("main svg")) if (box(svg).width > box(svg.parentElement).width + 1) faults.push(["wide", svg.parentElement.ariaLabel]);
return faults;
