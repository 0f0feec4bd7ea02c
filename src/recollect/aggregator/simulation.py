"""Replaying a log: how many requests, how much recall and what latency each method of routing would have had.

Hides: where the truth comes from. An access log of this server has per lookup what each archive held (`archives`) and
how long it took (`times`); for any other log, it comes from maps of everything the archives hold (`truth`). Lookups are
taken in their order, and the learned model sees only the answers of archives it chose to ask, as it would while
serving. Where those hold nothing, the archives that were skipped for what was learned are asked as well, as the server
does before a 404.

Four methods are simulated on demand. `estimate` asks by `target_recall` (see `routing`). `referer` does too, and knows
of the page that embeds a resource what the archives answered about it earlier. `near` routes lookups with a datetime as
a TimeGate does; whether the closest memento is still found is judged by maps with times. `kinds` (see `kinds`) asks the
`top_k` archives that hold most of the URI's top-level domain and language: of the two halves of the URIs, each is
judged by the profile of the other.

Pure except for reading the log: no network, and the chance of exploration comes from a seed.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from recollect.aggregator.kinds import KindOf, KindProfile, fold_of
from recollect.aggregator.learn import TARGET_RECALL, WARM, Learned
from recollect.aggregator.referer import with_page
from recollect.datetimes import parse_or_none
from recollect.errors import FormatError
from recollect.formats.containers import open_input
from recollect.formats.logs import form_of, lines_with_entries
from recollect.model import Answer, Problem, Progress, ProgressCallback
from recollect.routing.choice import SECOND_CHANCE, Candidate, Evidence, Source, combined, route
from recollect.routing.maps import Maps

WAYS = ("broadcast", "maps", "learned", "both")


@dataclass(frozen=True, slots=True)
class Logged:
    """One lookup of a log; `held` is None if the log does not say, else mementos by archive that answered."""

    uri_r: str
    held: Mapping[str, int] | None = None
    times: Mapping[str, float] | None = None
    """Seconds by archive."""
    at: datetime | None = None
    """The datetime a TimeGate was asked for."""
    page: str = ""
    """The URI-R of the page that embeds the resource, if the log has a referer."""
    language: str = ""
    """The language of the resource, if the log has it."""


@dataclass(slots=True)
class RoutingTotals:
    """What one way of routing came to."""

    way: str
    lookups: int = 0
    requests: int = 0
    found: int = 0
    """Pairs of lookup and archive where mementos were found."""
    missed: int = 0
    """Pairs where an archive held mementos but was not asked."""
    latencies: list[float] = field(default_factory=list)
    target: float = 0.0
    """The recall per archive that the learned model promises; 0 without one."""
    held_by: Counter[str] = field(default_factory=Counter)
    """By archive: lookups with mementos in it, once the model had seen `WARM` lookups."""
    found_by: Counter[str] = field(default_factory=Counter)
    """By archive: those of them for which it was asked."""

    timemaps: int = 0
    """Lookups with mementos in at least one archive."""
    timemap_recall: float = 0.0
    """Summed over these lookups: the share of the mementos that the asked archives hold (Recall_TM of AlSum et al.)."""
    timegates: int = 0
    """Lookups with a datetime for which the truth has capture times."""
    closest: int = 0
    """Those of them for which an archive with the closest memento was asked."""

    @property
    def recall(self) -> float:
        return self.found / (self.found + self.missed) if self.found + self.missed else 1.0

    @property
    def wasted(self) -> float:
        """Share of requests that found nothing."""
        return 1 - self.found / self.requests if self.requests else 0.0

    def latency(self, share: float) -> float:
        """Seconds within which this share of lookups was answered."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def read_log(
    path: str | Path, on_problem: Callable[[Problem], None], page_of: Callable[[str], str] = str
) -> Iterator[Logged]:
    """The lookups of a log of any kind that `formats.logs` reads; `page_of` gives the page that a referer names."""
    with open_input(path) as stream:
        form = form_of(stream)
        if form is None:
            on_problem(Problem(str(path), None, "neither a list of URIs nor a log that is known"))
            return
        for line, entry in lines_with_entries(stream, str(path), form, on_problem):
            record = json.loads(line) if line.startswith("{") else {}
            if record.get("endpoint") == "route":
                continue  # it sent no requests
            held, times = record.get("archives"), record.get("times")
            lookup = Logged(
                entry.uri,
                {str(archive): int(count) for archive, count in held.items()} if isinstance(held, dict) else None,
                {str(archive): float(ms) / 1000 for archive, ms in times.items()} if isinstance(times, dict) else None,
                parse_or_none(str(record["datetime"])) if record.get("datetime") else None,
                page_of(record["referer"]) if isinstance(record.get("referer"), str) else "",
                str(record.get("language") or ""),
            )
            for _ in range(entry.count):
                yield lookup


def simulate(
    lookups: Sequence[Logged],
    archives: Sequence[str],
    *,
    maps: Maps | None = None,
    truth: Maps | None = None,
    ways: Sequence[str] = WAYS,
    top_k: int | None = None,
    near: float | None = None,
    by: Sequence[KindOf] = (),
    explore: float = 0.05,
    target_recall: float = TARGET_RECALL,
    floor: float = 0.0,
    targets: Sequence[float] = (),
    latency: float = 0.5,
    seed: int = 1,
    on_progress: ProgressCallback | None = None,
) -> list[RoutingTotals]:
    """Route every lookup in each way; ways that need maps are left out if there are none. With `targets`, the learned
    way is replayed for each of these promises as well. What other archives than `archives` hold does not count."""
    typical = _typical_times(lookups, archives, latency)
    candidates = [Candidate(archive) for archive in archives]
    tallies = []
    plans = [(way, target_recall) for way in ways]
    plans += [("near", target_recall)] if near is not None and maps is not None else []
    plans += [("kinds", target_recall)] if by else []
    plans += [("learned", target) for target in targets if "learned" in ways and target != target_recall]
    for way, target in plans:
        if maps is None and way in ("maps", "both"):
            continue
        chance = random.Random(seed)
        learned = None
        tally = RoutingTotals(way)
        if way not in ("broadcast", "maps", "near", "kinds"):
            ranks = floor > 0 and way in ("estimate", "referer")
            learned = Learned(archives, explore=explore, target_recall=target, ranks=ranks, chance=chance.random)
            tally.target = target
        routing = _Routing(
            candidates,
            learned,
            maps if way not in ("broadcast", "learned", "kinds") else None,
            None if way == "broadcast" and by else top_k,  # all archives, for comparison with the most probable ones
            target if way in ("estimate", "referer") else None,
            near if way == "near" else None,
            {} if way == "referer" else None,
            floor,
            _kind_profiles(lookups, archives, by, truth) if way == "kinds" else None,
        )
        for number, lookup in enumerate(lookups):
            if on_progress is not None and number % 1000 == 0:
                on_progress(Progress(f"replaying {way}", number, len(lookups), "lookups"))
            held = {a: count for a, count in _held(lookup, truth).items() if a in routing.ids}
            _one(lookup, routing, tally, held, typical, truth)
        tallies.append(tally)
    return tallies


@dataclass(frozen=True, slots=True)
class _Routing:
    """One way of routing."""

    candidates: Sequence[Candidate]
    learned: Learned | None
    maps: Maps | None
    top_k: int | None
    target_recall: float | None = None
    near: float | None = None
    answers: dict[str, dict[str, bool]] | None = None
    """By URI-R, what archives answered so far; None if referers are not used."""
    floor: float = 0.0
    kinds: tuple[KindProfile, KindProfile] | None = None
    """By fold of the URI, the profile that judges it; None if kinds are not used."""

    @property
    def ids(self) -> set[str]:
        return {candidate.id for candidate in self.candidates}

    def asked(self, lookup: Logged, held: set[str]) -> tuple[set[str], set[str]]:
        """(archives asked, those of them that are asked only because the others hold nothing)."""
        uri_r = lookup.uri_r
        evidence: dict[str, Evidence] = {}
        if self.kinds is not None:
            evidence.update(self._of_kind(self.kinds[fold_of(uri_r)], lookup))
        if self.learned is not None:
            evidence.update(self.learned.evidence(uri_r))
        if self.maps is not None:
            for archive, said in self.maps.evidence(uri_r, lookup.at if self.near is not None else None).items():
                evidence[archive] = combined(said, evidence[archive]) if archive in evidence else said
        if self.answers is not None and lookup.page:
            evidence = with_page(evidence, self.answers.get(lookup.page, {}))
        decisions = route(
            self.candidates,
            evidence,
            top_k=self.top_k,
            target_recall=self.target_recall,
            near=self.near,
            floor=self.floor,
            uri_r=uri_r,
        )
        asked = {decision.archive for decision in decisions if decision.ask}
        if held & asked:
            return asked, set()
        unlikely = {decision.archive for decision in decisions if decision.reason in SECOND_CHANCE}
        return asked | unlikely, unlikely

    def _of_kind(self, profile: KindProfile, lookup: Logged) -> dict[str, Evidence]:
        levels = profile.levels(lookup.uri_r, lookup.language)
        chances = {candidate.id: profile.chance(levels, candidate.id) for candidate in self.candidates}
        return {
            archive: Evidence(Answer.UNKNOWN, Source.LEARNED, expected=chance, chance=chance, sources=(Source.LEARNED,))
            for archive, chance in chances.items()
        }


def _kind_profiles(
    lookups: Sequence[Logged], archives: Sequence[str], by: Sequence[KindOf], truth: Maps | None
) -> tuple[KindProfile, KindProfile]:
    """For each half of the URIs, the profile of the other half; each URI counts once."""
    profiles = KindProfile(tuple(by)), KindProfile(tuple(by))
    for lookup in {lookup.uri_r: lookup for lookup in lookups}.values():
        held = _held(lookup, truth)
        heard = archives if lookup.held is None else [one for one in archives if one in lookup.held]
        profile = profiles[1 - fold_of(lookup.uri_r)]
        profile.count(profile.levels(lookup.uri_r, lookup.language), {one: one in held for one in heard})
    return profiles


def _one(
    lookup: Logged,
    routing: _Routing,
    tally: RoutingTotals,
    counts: Mapping[str, float],
    typical: Mapping[str, float],
    truth: Maps | None,
) -> None:
    held = set(counts)
    asked, extra = routing.asked(lookup, held)
    if held:
        tally.timemaps += 1
        tally.timemap_recall += sum(counts[archive] for archive in held & asked) / sum(counts.values())
    if routing.answers is not None:
        routing.answers.setdefault(lookup.uri_r, {}).update({archive: archive in held for archive in asked})
    if lookup.at is not None and truth is not None:
        gaps = {a: said.gap for a, said in truth.evidence(lookup.uri_r, lookup.at).items() if a in held}
        if gaps:
            least = min(gaps.values())
            tally.timegates += 1
            tally.closest += any(gaps[archive] == least for archive in gaps.keys() & asked)
    tally.lookups += 1
    tally.requests += len(asked)
    tally.found += len(held & asked)
    tally.missed += len(held - asked)
    if tally.lookups > WARM:
        tally.held_by.update(held)
        tally.found_by.update(held & asked)
    times = lookup.times or {}
    tally.latencies.append(max((times.get(archive, typical[archive]) for archive in asked), default=0.0))
    if routing.learned is not None:
        # Of archives the log is silent about (they failed, or were skipped) nothing can be learned.
        heard = asked if lookup.held is None else asked & lookup.held.keys()
        routing.learned.count(lookup.uri_r, {archive: archive in held for archive in heard}, extra=extra)


def _held(lookup: Logged, truth: Maps | None) -> dict[str, float]:
    """Mementos by archive that holds any."""
    if lookup.held is not None:
        return {archive: float(count) for archive, count in lookup.held.items() if count}
    if truth is None:
        raise FormatError(
            "the log does not say which archives held what",
            where=lookup.uri_r[:120],
            hint="give maps of everything they hold: --truth DIR",
        )
    return {
        a: max(found.expected, 1.0) for a, found in truth.evidence(lookup.uri_r).items() if found.answer == Answer.YES
    }


def _typical_times(lookups: Sequence[Logged], archives: Sequence[str], latency: float) -> dict[str, float]:
    """Mean seconds by archive where the log has them, else the latency given."""
    sums: dict[str, tuple[float, int]] = {}
    for lookup in lookups:
        for archive, seconds in (lookup.times or {}).items():
            total, count = sums.get(archive, (0.0, 0))
            sums[archive] = (total + seconds, count + 1)
    return {a: sums[a][0] / sums[a][1] if a in sums else latency for a in archives}
