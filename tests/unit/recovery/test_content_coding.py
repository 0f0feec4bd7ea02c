"""Which codings are taken off a payload: packed files stay packed, packed pages are unpacked."""

from __future__ import annotations

import gzip

import pytest

from recollect.recovery.decoding import content_coding, decoded

PAGE = b"<html><p>hello" * 20
ONCE = gzip.compress(PAGE, mtime=0)
TWICE = gzip.compress(ONCE, mtime=0)


@pytest.mark.parametrize(
    ("payload", "header", "media_type", "name", "content"),
    [
        (ONCE, "gzip", "text/html", "a.html", PAGE),
        (PAGE, "gzip", "text/html", "a.html", PAGE),  # decoded by the archive, header kept
        (ONCE, "", "text/html", "a.html", PAGE),
        (TWICE, "gzip", "text/html; charset=utf-8", "a.html", PAGE),
        (TWICE, "", "text/css", "a.css", PAGE),
        (TWICE, "gzip, gzip", "text/html", "a.html", PAGE),
        (ONCE, "gzip", "application/x-tar", "a.tar.gz", ONCE),
        (ONCE, "x-gzip", "application/octet-stream", "a.tgz", ONCE),
        (ONCE, "gzip", "application/gzip", "download?id=3", ONCE),
        (TWICE, "gzip", "application/gzip", "a.tar.gz", ONCE),  # packed for the way
        (ONCE, "", "application/gzip", "a.tar.gz", ONCE),
        (ONCE, "", "application/octet-stream", "data.bin", ONCE),
        (b"", "gzip", "text/html", "a.html", b""),
    ],
)
def test_the_codings_of_a_payload(payload: bytes, header: str, media_type: str, name: str, content: bytes) -> None:
    coding = content_coding(header, payload[:65536], media_type, f"http://a.example/{name}")
    assert decoded(payload, coding) == content


def test_a_bomb_in_a_bomb_is_refused() -> None:
    bomb = gzip.compress(gzip.compress(bytes(300_000_000)))
    with pytest.raises(Exception, match="decodes to more"):
        decoded(bomb, "gzip, gzip")
