r"""Lookups that people made: access logs and lists of URIs, one stream of `LogEntry`.

Logs of many kinds record the same: a client requested this URI, at this time, this often, and this was the
answer. The form of a file is decided for the whole file from its first lines (see `forms`). What is understood:

    http://example.com/a                      a URL list; also without scheme, with spaces, and SURTs (`com,example)/a`)
    12 http://example.com/a                   tables of url and time, status or count, by tabs, commas, semicolons, bars
    1356998400,http://example.com/a           or spaces (as `uniq -c` writes), with or without a line naming the columns
    {"uri": "...", "at": "...", "status": 200}   JSON lines, as the access log of `recollect serve` has them
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from recollect.datetimes import parse_any
from recollect.errors import FormatError
from recollect.formats.accesslines import AccessLine, access_line
from recollect.formats.cells import count_of, moment_of
from recollect.formats.containers import BOM, InputStream, open_input
from recollect.formats.forms import COLUMN_OF, Asked, Form, Style, decide, looks_like_uri
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


_CLF_TIME = re.compile(r"(\d{1,2})/([A-Za-z]{3})/(\d{4}):(\d\d):(\d\d):(\d\d)(?: ([+-]\d{4}))?")
_MONTHS = {
    name: 1 + at // 3 for at in range(0, 36, 3) for name in ["janfebmaraprmayjunjulaugsepoctnovdec"[at : at + 3]]
}
_MEMGATOR = re.compile(
    r"(?:INFO|ERROR|FATAL|BENCHMARK|WARNING): (\d{4})/(\d\d)/(\d\d) (\d\d):(\d\d):(\d\d)(?:\.\d+)? (.*)"
)
_MEMGATOR_LOOKUP = re.compile(r"Aggregating Mementos for (\S.*)")
# Where a path of an archive or aggregator holds the original URI. A URI after a time may lack its scheme (people
# type it so); elsewhere one must be seen, or every page of the service would look like a lookup.
_IN_PATH = (
    re.compile(
        r"\A/(?:[^?]*?/)??(?:timemap|timebundle|map)/(?:\*/)?(?:link|json|cdxj|html|spring|rdf)/(?:\d+/)?(?P<uri>[^/].*)",
        re.DOTALL,
    ),
    re.compile(r"\A/(?:[^?]*?/)??timegate/(?P<uri>[^/].*)", re.DOTALL),
    re.compile(r"\A/(?:[^?]*?/)??(?:memento|api)/(?:(?:link|json|cdxj|proxy)/)?\d{4,14}/(?P<uri>[^/].*)", re.DOTALL),
    re.compile(r"\A/(?:[^?]*?/)??(?:\d{4,14}(?:[a-z]{2}_(?:\d+)?)?|\d{0,13}\*)/(?P<uri>[^/].*)", re.DOTALL),
    re.compile(r"\A/(?:[^?]*?/)??(?P<uri>(?:https?|ftp)(?::|%3[aA])(?:/|%2[fF])+[^/].*)", re.DOTALL),
)
_SCHEME = re.compile(r"(?:https?|ftp):/+", re.IGNORECASE)
# Without a scheme, the host before a port would be read as a scheme.
_HOST_AND_PORT = re.compile(r"[^:/?#(),]+:\d+(?:[/?#]|$)")
# Lines of a file from which its form is detected, and the bytes they may take.
SAMPLE_LINES = 1000
SAMPLE_BYTES = 1 << 18


class LookupReader(Iterator[LogEntry]):
    """The lookups of files, one after the other; what was read so far: the form of each file, and the weights."""

    def __init__(self, files: Iterable[str], on_problem: Callable[[Problem], None] | None, asked: Asked) -> None:
        self.forms: dict[str, Form] = {}
        self.total = 0
        self.heaviest: LogEntry | None = None
        self._asked = asked
        self._entries = self._read(files, on_problem)

    def __next__(self) -> LogEntry:
        entry = next(self._entries)
        self.total += entry.count
        if self.heaviest is None or entry.count > self.heaviest.count:
            self.heaviest = entry
        return entry

    def _read(self, files: Iterable[str], on_problem: Callable[[Problem], None] | None) -> Iterator[LogEntry]:
        for path in files:
            with open_input(path, on_problem) as stream:
                form = form_of(stream, self._asked)
                if form is None:
                    if stream.preview(1).strip():
                        _refuse(stream.label, on_problem)
                    continue
                self.forms[stream.label] = form
                yield from read_lines(stream, stream.label, form, on_problem)

    def notes(self) -> list[str]:
        """What a person should know of what was read: the forms, and a lookup that outweighs all others."""
        said = [f"{name}: {form}" for name, form in self.forms.items()]
        return said + ([dominant] if (dominant := outweighs(self.heaviest, self.total)) else [])


def outweighs(entry: LogEntry | None, total: int) -> str:
    """A warning if one line is more than half of all lookups; empty otherwise."""
    if entry is None or entry.count == 1 or 2 * entry.count <= total:
        return ""
    return (
        f"warning: one line is {entry.count / total:.1%} of all lookups: {entry.uri[:120]} ×{entry.count:,}; "
        "if that number is not a count, say what the columns are, as --columns url,-"
    )


def _refuse(label: str, on_problem: Callable[[Problem], None] | None) -> None:
    reason = "neither a list of URIs nor a log that is known"
    if on_problem is None:
        raise FormatError(
            reason, where=label, hint=f"recollect inspect {label}, or say it: --input-format, --columns time,url"
        )
    on_problem(Problem(label, None, reason))


def read_lookups(
    paths: str | Path | Iterable[str | Path],
    on_problem: Callable[[Problem], None] | None = None,
    asked: Asked | None = None,
) -> LookupReader:
    """Every lookup in these files, folders and globs (`-` is stdin; gzip, bzip2 and zstd by content).

    `on_problem` hears of each line that cannot be read, and of damage; without it the first raises FormatError.
    `asked` says what form the files have; without it the form is detected.
    """
    # It loads the readers of indexes, which readers of a log may do without.
    from recollect.formats.detect import files_of

    return LookupReader(files_of([paths] if isinstance(paths, str | Path) else paths), on_problem, asked or Asked())


def form_of(stream: InputStream, asked: Asked | None = None) -> Form | None:
    """The form of what an open stream holds, without taking anything out of it."""
    return (asked or Asked()).form(sample_lines(stream.preview(SAMPLE_BYTES)))


def sample_lines(head: bytes) -> list[str]:
    """The first lines that are not empty or comments; the last of a long head may be incomplete and is left out."""
    text = head.removeprefix(BOM).decode("utf-8", "surrogateescape")
    lines = [line.strip("\r ") for line in text.split("\n")]
    if len(head) >= SAMPLE_BYTES and len(lines) > 1:
        lines.pop()
    return [line for line in lines if line.strip() and not line.startswith("#")][:SAMPLE_LINES]


def read_lines(
    lines: Iterable[bytes],
    name: str,
    form: Form,
    on_problem: Callable[[Problem], None] | None = None,
    on_other: Callable[[], None] = lambda: None,
) -> Iterator[LogEntry]:
    """The lookups in lines of bytes; `name` is what problems call the file, `on_other` hears of lines without one."""
    return (entry for _, entry in lines_with_entries(lines, name, form, on_problem, on_other))


def lines_with_entries(
    lines: Iterable[bytes],
    name: str,
    form: Form,
    on_problem: Callable[[Problem], None] | None = None,
    on_other: Callable[[], None] = lambda: None,
) -> Iterator[tuple[str, LogEntry]]:
    """Each line with its lookup; see `read_lines`."""
    named = form.named
    for number, raw in enumerate(lines, 1):
        text = raw.removeprefix(BOM) if number == 1 else raw
        line = text.decode("utf-8", "surrogateescape").strip("\r\n ")
        if not line.strip() or line.startswith("#"):
            continue
        if named:  # the first line with anything in it
            named = False
            continue
        try:
            yield line, parse_entry(line, form)
        except NoLookup:
            on_other()
        except FormatError as error:
            problem = Problem(name, number, str(error), line[:120])
            if on_problem is None:
                raise FormatError("cannot read a line", where=f"{name}:{number}", why=str(error)) from error
            on_problem(problem)


def parse_entry(line: str, form: Form | None = None) -> LogEntry:
    """The lookup of one line of a file of this form (of any, if the line is all there is); raises NoLookup for a line
    that asks for nothing, else FormatError."""
    form = form or decide([line])
    if form is None:
        raise FormatError("neither a URI nor a line of a log that is known")
    if form.style is Style.TABLE:
        return _from_cells(form.cells(line), form)
    if form.style is Style.LIST:
        alone = uri_of_line(line)
        if alone is None:
            raise FormatError("more than a URI in a line of a list")
        return LogEntry(_checked(alone))
    if line.startswith("{"):
        return _from_json(line)
    memgator = _MEMGATOR.fullmatch(line)
    if memgator:
        return _from_memgator(memgator)
    access = access_line(line)
    if access is not None:
        return _from_access(access)
    alone = uri_of_line(line)
    if alone is not None and looks_like_uri(alone):
        return LogEntry(_checked(alone))
    raise FormatError("not a line of a log that is known")


def _from_cells(cells: Sequence[str], form: Form) -> LogEntry:
    if len(cells) != len(form.columns):
        # In a table separated by spaces the URL may contain spaces; elsewhere such a line is broken.
        raise FormatError(f"{len(cells)} columns instead of {len(form.columns)}")
    return _entry({column: cell for column, cell in zip(form.columns, cells, strict=True) if column})


def uri_of_request(target: str) -> str:
    """The original URI that a request target asks an archive or aggregator for; raises NoLookup."""
    if _SCHEME.match(target):
        return _with_slashes(target)
    path, _, query = target.partition("?")
    for pattern in _IN_PATH:
        match = pattern.fullmatch(target)
        if match and "." in match["uri"].partition("?")[0]:
            return _with_slashes(match["uri"])
    for name, value in parse_qsl(query):
        if name in ("url", "uri") and value:
            return _with_slashes(value)
    raise NoLookup("the request names no URI", where=path[:80])


def _with_slashes(uri: str) -> str:
    """Undo what clients and servers do to a URI inside a path: percent-encode it as a whole, merge its double slash."""
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
    try:
        count = count_of(text)
    except ValueError:
        raise FormatError("not a number", where=repr(text)) from None
    if count < 1:
        raise NoLookup("a count of zero")
    return count


def _from_json(line: str) -> LogEntry:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FormatError("broken JSON", why=str(error)) from error
    if not isinstance(record, dict):
        raise FormatError("broken JSON", why="not an object")
    fields: dict[str, Any] = {}
    for name, value in record.items():
        fields.setdefault(COLUMN_OF.get(name, ""), value)
    if not isinstance(fields.get("url"), str):
        raise NoLookup("the record names no URI")
    return _entry(fields)


def _entry(fields: Mapping[str, Any]) -> LogEntry:
    at, status, count = fields.get("time"), fields.get("status"), fields.get("count")
    moment = moment_of(str(at)) if at not in (None, "", "-") else None
    if moment is None and at not in (None, "", "-"):
        raise FormatError("not a datetime", where=repr(at))
    try:
        code = int(status) if status not in (None, "", "-") else None
    except (TypeError, ValueError):
        raise FormatError("not a status", where=repr(status)) from None
    times = _positive(str(count)) if count not in (None, "", "-") else 1
    return LogEntry(_checked(str(fields.get("url", ""))), moment, code, times)


def _from_memgator(match: re.Match[str]) -> LogEntry:
    lookup = _MEMGATOR_LOOKUP.fullmatch(match[7])
    if lookup is None:
        raise NoLookup("another line of MemGator's log")
    return LogEntry(_with_slashes(lookup[1]), _moment(*(int(part) for part in match.groups()[:6])))


def _from_access(line: AccessLine) -> LogEntry:
    parts = line.request.split(" ")
    if len(parts) < 2:
        raise NoLookup("an empty request")
    target = " ".join(parts[1:-1]) if parts[-1].startswith("HTTP/") and len(parts) > 2 else " ".join(parts[1:])
    uri = uri_of_request(target)
    status = None if line.status == "-" else int(line.status)
    return LogEntry(uri, _access_time(line.time), status)


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
