"""Routing by kinds of URIs: how often each archive holds URIs of a top-level domain and of a language.

Hides: how the kind of a URI is found, and the estimate. This is the profile of AlSum et al. ("Profiling Web Archive
Coverage for Top-Level Domain and Content Language", 2014), with which an aggregator asks the k most probable archives;
here it is a method of `replay`, for comparison. The language of a URI is the one that the log states, else the one in
its address: a language code as the first label of the host (`pt.wikipedia.org`), as one of the first two path segments
(`/de/`, `/en-us/`), or in the query (`lang=fr`).

The chance that an archive holds a URI is that of all URIs, corrected by the top-level domain, and then by the language
within it, in proportion to what was counted there: p = (held + M·p_wider) / (asked + M).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from recollect.errors import BadURI
from recollect.uris import key_of_uri

_WEIGHT = 10.0
# ISO 639-1, without codes that are rather words or countries in addresses (`is`, `to`, `in`, `my`, ...).
_CODE = (
    "(ar|az|be|bg|bn|bs|ca|cs|cy|da|de|el|en|eo|es|et|eu|fa|fi|fr|ga|gl|he|hi|hr|hu|hy|id|it|ja|ka|kk|ko|lt|lv|mk|mn|mr|"
    "ms|mt|nb|nl|nn|no|pl|pt|ro|ru|sk|sl|sq|sr|sv|sw|ta|te|th|tr|uk|ur|uz|vi|zh)(?:[-_][a-z]{2})?"
)
_SEGMENT = re.compile(_CODE)
_QUERY = re.compile(f"[?&](?:lang|language|locale|hl|lg)={_CODE}(?:&|$)")
_ADDRESS = re.compile(r"https?://([^/?#]*)([^?#]*)(\?[^#]*)?")


class KindOf(StrEnum):
    """What distinguishes URIs."""

    TLD = "tld"
    LANGUAGE = "language"


def tld_of(uri_r: str) -> str:
    """The top-level domain of a URI; empty for an address."""
    try:
        top = key_of_uri(uri_r).partition(b")")[0].partition(b",")[0].decode("ascii", "replace")
    except BadURI:
        return ""
    return "" if top[:1].isdigit() or top.startswith("[") else top


def language_of(uri_r: str) -> str:
    """The language that the address of a page names; empty if it names none."""
    parts = _ADDRESS.match(uri_r.lower())
    if parts is None:
        return ""
    host, path, query = parts[1], parts[2], parts[3] or ""
    labels = host.removeprefix("www.").split(".")
    candidates = [labels[0]] if len(labels) > 2 else []
    candidates += path.split("/")[1:3]
    for candidate in candidates:
        named = _SEGMENT.fullmatch(candidate)
        if named is not None:
            return named[1]
    asked = _QUERY.search(query)
    return asked[1] if asked is not None else ""


@dataclass
class KindProfile:
    """How often archives held URIs, by kind."""

    by: tuple[KindOf, ...]
    _counts: dict[tuple[str, ...], dict[str, list[int]]] = field(default_factory=dict)

    def levels(self, uri_r: str, language: str = "") -> list[tuple[str, ...]]:
        """The kinds of a URI, all URIs first, then one with each further part that is known."""
        parts: list[str] = []
        levels: list[tuple[str, ...]] = [()]
        for kind in self.by:
            value = tld_of(uri_r) if kind is KindOf.TLD else language or language_of(uri_r)
            if value:
                parts.append(f"{kind}:{value}")
                levels.append(tuple(parts))
        return levels

    def count(self, levels: Sequence[tuple[str, ...]], answers: Mapping[str, bool]) -> None:
        """Add what archives answered about a URI of these kinds."""
        for level in levels:
            counts = self._counts.setdefault(level, {})
            for archive, held in answers.items():
                counted = counts.setdefault(archive, [0, 0])
                counted[0] += 1
                counted[1] += held

    def chance(self, levels: Sequence[tuple[str, ...]], archive: str) -> float:
        """The chance that an archive holds a URI of these kinds."""
        chance = 0.5
        for depth, level in enumerate(levels):
            asked, held = self._counts.get(level, {}).get(archive, (0, 0))
            weight = _WEIGHT if depth else 1.0
            chance = (held + weight * chance) / (asked + weight)
        return chance


def fold_of(uri_r: str) -> int:
    """Which half of a log a URI belongs to: one half is judged by the profile of the other."""
    return zlib.crc32(uri_r.encode("utf-8", "surrogatepass")) & 1
