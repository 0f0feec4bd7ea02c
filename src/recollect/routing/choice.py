"""Which archives to ask for a URI, and why: pure decisions over evidence.

Hides: how maps, voids, filters, rules, learned usage and a caller's choice are weighed. Evidence in, decisions out; no
clock, no network, so that every decision can be explained, tested and replayed. `explain` makes words of them.

Order of weight: the caller's choice of archives; rules; a map or filter of holdings; what was learned. "No" skips,
"yes" and "unknown" ask; an archive that the caller names is asked whatever was learned. The asked ones come with the
largest expectation first, and `top_k` keeps the first k. An archive that rests (breaker) or asked for a pause is
skipped by name: absence is not failure, and neither is silence.

One estimate. Each decision has a `chance`, the probability that the archive holds the URI, and its sources. Estimates
(a wildcard of a map, a sample, what was learned, else the archive's usual share) see the same holdings, so they are
pooled by the mean of their log odds and never multiplied; independent signs (a filter, the page that embeds the URI)
are Bayes factors on those odds. With `target_recall`, archives are asked in order of chance until the asked ones make
up that share of what is expected to be held; the others are skipped as BEYOND_TARGET. This replaces the thresholds of
samples and of the learned model. An archive that holds the exact key, is named, or is explored is always asked.

A floor for every archive. The largest archives alone can make up a target, and then a small one is never asked. So each
archive is asked for at least the share `floor` of what it holds, where its chance is highest: `Rank` says where a URI
stands among the holdings. At the edge of that share, and wherever nothing ranks the URIs, a draw decides. Draws depend
on the URI and the archive alone, so that a decision can be repeated. What is asked for the floor counts for the target.

Age. A "no" is one of the day up to which its map is complete. Evidence has the share of keys that are expected to be
new since (`maps.growth`); where the chance that follows from it is too large, the archive is asked all the same.

Time. Of a TimeGate, `gap` is how far the nearest capture is known to lie from the asked datetime: such archives are
asked last, and not at all if it exceeds `near`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from recollect.model import Answer

# An archive without any evidence: the share of all requests that found mementos in three years of an aggregator's
# log (Alam et al., "MementoMap: An Archive Profile Dissemination Framework", 2019, section 1).
USUAL_PROBABILITY = 0.0544
# The chance that an archive holds a URI since its map said no, from which on it is asked (setting `max_stale_loss`).
MAX_STALE_LOSS = 0.01
# A wildcard without counts: something below it is held, this URI perhaps. With counts see `maps.calibration`.
WILDCARD_CHANCE = 0.5
# The least share of what an archive holds that a target recall must find (setting `floor`).
FLOOR = 0.3
_LEAST = 1e-6
# Chances are estimates of samples. Half as much again as the floor is aimed at, and 20% less than the loss that the
# target allows: on real TimeMaps (make bench-sampling) most single samples are then on the promised side.
_ABOVE_FLOOR = 1.5
_OF_ALLOWED_LOSS = 0.8


class Source(StrEnum):
    """Who decided."""

    NOTHING = ""
    RULE = "rule"
    MAP = "map"
    SET = "set"
    """The hashed set of a wildcard in a map."""
    VOIDS = "voids"
    FILTER = "filter"
    LEARNED = "learned"
    SAMPLE = "sample"
    """A map of a sample."""
    CHOICE = "choice"
    RESTING = "resting"
    CACHE = "cache"
    PRIOR = "prior"
    """The usual share of an archive, when nothing else is known."""
    REFERER = "referer"
    """The page that embeds the URI."""
    TIME = "time"
    """The periods of a map."""
    TARGET = "target"
    """The wanted recall is reached without it."""
    AGE = "age"
    """The age of a map that says no."""
    FLOOR = "floor"
    """The least share of its holdings that every archive is asked for."""


class Reason(StrEnum):
    """Why an archive is skipped."""

    NONE = ""
    HOLDS_NONE = "holds-none"
    RULE = "rule"
    UNLIKELY = "unlikely"
    NOT_CHOSEN = "not-chosen"
    NOT_BEST = "not-among-the-best"
    BEYOND_TARGET = "beyond-target-recall"
    FAR_IN_TIME = "far-in-time"
    """Its captures are known to lie further from the asked datetime than `near`."""
    NONE_IN_PERIOD = "holds-none-in-period"
    """It holds none of the time that was asked for; of other times it is not known."""
    PAGE_NOT_HELD = "page-not-held"
    """It does not hold the page that embeds the resource, and its map lists pages only."""
    NOT_CACHED = "not-cached"
    PAUSED = "paused"
    """It asked for a pause (Retry-After)."""
    FAILING = "failing"
    """Its breaker is open."""
    SWITCHED_OFF = "switched-off"
    """An operator lets it rest."""


# Reasons that say nothing about what an archive holds: a lookup that was skipped for one is not complete.
UNHEARD = frozenset(
    {
        *(Reason.UNLIKELY, Reason.NOT_BEST, Reason.BEYOND_TARGET, Reason.FAR_IN_TIME, Reason.NOT_CACHED),
        *(Reason.NONE_IN_PERIOD, Reason.PAGE_NOT_HELD),
        *(Reason.PAUSED, Reason.FAILING, Reason.SWITCHED_OFF),
    }
)
# Archives skipped for one of these are asked before the answer is that no archive holds anything.
SECOND_CHANCE = frozenset(
    {
        *(Reason.UNLIKELY, Reason.BEYOND_TARGET, Reason.FAR_IN_TIME),
        *(Reason.NONE_IN_PERIOD, Reason.PAGE_NOT_HELD),
    }
)


# Tuples, because a dozen of each are made for every lookup, and frozen dataclasses take twice the time.


class Rest(NamedTuple):
    """Why an archive must not be asked now, and for how long."""

    reason: Reason
    seconds: float = 0.0
    failures: int = 0
    last_failure: str = ""


class Rank(NamedTuple):
    """Where a URI stands among what an archive holds, ordered by chance: the share of the holdings that is likelier,
    and the share that is likelier or as likely."""

    above: float = 0.0
    at: float = 1.0

    def share(self, floor: float) -> float:
        """With which probability to ask for the URI, so that the archive is asked for the share `floor` of what it
        holds. Without any order that is the floor itself."""
        return min(max((floor - self.above) / (self.at - self.above), 0.0), 1.0) if self.at > self.above else 0.0


class Evidence(NamedTuple):
    """What one source says about one archive and one URI."""

    answer: Answer
    source: Source
    key: str = ""
    """The deciding key of a map, or the pattern of a rule."""
    frequency: str = ""
    expected: float = 1.0
    """Expected mementos if asked; orders the archives, never excludes one alone."""
    reason: Reason = Reason.HOLDS_NONE
    """What follows from a `no`."""
    chance: float | None = None
    """Estimated probability that the archive holds the URI; None if this source gives none."""
    sources: tuple[Source, ...] = ()
    """Where chance and factor come from."""
    factor: float = 1.0
    """How much likelier this makes it that the archive holds the URI (Bayes factor)."""
    exact: bool = False
    """Whether a map holds this very key."""
    explored: bool = False
    """Whether the archive is asked although it is unlikely, to notice new holdings."""
    gap: float = 0.0
    """Seconds between the asked datetime and the nearest period with captures; 0 if unknown."""
    note: str = ""
    """Why the answer is unknown, or how far a "no" goes."""
    as_of: str = ""
    """The day up to which the map that says no is complete."""
    new_share: float = 0.0
    """The share of the archive's keys, of those that could hold the URI, that are expected to be new since that day."""
    of_pages: bool = False
    """Whether the map does not answer because it lists other media types, such as pages only."""
    rank: Rank | None = None
    """Where the URI stands among the archive's holdings; None if this source does not order them."""
    promise: float = 1.0
    """The share of what the archive holds that is asked for where its own threshold decides."""


class Candidate(NamedTuple):
    """An archive that could be asked: its id, how likely it holds anything at all, and whether it may be asked now."""

    id: str
    probability: float = USUAL_PROBABILITY
    rest: Rest | None = None
    """Why it must not be asked now."""


class Decision(NamedTuple):
    """One archive: ask or skip, and the reason."""

    archive: str
    ask: bool
    source: Source
    key: str = ""
    frequency: str = ""
    expected: float = 0.0
    reason: Reason = Reason.NONE
    rest: Rest | None = None
    limit: int = 0
    """The k of `top_k`, with the reason NOT_BEST."""
    chance: float | None = None
    """Probability that the archive holds the URI; None where that was not considered."""
    sources: tuple[Source, ...] = ()
    """Where the chance comes from."""
    always: bool = False
    """Whether no target recall may skip it."""
    unlikely: bool = False
    """Whether a sample or the learned model advised against asking it."""
    gap: float = 0.0
    """Seconds between the asked datetime and its nearest known captures."""
    answer: Answer | None = None
    """What is known of the archive's holdings; None where that was not considered."""
    note: str = ""
    """Why the answer is unknown, or how far a "no" goes."""
    as_of: str = ""
    """The day of a "no"; `chance` is then the chance that the archive holds the URI since."""
    rank: Rank | None = None
    promised: float | None = None
    """The share of what the archive holds that is asked for by these options, at least; None after a "no"."""


def combined(first: Evidence, second: Evidence) -> Evidence:
    """Two sources about one archive as one: the first decides unless it says nothing, the chances are pooled."""
    certain = [one for one in (first, second) if one.answer == Answer.NO and one.reason is not Reason.UNLIKELY]
    if certain:
        newest = min(certain, key=lambda one: (one.reason is not Reason.RULE, one.new_share))
        other = second if newest is first else first
        return other if newest.new_share and other.exact else newest  # the map that has the very key is newer
    if first.exact or second.exact:
        return first if first.exact else second
    chances = [one.chance for one in (first, second) if one.chance is not None]
    return first._replace(
        chance=pooled(chances) if chances else None,
        sources=tuple(dict.fromkeys((*first.sources, *second.sources))),
        factor=first.factor * second.factor,
        explored=first.explored or second.explored,
        gap=max(first.gap, second.gap),
        note="; ".join(dict.fromkeys(filter(None, (first.note, second.note)))),
        rank=first.rank or second.rank,
        promise=first.promise * second.promise,
    )


def pooled(chances: Sequence[float]) -> float:
    """Several estimates of one probability that may rest on the same observations: the mean of their log odds."""
    return _of_log_odds(sum(map(_log_odds, chances)) / len(chances))


def updated(chance: float, factor: float) -> float:
    """A probability after a sign that multiplies its odds."""
    return chance * factor / (chance * factor + 1.0 - chance) if factor != 1.0 else chance


def _log_odds(chance: float) -> float:
    bounded = min(max(chance, _LEAST), 1.0 - _LEAST)
    return math.log(bounded / (1.0 - bounded))


def _of_log_odds(value: float) -> float:
    return 1.0 / (1.0 + math.exp(-value))


def route(
    candidates: Sequence[Candidate],
    evidence: Mapping[str, Evidence],
    *,
    chosen: frozenset[str] | None = None,
    named: bool = False,
    top_k: int | None = None,
    target_recall: float | None = None,
    near: float | None = None,
    max_stale_loss: float | None = None,
    floor: float = 0.0,
    uri_r: str = "",
) -> tuple[Decision, ...]:
    """A decision for every candidate: the asked first, by expectation (with `target_recall` by chance), those with
    captures far from the asked datetime after the others; then the skipped, in the order given.

    `chosen` are the archives the caller wants, None for all; with `named` they were named one by one, and what was
    learned about them does not count. `near` is in seconds. An archive whose map says no is asked if the chance that it
    holds the URI since the map was made is over `max_stale_loss`, or over 1 − `target_recall` where that is given; with
    neither, maps count as if they were of today. With `target_recall`, at least the share `floor` of what each archive
    holds is asked for; draws are those of `uri_r`.
    """
    stale_loss = max_stale_loss if target_recall is None else 1.0 - target_recall
    by_target = target_recall is not None
    asked: list[Decision] = []
    skipped: list[Decision] = []
    for candidate in candidates:
        decision = _decide(candidate, evidence.get(candidate.id), chosen, named, by_target, near, stale_loss)
        (asked if decision.ask else skipped).append(decision)
    if target_recall is not None:
        asked.sort(key=lambda one: (one.gap, -(one.chance or 0.0), -one.expected))
        asked, late = _until([_with_floor(one, floor, uri_r) for one in asked], target_recall, uri_r)
        skipped += late
    elif len(asked) > 1:
        asked.sort(key=lambda one: (one.gap, -one.expected))
    if top_k is not None and len(asked) > top_k:
        skipped += [late._replace(ask=False, reason=Reason.NOT_BEST, limit=top_k) for late in asked[top_k:]]
        del asked[top_k:]
    return (*asked, *skipped)


def _with_floor(one: Decision, floor: float, uri_r: str) -> Decision:
    """A decision that no target recall may skip, if the archive's floor wants it."""
    if one.always:
        return one._replace(promised=1.0)
    if not floor:
        return one._replace(promised=0.0)
    share = (one.rank or Rank()).share(min(1.0, floor * _ABOVE_FLOOR))
    if not share or drawn(uri_r, one.archive) >= share:
        return one._replace(promised=floor)
    return one._replace(promised=floor, always=True, sources=(*one.sources, Source.FLOOR))


def drawn(uri_r: str, archive: str) -> float:
    """A number from 0 to below 1, the same whenever the same URI and archive are drawn for."""
    digest = hashlib.blake2b(f"{archive} {uri_r}".encode("utf-8", "surrogatepass"), digest_size=6).digest()
    return int.from_bytes(digest, "big") / 2**48


def _until(ordered: Sequence[Decision], target: float, uri_r: str) -> tuple[list[Decision], list[Decision]]:
    """Those to ask so that the expected share of what is held reaches the target, and those beyond it.

    The last of them mostly has more than is missing. Where a sample estimates its chance, it is asked as often as the
    target needs, by draws of the URI, so that no requests are spent beyond the target."""
    total = math.fsum(one.chance or 0.0 for one in ordered)
    reached = math.fsum(one.chance or 0.0 for one in ordered if one.always)
    careful = 1.0 - (1.0 - target) * _OF_ALLOWED_LOSS
    asked, late = list[Decision](), list[Decision]()
    for one in ordered:
        chance = one.chance or 0.0
        by_draw = bool(uri_r) and one.source is Source.SAMPLE
        missing = (careful if by_draw else target) * total * (1.0 - 1e-12) - reached
        reached += 0.0 if one.always or missing <= 0 else chance
        if one.always or (missing > 0 and not (by_draw and missing < chance * drawn(uri_r, f"{one.archive} last"))):
            asked.append(one)
        else:
            late.append(one._replace(ask=False, source=Source.TARGET, reason=Reason.BEYOND_TARGET))
    return asked, late


def _decide(
    candidate: Candidate,
    found: Evidence | None,
    chosen: frozenset[str] | None,
    named: bool,
    by_target: bool,
    near: float | None,
    stale_loss: float | None,
) -> Decision:
    if chosen is not None and candidate.id not in chosen:
        return Decision(candidate.id, False, Source.CHOICE, reason=Reason.NOT_CHOSEN)
    unlikely = found is not None and found.answer == Answer.NO and found.reason is Reason.UNLIKELY
    if found is not None and found.answer == Answer.NO and not unlikely:
        return _absent(candidate, found, stale_loss)
    chance, sources, ratio = _chance(candidate, found)
    if found is not None and unlikely and not named and not by_target:
        said = Decision(candidate.id, False, found.source, found.key, found.frequency, reason=found.reason)
        said = said._replace(chance=chance, sources=sources, unlikely=True, answer=Answer.UNKNOWN)
        return said._replace(promised=found.promise)
    if candidate.rest is not None:
        known = Answer.UNKNOWN if found is None or unlikely else found.answer
        resting = Decision(candidate.id, False, Source.RESTING, reason=candidate.rest.reason, rest=candidate.rest)
        return resting._replace(answer=known)
    if found is None:
        expected = candidate.probability
        said = Decision(candidate.id, True, Source.NOTHING, expected=expected, chance=chance, sources=sources)
        return said._replace(answer=Answer.UNKNOWN, promised=1.0)
    expected = found.expected * ratio if found.answer == Answer.YES else chance
    decision = Decision(candidate.id, True, found.source, found.key, found.frequency, expected)
    decision = decision._replace(
        chance=chance,
        sources=sources,
        always=found.exact or found.explored or named,
        unlikely=unlikely,
        gap=found.gap,
        answer=Answer.UNKNOWN if unlikely else found.answer,
        note=found.note,
        rank=found.rank,
        promised=found.promise,
    )
    if near is not None and found.gap > near and not named:
        return decision._replace(ask=False, source=Source.TIME, reason=Reason.FAR_IN_TIME, expected=0.0)
    return decision


def _absent(candidate: Candidate, found: Evidence, stale_loss: float | None) -> Decision:
    """The decision of a "no": the archive is skipped, unless it may well hold the URI since."""
    since = chance_since(found.new_share, candidate.probability)
    said = Decision(candidate.id, False, found.source, found.key, found.frequency, reason=found.reason, chance=since)
    said = said._replace(answer=Answer.NO, note=found.note, as_of=found.as_of)
    if stale_loss is None or since <= stale_loss:
        return said
    if candidate.rest is not None:
        return said._replace(source=Source.RESTING, reason=candidate.rest.reason, rest=candidate.rest)
    sources = (found.source, Source.AGE)
    return said._replace(ask=True, reason=Reason.NONE, expected=since, sources=sources, answer=Answer.UNKNOWN)


def chance_since(share: float, probability: float) -> float:
    """The chance that a URI which was absent is held after a share of the keys became new: p·s / (1 − p·(1 − s)), where
    p is the archive's probability of holding a URI that is asked for."""
    held = probability * share
    return held / (1.0 - probability + held) if held else 0.0


def _chance(candidate: Candidate, found: Evidence | None) -> tuple[float, tuple[Source, ...], float]:
    """The chance that an archive holds the URI, its sources, and what the factors of the evidence changed it by."""
    if found is None:
        return candidate.probability, (Source.PRIOR,), 1.0
    if found.exact:
        return 1.0, (found.source,), 1.0
    if found.chance is None:
        base, sources = candidate.probability, (Source.PRIOR, *found.sources)
    else:
        base, sources = found.chance, found.sources
    chance = updated(base, found.factor)
    return chance, sources, chance / base if base else 1.0
