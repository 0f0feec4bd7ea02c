"""The scope of a map: which requests it can answer with "no".

Hides: the entries of `!meta` that limit a map, and what an address tells of a resource. A map answers "yes" for what it
lists. "No" is true only within its scope; outside of it the answer is unknown, and `Limit` says why.

    {"filters": {"media_type": ["text/html"]}}    captures of these media types were profiled; so also `from`, `to`
                                                  (dates), `exclude` (file names), `host`, `where` (an expression)
    {"filters": {"status": ["200"]}}              a definition of a holding, not a limit: an archive's 404s do not count
    {"updated_at": "2026-03-01T00:00:00Z"}        complete up to this moment (without it: up to the end of `span`)
    {"scope": "voids"}, {"scope": "sample"}       absences only, or a sample: a key that it lacks is unknown
    {"scopes": [{...}, {...}]}                    a merged map: says no only where all of these do

What is known of a request decides. Its media type is the one that the client names, else that of the address: by the
extension, and an address without one is a page. Where an extension stands for several media types, all of them must
have been profiled. A filter of a name that is not listed here limits the map everywhere.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from recollect.datetimes import format_day, format_iso, format_timestamp, parse_any, parse_timestamp
from recollect.errors import FormatError, RecollectError
from recollect.formats.ukvs import Header
from recollect.formats.ukvs.periods import Period
from recollect.maps.columnquery import Conditions
from recollect.maps.mediatypes import PAGE, media_types_of
from recollect.uris import is_surt

FILTERS = ("status", "media_type", "from", "to", "exclude", "host", "where")
_OTHER_SCHEME = re.compile(r"(?!https?:)[a-z][a-z0-9+.-]*:(?://|(?=[^\d/]))", re.IGNORECASE)


class LimitKind(StrEnum):
    """Why a map does not answer a request."""

    MEDIA_TYPE = "media-type"
    DATE = "date"
    NEWER = "newer"
    """The request is about a time after the moment up to which the map is complete."""
    EXCLUDED = "excluded-name"
    HOST = "host"
    WHERE = "where"
    STATUS = "status"
    VOIDS = "voids"
    SAMPLE = "sample"
    SCHEME = "scheme"
    UNREAD = "unread"
    """The filters of the map cannot be read, or have names that are not known here."""


class Limit(NamedTuple):
    """The limit of a map that a request lies beyond, and its value in the map."""

    kind: LimitKind
    value: str = ""

    def __str__(self) -> str:
        return _WORDS[self.kind].format(self.value)


_WORDS = {
    LimitKind.MEDIA_TYPE: "the map lists only {}",
    LimitKind.DATE: "the map lists only captures {}",
    LimitKind.NEWER: "the map is complete up to {}",
    LimitKind.EXCLUDED: "the map leaves out {}",
    LimitKind.HOST: "the map lists only the hosts {}",
    LimitKind.WHERE: "the map lists only captures where {}",
    LimitKind.STATUS: "the map lists only captures with status {}",
    LimitKind.VOIDS: "the map lists absences only",
    LimitKind.SAMPLE: "the map is of a sample",
    LimitKind.SCHEME: "the map lists only http and https",
    LimitKind.UNREAD: "the filters of the map are not known here: {}",
}


class ScopeKind(StrEnum):
    """The lines of a map."""

    HOLDINGS = "holdings"
    VOIDS = "voids"
    SAMPLE = "sample"


@dataclass(frozen=True, slots=True)
class Query:
    """What is known of a request besides its URI: the time it is about, and the status and media type it names.

    A filter by status is a definition of what counts as held, as a request without a status does not ask for an
    archive's 404s; with `any_status` it is a limit as any other filter.
    """

    at: Period | None = None
    status: str = ""
    media_type: str = ""
    any_status: bool = False
    conditions: Conditions = ()
    """What must be true of the captures themselves, in maps that divide their counts by it (`columnquery`)."""


ANY = Query()


@dataclass(frozen=True, slots=True)
class Selection:
    """Which captures a map is made of; empty is all. `since` and `until` are 14 digits, both inclusive."""

    statuses: tuple[str, ...] = ()
    media_types: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    exclude: tuple[str, ...] = ()
    where: str = ""

    def __bool__(self) -> bool:
        return self != Selection()

    def as_meta(self) -> dict[str, Any]:
        """The filters as they stand in a map's `!meta`."""
        named = {
            "status": list(self.statuses),
            "media_type": list(self.media_types),
            "from": self.since,
            "to": self.until,
            "exclude": list(self.exclude),
            "where": self.where,
        }
        return {name: value for name, value in named.items() if value}


@dataclass(frozen=True)
class Scope:
    """The scope of a map; see the module. `parts` are the scopes of the maps that were merged, if they differ."""

    kind: ScopeKind = ScopeKind.HOLDINGS
    policy: str = "HxPx"
    filters: Selection = Selection()
    hosts: tuple[str, ...] = ()
    unread: str = ""
    """Filters that are not known here."""
    span: tuple[str, str] | None = None
    """The first and the last capture, as 14 digits."""
    complete_until: datetime | None = None
    all_schemes: bool = False
    parts: tuple[Scope, ...] = field(default=())

    @classmethod
    def of(cls, header: Header) -> Scope:
        """The scope that the header of a map states."""
        return cls.from_meta(header.meta, header.policy)

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any], policy: str = "HxPx") -> Scope:
        """The scope of a `!meta`, of ours or of another maker; what cannot be read limits the map everywhere."""
        filters, hosts, unread = _filters(meta.get("filters"))
        stated = meta.get("scope")
        kind = ScopeKind(stated) if stated in ("voids", "sample") else ScopeKind.HOLDINGS
        listed = meta.get("scopes")
        several = listed if isinstance(listed, list) else []
        parts = tuple(cls.from_meta(one, policy) for one in several if isinstance(one, dict))
        if listed and (not several or len(parts) != len(several)):
            unread = unread or "scopes"
        span = _span(meta.get("span"))
        until = _moment(meta.get("updated_at")) or (parse_timestamp(span[1]) if span else None)
        schemes = bool(meta.get("all_schemes"))
        return cls(kind, policy, filters, hosts, unread, span, until, schemes, parts)

    def as_meta(self) -> dict[str, Any]:
        """The entries of `!meta` that state this scope; `policy` and `span` are entries of their own."""
        meta: dict[str, Any] = {}
        if self.kind is not ScopeKind.HOLDINGS:
            meta["scope"] = self.kind.value
        filters = self.filters.as_meta() | ({"host": list(self.hosts)} if self.hosts else {})
        filters |= {name: True for name in self.unread.split(", ") if name and name not in FILTERS}
        if filters:
            meta["filters"] = filters
        if self.complete_until is not None:
            meta["updated_at"] = format_iso(self.complete_until)
        if self.all_schemes:
            meta["all_schemes"] = True
        if self.parts:
            meta["scopes"] = [part.as_meta() for part in self.parts]
        return meta

    @cached_property
    def is_complete(self) -> bool:
        """Whether a key that the map lacks is absent, as far as the scope goes."""
        return self.kind is ScopeKind.HOLDINGS

    @cached_property
    def has_limits(self) -> bool:
        """Whether there are requests, of nothing but a URI, that a filter keeps the map from answering."""
        own = replace(self.filters, statuses=())
        return bool(own or self.hosts or self.unread or any(part.has_limits for part in self.parts))

    def definition(self) -> str:
        """The statuses that count as held, as text; empty if every capture counts."""
        statuses = dict.fromkeys(status for scope in (self, *self.parts) for status in scope.filters.statuses)
        return f"status {', '.join(statuses)} only" if statuses else ""

    def extent(self) -> str:
        """How far a "no" goes, as text: what counts as held, and the moment up to which the map is complete."""
        until = "" if self.complete_until is None else f"as of {self.complete_until:%Y-%m-%d}"
        return ", ".join(filter(None, (self.definition(), until)))

    def limit(self, uri: str, query: Query = ANY) -> Limit | None:
        """Why the map cannot answer "no" for a request; None if it can."""
        own = self._own_limit(uri, query)
        if own is not None:
            return own
        return next(filter(None, (part.limit(uri, query) for part in self.parts)), None)

    def _own_limit(self, uri: str, query: Query) -> Limit | None:
        if self.unread:
            return Limit(LimitKind.UNREAD, self.unread)
        if not self.all_schemes and _OTHER_SCHEME.match(uri) and not is_surt(uri):
            return Limit(LimitKind.SCHEME)
        chosen = self.filters
        beyond = not _accepts_status(chosen.statuses, query.status) if query.status else query.any_status
        if chosen.statuses and beyond:
            return Limit(LimitKind.STATUS, ", ".join(chosen.statuses))
        if chosen.where:
            return Limit(LimitKind.WHERE, chosen.where)
        if chosen.media_types and not _accepts_media_type(chosen.media_types, uri, query.media_type):
            return Limit(LimitKind.MEDIA_TYPE, ", ".join(chosen.media_types))
        if chosen.exclude and _last_segment(uri) in chosen.exclude:
            return Limit(LimitKind.EXCLUDED, ", ".join(chosen.exclude))
        if self.hosts and not _accepts_host(self.hosts, uri):
            return Limit(LimitKind.HOST, ", ".join(self.hosts))
        return self._date_limit(query.at)

    def _date_limit(self, at: Period | None) -> Limit | None:
        since, until = self.filters.since, self.filters.until
        first, last = ("", "") if at is None else (_real(at.first), _real(at.last))
        if (since or until) and (not last or first < since or (until and last > until)):
            words = (f"from {format_day(since)}" if since else "", f"to {format_day(until)}" if until else "")
            return Limit(LimitKind.DATE, " ".join(filter(None, words)))
        if self.complete_until is not None and last > (complete := format_timestamp(self.complete_until)):
            return Limit(LimitKind.NEWER, format_day(complete))
        return None


def _real(digits: str) -> str:
    """The nearest real moment to an end of a period, such as 20140000000000."""
    return format_timestamp(parse_timestamp(digits))


def joined(scopes: Sequence[Scope]) -> Scope:
    """The scope of a map merged of maps with these: the same where they agree, else one that has all of them as parts.

    It is complete up to the earliest of their moments, as a key that the oldest lacks may be held since.
    """
    first = scopes[0]
    moments = [scope.complete_until for scope in scopes]
    until = min((moment for moment in moments if moment is not None), default=None) if all(moments) else None
    kind = first.kind if all(scope.kind is first.kind for scope in scopes) else ScopeKind.HOLDINGS
    schemes = all(scope.all_schemes for scope in scopes)
    bare = [replace(scope, kind=kind, span=None, complete_until=None, all_schemes=schemes) for scope in scopes]
    if all(scope == bare[0] for scope in bare):
        return replace(bare[0], complete_until=until)
    flat = [part for scope in bare for part in (scope.parts or (scope,))]
    parts = tuple(replace(part, all_schemes=schemes) for part in flat)
    return Scope(kind, first.policy, complete_until=until, all_schemes=schemes, parts=tuple(dict.fromkeys(parts)))


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple)


def _filters(stated: Any) -> tuple[Selection, tuple[str, ...], str]:
    """The filters of a `!meta`, and the names of those that cannot be read."""
    if not stated:
        return Selection(), (), ""
    if not isinstance(stated, dict):
        return Selection(), (), str(stated)[:80]
    unread = [name for name in stated if name not in FILTERS]
    lists: dict[str, tuple[str, ...]] = {}
    for name in ("status", "media_type", "exclude", "host"):
        value = stated.get(name, ())
        items = (value,) if isinstance(value, str | int) else value if _is_list(value) else (None,)
        if any(not isinstance(item, str | int) for item in items):
            unread.append(name)
            items = ()
        lists[name] = tuple(str(item).strip().lower() for item in items)
    since, until = (_digits(stated.get(name), unread, name, end=name == "to") for name in ("from", "to"))
    where = stated.get("where", "")
    chosen = Selection(
        lists["status"], lists["media_type"], since, until, lists["exclude"], str(where) if where else ""
    )
    return chosen, lists["host"], ", ".join(unread)


def _digits(value: Any, unread: list[str], name: str, *, end: bool) -> str:
    if not value:
        return ""
    try:
        return format_timestamp(parse_timestamp(re.sub(r"[^\d]", "", str(value)), end=end))
    except (RecollectError, ValueError):
        unread.append(name)
        return ""


def _span(stated: Any) -> tuple[str, str] | None:
    if not isinstance(stated, dict):
        return None
    first, last = (str(stated.get(name, "")) for name in ("from", "to"))
    try:
        parse_timestamp(first), parse_timestamp(last)
    except FormatError:
        return None
    return first, last


def _moment(stated: Any) -> datetime | None:
    if not isinstance(stated, str | int) or not stated:
        return None
    try:
        return parse_any(str(stated))
    except (RecollectError, ValueError, OverflowError):
        return None


def _accepts_status(patterns: Iterable[str], named: str) -> bool:
    """Whether every status that a client names (`404`, `2xx`) passes a filter."""
    wanted = named.lower().ljust(3, "x")
    pairs = (zip(one.lower().ljust(3, "x"), wanted, strict=False) for one in patterns)
    return any(all(mine in "x?*" or mine == theirs for mine, theirs in one) for one in pairs)


def _accepts_media_type(patterns: tuple[str, ...], uri: str, named: str) -> bool:
    candidates = (named.lower(),) if named else media_types_of(uri)
    if candidates == PAGE:  # a page is text/html; other types of pages are too rare to make maps of pages useless
        return _matches(patterns, PAGE[0])
    return bool(candidates) and all(_matches(patterns, one) for one in candidates)


@lru_cache(maxsize=1 << 12)
def _matches(patterns: tuple[str, ...], value: str) -> bool:
    return any(fnmatch.fnmatchcase(value, pattern) for pattern in patterns)


def _last_segment(uri: str) -> str:
    """The last path segment, as a key spells it."""
    path = uri.partition("?")[0].partition("#")[0].rstrip("/").lower()
    return path.rpartition("/")[2]


def _accepts_host(patterns: tuple[str, ...], uri: str) -> bool:
    if is_surt(uri):
        labels = uri.rpartition("(")[2] if uri.startswith(("http", "(")) else uri
        host = ".".join(reversed(labels.partition(")")[0].partition(":")[0].split(",")))
    else:
        host = urlsplit(uri if "//" in uri else f"//{uri}").hostname or ""
    bare = host.lower().removeprefix("www.")
    return _matches(patterns, host.lower()) or _matches(patterns, bare)
