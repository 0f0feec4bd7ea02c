"""One resource from the archives into the store: decide, ask, fetch, check, judge, until it is recovered or given up.

Hides: everything between a decision of the plan and a row in the store: revisits, digests, content encodings, bombs,
archived redirects, doubtful captures, the live web. Invariants: nothing is kept that was not checked; each try is
recorded with its outcome before the next one; an exception here is an internal error, not one of an archive.

A doubtful capture (a login, an error page, another trade) gives way to any good one. It is compared with the page's own
past: what the page always was is not held against it. When every capture is doubtful, the best is kept, marked for
review.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from recollect.archives.registry import Archive
from recollect.archives.replay import ReplayResponse, Wanted, fetch, unwrap
from recollect.datetimes import format_timestamp
from recollect.errors import AnswerTooBig, ArchiveError, FormatError
from recollect.recovery.binarylinks import read_binary
from recollect.recovery.canonical import tidy, visit_key
from recollect.recovery.choose import Candidate, in_order, is_content, is_reduced, resolve_revisits
from recollect.recovery.decoding import content_coding, decoded, effective_encoding, header_charset
from recollect.recovery.digests import Agreement, compare_digest, differs
from recollect.recovery.examine import examine_content, examine_redirect
from recollect.recovery.fingerprint import page_of
from recollect.recovery.journal import Journal, Queued, now_utc
from recollect.recovery.judge import Rejection, judge, same_page
from recollect.recovery.knowledge import SiteKnowledge
from recollect.recovery.links import Document, effective_type, media_type_of, read_document
from recollect.recovery.lister import Lister
from recollect.recovery.live import LIVE, LiveWeb
from recollect.recovery.meter import Meter, OutOfQuota
from recollect.recovery.options import Options
from recollect.recovery.ownership import Observation, Standing
from recollect.recovery.payloads import Payload, PayloadWriter
from recollect.recovery.plan import Ask, Attempt, GiveUp, Holder, Outcome, decide
from recollect.recovery.reading import read_links
from recollect.recovery.records import Missing, Recovered
from recollect.recovery.store import Store
from recollect.recovery.verdicts import SUSPECT, Reason, Verdict

_MAX_PARSED = 32 * 1024 * 1024  # a larger document is kept, not read for links
_MAX_HELD = 4 * 1024 * 1024  # a larger doubtful capture is asked for again when it is needed
_DIFFERS = "the bytes are not those of the index (digest differs)"
_FRONT_TRIES = 12
_PROBES, _ALWAYS = 5, 1 << 30  # an archive without the front page is asked for some other pages before it is left alone
_TRUST_AFTER = 5  # mismatched digests with never a match: the archive's index and replay simply differ
# Verdicts that the page's past can refute; an error page or a parked domain stays one for years.
_REFUTABLE = frozenset({Verdict.HIJACKED, Verdict.LOGIN})
# What an archive itself puts in front of its captures.
_WALLS = frozenset({Verdict.ANTI_BOT, Verdict.COOKIE_WALL, Verdict.LOGIN})
_FOR_YEARS = timedelta(days=365)
# Of several doubtful captures the one with the mildest verdict is kept, then the first in order.
_MILDEST = (
    Verdict.RENDERING,
    *(Verdict.LEADS_NOWHERE, Verdict.SOFT_404, Verdict.ERROR_PAGE, Verdict.MAINTENANCE, Verdict.LOGIN),
    *(Verdict.FOREIGN, Verdict.HIJACKED, Verdict.COOKIE_WALL, Verdict.ANTI_BOT, Verdict.SUSPENDED),
    *(Verdict.DOMAIN_EXPIRED, Verdict.DEFAULT_PAGE, Verdict.PARKED),
)


@dataclass(frozen=True, slots=True)
class Acquired:
    """A resource that was recovered, and what was read of it."""

    resource: Recovered
    payload: Payload
    document: Document | None


@dataclass(frozen=True, slots=True)
class Suspect:
    """A doubtful capture, held until it is known whether there is a better one."""

    candidate: Candidate
    resource: Recovered
    body: bytes
    document: Document
    rejection: Rejection


class _Refused(Exception):
    """This capture is not taken; what to record about it."""

    def __init__(
        self,
        outcome: Outcome,
        detail: str,
        digest: str = "",
        *,
        verdict: Verdict | None = None,
        suspect: Suspect | None = None,
    ) -> None:
        super().__init__(detail)
        self.outcome = outcome
        self.detail = detail
        self.digest = digest
        self.verdict = verdict
        self.suspect = suspect


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
        on_reading: Callable[[str], None] = lambda _capture: None,
        skip: frozenset[str] = frozenset(),
        idle: Sequence[str] = (),
    ) -> None:
        self._store = store
        self._journal = journal
        self._meter = meter
        self._lister = lister
        self._archives = {archive.id: archive for archive in archives}
        self._options = options
        self._may_hold = may_hold
        self._load = load
        self._on_reading = on_reading
        self._skip = skip
        self._idle = tuple(idle)  # archives of this recovery that this run does not ask
        self._live_web = LiveWeb(meter)
        self._vain: dict[str, int] = {}  # archive -> questions in a row that it had no capture for, from the first on
        self._matched: dict[str, int] = {}  # archive -> digests that agreed, minus those that did not
        # Captures that were looked at to find out about owners: whichever is taken is not asked for again.
        self._seen: dict[tuple[str, str, datetime], tuple[ReplayResponse, bytes]] = {}

    async def acquire(self, item: Queued, site: SiteKnowledge) -> Acquired | Missing:
        """Get one resource, or say why not."""
        attempts = self._journal.attempts(item.key)
        suspects: list[Suspect] = []
        while True:
            candidates, late = self._candidates(item.key, site)
            step = decide(
                candidates,
                attempts,
                self._holders(item, site),
                self._options.dates,
                near=item.near,
                ask_first=self._options.policy == "naive",
            )
            if isinstance(step, GiveUp):
                return await self._last_resort(item, site, step, attempts, candidates, late, suspects)
            try:
                if isinstance(step, Ask):
                    attempt, suspect = await self._ask(self._archives[step.archive], item), None
                else:
                    result = await self._fetch(item, step.candidate, candidates, site)
                    if isinstance(result, Acquired):
                        return self._newest_alike(result, suspects)
                    attempt, suspect = result
            except OutOfQuota:
                continue  # nothing was tried; the next decision sees the empty budget
            attempts.append(attempt)
            with self._journal.transaction():
                self._journal.add_attempt(item.key, attempt)
            if suspect is not None:
                suspects.append(suspect)
                if len(suspects) == 1 and await self._always_was(item, suspect, candidates, site):
                    return self._keep(suspect, marked=False)

    def _candidates(self, key: str, site: SiteKnowledge) -> tuple[list[Candidate], list[Candidate]]:
        """Captures of the site's own time, and those from after its end."""
        known = resolve_revisits(self._journal.candidates(key))
        if not site.ownership.foreign or self._options.keep_suspects:
            return known, []
        late = [c for c in known if site.ownership.standing(c.captured_at) is Standing.FOREIGN]
        return [c for c in known if c not in late], late

    def _holders(self, item: Queued, site: SiteKnowledge) -> list[Holder]:
        idle = [Holder(name, site.covers(name, item.key), down="not asked in this run") for name in self._idle]
        return idle + [
            Holder(
                archive.id,
                covered=site.covers(archive.id, item.key),
                may_hold=self._could_hold(archive, item.uri, site),
                budget=self._meter.budget(archive.id),
                down=self._meter.down.get(archive.id, ""),
            )
            # Of equal captures the one of the least busy archive is taken.
            for archive in sorted(self._archives.values(), key=self._load)
        ]

    def _could_hold(self, archive: Archive, uri: str, site: SiteKnowledge) -> bool:
        if (
            (archive.id in site.empty and self._vain.get(archive.id, 0) >= _PROBES)
            or not (archive.cdx or archive.timemap or archive.timegate)
            or archive.rule(uri) is not None
        ):
            return False
        return self._may_hold(archive, uri)

    async def _ask(self, archive: Archive, item: Queued) -> Attempt:
        try:
            page = await self._lister.ask_one(archive, item.uri, item.key)
        except OutOfQuota:
            raise
        except ArchiveError as error:
            self._note_failure(archive.id, error.kind, str(error))
            return Attempt(archive.id, item.uri, None, "failed", str(error))
        before = self._vain.get(archive.id, 0)
        self._vain[archive.id] = -_ALWAYS if page.rows else before + 1
        return Attempt(archive.id, item.uri, None, "answered", f"{len(page.rows)} captures")

    async def ask_all(self, item: Queued, site: SiteKnowledge) -> None:
        """Ask every archive that may hold a resource for its captures."""
        attempts = self._journal.attempts(item.key)
        while True:
            step = decide((), attempts, self._holders(item, site), self._options.dates, ask_first=True)
            if not isinstance(step, Ask):
                return
            try:
                attempt = await self._ask(self._archives[step.archive], item)
            except OutOfQuota:
                continue
            attempts.append(attempt)
            with self._journal.transaction():
                self._journal.add_attempt(item.key, attempt)

    async def observe(self, candidate: Candidate, site: SiteKnowledge, *, front: bool) -> Observation | None:
        """One look at the site; None when the capture cannot be had or read. Raises OutOfQuota."""
        known = resolve_revisits(self._journal.candidates(visit_key(candidate.uri, self._options.rules)))
        try:
            with self._store.incoming() as incoming:
                replay = await self._whole(candidate, known, incoming)
                if replay.standing != "archived" or replay.location is not None or not is_content(replay.status):
                    return None
                payload = incoming.peek()
        except OutOfQuota:
            raise
        except ArchiveError:
            return None
        source = _source(self._archives[candidate.archive], candidate, known)
        if len(payload) <= _MAX_HELD:
            self._seen[source.archive, source.uri, source.captured_at] = (replay, payload)
        if replay.rewritten:
            payload = unwrap(self._archives[candidate.archive], payload)
        content_type = replay.header("content-type")
        try:
            content = decoded(payload, effective_encoding(replay.header("content-encoding"), payload[:65536]))
        except FormatError:
            return None
        media_type = media_type_of(content_type) or candidate.media_type
        document = read_document(content, candidate.uri, media_type, header_charset(content_type))
        if document is None or document.form != "html" or not replay.attested:
            return None
        repeats = site.repeats.get(candidate.digest, 1) - 1
        rejection = judge(document, candidate.uri, media_type, repeats=repeats, content=content)
        verdict = rejection.verdict if rejection is not None else None
        return Observation(candidate.captured_at, page_of(document, candidate.uri), verdict, front, repeats)

    async def capture(
        self, item: Queued, candidate: Candidate, known: Sequence[Candidate], site: SiteKnowledge
    ) -> Acquired | Attempt:
        """One capture, whatever others there are; the failed attempt when it cannot be had, or is not the page."""
        result = await self._fetch(item, candidate, known, site)
        return result if isinstance(result, Acquired) else result[0]

    def address(self, candidate: Candidate) -> str:
        """Where an archive has a capture: its URI-M, as far as the archive's templates say."""
        archive = self._archives[candidate.archive]
        if "{filename}" in archive.raw:
            return candidate.locator
        place = candidate.locator if "://" in candidate.locator else ""
        return archive.raw_uri(place, format_timestamp(candidate.captured_at), candidate.uri)

    # Fetching ------------------------------------------------------------------------------------------------------

    async def _fetch(
        self, item: Queued, candidate: Candidate, known: Sequence[Candidate], site: SiteKnowledge
    ) -> Acquired | tuple[Attempt, Suspect | None]:
        suspect: Suspect | None = None
        try:
            with self._store.incoming() as incoming:
                replay = await self._whole(candidate, known, incoming)
                return self._accept(item, candidate, replay, incoming, known, site)
        except _Refused as refusal:
            outcome, detail, digest, verdict = refusal.outcome, refusal.detail, refusal.digest, refusal.verdict
            suspect = refusal.suspect
            if outcome in ("blocked", "absent"):  # listed, and not given
                self._note_failure(candidate.archive, outcome, detail)
        except OutOfQuota:
            raise
        except AnswerTooBig as error:
            outcome, detail, digest, verdict = "failed", f"larger than the limit: {error.why}", "", None
        except ArchiveError as error:
            outcome, detail, digest, verdict = "failed", str(error), "", None
            self._note_failure(candidate.archive, error.kind, str(error))
        where = (candidate.archive, candidate.uri, candidate.captured_at)
        return Attempt(*where, outcome, detail, digest, verdict), suspect

    def _note_failure(self, archive: str, kind: str, detail: str) -> None:
        with self._journal.transaction():
            self._journal.note_failure(archive, kind, detail)

    async def _whole(self, candidate: Candidate, known: Sequence[Candidate], incoming: PayloadWriter) -> ReplayResponse:
        """The answer for a capture. Bytes that are not those of the index are asked for once more: a body may have
        been cut short where only the digest shows it."""
        archive = self._archives[candidate.archive]
        source = _source(archive, candidate, known)
        replay = await self._meter.patiently(archive, lambda: self._receive(archive, source, incoming))
        if (
            replay.standing == "archived"
            and self._matched.get(candidate.archive, 0) >= 0
            and differs(candidate, replay, incoming)
        ):
            replay = await self._meter.patiently(archive, lambda: self._receive(archive, source, incoming))
        return replay

    async def _receive(self, archive: Archive, source: Candidate, incoming: PayloadWriter) -> ReplayResponse:
        incoming.restart()
        seen = self._seen.pop((source.archive, source.uri, source.captured_at), None)
        if seen is not None:
            incoming.write(seen[1])
            return seen[0]
        wanted = Wanted(source.uri, source.captured_at, source.locator)
        if archive.is_local and self._lister.local is not None:
            limit = self._options.max_bytes
            return self._lister.local.fetch(self._journal, archive, source, incoming.write, max_bytes=limit)
        return await fetch(self._meter, archive, wanted, incoming.write, max_bytes=self._options.max_bytes)

    def _accept(
        self,
        item: Queued,
        candidate: Candidate,
        replay: ReplayResponse,
        incoming: PayloadWriter,
        known: Sequence[Candidate],
        site: SiteKnowledge,
    ) -> Acquired:
        if replay.standing != "archived":
            raise _Refused(replay.standing, replay.detail)
        if replay.location is None and not is_content(replay.status):
            detail = f"archived as status {replay.status}"
            raise _Refused("rejected", detail, candidate.digest, verdict=Verdict.ERROR_STATUS)
        agreement = self._check_digest(candidate, replay, incoming)
        if agreement == "decoded":
            # The archive packed it for the way; what was archived is what is inside.
            incoming.replace(decoded(incoming.peek(), "gzip"))
            replay = replace(replay, headers=_without(replay.headers, "content-encoding"))
        if replay.rewritten:
            incoming.replace(unwrap(self._archives[candidate.archive], incoming.peek()))
        resource = self._describe(item, candidate, replay, incoming, known)
        resource = replace(resource, altered=agreement == "differs" or replay.rewritten or candidate.altered)
        self._check_size(resource, candidate, known)
        try:
            return self._examine(resource, incoming, candidate, site)
        except _Refused as refusal:
            if replay.attested or refusal.verdict not in _WALLS:
                raise
            # Without Memento-Datetime nothing says that this was archived: it is the archive's own wall.
            raise _Refused("blocked", f"the archive answered with a wall of its own ({refusal.detail})") from None

    def _check_digest(self, candidate: Candidate, replay: ReplayResponse, incoming: PayloadWriter) -> Agreement:
        """Compare with the index; bytes that differ are refused, unless this archive's bytes always do."""
        if not candidate.digest or candidate.is_redirect:
            return "unknown"
        agreement = compare_digest(candidate.digest, incoming)
        if agreement == "differs" and "chunked" in replay.header("transfer-encoding").lower():
            # Crawlers digest the bytes as received, chunk sizes included; those are lost.
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
        raise _Refused("failed", _DIFFERS, verdict=Verdict.DIGEST_DIFFERS)

    def _check_size(self, resource: Recovered, candidate: Candidate, known: Sequence[Candidate]) -> None:
        """A thumbnail gives way to every other archive's capture of the image; the newest is wanted as it is."""
        if self._options.dates.most_recent or resource.redirect_to is not None:
            return
        if is_reduced(replace(candidate, media_type=resource.media_type), known, length=resource.length):
            detail = f"{resource.length} bytes: a thumbnail beside another archive's capture"
            raise _Refused("rejected", detail, candidate.digest, verdict=Verdict.REDUCED)

    def _describe(
        self,
        item: Queued,
        candidate: Candidate,
        replay: ReplayResponse,
        incoming: PayloadWriter,
        known: Sequence[Candidate],
    ) -> Recovered:
        content_type = replay.header("content-type")
        media_type = media_type_of(content_type) or candidate.media_type
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
            content_encoding=content_coding(
                replay.header("content-encoding"), incoming.peek(65536), media_type, candidate.uri
            ),
            digest=incoming.sha1,
            length=incoming.length,
            payload_path=self._store.payload_path(incoming.sha256),
            fetched_at=now_utc(),
            kind=item.kind,
            redirect_to=replay.location,
            found_on=item.found_on,
            other_archives=_others(known, candidate.archive),
        )

    def _examine(
        self, resource: Recovered, incoming: PayloadWriter, candidate: Candidate, site: SiteKnowledge
    ) -> Acquired:
        """Read the content, and refuse what is not the resource."""
        if resource.redirect_to is not None:
            self._check_redirect(resource, site)
            return Acquired(resource, incoming.keep(), None)
        if resource.uri_m in self._skip:
            raise _Refused("rejected", "reading it does not end", candidate.digest)
        self._on_reading(resource.uri_m)
        document, rejection, head = None, None, b""
        if incoming.length <= _MAX_PARSED or resource.content_encoding:
            try:
                content = decoded(incoming.peek(), resource.content_encoding)
            except FormatError as error:
                raise _Refused("failed", str(error)) from error
            head = content[:1024]
            if len(content) <= _MAX_PARSED:
                document = read_links(content, resource.uri, resource.media_type, resource.charset)
                rejection = examine_content(
                    resource,
                    document,
                    content,
                    site,
                    self._options,
                    index_digest=candidate.digest,
                    judge_front=self._front_tries(resource.key) < _FRONT_TRIES,
                )
                if rejection is None and document is None:
                    document = read_binary(content, resource.uri)
        is_page = document is not None and document.form == "html"
        media_type = effective_type(resource.media_type, resource.uri, head) or "application/octet-stream"
        resource = replace(resource, kind="page" if is_page else "asset", media_type=media_type)
        if rejection is not None:
            suspect = None
            held = rejection.verdict in SUSPECT and not rejection.certain and incoming.length <= _MAX_HELD
            if held and document is not None:
                suspect = Suspect(candidate, resource, incoming.peek(), document, rejection)
            detail = f"{rejection.verdict}: {rejection.detail}"
            raise _Refused("rejected", detail, candidate.digest, verdict=rejection.verdict, suspect=suspect)
        return Acquired(resource, incoming.keep(), document)

    def _front_tries(self, key: str) -> int:
        return sum(a.verdict == Verdict.LEADS_NOWHERE for a in self._journal.attempts(key))

    def _check_redirect(self, resource: Recovered, site: SiteKnowledge) -> None:
        has_content = any(is_content(c.status) for c in self._journal.candidates(resource.key))
        rejection = examine_redirect(resource, self._options, has_content=has_content)
        if rejection is None:
            return
        if rejection.verdict == Verdict.OTHER_SPELLING:
            self._learn_spelling(resource, site)
            raise _Refused("rejected", rejection.detail, verdict=rejection.verdict)
        raise _Refused("rejected", f"{rejection.verdict}: {rejection.detail}", verdict=rejection.verdict)

    def _learn_spelling(self, resource: Recovered, site: SiteKnowledge) -> None:
        """A redirect to another spelling of itself: what it leads to becomes a candidate of its own."""
        assert resource.redirect_to is not None
        spelled = Candidate(resource.archive, resource.redirect_to, resource.captured_at)
        known = any(c.uri == spelled.uri for c in self._journal.candidates(resource.key))
        if not known and not site.covers(resource.archive, resource.key):
            with self._journal.transaction():
                self._journal.add_captures([(resource.key, spelled)])

    # Doubtful captures ---------------------------------------------------------------------------------------------

    def _newest_alike(self, acquired: Acquired, suspects: Sequence[Suspect]) -> Acquired:
        """A newer doubtful capture that shows the same page as an older good one is not doubtful."""
        for suspect in suspects:
            if acquired.document is not None and same_page(suspect.document, acquired.document):
                return self._keep(suspect, marked=False)
        return acquired

    async def _always_was(
        self, item: Queued, suspect: Suspect, candidates: Sequence[Candidate], site: SiteKnowledge
    ) -> bool:
        """Whether the page always looked like this: compares its oldest capture; after a new owner it differs."""
        if suspect.rejection.verdict not in _REFUTABLE:
            return False
        own = suspect.candidate
        past = [c for c in in_order(candidates, self._options.dates) if is_content(c.status)]
        oldest = min(past, key=lambda c: (c.captured_at, c.archive, c.uri), default=own)
        if oldest.captured_at > own.captured_at - _FOR_YEARS:
            return False
        if oldest.digest and oldest.digest == own.digest:
            return True
        with contextlib.suppress(OutOfQuota):
            found = await self._fetch(item, oldest, candidates, site)
            document = found.document if isinstance(found, Acquired) else found[1].document if found[1] else None
            return document is not None and same_page(suspect.document, document)
        return False

    def _keep(self, suspect: Suspect, *, marked: bool) -> Acquired:
        resource = suspect.resource
        if marked:
            reason = suspect.rejection
            resource = replace(
                resource,
                suspect=reason.verdict,
                doubt=reason.detail,
                confidence=round(reason.confidence, 3),
                altered=resource.altered or reason.verdict is Verdict.RENDERING,
            )
        with self._store.incoming() as incoming:
            incoming.write(suspect.body)
            return Acquired(resource, incoming.keep(), suspect.document)

    # When the archives have nothing --------------------------------------------------------------------------------

    async def _last_resort(
        self,
        item: Queued,
        site: SiteKnowledge,
        step: GiveUp,
        attempts: Sequence[Attempt],
        candidates: Sequence[Candidate],
        late: Sequence[Candidate],
        suspects: Sequence[Suspect],
    ) -> Acquired | Missing:
        altered = await self._differing(item, attempts, candidates, site)
        if altered is not None:
            return altered
        if self._options.live_fallback:
            live = await self._live(item, site)
            if live is not None:
                return live
        if step.reason in (Reason.REJECTED, Reason.BLOCKED):
            thumbnail = await self._thumbnail(item, attempts, candidates, site)
            if thumbnail is not None:
                return thumbnail
            best = await self._best_suspect(item, attempts, candidates, suspects, site)
            if best is not None:
                return best
        if late and step.reason in (Reason.NEVER_ARCHIVED, Reason.REJECTED, Reason.OUT_OF_RANGE):
            ended = site.ownership.ended_at
            detail = "captured only while the site had another owner"
            detail = f"captured only after the site's end ({ended:%Y-%m-%d})" if ended is not None else detail
            step = GiveUp(Reason.REJECTED, detail, Verdict.AFTER_THE_END)
        return Missing(item.key, item.uri, step.reason, step.detail, item.kind, item.found_on, step.verdict)

    async def _differing(
        self, item: Queued, attempts: Sequence[Attempt], candidates: Sequence[Candidate], site: SiteKnowledge
    ) -> Acquired | None:
        """Bytes that are not those of the index are better than nothing; they are marked as altered."""
        doubtful = next((a for a in attempts if a.verdict == Verdict.DIGEST_DIFFERS), None)
        again = next((c for c in candidates if doubtful is not None and _is_of(doubtful, c)), None)
        if again is None:
            return None
        with contextlib.suppress(OutOfQuota):
            acquired = await self._fetch(item, replace(again, digest=""), candidates, site)
            if isinstance(acquired, Acquired):
                return replace(acquired, resource=replace(acquired.resource, altered=True))
        return None

    async def _thumbnail(
        self, item: Queued, attempts: Sequence[Attempt], candidates: Sequence[Candidate], site: SiteKnowledge
    ) -> Acquired | None:
        """A thumbnail is better than no image; it is marked as altered."""
        reduced = [a for a in attempts if a.verdict == Verdict.REDUCED]
        again = next((c for a in reduced for c in candidates if _is_of(a, c)), None)
        if again is None:
            return None
        with contextlib.suppress(OutOfQuota):
            acquired = await self._fetch(item, again, [again], site)  # beside no other capture
            if isinstance(acquired, Acquired):
                return replace(acquired, resource=replace(acquired.resource, altered=True))
        return None

    async def _best_suspect(
        self,
        item: Queued,
        attempts: Sequence[Attempt],
        candidates: Sequence[Candidate],
        suspects: Sequence[Suspect],
        site: SiteKnowledge,
    ) -> Acquired | None:
        """The mildest of the doubtful captures: of this run, else one that an earlier run met, asked for again."""
        if not suspects:
            doubtful = sorted((_MILDEST.index(a.verdict), n) for n, a in enumerate(attempts) if a.verdict in SUSPECT)
            again = next((c for _, n in doubtful for c in candidates if _is_of(attempts[n], c)), None)
            if again is None:
                return None
            with contextlib.suppress(OutOfQuota):
                found = await self._fetch(item, again, candidates, site)
                if isinstance(found, Acquired):
                    return found
                return self._keep(found[1], marked=True) if found[1] is not None else None
            return None
        return self._keep(min(suspects, key=lambda s: _MILDEST.index(s.rejection.verdict)), marked=True)

    async def _live(self, item: Queued, site: SiteKnowledge) -> Acquired | None:
        """The live web, when it was asked for: marked, judged like any capture, within the host's robots.txt."""
        try:
            with self._store.incoming() as incoming:
                replay = await self._live_web.fetch(item.uri, incoming, self._options.max_bytes)
                if replay is None:
                    return None
                candidate = Candidate(LIVE, item.uri, replay.captured_at)
                resource = replace(self._describe(item, candidate, replay, incoming, ()), live=True)
                return self._examine(resource, incoming, candidate, site)
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
    equal = [c for c in known if c.archive == archive.id and c.digest == candidate.digest and not c.revisit]
    return min(equal, key=lambda c: abs(c.captured_at - candidate.captured_at), default=candidate)


def _others(known: Sequence[Candidate], chosen: str) -> tuple[tuple[str, datetime], ...]:
    """The newest good capture of each other archive."""
    newest: dict[str, datetime] = {}
    for c in known:
        if c.archive != chosen and is_content(c.status):
            newest[c.archive] = max(newest.get(c.archive, c.captured_at), c.captured_at)
    return tuple(sorted(newest.items()))


def _without(headers: tuple[tuple[str, str], ...], name: str) -> tuple[tuple[str, str], ...]:
    return tuple((key, value) for key, value in headers if key.lower() != name)
