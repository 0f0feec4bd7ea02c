"""What is found while one TimeMap is read, whatever its kind: mementos, pages, original and TimeGate.

Hides: which date to believe, which TimeMap links lead to more mementos, and whose mementos an anchor makes them.
"""

from __future__ import annotations

import re
from datetime import datetime

from recollect.datetimes import format_http_date, parse_any, parse_timestamp
from recollect.errors import FormatError
from recollect.formats.timemap.links import Link, Problems, resolve, safe_uri
from recollect.formats.timemap.model import MOMENT_OF_DAY, Page, TimeMap, datetime_to_moment, stem_of

_STAMP = re.compile(r"/(\d{14})(?:[a-z]{2}_)?/")
_RFC_1123 = re.compile(r"[A-Z][a-z]{2}, .{11} (?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9] GMT")
_WHOLE_DATE = re.compile(r".*\b(?:GMT|UTC|Z|[+-]\d{4})", re.IGNORECASE)
_LINK_TYPES = ("", "application/link-format", "text/link-format", "text/plain")


class Found:
    """What was found so far in one TimeMap."""

    def __init__(self, base: str, problems: Problems, *, http_dates: bool = True) -> None:
        self.base = base
        self.http_dates = http_dates
        self.problems = problems
        self.original = ""
        self.timegate = ""
        self.moments: list[str] = []
        self.uris: list[str] = []
        self.stems: list[str] = []
        self.related = False
        """Whether any link had a relation type: without one this is not a TimeMap."""
        self.selves = {_bare(base)}
        self.pages: list[Page] = []
        self.of_others: list[tuple[str, str, str]] = []

    def link(self, link: Link) -> None:
        """One link, by its relation types; a link may have several."""
        self.related = self.related or bool(link.rels)
        target = resolve(self.base, link.target)
        if target is None:
            self.problems.add("a target that is not a web address", link.target)
            return
        if "original" in link.rels and not self.original:
            self.original = target
        if "timegate" in link.rels and not self.timegate:
            self.timegate = target
        if "memento" in link.rels:
            date = link.params.get("datetime", "")
            if "datetime" in link.cut and not _WHOLE_DATE.fullmatch(date):
                date = ""
            if safe_uri(link.target) != link.target:
                self.problems.add("characters that have no place in a URI", link.target)
            self.memento(target, date, link.params.get("anchor", ""))
        if "self" in link.rels:
            self.selves.add(_bare(target))
        elif "timemap" in link.rels:
            since, until = self.date(link.params.get("from", "")), self.date(link.params.get("until", ""))
            media_type = link.params.get("type", "").partition(";")[0].strip().lower()
            self.pages.append(Page(target, since, until, media_type))
        if "datetime" in link.params and "memento" not in link.rels:
            self.problems.add("a dated link that is not a memento", f"{link.target} rel={link.params.get('rel', '')!r}")

    def memento(self, uri: str, date: str, anchor: str = "") -> None:
        """A memento, with its date as it was written; the 14 digits in its URI stand in for an unreadable one."""
        moment = self._moment(date) or self._moment_in(uri)
        if not moment:
            return
        if anchor:
            self.of_others.append((anchor, moment, uri))
            return
        self._keep(moment, uri)

    def _keep(self, moment: str, uri: str) -> None:
        self.moments.append(moment)
        self.uris.append(uri)
        self.stems.append(stem_of(moment, uri))

    def _moment(self, date: str) -> str:
        if _RFC_1123.fullmatch(date):
            try:
                return MOMENT_OF_DAY[date[:17]] + date[17:25]
            except FormatError:
                pass  # a wrong weekday, or no day at all
        captured_at = self.date(date)
        return datetime_to_moment(captured_at) if captured_at else ""

    def _moment_in(self, uri: str) -> str:
        stamp = _STAMP.search(uri)
        if stamp is None:
            self.problems.add("a memento without a readable datetime", uri)
            return ""
        self.problems.add("a memento without a readable datetime, taken from its URI", uri)
        return datetime_to_moment(parse_timestamp(stamp[1]))

    def date(self, text: str) -> datetime | None:
        if not text:
            return None
        try:
            moment = parse_any(text)
        except (FormatError, ValueError, OverflowError):
            self.problems.add("an unreadable date", text)
            return None
        if self.http_dates and format_http_date(moment) != text:
            self.problems.add("a date not in the form of RFC 1123", text)
        return moment

    def timemap(self, kind: str) -> TimeMap:
        """All of it, once everything was seen."""
        for anchor, moment, uri in self.of_others:
            resource = resolve(self.base, anchor) or anchor
            if self.original and _loosely(resource) != _loosely(self.original):
                self.problems.add("a memento of another resource (anchor)", anchor)
                continue
            self._keep(moment, uri)
        return TimeMap(
            original=self.original,
            timegate=self.timegate,
            moments=self.moments,
            uris=self.uris,
            stems=self.stems,
            pages=self._other_pages(),
            problems=self.problems.words(),
            missing=self.problems.missing,
            kind=kind,
        )

    def _other_pages(self) -> tuple[Page, ...]:
        """Pages still to be read: not this one, nor it in another format unless link-format is not offered."""
        others: dict[str, Page] = {}
        for page in self.pages:
            if _bare(page.uri) not in self.selves:
                others.setdefault(_bare(page.uri), page)
        linked = tuple(page for page in others.values() if page.media_type in _LINK_TYPES)
        if self.uris or any(page.media_type in _LINK_TYPES for page in self.pages):
            return linked
        return tuple(others.values())[:1]


def _bare(uri: str) -> str:
    """Without scheme: an archive behind a proxy often does not know which one it is reached by."""
    return uri.partition("://")[2]


def _loosely(uri: str) -> str:
    return _bare(uri).lower().removeprefix("www.").rstrip("/")
