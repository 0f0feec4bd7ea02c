"""One recovery in a process of its own: `python -m recollect.desk.child`, started by a worker.

Hides: how a recovery is run so that it can be killed at any moment, and how it asks for permission. It reads its
assignment as one line of JSON from stdin and writes lines of JSON to stdout; it knows no address and no secret of the
desk. Every request to an archive waits for a permit that the worker brings; without a worker (stdin ends) it ends.

    in    {"folder", "archives", "options", "limits", "survey_only", "reconsider", "skip", "contact", "language", "uri",
          "also"}, then
          {"permit": N, "granted": true} | {"permit": N, "seconds": T, "reason": "..."} | {"stop": true}
    out   {"type": "status", ...} as recover reports it, {"type": "survey", ...}, {"type": "packing"},
          {"type": "permit", "permit": N, "archive", "kind"}, {"type": "finished", "permit": N, "archive"} when that
          request is over, {"type": "paused", "archive", "kind", "seconds"}, {"type": "reading", "capture"} before a
          capture is read (the worker sees on which one it got stuck), {"type": "alive"} every second while archives are
          asked, {"type": "progress"} while files are written, {"type": "picture", "file"} of a page that came,
          {"type": "done", "outcome": "recovered" | "nothing" | "waiting" | "failed" | "stopped", ...}
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import signal
import sqlite3
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from recollect.archives.opening import CONTACT_VARIABLE
from recollect.archives.registry import Archive, Rate
from recollect.archives.transport import RequestKind
from recollect.desk.processes import end_with_parent
from recollect.errors import ArchiveThrottled, FormatError, RecollectError, ResourceError, UsageError
from recollect.recovery.figures import Loss
from recollect.recovery.meter import OutOfQuota
from recollect.ui.messages import using

if TYPE_CHECKING:
    from recollect.recovery.outputs import Outputs
    from recollect.recovery.report import Report

_LONG_WAIT = 30.0  # a refusal that lasts longer is not waited for: the job gives its worker back


_ALIVE = 1.0
_MOST_NOTED = 100


class Outcome(StrEnum):
    """How a recovery ended."""

    RECOVERED = "recovered"
    NOTHING = "nothing"
    WAITING = "waiting"
    FAILED = "failed"
    STOPPED = "stopped"


class Line:
    """The pipe to the worker. One thread reads it; whoever waits for a permit is woken in the loop it waits in."""

    def __init__(self, source: IO[str], sink: IO[str]) -> None:
        self._source = source
        self._sink = sink
        self._lock = threading.Lock()
        self._waiting: dict[int, tuple[asyncio.AbstractEventLoop, asyncio.Future[dict[str, Any]]]] = {}
        self._number = 0
        self.stopped = False

    def first(self) -> dict[str, Any]:
        """The assignment."""
        assignment: dict[str, Any] = json.loads(self._source.readline())
        threading.Thread(target=self._listen, daemon=True).start()
        return assignment

    def say(self, **message: Any) -> None:
        with self._lock:
            self._sink.write(json.dumps(message) + "\n")
            self._sink.flush()

    def _listen(self) -> None:
        for text in self._source:
            message = json.loads(text)
            if message.get("stop"):
                self.stopped = True
                continue
            loop, answer = self._waiting.pop(message["permit"], (None, None))
            if loop is not None and answer is not None:
                loop.call_soon_threadsafe(_answer, answer, message)
        # The worker is gone: nothing may be asked for any more, and everything that matters is on disk.
        _end()

    async def permit(self, archive: str, kind: str) -> dict[str, Any]:
        """Ask for one request; the worker's answer."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[dict[str, Any]] = loop.create_future()
        self._number += 1
        number = self._number
        self._waiting[number] = (loop, answer)
        self.say(type="permit", permit=number, archive=archive, kind=kind)
        try:
            return await answer
        finally:
            self._waiting.pop(number, None)


def _end() -> None:
    """End at once, and with us what we started (Chromium), which is in our process group if a worker started us."""
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


def _answer(future: asyncio.Future[dict[str, Any]], message: dict[str, Any]) -> None:
    if not future.done():
        future.set_result(message)


class LinePermits:
    """Permits by way of the worker, for the archive client."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._open: dict[str, deque[int]] = {}
        self._alive: asyncio.Task[None] | None = None
        self.refused: dict[str, tuple[float, str]] = {}
        """Archive -> until when it may not be asked (by the monotonic clock), and why."""

    async def acquire(self, archive: Archive, kind: RequestKind, deadline: float) -> None:
        loop = asyncio.get_running_loop()
        if self._alive is None or self._alive.get_loop() is not loop:
            self._alive = loop.create_task(self._show_life())
        while True:
            until, reason = self.refused.get(archive.id, (0.0, ""))
            if until > time.monotonic() + _LONG_WAIT:
                raise OutOfQuota("no requests left", where=archive.id, why=reason)
            answer = await self._line.permit(archive.id, kind.value)
            if answer.get("granted"):
                self._open.setdefault(archive.id, deque()).append(answer["permit"])
                return
            wait = max(0.05, float(answer.get("seconds", 0.0)))
            if wait > _LONG_WAIT:
                self.refused[archive.id] = (time.monotonic() + wait, str(answer.get("reason", "")))
                continue
            if loop.time() + wait >= deadline:
                raise ArchiveThrottled("no permit before the deadline", where=archive.id)
            await asyncio.sleep(wait)

    async def _show_life(self) -> None:
        """Tell the worker that requests are attended to: it cannot see the difference between slow and stuck."""
        while True:
            self._line.say(type="alive")
            await asyncio.sleep(_ALIVE)

    def finished(self, archive: Archive) -> None:
        numbers = self._open.get(archive.id)
        if numbers:  # which of them it was makes no difference
            self._line.say(type="finished", archive=archive.id, permit=numbers.popleft())

    def paused(self, archive: Archive, kind: RequestKind, seconds: float) -> None:
        if seconds > _LONG_WAIT:
            self.refused[archive.id] = (time.monotonic() + seconds, "the archive asked us to wait")
        self._line.say(type="paused", archive=archive.id, kind=kind.value, seconds=seconds)


# Archives as JSON, for the assignment --------------------------------------------------------------------------------


def archive_to_json(archive: Archive) -> dict[str, Any]:
    """Everything a worker needs to ask an archive; its quota is kept by the desk."""
    return {name: value for name, value in asdict(archive).items() if value and name != "quota"}


def archive_from_json(value: Mapping[str, Any]) -> Archive:
    fields = dict(value)
    for name in ("index_rate", "replay_rate"):
        if fields.get(name):
            fields[name] = Rate(**fields[name])
    for name in ("allow_hosts", "only", "never", "altered"):
        fields[name] = tuple(fields.get(name, ()))
    fields["headers"] = tuple((name, text) for name, text in fields.get("headers", ()))
    return Archive(**fields)


# The recovery --------------------------------------------------------------------------------------------------------


def main() -> int:
    # What libraries print must not become part of the protocol.
    sink = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    end_with_parent()
    line = Line(sys.stdin, sink)
    assignment = line.first()
    if assignment.get("contact"):
        os.environ[CONTACT_VARIABLE] = assignment["contact"]
    try:
        with using(str(assignment.get("language") or "")):  # of START-HERE, the report and other pages in the result
            outcome = _run_or_start_afresh(line, assignment)
    except RecollectError as error:
        outcome = {"outcome": Outcome.FAILED, "reason": str(error)}
    except OSError as error:
        outcome = {"outcome": Outcome.FAILED, "reason": f"{error.strerror or error}: {error.filename or ''}"}
    line.say(type="done", **outcome)
    return 0


def _run_or_start_afresh(line: Line, assignment: Mapping[str, Any]) -> dict[str, Any]:
    """A state that cannot be used (damaged, of another site or version) is as good as none."""
    folder = Path(assignment["folder"])
    resumed = folder.exists() and any(folder.iterdir())
    try:
        return run(line, assignment)
    except (sqlite3.DatabaseError, ResourceError, UsageError, FormatError, LookupError, ValueError, TypeError) as error:
        other = isinstance(error, ResourceError) and not isinstance(error.__cause__, sqlite3.DatabaseError)
        if not resumed or other:  # a full disk, say
            raise
        sys.stderr.write(f"what was fetched before cannot be used: {type(error).__name__}: {error}\n")
        shutil.rmtree(folder)
        folder.mkdir(parents=True)
        return run(line, assignment)


def run(line: Line, assignment: Mapping[str, Any]) -> dict[str, Any]:
    """Recover, or only survey, and pack what came; how it ended."""
    from recollect.desk.jobs import recovery_options
    from recollect.desk.pictures import EarlyPictures
    from recollect.recovery.progress import Watch
    from recollect.recovery.recover import Run, recover
    from recollect.recovery.review import doubtful_pages
    from recollect.recovery.store import FOLDER
    from recollect.recovery.survey import Survey

    folder = Path(assignment["folder"])
    limits: Mapping[str, Any] = assignment.get("limits", {})
    archives = [replace(archive_from_json(one), quota=None) for one in assignment["archives"]]
    options = recovery_options(assignment["options"], limit=limits.get("resources"))
    permits = LinePermits(line)
    survey_only = bool(assignment.get("survey_only"))
    surveys: list[Survey] = []

    def listed(found: Survey) -> bool:
        surveys.append(found)
        for one in found.archives:
            note(f"{one.id}: listing {one.state}, {one.captures} captures{': ' + one.detail if one.detail else ''}")
        line.say(type="survey", **found.to_json())
        return not survey_only

    resuming = (folder / FOLDER / "journal.db").exists()
    if resuming and assignment.get("reconsider"):
        reconsider(folder, options, [archive.id for archive in archives])
    guard, steps = _Guard(folder, line, limits), Steps(line)
    pictures = int(limits.get("pictures") or 0)
    early = EarlyPictures(folder, pictures, lambda path: line.say(type="picture", file=str(path)))
    if pictures and not survey_only:
        early.start()
    try:
        result = recover(
            None if resuming else options.scope.start,
            folder,
            archives=archives,
            also=assignment.get("also") or (),
            base=str(assignment.get("uri") or ""),
            options=options,
            outputs=_outputs(assignment["options"]),
            watch=Watch(
                status=lambda status: line.say(**status.to_json()),
                listed=listed,
                progress=lambda _progress: steps.seen(),
                stop=guard.stop,
                reading=lambda capture: line.say(type="reading", capture=capture),
            ),
            run=Run(permits=permits, longest_pause=_LONG_WAIT, skip=frozenset(assignment.get("skip", ()))),
        )
    finally:
        early.stop()
    if survey_only:
        return {"outcome": Outcome.RECOVERED}
    report = _reviewed(folder, assignment.get("decisions") or {}) or result.report
    if report is not None:
        note(f"{len(report.resources)} recovered, {len(report.missing)} missing, complete: {result.finished.complete}")
        for outage in report.figures.outages:
            note(f"{outage.archive}: {outage.kind} {outage.detail}")
        for missing in report.missing[:_MOST_NOTED]:
            note(f"missing {missing.uri}: {missing.reason}")
    if line.stopped or report is None:
        return {"outcome": Outcome.STOPPED}
    if (
        permits.refused
        and not result.finished.complete
        and _worth_waiting(report, permits, float(limits.get("wait") or 0))
    ):
        name, (until, reason) = min(permits.refused.items(), key=lambda item: item[1][0])
        seconds = max(0.0, until - time.monotonic())
        return {"outcome": Outcome.WAITING, "seconds": seconds, "archive": name, "reason": f"{name}: {reason}"}
    summary = summary_of(report, result.finished.complete, guard.reason)
    summary["listed"] = surveys[-1].resources if surveys else None
    summary["doubtful"] = [one.to_json() for one in doubtful_pages(folder)[:_MOST_NOTED]]
    if not report.resources:
        silent = not result.finished.complete
        return {"outcome": Outcome.FAILED if silent else Outcome.NOTHING, "summary": summary, "silent": silent}
    return {
        "outcome": Outcome.RECOVERED,
        "summary": summary,
        "files": pack(line, steps, folder, report, pictures),
    }


def _outputs(options: Mapping[str, Any]) -> Outputs:
    """What goes into the download: nothing in it runs, unless the person asked for scripts."""
    from recollect.recovery.outputs import Outputs

    return Outputs(windows_names=bool(options.get("windows_names")), scripts=bool(options.get("scripts")))


def _worth_waiting(report: Report, permits: LinePermits, longest: float) -> bool:
    """Whether a job waits for an archive that refuses: when that one holds what did not come, and for a while only.
    What is there is delivered otherwise; the desk asks the archive again later."""
    if not report.resources:
        return True
    lacking = sum(one.waiting for one in report.figures.outages if one.archive in permits.refused)
    lacking += report.figures.losses.get(Loss.OUT_OF_QUOTA, 0)
    return bool(lacking) and min(until for until, _ in permits.refused.values()) <= time.monotonic() + longest


def _reviewed(folder: Path, decisions: Mapping[str, str]) -> Report | None:
    """The outputs made again by the answers of a person about doubtful pages; None without any for pages there are."""
    from recollect.recovery.review import Decision, decide, doubtful_pages

    if not decisions:
        return None
    there = {page.uri for page in doubtful_pages(folder)}
    wanted = {uri: Decision(answer) for uri, answer in decisions.items() if uri in there}
    return decide(folder, wanted) if wanted else None


def note(words: str) -> None:
    """A line of the job's log, which the operator sees."""
    sys.stderr.write(f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime())} {words[:500]}\n")
    sys.stderr.flush()


class Steps:
    """Tells the worker that files are being written, at most once a second."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._last = 0.0

    def seen(self, _bytes: int = 0) -> None:
        if time.monotonic() - self._last >= 1.0:
            self._last = time.monotonic()
            self._line.say(type="progress")


def pack(line: Line, steps: Steps, folder: Path, report: Report, pictures: int) -> list[dict[str, Any]]:
    """Everything for download, beside the recovered folder: name, size and checksum of each file."""
    from recollect.desk.delivery import REPORT, STATE, TAR, WACZ, ZIP, packed, write_state, write_tar, write_zip
    from recollect.desk.pictures import thumbnails
    from recollect.recovery.reportpage import report_page
    from recollect.recovery.store import Store

    line.say(type="packing")
    target = folder.with_name(f"{folder.name}.out")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    with Store.open(folder) as store:
        store.write_portable()
    files = [write_zip(folder, target / ZIP, steps.seen), write_tar(folder, target / TAR, steps.seen)]
    if (folder / "recovered.wacz").exists():
        shutil.copyfile(folder / "recovered.wacz", target / WACZ)
        files.append(packed(target / WACZ))
    steps.seen()
    files.append(write_state(folder, target / STATE))
    steps.seen()
    thumbs = thumbnails(folder, report.front, target, pictures)
    # On the desk the report has no recovered folder beside it: pictures instead of frames, and links to the preview.
    inside = [f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}" for path in thumbs]
    page = report_page(report, pictures=inside, alone=True)
    (target / REPORT).write_bytes(page.encode("utf-8", "replace"))
    files += [packed(target / REPORT), *(packed(path) for path in thumbs)]
    return [{"name": one.name, "size": one.size, "sha256": one.sha256} for one in files]


class _Guard:
    """Ends a recovery that outgrows its limits or the disk; looks at most once a second."""

    def __init__(self, folder: Path, line: Line, limits: Mapping[str, Any]) -> None:
        self._folder = folder
        self._line = line
        self._most = int(limits.get("bytes") or 0)
        self._min_free = int(limits.get("min_free") or 0)
        self._looked = 0.0
        self.reason = ""

    def stop(self) -> bool:
        if self._line.stopped or self.reason:
            return True
        now = time.monotonic()
        if now - self._looked < 1.0:
            return False
        self._looked = now
        free = shutil.disk_usage(self._folder).free
        if free < self._min_free:
            raise OSError(28, "no space left for recoveries", str(self._folder))
        if self._most and _bytes_of(self._folder) > self._most:
            self.reason = "the largest size of a recovery was reached"
        return bool(self.reason)


def _bytes_of(folder: Path) -> int:
    from recollect.recovery.store import FOLDER

    payloads = folder / FOLDER / "payloads"
    return sum(entry.stat().st_size for part in os.scandir(payloads) if part.is_dir() for entry in os.scandir(part))


def summary_of(report: Any, complete: bool, stopped: str) -> dict[str, Any]:
    """The summary of a finished recovery, for its page and the statistics."""
    from recollect.datetimes import format_iso
    from recollect.recovery.report import Report

    assert isinstance(report, Report)
    dates = [resource.captured_at for resource in report.resources]
    years: dict[str, dict[str, int]] = {}
    for resource in report.resources:
        per_year = years.setdefault(resource.archive, {})
        year = str(resource.captured_at.year)
        per_year[year] = per_year.get(year, 0) + 1
    types: dict[str, int] = {}
    for resource in report.resources:
        kind = resource.media_type.partition(";")[0].partition("/")[0] or "other"
        name = "page" if resource.kind == "page" else {"image": "picture", "text": "text"}.get(kind, "other")
        types[name] = types.get(name, 0) + 1
    return {
        "recovered": len(report.resources),
        "pages": sum(resource.kind == "page" for resource in report.resources),
        "by_type": types,
        "missing": len(report.missing),
        "discovered": len(report.resources) + len(report.missing),
        "figures": report.figures.to_json(),  # worded by recovery.sentences
        "missing_by_reason": dict(report.by_reason),
        "missing_examples": [{"uri": one.uri[:300], "reason": one.reason} for one in report.missing[:50]],
        "by_archive": dict(report.by_archive),
        "requests": dict(report.requests),
        "listings": dict(report.listings),
        "bytes": sum(resource.length for resource in report.resources),
        "first": format_iso(min(dates)) if dates else None,
        "last": format_iso(max(dates)) if dates else None,
        "front": report.front,
        "years": years,
        "owners": [period.to_json() for period in report.ownership],
        "ended_at": format_iso(report.ended_at) if report.ended_at else None,
        "complete": complete,
        "stopped": stopped,
    }


def reconsider(folder: Path, options: Any, archives: list[str]) -> int:
    """With another date, what was fetched stays where it is still the best capture; the rest is fetched again.

    Returns how many resources stay.
    """
    from recollect.recovery.choose import in_order, resolve_revisits
    from recollect.recovery.journal import Journal
    from recollect.recovery.store import Store
    from recollect.recovery.verdicts import Reason

    kept = 0
    with Store.create(folder) as store:
        journal = Journal(store)
        for resource in list(store.recovered()):
            candidates = resolve_revisits(journal.candidates(resource.key))
            best = in_order(candidates, options.dates, archives=archives)[:1]
            if best and (best[0].captured_at, best[0].archive) == (resource.captured_at, resource.archive):
                kept += 1
                continue
            with journal.transaction():
                journal.requeue_key(resource.key)
        journal.requeue([Reason.NEVER_ARCHIVED, Reason.REJECTED, Reason.OUT_OF_RANGE, Reason.BLOCKED])
    return kept


if __name__ == "__main__":
    sys.exit(main())
