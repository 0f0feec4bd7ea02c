"""Is a page still of this site? Signals against what is known of the site's past.

Hides: the signals, their thresholds and their weights. Pure. A `SiteFingerprint` gathers what several pages of a site's
past had. A new page is compared:

- links: the share of its own links (same host) that the past had; addresses that sites of all kinds have (`/about`,
  `/contact`) do not count,
- title: the share of its title's words that the past had in titles; or half of the site's name, which is what at
  least half of the titles of the past have,
- text: the cosine of its words with those of the past (TF-IDF over the pages it learned),
- outlinks: the share of other domains it links to that the past linked to,
- structure: the share of its embedded files, classes and ids that the past had.

Links and titles distinguish far better than text, and one page alone says little: a redesign keeps names and subjects,
a takeover keeps neither. A design is copied more easily than a text is written: a page that has the design of the site,
quite another text and links to other places is foreign. `Signals.foreign_probability` weighs all of it; it is
calibrated on generated sites (`make experiment-judge`), and a page with too little of everything is near one half.

`Signals.foreign`, for a page that was looked at live, asks for two alarms of the first three signals.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from recollect.recovery.links import Document
from recollect.uris.suffixes import registered_name

LINKS_KNOWN = 0.10
TITLE_KNOWN = 0.25
TEXT_ALIKE = 0.25
FEWEST_LINKS = 3
FEWEST_WORDS = 30
LEAST_WORDS = 8
TRUSTED_WORDS = 60
ALIEN_WORDS = 40  # fewer words distinguish a text that has next to nothing of the site's
ALIEN_SHARE = 0.65
USUAL_TEXT = 0.42
COPIED = 0.3
# Platt scaling of the evidence. Generated sites separate without a mistake (experiments/judge.py --calibrate fits
# a slope of 3.3 with a ridge); real ones are not that different, hence a flatter curve.
SLOPE, OFFSET = 1.0, 0.0
FEWEST_TITLES = 3
MOST_PAGES = 24
MOST_LINKS = 4000
MOST_WORDS = 2000
_GENERIC = frozenset(
    (
        "",
        *("about", "about-us", "account", "archive", "archives", "blog", "cart", "category", "contact", "contact-us"),
        *("cookies", "copyright", "en", "events", "faq", "feed", "gallery", "help", "home", "imprint", "impressum"),
        *("index", "info", "jobs", "legal", "links", "login", "logout", "media", "menu", "news", "page", "press"),
        *("privacy", "privacy-policy", "products", "register", "rss", "search", "services", "shop", "sitemap", "tag"),
        *("tags", "team", "terms"),
    )
)
# Domains that sites of all kinds link to.
_EVERYWHERE = frozenset(
    (
        *(
            "adobe.com",
            "apple.com",
            "archive.org",
            "cloudflare.com",
            "creativecommons.org",
            "facebook.com",
            "flickr.com",
        ),
        *(
            "fonts.googleapis.com",
            "geocities.com",
            "github.com",
            "google.com",
            "googleapis.com",
            "instagram.com",
            "flickr.com",
        ),
        *("linkedin.com", "macromedia.com", "microsoft.com", "mozilla.org", "netscape.com", "pinterest.com"),
        *("statcounter.com", "twitter.com", "vimeo.com", "w3.org", "wikipedia.org", "wordpress.com", "wordpress.org"),
        *("x.com", "yahoo.com", "youtube.com"),
    )
)
_WORD = re.compile(r"[^\W\d_]{3,}")
# Scripts without spaces between words: pairs of characters stand for words.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
MOST_MARKS = 400
MOST_USUAL = 8


@dataclass(frozen=True, slots=True)
class Page:
    """What identifies a page: own links (paths), words of the title, words of the text with their counts."""

    links: frozenset[str]
    title: frozenset[str]
    words: Counter[str]
    outlinks: frozenset[str] = frozenset()
    """Other domains it links to."""
    structure: frozenset[str] = frozenset()
    """Files it embeds from the site, classes and ids."""


EMPTY = Page(frozenset(), frozenset(), Counter())
"""A page that shows nothing, or something that is not a page."""


def page_of(document: Document, uri: str) -> Page:
    """The page of a document."""
    host = _host(uri)
    certain = [link for link in document.links if not link.guess]
    own = (address_of(link.uri) for link in certain if not link.embedded and _host(link.uri) == host)
    outside = (registered_name(_host(link.uri)) or _host(link.uri) for link in certain if _host(link.uri) != host)
    files = (urlsplit(link.uri).path for link in certain if link.embedded and _host(link.uri) == host)
    words = Counter(words_of(document.text))
    return Page(
        frozenset(path for path in own if not is_generic(path)),
        frozenset(words_of(document.title)),
        Counter(dict(words.most_common(MOST_WORDS))),
        frozenset(name for name in outside if name and name not in _EVERYWHERE),
        frozenset([*files, *document.marks][:MOST_MARKS]),
    )


def words_of(text: str) -> list[str]:
    """The words of a text in lower case; of a script without spaces, its pairs of characters."""
    words = [word.lower() for word in _WORD.findall(_UNSPACED.sub(" ", text))]
    for run in _UNSPACED.findall(text):
        words += [run[place : place + 2] for place in range(len(run) - 1)]
    return words


def address_of(uri: str) -> str:
    """The path of an address, with its query where that names the page."""
    parts = urlsplit(uri)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def is_generic(address: str) -> bool:
    """Whether an address is one that sites of all kinds have: it does not distinguish one from another. With a query it
    is so only if that has nothing but numbers: `/index.php?id=7`."""
    path, _, query = address.partition("?")
    if any(not part.rpartition("=")[2].isdigit() for part in query.split("&") if part):
        return False
    name = path.strip("/").lower()
    return name.rpartition(".")[0] in _GENERIC if "." in name else name in _GENERIC


def _host(uri: str) -> str:
    try:
        return (urlsplit(uri).hostname or "").lower().removeprefix("www.")
    except ValueError:
        return ""


@dataclass(frozen=True, slots=True)
class Signals:
    """How much of a page the past knew, each from 0 to 1; None where the page or the past has too little to judge."""

    links: float | None
    title: float | None
    text: float | None
    outlinks: float | None = None
    structure: float | None = None
    words: int = 0
    """How many words the text is judged by."""
    usual: float | None = None
    """The `text` that pages of the past have among each other, where there are several."""

    @property
    def foreign_probability(self) -> float:
        """The probability that the page is another owner's, before anything is known of its date."""
        return foreign_probability(self.own_evidence)

    @property
    def own_evidence(self) -> float:
        """Weighted evidence that the page is the site's own; negative when it speaks for another."""
        trusted = min(1.0, self.words / TRUSTED_WORDS)
        evidence = _evidence(self.links, 0.12, 0.5, 2.2) + _evidence(self.title, 0.25, 0.6, 2.2)
        evidence += trusted * _evidence(self.text, TEXT_ALIKE, 0.42, 2.6)
        evidence += _evidence(self.outlinks, 0.1, 0.5, 0.8) + _evidence(self.structure, 0.15, 0.5, 1.2)
        # A title alone is a copied design only where it is known how alike the pages of the site are.
        title = self.title if self.usual is not None else None
        if max(self.links or 0.0, self.structure or 0.0, title or 0.0) < COPIED:
            return evidence
        away = self.outlinks is not None and self.outlinks < 0.1
        return evidence - min(1.0, self.words / ALIEN_WORDS) * self.alien * (9.0 if away else 7.5)

    @property
    def available(self) -> int:
        """How many signals can be judged."""
        return sum(one is not None for one in (self.links, self.title, self.text, self.outlinks, self.structure))

    @property
    def alien(self) -> float:
        """From 0 to 1: how far the text is from what pages of the site have in common with each other."""
        if self.text is None:
            return 0.0
        usual = USUAL_TEXT if self.usual is None else self.usual
        return max(0.0, min(1.0, (ALIEN_SHARE - self.text / max(usual, 0.01)) / 0.2))

    @property
    def foreign(self) -> bool:
        """Whether two signals say that the page is not of this site."""
        return self.alarms >= 2

    @property
    def alarms(self) -> int:
        text = self.text if self.words >= FEWEST_WORDS else None
        thresholds = ((self.links, LINKS_KNOWN), (self.title, TITLE_KNOWN), (text, TEXT_ALIKE))
        return sum(value is not None and value < threshold for value, threshold in thresholds)


def foreign_probability(evidence: float) -> float:
    """The probability that a page is another owner's, by the evidence that it is the site's own."""
    return 1 / (1 + math.exp(SLOPE * evidence + OFFSET))


def _evidence(value: float | None, neutral: float, full: float, weight: float) -> float:
    """From -weight at 0 over nothing at `neutral` to weight at `full`; nothing for a signal that cannot be judged."""
    if value is None:
        return 0.0
    return weight * (value / neutral - 1 if value < neutral else min(1.0, (value - neutral) / (full - neutral)))


@dataclass
class SiteFingerprint:
    """What is known of a site's pages; bounded, the newest pages replace the oldest."""

    links: dict[str, None] = field(default_factory=dict)
    title: dict[str, int] = field(default_factory=dict)
    """Words of titles, and the number of titles that had them."""
    pages: list[dict[str, int]] = field(default_factory=list)
    titles: int = 0
    """The number of titles."""
    outlinks: dict[str, None] = field(default_factory=dict)
    structure: dict[str, None] = field(default_factory=dict)
    _usual_text: float | None = field(default=None, compare=False)

    def learn(self, page: Page) -> None:
        """Add a page that is known to be of the site."""
        sets = ((self.links, page.links), (self.outlinks, page.outlinks), (self.structure, page.structure))
        for known, new in sets:
            for one in sorted(new):
                known.pop(one, None)
                known[one] = None
        for word in sorted(page.title):
            self.title[word] = self.title.pop(word, 0) + 1
        self.titles += bool(page.title)
        bounded: tuple[dict[str, None] | dict[str, int], ...] = (self.links, self.title, self.outlinks, self.structure)
        for bound in bounded:
            while len(bound) > MOST_LINKS:
                del bound[next(iter(bound))]
        if page.words.total() >= LEAST_WORDS and dict(page.words) not in self.pages:
            self.pages = [*self.pages, dict(page.words)][-MOST_PAGES:]

    def compare(self, page: Page, listed: Container[str] = frozenset()) -> Signals:
        """What the past says of a page. `listed` are further addresses that the site had."""
        links = title = text = outlinks = structure = None
        if len(page.links) >= FEWEST_LINKS and self.links:
            links = sum(one in self.links or one in listed for one in page.links) / len(page.links)
        if page.outlinks and self.outlinks:
            outlinks = sum(one in self.outlinks for one in page.outlinks) / len(page.outlinks)
        if len(page.structure) >= FEWEST_LINKS and self.structure:
            structure = sum(one in self.structure for one in page.structure) / len(page.structure)
        if page.title and self.title:
            title = max(sum(one in self.title for one in page.title) / len(page.title), self._named(page.title))
        words = page.words.total()
        if words >= LEAST_WORDS and self.pages:
            text = self._cosine(page.words)
        if links is None and (text is None or words < FEWEST_WORDS) and not title and self.links and self.pages:
            return Signals(0.0, title, 0.0, outlinks, structure, FEWEST_WORDS)  # nothing is left of links and text
        return Signals(links, title, text, outlinks, structure, words, self._usual())

    def _usual(self) -> float | None:
        """The median cosine of each page with the others."""
        if len(self.pages) < 2 or len(self.pages) > MOST_USUAL:
            return self._usual_text if len(self.pages) > 1 else None
        others = [SiteFingerprint(pages=[*self.pages[:n], *self.pages[n + 1 :]]) for n in range(len(self.pages))]
        cosines = [one._cosine(Counter(page)) for one, page in zip(others, self.pages, strict=True)]
        self._usual_text = sorted(cosines)[len(cosines) // 2]
        return self._usual_text

    def _named(self, title: frozenset[str]) -> float:
        """1 if a title has half of the site's name, else 0: a long title may have few words beside it that are known.
        The name is what at least half of all titles have."""
        name = {word for word, count in self.title.items() if 2 * count >= self.titles}
        return float(self.titles >= FEWEST_TITLES and bool(name) and 2 * len(name & title) >= len(name))

    def _cosine(self, shown: Counter[str]) -> float:
        count = len(self.pages)
        having = Counter(word for page in self.pages for word in page)
        past: Counter[str] = Counter()
        for page in self.pages:
            past.update(page)

        def weight(word: str, times: int) -> float:
            return (1 + math.log(times)) * math.log(1 + (count + 1) / (having[word] + 1))

        new = {word: weight(word, times) for word, times in shown.items()}
        old = {word: weight(word, times) for word, times in past.items()}
        dot = sum(value * old.get(word, 0.0) for word, value in new.items())
        norm = math.sqrt(sum(v * v for v in new.values())) * math.sqrt(sum(v * v for v in old.values()))
        return dot / norm if norm else 0.0

    def to_json(self) -> str:
        value = {"links": list(self.links), "title": self.title, "titles": self.titles, "pages": self.pages}
        return json.dumps(value | {"outlinks": list(self.outlinks), "structure": list(self.structure)})

    @classmethod
    def from_json(cls, text: str) -> SiteFingerprint:
        value = json.loads(text)
        title = value["title"]
        counts = title if isinstance(title, dict) else dict.fromkeys(title, 1)  # a list in earlier versions
        # Earlier versions have neither outlinks nor structure.
        outlinks, structure = (dict.fromkeys(value.get(name, ())) for name in ("outlinks", "structure"))
        return cls(dict.fromkeys(value["links"]), counts, value["pages"], value.get("titles", 0), outlinks, structure)


def same_site(uri: str, other: str) -> bool:
    """Whether two addresses are of one site: the same host, with or without `www.`."""
    return _host(uri) == _host(other) and _host(uri) != ""
