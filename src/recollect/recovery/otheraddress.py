"""Pages that no archive holds under the address that links give, and that it holds under another address of the page.

Hides: where evidence comes from. Redirects that archives captured, canonical links of recovered pages, equal bytes in
the listings and equal titles give pairs of addresses of one page; `addressrules` makes rules of them. A gap is filled
only if one address alone results, the page there came back and is not doubtful, and the text of the link that leads to
the gap fits it (Fable's idea: a title that leads from the old address to the new one). Nothing is invented: the
resource stays the one that was archived, and the gap becomes another name of it, marked with the rule.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from recollect.errors import BadURI, FormatError
from recollect.recovery.addressrules import AddressRule, Evidence, Pair, learn_rules
from recollect.recovery.canonical import resolve, visit_key
from recollect.recovery.fingerprint import words_of
from recollect.recovery.journal import Journal
from recollect.recovery.links import Document, parse_html, read_document
from recollect.recovery.ownership import Ownership, Standing
from recollect.recovery.records import Missing, Recovered, Substitute
from recollect.recovery.store import Store
from recollect.recovery.verdicts import Reason
from recollect.recovery.warcs import page_title

_MOST_PAGES = 20_000
_HEAD = 65_536
_FEWEST_TITLE_WORDS = 2
_SAMPLE = 24  # pages by which the template of a site is known
_TEMPLATE_SHARE = 0.3
_SAME_TEXT = 0.5  # of the shorter page's text, without the template
_FEWEST_PAIRS = 8
_ADDRESS = re.compile(r"(https?://[^/?#]+)(.*)", re.DOTALL)
_WORD = re.compile(r"\w+")
_CANONICAL = re.compile(rb"rel\s*=\s*[\"']?canonical", re.I)
# Words of links that say nothing of the page they lead to.
_PLAIN = frozenset(
    ("back", "click", "continue", "further", "here", "home", "link", "more", "next", "page", "previous", "read", "this")
)


@dataclass(frozen=True, slots=True)
class Gap:
    """A missing resource and the address that a rule gives for its page."""

    missing: Missing
    key: str
    rule: AddressRule


class OtherAddresses:
    """What a recovery's store shows of addresses that are one page's."""

    def __init__(self, store: Store, ownership: Ownership) -> None:
        self._store = store
        self._ownership = ownership
        self._documents: dict[str, Document | None] = {}
        self._rules: dict[str, list[AddressRule]] = {}
        self._shared: frozenset[tuple[str, str]] | None = None

    def gaps(self) -> list[Gap]:
        """Missing resources for which rules give one other address."""
        missing = [m for m in self._store.missing() if m.reason in (Reason.NEVER_ARCHIVED, Reason.REJECTED)]
        if not missing:
            return []
        self._learn()
        found = []
        for one in missing:
            origin, address = _split(one.key)
            images: dict[str, AddressRule] = {}
            for rule in self._rules.get(origin, ()):
                for image in rule.images(address):
                    images.setdefault(origin + image, rule)
            held = {key: rule for key, rule in images.items() if self._store.find(key) is not None}
            chosen = held or images
            if len(chosen) == 1:
                found.append(Gap(one, *next(iter(chosen.items()))))
        return found

    def substitute(self, gap: Gap) -> Substitute | None:
        """The page that takes the place of a gap; None where none came back, or what came back does not fit."""
        page = self._store.resolve(gap.key)
        if page is None or page.suspect is not None or page.key == gap.missing.key:
            return None
        if not self._fits(gap.missing, page):
            return None
        one = gap.missing
        return Substitute(one.key, one.uri, one.kind, one.found_on, page.key, str(gap.rule), gap.rule.evidence)

    # Evidence --------------------------------------------------------------------------------------------------------

    def _learn(self) -> None:
        pairs: dict[str, list[Pair]] = {}
        for one, other, how in self._pairs():
            (origin, address), (origin_there, there) = _split(one), _split(other)
            if origin == origin_there:
                pairs.setdefault(origin, []).append(Pair(address, there, how))
        known: dict[str, list[str]] = {}
        for resource in self._store.recovered(redirects=False):
            origin, address = _split(resource.key)
            known.setdefault(origin, []).append(address)
        self._rules = {
            origin: learn_rules(
                some,
                known.get(origin, ()),
                lambda a, b, origin=origin: self._same_page(origin + a, origin + b),  # type: ignore[misc]
            )
            for origin, some in pairs.items()
        }

    def _pairs(self) -> Iterator[tuple[str, str, Evidence]]:
        for resource in self._store.recovered():
            if resource.redirect_to is not None and (target := self._key(resource.redirect_to)) is not None:
                yield resource.key, target, Evidence.REDIRECT
        for one, other in self._equal_bytes():
            yield one, other, Evidence.DIGEST
        titles: dict[str, list[str]] = {}
        for resource, content in self._pages():
            canonical = self._canonical(resource, content)
            if canonical is not None and canonical != resource.key:
                yield resource.key, canonical, Evidence.CANONICAL
            title = page_title(content, resource.charset)
            if len(words_of(title)) >= _FEWEST_TITLE_WORDS:
                titles.setdefault(title.casefold(), []).append(resource.key)
        yield from ((*keys, Evidence.TITLE) for keys in titles.values() if len(keys) == 2)  # type: ignore[misc]

    def _equal_bytes(self) -> Iterator[tuple[str, str]]:
        """Two addresses, and no more, that had the same bytes while the site was its owner's."""
        having: dict[str, set[str]] = {}
        for key, capture in Journal(self._store).all_captures():
            if capture.digest and capture.status in (None, 200):
                if self._ownership.standing(capture.captured_at) is Standing.FOREIGN:
                    continue
                having.setdefault(capture.digest, set()).add(key)
        for keys in having.values():
            if len(keys) == 2:
                one, other = sorted(keys)
                yield one, other

    def _pages(self) -> Iterator[tuple[Recovered, bytes]]:
        count = 0
        for resource in self._store.recovered(redirects=False):
            if resource.kind == "page" and resource.suspect is None and count < _MOST_PAGES:
                count += 1
                try:
                    yield resource, self._store.content(resource)[:_HEAD]
                except (OSError, FormatError):
                    continue

    def _canonical(self, resource: Recovered, content: bytes) -> str | None:
        if not _CANONICAL.search(content):
            return None
        root = parse_html(content.decode(resource.charset or "utf-8", "replace"))
        for link in root.iter("link") if root is not None else ():
            if "canonical" in (link.get("rel") or "").lower().split():
                target = resolve(resource.uri, link.get("href") or "")
                return self._key(target) if target else None
        return None

    def _key(self, uri: str) -> str | None:
        try:
            return visit_key(uri, self._store.rules)
        except BadURI:
            return None

    # Content ---------------------------------------------------------------------------------------------------------

    def _same_page(self, one: str, other: str) -> bool | None:
        first, second = self._store.get(one), self._store.get(other)
        if first is None or second is None or first.redirect_to is not None or second.redirect_to is not None:
            return None
        if first.digest == second.digest:
            return True
        left, right = self._document(first), self._document(second)
        if left is None or right is None:
            return False
        one_text, other_text = _word_pairs(left) - self._template(), _word_pairs(right) - self._template()
        fewer = min(len(one_text), len(other_text))
        if fewer < _FEWEST_PAIRS:
            return True if left.title and left.title == right.title else None
        return len(one_text & other_text) >= _SAME_TEXT * fewer

    def _template(self) -> frozenset[tuple[str, str]]:
        """What many pages of the site have, whatever they are about."""
        if self._shared is None:
            pages = [r for r in self._store.recovered(redirects=False) if r.kind == "page"]
            step = max(1, len(pages) // _SAMPLE)
            documents = [document for page in pages[::step] if (document := self._document(page)) is not None]
            having = Counter(pair for document in documents for pair in _word_pairs(document))
            often = max(3, len(documents) * _TEMPLATE_SHARE)
            self._shared = frozenset(pair for pair, count in having.items() if count >= often)
        return self._shared

    def _document(self, resource: Recovered) -> Document | None:
        if resource.key not in self._documents:
            content = self._store.content(resource)
            self._documents[resource.key] = read_document(content, resource.uri, resource.media_type, resource.charset)
        return self._documents[resource.key]

    def _fits(self, missing: Missing, page: Recovered) -> bool:
        """Does the page have any word of the links that lead to the missing address? Links without words of their own
        say nothing against it."""
        named = self._store.get(missing.found_on) if missing.found_on else None
        if named is None or missing.kind != "page":
            return True
        wanted = Counter(self._link_words(named, missing.key))
        document = self._document(page)
        if not wanted or document is None:
            return True
        return bool(wanted.keys() & set(words_of(f"{document.title} {document.text}")))

    def _link_words(self, page: Recovered, key: str) -> Iterable[str]:
        root = parse_html(self._store.content(page).decode(page.charset or "utf-8", "replace"))
        for anchor in _anchors(root):
            target = resolve(page.uri, anchor.get("href") or "")
            if target is not None and self._key(target) == key:
                yield from (word for word in words_of("".join(anchor.itertext())) if word not in _PLAIN)


def _word_pairs(document: Document) -> frozenset[tuple[str, str]]:
    words = _WORD.findall(f"{document.title} {document.text}".lower())
    return frozenset(pairwise(words))


def _anchors(root: Any) -> Iterable[Any]:
    return root.iter("a") if root is not None else ()


def _split(key: str) -> tuple[str, str]:
    match = _ADDRESS.match(key)
    return (match[1], match[2]) if match else (key, "")
