"""Summaries of other tools, read: cdx-summary (JSON), cdx-summarize (`.summary`) and archive_profiler (JSON).

Hides: their layouts. `kind_of_summary` detects them by their beginning; `holdings_of` gives what they say of hosts as
keys of a map. What they carry:

    cdx-summary       {"captures": 9, ..., "tophosts": {"example.com": 9}}        hosts, if all are listed
    cdx-summarize     example.com {"2014": {"n_html": 3, ..., "n_total": 5}}      second-level domains by year, 2xx only
    archive_profiler  {"stats": {"suburi": {"com,example)/": {"urir": 2, "urim": {"total": 5, ...}}}}}    prefixes
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from recollect.errors import BadURI, FormatError
from recollect.formats.containers import open_input, whole_lines
from recollect.formats.frequency import Count, Frequency
from recollect.uris import parent, uri_key

_LINE = re.compile(r'\S+ +\{\s*"\d{4}(?:\d\d)?"\s*:\s*\{\s*"[ns]_[a-z]+"\s*:')
_GRIDS = re.compile(r'"(?:mimestatus|yearmonth|pathquery|tophosts)"\s*:')
_HEAD = 1 << 16
_DOTTED = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")


class SummaryKind(StrEnum):
    """Which tool wrote a summary."""

    CDX_SUMMARY = "cdx-summary"
    CDX_SUMMARIZE = "cdx-summarize"
    ARCHIVE_PROFILER = "archive_profiler"


@dataclass(frozen=True, slots=True)
class Holding:
    """What a summary says of one wildcard; `years` has captures by year, where the tool counts them."""

    key: bytes
    frequency: Frequency
    years: Mapping[str, int] = field(default_factory=dict)


def kind_of_summary(text: str) -> SummaryKind | None:
    """Which tool wrote a file that begins so; None if it is not a summary."""
    text = text.lstrip("\ufeff \t\r\n")
    if text.startswith("{"):
        if '"suburi"' in text or "archiveprofile.jsonld" in text:
            return SummaryKind.ARCHIVE_PROFILER
        return SummaryKind.CDX_SUMMARY if '"captures"' in text and _GRIDS.search(text) else None
    return SummaryKind.CDX_SUMMARIZE if _LINE.match(text) else None


def summary_of(path: str) -> SummaryKind | None:
    """Which tool wrote a file; None if it is not a summary, or cannot be read."""
    try:
        with open_input(path, lambda _damage: None) as stream:
            return kind_of_summary(stream.preview(_HEAD, 50).decode("utf-8", "replace"))
    except OSError:
        return None


def holdings_of(path: str, kind: SummaryKind) -> Iterator[Holding]:
    """What a summary says of hosts and prefixes, one wildcard each, in no order. Raises FormatError."""
    if kind is SummaryKind.CDX_SUMMARIZE:
        yield from _of_lines(path)
        return
    with open_input(path) as stream:
        body = b"".join(whole_lines(stream))
    try:
        found = json.loads(body)
        yield from _of_hosts(found) if kind is SummaryKind.CDX_SUMMARY else _of_prefixes(found["stats"]["suburi"])
    except (ValueError, KeyError, TypeError, AttributeError, BadURI) as error:
        why = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        hint = f"recollect inspect {path} says what it is; a map needs the captures of every host"
        raise FormatError(f"no map can be made of a summary by {kind}", where=path, why=why, hint=hint) from error


def _of_lines(path: str) -> Iterator[Holding]:
    number = 0
    with open_input(path) as stream:
        for piece in whole_lines(stream):
            for line in piece.splitlines():
                number += 1
                if not line.strip():
                    continue
                try:
                    name, _, block = line.decode().partition(" ")
                    yield _of_domain(name, json.loads(block))
                except (ValueError, KeyError, TypeError, AttributeError, BadURI) as error:
                    raise FormatError(
                        "not a line of cdx-summarize", where=f"{path}:{number}", why=str(error)
                    ) from error


def _of_domain(name: str, periods: Mapping[str, Mapping[str, int]]) -> Holding:
    years: dict[str, int] = defaultdict(int)
    for period, counts in periods.items():
        if not re.fullmatch(r"\d{4}(?:\d\d)?", period):
            raise ValueError(f"{period!r} is not a year or a month")
        years[period[:4]] += int(counts["n_total"])
    return Holding(_wildcard(name, b",*"), Frequency(Count(sum(years.values()), "~")), dict(sorted(years.items())))


def _of_hosts(found: Mapping[str, Any]) -> Iterator[Holding]:
    captures, hosts = int(found["captures"]), found["tophosts"]
    listed = sum(int(count) for count in hosts.values())
    if listed < captures:
        raise ValueError(
            f"it lists {len(hosts):,} hosts with {listed:,} of {captures:,} captures; a map of them would say that the "
            "others are not held; write it with --tophosts as large as the number of hosts"
        )
    for name, count in hosts.items():
        yield Holding(_wildcard(name, b")/*"), Frequency(Count(int(count), "~")))


def _of_prefixes(found: Mapping[str, Mapping[str, Any]]) -> Iterator[Holding]:
    """The prefixes that something ends at: those whose captures are more than those of the prefixes below them.

    Others would only say that something narrower is held, and yes to all that is not.
    """
    totals = {_prefix(name): (int(counts["urim"]["total"]), int(counts["urir"])) for name, counts in found.items()}
    below: dict[bytes, int] = defaultdict(int)
    for key, (captures, _) in totals.items():
        above = parent(key)
        while above is not None and above not in totals:
            above = parent(above)
        if above is not None:
            below[above] += captures
    for key, (captures, uri_rs) in totals.items():
        if captures > below[key]:
            yield Holding(key, Frequency.exact(captures, uri_rs))


def _prefix(name: str) -> bytes:
    """`com,example)/` counts all hosts below it too; `com,example)/a` all paths."""
    key = uri_key(name.encode())
    return key[:-2] + b",*" if key.endswith(b")/") else key + b"/*"


def _wildcard(host: str, ending: bytes) -> bytes:
    """The wildcard of a host name, which the tools write in the order of DNS."""
    surt = host if _DOTTED.fullmatch(host) or host.startswith("[") else ",".join(reversed(host.split(".")))
    return uri_key(surt.encode() + b")/")[:-2] + ending
