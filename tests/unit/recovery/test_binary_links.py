"""Addresses inside of PDF and Flash files are followed; damaged and hostile files have fewer links, and do no harm."""

from __future__ import annotations

import io
import struct
import zlib

import pytest

from recollect.recovery.binarylinks import read_binary

URI = "http://lost.example/menu/film.swf"


def tag(code: int, body: bytes) -> bytes:
    return struct.pack("<HI", code << 6 | 63, len(body)) + body


def get_url(url: bytes) -> bytes:
    body = url + b"\0" + b"_self\0"
    return b"\x83" + struct.pack("<H", len(body)) + body + b"\0"


def film(*tags: bytes, packed: bool = False) -> bytes:
    body = b"\x00" + bytes(4) + b"".join(tags) + b"\0\0"
    head = (b"CWS" if packed else b"FWS") + b"\x06" + struct.pack("<I", len(body) + 8)
    return head + (zlib.compress(body) if packed else body)


def links(content: bytes) -> dict[str, bool]:
    document = read_binary(content, URI)
    return {link.uri: link.guess for link in document.links} if document is not None else {}


@pytest.mark.parametrize("packed", [True, False])
def test_the_addresses_of_actions_in_a_film_are_links_and_strings_are_guesses(packed: bool) -> None:
    sprite = tag(39, bytes(4) + tag(12, get_url(b"../inner.html")))
    code = tag(82, b"\x05/data/list.xml\x00\x10http://other.example/x")
    picture = tag(6, b"http://not.example/in-a-picture.html")
    found = links(film(tag(12, get_url(b"/frogs.html")), sprite, code, picture, packed=packed))
    assert found["http://lost.example/frogs.html"] is False
    assert found["http://lost.example/inner.html"] is False
    assert found["http://lost.example/data/list.xml"] is True
    assert found["http://other.example/x"] is True
    assert not any("not.example" in uri for uri in found)


def test_scripts_in_films_are_not_links() -> None:
    assert links(film(tag(12, get_url(b"javascript:alert(1)") + get_url(b"FSCommand:quit")))) == {}


def test_the_links_of_a_pdf_are_followed() -> None:
    pypdf = pytest.importorskip("pypdf")
    from pypdf.annotations import Link

    writer = pypdf.PdfWriter()
    writer.add_blank_page(100, 100)
    writer.add_annotation(0, Link(rect=(0, 0, 9, 9), url="http://lost.example/paper.html"))
    out = io.BytesIO()
    writer.write(out)
    assert links(out.getvalue()) == {"http://lost.example/paper.html": False}
    assert links(out.getvalue()[:200]) == {}


@pytest.mark.parametrize(
    "content",
    [b"FWS", b"CWS\x06\0\0\0\0junk", b"%PDF-1.4 junk", film(b"\xff" * 50), film(struct.pack("<HI", 63, 2**31)), b"x"],
)
def test_damaged_files_have_no_links(content: bytes) -> None:
    assert links(content) == {}


def test_a_film_that_unpacks_to_much_more_is_read_as_far_as_the_limit() -> None:
    bomb = b"CWS\x06" + struct.pack("<I", 0) + zlib.compress(bytes(80 << 20))
    assert links(bomb) == {}
