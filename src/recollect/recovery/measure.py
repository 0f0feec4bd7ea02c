"""How much of a lost website came back: the measurements of McCown (2007, section VII.2), pure.

Hides: matching by URI, text extraction and shingling. Invariants: every resource of the lost site L is identical,
changed or missing; every resource of the recovered site R that L does not have is added; the difference vector is
(changed/|L|, missing/|L|, added/|R|) (equation 20), success is its L1 norm after penalties (equations 22 and 23),
0 is best.
"""

from __future__ import annotations

import io
import logging
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

SHINGLE_WORDS = 10
SIMILAR_SHARE = 0.75
# Table 15: the penalties of each success level; s3 forgives similar text, s5 forgives what was known to be recoverable.
PENALTIES: Mapping[str, tuple[float, float, float]] = {
    "s1": (1, 1, 1),
    "s2": (1, 1, 0),
    "s3": (1, 1, 0),
    "s4": (0, 1, 0),
    "s5": (0, 1, 0),
}
_WORD = re.compile(r"\w+", re.UNICODE)


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource of a site: its identity, its type, and its bytes on demand."""

    uri: str
    media_type: str
    digest: str
    read: Callable[[], bytes] = field(compare=False)


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference vector (equation 20)."""

    changed: float
    missing: float
    added: float

    @classmethod
    def of_counts(cls, changed: int, missing: int, added: int, *, lost: int, recovered: int) -> Difference:
        """Counts normalised by |L| and |R|; an empty site has nothing changed, missing or added."""
        return cls(
            changed / lost if lost else 0.0, missing / lost if lost else 0.0, added / recovered if recovered else 0.0
        )

    def success(self, penalties: tuple[float, float, float] = (1, 1, 1)) -> float:
        """The L1 norm after a penalty adjustment: 0 is a perfect reconstruction, 2 the worst."""
        return self.changed * penalties[0] + self.missing * penalties[1] + self.added * penalties[2]


Penalty = tuple[float, float, float]  # for a changed, a missing, an added resource; each from 0 to 1


@dataclass(frozen=True, slots=True)
class Penalties:
    """Penalties of single recovery vectors (McCown 2007, equation 21): by address, else by media type, else `default`.

    A pattern is a glob: over addresses when it begins with `/`, over media types when it has one (`application/pdf`,
    `image/*`), else the name of a group (`html`, `images`, `other`). Of several that match the last one counts.
    """

    patterns: tuple[tuple[str, Penalty], ...] = ()
    default: Penalty = (1, 1, 1)

    def of(self, resource: Resource) -> Penalty:
        by_type, by_address = self.default, None
        essence = resource.media_type.partition(";")[0].strip().lower()
        for pattern, penalty in self.patterns:
            if pattern.startswith("/"):
                by_address = penalty if fnmatchcase(resource.uri, pattern) else by_address
            elif fnmatchcase(essence, pattern) or pattern == kind_of(resource.media_type):
                by_type = penalty
        return by_address if by_address is not None else by_type


@dataclass(frozen=True, slots=True)
class Measurement:
    """Everything said about a reconstruction; the lists hold URIs in order."""

    lost: int
    recovered: int
    identical: tuple[str, ...]
    changed: tuple[str, ...]
    similar: tuple[str, ...]
    missing: tuple[str, ...]
    added: tuple[str, ...]
    recoverable: tuple[str, ...]
    difference: Difference
    by_type: Mapping[str, tuple[int, int]]
    requests: int | None = None
    penalized: Difference | None = None  # the difference vector with the caller's own penalties in it

    @property
    def success(self) -> dict[str, float]:
        """s1 to s5 of Table 15."""
        lost = max(self.lost, 1)
        d = self.difference
        relaxed = {
            "s3": Difference((len(self.changed) - len(self.similar)) / lost, d.missing, d.added),
            "s5": Difference(d.changed, (len(self.missing) - len(self.recoverable)) / lost, d.added),
        }
        return {level: relaxed.get(level, self.difference).success(p) for level, p in PENALTIES.items()}

    @property
    def efficiency(self) -> float | None:
        """Recovered resources per request (equation 24); None when the requests are not known."""
        return None if not self.requests else self.recovered / self.requests

    @property
    def efficiency_without_added(self) -> float | None:
        """The same, counting only what the lost site had."""
        return None if not self.requests else (self.recovered - len(self.added)) / self.requests


def measure(
    lost: Iterable[Resource],
    recovered: Iterable[Resource],
    *,
    recoverable: Iterable[str] = (),
    requests: int | None = None,
    penalties: Penalties | None = None,
) -> Measurement:
    """Compare two snapshots by URI. `recoverable` are URIs known to be archived but not fetched (for s5)."""
    before = {resource.uri: resource for resource in lost}
    after = {resource.uri: resource for resource in recovered}
    identical, changed, similar = [], [], []
    for uri in sorted(before.keys() & after.keys()):
        if before[uri].digest == after[uri].digest:
            identical.append(uri)
            continue
        changed.append(uri)
        if alike(before[uri], after[uri]):
            similar.append(uri)
    missing = sorted(before.keys() - after.keys())
    added = sorted(after.keys() - before.keys())
    known = set(recoverable)
    return Measurement(
        lost=len(before),
        recovered=len(after),
        identical=tuple(identical),
        changed=tuple(changed),
        similar=tuple(similar),
        missing=tuple(missing),
        added=tuple(added),
        recoverable=tuple(uri for uri in missing if uri in known),
        difference=Difference.of_counts(len(changed), len(missing), len(added), lost=len(before), recovered=len(after)),
        by_type=_by_type(before, after),
        requests=requests,
        penalized=_penalized(before, after, changed, penalties) if penalties is not None else None,
    )


def _penalized(
    before: Mapping[str, Resource], after: Mapping[str, Resource], changed: Sequence[str], penalties: Penalties
) -> Difference:
    """Each recovery vector times its penalty, then normalised (equations 21 and 20)."""
    parts = (
        sum(penalties.of(before[uri])[0] for uri in changed),
        sum(penalties.of(before[uri])[1] for uri in before.keys() - after.keys()),
        sum(penalties.of(after[uri])[2] for uri in after.keys() - before.keys()),
    )
    lost, recovered = max(len(before), 1), max(len(after), 1)
    return Difference(parts[0] / lost, parts[1] / lost, parts[2] / recovered)


def _by_type(before: Mapping[str, Resource], after: Mapping[str, Resource]) -> dict[str, tuple[int, int]]:
    """Kind -> (in the lost site, of these recovered), the three groups of Table 16."""
    counts: dict[str, tuple[int, int]] = {}
    for uri, resource in before.items():
        kind = kind_of(resource.media_type)
        total, back = counts.get(kind, (0, 0))
        counts[kind] = (total + 1, back + (uri in after))
    return dict(sorted(counts.items()))


def kind_of(media_type: str) -> str:
    """HTML, images or other."""
    essence = media_type.partition(";")[0].strip().lower()
    if essence in ("text/html", "application/xhtml+xml"):
        return "html"
    return "images" if essence.startswith("image/") else "other"


def alike(left: Resource, right: Resource) -> bool:
    """Similar as McCown (2007) defines it: textual, and at least 75% of the 10-word shingles shared."""
    texts = [extract_text(resource.read(), resource.media_type) for resource in (left, right)]
    if texts[0] is None or texts[1] is None:
        return False
    return similarity(texts[0], texts[1]) >= SIMILAR_SHARE


def similarity(left: str, right: str) -> float:
    """The share of 10-word shingles that two texts have in common, of all they have (Broder's resemblance)."""
    a, b = shingles(left), shingles(right)
    if not a and not b:
        return 1.0
    return len(a & b) / len(a | b)


def shingles(text: str) -> set[tuple[str, ...]]:
    """Every run of ten words; a shorter text is one shingle of its own."""
    words = _WORD.findall(text.lower())
    if not words:
        return set()
    if len(words) < SHINGLE_WORDS:
        return {tuple(words)}
    return {tuple(words[i : i + SHINGLE_WORDS]) for i in range(len(words) - SHINGLE_WORDS + 1)}


def extract_text(body: bytes, media_type: str) -> str | None:
    """The words of a textual resource without markup; None for what has no text we can read."""
    essence = media_type.partition(";")[0].strip().lower()
    if essence in ("text/html", "application/xhtml+xml"):
        return _html_text(body, media_type)
    if essence == "application/pdf":
        return _pdf_text(body)
    if essence.startswith("text/") or essence in ("application/json", "application/xml", "application/javascript"):
        return _decode(body, media_type)
    return None


def _decode(body: bytes, media_type: str) -> str:
    match = re.search(r"charset=[\"']?([\w.:-]+)", media_type, re.IGNORECASE)
    for charset in ([match.group(1)] if match else []) + ["utf-8"]:
        try:
            return body.decode(charset)
        except (LookupError, UnicodeDecodeError):
            continue
    return body.decode("latin-1")


def _html_text(body: bytes, media_type: str) -> str:
    from lxml import etree, html

    if not body.strip():
        return ""
    match = re.search(r"charset=[\"']?([\w.:-]+)", media_type, re.IGNORECASE)
    try:
        parser = html.HTMLParser(encoding=match.group(1) if match else None, remove_comments=True, huge_tree=False)
    except LookupError:
        parser = html.HTMLParser(remove_comments=True)
    try:
        tree = html.document_fromstring(body, parser=parser)
    except (etree.ParserError, ValueError):
        return ""
    etree.strip_elements(tree, "script", "style", with_tail=False)
    return " ".join(tree.itertext())


def _pdf_text(body: bytes) -> str | None:
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ImportError:  # without the extra `pdf`
        return None

    logging.getLogger("pypdf").setLevel(logging.ERROR)
    try:
        return "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(body)).pages)
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError):
        # A damaged PDF raises almost anything; it then has no text to compare.
        return None


def query_cost(stored: Sequence[int], per_listing: Sequence[int], per_download: Sequence[int], resources: int) -> int:
    """Requests to list and download a site from n archives (equation 16)."""
    listing = sum(math.ceil(s / r) for s, r in zip(stored, per_listing, strict=True))
    return listing + resources * sum(per_download)


def days_needed(requests: int, daily_limits: Sequence[int]) -> float:
    """Days under the archives' daily limits (equations 17, 18)."""
    return requests / min(daily_limits)
