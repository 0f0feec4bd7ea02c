"""The registered domain of a host, by the Public Suffix List (the copy inside the package `publicsuffixlist`).

Hides: the list and how it is read. `PublicSuffixList()` encodes all of its 10,000 names for IDNA (0.01 s); nearly all
are ASCII, so only the others are encoded here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList


def registered_name(host: str) -> str | None:
    """`example.co.uk` of `cdn.example.co.uk`; None for a host that is itself a public suffix."""
    found: str | None = public_suffixes().privatesuffix(host)
    return found


@lru_cache(maxsize=1)
def public_suffixes() -> PublicSuffixList:
    """The list, which knows names in Unicode and in Punycode."""
    from publicsuffixlist import PSLFILE, PublicSuffixList

    return PublicSuffixList(_rules(Path(PSLFILE).read_text("utf-8")), accept_encoded_idn=False)


def _rules(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if not line or line.startswith("//"):
            continue
        yield line
        if not line.isascii():
            rule = line.lower().split(" ")[0].rstrip()
            exception = "!" * rule.startswith("!")
            yield exception + rule.removeprefix("!").encode("idna").decode("ascii")
