"""Which of several captures of a resource to take: an order, best first.

Hides: what "best" means. By default the newest good capture; near a wanted date with `at`; for what a page embeds,
near the page's own date, so that the page looks as it did. Canonical bytes go before bytes an archive has altered
(unless only recency counts, Warrick's --most-recent): rewritten pages, HTML renderings of documents, thumbnails of
images (McCown 2007, section III.3.3). Pure and total: the same captures give the same order, whatever
order they come in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

# Documents that repositories render as HTML; images, of which they keep thumbnails.
_DOCUMENT = re.compile(r"\.(?:pdf|e?ps|docx?|dot|rtf|od[tsp]|xlsx?|pptx?|pps|dvi|tex|wpd)$", re.IGNORECASE)
_IMAGE = re.compile(r"\.(?:gif|jpe?g|png|bmp|tiff?|webp|avif)$", re.IGNORECASE)
_HTML = frozenset(("text/html", "application/xhtml+xml"))
_THUMBNAIL = 10  # times smaller than another archive's capture
_NO_IMAGE = 24  # bytes; no format of images can do with less
REDIRECTS = frozenset((301, 302, 303, 307, 308))
# A redirect seen shortly before or after content is how the server led there (http to https, a missing slash), not what
# became of the page; only one that is newer by more than this is the page's last word.
_REDIRECT_HANDICAP = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One capture that could be fetched. `uri` is spelled as its archive lists it; `status` None is unknown."""

    archive: str
    uri: str
    captured_at: datetime
    status: int | None = None
    media_type: str = ""
    digest: str = ""
    length: int | None = None
    revisit: bool = False
    altered: bool = False
    locator: str = ""  # a URI-M or a WARC range, where the archive's template does not say enough

    @property
    def is_redirect(self) -> bool:
        return self.status in REDIRECTS


@dataclass(frozen=True, slots=True)
class DatePreference:
    """Which captures the user prefers: near a date, within a range, or the newest."""

    at: datetime | None = None
    start: datetime | None = None
    end: datetime | None = None
    most_recent: bool = False

    def in_range(self, moment: datetime) -> bool:
        return (self.start is None or moment >= self.start) and (self.end is None or moment <= self.end)


def is_content(status: int | None) -> bool:
    """Could a capture with this status hold the resource? Unknown counts: revisits and TimeMaps do not say."""
    return status is None or status in (200, 203, 226)


def is_document_name(uri: str) -> bool:
    """Is this, by its name, a document of which repositories show an HTML rendering?"""
    return bool(_DOCUMENT.search(_path(uri)))


def is_reduced(candidate: Candidate, known: Iterable[Candidate], *, length: int | None = None) -> bool:
    """Is this capture of an image a thumbnail beside those of other archives? `length` is that of the received bytes.

    Bytes that two archives hold are the site's own, whatever their size."""
    own = length if length is not None else _listed_length(candidate)
    if own is None or not _is_image(candidate):
        return False
    others = [c for c in known if c.archive != candidate.archive and is_content(c.status) and c.media_type not in _HTML]
    empty = length is not None and length < _NO_IMAGE and bool(others)
    small = any(own * _THUMBNAIL < (_listed_length(c) or 0) for c in others)
    return (empty or small) and not (candidate.digest and any(c.digest == candidate.digest for c in others))


def _is_image(candidate: Candidate) -> bool:
    if candidate.media_type.startswith("image/"):
        return candidate.media_type != "image/svg+xml"
    return bool(_IMAGE.search(_path(candidate.uri)))


def _listed_length(candidate: Candidate) -> int | None:
    """The length of a record with content; that of a revisit says nothing of the image."""
    return None if candidate.revisit or not is_content(candidate.status) else candidate.length


def _altered(candidates: Sequence[Candidate]) -> set[Candidate]:
    """What an archive or a server made of the resource, as far as listings say."""
    several = len({c.archive for c in candidates}) > 1
    renderings = {c for c in candidates if c.media_type in _HTML and is_document_name(c.uri)}
    thumbnails = {c for c in candidates if several and is_reduced(c, candidates)}
    return {c for c in candidates if c.altered} | renderings | thumbnails


def _path(uri: str) -> str:
    return uri.partition("#")[0].partition("?")[0]


def in_order(
    candidates: Iterable[Candidate],
    dates: DatePreference,
    *,
    near: datetime | None = None,
    archives: Sequence[str] = (),
) -> list[Candidate]:
    """The captures worth fetching, best first; `near` is the date of the page that embeds the resource."""
    wanted = [c for c in candidates if (is_content(c.status) or c.is_redirect) and dates.in_range(c.captured_at)]
    contents = {c.uri for c in wanted if not c.is_redirect}
    place = {name: index for index, name in enumerate(archives)}
    goal = near or dates.at
    altered = set() if dates.most_recent else _altered(wanted)

    def key(c: Candidate) -> tuple[object, ...]:
        side = c.is_redirect and bool(contents - {c.uri})  # content under another spelling: the redirect only led there
        return (
            c in altered,
            side,
            _distance(c, goal) + (_REDIRECT_HANDICAP if c.is_redirect else timedelta()),
            c.is_redirect,
            place.get(c.archive, len(place)),
            c.captured_at,
            c.archive,
            c.uri,
        )

    return sorted(wanted, key=key)


def resolve_revisits(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Revisits with the status and type of the capture whose bytes they repeat, where the listing has it."""
    known = list(candidates)
    known_by_digest = {c.digest: c for c in known if c.digest and not c.revisit and c.status is not None}
    return [
        replace(
            c, status=known_by_digest[c.digest].status, media_type=c.media_type or known_by_digest[c.digest].media_type
        )
        if c.revisit and c.status is None and c.digest in known_by_digest
        else c
        for c in known
    ]


_END = datetime(9999, 1, 1, tzinfo=UTC)


def _distance(candidate: Candidate, goal: datetime | None) -> timedelta:
    return abs(candidate.captured_at - goal) if goal is not None else _END - candidate.captured_at
