r"""Lookups that people made: access logs and lists of URIs, one stream of `LogEntry`.

Hides how the many kinds of logs spell one thing: somebody asked for this URI, then, so many times, and this was the
answer. Each line is read for itself, so files of mixed kinds work. What is understood:

    http://example.com/a                      a URL list; also without scheme, with spaces, and SURTs (`com,example)/a`)
    12 http://example.com/a                   `count url` or `url count`, by tabs or by spaces (as `uniq -c` writes)
    {"uri": "...", "at": "...", "status": 200}   JSON lines, as our own access log writes them
    at <TAB> uri <TAB> status <TAB> count     TSV, with or without a line naming the columns
    1.2.3.4 - - [10/Oct/2019:13:55:36 -0700] "GET /web/2016/http://a.b/ HTTP/1.1" 200 12 ...
                                              Common or Combined log, also with a virtual host in front
    INFO: 2019/01/16 12:00:00.000000 Aggregating Mementos for http://a.b/      MemGator's log

A request names its URI in its path (`/web/TIME/URI`, `/web/TIMEid_/URI`, `/web/*/URI`, `/timemap/FORMAT/URI`,
`/timegate/URI`, `/memento/TIME/URI`, `/api/FORMAT/TIME/URI`), in a `url=` parameter, or is itself absolute (a proxy's
log).

Invariants: `uri` is never empty and has no white space around it; `count` is at least 1; `at` is aware and in UTC.
Lines that are readable but ask for no URI (an archive's own pages, MemGator's other lines) yield nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from recollect.datetimes import parse_any
from recollect.errors import FormatError
from recollect.formats.containers import BOM, open_input
from recollect.formats.lists import uri_of_line
from recollect.model import Problem


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One line's worth of lookups of one URI (or SURT)."""

    uri: str
    at: datetime | None = None
    status: int | None = None
    count: int = 1


class NoLookup(FormatError):
    """A line that is readable but asks for no URI."""


_CLF = re.compile(
    r'(?:\S+ )?\S+ \S+ .+? \[(?P<at>[^\]]+)\] "(?P<request>(?:[^"\\]|\\.)*)" (?P<status>\d{3}|-)(?: |$)', re.DOTALL
)
_CLF_TIME = re.compile(r"(\d{1,2})/([A-Za-z]{3})/(\d{4}):(\d\d):(\d\d):(\d\d)(?: ([+-]\d{4}))?")
_MONTHS = {
    name: 1 + at // 3 for at in range(0, 36, 3) for name in ["janfebmaraprmayjunjulaugsepoctnovdec"[at : at + 3]]
}
_MEMGATOR = re.compile(
    r"(?:INFO|ERROR|FATAL|BENCHMARK|WARNING): (\d{4})/(\d\d)/(\d\d) (\d\d):(\d\d):(\d\d)(?:\.\d+)? (.*)"
)
_MEMGATOR_LOOKUP = re.compile(r"Aggregating Mementos for (\S.*)")
_COUNTED = re.compile(r"(?:(\d+)\s+(\S+)|(\S+)\s+(\d+))")
# Where a path of an archive or aggregator holds the original URI. A URI after a time may lack its scheme (people
# type it so); elsewhere one must be seen, or every page of the service would look like a lookup.
_IN_PATH = (
    re.compile(
        r"/(?:[^?]*?/)??(?:timemap|timebundle|map)/(?:\*/)?(?:link|json|cdxj|html|spring|rdf)/(?:\d+/)?(?P<uri>[^/].*)"
    ),
    re.compile(r"/(?:[^?]*?/)??timegate/(?P<uri>[^/].*)"),
    re.compile(r"/(?:[^?]*?/)??(?:memento|api)/(?:(?:link|json|cdxj|proxy)/)?\d{4,14}/(?P<uri>[^/].*)"),
    re.compile(r"/(?:[^?]*?/)??(?:\d{4,14}(?:[a-z]{2}_(?:\d+)?)?|\d{0,13}\*)/(?P<uri>[^/].*)"),
    re.compile(r"/(?:[^?]*?/)??(?P<uri>(?:https?|ftp)(?::|%3[aA])(?:/|%2[fF])+[^/].*)"),
)
_SCHEME = re.compile(r"(?:https?|ftp):/+", re.IGNORECASE)
# Without a scheme, what stands before a port would be taken for one.
_HOST_AND_PORT = re.compile(r"[^:/?#(),]+:\d+(?:[/?#]|$)")
_COLUMNS = {
    "uri": ("uri", "url", "uri_r", "surt", "original", "urir"),
    "at": ("at", "time", "datetime", "date", "timestamp", "ts"),
    "status": ("status", "status_code", "code"),
    "count": ("count", "hits", "requests", "n", "frequency"),
}


def read_lookups(
    paths: str | Path | Iterable[str | Path], on_problem: Callable[[Problem], None] | None = None
) -> Iterator[LogEntry]:
    """Every lookup in these files, folders and globs (`-` is stdin; gzip, bzip2 and zstd by content).

    `on_problem` hears of each line that cannot be read, and of damage; without it the first raises FormatError.
    """
    # It loads the readers of indexes, which readers of a log may do without.
    from recollect.formats.detect import files_of

    for path in files_of([paths] if isinstance(paths, str | Path) else paths):
        with open_input(path, on_problem) as stream:
            yield from read_lines(stream, stream.label, on_problem)


def read_lines(
    lines: Iterable[bytes],
    name: str,
    on_problem: Callable[[Problem], None] | None = None,
    on_other: Callable[[], None] = lambda: None,
) -> Iterator[LogEntry]:
    """The lookups in lines of bytes; `name` is what problems call the file, `on_other` hears of lines without one."""
    columns: dict[str, int] | None = None
    for number, raw in enumerate(lines, 1):
        text = raw.removeprefix(BOM) if number == 1 else raw
        line = text.decode("utf-8", "surrogateescape").strip("\r\n ")
        if not line.strip() or line.startswith("#"):
            continue
        if "\t" in line:
            named = _named_columns(line)
            if named is not None:
                columns = named
                continue
        try:
            yield parse_entry(line, columns)
        except NoLookup:
            on_other()
        except FormatError as error:
            problem = Problem(name, number, str(error), line[:120])
            if on_problem is None:
                raise FormatError("cannot read a line", where=f"{name}:{number}", why=str(error)) from error
            on_problem(problem)


def parse_entry(line: str, columns: Mapping[str, int] | None = None) -> LogEntry:
    """The lookup of one line, whatever its kind; raises NoLookup for a line that asks for nothing, else FormatError."""
    if line.startswith("{"):
        return _from_json(line)
    memgator = _MEMGATOR.fullmatch(line)
    if memgator:
        return _from_memgator(memgator)
    if "\t" in line:
        return _from_tsv(line.split("\t"), columns)
    access = _CLF.match(line)
    if access:
        return _from_access(access)
    counted = _COUNTED.fullmatch(line)
    if counted:
        before, after, uri, count = counted.groups()
        return LogEntry(_checked(after or uri), count=_positive(before or count))
    alone = uri_of_line(line)
    if alone is not None:
        return LogEntry(_checked(alone))
    raise FormatError("neither a URI nor a line of a log that is known")


def uri_of_request(target: str) -> str:
    """The original URI that a request target asks an archive or aggregator for; raises NoLookup."""
    if _SCHEME.match(target):
        return _mended(target)
    path, _, query = target.partition("?")
    for pattern in _IN_PATH:
        match = pattern.fullmatch(target)
        if match and "." in match["uri"].partition("?")[0]:
            return _mended(match["uri"])
    for name, value in parse_qsl(query):
        if name in ("url", "uri") and value:
            return _mended(value)
    raise NoLookup("the request names no URI", where=path[:80])


def _mended(uri: str) -> str:
    """Undo what clients and servers do to a URI inside a path: percent-encode it whole, melt its double slash."""
    if re.match(r"(?:https?|ftp)%3a", uri, re.IGNORECASE):
        uri = unquote(uri, errors="surrogateescape")
    scheme = _SCHEME.match(uri)
    if scheme:
        uri = scheme[0].rstrip("/") + "//" + uri[scheme.end() :]
    return _checked(uri)


def _checked(uri: str) -> str:
    stripped = uri.strip().strip("<>")
    # A name with a dot, a SURT, an IPv6 address or something with a scheme; a bare word is a typing error.
    if not stripped or not re.search(r"[.)\]:*]", stripped):
        raise FormatError("not a URI", why="it has neither scheme nor host")
    return f"http://{stripped}" if _HOST_AND_PORT.match(stripped) else stripped


def _positive(text: str) -> int:
    count = int(text)
    if count < 1:
        raise NoLookup("a count of zero")
    return count


def _from_json(line: str) -> LogEntry:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise FormatError("broken JSON", why=str(error)) from error
    if not isinstance(record, dict):
        raise FormatError("broken JSON", why="not an object")
    fields = {
        field: next((record[name] for name in names if name in record), None) for field, names in _COLUMNS.items()
    }
    if not isinstance(fields["uri"], str):
        raise NoLookup("the record names no URI")
    return _entry(fields)


def _from_tsv(cells: list[str], columns: Mapping[str, int] | None) -> LogEntry:
    if columns is not None:
        return _entry({field: cells[at] for field, at in columns.items() if at < len(cells)})
    fields: dict[str, Any] = {}
    for cell in (cell.strip() for cell in cells):
        if "uri" not in fields and re.search(r"[a-z)][.)/:]", cell, re.IGNORECASE) and not re.match(r"\d{4}-", cell):
            fields["uri"] = cell
        elif cell.isdigit() and len(cells) == 2:
            fields["count"] = cell
        elif re.fullmatch(r"[1-5]\d\d", cell) and "status" not in fields:
            fields["status"] = cell
        elif re.fullmatch(r"\d{1,9}", cell):
            fields["count"] = cell
        elif "at" not in fields and re.match(r"\d{4}", cell):
            fields["at"] = cell
    if "uri" not in fields:
        raise FormatError("no column holds a URI")
    return _entry(fields)


def _named_columns(line: str) -> dict[str, int] | None:
    """Field -> column, when the line names columns and holds no data."""
    cells = [cell.strip().lower() for cell in line.split("\t")]
    known = {name: field for field, names in _COLUMNS.items() for name in names}
    found = {known[cell]: index for index, cell in enumerate(cells) if cell in known}
    return found if "uri" in found else None


def _entry(fields: Mapping[str, Any]) -> LogEntry:
    at, status, count = fields.get("at"), fields.get("status"), fields.get("count")
    try:
        moment = parse_any(str(at)) if at not in (None, "", "-") else None
    except FormatError as error:
        raise FormatError("not a datetime", where=repr(at)) from error
    try:
        code = int(status) if status not in (None, "", "-") else None
        times = _positive(str(count)) if count not in (None, "", "-") else 1
    except ValueError as error:
        raise FormatError("not a number", why=str(error)) from error
    return LogEntry(_checked(str(fields.get("uri", ""))), moment, code, times)


def _from_memgator(match: re.Match[str]) -> LogEntry:
    lookup = _MEMGATOR_LOOKUP.fullmatch(match[7])
    if lookup is None:
        raise NoLookup("another line of MemGator's log")
    return LogEntry(_mended(lookup[1]), _moment(*(int(part) for part in match.groups()[:6])))


def _from_access(match: re.Match[str]) -> LogEntry:
    parts = match["request"].split(" ")
    if len(parts) < 2:
        raise NoLookup("an empty request")
    target = " ".join(parts[1:-1]) if parts[-1].startswith("HTTP/") and len(parts) > 2 else " ".join(parts[1:])
    uri = uri_of_request(target)
    status = None if match["status"] == "-" else int(match["status"])
    return LogEntry(uri, _access_time(match["at"]), status)


def _access_time(text: str) -> datetime:
    match = _CLF_TIME.fullmatch(text)
    if match is None or match[2].lower() not in _MONTHS:
        return parse_any(text)
    day, month, year, hour, minute, second, zone = match.groups()
    moment = _moment(int(year), _MONTHS[month.lower()], int(day), int(hour), int(minute), int(second))
    if zone is None or zone[1:] == "0000":
        return moment
    return datetime.strptime(f"{moment:%Y-%m-%dT%H:%M:%S}{zone}", "%Y-%m-%dT%H:%M:%S%z").astimezone(UTC)


def _moment(year: int, month: int, day: int, hour: int, minute: int, second: int) -> datetime:
    try:
        return datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError as error:
        raise FormatError("not a datetime", why=str(error)) from error
