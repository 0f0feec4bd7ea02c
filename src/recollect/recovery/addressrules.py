"""Rules by which one page has two addresses, learned from pairs of addresses that the site itself shows to be one page.

Hides: alignment and generalisation. Pure. DUST (McCown 2007, section V.3.2, after Bar-Yossef et al. 2007): a site that
moves from `/story?id=7` to `/story_7` moves all stories the same way. Each pair of addresses of one page is aligned:
runs of characters that both have become variables, the rest stays. Pairs that align in the same way support one rule:
`/story?id=… = /story_…`.

A rule holds both ways and is used only with enough support (`ENOUGH` in weighted pairs of different values) and without
any contradiction: a page whose other address is known to be another one, or two addresses of the rule that are known to
be different pages. A rule that is contradicted in general may hold for some values of one variable (`/story?id=…` but
not `/poll?id=…`): then it is tried for each of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby, pairwise

ENOUGH = 3.0
FEWEST_PAIRS = 3
_TOKEN = re.compile(r"\d+|[^\W\d_]+|.", re.DOTALL)
_MOST_TOKENS = 60
# A variable that could go on over what follows it makes a search go back: three in 300 characters take milliseconds.
_MOST_OPEN = 3
_LONGEST = 300
_MOST_DEPTH = 2  # how often a contradicted rule is split


class Evidence(StrEnum):
    """How a site shows that two addresses are one page."""

    REDIRECT = "redirect"
    CANONICAL = "canonical link"
    DIGEST = "equal bytes"
    TITLE = "equal title"


WEIGHTS: Mapping[Evidence, float] = {
    Evidence.REDIRECT: 1.0,
    Evidence.CANONICAL: 1.0,
    Evidence.DIGEST: 1.0,
    Evidence.TITLE: 0.5,  # pages of one name may be two
}
# Of these a site says itself which address it is; a rule that gives another one is wrong.
_STATED = frozenset({Evidence.REDIRECT, Evidence.CANONICAL})


@dataclass(frozen=True, slots=True)
class Pair:
    """Two addresses of one page."""

    one: str
    other: str
    evidence: Evidence


Pattern = tuple[str | int, ...]
"""Constant text, and numbers of variables."""


@dataclass(frozen=True, slots=True)
class AddressRule:
    """Two patterns with the same variables: addresses that match are one page's."""

    one: Pattern
    other: Pattern
    numeric: frozenset[int] = frozenset()
    """Variables that were numbers in every pair."""
    deep: frozenset[int] = frozenset()
    """Variables that may go over several folders."""
    lettered: frozenset[int] = frozenset()
    """Variables that had letters only."""
    sources: frozenset[int] = frozenset((0, 1))
    """Sides that the site itself leads away from: 0 for `one`, 1 for `other`."""
    support: Mapping[Evidence, int] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return f"{_words(self.one)} = {_words(self.other)}"

    @property
    def evidence(self) -> str:
        """The pairs in words: `4 redirects, 1 canonical link`."""
        plural = {Evidence.REDIRECT: "redirects", Evidence.CANONICAL: "canonical links"}
        plural |= {Evidence.DIGEST: "pages with equal bytes", Evidence.TITLE: "pages with equal titles"}
        single = {Evidence.DIGEST: "page with equal bytes", Evidence.TITLE: "page with an equal title"}
        parts = ((how, self.support[how]) for how in Evidence if self.support.get(how))
        return ", ".join(f"{n} {plural[how] if n > 1 else single.get(how, str(how))}" for how, n in parts)

    def images(self, address: str) -> Iterator[str]:
        """The other address of a page, by this rule read in either direction."""
        for side in (0, 1):
            yield from self.images_of(side, address)

    def images_of(self, side: int, address: str) -> Iterator[str]:
        """The other address of a page whose address is of one side, 0 or 1; at most one."""
        source, target = (self.one, self.other) if side == 0 else (self.other, self.one)
        if len(address) > _LONGEST:
            return
        if address.startswith(source[0]) if isinstance(source[0], str) else True:
            match = self._regex(source).fullmatch(address)
            if match is not None:
                image = "".join(match[f"v{part}"] if isinstance(part, int) else part for part in target)
                if image != address:
                    yield image

    def _regex(self, pattern: Pattern) -> re.Pattern[str]:
        parts, seen = [], set()
        for part in pattern:
            if isinstance(part, str):
                parts.append(re.escape(part))
            elif part in seen:
                parts.append(f"(?P=v{part})")
            else:
                seen.add(part)
                parts.append(f"(?P<v{part}>{self._shape(part)}+)")
        return re.compile("".join(parts))

    def _shape(self, variable: int) -> str:
        """The characters of a variable."""
        if variable in self.numeric:
            return r"\d"
        if variable in self.lettered:
            return r"[^\W\d_]"
        return r"[^?&=#]" if variable in self.deep else r"[^/?&=#]"

    @property
    def is_quick(self) -> bool:
        """Whether few variables of a side could go on over what follows them."""
        for pattern in (self.one, self.other):
            pairs = [(part, after) for part, after in pairwise(pattern) if isinstance(part, int)]
            is_open = [isinstance(b, int) or re.match(self._shape(a), b) is not None for a, b in pairs]
            if sum(is_open) > _MOST_OPEN:
                return False
        return True


def _words(pattern: Pattern) -> str:
    several = len({part for part in pattern if isinstance(part, int)}) > 1
    return "".join(part if isinstance(part, str) else f"…{part + 1}" if several else "…" for part in pattern)


# Learning ------------------------------------------------------------------------------------------------------------

Values = tuple[str, ...]
SamePage = Callable[[str, str], bool | None]
"""Whether two addresses are known to show the same page; None when not both are known."""


@dataclass(frozen=True, slots=True)
class _Aligned:
    one: Pattern
    other: Pattern
    values: Values
    evidence: Evidence
    source: int | None
    """The side that leads to the other one, 0 or 1; None where neither does."""


def learn_rules(pairs: Iterable[Pair], addresses: Iterable[str], same_page: SamePage) -> list[AddressRule]:
    """The rules that the pairs support and nothing known contradicts; the best supported first.

    `addresses` are those whose page is known; `same_page` compares two of them."""
    unique = sorted({(p.one, p.other, p.evidence) for p in pairs if p.one != p.other})
    known_pairs = [Pair(*fields) for fields in unique]
    stated: dict[str, set[str]] = {}
    for pair in known_pairs:
        if pair.evidence in _STATED:
            stated.setdefault(pair.one, set()).add(pair.other)
    known = sorted(set(addresses))
    aligned = [one for pair in known_pairs if (one := _align(pair)) is not None]
    aligned.sort(key=lambda one: (repr(one.one), repr(one.other), one.values))
    rules: list[AddressRule] = []
    for _, group in groupby(aligned, key=lambda one: (one.one, one.other)):
        rules += _rules_of(list(group), known, stated, same_page, _MOST_DEPTH)
    unique_rules = {(rule.one, rule.other): rule for rule in rules}
    return sorted(unique_rules.values(), key=lambda rule: (-sum(rule.support.values()), str(rule)))


def _rules_of(
    group: Sequence[_Aligned],
    known: Sequence[str],
    stated: Mapping[str, set[str]],
    same_page: SamePage,
    depth: int,
) -> Iterator[AddressRule]:
    rule = _generalised(group)
    if rule is None:
        return
    if not _contradicted(rule, known, stated, same_page):
        yield rule
        return
    if not depth:
        return
    for place in range(len(group[0].values)):
        by_value: dict[str, list[_Aligned]] = {}
        for one in group:
            by_value.setdefault(one.values[place], []).append(one)
        if len(by_value) < 2:
            continue
        for _, some in sorted(by_value.items()):
            yield from _rules_of(some, known, stated, same_page, depth - 1)


def _generalised(group: Sequence[_Aligned]) -> AddressRule | None:
    """One rule of pairs that align in the same way, None without enough support."""
    distinct = {(one.values, one.evidence) for one in group}
    weights = {values: max(WEIGHTS[how] for v, how in distinct if v == values) for values, _ in distinct}
    if len(weights) < FEWEST_PAIRS or sum(weights.values()) < ENOUGH:
        return None
    ends = [_common_ends([values[n] for values in weights]) for n in range(len(group[0].values))]
    varying = {n: [_middle(values[n], ends[n]) for values in weights] for n in range(len(ends)) if ends[n] is not None}
    if not varying:
        return None
    number = {n: place for place, n in enumerate(varying)}
    constant = {n: group[0].values[n] for n in range(len(ends)) if n not in varying}
    support: dict[Evidence, int] = {}
    for _, how in distinct:
        support[how] = support.get(how, 0) + 1
    rule = AddressRule(
        _folded(_split_ends(group[0].one, ends), constant, number),
        _folded(_split_ends(group[0].other, ends), constant, number),
        numeric=frozenset(number[n] for n, texts in varying.items() if all(text.isdigit() for text in texts)),
        deep=frozenset(number[n] for n, texts in varying.items() if any("/" in text for text in texts)),
        lettered=frozenset(number[n] for n, texts in varying.items() if all(text.isalpha() for text in texts)),
        sources=frozenset(one.source for one in group if one.source is not None) or frozenset((0, 1)),
        support=dict(sorted(support.items())),
    )
    return rule if rule.is_quick else None


Ends = tuple[str, str]


def _common_ends(texts: Sequence[str]) -> Ends | None:
    """How all values of a variable begin and end: that is part of the rule. None where they are all the same."""
    if len(set(texts)) == 1:
        return None
    tokens = [_TOKEN.findall(text) for text in texts]
    shortest = min(map(len, tokens))
    start = 0
    while start < shortest - 1 and len({one[start] for one in tokens}) == 1:
        start += 1
    end = 0
    while end < shortest - 1 - start and len({one[-1 - end] for one in tokens}) == 1:
        end += 1
    return "".join(tokens[0][:start]), "".join(tokens[0][len(tokens[0]) - end :])


def _middle(text: str, ends: Ends | None) -> str:
    return text[len(ends[0]) : len(text) - len(ends[1])] if ends is not None else text


def _split_ends(pattern: Pattern, ends: Sequence[Ends | None]) -> Iterator[str | int]:
    for part in pattern:
        known = ends[part] if isinstance(part, int) else None
        yield from (part,) if known is None else (known[0], part, known[1])


def _folded(pattern: Iterable[str | int], constant: Mapping[int, str], number: Mapping[int, int]) -> Pattern:
    """A pattern with its constants joined and its variables numbered."""
    parts: list[str | int] = []
    for part in pattern:
        new = part if isinstance(part, str) else constant.get(part, number.get(part, 0))
        if isinstance(new, str) and parts and isinstance(parts[-1], str):
            parts[-1] += new
        elif new != "":
            parts.append(new)
    return tuple(parts)


def _contradicted(rule: AddressRule, known: Sequence[str], stated: Mapping[str, set[str]], same_page: SamePage) -> bool:
    for address in known:
        for image in rule.images(address):
            if same_page(address, image) is False:
                return True
    for address, others in stated.items():
        for side in rule.sources:
            images = set(rule.images_of(side, address))
            if images and not images & others:
                return True
    return False


def _align(pair: Pair) -> _Aligned | None:
    """A pair as two patterns, in one order of the two, so that pairs of either direction support one rule."""
    one, other = _TOKEN.findall(pair.one), _TOKEN.findall(pair.other)
    if len(one) > _MOST_TOKENS or len(other) > _MOST_TOKENS:
        return None
    left, right, values = _aligned(one, other)
    if not values:
        return None
    source = 0
    if _skeleton(left) > _skeleton(right):
        left, right, values = _aligned(other, one)
        source = 1
    return _Aligned(left, right, values, pair.evidence, source if pair.evidence in _STATED else None)


def _skeleton(pattern: Pattern) -> str:
    return "".join(part if isinstance(part, str) else "…" for part in pattern)


def _aligned(one: Sequence[str], other: Sequence[str]) -> tuple[Pattern, Pattern, Values]:
    """Runs of tokens that both have as variables, the longest first; variables are numbered from left to right."""
    left: list[str | int] = list(one)
    right: list[str | int] = list(other)
    texts: list[str] = []
    while (run := _longest_run(left, right)) is not None:
        at, there, length = run
        text = "".join(str(part) for part in left[at : at + length])
        left[at : at + length], right[there : there + length] = [len(texts)], [len(texts)]
        texts.append(text)
    order = [part for part in left if isinstance(part, int)]
    number = {mark: place for place, mark in enumerate(order)}
    return _folded(left, {}, number), _folded(right, {}, number), tuple(texts[mark] for mark in order)


def _longest_run(left: Sequence[str | int], right: Sequence[str | int]) -> tuple[int, int, int] | None:
    best: tuple[int, int, int] | None = None
    for at in range(len(left)):
        for there in range(len(right)):
            length = 0
            while (
                at + length < len(left)
                and there + length < len(right)
                and isinstance(left[at + length], str)
                and left[at + length] == right[there + length]
            ):
                length += 1
            start = 0
            while start < length and not str(left[at + start]).isalnum():
                start += 1
            while length > start and not str(left[at + length - 1]).isalnum():
                length -= 1
            if length - start > (best[2] if best else 0):
                best = (at + start, there + start, length - start)
    return best
