"""Captures out of files that are not line indexes: WARC, ARC, WACZ, TimeMaps, access logs.

One stream of `Capture` for all formats. What is not a capture goes to `on_other` with its kind, what cannot be read to
`on_problem`. Line indexes and Parquet are read faster, see `profiles.scan`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from recollect.datetimes import format_timestamp
from recollect.errors import BadURI, UsageError
from recollect.formats.cdx import Capture, what_it_is
from recollect.formats.containers import BOM, InputStream, open_input
from recollect.formats.detect import Kind, Source
from recollect.formats.forms import Form, Style
from recollect.formats.languages import Detector
from recollect.formats.logs import LogEntry, form_of, outweighs, read_lines
from recollect.formats.timemap import parse_timemap
from recollect.formats.warc import OnOther, OnProblem, read_arc, read_wacz, read_warc
from recollect.model import Problem
from recollect.uris import is_surt, surt

_KINDS = (Kind.EMPTY, Kind.LOG, Kind.TABLE, Kind.WARC, Kind.ARC, Kind.WACZ, Kind.TIMEMAP)


def read_captures(
    source: Source,
    on_problem: OnProblem,
    on_other: OnOther,
    *,
    all_schemes: bool = False,
    detect: Detector | None = None,
    on_note: Callable[[str], None] = lambda _note: None,
) -> Iterator[Capture]:
    """The captures of one source; `detect` detects the language of texts in WARC and ARC files."""
    if source.kind not in _KINDS:
        raise UsageError("no captures are in it", where=source.label, why=f"it is a {source.kind}")
    if source.kind is Kind.WACZ:
        yield from read_wacz(source.path, on_problem, on_other, all_schemes=all_schemes, detect=detect)
        return
    with source.stream or open_input(source.path, on_problem) as stream:
        if source.kind is Kind.EMPTY:
            stream.read()  # so that damage that leaves nothing is reported, too
        elif source.kind is Kind.TIMEMAP:
            yield from _timemap(stream, source, on_problem)
        elif source.kind in (Kind.LOG, Kind.TABLE):
            yield from _log(stream, source, on_problem, on_other, on_note, all_schemes)
        elif source.kind in (Kind.WARC, Kind.ARC):
            read = read_arc if source.kind is Kind.ARC else read_warc
            yield from read(stream, source.label, on_problem, on_other, all_schemes=all_schemes, detect=detect)
    if source.stream is not None:  # damage found while detecting the format is not reported yet
        for why in (stream.damage, stream.flaw):
            if why:
                on_problem(Problem(source.label, None, why))


def _timemap(stream: InputStream, source: Source, on_problem: OnProblem) -> Iterator[Capture]:
    """The mementos of a TimeMap as captures of its original resource."""
    timemap = parse_timemap(stream.read().removeprefix(BOM), "", "")
    for problem in timemap.problems:
        on_problem(Problem(source.label, None, problem))
    if not timemap.uris:
        on_problem(Problem(source.label, None, "a TimeMap without mementos"))
        return
    try:
        key = surt(timemap.original).encode()
    except BadURI as error:
        on_problem(Problem(source.label, None, f"the TimeMap names no original resource: {error}"))
        return
    # JSON names the first and the last memento once more.
    for uri, moment in dict(zip(timemap.uris, timemap.moments, strict=True)).items():
        yield Capture(key, moment.replace(":", ""), timemap.original, filename=uri)


def _log(
    stream: InputStream,
    source: Source,
    on_problem: OnProblem,
    on_other: OnOther,
    on_note: Callable[[str], None],
    all_schemes: bool,
) -> Iterator[Capture]:
    """Lookups that were answered, as captures; failed ones say nothing about holdings."""
    form = source.form or form_of(stream) or Form(Style.LOG)
    total = 0
    heaviest: LogEntry | None = None
    for entry in read_lines(stream, source.label, form, on_problem, lambda: on_other("no lookup")):
        if entry.status is not None and entry.status >= 400:
            on_other("failed lookup")
            continue
        other = None if all_schemes or is_surt(entry.uri) else what_it_is(entry.uri, entry.uri, None, None)
        if other is not None:
            on_other(other)
            continue
        try:
            key = entry.uri.encode("utf-8", "surrogateescape") if is_surt(entry.uri) else surt(entry.uri).encode()
        except BadURI as error:
            on_problem(Problem(source.label, None, str(error), entry.uri[:120]))
            continue
        moment = format_timestamp(entry.at) if entry.at else ""
        total += entry.count
        heaviest = entry if heaviest is None or entry.count > heaviest.count else heaviest
        yield Capture(key, moment, entry.uri, entry.status, count=entry.count)
    if note := outweighs(heaviest, total):
        on_note(f"{source.label}: {note}")
