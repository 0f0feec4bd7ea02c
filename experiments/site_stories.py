"""Lives of websites as archives saw them, with who owned each capture: sites, redesigns, relaunches, takers of domains.

Hides: the generator. Seeded; every story has its own words, alphabet, names, addresses, layout and years. No word of it
is in a list of the judge, but for pages of domain sellers, of which half have the sellers' usual words.

    steady       one owner, who changes texts and once the design
    relaunch     one owner; new addresses, new design, new texts about the same subject under the same name
    taken        the owner, then another site
    figure34     the owner, a first taker, a second one, a page of a domain seller (McCown 2007, figure 34)
    parked       the owner, then a domain seller
    copied       the owner, then a taker who keeps design and addresses and writes other texts with other links
    returned     the owner, another site for some years, the owner again
    newcomer     many captures of a manual in one year, a few of another site years later
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from html import escape

STORIES = ("steady", "relaunch", "taken", "figure34", "parked", "copied", "returned", "newcomer")
OWNER, PARKED = "owner", "parked"
_ALPHABETS = (
    ("bcdfghjklmnprstvwz", "aeiou"),
    ("бвгджзклмнпрстфх", "аеиоуы"),
    ("βγδζκλμνπρστφχ", "αεηιου"),
    ("bdfghjklmnprstvyz", "aeıiouöü"),
)
_SELLER_WORDS = (
    "The domain {host} is for sale. Buy this domain today.",
    "{host} may be for sale. Inquire about this domain.",
    "This domain is parked free of charge. Related links:",
)


@dataclass(frozen=True, slots=True)
class Capture:
    """One capture, and whose it is."""

    uri: str
    at: datetime
    body: bytes
    owner: str
    status: int = 200

    @property
    def stamp(self) -> str:
        return f"{self.at:%Y%m%d%H%M%S}"


@dataclass(frozen=True, slots=True)
class Story:
    """A site's life."""

    kind: str
    host: str
    captures: tuple[Capture, ...]
    ended_at: datetime | None
    """When the owner's last time ended."""

    @property
    def start(self) -> str:
        return f"http://{self.host}/"


@dataclass(frozen=True)
class Site:
    """An owner's site: what its pages are made of."""

    owner: str
    name: str
    topic: tuple[str, ...]
    common: tuple[str, ...]
    paths: tuple[str, ...]
    menu: tuple[str, ...]
    classes: tuple[str, ...]
    files: tuple[str, ...]
    outlinks: tuple[str, ...]
    named: bool = True


class World:
    """Makes sites and their pages."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.alphabet = rng.choice(_ALPHABETS)
        self.common = self.words(120)

    def words(self, count: int) -> tuple[str, ...]:
        rng = self.rng
        made: dict[str, None] = {}
        while len(made) < count:
            syllables = (rng.choice(self.alphabet[0]) + rng.choice(self.alphabet[1]) for _ in range(rng.randint(2, 4)))
            made["".join(syllables)] = None
        return tuple(made)

    def site(self, owner: str, pages: int | None = None) -> Site:
        rng = self.rng
        latin = World.__new__(World)
        latin.rng, latin.alphabet = rng, _ALPHABETS[0]
        pool = latin.words(200)
        style = rng.choice(("/{0}.html", "/{0}/", "/{1}/{0}.htm", "/page.php?id={0}", "/{0}"))
        folders = rng.sample(pool, 3)
        names = rng.sample(pool, pages or rng.randint(8, 30))
        paths = tuple(style.format(name, rng.choice(folders)) for name in names)
        return Site(
            owner,
            " ".join(word.capitalize() for word in self.words(rng.randint(1, 3))),
            self.words(80),
            self.common,
            paths,
            paths[: rng.randint(3, 7)],
            latin.words(rng.choice((0, 6, 15))),
            tuple(f"/{word}.{rng.choice(('gif', 'css', 'js', 'png'))}" for word in latin.words(rng.randint(1, 6))),
            tuple(f"www.{word}.org" for word in latin.words(rng.randint(0, 12))),
            rng.random() < 0.8,
        )

    def page(self, site: Site, path: str, host: str) -> bytes:
        rng = self.rng
        count = rng.randint(40, 250)
        text = " ".join(self.pick(site.common) if rng.random() < 0.5 else self.pick(site.topic) for _ in range(count))
        subject = " ".join(word.capitalize() for word in rng.sample(site.topic, 2))
        title = site.name if path == "/" else f"{subject} - {site.name}" if site.named else subject
        links = [*site.menu, *rng.sample(site.paths, min(len(site.paths), rng.randint(2, 8)))]
        marks = list(site.classes)
        anchors = "".join(
            f'<li class="{marks[n % len(marks)] if marks else "x"}"><a href="{escape(link)}">{n}</a>'
            for n, link in enumerate(links)
        )
        away = rng.sample(site.outlinks, min(len(site.outlinks), rng.randint(0, 4)))
        out = "".join(f'<a href="http://{name}/">{name}</a> ' for name in away)
        files = "".join(f'<img src="{name}">' for name in site.files)
        return (
            f"<html><head><meta charset=utf-8><title>{title}</title></head><body>{files}<ul>{anchors}</ul>"
            f"<p>{text}</p>{out}</body></html>"
        ).encode()

    def pick(self, words: Sequence[str]) -> str:
        return words[min(int(self.rng.paretovariate(0.8)) - 1, len(words) - 1)]

    def seller(self, host: str, *, usual: bool) -> bytes:
        words = self.rng.choice(_SELLER_WORDS).format(host=host) if usual else " ".join(self.words(12))
        links = "".join(f'<a href="/search?q={word}">{word}</a> ' for word in self.words(6))
        return f"<html><head><title>{host}</title></head><body><p>{words}</p>{links}</body></html>".encode()


def make_story(kind: str, seed: int) -> Story:
    """One life of a kind."""
    rng = random.Random(f"{kind} {seed}")
    world = World(rng)
    host = f"{''.join(World.words(_latin(rng), 1))}.example"
    maker = _Maker(world, host, datetime(rng.randint(1997, 2012), rng.randint(1, 12), 3, tzinfo=UTC))
    site = world.site(OWNER)
    if kind == "newcomer":
        site = world.site(OWNER, pages=40)
        maker.years(site, 1, fronts=rng.randint(1, 3), share=1.0, times=3)
        maker.pause(rng.randint(3, 7))
        maker.ended()
        maker.years(world.site("other", pages=12), 1, fronts=1, share=1.0)
        return maker.story(kind)
    maker.years(site, rng.randint(2, 5))
    if kind == "steady":
        maker.years(replace(site, classes=_latin(rng).words(8), menu=site.paths[-4:]), rng.randint(1, 4))
    elif kind == "relaunch":
        new = world.site(OWNER)
        kept = site.outlinks[: len(site.outlinks) // 2]
        new = replace(new, name=site.name, topic=site.topic, named=True, outlinks=(*kept, *new.outlinks[:3]))
        maker.pause(rng.choice((0, 0, 1)))
        maker.years(new, rng.randint(2, 4))
    elif kind == "taken":
        maker.take(world.site("other"))
    elif kind == "figure34":
        maker.take(world.site("first taker"))
        maker.years(world.site("second taker"), rng.randint(1, 2), old=site, same=rng.random() < 0.5)
        maker.parked(rng.randint(1, 3), site)
    elif kind == "parked":
        maker.pause(rng.choice((0, 1)))
        maker.ended()
        maker.parked(rng.randint(1, 4), site)
    elif kind == "copied":
        other = world.site("other")
        maker.take(replace(site, owner="other", topic=other.topic, outlinks=other_links(rng)))
    elif kind == "returned":
        maker.take(world.site("other"))
        maker.years(site, rng.randint(1, 3))
        maker.ends = None
    return maker.story(kind)


def other_links(rng: random.Random) -> tuple[str, ...]:
    """Places that a taker wants to be linked to."""
    return tuple(f"www.{word}.biz" for word in _latin(rng).words(6))


def _latin(rng: random.Random) -> World:
    world = World.__new__(World)
    world.rng, world.alphabet = rng, _ALPHABETS[0]
    return world


class _Maker:
    """Adds captures to a story, year after year."""

    def __init__(self, world: World, host: str, now: datetime) -> None:
        self.world, self.host, self.now = world, host, now
        self.captures: list[Capture] = []
        self.ends: datetime | None = None

    def story(self, kind: str) -> Story:
        return Story(kind, self.host, tuple(sorted(self.captures, key=lambda c: (c.at, c.uri))), self.ends)

    def pause(self, years: int) -> None:
        self.now += timedelta(days=365 * years)

    def ended(self) -> None:
        self.ends = self.now

    def take(self, site: Site) -> None:
        """Another owner, perhaps with the same bytes at each capture, perhaps at the old addresses."""
        rng = self.world.rng
        old = [c.uri.removeprefix(f"http://{self.host}") for c in self.captures]
        self.pause(rng.choice((0, 0, 1, 2)))
        self.ended()
        taken = replace(site, paths=(*site.paths, *rng.sample(old, len(old) // 3))) if rng.random() < 0.7 else site
        self.years(taken, rng.randint(1, 3), same=rng.random() < 0.5)

    def years(
        self,
        site: Site,
        years: int,
        *,
        fronts: int | None = None,
        share: float = 0.5,
        times: int = 1,
        same: bool = False,
        old: Site | None = None,
    ) -> None:
        """Captures of a site: its front page some times a year, a share of its pages. `same`: always the same bytes."""
        rng, world = self.world.rng, self.world
        bodies: dict[str, bytes] = {}
        paths = [*site.paths, *(old.paths[: len(old.paths) // 3] if old is not None else ())]
        for _ in range(years):
            year = ["/"] * (fronts or rng.randint(1, 4)) + [
                p for p in paths for _ in range(times) if rng.random() < share
            ]
            for path in year:
                at = self.now + timedelta(seconds=rng.randrange(360 * 86400))
                body = bodies.get(path) if same else None
                bodies[path] = body = body or world.page(site, path, self.host)
                self.captures.append(Capture(f"http://{self.host}{path}", at, body, site.owner))
            self.pause(1)

    def parked(self, years: int, old: Site) -> None:
        rng = self.world.rng
        same, usual = rng.random() < 0.5, rng.random() < 0.5
        body = self.world.seller(self.host, usual=usual)
        for _ in range(years):
            for path in ["/"] * rng.randint(1, 3) + rng.sample(old.paths, len(old.paths) // 2):
                at = self.now + timedelta(seconds=rng.randrange(360 * 86400))
                shown = body if same else self.world.seller(self.host, usual=usual)
                self.captures.append(Capture(f"http://{self.host}{path}", at, shown, PARKED))
            self.pause(1)


def stories(count: int, seed: int = 0) -> Iterator[Story]:
    """`count` stories of each kind."""
    for kind in STORIES:
        for number in range(count):
            yield make_story(kind, seed * 100_000 + number)
