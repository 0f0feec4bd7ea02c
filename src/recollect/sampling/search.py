"""Sampling by full-text search: a searcher whose vocabulary grows from the results.

Hides: the dialects of search interfaces and how the next words are chosen. It begins with the seed terms; titles and
snippets of results teach new words, and the next query is a word drawn at random among those not asked yet, seed terms
first (the random searcher of Alam et al., "Web Archive Profiling Through Fulltext Search", 2016, section 4).

Dialects:

- `arquivo`: Arquivo.pt's TextSearch (`q`, `maxItems`, `offset`; JSON with `response_items`);
- `solrwayback`: SolrWayback's search results (`query`, `start`; JSON with `response.docs`).
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from recollect.archives.registry import Archive, SearchDialect
from recollect.archives.transport import Request, Sender
from recollect.errors import ArchiveError, BadAnswer, UsageError
from recollect.model import ProgressCallback
from recollect.sampling.asking import ProbeCounts, ask_all
from recollect.sampling.journal import Journal, Kind, Outcome

RESULTS = 50
_WORD = re.compile(r"[^\W\d_]{4,24}")
_TAGS = re.compile(r"<[^<>]*+>")
_TIMES = ("tstamp", "timestamp", "wayback_date", "crawl_date")
_MEDIA_TYPES = ("mimeType", "mime", "content_type_norm", "content_type")
_LANGUAGES = ("language", "lang", "content_language")
_MOST_WORDS = 60  # kept of one answer: a journal of 200 queries stays below a megabyte


@dataclass(frozen=True, slots=True)
class Found:
    """One result: the URI of a page, words of its title and snippet, and what the search says of the capture."""

    uri: str
    text: str
    timestamp: str = ""
    media_type: str = ""
    language: str = ""


def search_url(archive: Archive, terms: str, results: int) -> str:
    """The address that answers a query."""
    address, asked = archive.search, quote(terms)
    mark = "&" if "?" in address else "?"
    if archive.search_dialect is SearchDialect.SOLRWAYBACK:
        return f"{address}{mark}query={asked}&start=0&rows={results}&grouping=false"
    return f"{address}{mark}q={asked}&offset=0&maxItems={results}"


def parse_results(body: bytes, dialect: SearchDialect) -> list[Found]:
    """The results of an answer; raises ValueError where it has another shape."""
    answer = json.loads(body)
    if dialect is SearchDialect.SOLRWAYBACK:
        items = answer["response"]["docs"]
        address: tuple[str, ...] = ("url", "url_norm")
        words: tuple[str, ...] = ("title", "content", "description")
    else:
        items, address = answer["response_items"], ("originalURL",)
        words = ("title", "snippet")
    if not isinstance(items, list):
        raise ValueError("the results are not a list")
    found = []
    for item in items:
        uri = next((item[name] for name in address if isinstance(item.get(name), str)), "")
        if re.match(r"https?://", uri, re.IGNORECASE):
            text = " ".join(_text(item.get(name)) for name in words)
            found.append(Found(uri, text, *(_first(item, names) for names in (_TIMES, _MEDIA_TYPES, _LANGUAGES))))
    return found


def _first(item: dict[str, Any], names: Iterable[str]) -> str:
    """The first of some members that is there, as text; digits only of a time."""
    value = next((item[name] for name in names if item.get(name)), "")
    value = value[0] if isinstance(value, list) and value else value
    return re.sub(r"\D", "", str(value))[:14] if names is _TIMES else str(value)[:100]


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return _TAGS.sub(" ", value) if isinstance(value, str) else ""


class Vocabulary:
    """Words to ask for: the seed in its order, then learned ones at random; no word twice."""

    def __init__(self, seed: Iterable[str], chance: random.Random, *, learn: bool = True) -> None:
        self._seed = list(dict.fromkeys(term.strip() for term in seed if term.strip()))
        self._learn = learn
        self._learned: list[str] = []
        self._known = {term.lower() for term in self._seed}
        self._chance = chance

    def learn(self, words: Iterable[str]) -> None:
        """Take up words of results."""
        for word in words if self._learn else ():
            if word not in self._known:
                self._known.add(word)
                self._learned.append(word)

    def forget(self, asked: Iterable[str]) -> None:
        """Leave out what an earlier run asked for."""
        gone = {term.lower() for term in asked}
        self._known |= gone
        self._seed = [term for term in self._seed if term.lower() not in gone]
        self._learned = [term for term in self._learned if term.lower() not in gone]

    def take(self) -> str | None:
        """The next query, or None when no word is left."""
        if self._seed:
            return self._seed.pop(0)
        if not self._learned:
            return None
        place = self._chance.randrange(len(self._learned))
        self._learned[place], self._learned[-1] = self._learned[-1], self._learned[place]
        return self._learned.pop()


def words_of(results: Iterable[Found]) -> list[str]:
    """Words that results teach, each once, in their order."""
    words = (word.lower() for found in results for word in _WORD.findall(found.text))
    return list(dict.fromkeys(words))


async def sample_search(
    client: Sender,
    archive: Archive,
    terms: Iterable[str],
    queries: int,
    journal: Journal,
    *,
    results: int = RESULTS,
    learn: bool = True,
    seed: int = 1,
    progress: ProgressCallback | None = None,
) -> ProbeCounts:
    """Ask queries until `queries` were answered, those of earlier runs included, or no word is left."""
    if not archive.search:
        raise UsageError(
            "this archive has no full-text search",
            where=archive.id,
            hint="add `search` to its entry in the list of archives (docs/archives.md)",
        )
    chance = random.Random(seed)
    vocabulary = Vocabulary(terms, chance, learn=learn)
    earlier = [e for e in journal.entries if e.kind is Kind.QUERY and e.outcome is Outcome.DONE]
    for entry in earlier:
        vocabulary.learn(entry.data["words"])
    vocabulary.forget(entry.data["terms"] for entry in earlier)
    left = queries - len(earlier)

    def questions() -> Iterable[str]:
        for _ in range(left):
            taken = vocabulary.take()
            if taken is None:
                return
            yield taken

    async def ask(asked: str) -> None:
        found = await _search(client, archive, asked, results)
        words = words_of(found)
        chance.shuffle(words)
        kept = words[:_MOST_WORDS]
        vocabulary.learn(kept)
        captures = [[one.timestamp, one.media_type, one.language] for one in found]
        stated = {"captures": captures} if any(map(any, captures)) else {}
        journal.write(Kind.QUERY, Outcome.DONE, terms=asked, uris=[one.uri for one in found], words=kept, **stated)

    failed = _failure(journal)
    return await ask_all(questions(), ask, failed, total=left, stage="searching", at_once=1, progress=progress)


def _failure(journal: Journal) -> Callable[[str, ArchiveError], None]:
    def failed(asked: str, error: ArchiveError) -> None:
        journal.write(Kind.QUERY, Outcome.ERROR, terms=asked, why=str(error))

    return failed


async def _search(client: Sender, archive: Archive, terms: str, results: int) -> list[Found]:
    response = await client.send(Request(archive, search_url(archive, terms, results)))
    if response.status >= 300:
        raise BadAnswer("the search was refused", where=archive.id, why=f"status {response.status}")
    try:
        return parse_results(response.body, archive.search_dialect)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadAnswer("the search answered in another form", where=archive.id, why=repr(error)) from error
