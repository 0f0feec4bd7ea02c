"""From a run to a map, and what the map is worth.

Hides: how the answers of a journal become observations, and the estimates of holdings. Pure: a run goes in, records and
figures come out.

Estimates. Of a list: the share held, weighted by stratum, with Wilson's interval. Of searches: Chao1 over how often
each URI was found (Chao 1987, "Estimating the Population Size for Capture-Recapture Data with Unequal
Catchability"), with its log-normal interval; a lower bound where results are ranked.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from recollect.errors import BadURI
from recollect.formats.timemap.described import count_description
from recollect.formats.ukvs import Header, Record
from recollect.maps.samples import (
    COLUMNS,
    Listed,
    Observed,
    Probe,
    Sample,
    finds_of,
    levels,
    rank_of,
    records_of,
    sample_of,
    threshold,
)
from recollect.maps.samplescope import SAMPLE
from recollect.maps.searches import LEVELS, Interval, Searches, chao1, searches_of
from recollect.quantities import counted
from recollect.routing.choice import FLOOR, Rank
from recollect.sampling.journal import Entry, Kind, Outcome
from recollect.uris import key_of_uri

TARGETS = (0.90, 0.95, 0.99)
_STATED = {"datetime": "years", "media_type": "media_types", "language": "languages"}
_DEVIATIONS = 1.96
_MOST_PER_DOMAIN = 2  # URIs found twice below a domain before its size is estimated


@dataclass(frozen=True, slots=True)
class Promise:
    """What routing by the sample is expected to do for one wanted recall, each probe judged without itself."""

    target: float
    threshold: float | None
    """None: too few probes, so the archive is asked about everything that is not known."""
    recall: float
    asked: float | None
    """Share of the sample that would be asked about; None of searches, which have no list of lookups."""
    scope: str = ""
    """Of searches, what is asked about: `all URLs of 12 registered domains`."""


@dataclass(frozen=True)
class Worth:
    """A run in figures."""

    archive: str
    probes: int
    held: int
    errors: int
    listings: int
    empty_listings: int
    queries: int
    seen: int
    share_held: Interval | None = None
    uri_rs: Interval | None = None
    """Chao1 over the searches."""
    promises: tuple[Promise, ...] = ()
    floor: Promise | None = None
    """What `route --target-recall` keeps for this archive, whatever other archives hold."""
    records: tuple[Record, ...] = field(default=(), repr=False)

    def header(self, target_recall: float) -> Header:
        """The header of the map."""
        meta: dict[str, Any] = {
            "archive": self.archive,
            "scope": SAMPLE,
            "probes": self.probes,
            "held": self.held,
            "target_recall": target_recall,
        }
        if self.uri_rs is not None:
            meta["estimate"] = {"uri_rs": self.uri_rs.as_json(), "method": "chao1"}
        return Header(meta=meta)


def worth_of(archive: str, entries: Sequence[Entry], targets: Iterable[float] = TARGETS, floor: float = FLOOR) -> Worth:
    """The map of a run, and its figures."""
    observed = Observed()
    _observe_uris(entries, observed)
    listings = _observe_listings(entries, observed)
    times = _observe_queries(entries, observed)
    probes = observed.as_probes()
    sample = sample_of(probes)
    asked_uris = {e.data["key"] for e in entries if e.kind is Kind.URI}
    answered = len(probes)
    return Worth(
        archive=archive,
        probes=answered,
        held=sample.total[1],
        errors=len(asked_uris) - answered,
        listings=len(listings),
        empty_listings=sum(1 for one in listings if one.complete and not one.captures),
        queries=sum(1 for e in entries if e.kind is Kind.QUERY and e.outcome is Outcome.DONE),
        seen=len(observed.seen | {key for key, held in observed.probes.items() if held}),
        share_held=_share(entries, probes) if probes else None,
        uri_rs=chao1(times.values()) if times else None,
        promises=_promises(sample, probes, searches_of(times), sorted(set(targets))),
        floor=floor_promise(sample, probes, floor) if probes else None,
        records=tuple(records_of(observed)),
    )


def _observe_uris(entries: Iterable[Entry], observed: Observed) -> None:
    for entry in entries:
        if entry.kind is Kind.URI and entry.outcome is not Outcome.ERROR:
            key = str(entry.data["key"]).encode()
            observed.probes[key] = observed.probes.get(key, False) or entry.outcome is Outcome.HELD
            columns = {name: entry.data.get(stated) for name, stated in _STATED.items()}
            observed.describe(
                key,
                {
                    name: {str(value): int(count) for value, count in counts.items()}
                    for name, counts in columns.items()
                    if isinstance(counts, dict)
                },
            )


def _observe_listings(entries: Iterable[Entry], observed: Observed) -> list[Listed]:
    """Add what was listed; all listings are returned, those of single URIs included."""
    uris: dict[bytes, set[str]] = defaultdict(set)
    ended: set[bytes] = set()
    for entry in entries:
        if entry.kind is not Kind.PREFIX or entry.outcome is Outcome.ERROR:
            continue
        wildcard = str(entry.data["key"]).encode()
        listing = observed.listings.setdefault(wildcard, Listed())
        listing.captures += int(entry.data["captures"])
        uris[wildcard].update(entry.data["keys"])
        listing.complete &= not entry.data["why"]
        if entry.outcome is not Outcome.PAGE:
            ended.add(wildcard)
    for wildcard, listing in observed.listings.items():
        listing.uri_rs = len(uris[wildcard])
        listing.complete &= wildcard in ended
        observed.seen |= {key.encode() for key in uris[wildcard]}
    every = list(observed.listings.values())
    for wildcard in [key for key in observed.listings if not key.endswith(b"*")]:
        # A listing of one URI does not show the URIs with a query that share its key: if it is empty, the key stays
        # unknown; if not, the key was seen.
        del observed.listings[wildcard]
    return every


def _observe_queries(entries: Iterable[Entry], observed: Observed) -> Counter[bytes]:
    """How often each key was found, over all queries; domains found often enough get an estimate."""
    times: Counter[bytes] = Counter()
    for entry in entries:
        if entry.kind is Kind.QUERY and entry.outcome is Outcome.DONE:
            times.update(set(_keys(entry.data["uris"])))
    observed.found.update(times)
    _observe_captures(entries, observed)
    by_domain: dict[bytes, list[int]] = defaultdict(list)
    for key, count in times.items():
        observed.seen.add(key)
        wildcard = next((name for name in levels(key) if name.endswith(b",*") and b"," in name[:-2]), None)
        if wildcard is not None:
            by_domain[wildcard].append(count)
    for wildcard, counts in by_domain.items():
        if sum(1 for count in counts if count == 2) >= _MOST_PER_DOMAIN:
            observed.estimates[wildcard] = round(chao1(counts).value)
    return times


def _observe_captures(entries: Iterable[Entry], observed: Observed) -> None:
    """Add what searches said of captures, each capture once."""
    captures: dict[bytes, dict[str, tuple[str, str]]] = defaultdict(dict)
    for entry in entries:
        if entry.kind is Kind.QUERY and entry.outcome is Outcome.DONE:
            stated = entry.data.get("captures") or ()
            for uri, (moment, media_type, language) in zip(entry.data["uris"], stated, strict=False):
                for key in _keys([uri]):
                    captures[key][str(moment)] = (str(media_type), str(language))
    for key, found in captures.items():
        counts: dict[str, Counter[str]] = {name: Counter() for name in COLUMNS}
        for moment, (media_type, language) in found.items():
            if len(moment) >= 4:
                counts["datetime"][moment[:4]] += 1
            count_description(counts, media_type, language)
        observed.describe(key, {name: dict(one) for name, one in counts.items() if one})


def _keys(uris: Iterable[str]) -> Iterable[bytes]:
    for uri in uris:
        try:
            yield key_of_uri(uri)
        except BadURI:
            continue


def floor_promise(sample: Sample, probes: Sequence[Probe], floor: float) -> Promise:
    """What the floor of `route --target-recall` finds of this archive at least, and how often it asks for that."""
    finds = finds_of(sample, probes)
    shares = []
    for probe in probes:
        if probe.held:
            chance = sample.chance_without(probe)
            rank = rank_of(_without(finds, chance), chance, chance)
        else:
            rank = rank_of(finds, sample.chance_without(probe), sample.chance_as_find(probe.key))
        shares.append((Rank(*rank).share(floor), probe.held))
    held = sum(there for _, there in shares)
    found = math.fsum(share for share, there in shares if there) / held if held else floor
    return Promise(floor, None, found, math.fsum(share for share, _ in shares) / len(shares))


def _without(finds: Sequence[float], chance: float) -> list[float]:
    """Finds without one of this chance."""
    place = bisect_left(finds, chance)
    return [*finds[:place], *finds[place + 1 :]]


def _promises(
    sample: Sample, probes: Sequence[Probe], searches: Searches | None, targets: Iterable[float]
) -> tuple[Promise, ...]:
    if probes:
        return tuple(promise(sample, probes, target) for target in targets)
    return tuple(search_promise(searches, target) for target in targets) if searches is not None else ()


def search_promise(searches: Searches, target: float) -> Promise:
    """What asking only where searches found something is expected to find, each find judged without itself."""
    level = searches.level(target)
    if level is None:
        return Promise(target, None, 1.0, 1.0)
    return Promise(target, None, 1.0 - searches.missed(level), None, counted(searches.names(level), LEVELS[level]))


def promise(sample: Sample, probes: Sequence[Probe], target: float) -> Promise:
    """What a wanted recall costs."""
    level = threshold(sample, probes, target)
    if level is None:
        return Promise(target, None, 1.0, 1.0)
    chances = [(sample.chance_without(probe), probe.held) for probe in probes]
    held = sum(1 for _, there in chances if there)
    found = sum(1 for chance, there in chances if there and chance >= level)
    asked = sum(1 for chance, _ in chances if chance >= level)
    return Promise(target, level, found / held, asked / len(chances))


# Estimates -----------------------------------------------------------------------------------------------------------


def wilson(held: float, asked: float) -> Interval:
    """A share with Wilson's interval."""
    share, z2 = held / asked, _DEVIATIONS**2
    middle = (share + z2 / (2 * asked)) / (1 + z2 / asked)
    half = _DEVIATIONS / (1 + z2 / asked) * math.sqrt(share * (1 - share) / asked + z2 / (4 * asked * asked))
    return Interval(share, max(0.0, middle - half), min(1.0, middle + half))


def _share(entries: Iterable[Entry], probes: Sequence[Probe]) -> Interval:
    """The share of the list that is held; strata count by their size in the list."""
    frame = next((e for e in reversed(list(entries)) if e.kind is Kind.FRAME), None)
    sizes: dict[str, int] = frame.data["strata"] if frame is not None else {}
    if len(sizes) < 2:
        return wilson(sum(probe.held for probe in probes), len(probes))
    by_stratum: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for probe in probes:
        top = probe.key.partition(b")")[0].partition(b",")[0].decode("utf-8", "replace")
        by_stratum[top][0] += 1
        by_stratum[top][1] += probe.held
    asked = {top: counts for top, counts in by_stratum.items() if top in sizes}
    total = sum(sizes[top] for top in asked) or 1
    share = sum(sizes[top] / total * held / count for top, (count, held) in asked.items())
    variance = sum(
        (sizes[top] / total) ** 2 * ((held + 0.5) / (count + 1)) * (1 - (held + 0.5) / (count + 1)) / count
        for top, (count, held) in asked.items()
    )
    effective = max(1.0, share * (1 - share) / variance if 0 < share < 1 and variance else float(len(probes)))
    interval = wilson(share * effective, effective)
    return Interval(share, interval.low, interval.high)
