// Keeps the page of a job up to date: numbers as they come, the whole page when its state changes; reloads a page that
// waits; shows times in the zone of the visitor. Texts are in the page.
"use strict";
const language = document.documentElement.lang;
for (const time of document.querySelectorAll("time[data-time]"))
  time.textContent = new Date(time.dateTime).toLocaleString(language, { dateStyle: "long", timeStyle: "short" });
const job = document.querySelector("[data-events]");
if (job && "EventSource" in window) {
  const source = new EventSource(job.dataset.events);
  const put = (name, text) => {
    for (const place of document.querySelectorAll(`[data-live="${name}"]`)) place.textContent = text;
  };
  const shown = (number) => number.toLocaleString(language);
  const sum = (counts) => Object.values(counts || {}).reduce((a, b) => a + b, 0);
  // Pictures of pages that came: the page has them in the reader's language, so that part of it is taken again.
  const showPictures = async (count) => {
    const place = document.getElementById("pictures");
    if (!place || count <= place.querySelectorAll("img").length) return;
    const answer = await fetch(location.href);
    const part = answer.ok && new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("pictures");
    if (part) place.replaceChildren(...part.childNodes);
  };
  source.addEventListener("status", (event) => {
    const status = JSON.parse(event.data);
    if (status.state !== job.dataset.state) {
      source.close();
      location.reload();
      return;
    }
    const percent = Math.floor(100 * status.progress);
    const bar = document.getElementById("progress");
    if (bar && percent >= bar.value) bar.value = percent;
    const names = ["recovered", "queued", "missing"];
    put("collected", shown(sum(status.counts.recovered)));
    put("known", shown(names.reduce((all, name) => all + sum(status.counts[name]), 0)));
    for (const name of names)
      for (const [kind, number] of Object.entries(status.counts[name] || {})) put(`${name}-${kind}`, shown(number));
    if (status.rank) put("rank", shown(status.rank));
    showPictures((status.thumbs || []).length);
    const place = document.querySelector('[data-live="waiting"]');
    if (!place) return;
    const waiting = (status.waiting_for || []).map((one) => place.dataset.one
      .replace("{archive}", () => one.name || one.archive)
      .replace("{time}", () => new Date(1000 * one.until).toLocaleTimeString(language, { timeStyle: "short" }))).join(", ");
    place.textContent = waiting ? place.dataset.words.replace("{}", () => waiting) : "";
  });
}
const waiting = document.querySelector("[data-reload]");
if (waiting) setTimeout(() => location.reload(), Number(waiting.dataset.reload));
