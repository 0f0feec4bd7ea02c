// The field of a published map's page: looks an address up in the maps that maps.json names.
import { MementoMap } from "./mementomap.js";

const form = document.getElementById("lookup");
const answers = document.getElementById("answers");
const opened = new Map();
const maps = fetch("maps.json").then((response) => (response.ok ? response.json() : Promise.reject(new Error("maps.json cannot be read"))));

function open(entry) {
  if (!opened.has(entry.href)) {
    const map = MementoMap.open(new URL(entry.href, document.baseURI), { marks: entry.marks });
    map.catch(() => opened.delete(entry.href)); // another try may succeed
    opened.set(entry.href, map);
  }
  return opened.get(entry.href);
}

function element(name, text, className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

function sentence(found, entry) {
  const date = entry.updated_at ? ` (map of ${entry.updated_at.slice(0, 10)})` : "";
  if (found.answer === "yes") {
    const exact = found.key && !found.key.endsWith("*");
    const count = /^\d+/.exec(found.frequency ?? "")?.[0];
    if (exact) return [`Yes${count && count !== "0" ? `, ${Number(count).toLocaleString()} ${count === "1" ? "capture is" : "captures are"} listed` : ""}${date}.`, "good"];
    return [`Probably: the archive holds pages of ${found.key.split(")")[0].replace(/,?\*$/, "").split(",").reverse().join(".") || "many sites"} like this one${date}.`, "good"];
  }
  if (found.answer === "no") return [`No capture is listed${date}.`, "none"];
  return [`The map cannot tell${found.reason ? `: ${found.reason}` : ""}.`, "warn"];
}

async function answer(entry, uri, item) {
  let words, kind;
  let found = null;
  try {
    const map = await open(entry);
    found = await map.lookup(uri);
    [words, kind] = sentence(found, entry);
  } catch (error) {
    [words, kind] = [`The map could not be read: ${error.message}`, "warn"];
  }
  item.replaceChildren(element("b", entry.name || entry.id || "This archive"), " ", element("span", words, `badge ${kind}`));
  if (entry.replay && found?.answer !== "no") {
    const link = element("a", "Open the captures");
    link.href = entry.replay + uri;
    item.append(" ", link);
  }
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  let uri = document.getElementById("uri").value.trim();
  if (uri && !/^[a-z][a-z0-9+.-]*:/i.test(uri) && !uri.includes(")")) uri = `http://${uri}`;
  if (!uri) return;
  const list = element("ul", "", "card");
  list.setAttribute("aria-label", `Answers for ${uri}`);
  answers.replaceChildren(list);
  try {
    await Promise.all(
      (await maps).map((entry) => {
        const item = list.appendChild(element("li", `${entry.name || entry.id || "This archive"}: looking …`));
        return answer(entry, uri, item);
      }),
    );
  } catch (error) {
    answers.replaceChildren(element("p", error.message));
  }
});
