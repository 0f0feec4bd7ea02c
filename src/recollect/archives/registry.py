"""The registry of archives: who can be asked, where, and how often.

Hides: three ways of writing the same thing. MemGator's `archives.json` (an array of `{id, name, timemap, timegate,
probability, ignore}`) is read as it is; Recollect's files are TOML (`[[archive]]` tables) or JSON (an array, or
`{"archives": [...]}`) with more keys, see docs/archives.md. Without a file the list of public archives that ships with
the package is used.

Invariants: ids are unique and fit for a file name and a header; every address is http(s); an unknown key, a wrong type
or a missing environment variable is an error that names file, entry and key. Secrets come from the environment and
never show in a repr.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from recollect.errors import BadURI, FormatError, RecollectError, UsageError
from recollect.formats.timemap.links import safe_uri
from recollect.uris import covers, key_of_uri

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_WEB = re.compile(r"https?://[^/?#\s]+", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_RATE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:/|per)\s*(s|sec|second|m|min|minute|h|hour|d|day)s?\s*", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_STAMP = re.compile(r"(/\d{4,14})(?:[a-z]{2}_)?(/)")
_INDEX_RATES = ("index", "timemap", "timegate", "cdx")
_REPLAY_RATES = ("replay", "raw")
_FETCH_SECONDS = 30.0
_MOST_BYTES = 10_000_000


class SearchDialect(StrEnum):
    """How a full-text search is asked and answers."""

    ARQUIVO = "arquivo"
    """Arquivo.pt's TextSearch."""
    SOLRWAYBACK = "solrwayback"


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `count` requests in `seconds`."""

    count: float
    seconds: float

    @property
    def per_second(self) -> float:
        return self.count / self.seconds

    @property
    def burst(self) -> int:
        """Requests that may go at once: a quarter of the count, so that a period never holds more than 5/4 of it."""
        return max(1, int(self.count // 4))

    def __str__(self) -> str:
        unit = {1: "s", 60: "min", 3600: "h", 86400: "day"}.get(int(self.seconds), f"{self.seconds:g} s")
        return f"{self.count:g}/{unit}"


@dataclass(frozen=True)
class Archive:
    """One remote holder of mementos. Empty addresses are things it does not offer."""

    id: str
    name: str = ""
    timemap: str = ""
    timegate: str = ""
    cdx: str = ""
    raw: str = ""
    search: str = ""
    search_dialect: SearchDialect = SearchDialect.ARQUIVO
    map: str = ""
    index_rate: Rate | None = None
    replay_rate: Rate | None = None
    quota: Rate | None = None
    concurrency: int | None = None
    timeout: float | None = None
    probability: float | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    ignore: bool = False
    learn: bool = True
    """Whether it may be skipped for what was learned about it."""
    allow_hosts: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()
    """Media types that it does not keep as they were: thumbnails of images, HTML renderings of documents."""
    note: str = ""

    @property
    def rate(self) -> float | None:
        """Requests a second for TimeMaps, TimeGates and listings."""
        return self.index_rate.per_second if self.index_rate else None

    @property
    def burst(self) -> int | None:
        return self.index_rate.burst if self.index_rate else None

    @property
    def is_local(self) -> bool:
        """Is this a file or folder on this disk (`recollect.sources`), which is read and not asked?"""
        return self.cdx.startswith("file:")

    def timemap_uri(self, uri_r: str) -> str:
        """Where its TimeMap of a resource is (URI-T)."""
        return _fill(self.timemap, uri_r)

    def timegate_uri(self, uri_r: str) -> str:
        """Where its TimeGate for a resource is (URI-G)."""
        return _fill(self.timegate, uri_r)

    def raw_uri(self, uri_m: str, timestamp: str, uri_r: str) -> str:
        """Where a memento's body is as it was captured; without a template as Wayback and pywb spell it, `id_`."""
        if self.raw:
            held = _STAMP.split(uri_m, maxsplit=1)[-1] if _STAMP.search(uri_m) else ""
            original = held if _WEB.match(held) else uri_r
            return safe_uri(self.raw.replace("{timestamp}", timestamp).replace("{uri}", original))
        return _STAMP.sub(r"\1id_\2", uri_m, count=1)

    def rule(self, uri_r: str) -> str | None:
        """The rule that keeps this archive from being asked for a resource, as text; None if there is none."""
        if not self.only and not self.never:
            return None
        try:
            key = key_of_uri(uri_r)
        except BadURI:
            return None
        for pattern, wild in self._keys["never"]:
            if covers(wild, key):
                return f"never {pattern}"
        if self.only and not any(covers(wild, key) for _, wild in self._keys["only"]):
            return f"only {', '.join(self.only)}"
        return None

    def alters(self, media_type: str) -> bool:
        """Does it keep resources of this type in another form only? Patterns as `image/*`."""
        return any(fnmatchcase(media_type.lower(), pattern.lower()) for pattern in self.altered)

    @cached_property
    def _keys(self) -> dict[str, list[tuple[str, bytes]]]:
        return {
            "only": [(pattern, _pattern_key(pattern)) for pattern in self.only],
            "never": [(pattern, _pattern_key(pattern)) for pattern in self.never],
        }


def _fill(template: str, uri_r: str) -> str:
    uri = safe_uri(uri_r.partition("#")[0])
    return template.replace("{uri}", uri) if "{uri}" in template else template + uri


def _pattern_key(pattern: str) -> bytes:
    """The key of a rule: of `*.gov.uk`, `example.com` (the whole host), `example.com/docs/*`, or a key as it is."""
    if ")" in pattern or pattern.endswith(",*") or pattern == "*":
        return pattern.encode()
    rest = pattern.partition("://")[2] or pattern
    host, slash, path = rest.partition("/")
    if host.startswith("*."):
        if path not in ("", "*"):
            raise BadURI("no rule", where=repr(pattern), why="a wildcard host cannot have a path")
        return b",".join(reversed(host[2:].lower().encode().split(b"."))) + b",*"
    if not slash or path in ("", "*"):
        return key_of_uri(f"http://{host}/").rstrip(b"/") + b"/*"
    if path.endswith("*"):
        return key_of_uri(f"http://{host}/{path.rstrip('*')}").rstrip(b"/") + b"/*"
    return key_of_uri(f"http://{rest}")


def load_archives(path: str | Path | None = None) -> tuple[Archive, ...]:
    """The archives of a file (`None`: the list that ships with the package), those to ignore included."""
    if path is None:
        source = Path(__file__).with_name("archives.toml")
        return _archives(source.name, source.read_bytes(), Path())
    if is_web_address(path):
        return _archives(str(path), _fetched(str(path)), Path())
    where = Path(path)
    try:
        data = where.read_bytes()
    except OSError as error:
        raise UsageError(
            "cannot read the list of archives",
            where=str(path),
            why=error.strerror or str(error),
            hint="`recollect archives list` shows the list that ships with Recollect",
        ) from error
    return _archives(str(path), data, where.parent)


def is_web_address(path: str | Path) -> bool:
    """Whether a list of archives is named by its URL."""
    return isinstance(path, str) and path.lower().startswith(("http://", "https://"))


def _fetched(url: str) -> bytes:
    from urllib.request import urlopen

    try:
        with urlopen(url, timeout=_FETCH_SECONDS) as answer:
            data: bytes = answer.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise UsageError("cannot fetch the list of archives", where=url, why=str(error)) from error
    if len(data) > _MOST_BYTES:
        raise UsageError("the list of archives is too big", where=url, why=f"more than {_MOST_BYTES:,} bytes")
    return data


def _archives(file: str, data: bytes, folder: Path) -> tuple[Archive, ...]:
    entries = _entries(file, data)
    archives: dict[str, Archive] = {}
    for number, entry in enumerate(entries, 1):
        archive = _Entry(file, number, entry, folder).archive()
        if archive.id in archives:
            raise FormatError("two archives with one id", where=f"{file}: entry {number}", why=f"id {archive.id!r}")
        archives[archive.id] = archive
    return tuple(archives.values())


def _entries(file: str, data: bytes) -> list[Any]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError("not a list of archives", where=file, why=f"not UTF-8: {error.reason}") from error
    document = _toml_or_json(file, text)
    if isinstance(document, dict):
        unknown = [name for name in document if name not in ("archive", "archives")]
        if unknown:
            raise FormatError("unknown key", where=f"{file}: {unknown[0]}", why="archives are in [[archive]] tables")
        document = [*document.get("archive", []), *document.get("archives", [])]
    if not isinstance(document, list):
        raise FormatError("not a list of archives", where=file, why="expected an array of archives")
    return document


def _toml_or_json(file: str, text: str) -> Any:
    start = text.lstrip()
    looks_json = start.startswith("{") or (start.startswith("[") and not re.match(r"\[\[?\s*\w", start))
    if file.endswith(".json") or (looks_json and not file.endswith(".toml")):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise FormatError("not JSON", where=file, why=str(error)) from error
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise FormatError("not TOML", where=file, why=str(error)) from error


class _Entry:
    """One entry of a file, read key by key; `where` names it in every error."""

    def __init__(self, file: str, number: int, entry: Any, folder: Path) -> None:
        self.where = f"{file}: entry {number}"
        if not isinstance(entry, dict):
            raise FormatError("not an archive", where=self.where, why="expected a table of keys")
        self.entry: dict[str, Any] = {str(name).lower(): value for name, value in entry.items()}
        self.folder = folder

    def archive(self) -> Archive:
        archive_id = self.take("id", str)
        if not archive_id or not _ID.fullmatch(archive_id):
            raise self.error("id", "a short name of letters, digits, dots, dashes and underscores is needed")
        self.where += f" ({archive_id})"
        index_rate, replay_rate = self.rates()
        search, search_dialect = self.search()
        archive = Archive(
            id=archive_id,
            name=self.take("name", str) or archive_id,
            timemap=self.address("timemap"),
            timegate=self.address("timegate"),
            cdx=self.address("cdx"),
            raw=self.address("raw", needs=self.raw_needs()),
            search=search,
            search_dialect=search_dialect,
            map=self.place("map"),
            index_rate=index_rate,
            replay_rate=replay_rate,
            quota=self.rate("quota", self.entry.pop("quota")) if "quota" in self.entry else None,
            concurrency=self.take("concurrency", int, at_least=1),
            timeout=self.take("timeout", float, at_least=0.001),
            probability=self.take("probability", float, at_least=0),
            headers=self.headers(),
            ignore=bool(self.take("ignore", bool)),
            learn=self.take("learn", bool) is not False,
            allow_hosts=self.strings("allow_hosts"),
            only=self.patterns("only"),
            never=self.patterns("never"),
            altered=self.strings("altered"),
            note=self.take("note", str) or "",
        )
        for name in self.entry:
            raise self.error(name, "unknown key", hint="docs/archives.md lists the keys")
        if not (archive.timemap or archive.timegate or archive.cdx or archive.search):
            raise self.error("timemap", "an archive needs a timemap, a timegate, a cdx or a search address")
        return archive

    def take(self, name: str, kind: Callable[[Any], Any], *, at_least: float | None = None) -> Any:
        """A value of one kind, or None if it is not there; what is taken is known."""
        value = self.entry.pop(name, None)
        if value is None:
            return None
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if type(value) is not kind:
            raise self.error(name, f"expected {_WORDS[kind]}, found {value!r}")
        if at_least is not None and value < at_least:
            raise self.error(name, f"{value!r} is too small")
        return value

    def address(self, name: str, *, needs: tuple[str, ...] = ()) -> str:
        value: str = self.take(name, str) or ""
        if value and (not _WEB.match(value) or re.search(r"\s", value)):
            raise self.error(name, f"expected an http(s) address, found {value!r}")
        for part in needs if value else ():
            if part not in value:
                raise self.error(name, f"{part} is missing in {value!r}")
        return value

    def search(self) -> tuple[str, SearchDialect]:
        """The address of a full-text search and its dialect: `search = "..."`, or a table with `url` and `dialect`."""
        value = self.entry.pop("search", None)
        dialect = self.take("search_dialect", str)
        if isinstance(value, Mapping):
            unknown = [name for name in value if name not in ("url", "dialect")]
            if unknown:
                raise self.error(f"search.{unknown[0]}", "unknown key; known are url, dialect")
            dialect = value.get("dialect", dialect)
            value = value.get("url")
        if value is not None:
            self.entry["search"] = value
        address = self.address("search")
        if dialect is None:
            return address, SearchDialect.SOLRWAYBACK if "solr" in address.lower() else SearchDialect.ARQUIVO
        if dialect not in list(SearchDialect):
            known = ", ".join(SearchDialect)
            raise self.error("search_dialect", f"expected one of {known}, found {dialect!r}")
        return address, SearchDialect(dialect)

    def raw_needs(self) -> tuple[str, ...]:
        """A memento by its date and URI, or a record by the WARC its listing names (Common Crawl)."""
        return ("{filename}",) if "{filename}" in str(self.entry.get("raw")) else ("{timestamp}", "{uri}")

    def place(self, name: str) -> str:
        """A web address, or a path from where the file lies."""
        value: str = self.take(name, str) or ""
        return value if not value or _WEB.match(value) else str(self.folder / value)

    def strings(self, name: str) -> tuple[str, ...]:
        value = self.take(name, list)
        if value is None:
            return ()
        if not all(isinstance(item, str) and item for item in value):
            raise self.error(name, f"expected a list of strings, found {value!r}")
        return tuple(value)

    def patterns(self, name: str) -> tuple[str, ...]:
        value = self.strings(name)
        for pattern in value:
            try:
                _pattern_key(pattern)
            except (BadURI, UnicodeError) as error:
                raise self.error(name, str(error)) from error
        return value

    def headers(self) -> tuple[tuple[str, str], ...]:
        value = self.take("headers", dict)
        if value is None:
            return ()
        if not all(isinstance(text, str) for text in value.values()):
            raise self.error("headers", "expected names with strings")
        return tuple((name, self.filled(name, text)) for name, text in value.items())

    def filled(self, name: str, text: str) -> str:
        """The text with `${NAME}` replaced from the environment."""
        for variable in _VARIABLE.findall(text):
            if variable not in os.environ:
                raise self.error(
                    f"headers.{name}", f"the environment has no {variable}", hint=f"export {variable}=... and try again"
                )
        return _VARIABLE.sub(lambda match: os.environ[match[1]], text)

    def rates(self) -> tuple[Rate | None, Rate | None]:
        """Rates for index requests and for replay: one for both, or a table with one for each kind of request."""
        name = "rates" if "rates" in self.entry else "rate"
        value = self.entry.pop(name, None)
        if value is None:
            return None, None
        if not isinstance(value, Mapping):
            rate = self.rate(name, value)
            return rate, rate
        unknown = [kind for kind in value if kind not in (*_INDEX_RATES, *_REPLAY_RATES)]
        if unknown:
            raise self.error(
                f"{name}.{unknown[0]}", f"unknown key; known are {', '.join(_INDEX_RATES + _REPLAY_RATES)}"
            )
        return self.slowest(name, value, _INDEX_RATES), self.slowest(name, value, _REPLAY_RATES)

    def slowest(self, name: str, table: Mapping[str, Any], kinds: tuple[str, ...]) -> Rate | None:
        rates = [self.rate(f"{name}.{kind}", table[kind]) for kind in kinds if kind in table]
        return min(rates, key=lambda rate: rate.per_second, default=None)

    def rate(self, name: str, value: Any) -> Rate:
        """A number a second, or `24/min`."""
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            return Rate(float(value), 1)
        match = _RATE.fullmatch(value) if isinstance(value, str) else None
        if match is None or float(match[1]) <= 0:
            raise self.error(name, f"expected requests a second, or like '24/min', found {value!r}")
        return Rate(float(match[1]), _SECONDS[match[2][0].lower()])

    def error(self, key: str, why: str, hint: str = "") -> RecollectError:
        return FormatError("bad archive", where=f"{self.where}: {key}", why=why, hint=hint)


_WORDS: dict[Any, str] = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}


def choose(archives: tuple[Archive, ...], wanted: str) -> tuple[Archive, ...]:
    """The archives of a choice like `ia,loc` (those named, ignored ones too) or `!ia` (the usual ones but those)."""
    known = {archive.id: archive for archive in archives}
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    for name in names:
        if name.removeprefix("!") not in known:
            raise FormatError(
                "no such archive",
                where=repr(name.removeprefix("!")),
                why=f"known are {', '.join(known)}",
                hint="`recollect archives list` shows them",
            )
    without = {name[1:] for name in names if name.startswith("!")}
    named = {name for name in names if not name.startswith("!")}
    if not named:
        return tuple(a for a in archives if not a.ignore and a.id not in without)
    return tuple(a for a in archives if a.id in named and a.id not in without)
