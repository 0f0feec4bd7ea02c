"""Small websites with a history, made by rule: what archives captured of them, and what they were at the end.

    site = website(seed=1, pages=40)             a site with every trouble recoveries meet
    archives = site.scattered(3)                 its captures, spread over three archives
    write_warc(path, archives[0])                a WARC that pywb can serve
    site.final()                                 {uri: body} of the site at its last good moment

Deterministic: the same arguments give the same bytes. Used by the tests, the benchmark and the demo.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import random
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

# fmt: off
WORDS = (
    "river", "stone", "lantern", "harbour", "meadow", "copper", "winter", "orchard", "signal", "kettle", "paper",
    "garden", "violet", "engine", "market", "story", "bridge", "candle", "forest", "letter", "mirror", "ocean",
    "pencil", "quiet", "road", "silver", "table", "under", "valley", "window", "yellow", "zephyr", "apple",
    "basket", "cloud", "dancer", "eagle", "feather", "glass", "honey", "island", "jacket", "kitten", "ladder",
    "mountain", "night", "olive", "pepper", "queen",
)
# fmt: on


@dataclass(frozen=True)
class Version:
    """What a URL answered from `since` (14 digits) until its next version."""

    since: str
    body: bytes
    media_type: str = "text/html; charset=utf-8"
    status: str = "200 OK"
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Shot:
    """One capture: a version seen at a moment; `revisit` repeats the bytes of an earlier one."""

    uri: str
    timestamp: str
    version: Version
    revisit: bool = False


@dataclass
class Website:
    """URLs with their versions over time; `end` is the last moment at which the site was itself."""

    start: str
    end: str
    versions: dict[str, list[Version]] = field(default_factory=dict)
    afterwards: dict[str, list[Version]] = field(default_factory=dict)  # parked, hijacked, soft 404: not the site

    def put(self, uri: str, body: bytes | str, since: str = "20100601120000", **fields: object) -> None:
        data = body.encode() if isinstance(body, str) else body
        version = Version(since, data, **fields)  # type: ignore[arg-type]
        self.versions.setdefault(uri, []).append(version)
        self.versions[uri].sort(key=lambda v: v.since)

    def spoil(self, uri: str, body: bytes | str, since: str, **fields: object) -> None:
        """What a URL answered after the end of the site."""
        data = body.encode() if isinstance(body, str) else body
        self.afterwards.setdefault(uri, []).append(Version(since, data, **fields))  # type: ignore[arg-type]

    def at(self, uri: str, moment: str) -> Version | None:
        found = [v for v in self.versions.get(uri, []) if v.since <= moment]
        found += [v for v in self.afterwards.get(uri, []) if v.since <= moment]
        return found[-1] if found else None

    def final(self) -> dict[str, bytes]:
        """{URI: bytes} of everything with content at the end."""
        pages = {uri: self.at(uri, self.end) for uri in sorted(self.versions)}
        return {uri: v.body for uri, v in pages.items() if v is not None and v.status.startswith("200")}

    def crawl(self, moments: Sequence[str], uris: Iterable[str] | None = None) -> list[Shot]:
        """Captures of the given URLs (all) at the given moments."""
        shots = []
        for moment in moments:
            for uri in sorted(set(uris) if uris is not None else {*self.versions, *self.afterwards}):
                version = self.at(uri, moment)
                if version is not None:
                    shots.append(Shot(uri, moment, version))
        return shots

    def scattered(self, count: int, *, seed: int = 0, moments: Sequence[str] = ()) -> list[list[Shot]]:
        """The site's captures over several archives: each URL is in at least one, at the end of the site or before.

        Every archive also has older captures of some URLs, and the last one crawled after the end, too.
        """
        rng = random.Random(seed)
        dates = list(moments) or [self.end]
        everywhere = sorted({*self.versions})
        archives: list[list[Shot]] = [[] for _ in range(count)]
        for uri in everywhere:
            holders = rng.sample(range(count), rng.randint(1, min(2, count)))
            for holder in holders:
                archives[holder] += self.crawl(dates, [uri])
        older = [date for date in ("20080315120000", "20090101120000", "20110101120000") if date < dates[0]]
        for index, date in enumerate(older[:count]):
            some = rng.sample(everywhere, len(everywhere) // 3)
            archives[index] += self.crawl([date], some)
        later = sorted({v.since for versions in self.afterwards.values() for v in versions})
        archives[-1] += [s for date in later for s in self.crawl([date], self.afterwards)]
        return [_with_revisits(shots) for shots in archives]


def _with_revisits(shots: list[Shot]) -> list[Shot]:
    """In order of time; a capture with the bytes of an earlier one of the same URL becomes a revisit."""
    seen: set[tuple[str, bytes]] = set()
    result = []
    for shot in sorted(shots, key=lambda s: (s.timestamp, s.uri)):
        same = (shot.uri, shot.version.body)
        result.append(Shot(shot.uri, shot.timestamp, shot.version, same in seen and shot.version.status[:3] == "200"))
        seen.add(same)
    return result


def write_warc(path: Path, shots: Sequence[Shot]) -> None:
    """A gzipped WARC with a record per capture, revisits as revisit records."""
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

    first: dict[tuple[str, str], str] = {}
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as handle:
        writer = WARCWriter(handle, gzip=True)
        for shot in shots:
            version = shot.version
            digest = sha1(version.body)
            date = _iso(shot.timestamp)
            fields = [("Content-Type", version.media_type), ("Content-Length", str(len(version.body)))]
            head = StatusAndHeaders(version.status, [*fields, *version.headers], "HTTP/1.1")
            if shot.revisit:
                record = writer.create_revisit_record(
                    shot.uri,
                    digest,
                    shot.uri,
                    first[shot.uri, digest],
                    http_headers=head,
                    warc_headers_dict={"WARC-Date": date},
                )
            else:
                first.setdefault((shot.uri, digest), date)
                record = writer.create_warc_record(
                    shot.uri,
                    "response",
                    payload=BytesIO(version.body),
                    http_headers=head,
                    warc_headers_dict={"WARC-Date": date},
                )
            writer.write_record(record)


def sha1(body: bytes) -> str:
    return "sha1:" + base64.b32encode(hashlib.sha1(body, usedforsecurity=False).digest()).decode()


def _iso(stamp: str) -> str:
    return f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}T{stamp[8:10]}:{stamp[10:12]}:{stamp[12:14]}Z"


def png(seed: int, size: int = 8) -> bytes:
    """A small real picture, different for every seed."""
    rng = random.Random(seed)
    rows = b"".join(b"\0" + rng.randbytes(size * 3) for _ in range(size))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def prose(rng: random.Random, words: int) -> str:
    """Sentences of plain words."""
    sentences = []
    while words > 0:
        length = min(words, rng.randint(6, 14))
        sentences.append(" ".join(rng.choice(WORDS) for _ in range(length)).capitalize() + ".")
        words -= length
    return " ".join(sentences)


def page(title: str, body: str, *, head: str = "", lang: str = "en") -> str:
    return (
        f'<!DOCTYPE html>\n<html lang="{lang}">\n<head><meta charset="utf-8"><title>{title}</title>\n'
        f'<link rel="stylesheet" href="/css/main.css">{head}</head>\n<body>\n{body}\n</body>\n</html>\n'
    )


def website(*, host: str = "lost.example", seed: int = 1, pages: int = 30, troubles: bool = True) -> Website:
    """A site of `pages` plain pages with pictures and style sheets and, by default, every kind of problem."""
    rng = random.Random(seed)
    base = f"http://{host}"
    site = Website(f"{base}/", "20120601120000")
    numbers = list(range(1, pages + 1))
    menu = "".join(f'<li><a href="/articles/{n}.html">Article {n}</a></li>' for n in numbers[:20])
    extra = _troubles(site, base, host, rng) if troubles else ""
    _front(site, base, rng, menu + extra)
    for n in numbers:
        links = "".join(f'<a href="{m}.html">see {m}</a> ' for m in rng.sample(numbers, min(4, len(numbers))))
        following = f'<a href="{n + 1}.html">next</a>' if n < pages else ""
        pictures = f'<img src="/img/{n}.png" alt=""><img src="../img/shared-{n % 5}.png" alt="">'
        text = f"<h1>Article {n}</h1><p>{prose(rng, 120)}</p>{pictures}<p>{links}{following} <a href='/'>home</a></p>"
        site.put(f"{base}/articles/{n}.html", page(f"Article {n}", text), "20080101120000")
        if n % 3 == 0:
            newer = text.replace("<p>", f"<p>Revised. {prose(rng, 20)} ", 1)
            site.put(f"{base}/articles/{n}.html", page(f"Article {n}", newer), "20110601120000")
        site.put(f"{base}/img/{n}.png", png(seed * 1000 + n), "20080101120000", media_type="image/png")
    for n in range(5):
        site.put(f"{base}/img/shared-{n}.png", png(seed * 7000 + n), "20080101120000", media_type="image/png")
    return site


def _front(site: Website, base: str, rng: random.Random, menu: str) -> None:
    for since, words in (("20080101120000", 60), ("20110601120000", 90)):
        body = f"<h1>The lost site</h1><p>{prose(rng, words)}</p><ul>{menu}</ul>"
        site.put(f"{base}/", page("The lost site", body), since)
    css = (
        '@import url("print.css") print;\n@import "fonts.css";\n'
        "body { background: url(../img/shared-0.png) } /* url(not-this.png) */\n"
        ".a { background-image: url('/img/shared-1.png') }\n"
    )
    site.put(f"{base}/css/main.css", css, "20080101120000", media_type="text/css")
    site.put(f"{base}/css/print.css", "body { color: black }", "20080101120000", media_type="text/css")
    face = '@font-face { font-family: x; src: url("../fonts/x.woff2?v=2") format("woff2") }'
    site.put(f"{base}/css/fonts.css", face, "20080101120000", media_type="text/css")
    site.put(f"{base}/fonts/x.woff2?v=2", b"wOF2" + rng.randbytes(64), "20080101120000", media_type="font/woff2")


def _troubles(site: Website, base: str, host: str, rng: random.Random) -> str:
    """Every trouble a recovery meets; returns the links that lead to them."""
    links = [_moved(site, base), _soft_404(site, base, rng), _charsets(site, base), _queries(site, base)]
    links += [_odd_names(site, base), _shapes(site, base, rng), _encoded(site, base, rng), _lists(site, base)]
    links.append('<a href="/never-archived.html">gone</a>')
    parked = (
        "<html><head><title>lost.example</title></head><body>This domain is for sale. Buy this domain.</body></html>"
    )
    site.spoil(f"{base}/", parked, "20150101120000")
    site.spoil(f"{base}/articles/1.html", parked, "20150101120000")
    return "".join(f"<li>{link}</li>" for link in links)


def _moved(site: Website, base: str) -> str:
    site.put(f"{base}/old.html", "", status="301 Moved Permanently", headers=(("Location", f"{base}/new.html"),))
    site.put(f"{base}/new.html", page("New", "<p>Here is the new place.</p>"))
    site.put(f"{base}/dir", "", status="302 Found", headers=(("Location", "/dir/"),))
    site.put(f"{base}/dir/", page("Folder", '<p>A folder.</p><a href="leaf.html">leaf</a>'))
    site.put(f"{base}/dir/leaf.html", page("Leaf", "<p>A leaf.</p><a href='../'>up</a>"))
    return '<a href="/old.html">old</a> <a href="/dir">folder</a>'


def _soft_404(site: Website, base: str, rng: random.Random) -> str:
    site.put(f"{base}/fragile.html", page("Fragile", f"<p>{prose(rng, 80)}</p>"))
    gone = page("Page not found", "<p>Sorry, the page you requested could not be found.</p>")
    site.spoil(f"{base}/fragile.html", gone, "20130101120000")
    site.spoil(f"{base}/img/1.png", gone, "20130101120000")
    return '<a href="/fragile.html">fragile</a>'


def _charsets(site: Website, base: str) -> str:
    old = (
        '<html><head><meta http-equiv="Content-Type" content="text/html; charset=iso-8859-1"><title>Café</title></head>'
        '<body><p>Où est le café crème?</p><a href="grüße.html">Grüße</a> <a href="/">home</a></body></html>'
    )
    site.put(f"{base}/fr/cafe.html", old.encode("latin-1"), media_type="text/html")
    site.put(f"{base}/fr/gr%C3%BC%C3%9Fe.html", page("Grüße", "<p>Viele Grüße</p>", lang="de"))
    cyrillic = "<html><head><title>Привет</title></head><body><p>Привет, мир. Это страница.</p></body></html>"
    site.put(f"{base}/ru/", cyrillic.encode("cp1251"), media_type="text/html; charset=windows-1251")
    return '<a href="/fr/cafe.html">café</a> <a href="/ru/index.html">ru</a>'


def _queries(site: Website, base: str) -> str:
    for n in (1, 2, 3):
        body = f'<p>Entry {n}</p><a href="view.php?id={n % 3 + 1}&amp;lang=en">next</a>'
        site.put(f"{base}/view.php?id={n}&lang=en", page(f"Entry {n}", body))
    site.put(f"{base}/view.php", page("Entries", '<a href="view.php?id=1&amp;lang=en">one</a>'))
    return '<a href="/view.php">entries</a> <a href="/view.php?id=2&lang=en&PHPSESSID=abcdef0123">two</a>'


def _odd_names(site: Website, base: str) -> str:
    names = [
        "a%20b.html",
        "con.html",
        "Readme.html",
        "README.html",
        "semi;colon.html",
        "per%25cent.html",
        "q'uote.html",
    ]
    names += ["long-" + "x" * 220 + ".html", "%E6%97%A5%E6%9C%AC.html", "dots...", "a:b.html", "tilde~/x.html"]
    for name in names:
        site.put(f"{base}/odd/{name}", page("Odd", f"<p>The page called {name[:40]}</p>"))
    return " ".join(f'<a href="/odd/{name}">{name[:12]}</a>' for name in names)


def _shapes(site: Website, base: str, rng: random.Random) -> str:
    for n in range(6):
        site.put(f"{base}/media/p{n}.png", png(9000 + n), media_type="image/png")
    body = (
        '<img src="/media/p0.png" srcset="/media/p1.png 1x, /media/p2.png 2x" alt="">'
        '<div style="background:url(/media/p3.png)"></div>'
        "<a href='#' onmouseover=\"swap('/media/p4.png')\">roll</a>"
        '<iframe src="frame.html"></iframe><meta http-equiv="refresh" content="600; url=/refreshed.html">'
    )
    site.put(f"{base}/shapes/", page("Shapes", body))
    site.put(f"{base}/shapes/frame.html", page("Frame", '<base href="/media/"><img src="p5.png" alt=""><p>framed</p>'))
    site.put(f"{base}/refreshed.html", page("Refreshed", f"<p>{prose(rng, 30)}</p>"))
    return '<a href="/shapes/">shapes</a>'


def _encoded(site: Website, base: str, rng: random.Random) -> str:
    text = page("Zipped", f"<p>{prose(rng, 200)}</p><a href='/zipped.js'>x</a>").encode()
    site.put(f"{base}/zipped.html", gzip.compress(text, mtime=0), headers=(("Content-Encoding", "gzip"),))
    # A header that lies: the archive decoded the body and kept the header.
    site.put(f"{base}/zipped.js", "var x = 1;", media_type="text/javascript", headers=(("Content-Encoding", "gzip"),))
    return '<a href="/zipped.html">zipped</a>'


def _lists(site: Website, base: str) -> str:
    urls = "".join(f"<url><loc>{base}/mapped/{n}.html</loc></url>" for n in (1, 2))
    sitemap = f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'
    site.put(f"{base}/sitemap.xml", sitemap, media_type="application/xml")
    feed = f"<rss version='2.0'><channel><item><link>{base}/mapped/3.html</link></item></channel></rss>"
    site.put(f"{base}/feed.xml", feed, media_type="application/rss+xml")
    for n in (1, 2, 3):
        site.put(f"{base}/mapped/{n}.html", page(f"Mapped {n}", f"<p>Found by list {n}</p>"))
    return '<link rel="alternate" type="application/rss+xml" href="/feed.xml">feed'
