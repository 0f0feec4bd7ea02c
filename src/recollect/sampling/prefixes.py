"""Sampling by listings: what an archive's CDX interface lists below domains, hosts and paths.

Hides: how a key becomes a question (`com,example,*` a domain, `com,example)/*` a host, `com,example)/a/*` a prefix,
`com,example)/a` one URI) and the pages of a listing, which continue where an earlier run stopped.

A listing is complete only if nothing suggests that more follows or that the archive answered another question: every
row can be read, has a key, and lies below the prefix. Only a complete listing that is empty says no.
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
from recollect.sampling.asking import AT_ONCE, ProbeCounts, ask_all
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
    if len(text.split()) != 1:
        raise BadURI("not a domain, key or URL", where=repr(text[:80]))
    wild = text.endswith("*")
    if text == "*" or "," in text.partition(")")[0].partition("/")[0] or is_surt(text.rstrip("*")):
        return _of_key(text.encode("utf-8", "surrogateescape"))
    bare = text.removesuffix("*").removesuffix(",")
    rest = bare.partition("://")[2] or bare
    host, slash, _ = rest.partition("/")
    if "://" not in bare and not slash:
        key = key_of_uri(f"http://{host.removeprefix('*.')}/").removesuffix(b")/")
        return _of_key(key + b",*")
    uri = bare if "://" in bare else f"http://{bare}"
    key = key_of_uri(uri)
    if not wild:
        return Prefix(key, uri, "exact")
    return _of_key(key.rstrip(b"/") + b"/*")


def _of_key(text: bytes) -> Prefix:
    mark = b"/*" if text.endswith(b"/*") else b",*" if text.endswith(b",*") else b""
    exact = text.removesuffix(mark)
    if exact.endswith(b"*"):
        if exact == b"*":
            raise _too_wide(text)
        raise BadURI("not a wildcard", where=repr(text.decode("utf-8", "replace")[:80]), why="it ends in /* or ,*")
    closed = uri_key(exact if b")" in exact else exact + b")/")
    hosts, path = segments(closed)
    if mark == b",*":
        key = closed.partition(b")")[0] + mark
        if len(hosts) == 1 and b"," not in hosts[0] and not hosts[0].startswith(b"["):
            raise _too_wide(key)
    else:
        key = closed.rstrip(b"/") + mark if mark else closed
    port = hosts[-1].decode() if hosts[-1].startswith(b":") else ""
    names = [one.decode() for one in hosts if not one.startswith(b":")]
    host = ".".join(part for name in reversed(names) for part in reversed(name.split(","))) + port
    address = "/".join(segment.decode() for segment in path)
    if mark == b",*":
        return Prefix(key, host, "domain")
    if mark and not path:
        return Prefix(key, host, "host")
    if mark:
        return Prefix(key, f"{host}/{address}", "prefix")
    return Prefix(key, f"http://{host}/{address}", "exact")


def _too_wide(key: bytes) -> UsageError:
    return UsageError("too wide to list", where=key.decode("utf-8", "replace"), hint="list domains: com,example,*")


async def sample_prefixes(
    client: Sender,
    archive: Archive,
    prefixes: Iterable[Prefix],
    journal: Journal,
    *,
    at_once: int = AT_ONCE,
    progress: ProgressCallback | None = None,
) -> ProbeCounts:
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
    strays = 0
    for row in page.rows:
        try:
            key = key_of_uri(row.uri)
        except BadURI:
            strays += 1
            continue
        if covers(prefix.key, key):
            keys[key.decode()] += 1
        elif not _same_letters(prefix, key):
            strays += 1
    why = page.cut or (f"{page.unread} rows could not be read" if page.unread else "")
    why = why or (f"{strays} rows are not below {prefix.key.decode()}" if strays else "")
    outcome = Outcome.PAGE if page.cursor else Outcome.CUT if why else Outcome.COMPLETE
    journal.write(
        Kind.PREFIX,
        outcome,
        key=prefix.key.decode(),
        cursor=page.cursor,
        captures=keys.total(),
        keys=keys,
        why=why,
    )


def _same_letters(prefix: Prefix, key: bytes) -> bool:
    """Whether a key is beside a path prefix, such as `/ab` beside `/a/*`: servers compare letters, not segments."""
    return prefix.match == "prefix" and key.startswith(prefix.key.removesuffix(b"/*"))
