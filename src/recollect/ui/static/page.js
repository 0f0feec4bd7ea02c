// Adds to the pages what they can do without: labels of marks at once, years opened from the bars.
"use strict";
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
tip.setAttribute("aria-hidden", "true");
document.body.append(tip);

function show(mark) {
  const label = mark.getAttribute("aria-label");
  const place = mark.getBoundingClientRect();
  tip.textContent = label;
  tip.hidden = false;
  const left = place.left + place.width / 2 - tip.offsetWidth / 2;
  tip.style.left = `${Math.max(8, Math.min(left, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${place.top > tip.offsetHeight + 14 ? place.top - tip.offsetHeight - 8 : place.bottom + 8}px`;
}
const markOf = (event) => event.target.closest?.("a.mark");
for (const name of ["pointerover", "focusin"]) {
  document.addEventListener(name, (event) => {
    const mark = markOf(event);
    if (!mark) return;
    // The browser's own tooltip would come late, over ours.
    mark.querySelector("title")?.remove();
    show(mark);
  });
}
for (const name of ["pointerout", "focusout"]) {
  document.addEventListener(name, (event) => { if (markOf(event)) tip.hidden = true; });
}
// A bar leads to its year, which may be folded.
addEventListener("hashchange", () => {
  const year = document.getElementById(location.hash.slice(1));
  if (year instanceof HTMLDetailsElement) year.open = true;
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });
