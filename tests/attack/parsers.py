"""Every parser of foreign bytes, as a function of bytes: for tests of time and memory, and for `make fuzz`.

A parser may refuse with an error of the package (`RecollectError`), and with nothing else.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from attack.readers import READERS
from recollect.errors import RecollectError


@dataclass(frozen=True)
class Parser:
    """A parser, the length of the small input that its time is measured with, and texts that it knows."""

    read: Callable[[bytes], object]
    size: int = 16_000
    seeds: tuple[bytes, ...] = (b"",)

    def run(self, data: bytes) -> None:
        with contextlib.suppress(RecollectError):
            self.read(data)


def _document(uri: str, media_type: str) -> Callable[[bytes], object]:
    from recollect.recovery.links import read_document

    return lambda data: read_document(data, uri, media_type, "utf-8")


def _judged(data: bytes) -> object:
    from recollect.recovery.judge import judge
    from recollect.recovery.links import read_document

    return judge(read_document(data, "http://x.com/", "text/html", "utf-8"), "http://x.com/", "text/html")


def _rewritten(kind: str) -> Callable[[bytes], object]:
    from recollect.recovery.rewrite import NEUTRAL, rewrite_css, rewrite_html, rewrite_svg

    change = {"text/html": rewrite_html, "text/css": rewrite_css, "image/svg+xml": rewrite_svg}[kind]
    return lambda data: change(data, "http://x.com/a/b", kind, lambda _uri: None, lambda _uri, use: NEUTRAL.get(use))


def _robots(data: bytes) -> object:
    from recollect.archives.robots import parse_robots

    return parse_robots(data).allow("http://x.com/" + "a" * 2000)


def _timemap(data: bytes) -> object:
    from recollect.formats.timemap import parse_timemap

    return parse_timemap(data, "application/link-format", "http://archive.example/timemap/link/http://x.com/")


def _listing(data: bytes) -> object:
    from recollect.archives.listing import parse_listing

    return parse_listing(data)


def _headers(data: bytes) -> object:
    from recollect.archives.http1 import Headers

    headers = Headers(b"HTTP/1.1 200 OK\r\n" + data)
    return [headers.get_all("link"), list(headers.items())]


def _link_header(data: bytes) -> object:
    from recollect.formats.timemap.links import Problems, _Reader

    return list(_Reader(data.decode("latin-1"), Problems()).links())


def _unwrapped(data: bytes) -> object:
    from recollect.archives.registry import Archive
    from recollect.archives.replay import unwrap

    archive = Archive(id="a", name="a", timemap="http://archive.example/timemap/link/")
    return unwrap(archive, data)


def _html_links(data: bytes) -> object:
    from recollect.archives.discovery import _html_links as links

    return list(links(data.decode("utf-8", "replace"), "http://x.com/"))


def _warc(data: bytes) -> object:
    from recollect.formats.warc import read_warc

    return sum(1 for _ in read_warc(io.BytesIO(data), "warc", lambda _p: None, lambda _o: None))


def _arc(data: bytes) -> object:
    from recollect.formats.warc import _arc_records

    return sum(1 for _ in _arc_records(io.BytesIO(data), "arc", lambda _p: None))


def _detected(data: bytes) -> object:
    from recollect.formats.detect import kind_of_text

    return kind_of_text(data)


def _map(data: bytes) -> object:
    from recollect.formats.ukvs.reader import open_map

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.ukvs"
        path.write_bytes(data)
        with open_map(path, lambda _p: None) as map_file:
            return sum(len(piece) for piece in map_file.pieces())


def _faults(data: bytes) -> object:
    from recollect.formats.ukvs.faults import validate

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.ukvs"
        path.write_bytes(data)
        return sum(1 for _ in validate(path))


def _log(data: bytes) -> object:
    from recollect.formats.logs import parse_entry

    for line in data.decode("utf-8", "surrogateescape").splitlines():
        with contextlib.suppress(RecollectError):
            parse_entry(line)
    return None


def _cdx(data: bytes) -> object:
    from recollect.formats.cdx import NotACapture, parse_cdx, parse_cdxj, parse_surt, usual_layout

    layout = usual_layout(11)
    for line in data.decode("utf-8", "surrogateescape").splitlines():
        for read in (parse_cdxj, parse_surt, lambda text: parse_cdx(text, layout)):
            with contextlib.suppress(RecollectError, NotACapture):
                read(line)
    return None


def _lenient(data: bytes) -> object:
    from recollect.formats.ukvs.lenient import loads

    with contextlib.suppress(ValueError):
        return loads(data)
    return None


def _blocks(data: bytes) -> object:
    from recollect.protection.block import mentions, read

    return [mentions(data), sum(1 for _ in read(data))]


def _carried(data: bytes) -> object:
    from recollect.protection.markup import carry

    return carry(data, "recollect-block/1 x recollect-end")


def _streamed(data: bytes) -> object:
    from recollect.protection.markup import Scanner

    scanner = Scanner()
    for at in range(0, len(data), 1 << 12):
        scanner.feed(data[at : at + (1 << 12)])
    return scanner.feed(b"", final=True)


def _secrets(data: bytes) -> object:
    from recollect.protection.secrets import scan

    return list(scan([("a.txt", data)]))


def _page_text(data: bytes) -> object:
    from recollect.formats.languages import page_text

    return page_text(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + data)


def _zipnum_line(data: bytes) -> object:
    from recollect.formats.zipnum import _is_whole

    return _is_whole(data)


def _registry(data: bytes) -> object:
    from recollect.archives.registry import _archives

    return _archives("archives.json", data, Path("/nowhere"))


def _key(data: bytes) -> object:
    from recollect.uris import surt, uri_key

    for line in data.decode("utf-8", "surrogateescape").splitlines()[:50]:
        with contextlib.suppress(RecollectError):
            surt(line)
        with contextlib.suppress(RecollectError):
            uri_key(line.encode("utf-8", "surrogateescape"))
    return None


def _visit_key(data: bytes) -> object:
    from recollect.recovery.canonical import resolve, visit_key

    text = f"http://x.com/{next(_NUMBERS)}/" + data.decode("utf-8", "replace")  # answers are remembered
    resolve("http://x.com/a/", data.decode("utf-8", "replace"))
    return visit_key(text)


def _source(name: str, base: str = "", *, cookie: bool = False) -> Callable[[bytes], object]:
    """A file as `recollect recover --also` reads it: recognised, listed, and every capture read."""

    def read(data: bytes) -> object:
        from recollect.sources.model import public_headers
        from recollect.sources.recognise import open_source

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            if "entries" in name or "Cache_Data" in name:
                (path.parent / "index-dir").mkdir(exist_ok=True)
                path = Path(folder)
            source = open_source(path, base)
            try:
                total = 0
                for capture in source.captures(lambda _url: True, lambda _problem: None):
                    with contextlib.suppress(RecollectError):
                        payload = source.read(capture.place)
                        assert not cookie or payload.headers == public_headers(payload.headers)
                        total += sum(len(chunk) for chunk in payload.chunks)
                return total
            finally:
                source.close()

    return read


def _block_cache(data: bytes) -> object:
    """The block files of Chromium: the first half is the index, the second half the entries."""
    import struct

    from recollect.sources.recognise import open_source

    with tempfile.TemporaryDirectory() as folder:
        half = len(data) // 2
        (Path(folder) / "index").write_bytes(struct.pack("<II", 0xC103CAC3, 0x30000) + bytes(360) + data[:half])
        for number in range(4):
            head = struct.pack("<I", 0xC104CAC3) + bytes(8188)
            (Path(folder) / f"data_{number}").write_bytes(head + data[half:])
        source = open_source(Path(folder))
        for capture in source.captures(lambda _url: True, lambda _problem: None):
            with contextlib.suppress(RecollectError):
                list(source.read(capture.place).chunks)
    return None


def _saved_head(data: bytes) -> object:
    from recollect.sources.files import references
    from recollect.sources.saved import saved_address

    return [saved_address(data), list(references(data))]


def _chromium_head(data: bytes) -> object:
    from recollect.sources.chromium import parse_info, url_of_key

    url_of_key(data.decode("latin-1"))
    return parse_info(data)


def _binary(data: bytes) -> object:
    from recollect.recovery.binarylinks import read_binary

    return [read_binary(data, "http://x.com/a"), read_binary(b"FWS\x06\0\0\0\0\0\0\0\0\0" + data, "http://x.com/a")]


_WARC = (
    b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://x.com/\r\nWARC-Date: 2015-01-01T00:00:00Z\r\n"
    b"Content-Length: 62\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n\r\n\r\n"
)
_HAR = (
    b'{"log": {"entries": [{"startedDateTime": "2015-01-01T00:00:00Z", "request": {"method": "GET", "url": '
    b'"http://x.com"}, "response": {"status": 200, "headers": [{"name": "Set-Cookie", "value": "a"}], "content": '
    b'{"mimeType": "text/html", "text": "aGk=", "encoding": "base64"}}}]}}'
)
_MHTML = (
    b"From: <Saved by Blink>\r\nSnapshot-Content-Location: http://x.com/\r\nDate: Wed, 18 Nov 2026 10:00:00 -0000\r\n"
    b'Content-Type: multipart/related; type="text/html"; boundary="--B"\r\n\r\n----B\r\nContent-Type: text/html\r\n'
    b"Content-Location: http://x.com/\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<p>=C3=A4\r\n----B--\r\n"
)
_SIMPLE = bytes.fromhex("305c72a71b6dfbfc05000000130000000000000000000000") + b"1/0/http://x.com/ab"
_SIMPLE += b"<p>hi" + bytes.fromhex("d8410d97456ffaf400000000000000000500000000000000")
_SIMPLE += (
    bytes.fromhex("3000000003000000") + bytes.fromhex("0080f37bd3602e00") * 2 + b"\x13\0\0\0HTTP/1.1 200 OK\0\0\0\0\0"
)
_SIMPLE += bytes.fromhex("d8410d97456ffaf400000000000000003000000000000000")
_CACHE2 = b"<p>hi" + bytes(6) + bytes.fromhex("00000003000000015f5e10005f5e100000000000000000000000000f00000000")
_CACHE2 += b":http://x.com/a\0response-head\0HTTP/1.1 200 OK\r\nSet-Cookie: a\r\n\0" + b"\0\0\0\x05"
_NUMBERS = itertools.count()
_PAGE = b"""<!DOCTYPE html><html><head><meta http-equiv=refresh content="0;url=/x"><link rel=preconnect href=//e>
<style>@import "a.css"; a{b:url(c)}</style><base href=/b/></head><body onload=x><img srcset="a 1x, b 2x"><svg><a
xlink:href=q /></svg><script>location='/p'</script><noscript><!-- x --></noscript>
<iframe srcdoc="&lt;p&gt;"></iframe>"""
_SVG = b"""<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY n "http://www.w3.org/2000/svg">]><svg xmlns="&n;"><image
href="/i.png"/><style>a{fill:url(#x)}</style><set attributeName="href" to="/y"/><script>1</script></svg>"""
_FEED = b"""<?xml version="1.0"?><?xml-stylesheet href="/s.xsl"?><rss><channel><item><link>http://x.com/1</link>
<description>&lt;a href="/2"&gt;</description></item></channel></rss>"""

PARSERS: dict[str, Parser] = {
    "pdf and flash links": Parser(_binary, 8_000, (b"%PDF-1.4\n", b"\x3f\x03\x09\0\0\0\x83\x06\0/a.html\0")),
    "source warc": Parser(_source("a.warc"), 8_000, (_WARC, gzip.compress(_WARC, mtime=0) * 3)),
    "source har": Parser(_source("a.har", cookie=True), 8_000, (_HAR,)),
    "source mhtml": Parser(_source("a.mhtml"), 8_000, (_MHTML,)),
    "source saved page": Parser(
        _source("a.html", "http://x.com/"), 8_000, (b"<!-- saved from url=(0013)http://x.com/ -->",)
    ),
    "source backup": Parser(_source("backup/a.php", "http://x.com/"), 8_000, (b"<?php",)),
    "source wacz": Parser(_source("a.wacz"), 8_000, (b"PK\x03\x04",)),
    "source simple cache": Parser(_source(f"Cache_Data/{'a' * 16}_0", cookie=True), 8_000, (_SIMPLE,)),
    "source cache2": Parser(_source(f"cache2/entries/{'A' * 40}", cookie=True), 8_000, (_CACHE2,)),
    "source block files": Parser(_block_cache, 8_000, (bytes.fromhex("000001a0") * 40,)),
    "source saved head": Parser(_saved_head, 8_000, (b'<link rel="canonical" href="http://x.com/"><a href=x>',)),
    "source chromium head": Parser(_chromium_head, 8_000, (_SIMPLE[48:],)),
    "html links": Parser(_document("http://x.com/", "text/html"), 8_000, (_PAGE,)),
    "html judged": Parser(_judged, 8_000, (_PAGE,)),
    "css links": Parser(_document("http://x.com/a.css", "text/css"), 8_000, (b"@import 'a'; b{c:url(d)}",)),
    "script links": Parser(_document("http://x.com/a.js", "text/javascript"), 8_000, (b"caches.addAll(['/a.js'])",)),
    "manifest links": Parser(
        _document("http://x.com/m.webmanifest", "application/manifest+json"),
        8_000,
        (b'{"start_url": "/", "icons": [{"src": "a.png"}]}',),
    ),
    "feed links": Parser(_document("http://x.com/feed", "application/rss+xml"), 8_000, (_FEED,)),
    "sitemap links": Parser(
        _document("http://x.com/sitemap.xml", "text/xml"),
        8_000,
        (b"<urlset><url><loc>http://x.com/1</loc></url></urlset>",),
    ),
    "sitemap of lines": Parser(_document("http://x.com/sitemap.txt", "text/plain"), seeds=(b"http://x.com/1\n",)),
    "svg links": Parser(_document("http://x.com/a.svg", "image/svg+xml"), 8_000, (_SVG,)),
    "robots links": Parser(_document("http://x.com/robots.txt", "text/plain"), seeds=(b"Sitemap: /s.xml\n",)),
    "html restored": Parser(_rewritten("text/html"), 8_000, (_PAGE,)),
    "css restored": Parser(_rewritten("text/css"), seeds=(b"@import 'a'; b{c:url(d)}",)),
    "svg restored": Parser(_rewritten("image/svg+xml"), 8_000, (_SVG,)),
    "robots rules": Parser(_robots, seeds=(b"User-agent: *\nDisallow: /a*b$\nAllow: /\n",)),
    "timemap": Parser(
        _timemap,
        seeds=(
            b'<http://x.com/>; rel="original",\n<http://a/web/20200101000000/http://x.com/>'
            b"; "
            b'rel="memento"; datetime="Wed, 01 Jan 2020 00:00:00 GMT"',
            b'{"mementos": {"list": [{"datetime": "2020-01-01T00:00:00Z", "uri": "http://a/"}]}}',
        ),
    ),
    "listing": Parser(
        _listing,
        seeds=(
            b'[["urlkey","timestamp","original"],["com,x)/","20200101000000","http://x.com/"]]',
            b'com,x)/ 20200101000000 {"url": "http://x.com/"}\n',
        ),
    ),
    "answer headers": Parser(_headers, 8_000, (b"Link: <http://a/>; rel=memento\r\nX: y\r\n z\r\n",)),
    "link header": Parser(_link_header, seeds=(b'<http://a/>; rel="memento first"; datetime="x"',)),
    "rewritten page": Parser(
        _unwrapped, seeds=(b"<!-- BEGIN WAYBACK TOOLBAR INSERT -->x<!-- END WAYBACK TOOLBAR INSERT -->",)
    ),
    "links of an archive's page": Parser(_html_links, 8_000, (b'<link rel="mementomap" href="/m">',)),
    "warc": Parser(_warc, seeds=(b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 2\r\n\r\nab\r\n\r\n",)),
    "arc": Parser(_arc, seeds=(b"http://x.com/ 1.2.3.4 20200101000000 text/html 2\nab\n",)),
    "detection": Parser(_detected, seeds=(b"com,x)/ 20200101000000 {}\n", b"http://x.com/\n", b"a,b\n1,2\n")),
    "map": Parser(_map, seeds=(b'!context ["x"]\n!keys ["surt"]\ncom,x)/ 1/1\n',)),
    "map faults": Parser(_faults, seeds=(b'!context ["x"]\n!keys ["surt"]\ncom,x)/ 1/1\n',)),
    "log": Parser(
        _log, 8_000, seeds=(b'h - - [01/Jan/2020:00:00:00 +0000] "GET /web/2020/http://x.com/ HTTP/1.1" 200 1\n',)
    ),
    "index lines": Parser(_cdx, 8_000, seeds=(b'com,x)/ 20200101000000 {"url": "http://x.com/", "status": "200"}\n',)),
    "lenient JSON": Parser(_lenient, seeds=(b"{\"a\": [1, 'b']}",)),
    "blocks": Parser(_blocks, seeds=(b"recollect-block/1\nclass=a version=1 \nrecollect-end",)),
    "pages that carry blocks": Parser(_carried, seeds=(_PAGE,)),
    "pages in pieces": Parser(_streamed, seeds=(_PAGE,)),
    "secrets": Parser(_secrets, seeds=(b"password = 'abcdefgh' a@b.com",)),
    "text of a page": Parser(_page_text, seeds=(_PAGE,)),
    "line of ZipNum": Parser(_zipnum_line, seeds=(b"com,x)/ 20200101000000 a 1 2 3",)),
    "list of archives": Parser(_registry, seeds=(b'[{"id": "a", "timemap": "http://a/"}]',)),
    "keys": Parser(_key, seeds=(b"http://x.com/a?b=c#d\n",)),
    "addresses": Parser(_visit_key, seeds=(b"a/../b?c=d",)),
    **{name: Parser(*reader) for name, reader in READERS.items()},
}

# (before, filler, after, text that is repeated): one large thing that every small one may be compared with.
HALVES: list[tuple[bytes, bytes, bytes, bytes]] = [
    (b"<div style='", b"a", b"'>", b"<a href=//b.example>x</a>"),
    (b"<div class='", b"a ", b"'>", b"<p class=b>"),
    (b"<title>", b"a ", b"</title>", b"<p>b "),
    (b"<base href='http://x.com/", b"a/", b"'>", b"<a href=b>"),
    (b"<body ", b"a=b ", b">", b"<p onclick=a>"),
    (b"<noscript>", b"<p>", b"</noscript>", b"<noscript>"),
    (b"<!--", b"a", b"-->", b"<p><!-- -->"),
    (b"<svg>", b"<g>", b"", b"<a href=b>"),
    (b'{"objectClassName": "domain", "a": "', b"a", b'", "events": [', b"{},"),
    (b"User-agent: *\n", b"Disallow: /a\n", b"", b"Allow: /b\n"),
    (b"<http://a/", b"a", b'>; rel="original",\n', b'<http://a/b>; rel="memento",\n'),
    (b"WARC/1.0\r\nX: ", b"a", b"\r\nContent-Length: 0\r\n\r\n\r\n\r\n", b"WARC/1.0\r\nContent-Length: 0\r\n\r\n"),
    (b"", b"a", b"\n", b"com,x)/ 20200101000000 {}\n"),
    (b"password = '", b"a", b"'\n", b"password = b\n"),
]  # fmt: skip

# (text before, text that is repeated): pieces of all these formats that begin something and do not end it.
UNITS: list[tuple[bytes, bytes]] = [
    (b"", b"<!-- -->"),
    (b"", b"<!--"),
    (b"<?xml version='1.0'?>", b"<!-- -->\n"),
    (b"", b"<a "),
    (b"", b"<a href='"),
    (b"", b'<a href="'),
    (b"", b"<"),
    (b"", b"<a"),
    (b"", b"</"),
    (b"", b"<script"),
    (b"", b"<script>"),
    (b"", b"<style>"),
    (b"", b"<svg><style>"),
    (b"", b"<title>"),
    (b"", b"<div>"),
    (b"", b"<b><p>"),
    (b"", b"<![CDATA["),
    (b"", b"<?"),
    (b"", b"<!doctype "),
    (b"<a ", b"a=b "),
    (b"<a ", b"a "),
    (b"<a ", b"="),
    (b"<p a='", b'"'),
    (b"", b"<base href=a>"),
    (b"", b"<base href=a/>"),
    (b"<svg xmlns='http://www.w3.org/2000/svg'>", b"<script/>xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    (b"<a xmlns='http://www.w3.org/1999/xhtml'>", b"<http: onload=''>"),
    (b"<img srcset='", b"a,"),
    (b"<img srcset='", b" ,"),
    (b"<img srcset='", b"a ("),
    (b"<meta http-equiv=refresh content='", b" "),
    (b"<p style='", b"url("),
    (b"<iframe srcdoc='", b"&lt;iframe srcdoc="),
    (b"", b"<noscript><!--"),
    (b"", b"<form>"),
    (b"", b"&"),
    (b"", b"&#x41;"),
    (b"", b"&a"),
    (b"<rss>", b"<description>&lt;a"),
    (b"<svg xmlns='http://www.w3.org/2000/svg'>", b"<g>"),
    (b"<svg xmlns='http://www.w3.org/2000/svg'>", b"<a xlink:href='x'/>"),
    (b"<x ", b"xmlns:a='b' "),
    (b"<urlset>", b"<url><loc>http://a/"),
    (b"<!DOCTYPE x [", b"<!ENTITY a 'b'>"),
    (b"<!DOCTYPE svg [<!ENTITY a 'aaaaaaaaaa'>]><svg>", b"&a;"),
    (b"", b"@import "),
    (b"", b'@import "'),
    (b"", b"url("),
    (b"", b'url("'),
    (b"", b"u\\72l("),
    (b"", b"\\"),
    (b"", b"\\'"),
    (b'@import "', b"\\'"),
    (b"", b"/*"),
    (b"", b"image-set("),
    (b"", b"{"),
    (b"", b"["),
    (b"", b"("),
    (b"", b"}"),
    (b"", b'"'),
    (b"", b"'"),
    (b"", b"`"),
    (b"", b'[ " '),
    (b"caches.open ", b"['a',"),
    (b"", b"location="),
    (b"", b"//"),
    (b"", b"/"),
    (b"", b"../"),
    (b"", b"/.."),
    (b"", b" "),
    (b"", b"\t"),
    (b"", b"\n"),
    (b"", b"\r\n"),
    (b"", b"a\t"),
    (b"", b"a "),
    (b"", b"a\n"),
    (b"", b"0"),
    (b"", b"a"),
    (b"", b"."),
    (b"", b"a.b"),
    (b"", b"a@a."),
    (b"", b"password='"),
    (b"", b"ey-"),
    (b"", b"%"),
    (b"", b"%41"),
    (b"", b"\xff"),
    (b"", b"\xc3\xa9"),
    (b"", b"\0"),
    (b"\xff\xfe", b"<\0"),
    (b"", b"User-agent: a\n"),
    (b"", b"User-agent: *\nDisallow: /a\n"),
    (b"User-agent: *\n", b"Disallow: /*a*a*a*a*b$\n"),
    (b"", b"Sitemap:"),
    (b"", b"sitemap: http://x.com/a\n"),
    (b"", b"<http://a/>;"),
    (b"", b"<http://a/>, "),
    (b"", b'<http://a/>; rel="'),
    (b"<http://a/>", b"; a=b"),
    (b"<http://a/>", b'; a="b"'),
    (b"<http://a/>", b" a"),
    (b"<", b"> "),
    (b"", b'; datetime="a'),
    (b'{"mementos": [', b'{"uri": "http://a/"},'),
    (b"", b'{"a":'),
    (b"[", b'["a",'),
    (b"[[", b'"a",'),
    (b"{", b'"a": 1, '),
    (b"", b"{}"),
    (b"", b"{}\n"),
    (b"", b'com,x)/ 20200101000000 {"url": "http://x.com/"}\n'),
    (b"com,x)/ 20200101000000 ", b'{"a": '),
    (b"", b"com,x)/ 20200101000000 a b c\n"),
    (b"a 0000\t", b"{0}\t"),
    (b"a 20200101 ", b"a "),
    (b"", b'h - - [a] "b'),
    (b"a b ", b" [a"),
    (b"a b c ", b'[a] "'),
    (b"a b c ", b'[a] "\\'),
    (b"", b"WARC/1.0\r\n"),
    (b'{"log": {"entries": [', b'{"a": '),
    (b'{"log": {"entries": [', b'{"request": {}},'),
    (b'{"log": {"entries": [', b'"\\'),
    (b'{"log": ', b'"entries": ['),
    (b"MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=a\r\n\r\n", b"--a\r\n"),
    (
        b"MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=a\r\n\r\n",
        b"--a\r\nContent-Location: http://x.com/\r\n\r\n",
    ),
    (b"MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=a\r\n", b"a: b\r\n "),
    (b"", b"WARC/1.0\r\nContent-Length: 0\r\n\r\n"),
    (b"", b"a: b\r\n"),
    (b"", b"a: 1 20200101 "),
    (b"", b"http://a 1.2.3.4 20200101000000 a 0\n"),
    (b"a:", b"- 20200101 "),
    (b"", b"!meta {}\n"),
    (b'!context ["x"]\n!keys ["surt"]\n', b"com,x)/ 1/1\n"),
    (b"", b'com,a)/ "x'),
    (b"", b"recollect-block/1 "),
    (b"", b"recollect-block/1 class=a\n"),
    (b"", b"recollect-block/1 recollect-end "),
    (b"", b"<script type=application/vnd.recollect>"),
    (b"", b"<!-- BEGIN_FILE_RECOVERY recollect-block/1 "),
    (b"recollect-block/1", b"<a data-recollect-vault="),
    (b"", b"<!-- BEGIN WAYBACK TOOLBAR INSERT -->"),
    (b"", b"<script src=/_static/"),
    (b"", b"<script>__wm."),
    (b"", b"<link rel=stylesheet href=a"),
    (b"", b"/20200101000000/http:/"),
    (b"", b"http://"),
    (b"http://", b"a."),
    (b"http://", b"a:"),
    (b"http://x.com/?", b"a=b&"),
    (b"http://x.com/", b";a"),
    (b"http://[", b":"),
    (b"%PDF-1.4 ", b"/OpenAction "),
    (b"%PDF-1.4 ", b"/ObjStm "),
    (b"%PDF-1.4 ", b"/ObjStm stream\n"),
    (b"%PDF-1.4 ", b"/ObjStm stream\nx\x9c endstream"),
    (b"%PDF-1.4 ", b"<</AA "),
    (b"%PDF-1.4 ", b"/#4fpen"),
    (b"", b"HTTP/1.1 200\r\n"),
    (b"", b"a:\r\n "),
    (b"", b"1\r\na\r\n"),
]
