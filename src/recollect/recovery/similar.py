"""Which pages are so alike that one decision of a person holds for all of them.

Hides: sketches. The sketch of a page is a bounded set of hashes of its word pairs (digits left out, so that a number or
a date changes little) and of its links into the site; a journal keeps it beside the decision. Pure.

Pages of one template differ in text and share their links: where a verdict is about the owner of a page, either is
enough. Where it is about the page itself (an error page, a login), a shared menu says nothing, and the text decides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit
from zlib import crc32

from recollect.recovery.links import Document
from recollect.recovery.verdicts import ABOUT_THE_OWNER, Verdict

_MOST = 128
_FEWEST_LINKS = 4
_ALIKE = 0.6
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Sketch:
    """Hashes of a page's word pairs and of its own links, the smallest of each."""

    words: frozenset[int] = frozenset()
    links: frozenset[int] = frozenset()

    def to_json(self) -> str:
        return json.dumps({"words": sorted(self.words), "links": sorted(self.links)})

    @classmethod
    def from_json(cls, text: str) -> Sketch:
        value = json.loads(text)
        return cls(frozenset(value["words"]), frozenset(value["links"]))


@dataclass(frozen=True, slots=True)
class Precedent:
    """A page that a person decided about: `accepted` says which way."""

    accepted: bool
    verdict: Verdict
    sketch: Sketch


def sketch_of(document: Document, uri: str) -> Sketch:
    """The sketch of a page."""
    words = [word.lower() for word in _WORD.findall(f"{document.title} {document.text}")]
    pairs = (f"{first} {second}" for first, second in zip(words, words[1:] or words, strict=False))
    host = urlsplit(uri).netloc
    own = (urlsplit(link.uri) for link in document.links if not link.embedded and not link.guess)
    return Sketch(_smallest(pairs), _smallest(link.path for link in own if link.netloc == host))


def _smallest(texts: Iterable[str]) -> frozenset[int]:
    return frozenset(sorted({crc32(text.encode("utf-8", "replace")) for text in texts})[:_MOST])


def alike(one: Sketch, other: Sketch, verdict: Verdict) -> bool:
    """Whether a decision about one page holds for the other, of which the judge says the same."""
    if _share(one.words, other.words) >= _ALIKE:
        return True
    few = min(len(one.links), len(other.links)) < _FEWEST_LINKS
    return verdict in ABOUT_THE_OWNER and not few and _share(one.links, other.links) >= _ALIKE


def _share(one: frozenset[int], other: frozenset[int]) -> float:
    """An estimate of the Jaccard similarity, from the smallest hashes of the union."""
    union = sorted(one | other)[:_MOST]
    return sum(value in one and value in other for value in union) / len(union) if union else 0.0


def precedent_for(sketch: Sketch, verdict: Verdict, precedents: Iterable[Precedent]) -> Precedent | None:
    """The last decision about a page like this one."""
    found = [p for p in precedents if p.verdict == verdict and alike(p.sketch, sketch, verdict)]
    return found[-1] if found else None
