"""The links of one document as they are collected, and what was read of it: values shared by all readers.

Hides: relative references, and what to do when one address is met twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from recollect.recovery.canonical import resolve

MAX_LINKS = 50_000
LinkKind = Literal["page", "asset"]


@dataclass(frozen=True, slots=True)
class Link:
    """An absolute URI, as the document means it."""

    uri: str
    kind: LinkKind
    embedded: bool = False
    guess: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """What was read of one document; `form` is html, css, xml, svg, script, manifest, robots or urls."""

    form: str
    links: tuple[Link, ...] = ()
    title: str = ""
    text: str = ""
    refresh: str | None = None
    has_password: bool = False
    marks: tuple[str, ...] = ()  # classes and ids, in order of first sight: the structure of a page


class Collector:
    """Links in order of first sight; the stronger meaning wins (page over asset, certain over guess)."""

    def __init__(self, base: str, charset: str) -> None:
        self.base = base
        self._charset = charset
        self._links: dict[str, Link] = {}

    def add(self, reference: str | None, kind: LinkKind, *, embedded: bool = False, guess: bool = False) -> None:
        if not reference or len(reference) > 4096 or len(self._links) >= MAX_LINKS:
            return
        uri = resolve(self.base, reference)
        if uri is None:
            return
        uri = encode_uri(uri, self._charset)
        old = self._links.get(uri)
        if old is None:
            self._links[uri] = Link(uri, kind, embedded, guess)
        elif old.guess or (kind == "page" and old.kind == "asset" and not guess):
            self._links[uri] = Link(uri, kind, embedded or old.embedded, guess and old.guess)
        elif embedded and not old.embedded:
            self._links[uri] = Link(uri, old.kind, True, old.guess)

    def links(self) -> tuple[Link, ...]:
        return tuple(self._links.values())


def encode_uri(uri: str, charset: str = "utf-8") -> str:
    """Non-ASCII as browsers send it: the path in UTF-8, the query in the document's charset."""
    if uri.isascii():
        return uri
    path, mark, query = uri.partition("?")
    try:
        encoded = query.encode(charset)
    except (UnicodeEncodeError, LookupError):
        encoded = query.encode("utf-8", "surrogatepass")
    safe = "!#$%&'()*+,/:;=?@[]~"
    return quote(path.encode("utf-8", "surrogatepass"), safe=safe) + mark + quote(encoded, safe=safe)
