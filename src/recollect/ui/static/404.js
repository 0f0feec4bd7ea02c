// Offers the captures of a page that is gone, on the error page of a site. One line in its HTML, where the offer shall stand:
//   <script src="https://aggregator.example/404.js" async></script>
// Options: data-uri (the page; default: the address of the error page), data-since and data-until (2010, 2010-05-17),
// data-limit (how many captures, default 5). No cookies, no style of its own: the list has the class "recollect-captures".
(() => {
  "use strict";
  const script = document.currentScript;
  const base = new URL(".", script.src).href;
  const option = (name, otherwise) => script.dataset[name] || otherwise;
  const uri = option("uri", location.href.replace(/#.*$/, ""));
  const limit = Math.min(50, Math.max(1, Number(option("limit", 5)) || 5));
  const texts = {
    en: ["This page is gone, but web archives hold captures of it:", "All captures"],
    de: ["Diese Seite gibt es nicht mehr, aber Webarchive haben Kopien davon:", "Alle Kopien"],
    es: ["Esta página ya no existe, pero hay copias en archivos web:", "Todas las copias"],
    pt: ["Esta página já não existe, mas há cópias em arquivos da web:", "Todas as cópias"],
  };
  const language = (navigator.languages || [navigator.language]).map((name) => name.slice(0, 2).toLowerCase()).find((name) => name in texts) || "en";
  const [heading, all] = texts[language];
  const query = new URLSearchParams({ url: uri });
  for (const [name, parameter] of [["since", "from"], ["until", "to"]])
    if (option(name)) query.set(parameter, option(name).replace(/\D/g, ""));

  function link(address, words) {
    const made = document.createElement("a");
    made.href = address;
    made.textContent = words;
    made.rel = "noreferrer";
    return made;
  }

  function show(found) {
    const captures = found.mementos.list.filter((one) => /^https?:/.test(one.uri)).reverse().slice(0, limit);
    if (!captures.length) return;
    const box = document.createElement("section");
    box.className = "recollect-captures";
    box.lang = language;
    const words = document.createElement("p");
    words.textContent = heading;
    const list = document.createElement("ul");
    for (const one of captures) {
      const date = new Date(one.datetime).toLocaleDateString(language, { dateStyle: "long", timeZone: "UTC" });
      const item = document.createElement("li");
      item.append(link(one.uri, `${date} · ${new URL(one.uri).host}`));
      list.append(item);
    }
    const last = document.createElement("p");
    last.append(link(`${base}?uri=${encodeURIComponent(uri)}`, all));
    box.append(words, list, last);
    script.after(box);
  }

  fetch(`${base}timemap/json?${query}`, { credentials: "omit", referrerPolicy: "no-referrer" })
    .then((answer) => (answer.ok ? answer.json() : null))
    .then((found) => found && show(found))
    .catch(() => {}); // an error page without an offer is still an error page
})();
