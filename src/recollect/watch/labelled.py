"""Labelled pages for the signals of a takeover: generated sites, their pages, redesigns, and what takes them over.

Hides: the generator. Seeded. Words are made of syllables: common ones that all sites use, those of 12 topics, and those
of each site. Every site has a name, a menu and 60 to 200 addresses; some addresses (`/about`, `/news`) are the same on
many sites. A watch sees eight pages of a site; then it is shown pages that it has not seen:

    own        another page of the site: other text, other links, one in ten without the menu
    redesign   the same site in a new form: a new menu, a third of its addresses new, another form of title
    takeover   the front page of another site; one in five has the same topic, one in ten keeps the old name
    parked     a page of a domain seller

Sites are split in two halves, one for choosing thresholds (`train`) and one for measuring (`test`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from html import escape

from recollect.archives.live import LiveAnswer
from recollect.recovery.fingerprint import SiteFingerprint, page_of
from recollect.recovery.links import read_document
from recollect.watch.states import VisitResult
from recollect.watch.visit import judge_visit

SEEN_BEFORE = 8
_TOPICS = 12
_GENERIC = ("/about", "/contact", "/news", "/blog", "/links", "/search", "/sitemap", "/faq")
_SELLERS = (
    "This domain is for sale. Buy this domain today at a good price.",
    "The domain {host} may be for sale. Inquire about this domain.",
    "{host} is parked free of charge. Related searches: cheap flights, insurance, loans.",
)


class Label(StrEnum):
    """Where a page comes from."""

    OWN = "own"
    REDESIGN = "redesign"
    TAKEOVER = "takeover"
    PARKED = "parked"

    @property
    def foreign(self) -> bool:
        return self in (Label.TAKEOVER, Label.PARKED)


@dataclass(frozen=True, slots=True)
class Pages:
    """How the signals did on a set of pages."""

    name: str
    counts: dict[Label, tuple[int, int]]
    """For each label, how many pages there were and how many were called foreign."""

    @property
    def detected(self) -> float | None:
        return self._share(True)

    @property
    def false_alarms(self) -> float | None:
        return self._share(False)

    def _share(self, foreign: bool) -> float | None:
        mine = [pair for label, pair in self.counts.items() if label.foreign == foreign]
        total = sum(shown for shown, _ in mine)
        return sum(called for _, called in mine) / total if total else None


@dataclass(frozen=True)
class _Site:
    host: str
    name: str
    topic: int
    words: tuple[str, ...]
    menu: tuple[str, ...]
    paths: tuple[str, ...]
    named: bool
    """Whether titles carry the name of the site."""


class _World:
    """Vocabularies that sites share."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.common = _words(rng, 400)
        self.topics = [_words(rng, 250) for _ in range(_TOPICS)]

    def site(self, number: int, topic: int | None = None) -> _Site:
        rng = self.rng
        name = " ".join(word.capitalize() for word in _words(rng, rng.randint(1, 3)))
        topic = rng.randrange(_TOPICS) if topic is None else topic
        words = (*_words(rng, 60), *name.lower().split())
        pool = (*self.topics[topic], *words)
        depth = rng.choice((1, 2))
        ends = ("", ".html")
        paths = {"/" + "/".join(rng.choices(pool, k=depth)) + rng.choice(ends) for _ in range(rng.randint(60, 200))}
        menu = (*rng.sample(_GENERIC, rng.randint(0, 3)), *rng.sample(sorted(paths), rng.randint(4, 8)))
        return _Site(f"site{number}.example", name, topic, words, menu, tuple(sorted(paths)), rng.random() < 0.8)

    def page(self, site: _Site, *, menu: Sequence[str] | None = None, name: str = "") -> bytes:
        """A page with a text of 60 to 400 words, mostly common ones."""
        rng = self.rng
        topic = self.topics[site.topic]
        subject = [*rng.choices(topic, k=3), *rng.choices(site.words, k=1)]
        said = []
        for _ in range(rng.randint(60, 400)):
            draw = rng.random()
            vocabulary = self.common if draw < 0.6 else topic if draw < 0.85 else site.words
            said.append(vocabulary[min(int(rng.paretovariate(0.9)) - 1, len(vocabulary) - 1)])
        title = " ".join(word.capitalize() for word in subject[: rng.randint(1, 3)])
        if name or site.named:
            title = f"{title} - {name or site.name}"
        links = [*(site.menu if menu is None else menu), *rng.sample(site.paths, rng.randint(2, 12))]
        anchors = "".join(f'<a href="{escape(path)}">{escape(path[1:])}</a> ' for path in links)
        return f"<html><head><title>{title}</title></head><body>{anchors}<p>{' '.join(said)}</p></body></html>".encode()

    def parked(self, host: str) -> bytes:
        words = self.rng.choice(_SELLERS).format(host=host)
        anchors = "".join(f'<a href="/{word}">{word}</a> ' for word in self.rng.sample(self.common, 4))
        return f"<html><head><title>{host}</title></head><body><p>{words}</p>{anchors}</body></html>".encode()

    def redesigned(self, site: _Site) -> _Site:
        """A third of its addresses is new, and so is the menu."""
        rng = self.rng
        kept = rng.sample(site.paths, len(site.paths) * 2 // 3)
        new = ["/new/" + rng.choice(site.words) + str(number) for number in range(len(site.paths) // 3)]
        paths = tuple(sorted({*kept, *new}))
        menu = (*rng.sample(kept, 3), *rng.sample(new, 3))
        return _Site(site.host, site.name, site.topic, site.words, menu, paths, not site.named)


def _words(rng: random.Random, count: int) -> tuple[str, ...]:
    made: dict[str, None] = {}
    while len(made) < count:
        syllables = (rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(rng.randint(2, 4)))
        made["".join(syllables)] = None
    return tuple(made)


@dataclass(frozen=True, slots=True)
class Judged:
    """A page, where it comes from, and what a watch says of it."""

    label: Label
    test: bool
    foreign: bool
    signals: tuple[float | None, float | None, float | None]


def judged_pages(sites: int, seed: int) -> Iterator[Judged]:
    """Pages of `sites` sites, as a watch judges them."""
    world = _World(random.Random(f"pages {seed}"))
    for number in range(sites):
        site = world.site(number)
        fingerprint = SiteFingerprint()
        for _ in range(SEEN_BEFORE):
            document = read_document(world.page(site), f"http://{site.host}/", "text/html")
            if document is not None:
                fingerprint.learn(page_of(document, f"http://{site.host}/"))
        for label, content in _shown(world, site, number, sites):
            answer = LiveAnswer(
                f"http://{site.host}/", f"http://{site.host}/", 200, {"content-type": "text/html"}, content
            )
            visit = judge_visit(answer, fingerprint)
            found = visit.signals
            signals = (found.links, found.title, found.text) if found is not None else (None, None, None)
            yield Judged(
                label, number % 2 == 1, visit.seen in (VisitResult.FOREIGN, VisitResult.FOREIGN_CONFIRMED), signals
            )


def _shown(world: _World, site: _Site, number: int, sites: int) -> Iterator[tuple[Label, bytes]]:
    rng = world.rng
    for _ in range(6):
        yield Label.OWN, world.page(site, menu=() if rng.random() < 0.1 else None)
    renewed = world.redesigned(site)
    for _ in range(2):
        yield Label.REDESIGN, world.page(renewed)
    for place in range(5):
        topic = site.topic if rng.random() < 0.2 else None
        other = world.site(sites + number * 5 + place, topic)
        yield Label.TAKEOVER, world.page(other, name=site.name if rng.random() < 0.1 else "")
    yield Label.PARKED, world.parked(site.host)
