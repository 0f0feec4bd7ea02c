"""The validity of a TLS certificate, read from its bytes.

Hides: DER. A certificate that is not trusted is not decoded by `ssl`, and one that expired is the reason to look: the
two dates of X.509 (RFC 5280, section 4.1.2.5) are found by walking over the fields in front of them. Bytes come from
others: lengths are checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_SEQUENCE, _VERSION, _UTC_TIME, _GENERALIZED_TIME = 0x30, 0xA0, 0x17, 0x18


@dataclass(frozen=True, slots=True)
class Certificate:
    """From when until when a certificate is valid."""

    since: datetime
    until: datetime

    @property
    def warn_before(self) -> timedelta:
        """How long before its end a certificate should have been renewed: 14 days; a quarter of a shorter life."""
        return min(timedelta(days=14), (self.until - self.since) / 4)


def read_certificate(content: bytes) -> Certificate | None:
    """The validity of a certificate in DER; None if the bytes are none."""
    try:
        _, certificate, _ = _element(content, 0)
        _, fields, _ = _element(certificate, 0)
        place = 0
        kind, _, after = _element(fields, place)
        if kind == _VERSION:
            place = after
        for _ in range(3):  # serial number, algorithm, issuer
            _, _, place = _element(fields, place)
        kind, validity, _ = _element(fields, place)
        if kind != _SEQUENCE:
            return None
        since_kind, since, place = _element(validity, 0)
        until_kind, until, _ = _element(validity, place)
        return Certificate(_time(since_kind, since), _time(until_kind, until))
    except (IndexError, ValueError):
        return None


def _element(content: bytes, place: int) -> tuple[int, bytes, int]:
    """The type and content of the element at a place, and where the next one begins."""
    kind, size = content[place], content[place + 1]
    start = place + 2
    if size & 0x80:
        count = size & 0x7F
        size = int.from_bytes(content[start : start + count], "big")
        start += count
    if not 0 <= size <= len(content) - start:
        raise ValueError("an element ends early")
    return kind, content[start : start + size], start + size


def _time(kind: int, content: bytes) -> datetime:
    text = content.decode("ascii")
    if kind == _UTC_TIME:
        text = ("19" if int(text[:2]) >= 50 else "20") + text
    elif kind != _GENERALIZED_TIME:
        raise ValueError("not a date")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
