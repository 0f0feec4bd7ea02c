# ruff: noqa: E501
"""Parsers of foreign bytes in recovery, watching, protection and the desk, beside those of `parsers`."""

from __future__ import annotations

import base64
import contextlib
import io
import itertools
import struct
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

Read = Callable[[bytes], object]
_NUMBERS = itertools.count()


def _without_scripts(data: bytes) -> object:
    from recollect.recovery.noscript import without_scripts

    return without_scripts(data, "text/html")


def _cleaned(data: bytes) -> object:
    from recollect.recovery.active import clean_xml, quiet_pdf

    return clean_xml(data, "http://x.com/", "text/xml", lambda _uri: None, lambda _uri, _use: None), quiet_pdf(data)


def _markdown(data: bytes) -> object:
    from recollect.recovery.markdown import page_markdown
    from recollect.recovery.store import Recovered

    now = datetime(2020, 1, 1, tzinfo=UTC)
    page = Recovered(
        "k", "http://x.com/", now, "a", "http://a/http://x.com/", 200, (), "text/html", None, "", "", 0, "", now
    )
    return page_markdown(page, data, lambda _uri: None)


def _outside(data: bytes) -> object:
    from recollect.watch.outside import outside_links

    return outside_links(data, "http://x.com/", lambda uri: uri[:30])


def _host_page(data: bytes) -> object:
    from recollect.recovery.hostpages import host_page
    from recollect.recovery.links import read_document

    return host_page(read_document(data, "http://x.com/", "text/html", "utf-8"), "http://x.com/")


def _sketched(data: bytes) -> object:
    from recollect.recovery.fingerprint import page_of
    from recollect.recovery.links import read_document
    from recollect.recovery.similar import sketch_of

    document = read_document(data, "http://x.com/", "text/html", "utf-8")
    return (page_of(document, "http://x.com/"), sketch_of(document, "http://x.com/")) if document is not None else None


def _typed(data: bytes) -> object:
    from recollect.desk.addresses import read_date, understand

    text = data.decode("utf-8", "replace")
    return understand(text), read_date(text), read_date(text, month_first=True)


def _certificate(data: bytes) -> object:
    from recollect.archives.certificates import read_certificate

    return read_certificate(data)


def _names(data: bytes) -> object:
    from recollect.archives.names import BadDnsAnswer, read_answer

    try:
        return read_answer(b"\0\1\x81\x80\0\1\0\xff\0\0\0\0\1x\3com\0\0\2\0\1" + data, "x.com", 1)
    except BadDnsAnswer:
        return None


def _rdap(data: bytes) -> object:
    from recollect.watch.registration import parse_rdap

    return parse_rdap(data), parse_rdap(b'{"objectClassName": "domain", "events": [' + data + b"]}")


def _source(data: bytes) -> object:
    from recollect.errors import RecollectError
    from recollect.sources.recognise import open_source, recognise

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{next(_NUMBERS)}"
        path.write_bytes(data)
        if recognise(path, "http://x.com/") is None:
            return None
        source = open_source(path, "http://x.com/")
        try:
            captures = list(source.captures(lambda _uri: True, lambda _problem: None))
            for capture in captures[:20]:
                with contextlib.suppress(RecollectError):
                    source.read(capture.place)
            return len(captures)
        finally:
            source.close()


def _caches(data: bytes) -> object:
    """Caches of browsers: an entry of Chromium's Simple Cache, its block files, and an entry of Firefox."""
    from recollect.errors import RecollectError
    from recollect.sources.recognise import open_source

    found = 0
    files: list[dict[str, bytes]] = [
        {"index": b"", "0123456789abcdef_0": data},
        {"index": bytes.fromhex("c3ca03c1") + bytes(364) + data, "data_0": bytes.fromhex("c3ca04c1"), "data_1": bytes(8192) + data},
        {"cache2/entries/" + "0A" * 20: data},
    ]  # fmt: skip
    for layout in files:
        with tempfile.TemporaryDirectory() as folder:
            for name, content in layout.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            with contextlib.suppress(RecollectError):
                source = open_source(Path(folder), "http://x.com/")
                for capture in list(source.captures(lambda _uri: True, lambda _problem: None))[:20]:
                    found += 1
                    with contextlib.suppress(RecollectError):
                        source.read(capture.place)
                source.close()
    return found


def _index(data: bytes) -> object:
    from recollect.sources.wacz import read_index

    return sum(1 for _ in read_index(io.BytesIO(data), "index", lambda _problem: None))


def _packages(data: bytes) -> object:
    from recollect.protection.secrets import scan_stream

    return list(scan_stream("a.php", io.BytesIO(data)))


_GZIP = base64.b64decode("H4sIAAAAAAAC/0sEAEPt6LcBAAAA")
_SIMPLE = struct.pack("<QIIII", 0xFCFB6D1BA7725C30, 5, 13, 0, 0) + b"http://x.com/" + b"<p>body"
_SIMPLE += (
    struct.pack("<QIIII", 0xF4FA6F45970D41D8, 0, 0, 7, 0)
    + bytes(28)
    + struct.pack("<I", 21)
    + b"HTTP/1.1 200 OK\0a: b\0\0"
)
_SIMPLE += struct.pack("<QIIII", 0xF4FA6F45970D41D8, 0, 0, 54, 0)
_FIREFOX = (
    b"<p>body"
    + bytes(6)
    + struct.pack(">IIIIIII", 3, 1, 1500000000, 1500000000, 0, 0, 14)
    + bytes(4)
    + b":http://x.com/\0"
)
_FIREFOX += b"request-method\0GET\0response-head\0HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\0" + struct.pack(
    ">I", 7
)
_HAR = b'{"log": {"entries": [{"startedDateTime": "2020-01-01T00:00:00Z", "request": {"method": "GET", "url": "http://x.com/"}, '
_HAR += b'"response": {"status": 200, "headers": [], "content": {"mimeType": "text/html", "text": "PHA+", "encoding": "base64"}}}]}}'
_MHTML = b'From: <Saved by Blink>\r\nSnapshot-Content-Location: http://x.com/\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related; boundary="a"'
_MHTML += b"\r\n\r\n--a\r\nContent-Type: text/html\r\nContent-Transfer-Encoding: quoted-printable\r\nContent-Location: http://x.com/\r\n\r\n<p>=3D\r\n--a--"
_HTML = b"<html><title>Suspended</title><div hidden><a href=//a.example>x</a></div><p onclick=a() style='display:none'>"
READERS: dict[str, tuple[Read, int, tuple[bytes, ...]]] = {
    "page without scripts": (_without_scripts, 8_000, (_HTML, b"<noscript><img data-src=a></noscript><object>")),
    "xml and pdf cleaned": (_cleaned, 8_000, (b"<svg xmlns='http://www.w3.org/2000/svg'><a href='x'/></svg>",)),
    "page as Markdown": (_markdown, 8_000, (_HTML, b"<ul><li>a<ol><li>b</ol></ul><pre>x</pre><table><tr><td>c")),
    "links to other sites": (_outside, 8_000, (_HTML,)),
    "page of a host": (_host_page, 8_000, (_HTML,)),
    "likeness of a page": (_sketched, 8_000, (_HTML,)),
    "typed address": (_typed, 8_000, (b"http://web.archive.org/web/2009/http://x.com/", b"a@b.com", b"1.2.2009")),
    "certificate": (_certificate, 8_000, (b"0\x820",)),
    "name servers": (_names, 8_000, (b"\xc0\x0c\0\2\0\1\0\0\0\1\0\2\xc0\x0c",)),
    "registration": (_rdap, 8_000, (b'{"objectClassName": "domain", "entities": [{"roles": ["registrar"]}]}',)),
    "file of a person": (_source, 16_000, (b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 2\r\n\r\nab\r\n\r\n", _GZIP, _HAR, _MHTML)),
    "caches of browsers": (_caches, 16_000, (_SIMPLE, _FIREFOX, b"\0\0\1\xa0" * 90)),
    "index of a package": (_index, 16_000, (b'com,x)/ 20200101000000 {"url": "http://x.com/", "filename": "a"}\n', _GZIP)),
    "secrets in packages": (_packages, 16_000, (b"$password = 'abcdefgh';", _GZIP)),
}  # fmt: skip
