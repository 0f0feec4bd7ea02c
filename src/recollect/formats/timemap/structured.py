"""TimeMaps in JSON and CDXJ, and CDX listings in their place.

Shapes that are read:

- JSON as MemGator and Time Travel write it: `{"original_uri", "timegate_uri", "mementos": {"list": [{"datetime",
  "uri"}], "first": {...}, "last": {...}}}`, `uri` a string or a list, and `{"timemap_index": [{"uri", "from",
  "until"}]}`;
- a CDX server's JSON (an array of rows, the first naming the fields) and NDJSON: captures without URI-M, which is made
  from where the TimeMap lies (`…/web/timemap/json/…` → `…/web/{timestamp}/{original}`);
- CDXJ: `!meta {...}` (or `@meta`), then `timestamp {"uri": ...}` or `surt timestamp {"url": ...}`.

Large JSON is read member by member (`_in_pieces`), so that no call into the compiled reader holds the interpreter for
long.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from recollect.formats.timemap.found import Found
from recollect.formats.timemap.links import Problems, resolve
from recollect.formats.timemap.model import Page, TimeMap

_FLAT_OBJECT = re.compile(r"\{[^{}]*\}")
_CAPTURE = re.compile(r"(?:\S+ )?(\d{4,14}) +(\{.*)")


_LARGE = 1 << 18
_LONGEST = (2000, 64 * 1024)  # characters of one member: of a usual one, of any
_SPACE = re.compile(r"[ \t\r\n]*")
_DEPTH = 3  # {"mementos": {"list": [...]}}
_STOP_EVERY = 5000
TOO_LATE = "it came too late to be read whole"


def read_json(text: str, base: str, problems: Problems, stop: Callable[[], bool] = lambda: False) -> TimeMap:
    found = Found(base, problems, http_dates=False)
    try:
        document: Any = json.loads(text) if len(text) < _LARGE else _in_pieces(text, problems, stop)
    except (ValueError, RecursionError):
        document = _whole_objects(text, problems, stop)
    known = _document(document, found, stop) or bool(found.uris)
    if not known:
        problems.add("JSON without mementos")
    return found.timemap("json" if known else "other")


def _whole_objects(text: str, problems: Problems, stop: Callable[[], bool]) -> list[Any]:
    """The objects without objects in them that came whole: the mementos of a cut-off body, the lines of NDJSON."""
    objects: list[Any] = []
    end, lost = 0, False
    for number, match in enumerate(_FLAT_OBJECT.finditer(text), 1):
        if number % _STOP_EVERY == 0 and stop():
            problems.lose(TOO_LATE)
            return objects
        lost = lost or bool(text[end : match.start()].strip(", \t\r\n"))
        end = match.end()
        if end - match.start() <= _LONGEST[-1]:
            with contextlib.suppress(ValueError):
                objects.append(json.loads(match[0]))
    if lost or text[end:].strip(", \t\r\n"):
        problems.lose("broken or cut-off JSON")
    return objects


def _in_pieces(text: str, problems: Problems, stop: Callable[[], bool]) -> Any:
    """As `json.loads`, but containers of the first levels are walked here, until `stop`. Raises ValueError, also for a
    member inside them that is longer than any memento."""
    decode = json.JSONDecoder().raw_decode
    late = False

    def skip(at: int) -> int:
        return _SPACE.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing at all, too

    def small(at: int) -> tuple[Any, int]:
        for size in _LONGEST:
            try:
                value, end = decode(text[at : at + size])
            except ValueError:
                continue
            if end < size or at + size >= len(text):  # a number that is cut off looks like a whole one
                return value, at + end
        raise ValueError("not JSON, or too long")

    def value(at: int, depth: int) -> tuple[Any, int]:
        nonlocal late
        opening = text[at : at + 1]
        if depth == _DEPTH or opening not in ("{", "["):
            return small(at)
        members: dict[str, Any] = {}
        items: list[Any] = []
        closing = "}" if opening == "{" else "]"
        at = skip(at + 1)
        while text[at : at + 1] != closing or members or items:
            if opening == "{":
                name, at = small(at)
                at = skip(at)
                if not isinstance(name, str) or text[at : at + 1] != ":":
                    raise ValueError("not a member")
                members[name], at = value(skip(at + 1), depth + 1)
            else:
                item, at = value(at, depth + 1)
                items.append(item)
                late = late or (len(items) % _STOP_EVERY == 0 and stop())
            at = skip(at)
            if late:
                break
            if text[at : at + 1] == closing:
                break
            if text[at : at + 1] != ",":
                raise ValueError("no comma")
            at = skip(at + 1)
        return (members if opening == "{" else items), at + 1

    whole, end = value(skip(0), 0)
    if late:
        problems.lose(TOO_LATE)
    elif skip(end) != len(text):
        raise ValueError("more than one value")
    return whole


def _document(document: Any, found: Found, stop: Callable[[], bool]) -> bool:
    """Whether this has the shape of a TimeMap."""
    if isinstance(document, list):
        return _rows(document, found, stop)
    if not isinstance(document, dict):
        return False
    if "timestamp" in document:
        return _rows(document, found, stop)  # one line of NDJSON
    _names(document, found)
    index = document.get("timemap_index")
    for page in index if isinstance(index, list) else []:
        if isinstance(page, dict) and (uri := _address(page.get("uri"), found)):
            since, until = (found.date(str(page.get(name) or "")) for name in ("from", "until"))
            found.pages.append(Page(uri, since, until))
    mementos = document.get("mementos")
    if isinstance(mementos, dict) and "datetime" not in mementos:
        for name in ("list", "first", "prev", "closest", "next", "last"):
            _rows(mementos.get(name), found, stop)
    else:
        _rows(mementos, found, stop)
    return "mementos" in document or bool(found.pages)


def _names(document: dict[str, Any], found: Found) -> None:
    found.original = found.original or _address(document.get("original_uri"), found)
    found.timegate = found.timegate or _address(document.get("timegate_uri"), found)


def _rows(rows: Any, found: Found, stop: Callable[[], bool]) -> bool:
    """Whether this is a list of captures; it is emptied while it is read, as freeing many at once takes long."""
    if isinstance(rows, dict):
        rows = [rows]
    if not isinstance(rows, list):
        return False
    if rows and isinstance(rows[0], list):
        names = [str(name) for name in rows[0]]
        rows = [dict(zip(names, row, strict=False)) for row in rows[1:] if isinstance(row, list)]
    known = not rows or isinstance(rows[0], dict)
    for number, row in enumerate(rows, 1):
        if number % _STOP_EVERY == 0 and stop():
            found.problems.lose(TOO_LATE)
            break
        rows[number - 1] = None
        if isinstance(row, dict):
            _memento(row, str(row.get("datetime") or row.get("timestamp") or ""), found)
    return known


def _memento(row: dict[str, Any], date: str, found: Found) -> None:
    uris = row.get("uri") or row.get("uri_m") or row.get("urim") or _replay(row, found.base)
    for uri in uris if isinstance(uris, list) else [uris]:
        address = _address(uri, found)
        if address:
            found.memento(address, date)


def _replay(row: dict[str, Any], base: str) -> str:
    """The URI-M of a capture listed without one, made from the place of the TimeMap; empty if that is not possible."""
    place, found, _ = base.partition("/timemap/")
    original, stamp = row.get("url") or row.get("original"), row.get("timestamp")
    return f"{place}/{stamp}/{original}" if found and original and stamp else ""


def _address(uri: Any, found: Found) -> str:
    if not isinstance(uri, str) or not uri:
        return ""
    address = resolve(found.base, uri)
    if address is None:
        found.problems.add("a target that is not a web address", uri)
    return address or ""


def read_cdxj(text: str, base: str, problems: Problems, stop: Callable[[], bool] = lambda: False) -> TimeMap:
    found = Found(base, problems, http_dates=False)
    for number, line in enumerate(_lines(text), 1):
        if number % _STOP_EVERY == 0 and stop():
            problems.lose(TOO_LATE)
            break
        if line.startswith(("!", "@")):
            _header(line, found)
        elif line:
            _capture(line, found)
    return found.timemap("cdxj")


def _lines(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start : min(end, start + _LONGEST[-1])].strip()
        start = end + 1


def _header(line: str, found: Found) -> None:
    try:
        value = json.loads(line.partition(" ")[2])
    except (ValueError, RecursionError):
        found.problems.add("a header that is not JSON", line)
        return
    if isinstance(value, dict):
        _names(value, found)


def _capture(line: str, found: Found) -> None:
    match = _CAPTURE.fullmatch(line)
    try:
        row = json.loads(match[2]) if match else None
    except (ValueError, RecursionError):
        row = None
    if match is None or not isinstance(row, dict):
        found.problems.add("a line that cannot be read", line)
        return
    _memento({"timestamp": match[1], **row}, match[1], found)
