"""Sampling by known URIs: choose some of a list, ask the archive about each.

Hides: how the sample is drawn. Each key of the list has a place that depends on the key and the seed alone, and the
first N places are asked about: the same command goes on where it stopped, and more probes extend the same sample. With
`stratify="tld"` places are spread so that a top-level domain gets probes in proportion to the square root of its
share of the list: rare ones are not left out.

A list of any length is read once; what is kept is bounded by the number of probes for each top-level domain.
"""

from __future__ import annotations

import hashlib
import heapq
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from recollect.archives.probe import sighted
from recollect.archives.registry import Archive
from recollect.archives.transport import Sender
from recollect.errors import ArchiveError, BadURI
from recollect.model import ProgressCallback
from recollect.sampling.asking import AT_ONCE, ProbeCounts, ask_all
from recollect.sampling.journal import Journal, Kind, Outcome
from recollect.uris import key_of_uri

Stratify = Literal["", "tld"]


@dataclass(frozen=True, slots=True)
class Draw:
    """The chosen URIs by key, and the list they come from."""

    chosen: dict[bytes, str]
    uris: int
    """URIs in the list; a URI that is chosen and stands there twice counts once."""
    strata: dict[str, int]
    bad: int


def draw(
    uris: Iterable[str],
    probes: int,
    *,
    seed: int = 1,
    stratify: Stratify = "",
    on_bad: Callable[[BadURI], None] | None = None,
) -> Draw:
    """Choose `probes` URIs of a list; lines that are not URIs are counted, and reported as they are read."""
    heaps: dict[bytes, list[tuple[int, bytes, str]]] = {}
    sizes: dict[bytes, int] = {}
    kept: dict[bytes, set[bytes]] = {}
    bad = 0
    for line in uris:
        uri = line.strip()
        try:
            if len(uri.split()) != 1:
                raise BadURI("not a URI", where=uri[:80])
            key = key_of_uri(uri)
        except BadURI as error:
            bad += 1
            if on_bad is not None:
                on_bad(error)
            continue
        stratum = key.partition(b")")[0].partition(b",")[0] if stratify else b""
        place = int.from_bytes(hashlib.blake2b(key, digest_size=8, salt=b"%d" % (seed % 10**15)).digest(), "big")
        heap, known = heaps.setdefault(stratum, []), kept.setdefault(stratum, set())
        if key in known:
            continue
        sizes[stratum] = sizes.get(stratum, 0) + 1
        if len(heap) < probes:
            known.add(key)
            heapq.heappush(heap, (-place, key, uri))
        elif -place > heap[0][0]:
            known.add(key)
            known.discard(heapq.heapreplace(heap, (-place, key, uri))[1])
    ranked: list[tuple[float, int, bytes, str]] = []
    for stratum, heap in heaps.items():
        for rank, (place, key, uri) in enumerate(sorted(heap, reverse=True)):
            ranked.append(((rank + 0.5) / math.sqrt(sizes[stratum]), -place, key, uri))
    first = heapq.nsmallest(probes, ranked)
    strata = {stratum.decode("utf-8", "replace"): size for stratum, size in sizes.items()}
    return Draw({key: uri for _, _, key, uri in first}, sum(sizes.values()), strata, bad)


async def sample_uris(
    client: Sender,
    archive: Archive,
    drawn: Draw,
    journal: Journal,
    *,
    source: str = "",
    at_once: int = AT_ONCE,
    progress: ProgressCallback | None = None,
) -> ProbeCounts:
    """Ask about every chosen URI that was not answered before."""
    answered = {e.data["key"] for e in journal.entries if e.kind is Kind.URI and e.outcome is not Outcome.ERROR}
    todo = [(key, uri) for key, uri in drawn.chosen.items() if key.decode() not in answered]
    frames = [entry.data for entry in journal.entries if entry.kind is Kind.FRAME]
    if not frames or frames[-1] != {"source": source, "uris": drawn.uris, "strata": drawn.strata}:
        journal.write(Kind.FRAME, source=source, uris=drawn.uris, strata=drawn.strata)

    async def ask(question: tuple[bytes, str]) -> None:
        key, uri = question
        found = await sighted(client, archive, uri)
        listed = {"years": found.years, "media_types": found.media_types, "languages": found.languages}
        listed = {name: counts for name, counts in listed.items() if counts}
        journal.write(Kind.URI, Outcome.HELD if found.held else Outcome.ABSENT, uri=uri, key=key.decode(), **listed)

    def failed(question: tuple[bytes, str], error: ArchiveError) -> None:
        journal.write(Kind.URI, Outcome.ERROR, uri=question[1], key=question[0].decode(), why=str(error))

    return await ask_all(todo, ask, failed, total=len(todo), stage="asking", at_once=at_once, progress=progress)
