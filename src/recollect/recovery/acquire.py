"""One resource from the archives into the store: decide, ask, fetch, check, judge, until it is had or given up.

Hides: everything between a decision of the plan and a row in the store: revisits, digests, content encodings, bombs,
archived redirects, soft 404s, the live web. Invariants: nothing is kept that was not checked; each try is recorded with
its outcome before the next one; an exception here means a fault of ours, not of an archive.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from recollect.archives.registry import Archive, Rate
from recollect.archives.replay import Replay, Wanted, fetch, unwrap
from recollect.archives.transport import Request, RequestKind
from recollect.errors import AnswerTooBig, ArchiveError, BadURI, FormatError
from recollect.recovery.canonical import split, tidy, visit_key
from recollect.recovery.choose import Candidate, is_content, resolve_revisits
from recollect.recovery.decoding import decoded, effective_encoding, header_charset
from recollect.recovery.journal import Journal, Queued, now_utc
from recollect.recovery.judge import Rejection, judge, judge_redirect
from recollect.recovery.links import Document, read_document
from recollect.recovery.lister import Lister, SiteQuery
from recollect.recovery.meter import Meter, OutOfQuota
from recollect.recovery.options import Options
from recollect.recovery.plan import Ask, Attempt, GiveUp, Holder, Outcome, decide
from recollect.recovery.store import Missing, Payload, PayloadWriter, Recovered, Store

LIVE = "live"
_MAX_PARSED = 32 * 1024 * 1024  # a larger document is kept, not read for links
_DIFFERS = "the bytes are not those of the index (digest differs)"
_LEADS_NOWHERE = "it leads to no page of the site"
_SMALL_SITE = 5  # listed resources; a smaller site may well have a front page without links
_FRONT_TRIES = 12
_TRUST_AFTER = 5  # mismatched digests with never a match: the archive's index and replay simply differ


@dataclass(frozen=True, slots=True)
class Had:
    """A resource that was recovered, and what was read of it."""

    resource: Recovered
    payload: Payload
    document: Document | None


class _Refused(Exception):
    """This capture is not taken; what to record about it."""

    def __init__(self, outcome: Outcome, detail: str, digest: str = "") -> None:
        super().__init__(detail)
        self.outcome = outcome
        self.detail = detail
        self.digest = digest


class Acquirer:
    """Gets resources one by one; used by many workers at once, in one thread."""

    def __init__(
        self,
        store: Store,
        journal: Journal,
        meter: Meter,
        lister: Lister,
        archives: Sequence[Archive],
        options: Options,
        *,
        may_hold: Callable[[Archive, str], bool] = lambda _archive, _uri: True,
        load: Callable[[Archive], float] = lambda _archive: 0.0,
    ) -> None:
        self._store = store
        self._journal = journal
        self._meter = meter
        self._lister = lister
        self._archives = {archive.id: archive for archive in archives}
        self._options = options
        self._may_hold = may_hold
        self._load = load
        self._matched: dict[str, int] = {}  # archive -> digests that agreed, minus those that did not
        self.done_queries: list[tuple[str, SiteQuery]] = []  # (archive, listing that is complete)
        self.empty: set[str] = set()  # archives known to hold nothing of the site
        self.repeats: Mapping[str, int] = {}
        self.front: frozenset[str] = frozenset()  # keys of the start pages
        self.listed: frozenset[str] | set[str] = frozenset()  # keys with content in some listing
        self.ended_at: datetime | None = None  # from when the start page was parked or somebody else's

    async def acquire(self, item: Queued) -> Had | Missing:
        """Get one resource, or say why not."""
        attempts = self._journal.attempts(item.key)
        while True:
            candidates, late = self._candidates(item.key)
            step = decide(
                candidates,
                attempts,
                self._holders(item),
                self._options.wish,
                near=item.near,
                ask_first=self._options.policy == "naive",
            )
            if isinstance(step, GiveUp):
                return await self._last_resort(item, step, attempts, candidates, late)
            try:
                if isinstance(step, Ask):
                    attempt = await self._ask(self._archives[step.archive], item)
                else:
                    result = await self._fetch(item, step.candidate, candidates)
                    if isinstance(result, Had):
                        return result
                    attempt = result
            except OutOfQuota:
                continue  # nothing was tried; the next decision sees the empty budget
            attempts.append(attempt)
            with self._journal.db:
                self._journal.add_attempt(item.key, attempt)

    def _candidates(self, key: str) -> tuple[list[Candidate], list[Candidate]]:
        """Captures of the site's own time, and those from after its end."""
        known = resolve_revisits(self._journal.candidates(key))
        if self.ended_at is None or self._options.keep_suspects:
            return known, []
        return [c for c in known if c.captured_at < self.ended_at], [c for c in known if c.captured_at >= self.ended_at]

    def _holders(self, item: Queued) -> list[Holder]:
        return [
            Holder(
                archive.id,
                covered=self._covered(archive.id, item.key),
                may_hold=self._could_hold(archive, item.uri),
                budget=self._meter.budget(archive.id),
                down=self._meter.down.get(archive.id, ""),
            )
            # Of equal captures the one of the least busy archive is taken.
            for archive in sorted(self._archives.values(), key=self._load)
        ]

    def _covered(self, archive: str, key: str) -> bool:
        return any(name == archive and query.covers(key) for name, query in self.done_queries)

    def _could_hold(self, archive: Archive, uri: str) -> bool:
        if archive.id in self.empty or not (archive.cdx or archive.timemap) or archive.rule(uri) is not None:
            return False
        return self._may_hold(archive, uri)

    async def _ask(self, archive: Archive, item: Queued) -> Attempt:
        try:
            page = await self._lister.ask_one(archive, item.uri, item.key)
        except OutOfQuota:
            raise
        except ArchiveError as error:
            return Attempt(archive.id, item.uri, None, "failed", str(error))
        return Attempt(archive.id, item.uri, None, "answered", f"{len(page.rows)} captures")

    # Fetching ------------------------------------------------------------------------------------------------------

    async def _fetch(self, item: Queued, candidate: Candidate, known: Sequence[Candidate]) -> Had | Attempt:
        def attempt(outcome: Outcome, detail: str, digest: str = "") -> Attempt:
            return Attempt(candidate.archive, candidate.uri, candidate.captured_at, outcome, detail, digest)

        archive = self._archives[candidate.archive]
        source = _source(archive, candidate, known)
        try:
            with self._store.incoming() as incoming:
                replay = await self._meter.patiently(archive, lambda: self._receive(archive, source, incoming))
                return self._accept(item, candidate, replay, incoming, known)
        except _Refused as refusal:
            return attempt(refusal.outcome, refusal.detail, refusal.digest)
        except OutOfQuota:
            raise
        except AnswerTooBig as error:
            return attempt("failed", f"bigger than wanted: {error.why}")
        except ArchiveError as error:
            return attempt("failed", str(error))

    async def _receive(self, archive: Archive, source: Candidate, incoming: PayloadWriter) -> Replay:
        incoming.restart()
        wanted = Wanted(source.uri, source.captured_at, source.locator)
        return await fetch(self._meter, archive, wanted, incoming.write, max_bytes=self._options.max_bytes)

    def _accept(
        self, item: Queued, candidate: Candidate, replay: Replay, incoming: PayloadWriter, known: Sequence[Candidate]
    ) -> Had:
        if replay.standing != "archived":
            raise _Refused(replay.standing, replay.detail)
        if replay.location is None and not is_content(replay.status):
            raise _Refused("rejected", f"archived as status {replay.status}", candidate.digest)
        agreement = self._check_digest(candidate, replay, incoming)
        if agreement == "decoded":
            # The archive packed it for the way; what was archived is what is inside.
            incoming.replace(decoded(incoming.peek(), "gzip"))
            replay = replace(replay, headers=_without(replay.headers, "content-encoding"))
        if replay.rewritten:
            incoming.replace(unwrap(self._archives[candidate.archive], incoming.peek()))
        resource = self._describe(item, candidate, replay, incoming, known)
        resource = replace(resource, altered=agreement == "differs" or replay.rewritten)
        return self._examine(resource, incoming, candidate)

    def _check_digest(self, candidate: Candidate, replay: Replay, incoming: PayloadWriter) -> Agreement:
        """Compare with the index; bytes that differ are refused, unless this archive's bytes always do."""
        if not candidate.digest or candidate.is_redirect:
            return "unknown"
        agreement = compare_digest(candidate.digest, incoming)
        if agreement == "differs" and "chunked" in replay.header("transfer-encoding").lower():
            # Crawlers digest the bytes as they came, chunk sizes included; nobody has those any more.
            return "unknown"
        balance = self._matched.get(candidate.archive, 0)
        if agreement != "differs":
            if agreement != "unknown":
                self._matched[candidate.archive] = max(balance, 0) + 1
            return agreement
        if balance <= 0:
            self._matched[candidate.archive] = balance - 1
        if balance <= -_TRUST_AFTER:
            return "differs"
        raise _Refused("failed", _DIFFERS)

    def _describe(
        self, item: Queued, candidate: Candidate, replay: Replay, incoming: PayloadWriter, known: Sequence[Candidate]
    ) -> Recovered:
        content_type = replay.header("content-type")
        media_type = content_type.partition(";")[0].strip().lower() or candidate.media_type
        return Recovered(
            key=item.key,
            uri=tidy(candidate.uri),
            captured_at=replay.captured_at,
            archive=candidate.archive,
            uri_m=replay.uri_m,
            status=replay.status,
            headers=replay.headers,
            media_type=media_type,
            charset=header_charset(content_type),
            content_encoding=effective_encoding(replay.header("content-encoding"), incoming.peek(65536)),
            digest=incoming.sha1,
            length=incoming.length,
            payload_path=self._store.payload_path(incoming.sha256),
            fetched_at=now_utc(),
            kind=item.kind,
            redirect_to=replay.location,
            found_on=item.found_on,
            other_archives=_others(known, candidate.archive),
        )

    def _examine(self, resource: Recovered, incoming: PayloadWriter, candidate: Candidate) -> Had:
        """Read the content, and refuse what is not the resource."""
        if resource.redirect_to is not None:
            self._check_redirect(resource)
            return Had(resource, incoming.keep(), None)
        document = None
        if incoming.length <= _MAX_PARSED or resource.content_encoding:
            try:
                content = decoded(incoming.peek(), resource.content_encoding)
            except FormatError as error:
                raise _Refused("failed", str(error)) from error
            if len(content) <= _MAX_PARSED:
                document = read_document(content, resource.uri, resource.media_type, resource.charset)
                self._judge(resource, document, content, candidate)
        is_page = document is not None and document.form == "html"
        media_type = resource.media_type or ("text/html" if is_page else "application/octet-stream")
        resource = replace(resource, kind="page" if is_page else "asset", media_type=media_type)
        return Had(resource, incoming.keep(), document)

    def _judge(self, resource: Recovered, document: Document | None, content: bytes, candidate: Candidate) -> None:
        if self._options.keep_suspects:
            return
        repeats = self.repeats.get(candidate.digest, 1) - 1
        rejection = judge(document, resource.uri, resource.media_type, repeats=repeats, content=content)
        if rejection is None and document is not None and document.refresh:
            rejection = self._judge_refresh(resource, document)
        if rejection is None and document is not None and resource.key in self.front:
            rejection = self._judge_front(resource, document)
        if rejection is not None:
            raise _Refused("rejected", f"{rejection.verdict}: {rejection.detail}", candidate.digest)

    def _judge_refresh(self, resource: Recovered, document: Document) -> Rejection | None:
        """A page that holds nothing but a refresh to elsewhere is a redirect in disguise."""
        assert document.refresh is not None
        if len(document.text) > 200 or self._options.scope.holds(document.refresh):
            return None
        return Rejection("redirected-away", f"it sends on to {document.refresh[:200]}")

    def _judge_front(self, resource: Recovered, document: Document) -> Rejection | None:
        """A front page that leads to no page of the site is hardly the site's, while older ones may be.

        This holds in any language, for whatever came after the site. If no capture leads anywhere, the best is taken.
        """
        tried = self._journal.attempts(resource.key)
        if len(self.listed) < _SMALL_SITE or sum(_LEADS_NOWHERE in a.detail for a in tried) >= _FRONT_TRIES:
            return None
        for link in document.links:
            try:
                key = visit_key(link.uri, self._options.rules)
            except BadURI:
                continue
            if key != resource.key and key in self.listed:
                return None
        return Rejection("redirected-away", _LEADS_NOWHERE)

    def _check_redirect(self, resource: Recovered) -> None:
        assert resource.redirect_to is not None
        scope = self._options.scope
        try:
            target_key = visit_key(resource.redirect_to, self._options.rules)
        except BadURI as error:
            raise _Refused("rejected", f"redirected-away: to {resource.redirect_to[:100]!r}") from error
        if target_key == resource.key:
            self._same_place(resource)
        if self._options.keep_suspects:
            return
        rejection = judge_redirect(
            resource.uri,
            resource.redirect_to,
            target_in_scope=scope.holds(resource.redirect_to, embedded=resource.kind == "asset"),
            target_is_home=scope.is_home(resource.redirect_to) and not scope.is_home(resource.uri),
            has_content=any(is_content(c.status) for c in self._journal.candidates(resource.key)),
        )
        if rejection is not None:
            raise _Refused("rejected", f"{rejection.verdict}: {rejection.detail}")

    def _same_place(self, resource: Recovered) -> None:
        """A redirect to another spelling of itself: what it leads to becomes a candidate of its own."""
        assert resource.redirect_to is not None
        spelled = Candidate(resource.archive, resource.redirect_to, resource.captured_at)
        known = any(c.uri == spelled.uri for c in self._journal.candidates(resource.key))
        if not known and not self._covered(resource.archive, resource.key):
            with self._journal.db:
                self._journal.add_captures([(resource.key, spelled)])
        raise _Refused("rejected", "it only leads to another spelling of itself")

    # When the archives have nothing --------------------------------------------------------------------------------

    async def _last_resort(
        self,
        item: Queued,
        step: GiveUp,
        attempts: Sequence[Attempt],
        candidates: Sequence[Candidate],
        late: Sequence[Candidate],
    ) -> Had | Missing:
        second_thoughts = await self._second_thoughts(item, attempts, candidates)
        if second_thoughts is not None:
            return second_thoughts
        if self._options.live_fallback:
            live = await self._live(item)
            if live is not None:
                return live
        if late and step.reason in ("never-archived", "rejected", "out-of-range"):
            assert self.ended_at is not None
            detail = f"hijacked: captured only after the site's end ({self.ended_at:%Y-%m-%d})"
            step = GiveUp("rejected", detail)
        return Missing(item.key, item.uri, step.reason, step.detail, item.kind, item.found_on)

    async def _second_thoughts(
        self, item: Queued, attempts: Sequence[Attempt], candidates: Sequence[Candidate]
    ) -> Had | None:
        """Every capture was tried; one that was only doubtful is better than nothing.

        A front page that leads nowhere is taken as it is, bytes that are not those of the index are marked as altered.
        """
        doubtful = [a for a in attempts if _LEADS_NOWHERE in a.detail] or [a for a in attempts if _DIFFERS in a.detail]
        again = next((c for c in candidates if doubtful and _is_of(doubtful[0], c)), None)
        if again is None:
            return None
        altered = _DIFFERS in doubtful[0].detail
        self.front -= {item.key}
        with contextlib.suppress(OutOfQuota):
            had = await self._fetch(item, replace(again, digest="") if altered else again, candidates)
            if isinstance(had, Had):
                return replace(had, resource=replace(had.resource, altered=altered or had.resource.altered))
        return None

    async def _live(self, item: Queued) -> Had | None:
        """The live web, when it was asked for: marked, and judged like any capture."""
        scheme, host, _, _ = split(item.uri)
        site = Archive(
            id=f"{LIVE}-{re.sub(r'[^a-z0-9.-]', '-', host)}",
            timegate=f"{scheme}://{host}/",
            raw=f"{scheme}://{host}/{{timestamp}}{{uri}}",
            replay_rate=Rate(1, 1),
            concurrency=2,
        )
        try:
            with self._store.incoming() as incoming:
                live = Request(site, item.uri, kind=RequestKind.REPLAY, max_bytes=self._options.max_bytes, hops=0)
                async with self._meter.stream(live) as response:
                    if response.status != 200:
                        return None
                    async for chunk in response:
                        incoming.write(chunk)
                    headers = tuple(response.headers)
                replay = Replay("archived", 200, item.uri, now_utc(), headers)
                candidate = Candidate(LIVE, item.uri, replay.captured_at)
                resource = replace(self._describe(item, candidate, replay, incoming, ()), live=True)
                return self._examine(resource, incoming, candidate)
        except (ArchiveError, _Refused):
            return None


def _is_of(attempt: Attempt, candidate: Candidate) -> bool:
    return (attempt.archive, attempt.uri, attempt.captured_at) == (
        candidate.archive,
        candidate.uri,
        candidate.captured_at,
    )


def _source(archive: Archive, candidate: Candidate, known: Sequence[Candidate]) -> Candidate:
    """Where the bytes are: for a revisit record that is fetched by its place, the record whose bytes it repeats."""
    if "{filename}" not in archive.raw or not candidate.revisit:
        return candidate
    twins = [c for c in known if c.archive == archive.id and c.digest == candidate.digest and not c.revisit]
    return min(twins, key=lambda c: abs(c.captured_at - candidate.captured_at), default=candidate)


def _others(known: Sequence[Candidate], chosen: str) -> tuple[tuple[str, datetime], ...]:
    """The newest good capture of each other archive."""
    newest: dict[str, datetime] = {}
    for c in known:
        if c.archive != chosen and is_content(c.status):
            newest[c.archive] = max(newest.get(c.archive, c.captured_at), c.captured_at)
    return tuple(sorted(newest.items()))


Agreement = Literal["same", "decoded", "differs", "unknown"]


def compare_digest(digest: str, incoming: PayloadWriter) -> Agreement:
    """Does a payload, or what is packed in it, have the digest of the index? Only SHA-1 is understood."""
    expected = _sha1_of(digest)
    if expected is None:
        return "unknown"
    if expected == incoming.sha1_bytes:
        return "same"
    payload = incoming.peek()
    if not payload.startswith(b"\x1f\x8b"):
        return "differs"
    try:
        inside = hashlib.sha1(decoded(payload, "gzip"), usedforsecurity=False).digest()
    except FormatError:
        return "differs"
    return "decoded" if inside == expected else "differs"


def _without(headers: tuple[tuple[str, str], ...], name: str) -> tuple[tuple[str, str], ...]:
    return tuple((key, value) for key, value in headers if key.lower() != name)


def _sha1_of(digest: str) -> bytes | None:
    name, mark, value = digest.partition(":")
    if mark and name.lower() != "sha1":
        return None
    value = value if mark else digest
    try:
        if len(value) == 32:
            return base64.b32decode(value.upper())
        if len(value) == 40:
            return bytes.fromhex(value)
    except (binascii.Error, ValueError):
        return None
    return None
