"""Writing TimeMaps and descriptions of mementos: link-format (RFC 7089), JSON and CDXJ as MemGator shapes them.

Hides: the three grammars, escaping, and dates made fast. Everything is yielded in chunks of bytes, so that an answer of
100,000 mementos streams. Each memento names its archive (`archive`, an extension that other readers skip).

Byte layout: link-format has one link a line, `,\\n` between them; JSON is indented by two; CDXJ has `!` headers, then
`YYYYMMDDhhmmss {"uri", "rel", "datetime", "archive"}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii
from typing import Any

from recollect.datetimes import format_http_date, format_iso, format_timestamp
from recollect.formats.timemap.links import quote, safe_uri
from recollect.formats.timemap.model import (
    AFTER_URI,
    DATE,
    Memento,
    Mementos,
    Negotiated,
    Row,
    moment_to_datetime,
    moment_to_timestamp,
)

MEDIA_TYPES = {"link": "application/link-format", "json": "application/json", "cdxj": "application/cdxj+ors"}
_CHUNK = 500  # mementos written at a time: larger pieces leave the processor's cache, and take twice as long


@dataclass(frozen=True, slots=True)
class Place:
    """Where an aggregator serves one resource: the URIs that its TimeMaps and headers name."""

    base: str
    """The aggregator's own address, without a slash at the end."""
    uri_r: str

    @property
    def original(self) -> str:
        return safe_uri(self.uri_r)

    @property
    def timegate(self) -> str:
        return f"{self.base}/timegate/{self.original}"

    def timemap(self, kind: str, page: int | None = None) -> str:
        number = "" if page is None else f"{page}/"
        return f"{self.base}/timemap/{kind}/{number}{self.original}"


@dataclass(frozen=True, slots=True)
class Paging:
    """Which page is written, of how large pages; the links to the others follow from all mementos."""

    number: int
    size: int

    def count(self, total: int) -> int:
        return max(1, -(-total // self.size))


def write_timemap(
    kind: str, place: Place, mementos: Mementos, *, paging: Paging | None = None, extra: Mapping[str, Any] | None = None
) -> Iterator[bytes]:
    """The TimeMap as chunks of bytes; `extra` adds members to JSON and `!meta` lines to CDXJ."""
    if kind == "link":
        return _write_link(place, mementos, paging)
    if kind == "json":
        return _write_json(place, mementos, paging, extra or {})
    return _write_cdxj(place, mementos, paging, extra or {})


def write_memento(kind: str, place: Place, choice: Negotiated, extra: Mapping[str, Any] | None = None) -> bytes:
    """The description of one choice: first, prev, closest, next and last."""
    if kind == "link":
        return ",\n".join(_choice_links(place, choice)).encode() + b"\n"
    if kind == "json":
        named = {name: _json_memento(memento) for name, memento in _by_name(choice)}
        document = {"original_uri": place.original, "mementos": named, **_json_places(place), **(extra or {})}
        return json.dumps(document, indent=2).encode() + b"\n"
    lines = _cdxj_head(place, "", extra or {})
    lines += [_cdxj_line(m, " ".join((*names, "memento"))) for m, names in _by_memento(choice, "closest")]
    return "\n".join(lines).encode() + b"\n"


def link_header(place: Place, choice: Negotiated | None) -> str:
    """The Link header of a TimeGate's answer, without a choice that of an error."""
    return ", ".join(_choice_links(place, choice))


# Link-format


def _write_link(place: Place, mementos: Mementos, paging: Paging | None) -> Iterator[bytes]:
    shown = mementos if paging is None else mementos.page(paging.number, paging.size)
    kind = f'type="{MEDIA_TYPES["link"]}"'
    here = place.timemap("link", paging.number if paging else None)
    head = [f'<{place.original}>; rel="original"', f'<{here}>; rel="self"; {kind}{_range(shown.rows)}']
    yield (",\n".join(head) + ",\n").encode()
    names = [f' GMT"; archive={quote(name)},\n' for name in mementos.archives]
    for start in range(0, len(shown.rows), _CHUNK):
        chunk = shown.rows[start : start + _CHUNK]
        lines = [f"<{stem}{names[archive]}" for _, archive, stem in chunk]
        for at, row in _ends(mementos, chunk):
            lines[at] = lines[at].replace('rel="memento"', f'rel="{_end_rel(mementos, row)}"', 1)
        yield "".join(lines).encode()
    tail = [f'<{place.timemap(name)}>; rel="timemap"; type="{MEDIA_TYPES[name]}"' for name in MEDIA_TYPES]
    if paging is not None:
        tail = [
            f'<{place.timemap("link", number)}>; rel="timemap"; {kind}{_range(mementos.page(number, paging.size).rows)}'
            for number in range(1, paging.count(len(mementos)) + 1)
            if number != paging.number
        ]
    yield (",\n".join([*tail, f'<{place.timegate}>; rel="timegate"']) + "\n").encode()


def _range(rows: list[Row]) -> str:
    if not rows:
        return ""
    return f'; from="{_http(rows[0])}"; until="{_http(rows[-1])}"'


def _http(row: Row) -> str:
    return f"{row[2][-DATE:]} GMT"


def _ends(mementos: Mementos, chunk: list[Row]) -> list[tuple[int, Row]]:
    """The rows of this chunk that are the first or the last of all."""
    first, last = mementos.rows[0], mementos.rows[-1]
    ends = [(0, chunk[0])] if chunk[0] is first else []
    if chunk[-1] is last and (len(chunk) > 1 or not ends):
        ends.append((len(chunk) - 1, last))
    return ends


def _end_rel(mementos: Mementos, row: Row) -> str:
    names = (["first"] if row is mementos.rows[0] else []) + (["last"] if row is mementos.rows[-1] else [])
    return " ".join([*names, "memento"])


def _choice_links(place: Place, choice: Negotiated | None) -> list[str]:
    links = [f'<{place.original}>; rel="original"']
    for memento, names in _by_memento(choice, "") if choice else []:
        archive = f"; archive={quote(memento.archive)}" if memento.archive else ""
        rel = " ".join([*names, "memento"])
        links.append(
            f'<{safe_uri(memento.uri)}>; rel="{rel}"; datetime="{format_http_date(memento.captured_at)}"{archive}'
        )
    links += [f'<{place.timemap(name)}>; rel="timemap"; type="{MEDIA_TYPES[name]}"' for name in MEDIA_TYPES]
    return [*links, f'<{place.timegate}>; rel="timegate"']


def _by_name(choice: Negotiated) -> list[tuple[str, Memento]]:
    named = [(name, getattr(choice, name)) for name in ("first", "prev", "closest", "next", "last")]
    return [(name, memento) for name, memento in named if memento is not None]


def _by_memento(choice: Negotiated, closest: str) -> list[tuple[Memento, list[str]]]:
    """Each memento once, in order of time, with the names it goes by; the chosen one by `closest`."""
    names: dict[Memento, list[str]] = {}
    for name, memento in _by_name(choice):
        words = names.setdefault(memento, [])
        word = closest if name == "closest" else name
        if word:
            words.append(word)
    return list(names.items())


# JSON


def _write_json(place: Place, mementos: Mementos, paging: Paging | None, extra: Mapping[str, Any]) -> Iterator[bytes]:
    shown = mementos if paging is None else mementos.page(paging.number, paging.size)
    here = place.timemap("json", paging.number if paging else None)
    head = f'{{\n  "original_uri": {_text(place.original)},\n  "self": {_text(here)},\n'
    yield (head + '  "mementos": {\n    "list": [').encode()
    names = [_text(name) for name in mementos.archives]
    opening = "\n"
    for start in range(0, len(shown.rows), _CHUNK):
        items = [
            f'      {{\n        "datetime": "{m[:4]}-{m[4:6]}-{m[6:8]}T{m[8:]}Z",\n'
            f'        "uri": {_text(stem[:-AFTER_URI])},\n        "archive": {names[archive]}\n      }}'
            for m, archive, stem in shown.rows[start : start + _CHUNK]
        ]
        yield (opening + ",\n".join(items)).encode()
        opening = ",\n"
    ends = {name: _json_memento(mementos[i]) for name, i in (("first", 0), ("last", -1)) if mementos.rows}
    yield b"\n    ]" if shown.rows else b"]"
    for name, value in ends.items():
        yield f",\n    {_text(name)}: {_nested(value, 4)}".encode()
    members = {**_json_places(place), **_json_pages(place, mementos, paging), **extra}
    yield b"\n  }"
    for name, member in members.items():
        yield f",\n  {_text(name)}: {_nested(member, 2)}".encode()
    yield b"\n}\n"


_text = encode_basestring_ascii


def _nested(value: Any, indent: int) -> str:
    return json.dumps(value, indent=2).replace("\n", "\n" + " " * indent)


def _json_memento(memento: Memento) -> dict[str, str]:
    named = {"datetime": format_iso(memento.captured_at), "uri": safe_uri(memento.uri), "archive": memento.archive}
    return {name: value for name, value in named.items() if value}


def _json_places(place: Place) -> dict[str, Any]:
    return {
        "timemap_uri": {f"{kind}_format": place.timemap(kind) for kind in MEDIA_TYPES},
        "timegate_uri": place.timegate,
    }


def _json_pages(place: Place, mementos: Mementos, paging: Paging | None) -> dict[str, Any]:
    if paging is None:
        return {}
    index = []
    for number in range(1, paging.count(len(mementos)) + 1):
        rows = mementos.page(number, paging.size).rows
        index.append({"uri": place.timemap("json", number), **_json_range(rows)})
    return {"page": paging.number, "timemap_index": index}


def _json_range(rows: list[Row]) -> dict[str, str]:
    if not rows:
        return {}
    return {"from": format_iso(moment_to_datetime(rows[0][0])), "until": format_iso(moment_to_datetime(rows[-1][0]))}


# CDXJ


def _write_cdxj(place: Place, mementos: Mementos, paging: Paging | None, extra: Mapping[str, Any]) -> Iterator[bytes]:
    shown = mementos if paging is None else mementos.page(paging.number, paging.size)
    here = place.timemap("cdxj", paging.number if paging else None)
    if paging is not None:
        pages = [
            {**page, "uri": place.timemap("cdxj", n)}
            for n, page in enumerate(_json_pages(place, mementos, paging)["timemap_index"], 1)
        ]
        extra = {"page": paging.number, "timemap_index": pages, **extra}
    yield ("\n".join(_cdxj_head(place, here, extra)) + "\n").encode()
    names = [f', "archive": {_text(name)}}}\n' for name in mementos.archives]
    for start in range(0, len(shown.rows), _CHUNK):
        chunk = shown.rows[start : start + _CHUNK]
        lines = [
            f'{moment_to_timestamp(moment)} {{"uri": {_text(stem[:-AFTER_URI])}, "rel": "memento", '
            f'"datetime": "{stem[-DATE:]} GMT"{names[archive]}'
            for moment, archive, stem in chunk
        ]
        for at, row in _ends(mementos, chunk):
            lines[at] = lines[at].replace('"rel": "memento"', f'"rel": "{_end_rel(mementos, row)}"', 1)
        yield "".join(lines).encode()


def _cdxj_head(place: Place, here: str, extra: Mapping[str, Any]) -> list[str]:
    head = ['!context ["https://oduwsdl.github.io/contexts/memento"]']
    if here:
        head.append(f"!id {json.dumps({'uri': here})}")
    head += ['!keys ["memento_datetime_YYYYMMDDhhmmss"]', f"!meta {json.dumps({'original_uri': place.original})}"]
    head += [f"!meta {json.dumps({name: value})}" for name, value in reversed(_json_places(place).items())]
    return head + [f"!meta {json.dumps({name: value})}" for name, value in extra.items()]


def _cdxj_line(memento: Memento, rel: str) -> str:
    fields = {"uri": safe_uri(memento.uri), "rel": rel, "datetime": format_http_date(memento.captured_at)}
    if memento.archive:
        fields["archive"] = memento.archive
    return f"{format_timestamp(memento.captured_at)} {json.dumps(fields)}"
