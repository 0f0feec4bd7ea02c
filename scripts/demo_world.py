"""A small generated web with a history, and three archives that each saw a part of it: the world of `make demo`.

    world = make_world(seed=1)
    world.archives          three holders, each with its captures
    world.lost              the website that gets lost (a town's newspaper)
    world.lookups           what people ask for, one URI a line, popular ones often

Deterministic: the same seed gives the same bytes. Built on the generator of the tests (tests/websites.py).
"""

from __future__ import annotations

import math
import random
import struct
import zlib
from dataclasses import dataclass, field

from websites import WORDS, Shot, Website, page, prose

LOST_HOST = "harbour-lantern.example"
YEARS = range(2007, 2017)


@dataclass
class Holder:
    """An archive: how it is called, which sites it crawls (host ending -> share of pages it sees), and what it got."""

    id: str
    name: str
    sees: dict[str, float]
    shots: list[Shot] = field(default_factory=list)


@dataclass
class World:
    """Everything the demo needs to know."""

    sites: list[Website]
    lost: Website
    archives: list[Holder]
    lookups: list[str]


def make_world(seed: int = 1) -> World:
    """Fourteen websites over ten years, three archives, 600 lookups."""
    rng = random.Random(seed)
    lost = newspaper(rng)
    sites = [_site(host, size, rng) for host, size in HOSTS.items()]
    archives = [
        Holder("national", "National Web Archive", {"org": 0.9, "university.example": 0.6}),
        Holder("city", "City Memory", {"com": 0.9, "parks.example.org": 0.7, "choir.example": 0.9}),
        Holder("campus", "University Collections", {"university.example": 0.95, "net": 0.7}),
    ]
    for archive in archives:
        for site in sites:
            host = site.start.split("/")[2]
            share = next((share for end, share in archive.sees.items() if host.endswith(end)), 0.0)
            if share:
                archive.shots += _crawls(site, share, rng)
    scattered = lost.scattered(3, seed=seed, moments=["20110601120000", lost.end])
    for number, (archive, shots) in enumerate(zip(archives, scattered, strict=True)):
        archive.shots += [shot for shot in shots if not _unlucky(shot)]
        front = [
            f"{year}{month:02d}{number * 9 + 1:02d}080000" for year in range(2008, 2013) for month in (2, 5 + number)
        ]
        archive.shots += [shot for shot in lost.crawl(front, [lost.start]) if shot.timestamp <= lost.end]
    for archive in archives:
        archive.shots.sort(key=lambda shot: (shot.timestamp, shot.uri))
    return World(sites, lost, archives, _lookups([*sites, lost], rng))


HOSTS = {
    "museum.example.org": 120,
    "library.example.org": 160,
    "parks.example.org": 60,
    "ferry.example.com": 40,
    "shop.example.com": 220,
    "news.example.com": 260,
    "bakery.example.com": 12,
    "blog.example.net": 140,
    "radio.example.net": 80,
    "band.example.net": 20,
    "university.example": 90,
    "physics.university.example": 110,
    "history.university.example": 70,
    "choir.example": 16,
}


def _site(host: str, size: int, rng: random.Random) -> Website:
    """Sections, in some of them years, in them pages; pictures, a style sheet, a few pages that moved or went."""
    site = Website(f"http://{host}/", "20160601120000")
    born = rng.choice((2006, 2007, 2008, 2009, 2011))
    sections = rng.sample(WORDS, max(2, size // 30))
    menu = "".join(f'<li><a href="/{name}/">{name}</a></li>' for name in sections)
    front = page(host, f"<h1>{host}</h1><p>{prose(rng, 40)}</p><ul>{menu}</ul>")
    site.put(site.start, front, f"{born}0101120000")
    site.put(
        f"{site.start}css/main.css", "body { font-family: sans-serif }", f"{born}0101120000", media_type="text/css"
    )
    for name in sections:
        site.put(f"{site.start}{name}/", page(name, f"<h1>{name}</h1><p>{prose(rng, 30)}</p>"), f"{born}0101120000")
    for number in range(size):
        name = rng.choice(sections)
        year = rng.randint(born, 2015)
        folder = f"{year}/{rng.randint(1, 12):02d}/" if sections.index(name) % 2 else ""
        uri = f"{site.start}{name}/{folder}{'-'.join(rng.sample(WORDS, 3))}.html"
        since = f"{year}0301120000"
        _put_page(site, uri, number, since, rng)
        if number % 3 == 0:
            site.put(f"{site.start}img/{number}.png", landscape(number, 24, 12), since, media_type="image/png")
        if number % 20 == 7:
            document = b"%PDF-1.4\n% " + prose(rng, 30).encode()
            site.put(f"{site.start}doc/{number}.pdf", document, since, media_type="application/pdf")
    return site


def _put_page(site: Website, uri: str, number: int, since: str, rng: random.Random) -> None:
    site.put(uri, page(f"Page {number}", f"<p>{prose(rng, 30)}</p>"), since)
    later = f"{min(int(since[:4]) + 2, 2016)}0501120000"
    if number % 9 == 4:
        site.put(uri, "", later, status="301 Moved Permanently", headers=(("Location", site.start),))
    elif number % 11 == 5:
        site.put(uri, page("Not found", "<p>There is nothing here.</p>"), later, status="404 Not Found")
    elif number % 4 == 1:
        site.put(uri, page(f"Page {number}", f"<p>Revised. {prose(rng, 30)}</p>"), later)


def _crawls(site: Website, share: float, rng: random.Random) -> list[Shot]:
    """One crawl a year or none; the front page and the sections far more often than the rest."""
    known = [uri for uri in site.versions if rng.random() < share]
    shots: list[Shot] = []
    for year in YEARS:
        if rng.random() < 0.15:
            continue
        shots += site.crawl([f"{year}0615{rng.randint(0, 23):02d}1500"], [u for u in known if rng.random() < 0.45])
        often = [uri for uri in known if uri.endswith("/")]
        for month in range(1, 13, 2 if year < 2012 else 1):
            shots += site.crawl([f"{year}{month:02d}03{rng.randint(0, 23):02d}0000"], often[:4])
    return shots


def _unlucky(shot: Shot) -> bool:
    """Captures no archive got: of one picture none, of the page about the paper only its older version."""
    return shot.uri.endswith("/img/17.png") or (
        shot.uri.endswith("/about.html") and "2012" <= shot.timestamp[:4] < "2015"
    )


def _lookups(sites: list[Website], rng: random.Random) -> list[str]:
    """Popular pages often; half of what people ask for was never archived, much of it on sites that were never crawled."""
    held = [uri for site in sites for uri in sorted(site.versions)]
    rng.shuffle(held)
    asked = [held[min(int(rng.paretovariate(0.6)) - 1, len(held) - 1)] for _ in range(300)]
    unknown = [f"http://{rng.choice(WORDS)}-{rng.choice(WORDS)}.example/{rng.choice(WORDS)}" for _ in range(200)]
    near = [f"{rng.choice(sites).start}{rng.choice(WORDS)}/{rng.choice(WORDS)}.html" for _ in range(100)]
    lookups = [*asked, *unknown, *near]
    rng.shuffle(lookups)
    return lookups


# The website that gets lost.

STYLE = """@import "print.css" print;
body { margin: 0 auto; max-width: 46rem; padding: 1rem; font: 17px/1.5 Georgia, serif; color: #223; background: #fbf7ee }
header { border-bottom: 3px double #223; text-align: center; background: url(../img/light.png) no-repeat right bottom }
header a { color: inherit; text-decoration: none } h1 { margin: .2rem; font-size: 2.6rem; font-variant: small-caps }
.motto { margin: 0 0 .5rem; font-style: italic } nav a { margin-right: 1rem } a { color: #8a3b12 }
img.wide { width: 100%; border-radius: 4px } .by { color: #667; font-size: .85em }
ul.stories { list-style: none; padding: 0; display: grid; grid-template-columns: 1fr 1fr; gap: 1rem }
ul.stories img { width: 100% } footer { margin-top: 2rem; border-top: 1px solid #ccb; color: #776; font-size: .85em }
"""
TITLES = (
    "Ferry runs again after the long winter",
    "Lighthouse keeper retires after forty years",
    "The orchard market opens a second hall",
    "Choir sings in the old engine house",
    "Bridge lamps lit for the first time",
    "A letter found behind the mirror",
    "Copper kettle contest won by a newcomer",
    "The quiet road gets its trees back",
    "Night of the paper lanterns",
    "Students map the valley's stone walls",
    "What the harbour sounded like in 1931",
    "Honey year: the best since anyone wrote it down",
)


def newspaper(rng: random.Random) -> Website:
    """The Harbour Lantern, 2008 to 2012: articles with pictures, years, authors; since 2015 the domain is parked."""
    base = f"http://{LOST_HOST}"
    site = Website(f"{base}/", "20120601120000")
    site.put(f"{base}/css/main.css", STYLE, "20080101120000", media_type="text/css")
    site.put(f"{base}/css/print.css", "nav { display: none }", "20080101120000", media_type="text/css")
    site.put(f"{base}/img/light.png", landscape(77, 48, 48), "20080101120000", media_type="image/png")
    stories = []
    for number in range(36):
        title = TITLES[number % len(TITLES)] + ("" if number < 12 else f", {'II' if number < 24 else 'III'}")
        year, name = (
            2008 + number % 5,
            "-".join(title.lower().replace(":", "").replace("'", "").replace(",", "").split()),
        )
        stories.append((f"/{year}/{name[:50]}.html", title, year, number))
    for path, title, year, number in stories:
        _story(site, base, path, title, stories, (year, number), rng)
    for since, shown in (
        ("20080101120000", stories[:6]),
        ("20100101120000", stories[:12]),
        ("20120101120000", stories),
    ):
        site.put(f"{base}/", _front(shown), since)
    for year in range(2008, 2013):
        items = "".join(f'<li><a href="{p}">{t}</a></li>' for p, t, y, _ in stories if y == year)
        site.put(f"{base}/{year}/", _leaf(f"The year {year}", f"<h2>{year}</h2><ul>{items}</ul>"), f"{year}0101120000")
    for since in ("20080101120000", "20120101120000"):
        site.put(f"{base}/about.html", _leaf("About us", f"<h2>About us</h2><p>{prose(rng, 120)}</p>"), since)
    site.put(f"{base}/old-about.htm", "", status="301 Moved Permanently", headers=(("Location", f"{base}/about.html"),))
    parked = (
        "<html><head><title>Domain for sale</title></head><body>This domain is for sale. Buy this domain.</body></html>"
    )
    for path in ("/", "/about.html"):
        site.spoil(f"{base}{path}", parked, "20150101120000")
    return site


def _front(stories: list[tuple[str, str, int, int]]) -> str:
    items = "".join(
        f'<li><a href="{path}"><img src="/img/{number}.png" alt=""><br>{title}</a></li>'
        for path, title, _, number in stories
    )
    return _leaf("The Harbour Lantern", f'<ul class="stories">{items}</ul><p><a href="/old-about.htm">About us</a></p>')


def _story(
    site: Website,
    base: str,
    path: str,
    title: str,
    stories: list[tuple[str, str, int, int]],
    place: tuple[int, int],
    rng: random.Random,
) -> None:
    year, number = place
    others = "".join(f'<li><a href="{p}">{t}</a></li>' for p, t, _, _ in rng.sample(stories, 3))
    body = (
        f'<h2>{title}</h2><p class="by">By the harbour desk, {year}</p><img class="wide" src="../img/{number}.png" alt="">'
        f"<p>{prose(rng, 90)}</p><p>{prose(rng, 70)}</p><h3>Also read</h3><ul>{others}</ul>"
    )
    site.put(f"{base}{path}", _leaf(title, body), f"{year}0201120000")
    site.put(f"{base}/img/{number}.png", landscape(number, 240, 120), f"{year}0201120000", media_type="image/png")


def _leaf(title: str, body: str) -> str:
    years = "".join(f'<a href="/{year}/">{year}</a>' for year in range(2008, 2013))
    header = '<header><h1><a href="/">The Harbour Lantern</a></h1><p class="motto">News from the quiet side of the bay</p></header>'
    return page(
        title, f"{header}<nav>{years}<a href='/about.html'>About</a></nav>{body}<footer>Printed on water.</footer>"
    )


def landscape(seed: int, width: int, height: int) -> bytes:
    """A PNG of hills under a sky, different for every seed."""
    rng = random.Random(seed)
    sky, ground = [rng.randint(120, 240) for _ in range(3)], [rng.randint(20, 120) for _ in range(3)]
    ridges = [(rng.uniform(0.35, 0.8), rng.uniform(0.03, 0.12), rng.uniform(1, 4), rng.uniform(0, 6)) for _ in range(4)]
    ridges.sort()
    sun = (rng.uniform(0.15, 0.85) * width, rng.uniform(0.12, 0.4) * height, height * rng.uniform(0.06, 0.12))
    tops = [
        [height * (at + swing * math.sin(x / width * 6.28 * waves + shift)) for at, swing, waves, shift in ridges]
        for x in range(width)
    ]
    rows = bytearray()
    for y in range(height):
        rows.append(0)
        for x in range(width):
            layer = sum(y > top for top in tops[x])
            if layer:
                rows += bytes(int(g + (s - g) * (0.75 - 0.18 * layer)) for g, s in zip(ground, sky, strict=True))
            elif (x - sun[0]) ** 2 + (y - sun[1]) ** 2 < sun[2] ** 2:
                rows += b"\xff\xf2\xc8"
            else:
                rows += bytes(min(255, int(s + 40 * y / height)) for s in sky)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(bytes(rows), 9))
        + chunk(b"IEND", b"")
    )
