"""A story recovered without sockets: the captures a recovery would take, by the same decisions.

Hides: the wiring of listing, looks, judge and fingerprint. `taken` returns the capture that is taken for each address,
and whether it is offered for review instead.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from dataclasses import dataclass

from experiments.site_stories import Capture, Story

from recollect.recovery.canonical import visit_key
from recollect.recovery.choose import Candidate
from recollect.recovery.examine import examine_content
from recollect.recovery.fingerprint import page_of
from recollect.recovery.journal import Journal
from recollect.recovery.judge import judge
from recollect.recovery.knowledge import SiteKnowledge
from recollect.recovery.links import Document, read_document
from recollect.recovery.options import Options
from recollect.recovery.owners import own_addresses, owner_evidence, search_ownership
from recollect.recovery.ownership import Observation, Ownership, Standing
from recollect.recovery.records import Recovered
from recollect.recovery.scope import Scope
from recollect.recovery.store import Store


@dataclass(frozen=True)
class Replayed:
    """What a recovery makes of a story."""

    ownership: Ownership
    taken: dict[str, Capture]
    doubtful: dict[str, Capture]
    looks: int


def replay(story: Story) -> Replayed:
    """Recover a story."""
    options = Options(Scope((story.start,)))
    bodies = {(c.uri, c.at): c for c in story.captures}
    looked: list[Candidate] = []
    with Store.in_memory() as store:
        journal = Journal(store)
        rows = [(visit_key(c.uri, options.rules), _candidate(c)) for c in story.captures]
        journal.add_captures(rows)
        repeats = journal.repeated_digests()

        async def observe(candidate: Candidate, front: bool) -> Observation | None:
            looked.append(candidate)
            document = _document(bodies[candidate.uri, candidate.captured_at])
            found = judge(document, candidate.uri, "text/html", repeats=repeats.get(candidate.digest, 1) - 1)
            verdict = found.verdict if found is not None else None
            page = page_of(document, candidate.uri)
            return Observation(candidate.captured_at, page, verdict, front, repeats.get(candidate.digest, 1) - 1)

        front = frozenset([visit_key(story.start, options.rules)])
        evidence = owner_evidence(journal, options, front, frozenset(["archive"]))
        ownership = asyncio.run(search_ownership(evidence, observe))
    site = SiteKnowledge(
        repeats=repeats,
        ownership=ownership,
        addresses=own_addresses(ownership, evidence.listed),
        listed=frozenset(key for key, _ in rows),
        front=front,
    )
    return Replayed(ownership, *_choices(story, site, options), len(looked))


def _choices(story: Story, site: SiteKnowledge, options: Options) -> tuple[dict[str, Capture], dict[str, Capture]]:
    taken: dict[str, Capture] = {}
    doubtful: dict[str, Capture] = {}
    order = sorted(story.captures, key=lambda c: c.at, reverse=True)
    for capture in [*[c for c in order if c.uri == story.start], *[c for c in order if c.uri != story.start]]:
        if capture.uri in taken or site.ownership.standing(capture.at) is Standing.FOREIGN:
            continue
        document = _document(capture)
        digest = _candidate(capture).digest
        resource = _resource(capture, options)
        rejection = examine_content(resource, document, capture.body, site, options, index_digest=digest)
        if rejection is None:
            taken[capture.uri] = capture
            if site.ownership.periods and site.ownership.standing(capture.at) is Standing.OWN:
                site.ownership.fingerprint.learn(page_of(document, capture.uri))
        elif not rejection.certain:
            doubtful.setdefault(capture.uri, capture)
    return taken, {uri: capture for uri, capture in doubtful.items() if uri not in taken}


def _document(capture: Capture) -> Document:
    document = read_document(capture.body, capture.uri, "text/html", "utf-8")
    assert document is not None
    return document


def _candidate(capture: Capture) -> Candidate:
    digest = hashlib.sha1(capture.body, usedforsecurity=False).hexdigest()
    return Candidate("archive", capture.uri, capture.at, capture.status, "text/html", digest, len(capture.body))


def _resource(capture: Capture, options: Options) -> Recovered:
    from pathlib import Path

    key = visit_key(capture.uri, options.rules)
    where = ("archive", f"http://archive.example/{capture.stamp}/{capture.uri}", 200, (), "text/html", "utf-8", "")
    return Recovered(key, capture.uri, capture.at, *where, "", len(capture.body), Path(), capture.at)


def errors_of(story: Story, done: Replayed) -> Counter[str]:
    """How a recovery did: pages of others taken, own pages lost, and the date of the end."""
    counts: Counter[str] = Counter()
    own = {c.uri for c in story.captures if c.owner == "owner"}
    counts["own pages"] = len(own)
    counts["foreign taken"] = sum(c.owner != "owner" for c in done.taken.values())
    counts["foreign offered"] = sum(c.owner != "owner" for c in done.doubtful.values())
    counts["own lost"] = sum(uri not in done.taken for uri in own)
    counts["own offered"] = sum(uri in done.doubtful and done.doubtful[uri].owner == "owner" for uri in own)
    ended = done.ownership.ended_at
    foreign = [c.at for c in story.captures if c.owner != "owner" and c.uri == story.start]
    wrong = (ended is None) != (story.ended_at is None)
    if ended is not None and story.ended_at is not None:
        late = min((at for at in foreign if at >= story.ended_at), default=story.ended_at)
        wrong = not story.ended_at <= ended <= max(late, story.ended_at)
    counts["end wrong"] = int(wrong)
    counts["looks"] = done.looks
    return counts
