"""What belongs to the site that is being recovered.

Hides: prefixes, hosts and domains over all spellings of a URL (scheme, www, case), and the user's include and exclude
patterns. Pure. The default is Warrick's: everything under the start URL. What a page needs to look right (its embedded
assets) may lie beside the prefix or on another host of the same domain; it is taken along unless that is switched off.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from typing import Any, Literal

from recollect.errors import BadURI, UsageError
from recollect.recovery.canonical import DEFAULT_RULES, Rules, split, visit_key
from recollect.uris.suffixes import registered_name

Extent = Literal["prefix", "host", "subdomains", "page"]
Assets = Literal["scope", "domain", "anywhere"]


@dataclass(frozen=True, slots=True)
class Scope:
    """Where pages may be (`extent`), where their assets may be (`assets`), and patterns over whole URIs."""

    start: tuple[str, ...]
    extent: Extent = "prefix"
    assets: Assets = "domain"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    rules: Rules = DEFAULT_RULES

    def __post_init__(self) -> None:
        if not self.start:
            raise UsageError("nothing to recover", hint="recollect recover http://lost.example/ -o site/")
        for uri in self.start:
            split(uri)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The visit keys under which everything is in scope (for `subdomains`, the hosts)."""
        return tuple(_prefix(uri, self) for uri in self.start)

    def holds(self, uri: str, *, embedded: bool = False) -> bool:
        """Does this URI belong to the recovery? An embedded asset may be further away than a page."""
        try:
            key = visit_key(uri, self.rules)
        except BadURI:
            return False
        inside = self._inside(key) or (embedded and self._asset_inside(key))
        return inside and self._wanted(uri, key)

    def is_home(self, uri: str) -> bool:
        """Is this the front page (of the start, or of the whole host)?"""
        key = visit_key(uri, self.rules)
        return key in {visit_key(start, self.rules) for start in self.start} or key.endswith(f"://{_host_port(key)}/")

    def _inside(self, key: str) -> bool:
        if self.extent == "page":
            return key in {visit_key(uri, self.rules) for uri in self.start}
        if self.extent == "subdomains":
            host = _host(key)
            return any(host == own or host.endswith("." + own) for own in self.prefixes)
        return any(_under(prefix, key) for prefix in self.prefixes)

    def _asset_inside(self, key: str) -> bool:
        if self.assets == "anywhere":
            return True
        if self.assets == "scope":
            return False
        domain = registered_domain(_host(key))
        return any(domain == registered_domain(_host(visit_key(uri, self.rules))) for uri in self.start)

    def _wanted(self, uri: str, key: str) -> bool:
        if any(_matches(pattern, uri, key) for pattern in self.exclude):
            return False
        # The start is always wanted: without it there would be nothing to follow.
        if not self.include or key in {visit_key(start, self.rules) for start in self.start}:
            return True
        return any(_matches(pattern, uri, key) for pattern in self.include)

    def to_json(self) -> dict[str, Any]:
        return {
            "start": list(self.start),
            "extent": self.extent,
            "assets": self.assets,
            "include": list(self.include),
            "exclude": list(self.exclude),
        }

    @staticmethod
    def from_json(value: dict[str, Any], rules: Rules) -> Scope:
        return Scope(
            start=tuple(value["start"]),
            extent=value["extent"],
            assets=value["assets"],
            include=tuple(value["include"]),
            exclude=tuple(value["exclude"]),
            rules=rules,
        )


def _prefix(uri: str, scope: Scope) -> str:
    if scope.extent == "page":
        return visit_key(uri, scope.rules)
    key = visit_key(uri, scope.rules).partition("?")[0]
    if scope.extent == "subdomains":
        return _host(key)
    if scope.extent == "host":
        return key[: key.index("/", key.index("://") + 3) + 1]
    last = key.rpartition("/")[2]
    # `/dir/page.html` stands for its folder; `/~joe` for the folder of that name.
    return key[: len(key) - len(last)] if "." in last else key


def _under(prefix: str, key: str) -> bool:
    if not key.startswith(prefix):
        return prefix.endswith("/") and key == prefix[:-1]
    return prefix.endswith("/") or len(key) == len(prefix) or key[len(prefix)] in "/?"


def _host_port(key: str) -> str:
    return key.partition("://")[2].partition("/")[0]


def _host(key: str) -> str:
    return re.sub(r":\d+$", "", _host_port(key))


@lru_cache(maxsize=4096)
def registered_domain(host: str) -> str:
    """`example.co.uk` of `cdn.example.co.uk`; the host itself for an IP address or a bare suffix."""
    if re.fullmatch(r"[\d.]+|\[.*\]|localhost", host):
        return host
    return registered_name(host) or host


@lru_cache(maxsize=512)
def _pattern(pattern: str) -> re.Pattern[str]:
    if pattern.startswith("re:"):
        try:
            return re.compile(pattern[3:])
        except re.error as error:
            raise UsageError("not a regular expression", where=pattern[3:], why=str(error)) from error
    return re.compile(translate(pattern if any(c in pattern for c in "*?[") else f"*{pattern}*"))


def _matches(pattern: str, uri: str, key: str) -> bool:
    """A pattern is a glob over the URI (`*/private/*`), a plain part of it (`/private/`), or `re:` and a regex."""
    compiled = _pattern(pattern)
    if pattern.startswith("re:"):
        return bool(compiled.search(uri))
    return bool(compiled.match(uri) or compiled.match(key))


def check_patterns(patterns: Iterable[str]) -> Sequence[str]:
    """Compile patterns early, so that a bad one is reported before any request."""
    result = list(patterns)
    for pattern in result:
        _pattern(pattern)
    return result
