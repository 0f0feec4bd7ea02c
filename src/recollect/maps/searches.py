"""What full-text searches of an archive say about URIs that they did not find.

Hides: the estimate. Each URI that was found is judged as if it had not been: had another URI of its registered domain
been found? The share of those for which none had is the share of what was not found that lies on domains without a find
(leave one out, the estimate of Good and Turing for unseen species). What was not found is the rest up to the upper
bound of Chao1 over how often each URI was found (Chao 1987, "Estimating the Population Size for Capture-Recapture Data
with Unequal Catchability"). The product of both is missed where only domains with finds are asked about. Where it is
small, searches route, profiled by registered domain (Alam et al., "Web Archive Profiling Through Fulltext Search",
2016, section 5). Where it is too large for the wanted recall, top-level domains are judged the same way; where these do
not suffice either, the archive is asked about everything.

Searches rank popular and long pages first, so both are estimates of what searches can reach.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from recollect.formats.frequency import Frequency
from recollect.maps.calibration import PRIOR, case_of
from recollect.uris import segments
from recollect.uris.suffixes import registered_name

LEVELS = ("registered domain", "top-level domain")


def domain_of(key: bytes) -> bytes:
    """The wildcard of a key's registered domain, or of its host where it has none."""
    hosts, _ = segments(key)
    labels = [label for label in hosts if not label.startswith(b":")]
    name = registered_name(".".join(label.decode("ascii", "replace") for label in reversed(labels)))
    if len(labels) > 1 and name:
        return b",".join(labels[: name.count(".") + 1]) + b",*"
    return key.partition(b")")[0] + b")/*"


def _top_of(key: bytes) -> bytes:
    return key.partition(b")")[0].partition(b",")[0]


_DEVIATIONS = 1.96


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its 95% interval."""

    value: float
    low: float
    high: float

    def as_json(self) -> dict[str, float]:
        return {"value": round(self.value, 4), "low": round(self.low, 4), "high": round(self.high, 4)}


def chao1(times: Iterable[int]) -> Interval:
    """How many there are, from how often each that was seen was seen."""
    counts = Counter(times)
    seen, once, twice = sum(counts.values()), counts[1], counts[2]
    if not once:
        return Interval(seen, seen, seen)
    unseen = once * once / (2 * twice) if twice else once * (once - 1) / 2
    if unseen <= 0:
        return Interval(seen, seen, seen)
    if twice:
        ratio = once / twice
        variance = twice * (ratio**4 / 4 + ratio**3 + ratio**2 / 2)
    else:
        variance = once * (once - 1) / 2 + once * (2 * once - 1) ** 2 / 4 - once**4 / (4 * (seen + unseen))
    spread = math.exp(_DEVIATIONS * math.sqrt(math.log1p(max(variance, 0.0) / unseen**2)))
    return Interval(seen + unseen, seen + unseen / spread, seen + unseen * spread)


@dataclass(frozen=True)
class Searches:
    """The keys that searches found, and how many searches found each."""

    found: Mapping[bytes, int]

    @cached_property
    def domains(self) -> Counter[bytes]:
        """By wildcard of a registered domain, how many URIs were found below it."""
        return Counter(map(domain_of, self.found))

    @cached_property
    def _tops(self) -> Counter[bytes]:
        return Counter(map(_top_of, self.found))

    @cached_property
    def not_found(self) -> float:
        """The share of the holdings that no search found, at most."""
        number = len(self.found)
        return max(1.0 - number / chao1(self.found.values()).high, 1.0 / (number + 1))

    def missed(self, level: int) -> float:
        """The share of the holdings that lies where nothing was found: of the registered domains (0) or the top-level
        domains (1). One more find could lie anywhere."""
        names = self._tops if level else self.domains
        alone = (sum(1 for count in names.values() if count == 1) + 1) / (len(self.found) + 1)
        return self.not_found * alone

    def level(self, target_recall: float) -> int | None:
        """The narrowest level that finds the wanted share when it alone is asked for; None if both miss too much."""
        return next((level for level in range(len(LEVELS)) if self.missed(level) <= 1.0 - target_recall + 1e-9), None)

    def covers(self, key: bytes, level: int) -> bool:
        """Whether anything was found on the key's domain or top-level domain."""
        return (_top_of(key) in self._tops) if level else (domain_of(key) in self.domains)

    def names(self, level: int) -> int:
        """On how many domains or top-level domains something was found."""
        return len(self._tops if level else self.domains)

    def chance(self, key: bytes, usual: float) -> float:
        """The chance that the archive holds a key that was not found: on a domain with finds as that of a wildcard with
        as many URI-Rs, elsewhere the usual one as far as the searches missed domains."""
        domain = domain_of(key)
        count = self.domains.get(domain)
        if not count:
            missed = self.missed(0)
            return usual * missed / (usual * missed + 1.0 - usual)
        return max(usual, PRIOR.chance(case_of(domain, Frequency.exact(count, count), key)))


def searches_of(found: Mapping[bytes, int]) -> Searches | None:
    """The searches that found some keys; None if there are none."""
    return Searches(dict(found)) if found else None
