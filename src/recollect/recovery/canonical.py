"""URL canonicalization for a web-repository crawler (McCown 2007, section V.3).

Hides: the rules by which two spellings are one resource. Three levels, from certain to guessed:

- `canonical(uri)`: the rules of V.3.1, for one URL alone. Domain in lower case, no default port, no fragment, no
  `index.html`, `index.htm` or `default.htm` at the end, `/./`, `/../` and `//` collapsed, %20-%7E before the query
  decoded (a space becomes `+`), the remaining hex in capitals, session ids removed, `&amp;` read as `&`.
- `visit_key(uri)`: `canonical` under one scheme and one host (V.3.2, "www prefix"): what a crawler keeps as visited.
- `UrlVariants`: what only the listings show (V.3.2: missing slash, root level, case): keys seen there stand in for
  keys that are linked but not held.

Invariants: `canonical` and `visit_key` are idempotent; a key is for comparing, never for asking an archive (the archive
is asked with the spelling it listed). `%2F`, `%3F`, `%23` and `%25` stay encoded: decoded they would name another
resource.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import urljoin

from recollect.errors import BadURI


@dataclass(frozen=True, slots=True)
class Rules:
    """Which guesses are made; each can be switched off (or, for case, on)."""

    ignore_case: bool = False  # the server's files were case-insensitive (Warrick -ic)
    fold_www: bool = True
    fold_scheme: bool = True
    drop_index: bool = True
    drop_sessions: bool = True
    learn: bool = True  # let the listings decide about slashes, index pages and case

    def to_json(self) -> dict[str, bool]:
        return asdict(self)

    @staticmethod
    def from_json(value: dict[str, Any]) -> Rules:
        return Rules(**{name: bool(flag) for name, flag in value.items() if name in Rules.__slots__})


DEFAULT_RULES = Rules()

_SPLIT = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*):(?://)?(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?", re.I
)
_HEX = re.compile(r"%([0-9a-fA-F]{2})")
_KEEP = frozenset(b"/?#%")
_INDEX = re.compile(r"/(?:index\.html?|default\.htm)$")
_SLASHES = re.compile(r"/{2,}")
# Session ids in a query: whole parameters. jsessionid and PHPSESSID are never anything else; `sid` is one only with 32
# letters and digits; the others are those the archives' own canonicalizers remove.
_SESSION_PARAMETER = re.compile(
    r"(?:jsessionid=.*|phpsessid=.*|sid=[0-9a-z]{32}|aspsessionid[a-z]{8}=[a-z]{24}|cfid=[^&]*|cftoken=[^&]*)", re.I
)
_SESSION_PATH = re.compile(r";jsessionid=[^/;?]*", re.I)
_ASPX_PATH = re.compile(r"/\((?:[a-z]\([0-9a-z]{24}\))+\)(?=/)|/\([0-9a-z]{24}\)(?=/)", re.I)
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_ORIGIN = re.compile(r"https?://[^/?#]+", re.I)
_BLANKS = re.compile(r"[\t\r\n]")
_OTHER_INDEX = re.compile(
    r"/(?:index|default|home|welcome|main)\.(?:php[345]?|aspx?|jspx?|cfm|cgi|pl|s?html?|xhtml)$", re.I
)


def canonical(uri: str, rules: Rules = DEFAULT_RULES) -> str:
    """The canonical URL of V.3.1; raises BadURI for what is not an http(s) URL."""
    scheme, host, path, query = split(uri)
    path = _path(path, rules)
    query = _query(query, rules) if query else ""
    if rules.drop_index and not query:
        path = _INDEX.sub("/", path.lower() if rules.ignore_case else path)
    result = f"{scheme}://{host}{path or '/'}" + (f"?{query}" if query else "")
    return result.lower() if rules.ignore_case else result


# A site repeats its links on every page.
@lru_cache(maxsize=1 << 16)
def visit_key(uri: str, rules: Rules = DEFAULT_RULES) -> str:
    """The key under which a URL counts as visited: canonical, under one scheme and one host."""
    text = canonical(uri, rules)
    scheme, _, rest = text.partition("://")
    if rules.fold_www:
        rest = _without_www(rest)
    # A port that is still there belongs to its scheme.
    fold = rules.fold_scheme and not re.match(r"[^/?]*:\d+(?:[/?]|$)", rest)
    return f"http://{rest}" if fold else f"{scheme}://{rest}"


def _without_www(rest: str) -> str:
    host = re.split(r"[/?:]", rest, maxsplit=1)[0]
    # `www.com` is a host of its own: only a name with two more labels has a prefix to drop.
    return rest[4:] if host.startswith("www.") and host.count(".") > 1 else rest


def split(uri: str) -> tuple[str, str, str, str | None]:
    """Scheme, host with port, path and query (None when there is no `?`) of an http(s) URL, host in lower case."""
    text = _BLANKS.sub("", uri.strip(" \t\r\n\f\0")).replace("&amp;", "&")
    match = _SPLIT.match(text)
    if match is None or match["scheme"].lower() not in _DEFAULT_PORTS:
        raise BadURI(
            "not an http or https URL", where=repr(uri[:200]), hint="give it whole, as http://example.org/path"
        )
    scheme = match["scheme"].lower()
    authority = match["authority"].replace("\\", "/").split("/")[0].rpartition("@")[2].lower()
    host = _ascii_host(authority.removesuffix(_DEFAULT_PORTS[scheme]).removesuffix(":").rstrip("."))
    if not host or " " in host:
        raise BadURI("a URL without a host", where=repr(uri[:200]))
    return scheme, host, match["path"] or "/", match["query"]


def tidy(uri: str) -> str:
    """The URL with its host in lower case and without default port and fragment; everything else as it is."""
    scheme, host, path, query = split(uri)
    return f"{scheme}://{host}{path}" + (f"?{query}" if query is not None else "")


def _ascii_host(host: str) -> str:
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host


def _path(path: str, rules: Rules) -> str:
    if "%" in path:
        path = _HEX.sub(_decoded, path)
    path = _quote(path).replace(" ", "+").replace("\\", "/")
    if rules.drop_sessions:
        path = _ASPX_PATH.sub("", _SESSION_PATH.sub("", path))
    return _collapsed(path if path.startswith("/") else "/" + path)


def _decoded(match: re.Match[str]) -> str:
    byte = int(match[1], 16)
    return chr(byte) if 0x20 <= byte <= 0x7E and byte not in _KEEP else match[0].upper()


def _quote(text: str) -> str:
    """Characters outside printable ASCII as UTF-8 in capital hex, so that raw and encoded spellings agree."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char if " " <= char <= "~" else "".join(f"%{b:02X}" for b in char.encode("utf-8", "surrogatepass"))
        for char in text
    )


def _collapsed(path: str) -> str:
    """Dot segments resolved (never above the root) and runs of slashes made one."""
    path = _SLASHES.sub("/", path)
    if "/." not in path:
        return path
    out: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del out[-1:]
        elif segment != ".":
            out.append(segment)
    if segments[-1] in (".", "..") and out[-1:] != [""]:
        out.append("")
    return _SLASHES.sub("/", "/" + "/".join(out))


def _query(query: str, rules: Rules) -> str:
    query = _HEX.sub(lambda match: match[0].upper(), _quote(query)).replace(" ", "%20")
    if rules.drop_sessions and "=" in query:
        query = "&".join(part for part in query.split("&") if not _SESSION_PARAMETER.fullmatch(part))
    return query


_INDEX_NAMES = ("index.html", "index.htm", "index.php", "default.htm", "default.asp", "home.html")
_ANY_INDEX = re.compile(r"/(?:index|default|home|welcome|main)\.[a-z]{2,5}\d?$", re.I)


def spellings(uri: str) -> list[str]:
    """Other spellings under which an archive without a listing may hold a URL, most likely first (section V.3.2).

    Index page or folder, final slash, session ids, `~` or `%7E`, case, www; each once, without the URL itself.
    """
    scheme, host, path, query = split(uri)
    asked = f"?{query}" if query is not None else ""
    bare = canonical(uri, Rules(fold_www=False, drop_index=False))
    paths = [path]
    if match := _ANY_INDEX.search(path):
        paths += [path[: match.start() + 1]]
    elif path.endswith("/"):
        paths += [path[:-1]] if path != "/" else []
        paths += [path + name for name in _INDEX_NAMES]
    elif "." not in path.rpartition("/")[2]:
        paths += [path + "/", f"{path}/index.html", f"{path}/index.htm"]
    if "%7e" in path.lower():
        paths.append(re.sub("%7e", "~", path, flags=re.I))
    elif "~" in path:
        paths.append(path.replace("~", "%7E"))
    if path != path.lower():
        paths.append(path.lower())
    own = [f"{scheme}://{host}{one}{asked}" for one in paths]
    own.insert(1, bare)
    other = host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"
    own += [f"{scheme}://{other}{one}{asked}" for one in paths] if _may_have_www(host) else []
    return [one for one in dict.fromkeys(own) if one != uri]


def _may_have_www(host: str) -> bool:
    """Not an address, nor a single label."""
    return "." in host and not re.fullmatch(r"[\d.]+(?::\d+)?|\[.*", host)


def resolve(base: str, reference: str) -> str | None:
    """The absolute http(s) URL (without fragment) a reference on a page points to, or None when it points elsewhere.

    As lenient as browsers are: spaces around and line breaks inside are dropped, backslashes are slashes.
    """
    text = _BLANKS.sub("", reference.strip(" \t\r\n\f\0")).partition("#")[0]
    if not text:
        return None
    before, mark, after = text.partition("?")
    if ":" in before and not re.match(r"https?:", before, re.I) and re.match(r"[a-z][a-z0-9+.-]*:", before, re.I):
        return None  # javascript:, mailto:, data:, tel:, ...
    if re.fullmatch(r"(?:https?:)?/*", before, re.I) and before.count("/") != 1 and before:
        return None  # a scheme without a host
    try:
        joined = _joined(base, before.replace("\\", "/") + mark + after)
        split(joined)
    except (ValueError, BadURI):
        return None
    return joined.replace(" ", "%20")


def _joined(base: str, reference: str) -> str:
    # Most links of most sites are absolute paths, which need no more than the origin.
    if reference[:1] == "/" and reference[:2] != "//" and "/." not in reference and (origin := _ORIGIN.match(base)):
        return origin[0] + reference
    return urljoin(base, reference)


@dataclass(slots=True)
class UrlVariants:
    """Keys seen in listings, and which of them replace a key that is linked but not held (section V.3.2).

    `stand_ins(key)` gives the listed keys to try instead, most likely first: with or without the final slash, the same
    path in another case, a directory's index page. Alternatives are given only when the listing holds no content of the
    key itself; a key listed only as a redirect has one alternative, its other slash.
    """

    rules: Rules = DEFAULT_RULES
    _content: set[str] = field(default_factory=set)
    _redirects: set[str] = field(default_factory=set)
    _by_case: dict[str, list[str]] = field(default_factory=dict)
    _index_of: dict[str, list[str]] = field(default_factory=dict)

    def learn_from(self, content: Iterable[str], redirects: Iterable[str] = ()) -> None:
        """Take in the keys with content, and those listed only as redirects."""
        self._redirects.update(redirects)
        for key in content:
            if key in self._content:
                continue
            self._content.add(key)
            self._by_case.setdefault(key.lower(), []).append(key)
            if match := _OTHER_INDEX.search(key):
                self._index_of.setdefault(key[: match.start() + 1], []).append(key)

    def stand_ins(self, key: str) -> list[str]:
        if not self.rules.learn or key in self._content:
            return []
        slashed = _toggle_slash(key)
        if key in self._redirects:
            return [slashed] if slashed in self._content else []
        found: list[str] = []
        for candidate in (slashed, *self._case_variants(key), *self._case_variants(slashed)):
            if candidate in self._content and candidate not in found:
                found.append(candidate)
        directory = key if key.endswith("/") else key + "/"
        found += [page for page in sorted(self._index_of.get(directory, ())) if page not in found]
        if (match := _OTHER_INDEX.search(key)) and key[: match.start() + 1] in self._content:
            found.append(key[: match.start() + 1])
        return found

    def _case_variants(self, key: str) -> list[str]:
        return sorted(self._by_case.get(key.lower(), ()))


def _toggle_slash(key: str) -> str:
    """The key with its final slash added or taken away; a key with a query, or of a root, stays as it is."""
    path = key.partition("://")[2].partition("/")[2]
    if not path or "?" in key:
        return key
    return key[:-1] if key.endswith("/") else key + "/"
