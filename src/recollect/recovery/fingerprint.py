"""Is a page still of this site? Signals against what is known of the site's past.

Hides: the signals and their thresholds. Pure. A `SiteFingerprint` gathers what several pages of a site's past had:
addresses they linked to on the site itself, words of titles, and the weight of words in their texts. A new page is
compared:

- links: the share of its own links (same host) that the past had; addresses that sites of all kinds have (`/about`,
  `/contact`) do not count,
- title: the share of its title's words that the past had in titles; or half of the site's name, which is what at
  least half of the titles of the past have,
- text: the cosine of its words with those of the past (TF-IDF over the pages it learned).

Each below its threshold is a signal of foreign content; two of three that can be judged make a page foreign. Links and
titles distinguish far better than text, and one page alone says little: a redesign keeps addresses and names, a
takeover keeps neither. A page with too little of each to judge is foreign, too, if the site had links and text.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from recollect.recovery.links import Document

LINKS_KNOWN = 0.10
TITLE_KNOWN = 0.25
TEXT_ALIKE = 0.25
FEWEST_LINKS = 3
FEWEST_WORDS = 30
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
_WORD = re.compile(r"[^\W\d_]{3,}")


@dataclass(frozen=True, slots=True)
class Page:
    """What identifies a page: own links (paths), words of the title, words of the text with their counts."""

    links: frozenset[str]
    title: frozenset[str]
    words: Counter[str]


EMPTY = Page(frozenset(), frozenset(), Counter())
"""A page that shows nothing, or something that is not a page."""


def page_of(document: Document, uri: str) -> Page:
    """The page of a document."""
    host = _host(uri)
    own = (urlsplit(link.uri).path or "/" for link in document.links if not link.embedded and _host(link.uri) == host)
    words = Counter(word.lower() for word in _WORD.findall(document.text))
    title = frozenset(word.lower() for word in _WORD.findall(document.title))
    return Page(
        frozenset(path for path in own if not _is_generic(path)), title, Counter(dict(words.most_common(MOST_WORDS)))
    )


def _is_generic(path: str) -> bool:
    """Whether an address is one that sites of all kinds have: it does not distinguish one from another."""
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

    @property
    def foreign(self) -> bool:
        """Whether two signals say that the page is not of this site."""
        return self.alarms >= 2

    @property
    def alarms(self) -> int:
        thresholds = ((self.links, LINKS_KNOWN), (self.title, TITLE_KNOWN), (self.text, TEXT_ALIKE))
        return sum(value is not None and value < threshold for value, threshold in thresholds)


@dataclass
class SiteFingerprint:
    """What is known of a site's pages; bounded, the newest pages replace the oldest."""

    links: dict[str, None] = field(default_factory=dict)
    title: dict[str, int] = field(default_factory=dict)
    """Words of titles, and the number of titles that had them."""
    pages: list[dict[str, int]] = field(default_factory=list)
    titles: int = 0
    """The number of titles."""

    def learn(self, page: Page) -> None:
        """Add a page that is known to be of the site."""
        for one in sorted(page.links):
            self.links.pop(one, None)
            self.links[one] = None
        for word in sorted(page.title):
            self.title[word] = self.title.pop(word, 0) + 1
        self.titles += bool(page.title)
        for known in (self.links, self.title):
            while len(known) > MOST_LINKS:
                del known[next(iter(known))]
        if page.words.total() >= FEWEST_WORDS and dict(page.words) not in self.pages:
            self.pages = [*self.pages, dict(page.words)][-MOST_PAGES:]

    def compare(self, page: Page) -> Signals:
        """What the past says of a page."""
        links = title = text = None
        if len(page.links) >= FEWEST_LINKS and self.links:
            links = sum(one in self.links for one in page.links) / len(page.links)
        if page.title and self.title:
            title = max(sum(one in self.title for one in page.title) / len(page.title), self._named(page.title))
        if page.words.total() >= FEWEST_WORDS and self.pages:
            text = self._cosine(page.words)
        if links is None and text is None and not title and self.links and self.pages:
            return Signals(0.0, title, 0.0)  # nothing of a site that had links and text is left
        return Signals(links, title, text)

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
        return json.dumps(value)

    @classmethod
    def from_json(cls, text: str) -> SiteFingerprint:
        value = json.loads(text)
        title = value["title"]
        counts = title if isinstance(title, dict) else dict.fromkeys(title, 1)  # a list in earlier versions
        return cls(dict.fromkeys(value["links"]), counts, value["pages"], value.get("titles", 0))


def same_site(uri: str, other: str) -> bool:
    """Whether two addresses are of one site: the same host, with or without `www.`."""
    return _host(uri) == _host(other) and _host(uri) != ""
