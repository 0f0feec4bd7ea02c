// Read MementoMaps in a browser, an extension or Node: which pages does a web archive hold?
//
//   import { MementoMap } from "./mementomap.js";
//   const map = await MementoMap.open("https://archive.example/mementomap/map.ukvs.gz");
//   const found = await map.lookup("http://example.com/a");   // {answer: "yes" | "no" | "unknown", key, frequency, reason}
//
// A map is searched where it is, by a few HTTP Range requests. It is plain text, or gzip in blocks (BGZF) as Recollect
// publishes it; docs/ukvs.md of Recollect is the format. A "no" holds within the scope of the map alone, and anything
// that this reader cannot decide is "unknown".
// Text is held as in the file, one character for each byte, so that comparing strings compares bytes. Licence: MIT.

const BLOCK = 1 << 16;  // bytes of one request
const KEPT = 64;  // requests that are kept
const HEAD = 1 << 18;  // bytes in which the headers must end
const encoder = new TextEncoder();
const decoder = new TextDecoder();

export class BadURI extends Error {}

// Bytes and byte text

function textOf(bytes) {
	let text = "";
	for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
	return text;
}

const raw8 = (text) => textOf(encoder.encode(text));
const utf8 = (text) => decoder.decode(Uint8Array.from(text, (char) => char.charCodeAt()));

// URI to SURT

const hex = (char) => "%" + char.charCodeAt().toString(16).padStart(2, "0");
const lower = (text) => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
const escape = (text) => text.replace(/[^!"$&-~]/gs, hex);

function unescape(text) {
	const stack = [];
	for (const char of text) {
		stack.push(char);
		while (stack.length > 2 && stack.at(-3) === "%" && /^[0-9a-f]{2}$/i.test(stack.at(-2) + stack.at(-1)))
			stack.push(String.fromCharCode(parseInt(stack.splice(-3).slice(1).join(""), 16)));
	}
	return stack.join("");
}

function splitURI(uri) {
	let text = raw8(uri).replace(/^[ \t\n\r\v\f]+|[ \t\n\r\v\f]+$/g, "").replace(/[\n\r\t]/g, "");
	if (!text) throw new BadURI("it is empty");
	text = text.replace(/^(?:https?:\/\/)+(?=https?:\/\/)/i, "");
	const pattern = /^([a-zA-Z][a-zA-Z0-9+.-]*):(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?/s;
	let [, scheme, authority = "", path, query = ""] = pattern.exec(text) ?? pattern.exec("http://" + text);
	if (!authority && lower(scheme).startsWith("http")) {
		const [, host, rest] = /^\/*([^/]*)\/?(.*)$/s.exec(path);
		if (!host) throw new BadURI("no host");
		[authority, path] = [host, "/" + rest];
	}
	return { scheme, authority, path, query };
}

function ipv4(host) {
	if (!/^(?:\d+|[1-9]\d*(?:\.\d+){0,3}|0[0-7]*(?:\.[0-7]+){0,3})$/.test(host)) return null;
	const dotted = (number) => [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join(".");
	if (/^\d+$/.test(host)) {
		if (Number(host) > 0xffffffff) throw new BadURI("not an IPv4 address");
		return dotted(Number(host));
	}
	const fields = host.split(".");
	if (fields.some((field) => field[0] === "0" && /[89]/.test(field))) return null;
	const numbers = fields.map((field) => (field[0] === "0" ? parseInt(field, 8) : Number(field)));
	const tail = numbers.pop();
	if (numbers.some((number) => number > 255) || tail >= 256 ** (4 - numbers.length)) return null;
	return dotted(numbers.reduce((sum, number, place) => sum + number * 2 ** (24 - 8 * place), tail));
}

function idna(host) {
	// Indexes have IDNA 2003, where ß is ss and a final sigma a sigma; browsers have its successor.
	const name = utf8(host);
	if (name.includes("\ufffd")) throw new BadURI("its host is not UTF-8");
	const older = name.normalize("NFKC").replace(/[ßẞ]/g, "ss").replaceAll("ς", "σ").replace(/[\u200c\u200d]/g, "");
	try {
		return new URL(`http://${older}/`).hostname;
	} catch {
		return host;
	}
}

function isIPv6(text) {
	try {
		return new URL(`http://[${text}]/`).hostname.length > 1;
	} catch {
		return false;
	}
}

function portOf(text) {
	if (!text) return 0;
	if (!/^\d+$/.test(text)) throw new BadURI("a port is a number");
	if (Number(text) > 65535) throw new BadURI("a port is below 65536");
	return Number(text);
}

function hostKey(scheme, authority, keepWww = false) {
	const place = authority.replace(/:+$/, "").split("@").at(-1);
	const keeps = (port) => port !== 0 && port !== { http: 80, https: 443 }[lower(scheme)];
	if (place.includes("[")) {
		const parts = /^\[([^\]]*)\](?::(.*))?$/s.exec(place);
		if (!parts) throw new BadURI("not an IPv6 address");
		const [, address, zone = ""] = /^([^%]*)(%.*)?$/s.exec(unescape(parts[1]));
		if (!isIPv6(address) || !/^(%[0-9A-Za-z_-]*)?$/.test(zone)) throw new BadURI("not an IPv6 address");
		const host = lower(escape(address + zone)).split(".").reverse().join(",");
		const port = portOf(parts[2]);
		return keeps(port) ? `[${host}]:${port}` : host;
	}
	const colon = place.indexOf(":");
	const port = colon < 0 ? 0 : portOf(place.slice(colon + 1));
	let host = unescape(colon < 0 ? place : place.slice(0, colon));
	if (/[^\0-\x7f]/.test(host)) host = idna(host);
	host = host.replaceAll("..", ".").replace(/^\.+|\.+$/g, "");
	const mark = /[(),/:?]/.exec(host);
	if (mark) throw new BadURI(`a host cannot hold '${mark[0]}'`);
	host = ipv4(host) ?? lower(escape(host));
	if (!host) throw new BadURI("no host");
	if (!keepWww) host = host.replace(/^www\d*\./, "");
	host = host.split(".").reverse().join(",");
	return keeps(port) ? `${host}:${port}` : host;
}

function pathKey(raw) {
	let path = unescape(raw);
	if (/\/[/.]/.test(path)) {
		const kept = [];
		for (const segment of path.split("/").slice(1)) {
			if (segment === ".." && kept.length) kept.pop();
			else if (segment !== ".") kept.push(segment);
		}
		const last = kept.pop();
		path = last === undefined ? "/" : "/" + kept.filter(Boolean).map((segment) => segment + "/").join("") + last;
	}
	path = lower(escape(path));
	if (path.includes("/(") && path.includes(".aspx"))
		for (const id of [/\/\((?:[a-z]\([0-9a-z]{24}\))+\)(?=\/[^?]+?\.aspx)/g, /\/\([0-9a-z]{24}\)(?=\/[^?]+?\.aspx)/g]) {
			const last = [...path.matchAll(id)].at(-1);
			if (last) path = path.slice(0, last.index) + path.slice(last.index + last[0].length);
		}
	return path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
}

// Keys

const OCTET = "(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]?[0-9])";
const ADDRESS = "[0-9a-fA-F.,]*:[0-9a-fA-F.,]*:[0-9a-fA-F:.,]*(?:%[^\\]]*)?";
const IPV6 = new RegExp(`^(?:(${ADDRESS})|\\[(${ADDRESS})\\](:[0-9]+)?)$`);
const DOTTED = new RegExp(`^${OCTET}(?:\\.${OCTET}){3}$`);
const REVERSED = new RegExp(`^(${OCTET}(?:,${OCTET}){3})(?:,|$)`);

/** The normal key of a SURT (byte text). */
export function uriKey(surt) {
	const noKey = (why) => new BadURI(`no web key: ${why}`);
	const parts = /^(?:[A-Za-z][A-Za-z0-9+.-]*:\/\/)?\(?(#?[^)/?#]*)\)(.*)$/s.exec(surt);
	if (!parts) throw noKey("no ) after a host");
	let [, host, rest] = parts;
	if (!host || host.includes("(") || (rest && !"/?#".includes(rest[0]))) throw noKey("not a host and a path");
	host = host.replace(/,+$/, "");
	if (host.includes("\0")) throw noKey("NUL bytes in a host");
	if (host.startsWith("[") || host.split(":").length > 2) {
		const address = IPV6.exec(host);
		if (!address) throw noKey("not an IPv6 address");
		host = `[${address[1] ?? address[2]}]${address[3] ?? ""}`;
	} else {
		let [, name, port = ""] = /^([^:]*)(:.*)?$/s.exec(host);
		name = name.replace(/,+$/, "");
		if (!name || (port && !/^:[0-9]+$/.test(port))) throw noKey("no host");
		if (DOTTED.test(name)) name = name.split(".").reverse().join(",");
		host = name + port;
	}
	const path = rest.replace(/[?#].*$/s, "").replace(/\/+$/, "") || "/";
	const key = lower(`${host})${path}`).replace(/[\0-\x20\x7f-\xff*]/gs, hex);
	return '!@"#{'.includes(key[0]) ? hex(key[0]) + key.slice(1) : key;
}

export function isSURT(text) {
	if (!text.includes(")")) return false;
	try {
		return Boolean(uriKey(raw8(text)));
	} catch {
		return false;
	}
}

/** The normal key of a URI, as text. */
export function keyOf(uri) {
	const { scheme, authority, path } = splitURI(uri);
	if (!authority) throw new BadURI("it has no host");
	return uriKey(`${hostKey(scheme, authority)})${pathKey(path || "/")}`);
}

/** All keys under which a map may hold a URI or SURT: the normal one first. */
export function spellings(text) {
	const word = /^[^\s.:/?#()[\]*]*$/;
	if (word.test(text) && text.toLowerCase() !== "localhost") throw new BadURI("no scheme and no dot");
	const written = isSURT(text) ? ofSURT(raw8(text)) : ofURI(text);
	const normal = written.map(uriKey);
	normal.push(...normal.map((key) => key.replace(/\/\/+/g, "/")));
	for (const key of [...normal]) {
		const four = /^(\d+),(\d+),(\d+),(\d+)((?::\d+)?\).*)$/s.exec(key);
		const six = /^\[([^\]]*)\]((?::\d+)?\).*)$/s.exec(key);
		if (four) normal.push(`${four[4]}.${four[3]}.${four[2]}.${four[1]}${four[5]}`);
		if (six) normal.push(six[1] + six[2]);
	}
	const foreign = written.map((key) => key.replace(/[?#].*$/s, "").replace(/\/+$/, "").replace(/^([^)]*\))$/s, "$1/"));
	const raw = normal.map((key) =>
		key.replace(/(?:%[89a-f][0-9a-f])+/g, (run) => run.replace(/%(..)/g, (_, pair) => String.fromCharCode(parseInt(pair, 16)))),
	);
	return [...new Set([...normal, ...foreign, ...raw])];
}

function ofSURT(surt) {
	const bracketed = /^(?:https?:\/\/)?\(?\[([0-9a-fA-F:]+)\]:(\d{1,5}),?\)/.exec(surt);
	if (bracketed) return [surt, `${bracketed[1]}:${bracketed[2]}${surt.slice(bracketed[0].length - 1)}`];
	const ported = /^(?:https?:\/\/)?\(?([0-9a-fA-F]*:[0-9a-fA-F:]*):(\d{1,5}),?\)/.exec(surt);
	if (ported && isIPv6(ported[1])) return [surt, `[${ported[1]}]:${ported[2]}${surt.slice(ported[0].length - 1)}`];
	return [surt];
}

function ofURI(uri) {
	const key = keyOf(uri);
	const { scheme, authority, path: typed } = splitURI(uri);
	const [host, path] = [key.slice(0, key.indexOf(")")), key.slice(key.indexOf(")") + 1)];
	const hosts = [host, hostKey(scheme, authority, true)];
	for (const one of [...hosts]) if (one.includes("xn--")) hosts.push(withoutPunycode(one));
	if (host.startsWith("[")) hosts.push(host.slice(1).replace("]", ""));
	return [...new Set(hosts.flatMap((one) => [`${one})${path}`, `${one})${typed}`]))];
}

function withoutPunycode(host) {
	const [name, port = ""] = host.split(/(?=:)/);
	return name.split(",").map((label) => (label.startsWith("xn--") ? raw8(fromPunycode(label.slice(4))) : label)).join(",") + port;
}

function fromPunycode(text) {  // RFC 3492
	const dash = text.lastIndexOf("-");
	const output = dash > 0 ? [...text.slice(0, dash)] : [];
	let [n, i, bias] = [128, 0, 72];
	for (let at = dash > 0 ? dash + 1 : 0; at < text.length; ) {
		const before = i;
		for (let weight = 1, k = 36; ; k += 36) {
			const digit = parseInt(text[at++], 36);
			const value = digit < 10 ? digit + 26 : digit - 10;
			if (!(value >= 0)) return text;
			i += value * weight;
			const limit = Math.min(Math.max(k - bias, 1), 26);
			if (value < limit) break;
			weight *= 36 - limit;
		}
		let delta = Math.floor((i - before) / (before ? 2 : 700));
		const count = output.length + 1;
		delta += Math.floor(delta / count);
		let k = 0;
		for (; delta > 455; k += 36) delta = Math.floor(delta / 35);
		bias = k + Math.floor((36 * delta) / (delta + 38));
		n += Math.floor(i / count);
		i %= count;
		if (n > 0x10ffff) return text;
		output.splice(i++, 0, String.fromCodePoint(n));
	}
	return output.join("");
}

/** The wildcards of the nodes above a key and of its own node, the widest first; `*` is left out. */
function nodes(key) {
	const close = key.indexOf(")");
	const [host, path] = [key.slice(0, close), key.slice(close + 1)];
	const address = host.startsWith("[") ? /^\[[^\]]*\]/.exec(host)[0] : REVERSED.exec(host)?.[1] ?? "";
	const names = [];
	for (let at = address.length || 1; at <= host.length; at++)
		if (at === host.length || host[at] === "," || host[at] === ":") names.push(host.slice(0, at) + ",*");
	names.push(`${host})/*`);
	const segments = path === "" || path === "/" ? [] : path.slice(1).split("/");
	return [...names, ...segments.map((_, n) => `${host})/${segments.slice(0, n + 1).join("/")}/*`)];
}

// Hashed sets

const MASK = (1n << 64n) - 1n;
const GOLDEN = 0x9e3779b97f4a7c15n;
const IV = [
	0x6a09e667f3bcc908n, 0xbb67ae8584caa73bn, 0x3c6ef372fe94f82bn, 0xa54ff53a5f1d36f1n,
	0x510e527fade682d1n, 0x9b05688c2b3e6c1fn, 0x1f83d9abfb41bd6bn, 0x5be0cd19137e2179n,
];
const SIGMA = [
	"0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
	"2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0",
].map((row) => [...row].map((digit) => parseInt(digit, 16)));

/** The first two words of BLAKE2b with a digest of 32 bytes (RFC 7693) of byte text. */
function blake2b(text) {
	const state = [...IV];
	state[0] ^= 0x01010020n;
	const rotate = (x, n) => (x >> n) | ((x << (64n - n)) & MASK);
	const blocks = Math.max(1, Math.ceil(text.length / 128));
	for (let block = 0; block < blocks; block++) {
		const words = Array(16).fill(0n);
		const end = Math.min(text.length, 128 * (block + 1));
		for (let at = 128 * block; at < end; at++) words[(at % 128) >> 3] |= BigInt(text.charCodeAt(at)) << BigInt(8 * (at % 8));
		const v = [...state, ...IV];
		v[12] ^= BigInt(end);
		if (block === blocks - 1) v[14] ^= MASK;
		const mix = (a, b, c, d, x, y) => {
			v[a] = (v[a] + v[b] + x) & MASK;
			v[d] = rotate(v[d] ^ v[a], 32n);
			v[c] = (v[c] + v[d]) & MASK;
			v[b] = rotate(v[b] ^ v[c], 24n);
			v[a] = (v[a] + v[b] + y) & MASK;
			v[d] = rotate(v[d] ^ v[a], 16n);
			v[c] = (v[c] + v[d]) & MASK;
			v[b] = rotate(v[b] ^ v[c], 63n);
		};
		for (let round = 0; round < 12; round++) {
			const s = SIGMA[round % 10];
			for (let n = 0; n < 4; n++) mix(n, n + 4, n + 8, n + 12, words[s[2 * n]], words[s[2 * n + 1]]);
			for (let n = 0; n < 4; n++)
				mix(n, 4 + ((n + 1) % 4), 8 + ((n + 2) % 4), 12 + ((n + 3) % 4), words[s[8 + 2 * n]], words[s[9 + 2 * n]]);
		}
		for (let n = 0; n < 8; n++) state[n] ^= v[n] ^ v[n + 8];
	}
	return state;
}

function scramble(x) {
	x = ((x ^ (x >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
	x = ((x ^ (x >> 27n)) * 0x94d049bb133111ebn) & MASK;
	return x ^ (x >> 31n);
}

class HashedSet {
	constructor({ v, k, parts, bits }) {
		if (v !== 1 || !(k >= 1 && k <= 64) || !(parts >= 1)) throw new RangeError("set");
		const data = Uint8Array.from(atob(bits), (char) => char.charCodeAt());
		if (data.length < 2 * parts) throw new RangeError("set");
		this.parts = [];
		let begin = 16 * parts;
		for (let n = 0; n < parts; n++) {
			const entry = data[2 * n] | (data[2 * n + 1] << 8);
			this.parts.push({ begin, size: entry & 4095, seed: entry >> 12 });
			begin += entry & 4095;
		}
		if (begin > 8 * data.length) throw new RangeError("set");
		[this.data, this.k] = [data, k];
	}

	window(begin, count) {  // bits of the file as one number
		let value = 0n;
		const first = begin >> 3;
		for (let at = 0; at < 9; at++) value |= BigInt(this.data[first + at] ?? 0) << BigInt(8 * at);
		return (value >> BigInt(begin & 7)) & ((1n << BigInt(count)) - 1n);
	}

	value(member, k) {
		const [a, b] = blake2b(member);
		const { begin, size, seed } = this.parts[Number(((a >> 32n) * BigInt(this.parts.length)) >> 32n)];
		const differs = (n) => {
			let row = scramble((b + GOLDEN * BigInt(1024 * seed + n + 1)) & MASK);
			const other = scramble((row + GOLDEN) & MASK);
			const start = size > 64 ? Number(((other >> 32n) * BigInt(size - 63)) >> 32n) : 0;
			row = size > 64 ? row | 1n : row & ((1n << BigInt(size)) - 1n);
			let rest = row & this.window(begin + start, Math.min(64, size));
			let parity = other & 1n;
			for (; rest; rest &= rest - 1n) parity ^= 1n;
			return Number(parity);
		};
		for (let n = 0; n < k; n++) if (differs(n)) return null;
		return differs(64) + 2 * differs(65) + 4 * differs(66);
	}

	holds(key, anchor) {
		const chain = nodes(key);
		let k = this.k;
		for (const gate of chain.slice(anchor === "*" ? 0 : chain.indexOf(anchor) + 1, -1)) {
			const value = this.value(gate, k);
			if (value === null || value === 0) return value === 0;
			k = [0, 1, 2, 3, 4, 5, 6, 8][value];
		}
		return this.value(key, k) !== null;
	}
}

/** The sets of a line's JSON; null if it has none that can be read, so that the wildcard covers all below it. */
function setsOf(block) {
	if (!block?.includes('"set"')) return null;
	try {
		const { set } = JSON.parse(utf8(block));
		return (Array.isArray(set) ? set : [set]).map((one) => new HashedSet(one));
	} catch {
		return null;
	}
}

// Scope

const PAGES = `html htm xhtml xht shtml shtm stm mhtml dhtml jhtml php php3 php4 php5 php7 phtml asp aspx ashx jsp jspx jspa jsf do
action cfm cfml cgi pl py rb dll nsf xsp faces`.split(/\s/);
const FAMILIES = { a: "application", i: "image", s: "audio", v: "video", t: "text", f: "font" };
const BY_EXTENSION = {};
for (const row of `png:i/png i/x-png;jpg jpeg jpe jfif pjpeg:i/jpeg i/jpg i/pjpeg;gif:i/gif;webp:i/webp;avif:i/avif;bmp:i/bmp
i/x-ms-bmp;tif tiff:i/tiff;ico:i/x-icon i/vnd.microsoft.icon i/ico;svg svgz:i/svg+xml;css:t/css;js mjs
cjs:t/javascript a/javascript a/x-javascript t/ecmascript;json:a/json t/json;map:a/json a/octet-stream;xml rss atom
rdf xsl xslt:t/xml a/xml a/rss+xml a/atom+xml a/rdf+xml;txt:t/plain;md:t/markdown t/plain;csv:t/csv t/plain
a/csv;pdf:a/pdf a/x-pdf;ps eps:a/postscript;doc dot:a/msword;xls:a/vnd.ms-excel;ppt
pps:a/vnd.ms-powerpoint;docx:a/^wordprocessingml.document;xlsx:a/^spreadsheetml.sheet;pptx:a/^presentationml.presentation;odt:a/vnd.oasis.opendocument.text;rtf:a/rtf
t/rtf;zip:a/zip a/x-zip-compressed a/octet-stream;gz tgz:a/gzip a/x-gzip a/octet-stream;rar:a/x-rar-compressed
a/vnd.rar a/octet-stream;7z tar jar war dmg iso msi apk deb rpm bin:a/octet-stream;mp3:s/mpeg s/mp3;ogg oga:s/ogg
a/ogg;wav:s/wav s/x-wav;m4a:s/mp4 s/x-m4a;mp4 m4v:v/mp4 v/x-m4v;webm:v/webm;avi:v/x-msvideo v/avi;mov
qt:v/quicktime;mpg mpeg:v/mpeg;wmv:v/x-ms-wmv;flv:v/x-flv;swf:a/x-shockwave-flash;woff:f/woff a/font-woff
a/x-font-woff;woff2:f/woff2 a/font-woff2;ttf:f/ttf a/x-font-ttf f/sfnt;otf:f/otf
a/x-font-otf;eot:a/vnd.ms-fontobject;webmanifest:a/manifest+json;wasm:a/wasm;ics:t/calendar;vcf:t/vcard t/x-vcard`.split(";")) {
	const [names, types] = row.split(":").map((part) => part.trim().split(/\s+/));
	const full = types.map((type) => FAMILIES[type[0]] + type.slice(1).replace("^", "vnd.openxmlformats-officedocument."));
	for (const name of names) BY_EXTENSION[name] = full;
}

function mediaTypesOf(uri) {
	const rest = uri.split("#")[0].split("?")[0].split(";jsessionid")[0].toLowerCase();
	const close = rest.indexOf(")/");
	const after = rest.includes("//") ? rest.slice(rest.indexOf("//") + 2) : rest;
	const path = close >= 0 ? rest.slice(close + 2) : (after || rest).replace(/^[^/]*\/?/, "");
	const name = path.split("/").at(-1);
	const extension = name.includes(".") ? /^\.([a-z][a-z0-9]{0,10}|[a-z0-9]{1,4}(?<=[a-z]))$/.exec(name.slice(name.lastIndexOf("."))) : null;
	if (!extension || PAGES.includes(extension[1])) return ["text/html"];
	return BY_EXTENSION[extension[1]] ?? [];
}

const matches = (patterns, value) =>
	patterns.some((pattern) => {
		const source = pattern.replace(/[.+^${}()|\\]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".").replaceAll("[!", "[^");
		return new RegExp(`^(?:${source})$`, "s").test(value);
	});

const listOf = (value) => (value === undefined ? [] : [].concat(value).map((item) => String(item).trim().toLowerCase()));

/** Why a map with this `!meta` cannot say no to a URI; empty if it can. */
function limitOf(meta, uri) {
	const filters = meta.filters || {};
	const known = ["status", "media_type", "from", "to", "exclude", "host", "where"];
	const isList = (value) => [].concat(value ?? []).every((item) => ["string", "number"].includes(typeof item));
	const unread = Object.keys(filters).filter((name) => !known.includes(name));
	if (typeof filters !== "object") unread.push("filters");
	for (const name of ["status", "media_type", "exclude", "host"]) if (!isList(filters[name])) unread.push(name);
	const scopes = meta.scopes || [];
	if (!Array.isArray(scopes) || scopes.some((one) => typeof one !== "object" || Array.isArray(one))) unread.push("scopes");
	if (unread.length) return `filters not known here: ${unread.join(", ")}`;
	if (!meta.all_schemes && /^(?!https?:)[a-z][a-z0-9+.-]*:(?:\/\/|(?=[^\d/]))/i.test(uri) && !isSURT(uri)) return "only http and https";
	if (filters.where) return `only captures where ${filters.where}`;
	const [types, exclude, hosts] = [listOf(filters.media_type), listOf(filters.exclude), listOf(filters.host)];
	if (types.length) {
		const candidates = mediaTypesOf(uri);
		if (!candidates.length || !candidates.every((one) => matches(types, one))) return `only ${types.join(", ")}`;
	}
	const name = uri.split("?")[0].split("#")[0].replace(/\/+$/, "").toLowerCase().split("/").at(-1);
	if (exclude.includes(name)) return `without ${exclude.join(", ")}`;
	if (hosts.length) {
		const host = hostOf(uri);
		if (!matches(hosts, host) && !matches(hosts, host.replace(/^www\./, ""))) return `only the hosts ${hosts.join(", ")}`;
	}
	if (filters.from || filters.to) return `only captures from ${filters.from ?? ""} to ${filters.to ?? ""}`;
	return scopes.map((one) => limitOf({ ...one, all_schemes: meta.all_schemes }, uri)).find(Boolean) ?? "";
}

function hostOf(uri) {
	if (isSURT(uri)) return uri.replace(/^https?:\/\//, "").replace(/^\(/, "").split(")")[0].split(":")[0].split(",").reverse().join(".").toLowerCase();
	const authority = /^(?:[^/?#]*\/\/)?([^/?#]*)/.exec(uri)[1];
	return authority.split("@").at(-1).replace(/:\d*$/, "").toLowerCase();
}

// Bytes of a file

/** Bytes of a web address by Range requests, whole blocks at a time, the last few of which are kept. */
class Remote {
	constructor(url, options) {
		Object.assign(this, { url, options, size: -1, requests: 0, received: 0, kept: new Map() });
	}

	async read(start, end) {
		const parts = [];
		for (let block = Math.floor(start / BLOCK); block * BLOCK < end && (this.size < 0 || block * BLOCK < this.size); block++) {
			const bytes = await this.block(block);
			parts.push(bytes.subarray(Math.max(0, start - block * BLOCK), Math.max(0, Math.min(bytes.length, end - block * BLOCK))));
		}
		return joined(parts);
	}

	block(number) {
		const bytes = this.kept.get(number) ?? this.fetch(number * BLOCK);
		if (this.kept.size > KEPT) this.kept.clear();
		this.kept.set(number, bytes);
		bytes.catch(() => this.kept.delete(number));
		return bytes;
	}

	async fetch(start) {
		this.requests++;
		const headers = { ...this.options.headers, Range: `bytes=${start}-${start + BLOCK - 1}` };
		const response = await fetch(this.url, { ...this.options, headers });
		const range = /^bytes (\d+)-\d+\/(\d+)$/.exec(response.headers.get("Content-Range") ?? "");
		if (response.status !== 206 || !range || Number(range[1]) !== start || response.headers.get("Content-Encoding"))
			throw new Error(`${this.url}: status ${response.status}, no range of bytes`);
		if (this.size >= 0 && this.size !== Number(range[2])) throw new Error(`${this.url} was replaced; open it again`);
		this.size = Number(range[2]);
		const bytes = new Uint8Array(await response.arrayBuffer());
		this.received += bytes.length;
		return bytes;
	}
}

class InMemory {
	constructor(bytes) {
		Object.assign(this, { bytes, size: bytes.length, requests: 0, received: 0 });
	}

	async read(start, end) {
		return this.bytes.subarray(start, end);
	}
}

function joined(parts) {
	if (parts.length === 1) return parts[0];
	const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
	let at = 0;
	for (const part of parts) {
		whole.set(part, at);
		at += part.length;
	}
	return whole;
}

async function inflate(bytes) {
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Pieces of a map: `piece(at)` is the first run of whole lines that begins at or after a position: {start, next, lines}.

class Plain {
	constructor(bytes) {
		this.bytes = bytes;
	}

	async piece(at) {
		let [start, size] = [at, BLOCK - (at % BLOCK)];
		for (;;) {
			const from = Math.max(0, start - 1);
			const text = textOf(await this.bytes.read(from, start + size));
			const isEnd = start + size >= this.bytes.size;
			const first = start === 0 ? 0 : text.indexOf("\n") + 1;  // the byte before tells whether a line begins here
			const last = isEnd ? text.length : text.lastIndexOf("\n") + 1;
			if ((start === 0 || first > 0) && last > first) return { start: from + first, next: from + last, lines: linesOf(text.slice(first, last)) };
			if (isEnd) return null;
			size += BLOCK;
		}
	}
}

class Blocks {
	constructor(bytes) {
		this.bytes = bytes;
	}

	async piece(at) {
		for (let start = at; start < this.bytes.size; ) {
			const near = await this.bytes.read(start, Math.min(this.bytes.size, start + 2 * BLOCK));
			const found = await this.member(near, start);
			if (!found) return null;
			const lines = linesOf(found.text);
			if (lines.length) return { start: found.start, next: found.next, lines };
			start = found.next;
		}
		return null;
	}

	/** The first block in bytes that begin at `start`: fixed bytes, and another block where its length says. */
	async member(near, start) {
		for (let at = 0; at + 18 <= near.length; at++) {
			if (!isMember(near, at)) continue;
			const next = at + 1 + (near[at + 16] | (near[at + 17] << 8));
			const isLast = start + next === this.bytes.size;
			if (next > near.length || !(isLast || isMember(near, next) || next + 18 > near.length)) continue;
			let text;
			try {
				text = textOf(await inflate(near.slice(at + 18, next - 8)));
			} catch {
				continue;  // the bytes of a block by chance
			}
			if (text && !text.endsWith("\n") && !isLast) throw new Error("its blocks do not end with a line");
			return { start: start + at, next: start + next, text };
		}
		return null;
	}
}

const isMember = (b, at) => b[at] === 31 && MEMBER.every((byte, n) => byte < 0 || b[at + n] === byte);
const MEMBER = [31, 139, 8, 4, -1, -1, -1, -1, -1, -1, 6, 0, 66, 67, 2, 0];
const linesOf = (text) => text.split("\n").map((line) => line.replace(/\r$/, "")).filter((line, at, all) => line || at < all.length - 1);
const keyOfLine = (line) => /^[^ \t]*/.exec(line)[0];

// Maps

const held = (frequency) => (/^0+-?(?:\/|$)/.test(frequency) ? false : /^[-/]?$/.test(frequency) ? null : true);

export class MementoMap {
	/** Open a map at a web address, or of bytes. `marks` of a published index.json make the first search short. */
	static async open(source, { marks = [], ...options } = {}) {
		let bytes = source instanceof Uint8Array ? new InMemory(source) : new Remote(String(source), options);
		const head = await bytes.read(0, 18);
		let text;
		if (head[0] === 0x1f && head[1] === 0x8b) {
			if (!isMember(head, 0)) throw new Error("gzip without blocks");
			text = new Blocks(bytes);
		} else if (head[0] === 0x28 && head[1] === 0xb5) throw new Error("zstd; open the .gz or the plain file");
		else text = new Plain(bytes);
		const map = new MementoMap(text, bytes, marks);
		await map.readHeaders();
		return map;
	}

	constructor(text, bytes, marks) {
		Object.assign(this, { text, bytes, marks, meta: {}, fields: { keys: ["surt"], values: ["frequency"] }, id: null, start: 0, hasUnread: false });
	}

	/** Requests sent and bytes received so far. */
	get traffic() {
		return { requests: this.bytes.requests, bytes: this.bytes.received };
	}

	async readHeaders() {
		let at = 0;
		for (let seen = 0; seen < HEAD; ) {
			const piece = await this.text.piece(at);
			if (!piece) return;
			for (const line of piece.lines) {
				seen += line.length + 1;
				const clean = line.replace(/^\u00ef\u00bb\u00bf/, "");
				if (clean.startsWith("@")) throw new Error("a profile of the older form");
				if (clean && !/^[!#]/.test(clean)) return;  // the first record
				if (clean.startsWith("!")) this.header(clean);
			}
			at = piece.next;
		}
		throw new Error("no end of headers");
	}

	header(line) {
		const [, name, value] = /^!(\S+)\s*(.*)$/s.exec(line) ?? [];
		try {
			const data = JSON.parse(utf8(value));
			if (name === "meta") Object.assign(this.meta, data);
			else if (name === "fields") this.fields = { ...this.fields, ...data };
			else if (name === "id") this.id = data.uri ?? null;
		} catch {
			this.hasUnread = true;  // perhaps a limit of the map
		}
	}

	/** What the map says of a URI or a SURT. */
	async lookup(uri) {
		let keys;
		try {
			keys = this.policyKeys(spellings(uri));
		} catch (error) {
			if (!(error instanceof BadURI)) throw error;
			return { uri, answer: "unknown", key: null, frequency: null, reason: `not a URI: ${error.message}` };
		}
		if (!keys) return { uri, answer: "unknown", key: null, frequency: null, reason: `the policy ${this.meta.policy}` };
		let best = null;
		for (const key of keys) {
			const found = await this.decide(key);
			if (found && (!best || rank(found) > rank(best))) best = found;
			if (best && rank(best) === 3) break;
		}
		best ??= { answer: "no", key: null, frequency: null };
		if (best.answer !== "no") return { uri, ...best, reason: best.answer === "yes" ? "" : "the key has no frequency" };
		const reason = this.limit(uri, best.key);
		return { uri, ...best, answer: reason ? "unknown" : "no", reason };
	}

	limit(uri, key) {
		if (key === null && this.meta.scope === "voids") return "absences only";
		if (key === null && this.meta.scope === "sample") return "of a sample";
		if (this.hasUnread) return "headers that cannot be read";
		return limitOf(this.meta, uri);
	}

	policyKeys(keys) {
		const policy = String(this.meta.policy ?? "HxPx").toLowerCase().replace(/^tld$/, "h1p0");
		const limits = /^h([1-9]\d*|x)p(\d+|x)$/.exec(policy);
		if (!limits) return null;
		if (policy === "hxpx") return keys;
		const [most, deepest] = limits.slice(1).map((text) => (text === "x" ? Infinity : Number(text)));
		const shorter = (key) => {
			const chain = nodes(key);
			const hosts = chain.filter((node) => node.endsWith(",*"));
			const host = hosts[Math.min(most, hosts.length) - 1].slice(0, -2);
			const path = hosts.length <= most ? key.slice(key.indexOf(")") + 2).split("/").slice(0, deepest).join("/").replace(/\/+$/, "") : "";
			return `${host})/${path}`;
		};
		return [...new Set(keys.map((key) => shorter(uriKey(key))))];
	}

	async decide(key) {
		const slashed = key.endsWith(")/") ? key.slice(0, -1) : key + "/";
		const { lines, before, after } = await this.seek(key);
		if (lines.length) return this.judge(key, key, lines);
		const other = await this.seek(slashed);
		if (other.lines.length) return this.judge(key, slashed, other.lines);
		for (const wildcard of ["*", ...nodes(key)].reverse()) {
			const prefix = wildcard.slice(0, -1);
			// All lines of a prefix stand together: if neither neighbour has it, there is no such wildcard.
			if (before !== undefined && key.startsWith(prefix) && !before.startsWith(prefix) && !after.startsWith(prefix)) continue;
			const found = await this.seek(wildcard);
			if (found.lines.length) return this.judge(key, wildcard, found.lines);
		}
		return null;
	}

	judge(asked, key, lines) {
		const { keys, values } = this.fields;
		const place = keys.length + Math.max(0, values.indexOf("frequency"));
		const records = lines.map((line) => line.match(/"(?:[^"\\]|\\.)*"|[^ \t]+/g));
		const whole = keys.length > 1 ? records.find((one) => one.slice(1, keys.length).every((token) => token === ":" || token === "-")) : records[0];
		const chosen = whole ? [whole] : records;
		const all = chosen.map((one) => held(one[place] ?? ""));
		let answer = all.includes(true) ? true : all.includes(null) ? null : false;
		if (key === "*" && !this.coversAll() && answer !== false) answer = null;
		if (answer === false && this.meta.scope === "sample" && key.endsWith(",*") && portIn(asked) !== portIn(key)) answer = null;
		if (answer !== false && key.endsWith("*") && this.isSimple() && lines.length === 1) {
			const sets = setsOf(/^[^ \t]+[ \t]+[^ \t]+[ \t]+(.*)$/s.exec(lines[0])?.[1]);
			if (sets?.length && !sets.some((one) => one.holds(asked, key))) answer = false;
		}
		const frequency = chosen.length === 1 ? chosen[0][place] ?? null : null;
		return { answer: answer === null ? "unknown" : answer ? "yes" : "no", key, frequency };
	}

	isSimple() {
		const { keys, values } = this.fields;
		return `${keys}/${values}` === "surt/frequency" && /^hxpx$/i.test(this.meta.policy ?? "HxPx") && this.meta.scope !== "sample";
	}

	coversAll() {
		if (typeof this.meta.covers_all === "boolean") return this.meta.covers_all;
		return String(this.meta.generator ?? "").startsWith("recollect") || ["compaction", "merged", "scope", "scopes"].some((name) => name in this.meta);
	}

	/** The lines of exactly this key, and its neighbours ("" at the ends of the map, undefined where not read). */
	async seek(key) {
		let [low, high] = [0, this.bytes.size];
		for (const [at, first] of this.marks) {
			if (first < key) low = at;
			else {
				high = Math.min(high, at);
				break;
			}
		}
		while (high - low > BLOCK) {
			const piece = await this.text.piece(Math.floor((low + high) / 2));
			if (!piece || piece.start >= high) high = Math.floor((low + high) / 2);
			else if (isBelow(piece.lines[0], key)) low = piece.start;
			else high = Math.floor((low + high) / 2);
		}
		const lines = [];
		let before = low === 0 ? "" : undefined;
		for (let at = low; ; ) {
			const piece = await this.text.piece(at);
			if (!piece) return { lines, before, after: "" };
			for (const line of piece.lines) {
				if (isBelow(line, key)) before = keyOfLine(line);
				else if (keyOfLine(line) === key) lines.push(line);
				else return { lines, before, after: keyOfLine(line) };
			}
			at = piece.next;
		}
	}
}

const isBelow = (line, key) => line === "" || line[0] === "!" || line[0] === "#" || keyOfLine(line) < key;
const rank = ({ answer, key }) => (answer !== "no" ? 2 : 0) + ((key ?? "*").endsWith("*") ? 0 : 1);
const portIn = (key) => {
	const host = key.split(")")[0].replace(/,\*$/, "");
	return host.slice(host.lastIndexOf("]") + 1).split(":")[1] ?? "";
};
