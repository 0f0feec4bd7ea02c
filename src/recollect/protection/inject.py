"""Blocks put into a response while it passes: how headers change, and where in the stream the carrier goes.

Hides: the stream. The carrier has a length that is known before the first byte, and is always inserted, so
Content-Length can be set at once. Only the bytes from the last possible place on are held back, as a rule
`</body></html>`. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from recollect.protection.markup import COMMENT_CLOSE, COMMENT_OPEN, SCRIPT_CLOSE, SCRIPT_OPEN, Scanner, Style, Tag

Headers = list[tuple[str, str]]
_MOST_HELD = 1 << 18
# What describes other bytes than those that are sent.
_DROPPED = frozenset({"content-md5", "digest", "content-digest", "repr-digest", "accept-ranges"})
_ETAG = re.compile(r'(?:W/)?"[^"]*"')


@dataclass(frozen=True, slots=True)
class Carrier:
    """What is inserted: as an element, and as a comment of the same length for places where only that is harmless."""

    element: bytes
    comment: bytes

    def __len__(self) -> int:
        return len(self.element)


def make_carrier(text: str, style: Style, *, is_xml: bool) -> Carrier:
    """The carrier of blocks; in XML always a comment, which is well-formed after the root element too."""
    script = f"{SCRIPT_OPEN}{text}{SCRIPT_CLOSE}"
    comment = f"{COMMENT_OPEN}{text}{COMMENT_CLOSE}"
    length = max(len(script), len(comment))
    padded = f"{COMMENT_OPEN}{text}{' ' * (length - len(comment))}{COMMENT_CLOSE}".encode("ascii")
    if is_xml or style is Style.COMMENT:
        return Carrier(padded, padded)
    spaces = " " * (length - len(script))
    return Carrier(f"{SCRIPT_OPEN}{text}{spaces}{SCRIPT_CLOSE}".encode("ascii"), padded)


def is_fit(method: str, status: int, headers: Headers) -> bool:
    """Is this the response of a page that carries blocks?"""
    fields = {name.lower(): value for name, value in headers}
    content_type = fields.get("content-type", "").lower()
    return (
        method in ("GET", "HEAD")
        and status == 200
        and content_type.partition(";")[0].strip() in ("text/html", "application/xhtml+xml")
        and "utf-16" not in content_type
        and "utf-32" not in content_type
        and fields.get("content-encoding", "identity").lower() in ("", "identity")
        and "content-disposition" not in fields
    )


def is_xml(headers: Headers) -> bool:
    return any(name.lower() == "content-type" and "xhtml" in value.lower() for name, value in headers)


def changed_headers(headers: Headers, grown: int, tag: str) -> Headers:
    """Headers of the page with its carrier: Content-Length and ETag are those of what is sent."""
    changed = []
    for name, value in headers:
        lower = name.lower()
        if lower in _DROPPED:
            continue
        if lower == "content-length" and value.strip().isdigit():
            value = str(int(value) + grown)
        elif lower == "etag":
            value = with_tag(value, tag)
        changed.append((name, value))
    return changed


def with_tag(etag: str, tag: str) -> str:
    """An ETag that changes with the blocks."""
    return f'{etag[:-1]}-{tag}"' if _ETAG.fullmatch(etag.strip()) else etag


def without_tag(value: str, tag: str) -> str:
    """The value of If-None-Match or If-Match as the application knows it.

    An ETag of other blocks than today's stays as it is: the application does not know it and sends the page again.
    """
    return value.replace(f'-{tag}"', '"')


class Injector:
    """Takes a body in pieces and gives it out with the carrier in it."""

    def __init__(self, carrier: Carrier, *, is_xml: bool = False) -> None:
        self._carrier = carrier
        self._scanner = Scanner(is_xml=is_xml)
        self._held = b""
        self._held_at = 0  # offset of the first held byte in the whole body
        self._place: int | None = None  # offset of the last place seen, if it is held
        self._in_body = self._frameset = False
        self._done = False

    def feed(self, piece: bytes) -> bytes:
        """What can be sent now."""
        if self._done:
            return piece
        self._held += piece
        for tag, offset in self._scanner.feed(piece):
            self._meet(tag, offset)
        return self._release()

    def _meet(self, tag: Tag, offset: int) -> None:
        if self._frameset:
            return
        if tag is Tag.BODY:
            self._in_body = True
        elif tag is Tag.FRAMESET and not self._in_body:
            self._frameset, self._place = True, offset  # before it is still the head
        elif tag is Tag.BODY_END or (tag is Tag.HTML_END and self._place is None):
            self._place = offset

    def _release(self) -> bytes:
        """Everything before the place, or before what is not decided yet."""
        if self._frameset and self._place is not None:
            self._done = True
            return self._insert(self._place)
        end = len(self._held) - self._scanner.pending
        if self._place is not None:
            if len(self._held) - (self._place - self._held_at) <= _MOST_HELD:
                end = min(end, self._place - self._held_at)
            else:
                self._place = None  # this amount of text does not follow the end of a body
        out, self._held = self._held[:end], self._held[end:]
        self._held_at += end
        return out

    def _insert(self, place: int) -> bytes:
        at = place - self._held_at
        out = self._held[:at] + self._carrier.element + self._held[at:]
        self._held = b""
        return out

    def finish(self) -> bytes:
        """The rest, with the carrier if it was not sent yet."""
        if self._done:
            return b""
        for tag, offset in self._scanner.feed(b"", final=True):
            self._meet(tag, offset)
        self._done = True
        if self._scanner.is_open:  # a script that is never closed: a comment there changes nothing
            return self._held + self._carrier.comment
        if self._place is None:
            return self._held + self._carrier.element
        return self._insert(self._place)


def injected(pieces: Iterator[bytes], injector: Injector) -> Iterator[bytes]:
    """A body with its carrier, piece by piece; empty pieces are left out."""
    for piece in pieces:
        out = injector.feed(piece)
        if out:
            yield out
    out = injector.finish()
    if out:
        yield out
