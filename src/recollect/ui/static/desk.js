// Keeps the page of a job up to date: numbers as they come, the whole page when its state changes; reloads a page that waits.
"use strict";
const job = document.querySelector("[data-events]");
if (job && "EventSource" in window) {
  const source = new EventSource(job.dataset.events);
  const put = (name, text) => {
    for (const place of document.querySelectorAll(`[data-live="${name}"]`)) place.textContent = text;
  };
  const sum = (counts) => Object.values(counts || {}).reduce((a, b) => a + b, 0);
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
    put("percent", `${Math.max(percent, bar ? bar.value : 0)}%`);
    put("recovered", sum(status.counts.recovered).toLocaleString("en"));
    put("queued", sum(status.counts.queued).toLocaleString("en"));
    put("missing", sum(status.counts.missing).toLocaleString("en"));
    for (const name of ["recovered", "queued", "missing"])
      for (const [kind, number] of Object.entries(status.counts[name] || {})) put(`${name}-${kind}`, number.toLocaleString("en"));
    if (status.rank) put("rank", status.rank.toLocaleString("en"));
    const waiting = (status.waiting_for || [])
      .map((one) => `${one.archive} until ${new Date(1000 * one.until).toLocaleTimeString()}`).join(", ");
    put("waiting", waiting ? `We wait for ${waiting}.` : "");
  });
}
const waiting = document.querySelector("[data-reload]");
if (waiting) setTimeout(() => location.reload(), Number(waiting.dataset.reload));
