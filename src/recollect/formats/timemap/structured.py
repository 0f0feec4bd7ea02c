"""TimeMaps in JSON and CDXJ, and CDX listings in their place.

Shapes that are read:

- JSON as MemGator and Time Travel write it: `{"original_uri", "timegate_uri", "mementos": {"list": [{"datetime",
  "uri"}], "first": {...}, "last": {...}}}`, `uri` a string or a list, and `{"timemap_index": [{"uri", "from",
  "until"}]}`;
- a CDX server's JSON (an array of rows, the first naming the fields) and NDJSON: captures without URI-M, which is made
  from where the TimeMap lies (`…/web/timemap/json/…` → `…/web/{timestamp}/{original}`);
- CDXJ: `!meta {...}` (or `@meta`), then `timestamp {"uri": ...}` or `surt timestamp {"url": ...}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from recollect.formats.timemap.found import Found
from recollect.formats.timemap.links import Problems, resolve
from recollect.formats.timemap.model import Page, TimeMap

_FLAT_OBJECT = re.compile(r"\{[^{}]*\}")
_CAPTURE = re.compile(r"(?:\S+ )?(\d{4,14}) +(\{.*)")


def read_json(text: str, base: str, problems: Problems) -> TimeMap:
    found = Found(base, problems, http_dates=False)
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError):
        document = list(_whole_objects(text))
        if _FLAT_OBJECT.sub("", text).strip(", \t\r\n"):
            problems.lose("broken or cut-off JSON")
    known = _document(document, found) or bool(found.uris)
    if not known:
        problems.add("JSON without mementos")
    return found.timemap("json" if known else "other")


def _whole_objects(text: str) -> Iterator[Any]:
    """The objects without objects in them that came whole: the mementos of a cut-off body, the lines of NDJSON."""
    for match in _FLAT_OBJECT.finditer(text):
        try:
            yield json.loads(match[0])
        except ValueError:
            continue


def _document(document: Any, found: Found) -> bool:
    """Whether this has the shape of a TimeMap."""
    if isinstance(document, list):
        return _rows(document, found)
    if not isinstance(document, dict):
        return False
    if "timestamp" in document:
        return _rows(document, found)  # one line of NDJSON
    _names(document, found)
    index = document.get("timemap_index")
    for page in index if isinstance(index, list) else []:
        if isinstance(page, dict) and (uri := _address(page.get("uri"), found)):
            since, until = (found.date(str(page.get(name) or "")) for name in ("from", "until"))
            found.pages.append(Page(uri, since, until))
    mementos = document.get("mementos")
    if isinstance(mementos, dict) and "datetime" not in mementos:
        for name in ("list", "first", "prev", "closest", "next", "last"):
            _rows(mementos.get(name), found)
    else:
        _rows(mementos, found)
    return "mementos" in document or bool(found.pages)


def _names(document: dict[str, Any], found: Found) -> None:
    found.original = found.original or _address(document.get("original_uri"), found)
    found.timegate = found.timegate or _address(document.get("timegate_uri"), found)


def _rows(rows: Any, found: Found) -> bool:
    if isinstance(rows, dict):
        rows = [rows]
    if not isinstance(rows, list):
        return False
    if rows and isinstance(rows[0], list):
        names = [str(name) for name in rows[0]]
        rows = [dict(zip(names, row, strict=False)) for row in rows[1:] if isinstance(row, list)]
    for row in rows:
        if isinstance(row, dict):
            _memento(row, str(row.get("datetime") or row.get("timestamp") or ""), found)
    return not rows or isinstance(rows[0], dict)


def _memento(row: dict[str, Any], date: str, found: Found) -> None:
    uris = row.get("uri") or row.get("uri_m") or row.get("urim") or _replay(row, found.base)
    for uri in uris if isinstance(uris, list) else [uris]:
        address = _address(uri, found)
        if address:
            found.memento(address, date)


def _replay(row: dict[str, Any], base: str) -> str:
    """The URI-M of a capture listed without one, made from the place of the TimeMap; empty if that tells nothing."""
    place, found, _ = base.partition("/timemap/")
    original, stamp = row.get("url") or row.get("original"), row.get("timestamp")
    return f"{place}/{stamp}/{original}" if found and original and stamp else ""


def _address(uri: Any, found: Found) -> str:
    if not isinstance(uri, str) or not uri:
        return ""
    address = resolve(found.base, uri)
    if address is None:
        found.problems.add("a target that is no web address", uri)
    return address or ""


def read_cdxj(text: str, base: str, problems: Problems) -> TimeMap:
    found = Found(base, problems, http_dates=False)
    for line in text.split("\n"):
        line = line.strip()
        if line.startswith(("!", "@")):
            _header(line, found)
        elif line:
            _capture(line, found)
    return found.timemap("cdxj")


def _header(line: str, found: Found) -> None:
    try:
        value = json.loads(line.partition(" ")[2])
    except (ValueError, RecursionError):
        found.problems.add("a header that is no JSON", line)
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
