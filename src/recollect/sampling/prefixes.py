"""Sampling by listings: what an archive's CDX interface lists below domains, hosts and paths.

Hides: how a key becomes a question (`com,example,*` a domain, `com,example)/*` a host, `com,example)/a/*` a prefix,
`com,example)/a` one URI) and the pages of a listing, which continue where an earlier run stopped.

A listing counts as complete only if nothing suggests that more follows; only a complete listing that is empty says no.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from recollect.archives.listing import Match, Page, Query, list_captures
from recollect.archives.registry import Archive
from recollect.archives.transport import Sender
from recollect.errors import ArchiveError, BadURI, UsageError
from recollect.model import ProgressCallback
from recollect.sampling.asking import AT_ONCE, Tally, ask_all
from recollect.sampling.journal import Journal, Kind, Outcome
from recollect.uris import covers, is_surt, key_of_uri, segments, uri_key

MOST_PAGES = 1000


@dataclass(frozen=True, slots=True)
class Prefix:
    """A key to list, and the question that lists it."""

    key: bytes
    uri: str
    match: Match


def prefix_of(text: str) -> Prefix:
    """The prefix of a line: a key or wildcard of a map, a domain (`example.com`), or a URI with or without `*`."""
    wild = text.endswith("*")
    if text == "*" or "," in text.partition(")")[0] or is_surt(text.rstrip("*")):
        return _of_key(text.encode())
    bare = text.removesuffix("*").removesuffix(",")
    rest = bare.partition("://")[2] or bare
    host, slash, _ = rest.partition("/")
    if "://" not in bare and not slash:
        key = key_of_uri(f"http://{host.removeprefix('*.')}/").removesuffix(b")/")
        return _of_key(key + b",*")
    key = key_of_uri(bare if "://" in bare else f"http://{bare}")
    if not wild:
        return _of_key(key)
    return _of_key(key.rstrip(b"/") + b"/*")


def _of_key(key: bytes) -> Prefix:
    if key == b"*" or (key.endswith(b",*") and b"," not in key[:-2]):
        raise UsageError("too wide to list", where=key.decode(), hint="list domains: com,example,*")
    exact = key.removesuffix(b"/*").removesuffix(b",*")
    if b")" not in exact:
        exact += b")/"
    hosts, path = segments(uri_key(exact))
    port = hosts[-1].decode() if hosts[-1].startswith(b":") else ""
    names = [one.decode() for one in hosts if not one.startswith(b":")]
    host = ".".join(reversed(names[0].split(",") if len(names) == 1 else names)) + port
    address = "/".join(segment.decode() for segment in path)
    if key.endswith(b",*"):
        return Prefix(key, host, "domain")
    if key.endswith(b")/*"):
        return Prefix(key, host, "host")
    if key.endswith(b"/*"):
        return Prefix(key, f"{host}/{address}", "prefix")
    return Prefix(key, f"http://{host}/{address}", "exact")


async def sample_prefixes(
    client: Sender,
    archive: Archive,
    prefixes: Iterable[Prefix],
    journal: Journal,
    *,
    at_once: int = AT_ONCE,
    progress: ProgressCallback | None = None,
) -> Tally:
    """List every prefix that was not listed before."""
    if not archive.cdx:
        raise UsageError("this archive has no CDX interface", where=archive.id, hint="recollect sample uris")
    cursors: dict[str, str | None] = {}
    for entry in journal.entries:
        if entry.kind is Kind.PREFIX and entry.outcome is not Outcome.ERROR:
            cursors[entry.data["key"]] = entry.data["cursor"] if entry.outcome is Outcome.PAGE else None
    todo = [one for one in dict.fromkeys(prefixes) if cursors.get(one.key.decode(), "") is not None]

    async def ask(prefix: Prefix) -> None:
        cursor = cursors.get(prefix.key.decode()) or ""
        for _ in range(MOST_PAGES):
            page = await list_captures(client, archive, Query(prefix.uri, prefix.match), cursor)
            _write(journal, prefix, page)
            cursor = page.cursor
            if not cursor:
                return

    def failed(prefix: Prefix, error: ArchiveError) -> None:
        journal.write(Kind.PREFIX, Outcome.ERROR, key=prefix.key.decode(), why=str(error))

    return await ask_all(todo, ask, failed, total=len(todo), stage="listing", at_once=at_once, progress=progress)


def _write(journal: Journal, prefix: Prefix, page: Page) -> None:
    keys: Counter[str] = Counter()
    for row in page.rows:
        try:
            key = key_of_uri(row.uri)
        except BadURI:
            continue
        if covers(prefix.key, key):
            keys[key.decode()] += 1
    whole = not page.cut and not page.unread
    outcome = Outcome.PAGE if page.cursor else Outcome.COMPLETE if whole else Outcome.CUT
    why = page.cut or (f"{page.unread} rows could not be read" if page.unread else "")
    journal.write(
        Kind.PREFIX,
        outcome,
        key=prefix.key.decode(),
        cursor=page.cursor,
        captures=keys.total(),
        keys=keys,
        why=why,
    )
