"""PDF files lose their automatic actions, also those in packed objects, and every offset in them stays right."""

from __future__ import annotations

import io
import zlib

import pypdf
import pytest

from recollect.recovery.active import quiet_pdf

PAGE = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/AA<</O<</S/JavaScript/JS(app.launchURL('http://o.test'))>>>>>>"
CATALOG = b"<</Type/Catalog/Pages 2 0 R/OpenAction<</S/URI/URI(http://o.test)>>>>"
PAGES = b"<</Type/Pages/Kids[3 0 R]/Count 1>>"


def packed_pdf(level: int = 6, line: bytes = b"\n") -> bytes:
    """A file whose objects are in one object stream, with a stream for its table (PDF 1.5)."""
    objects = [CATALOG, PAGES, PAGE]
    offsets, content = [], b""
    for one in objects:
        offsets.append(len(content))
        content += one + b" "
    head = b" ".join(b"%d %d" % (number, offset) for number, offset in enumerate(offsets, 1)) + b" "
    stream = zlib.compress(head + content, level)
    start = b"%PDF-1.5\n"
    first = b"4 0 obj<</Type/ObjStm/N 3/First %d/Filter/FlateDecode/Length %d>>stream" % (len(head), len(stream))
    first += line + stream + b"\nendstream endobj\n"
    rows = [(0, 0, 65535)] + [(2, 4, place) for place in range(3)] + [(1, len(start), 0), (1, len(start + first), 0)]
    table = b"".join(bytes([kind]) + a.to_bytes(3, "big") + b.to_bytes(2, "big") for kind, a, b in rows)
    last = b"5 0 obj<</Type/XRef/Size 6/W[1 3 2]/Root 1 0 R/Length %d>>stream\n" % len(table)
    return start + first + last + table + b"\nendstream endobj\nstartxref\n%d\n%%%%EOF" % len(start + first)


@pytest.mark.parametrize("level", [1, 6, 9])
@pytest.mark.parametrize("line", [b"\n", b"\r\n"])
def test_actions_in_packed_objects_are_gone(level: int, line: bytes) -> None:
    before = packed_pdf(level, line)
    after = quiet_pdf(before)
    assert len(after) == len(before) and after != before
    for content, expected in ((before, True), (after, False)):
        reader = pypdf.PdfReader(io.BytesIO(content))
        [page] = reader.pages
        assert ("/OpenAction" in reader.trailer["/Root"]) is expected
        assert ("/AA" in page) is expected
        assert page.mediabox.width == 99


def test_a_file_without_actions_keeps_its_bytes() -> None:
    for content in (quiet_pdf(packed_pdf()), b"%PDF-1.4 /ObjStm stream\nnot packed endstream", b"/ObjStm stream", b""):
        assert quiet_pdf(content) == content


def test_packed_objects_that_unpack_to_much_are_left() -> None:
    bomb = b"/ObjStm>>stream\n" + zlib.compress(b"/OpenAction" + bytes(100 << 20), 9) + b"endstream"
    assert quiet_pdf(bomb) == bomb
