"""What a request asks for: endpoint, format, datetime, page, options, and the URI-R inside the path. Pure.

Hides: how a URI travels inside a URL. MemGator's way is kept: everything after the endpoint is the URI-R, its query
included, byte for byte. Nothing is decoded twice, `%2F` stays `%2F`. Four tolerances for clients:

- a URI-R that is percent-encoded as one piece (`http%3A%2F%2F...`) is decoded once, and then the query belongs to this
  server;
- `http:/x`, as proxies that merge slashes send it, gets its slash back; without a scheme it is `http://`;
- a user name and password before the host are left out: no capture has them, and they are not for archives or logs;
- a query that begins with `archives=` and names known archives is also read after a plain URI-R.

Query parameters of this server: `archives`, `from`, `to`, `page`, `url` (the URI-R itself, `/timemap/link?url=...`).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import IPv6Address
from urllib.parse import parse_qsl, unquote_to_bytes

from recollect.datetimes import parse_asked
from recollect.errors import BadURI, UsageError

FORMATS = ("link", "json", "cdxj")
OPTIONS = frozenset({"archives", "from", "to", "page", "url"})
_ENCODED = re.compile(r"(?:https?|ftp)(?:%3A|:%2F)", re.IGNORECASE)
_SCHEME = re.compile(r"(https?|ftp):/*", re.IGNORECASE)
_OTHER_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!\d)")
_AUTHORITY = re.compile(r"(?:[^/?#\\]*@)?(\[[0-9A-Fa-f:.]+\]|[^:@/?#\\\s\[\]<>\"]+)(?::(\d{0,5}))?(?=[/?#]|\Z)")
# As they are, or percent-encoded: archives break on both (pywb answers %0A with 500).
_BAD_CHARACTERS = re.compile(r"[\x00-\x1f\x7f]|%(?:[01][0-9A-Fa-f]|7[Ff])")
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_DIGITS = re.compile(r"\d+")
_RAW = re.compile(r"\d+id_")
_DATETIME = re.compile(r"\d{4}(?:\d\d){0,5}")
_PAGE = re.compile(r"(\d{1,6})/(?=.)")
MAX_URI = 8000
_REPLAYED = re.compile(r"/(?:memento|timegate|timemap|web)/(?:[\w.+-]+/){0,2}?(https?(?::|%3A).+)", re.IGNORECASE)


class TooLong(BadURI):
    """A URI-R that is longer than any that is archived: 414."""


@dataclass(frozen=True, slots=True)
class Target:
    """One request for one resource."""

    endpoint: str
    """`timemap`, `timegate`, `memento`, `summary`, `route` or `stream`."""
    uri_r: str
    kind: str = ""
    """Of a TimeMap or memento: `link`, `json`, `cdxj`; of a memento also `proxy`, `raw`, or empty for a redirect."""
    at: datetime | None = None
    page: int | None = None
    archives: str = ""
    since: datetime | None = None
    until: datetime | None = None
    options: dict[str, str] = field(default_factory=dict)


def parse_target(endpoint: str, rest: str, known_archives: Collection[str] = ()) -> Target:
    """The request for what follows `/{endpoint}/` in the raw target; raises UsageError or BadURI in plain words."""
    kind, at, page = "", None, None
    if endpoint in ("timemap", "memento"):
        kind, rest = _kind(endpoint, rest)
    if endpoint == "memento":
        at, rest = _datetime(rest)
    elif endpoint == "timemap" and (numbered := _PAGE.match(rest)):
        page, rest = int(numbered[1]), rest[numbered.end() :]
    text, options = split_options(rest, known_archives)
    if "page" in options:
        page = _page(options["page"])
    since, until = _moment("from", options.get("from", "")), _moment("to", options.get("to", ""), end=True)
    if since is not None and until is not None and since > until:
        where = f"from={options['from'][:40]}&to={options['to'][:40]}"
        raise UsageError("nothing can lie between these datetimes", where=where, why="`from` is after `to`")
    if page == 0:
        raise UsageError("no such page", where="0", why="pages are counted from 1")
    return Target(
        endpoint,
        clean_uri(text),
        kind,
        at,
        page,
        options.get("archives", ""),
        since,
        until,
        options,
    )


_USER = re.compile(r"((?::|%3A)(?:/|%2F)+)(?:(?!/|%2F|\?|%3F|#|\s).)*(?:@|%40)", re.IGNORECASE)


def without_user(text: str) -> str:
    """Text without the user names and passwords of the addresses in it, encoded or not."""
    return _USER.sub(r"\1", text)


def page_of(referer: str, own_host: str = "") -> str:
    """The URI-R of the page that a Referer names: of a page replayed by us or by an archive (`/memento/2005/http://x/`)
    the original, of other pages of this server none, else the page itself."""
    scheme, _, rest = referer.partition("://")
    if scheme.lower() not in ("http", "https"):
        return ""
    host, _, path = rest.partition("/")
    replayed = _REPLAYED.search(f"/{path}")
    if replayed is None and host.lower() == own_host.lower():
        return ""
    try:
        return clean_uri(split_options(replayed[1])[0] if replayed else referer)
    except (BadURI, UsageError):
        return ""


def _kind(endpoint: str, rest: str) -> tuple[str, str]:
    word, slash, after = rest.partition("/")
    query = word.partition("?")[1]
    word = word.partition("?")[0]
    if word in FORMATS and (slash or query):
        return word, (after if not query else rest[len(word) :])
    if endpoint == "memento":
        if word in ("proxy", "raw") and slash:
            return word, after
        if _DIGITS.fullmatch(word):
            return "", rest
        if _RAW.fullmatch(word):
            return "raw", f"{word[:-3]}/{after}"
    raise UsageError(
        "malformed request",
        where=f"/{endpoint}/{rest}"[:200],
        why=_SHAPES[endpoint],
    )


_SHAPES = {
    "timemap": "expected /timemap/{FORMAT}/{URI-R} with FORMAT one of link, json, cdxj",
    "memento": "expected /memento[/{FORMAT}|proxy|raw]/{DATETIME}/{URI-R} with DATETIME like YYYY[MM[DD[hh[mm[ss]]]]]",
}


def _datetime(rest: str) -> tuple[datetime, str]:
    digits, _, after = rest.partition("/")
    if not _DATETIME.fullmatch(digits):
        raise UsageError("malformed datetime", where=digits[:40], why="expected YYYY[MM[DD[hh[mm[ss]]]]]")
    try:
        return parse_asked(digits), after
    except UsageError as error:
        raise UsageError("malformed datetime", where=digits, why=error.why) from None


def split_options(rest: str, known_archives: Collection[str] = ()) -> tuple[str, dict[str, str]]:
    """(the text of the URI-R, the parameters of this server)."""
    path, question, query = rest.partition("?")
    if not path.strip("/") and question:
        options = _options(query)
        return options.pop("url", ""), options
    if not question:
        return rest, {}
    if _ENCODED.match(path):
        return path, _options(query)
    pairs = parse_qsl(query, keep_blank_values=True)
    names = {name for name, _ in pairs}
    if query.startswith("archives=") and names <= OPTIONS:
        asked = dict(pairs)["archives"].split(",")
        if all(name.strip().removeprefix("!") in known_archives for name in asked):
            return path, dict(pairs)
    return rest, {}


def _options(query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in OPTIONS:
            raise UsageError("unknown parameter", where=name[:60], why=f"known are {', '.join(sorted(OPTIONS))}")
        options[name] = value
    return options


def clean_uri(text: str) -> str:
    """The URI-R a client meant; raises BadURI."""
    if _ENCODED.match(text):
        text = unquote_to_bytes(text).decode("utf-8", "surrogateescape")
    text = text.partition("#")[0].strip(" ")
    if not text:
        raise BadURI("no URI-R", why="put one at the end, like /timemap/link/http://example.com/")
    if len(text) > MAX_URI:
        raise TooLong("URI-R too long", where=f"{len(text)} characters", why=f"at most {MAX_URI}")
    if _BAD_CHARACTERS.search(text):
        raise BadURI("malformed URI-R", where=repr(text[:200]), why="control characters")
    scheme = _SCHEME.match(text)
    if scheme is not None:
        name, rest = scheme[1].lower(), text[scheme.end() :]
    elif _OTHER_SCHEME.match(text):
        raise BadURI("malformed URI-R", where=repr(text[:200]), why="only http, https and ftp are archived")
    else:
        name, rest = "http", text.lstrip("/")
    host = _AUTHORITY.match(rest)
    if host is None or not host[1].strip("."):
        raise BadURI("malformed URI-R", where=repr(text[:200]), why="no host")
    if why := _impossible(host[1], host[2]):
        raise BadURI("malformed URI-R", where=repr(text[:200]), why=why)
    return f"{name}://{_ESCAPE.sub('%25', rest[host.start(1) :])}"


def _impossible(host: str, port: str | None) -> str:
    """Why no host has this name; empty if one may. Such names make archives fail: pywb answers them with 500."""
    if port and int(port) > 65535:
        return "a port above 65535"
    if host.startswith("["):
        try:
            IPv6Address(host[1:-1])
        except ValueError:
            return "not an IPv6 address"
    if "%" in host:
        try:
            unquote_to_bytes(host).decode()
        except UnicodeDecodeError:
            return "a host name that is not UTF-8"
    return ""


def _page(text: str) -> int:
    if not re.fullmatch(r"\d{1,6}", text):
        raise UsageError("no such page", where=text[:40], why="a whole number is needed")
    return int(text)


def _moment(name: str, text: str, *, end: bool = False) -> datetime | None:
    if not text:
        return None
    try:
        return parse_asked(text, end=end)
    except UsageError as error:
        raise UsageError("malformed datetime", where=f"{name}={text[:40]}", why=error.why or error.hint) from None
