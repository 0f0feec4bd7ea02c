"""Counters of the server in the text format of Prometheus.

Hides: names and labels. Labels are endpoints, statuses, archive ids and kinds of outcome, so their number is bounded.
With several workers each counts for itself (label `worker`) and leaves its counters in a shared folder every second,
so that each process can report all of them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from recollect import __version__
from recollect.aggregator.service import LookupResult

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_NO_AGES: Mapping[str, float] = {}
_STATES = {"closed": 0, "half open": 1, "open": 2}


class Metrics:
    """Counted while serving, written when asked."""

    def __init__(self, worker: int = 0) -> None:
        self.worker = worker
        self.requests: Counter[tuple[str, int]] = Counter()
        self.in_flight = 0
        self.disconnects = 0
        self._buckets: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()
        self._outcomes: Counter[tuple[str, str]] = Counter()
        self._upstream: Counter[str] = Counter()
        self._upstream_seconds: dict[str, float] = {}
        self._skipped: Counter[tuple[str, str]] = Counter()
        self._cache: Counter[str] = Counter()

    def request(self, endpoint: str, status: int, seconds: float) -> None:
        self.requests[endpoint, status] += 1
        buckets = self._buckets.get(endpoint)
        if buckets is None:
            buckets = self._buckets[endpoint] = [0] * (len(_BUCKETS) + 1)
        buckets[bisect_left(_BUCKETS, seconds)] += 1
        self._seconds[endpoint] += seconds  # type: ignore[assignment]  # a Counter sums floats as well

    def cached(self) -> None:
        """An answer given wholly from the cache."""
        self._cache["hit"] += 1

    def answer(self, answer: LookupResult) -> None:
        """An answer for which archives were asked, or the cache was read in part."""
        self._cache[answer.cache] += 1
        if answer.cache == "hit":
            return
        for outcome in answer.outcomes:
            kind = outcome.error or outcome.kind
            self._outcomes[outcome.archive, kind] += 1
            self._upstream[outcome.archive] += outcome.requests
            seconds = self._upstream_seconds
            seconds[outcome.archive] = seconds.get(outcome.archive, 0.0) + outcome.elapsed
        for decision in answer.decisions:
            if not decision.ask:
                self._skipped[decision.archive, decision.source] += 1

    def lines(
        self,
        gauges: dict[str, tuple[str, float, int]],
        cache: tuple[int, int] | None,
        ages: Mapping[str, float] = _NO_AGES,
    ) -> Iterator[str]:
        """The exposition; `gauges` are (breaker state, pause, requests under way) by archive, `cache` its entries and
        bytes, `ages` the seconds since the moment up to which the map of an archive is complete."""
        yield from self._of_requests()
        yield from self._of_archives(gauges)
        yield from _family("recollect_map_age_seconds", "gauge", "Time since the moment up to which a map is complete")
        for archive, age in sorted(ages.items()):
            yield self._line("recollect_map_age_seconds", round(age), archive=archive)
        yield from _family("recollect_cache_lookups_total", "counter", "Lookups by what the cache gave")
        for word, count in sorted(self._cache.items()):
            yield self._line("recollect_cache_lookups_total", count, result=word)
        if cache is not None:
            yield from _family("recollect_cache_entries", "gauge", "Resources in the memory of the cache")
            yield self._line("recollect_cache_entries", cache[0])
            yield from _family("recollect_cache_bytes", "gauge", "Their estimated size")
            yield self._line("recollect_cache_bytes", cache[1])
        yield from _family("recollect_info", "gauge", "The version that runs")
        yield self._line("recollect_info", 1, version=__version__)

    def _of_requests(self) -> Iterator[str]:
        yield from _family("recollect_requests_total", "counter", "Requests answered")
        for (endpoint, status), count in sorted(self.requests.items()):
            yield self._line("recollect_requests_total", count, endpoint=endpoint, status=str(status))
        yield from _family("recollect_request_seconds", "histogram", "Time to answer")
        for endpoint, buckets in sorted(self._buckets.items()):
            total = 0
            for bound, count in zip((*map(str, _BUCKETS), "+Inf"), buckets, strict=True):
                total += count
                yield self._line("recollect_request_seconds_bucket", total, endpoint=endpoint, le=bound)
            yield self._line("recollect_request_seconds_sum", self._seconds[endpoint], endpoint=endpoint)
            yield self._line("recollect_request_seconds_count", total, endpoint=endpoint)
        yield from _family("recollect_requests_in_flight", "gauge", "Requests being answered")
        yield self._line("recollect_requests_in_flight", self.in_flight)
        yield from _family("recollect_disconnects_total", "counter", "Clients that left before their answer")
        yield self._line("recollect_disconnects_total", self.disconnects)

    def _of_archives(self, gauges: dict[str, tuple[str, float, int]]) -> Iterator[str]:
        yield from _family("recollect_upstream_requests_total", "counter", "Requests sent to archives")
        for archive, count in sorted(self._upstream.items()):
            yield self._line("recollect_upstream_requests_total", count, archive=archive)
        yield from _family("recollect_upstream_seconds_total", "counter", "Time archives took")
        for archive, seconds in sorted(self._upstream_seconds.items()):
            yield self._line("recollect_upstream_seconds_total", seconds, archive=archive)
        yield from _family("recollect_outcomes_total", "counter", "What archives answered")
        for (archive, kind), count in sorted(self._outcomes.items()):
            yield self._line("recollect_outcomes_total", count, archive=archive, outcome=kind)
        yield from _family("recollect_skipped_total", "counter", "Archives not asked, by what decided")
        for (archive, source), count in sorted(self._skipped.items()):
            yield self._line("recollect_skipped_total", count, archive=archive, source=source)
        yield from _family("recollect_archive_state", "gauge", "Breaker: 0 closed, 1 half open, 2 open")
        for archive, (state, _, _) in gauges.items():
            yield self._line("recollect_archive_state", _STATES[state], archive=archive)
        yield from _family("recollect_archive_pause_seconds", "gauge", "Pause the archive asked for")
        for archive, (_, pause, _) in gauges.items():
            yield self._line("recollect_archive_pause_seconds", pause, archive=archive)
        yield from _family("recollect_archive_in_use", "gauge", "Requests to the archive under way")
        for archive, (_, _, busy) in gauges.items():
            yield self._line("recollect_archive_in_use", busy, archive=archive)

    def _line(self, name: str, value: float, **labels: str) -> str:
        labels["worker"] = str(self.worker)
        inside = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
        return f"{name}{{{inside}}} {value:g}" if isinstance(value, float) else f"{name}{{{inside}}} {value}"


def _family(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"


def _escape(text: str) -> str:
    return re.sub(r'(["\\])', r"\\\1", text).replace("\n", "\\n")


def leave(folder: Path, worker: int, text: str) -> None:
    """Put a worker's exposition where the others find it."""
    beside = folder / f"new-{worker}"
    beside.write_text(text)
    beside.rename(folder / f"worker-{worker}")


def together(own: str, folder: Path | None, worker: int) -> str:
    """One exposition of all workers: each family once, with the lines of every worker."""
    texts = [own]
    if folder is not None:
        others = sorted(path for path in folder.glob("worker-*") if path.name != f"worker-{worker}")
        texts += [path.read_text() for path in others]
    families: dict[str, list[str]] = {}
    for text in texts:
        _sort_in(text.splitlines(), families)
    return "".join(f"{line}\n" for lines in families.values() for line in lines)


def _sort_in(lines: Iterable[str], families: dict[str, list[str]]) -> None:
    family: list[str] = []
    for line in lines:
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            new = name not in families
            family = families.setdefault(name, [])
            if new:
                family.append(line)
        elif not line.startswith("# TYPE ") or len(family) == 1:
            family.append(line)
