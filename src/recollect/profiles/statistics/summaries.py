"""Captures counted the way other tools count them: cdx-summary, cdx-summarize, archive_profiler.

Hides: their categories, spelling and layouts, so that their readers (the web component of cdx-summary,
`combine-summary`, `overlap.py`) take what `recollect stats --summary` writes. What each counts:

- cdx-summary (Internet Archive): all captures; media types and classes of status, segments of path and query, months,
  hosts with most captures, and a random sample of pages.
- cdx-summarize (National Library of Luxembourg): captures with status 2xx by second-level domain, year and category.
- archive_profiler (Alam et al. 2015): captures and URI-Rs by prefixes of hosts, by month and by media type.

One pass over the captures in the order of the inputs. Memory grows with hosts and, for archive_profiler, with URI-Rs.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from random import Random
from typing import Any

from recollect.errors import UsageError
from recollect.formats.cdx import Capture
from recollect.formats.detect import Kind, Source
from recollect.model import Problem, Progress, ProgressCallback
from recollect.profiles.indexes.batch import Batch
from recollect.profiles.indexes.scan import ScanOptions, scan
from recollect.profiles.indexes.select import Filter
from recollect.uris import segments, uri_key

SAMPLES = 10
HOST_DEPTH = 3
_SEGMENTS = 5
_MIME_GROUPS = {
    "html": "HTML",
    "image": "Image",
    "css": "CSS",
    "javascript": "JavaScript",
    "json": "JSON",
    "xml": "XML",
    "plain": "Text",
    "pdf": "PDF",
    "font": "Font",
    "audio": "Audio",
    "video": "Video",
    "revisit": "Revisit",
    "other": "Other",
}
_CLASSES = ("2XX", "3XX", "4XX", "5XX", "Other")
_CATEGORIES = ("html", "image", "video", "audio", "pdf", "js", "json", "font", "css", "other", "http", "https", "total")
_CATEGORY = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/plain": "html",
    "text/css": "css",
    "application/pdf": "pdf",
    "application/javascript": "js",
    "text/javascript": "js",
    "application/x-javascript": "js",
    "application/json": "json",
    "text/json": "json",
    "application/vnd.ms-fontobject": "font",
}
_CATEGORY_STARTS = {
    "image/": "image",
    "video/": "video",
    "audio/": "audio",
    "font/": "font",
    "application/font": "font",
    "application/x-font": "font",
}


class Summary(StrEnum):
    """Whose summary."""

    CDX_SUMMARY = "cdx-summary"
    CDX_SUMMARIZE = "cdx-summarize"
    ARCHIVE_PROFILER = "archive-profiler"


def summarize(
    sources: Sequence[Source],
    kind: Summary,
    chosen: Filter,
    *,
    top: int,
    threads: int = 2,
    on_problem: Callable[[Problem], None],
    progress: ProgressCallback = lambda _p: None,
) -> Iterator[str]:
    """The text of a summary, in pieces."""
    maps = [source.label for source in sources if source.kind in (Kind.MAP, Kind.PROFILE)]
    if maps:
        raise UsageError("a map has no captures to summarize", where=maps[0], hint="give the indexes it was made from")
    captures = _captures(sources, chosen, threads, on_problem, progress)
    if kind is Summary.CDX_SUMMARY:
        yield json.dumps(_cdx_summary(captures, top), indent=2) + "\n"
    elif kind is Summary.CDX_SUMMARIZE:
        yield from _cdx_summarize(captures)
    else:
        yield json.dumps(_archive_profile(captures), indent=4, sort_keys=True) + "\n"


def _captures(
    sources: Sequence[Source],
    chosen: Filter,
    threads: int,
    on_problem: Callable[[Problem], None],
    progress: ProgressCallback,
) -> Iterator[Capture]:
    def work(batch: Batch) -> list[Capture]:
        keep, _ = chosen.apply(batch)
        return [batch.capture_at(line) for line in keep.nonzero()[0].tolist()]

    count = 0
    for piece in scan(sources, work, ScanOptions(threads)):
        for problem in piece.problems:
            on_problem(problem)
        for captures in piece.results:
            count += len(captures)
            yield from captures
        progress(Progress("summarizing", count, None, "captures"))


# -- cdx-summary ----------------------------------------------------------------------------------------------


def _cdx_summary(captures: Iterator[Capture], top: int) -> dict[str, Any]:
    count = urls = hosts = size = 0
    first, last, surt, host = "", "", b"", ""
    per_host: Counter[str] = Counter()
    grid: Counter[tuple[str, str]] = Counter()
    shape: Counter[tuple[str, str]] = Counter()
    months: Counter[tuple[str, str]] = Counter()
    sample = _Sample(SAMPLES)
    for capture in captures:
        count += capture.count
        urls += capture.surt != surt
        surt = capture.surt
        name, path, query = _parts(surt)
        hosts += name != host
        host = name
        per_host[name] += capture.count
        size += capture.length or 0
        if capture.timestamp:
            first = min(first or capture.timestamp, capture.timestamp)
            last = max(last, capture.timestamp)
            months[capture.timestamp[:4], capture.timestamp[4:6]] += capture.count
        grid[_mime_group(capture.media_type or ""), _status_group(capture.status)] += capture.count
        shape[_bounded("P", _pieces(path, "/")), _bounded("Q", _pieces(query, "&"))] += capture.count
        if capture.status == 200 and capture.media_type == "text/html" and not surt.endswith(b"/robots.txt"):
            sample.offer((capture.timestamp, capture.url or ""))
    years = sorted({year for year, _ in months})
    depths = {letter: [*(f"{letter}{n}" for n in range(_SEGMENTS)), "Other"] for letter in "PQ"}
    return {
        "captures": count,
        "urls": urls,
        "hosts": hosts,
        "bytes": size,
        "first": first,
        "last": last,
        "tophosts": {".".join(reversed(name.split(","))): n for name, n in per_host.most_common(top)},
        "mimestatus": {group: {kind: grid[group, kind] for kind in _CLASSES} for group in _MIME_GROUPS.values()},
        "pathquery": {path: {query: shape[path, query] for query in depths["Q"]} for path in depths["P"]},
        "yearmonth": {year: {f"{n:02}": months[year, f"{n:02}"] for n in range(1, 13)} for year in years},
        "samples": [list(one) for one in sample.kept],
    }


class _Sample:
    """A random sample of a stream; the same one for the same stream."""

    def __init__(self, size: int) -> None:
        self.kept: list[tuple[str, str]] = []
        self._size, self._seen, self._chance = size, 0, Random(0)

    def offer(self, one: tuple[str, str]) -> None:
        self._seen += 1
        if len(self.kept) < self._size:
            self.kept.append(one)
        elif (place := self._chance.randrange(self._seen)) < self._size:
            self.kept[place] = one


def _parts(surt: bytes) -> tuple[str, str, str]:
    """Host, path and query of a SURT as it is written in the index."""
    host, _, rest = surt.decode("utf-8", "replace").partition(")")
    path, _, query = rest.partition("?")
    return host, path, query


def _pieces(text: str, separator: str) -> int:
    bare = text.strip(separator)
    return bare.count(separator) + 1 if bare else 0


def _bounded(letter: str, number: int) -> str:
    return f"{letter}{number}" if number < _SEGMENTS else "Other"


def _mime_group(media_type: str) -> str:
    group, _, subtype = media_type.lower().partition("/")
    for part in (subtype, group):
        if part in _MIME_GROUPS:
            return _MIME_GROUPS[part]
    if subtype.startswith("xhtml"):
        return "HTML"
    return "XML" if subtype.endswith("+xml") or subtype.startswith("xml-") else "Other"


def _status_group(status: int | None) -> str:
    return f"{status // 100}XX" if status is not None and 200 <= status < 600 else "Other"


# -- cdx-summarize --------------------------------------------------------------------------------------------


def _cdx_summarize(captures: Iterator[Capture]) -> Iterator[str]:
    found: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for capture in captures:
        if capture.status is None or not 200 <= capture.status < 300 or not capture.timestamp:
            continue
        counts = found[_second_level(capture.surt)][capture.timestamp[:4]]
        scheme = (capture.url or "http:").partition(":")[0].lower()
        for name in (_category(capture.media_type or ""), "total", *([scheme] if scheme in ("http", "https") else [])):
            counts[f"n_{name}"] += capture.count
            counts[f"s_{name}"] += capture.length or 0
    names = [f"{kind}_{name}" for kind in "ns" for name in _CATEGORIES]
    for domain in sorted(found):
        years = {year: {name: counts[name] for name in names} for year, counts in sorted(found[domain].items())}
        yield f"{domain} {json.dumps(years)}\n"


def _second_level(surt: bytes) -> str:
    """The second-level domain; an IP address stays whole."""
    hosts = segments(uri_key(surt))[0]
    if b"," in hosts[0] or hosts[0].startswith(b"["):
        return ".".join(reversed(hosts[0].decode().split(",")))
    names = [name.decode() for name in hosts[:2] if not name.startswith(b":")]
    return ".".join(reversed(names))


def _category(media_type: str) -> str:
    if media_type in _CATEGORY:
        return _CATEGORY[media_type]
    return next((name for start, name in _CATEGORY_STARTS.items() if media_type.startswith(start)), "other")


# -- archive_profiler -----------------------------------------------------------------------------------------


def _archive_profile(captures: Iterator[Capture]) -> dict[str, Any]:
    found: dict[str, dict[str, Counter[bytes]]] = {
        name: defaultdict(Counter) for name in ("suburi", "time", "mediatype")
    }
    for capture in captures:
        hosts = _parts(capture.surt)[0].split(",")
        for depth in range(1, min(len(hosts), HOST_DEPTH) + 1):
            found["suburi"][",".join(hosts[:depth]) + ")/"][capture.surt] += capture.count
        if capture.timestamp:
            found["time"][capture.timestamp[:6]][capture.surt] += capture.count
        found["mediatype"][capture.media_type or "-"][capture.surt] += capture.count
    stats: dict[str, Any] = {
        name: {key: _of_surts(surts) for key, surts in some.items()} for name, some in found.items()
    }
    return {
        "@context": "https://oduwsdl.github.io/contexts/archiveprofile.jsonld",
        "@id": "",
        "about": {"name": "", "mechanism": "cdx", "host_depth": HOST_DEPTH, "path_depth": 0},
        "stats": {**stats, "language": {}},
    }


def _of_surts(surts: Counter[bytes]) -> dict[str, Any]:
    counts = surts.values()
    return {"urir": len(surts), "urim": {"total": sum(counts), "min": min(counts), "max": max(counts)}}
