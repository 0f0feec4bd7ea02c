"""Links to other domains: which of them are hidden, and which are new on most pages at once.

Hides: markup and thresholds. Pure. Search spam is put into the templates of a site that was broken into, so its links
are on all pages from one day to the next, often where no reader sees them. One new link in a footer is not spam: three
domains that the site never linked to, or one that is hidden, have to be new on most pages.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from lxml import etree, html

FEWEST_PAGES = 3
MOST_SHARE = 0.5
FEWEST_VISIBLE = 3
MOST_DOMAINS = 2000
_LONGEST_STYLE = 10_000
_HIDDEN = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|(?:left|top|text-indent|margin-left)\s*:\s*-\d{3,}"
    r"|font-size\s*:\s*0(?:px|em|pt)?\s*(?:;|$)|(?:height|width)\s*:\s*[01](?:px)?\s*(?:;|$)"
    r"|opacity\s*:\s*0(?:\.0+)?\s*(?:;|$)",
    re.IGNORECASE,
)
_RULE = re.compile(r"([^{}]{1,200})\{([^{}]{0,500})\}")
_NAME = re.compile(r"[.#][\w-]+")
_MOST_STYLE = 100_000


@dataclass(frozen=True, slots=True)
class OutsideLinks:
    """Domains that a page links to, beside its own; those only in parts that are not shown."""

    domains: frozenset[str]
    hidden: frozenset[str]


def outside_links(body: bytes, url: str, domain_of: Callable[[str], str]) -> OutsideLinks:
    """The domains that a page links to. `domain_of` gives the registered domain of a URI, or its host."""
    try:
        root = html.document_fromstring(body) if body.strip() else None
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        root = None
    if root is None:
        return OutsideLinks(frozenset(), frozenset())
    own = domain_of(url)
    hiding = _hiding_names(root)
    shown: set[str] = set()
    hidden: set[str] = set()
    unseen: set[html.HtmlElement] = set()  # elements that are not shown, or are in one that is not
    for element in root.iter(etree.Element):
        if element.getparent() in unseen or _is_hidden(element, hiding):
            unseen.add(element)
        if element.tag == "a":
            domain = _domain(element.get("href") or "", url, domain_of)
            if domain and domain != own:
                (hidden if element in unseen else shown).add(domain)
    return OutsideLinks(frozenset(shown | hidden), frozenset(hidden - shown))


def _domain(href: str, url: str, domain_of: Callable[[str], str]) -> str:
    try:
        target = urljoin(url, href.strip())
        split = urlsplit(target)
    except ValueError:
        return ""
    return domain_of(target) or (split.hostname or "") if split.scheme in ("http", "https") and split.hostname else ""


def _hiding_names(root: html.HtmlElement) -> frozenset[str]:
    """Classes (`.name`) and ids (`#name`) that a style sheet in the page hides by a rule of their own."""
    names: set[str] = set()
    for style in root.iter("style"):
        for rule in _RULE.finditer((style.text_content() or "")[:_MOST_STYLE]):
            if _HIDDEN.search(rule[2]):
                names.update(one.strip() for one in rule[1].split(","))
    return frozenset(name for name in names if _NAME.fullmatch(name))


def _is_hidden(element: html.HtmlElement, hiding: frozenset[str]) -> bool:
    """Whether an element is hidden by itself."""
    if element.get("hidden") is not None or _HIDDEN.search((element.get("style") or "")[:_LONGEST_STYLE]):
        return True
    names = {f".{name}" for name in (element.get("class") or "").split()} | {f"#{element.get('id')}"}
    return bool(names & hiding)


def injected(pages: Iterable[OutsideLinks], known: Iterable[str], unchanged: int = 0) -> tuple[str, ...]:
    """Domains that are new on most pages at once, if that looks like spam; else none. `unchanged` pages were not read
    and have no new links."""
    seen = list(pages)
    if len(seen) < FEWEST_PAGES:
        return ()
    before = {*known}
    counts = Counter(domain for page in seen for domain in page.domains - before)
    hiding = Counter(domain for page in seen for domain in page.hidden - before)
    most = MOST_SHARE * (len(seen) + unchanged)
    everywhere = sorted(domain for domain, count in counts.items() if count > most)
    concealed = sorted(domain for domain, count in hiding.items() if count > most)
    return tuple(everywhere if len(everywhere) >= FEWEST_VISIBLE else concealed)
