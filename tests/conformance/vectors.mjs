// Run the test vectors of conformance/v1 with the JavaScript reader: node vectors.mjs MODULE FOLDER
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";

const [module, folder] = process.argv.slice(2);
const { MementoMap } = await import(pathToFileURL(module));
const text = (key) => (key === null ? "-" : new TextDecoder().decode(Uint8Array.from(key, (char) => char.charCodeAt(0))));
const maps = new Map();
const open = async (name) => MementoMap.open(new Uint8Array(await readFile(`${folder}/${name}`)));
let [count, wrong] = [0, 0];
for (const line of (await readFile(`${folder}/lookups.tsv`, "utf-8")).split("\n").slice(0, -1)) {
  const [name, uri, answer, key, frequency] = line.split("\t");
  for (const file of name === "plain.ukvs" ? [name, `${name}.gz`] : [name]) {
    if (!maps.has(file)) maps.set(file, await open(file));
    const found = await maps.get(file).lookup(uri);
    const given = [found.answer, text(found.key)];
    count++;
    // Records of one key in several columns are summed by readers that know how; a frequency is then not given.
    const differs = given[0] !== answer || given[1] !== key || (found.frequency !== null && found.frequency !== frequency);
    if (differs && wrong++ < 20) console.log(JSON.stringify({ file, uri, expected: [answer, key, frequency], found }));
  }
}
console.log(`${count} lookups, ${wrong} wrong`);
process.exit(wrong ? 1 : 0);
