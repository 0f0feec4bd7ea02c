"""Whatever bytes a line is made of, the compiled reader and the careful parser make the same of it."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import FormatError
from recollect.formats.cdx import HEADER, Capture, Layout, NotACapture
from recollect.formats.detect import Kind, Source
from recollect.profiles.indexes.batch import Batch
from recollect.profiles.indexes.scan import ScanOptions, parser_of, scan
from recollect.uris import uri_key

CDXJ = [
    b'com,x)/a?q 20140103030321 {"url": "http://x.com/a", "mime": "text/html", "status": "200", "digest": "A"}',
    b'com,x)/a 20140103030321 {"url": "http://x.com/a", "mime": "text/html", "status": "200"}',
    b'com,x:80)/a/b/ 20140103030321 {"locator": "urn:ipfs/x", "mime_type": "a/b", "status_code": "301"}',
    b'4,3,2,1)/ 20140103030321 {"original":"https://x.com/","mimetype":"c/d","statuscode":404,"length":12}',
    b'com,x)/ 20140103030321 {"status": "-", "mime": "warc/revisit", "url": "http://x.com/"}',
    b'{"urlkey": "com,x)/j", "timestamp": "20140103030321", "url": "http://x.com/j"}',
    b'dns:x.com 20140103030321 {"url": "dns:x.com"}',
    b'(com,x,)/a 2014-01-03T03:03:21Z response {"uri":"http://x.com/a","sha":"D","hsc":"200","mct":"text/html"}',
    b'com,x)/a 20140103030321 revisit {"url":"http://x.com/a","hsc":200,"mct":"text/html"}',
    b'com,x)/a?__wb_method=post&q=1 20140103030321 {"url": "http://x.com/a", "mime": "text/html", "status": "200"}',
    b'com,x)/a 20140103030321 {"url": "http://x.com/a?b&__wb_method=PUT", "mime": "text/html", "status": "200"}',
    b'com,x)/a&__wb_method=post 20140103030321 {"url": "http://x.com/a", "mime": "text/html", "status": "2000"}',
    b"!meta {}",
    b"",
]
CDX = [
    b"com,x)/a 20140103030321 http://x.com/a text/html 200 D - - 1 2 f",
    b"com,x)/a/?q 20140103030321 https://x.com/a warc/revisit - D - - 1 2 f",
    b"x.com/b 20140103030321 http://x.com/b text/html 404 D - - 1 2 f",
    b"1.2.3.4)/ 20140103030321 http://1.2.3.4/ text/html 200 D - 2 f",
    b"com,X)/a?__wb_method=post 20140103030321 http://x.com/a text/html 200 D - - 1 2 f",
    b"com,x)/a?q=1&__wb_method=get 20140103030321 http://x.com/a text/html 20o D - - 1 2 f",
    b"com,x)/a 20140103030321 http://x.com/a?__WB_Method=Post text/html 0 D - - 1 2 f",
    b"com,x,www) 20070904155130 dns:www.x.com text/dns 200 D - - 1 2 f",
    b" CDX N b a m s k r M S V g",
]
SURTS = [
    b"com,x)/a",
    b"com,x)/a?b",
    b"http://www.x.com/A",
    b"1.2.3.4)/",
    b"com,X)/*",
    b"com,x)/a?__wb_method=post&__wb_post_data=x",
    b"word",
    b"",
    b"com,x)",
    b"localhost)/",
]
URLS = [
    b"http://www.x.com/A/b.html?q=1&B=2&a",
    b"https://x.com:443/a/?sid=0123456789abcdef0123456789abcdef",
    b"http://x.com:8080/a/../b//c#frag",
    b"https://a-b.co.uk",
    b"http://x.com/(a)/b%20c?d=(e)%26",
    b"http://1.2.3.4/x?a&a=&a=1",
    b"http://www12.www.x.org/?",
    b"http://x.com/a?__wb_method=POST&b=1",
    b"x.com/a",
    b"com,x)/a",
    b"dns:x.com",
    b"",
]
NOISE = st.sampled_from([bytes((byte,)) for byte in b' \t\r"\\{}:,)/?*#AZaz09-.[]\x00\x7f\xc3\xff'])


@st.composite
def texts(draw: st.DrawFn, base: list[bytes]) -> list[bytes]:
    lines = []
    for line in draw(st.lists(st.sampled_from(base), min_size=1, max_size=12)):
        for _ in range(draw(st.integers(0, 3))):
            at = draw(st.integers(0, len(line)))
            line = line[:at] + draw(NOISE) * draw(st.integers(0, 2)) + line[at + draw(st.integers(0, 2)) :]
        lines.append(line)
    return lines


Seen = Counter[tuple[bytes, bytes, int, int, str | None]]


def carefully(lines: list[bytes], source: Source) -> tuple[Seen, Counter[str], int]:
    parser = parser_of(source, False)
    seen: Seen = Counter()
    left_out: Counter[str] = Counter()
    bad = 0
    for line in lines:
        try:
            capture: Capture = parser(line.decode("utf-8", "surrogateescape").rstrip("\r\n"))
        except NotACapture as other:
            left_out[other.kind] += other.kind != HEADER
        except FormatError:
            bad += 1
        else:
            bad += bool(capture.flaw)
            time, status = int(capture.timestamp or 0), capture.status or 0
            seen[uri_key(capture.surt), capture.surt, time, status, capture.media_type] += 1
    return seen, +left_out, bad


def compiled(text: bytes, source: Source, piece: int) -> tuple[Seen, Counter[str], int]:
    seen: Seen = Counter()

    def work(batch: Batch) -> None:
        for line in range(len(batch.run_of)):
            if batch.alive[line]:
                run = int(batch.run_of[line])
                media = batch.media_types[int(batch.media[line])]
                seen[batch.key(run), batch.surt(run), int(batch.times[line]), int(batch.statuses[line]), media] += 1

    left_out: Counter[str] = Counter()
    bad = 0
    for found in scan([source], work, ScanOptions(1, piece)):
        left_out.update(found.left_out)
        bad += len(found.problems)
    return seen, +left_out, bad


@pytest.mark.parametrize(("kind", "base"), [(Kind.CDXJ, CDXJ), (Kind.CDX, CDX), (Kind.SURTS, SURTS), (Kind.URLS, URLS)])
def test_both_readers_agree(kind: Kind, base: list[bytes]) -> None:
    @given(texts(base), st.sampled_from([40, 1 << 20]))
    def agree(lines: list[bytes], piece: int) -> None:
        text = b"".join(line + b"\n" for line in lines)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "index")
            file.write_bytes(text)
            source = Source(str(file), kind, size=len(text), layout=Layout())
            assert compiled(text, source, piece) == carefully(lines, source)

    agree()
