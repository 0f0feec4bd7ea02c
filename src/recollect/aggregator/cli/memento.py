"""`recollect timemap|memento`: Memento requests from the command line.

Data goes to stdout (a TimeMap, an address, a body); a table of the archives and their outcomes goes to stderr.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from recollect.cli.console import emit_table, progress_bar, talk
from recollect.cli.types import DATE, END_DATE, Joined, archives_option, contact_option
from recollect.datetimes import format_http_date
from recollect.errors import ArchiveError, UsageError
from recollect.formats.outputs import refuse_inputs
from recollect.model import Progress

if TYPE_CHECKING:
    from recollect.aggregator.outcomes import Outcome
    from recollect.aggregator.service import Aggregator, LookupRequest, LookupResult
    from recollect.archives.client import ArchiveClient
    from recollect.archives.registry import Archive
    from recollect.archives.replay import ReplayResponse
    from recollect.formats.timemap import Memento
    from recollect.model import ProgressCallback
    from recollect.routing.choice import Decision

_T = TypeVar("_T")
_CODES = """\b
Exit code: 0 found and every archive asked has answered, 3 some archives failed (the table names them),
1 nothing found or no archive answered, 2 wrong usage.
"""
TIMEMAP_EPILOG = (
    """\b
Examples:
  recollect timemap http://example.com/
  recollect timemap http://example.com/ --format json --since 2010 --until 2012 | jq '.mementos.list[].uri'
  recollect timemap http://example.com/ --archives archives.json --maps maps/     ask only archives that may hold it
  recollect timemap http://example.com/ --use ia,arquivo --quiet

"""
    + _CODES
)
MEMENTO_EPILOG = (
    """\b
Examples:
  recollect memento http://example.com/                        the address of the newest memento
  recollect memento http://example.com/ 2010                   the address of the closest memento
  recollect memento http://example.com/ "Mon, 17 May 2010 12:00:00 GMT" --format link
  recollect memento http://example.com/ 20100517120000 --raw   its body as it was captured
  recollect memento http://example.com/logo.png 2010 --raw -o logo.png

"""
    + _CODES
)


@dataclass(frozen=True, slots=True)
class Options:
    """What both commands take."""

    registry: str | None
    maps: str | None
    top_k: int | None
    timeout: float
    ask: str
    quiet: bool


def _common(command: Callable[..., Any]) -> Callable[..., Any]:
    options = [
        archives_option,
        contact_option,
        click.option(
            "--maps",
            type=click.Path(exists=True, file_okay=False),
            help="Folder of maps, one per archive, named by its id.",
        ),
        click.option("--top-k", type=click.IntRange(min=1), help="Ask at most N archives, the most probable first."),
        click.option(
            "--timeout",
            default=30.0,
            show_default=True,
            type=click.FloatRange(min=0.01),
            help="Time limit in seconds.",
        ),
        click.option("--use", "ask", cls=Joined, metavar="IDS", help="Only these archives (a,b), or all but one (!a)."),
        click.option("--quiet", "-q", is_flag=True, help="No table of the archives."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


_format = click.option(
    "--format",
    "kind",
    type=click.Choice(["link", "json", "cdxj"]),
    help="Print the chosen memento and its neighbours in this format.",
)
_json = click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
_base = click.option(
    "--base-url",
    "base",
    default="http://localhost:1208",
    show_default=True,
    help="Base address of links in TimeMaps.",
)


@click.command(epilog=TIMEMAP_EPILOG)
@click.argument("uri")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["link", "json", "cdxj"]),
    default="link",
    show_default=True,
    help="Kind of TimeMap.",
)
@_json
@click.option("--since", type=DATE, metavar="DATETIME", help="Only mementos at or after this datetime.")
@click.option(
    "--until",
    type=END_DATE,
    metavar="DATETIME",
    help="Only mementos up to this datetime (2012 includes the whole year).",
)
@_base
@_common
def timemap(
    uri: str, kind: str, as_json: bool, since: datetime | None, until: datetime | None, base: str, **common: Any
) -> int:
    """List the mementos of URI in all archives."""
    from recollect.aggregator.explain import outcome_json
    from recollect.formats.timemap import Place, write_timemap

    kind = "json" if as_json else kind
    question = _Question(Options(**common), uri)
    answer = question.ask(lambda aggregator, lookup: aggregator.timemaps(lookup))
    mementos = answer.mementos.between(since, until)
    if mementos.rows:
        extra = {"archives": [outcome_json(d, o) for d, o in _by_archive(answer)]} if kind == "json" else None
        out = sys.stdout.buffer
        for chunk in write_timemap(kind, Place(base.rstrip("/"), question.uri), mementos, extra=extra):
            out.write(chunk)
        out.flush()
    return question.finish(answer, len(mementos))


@click.command(epilog=MEMENTO_EPILOG)
@click.argument("uri")
@click.argument("at", type=DATE, metavar="[DATETIME]", required=False)
@click.option("--datetime", "at_option", type=DATE, metavar="DATETIME", help="The same as the argument.  [now]")
@click.option("--raw", is_flag=True, help="Download it, without the changes of the archive's replay.")
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Where to write the body.  [default: stdout]")
@_format
@_json
@_base
@_common
def memento(
    uri: str,
    at: datetime | None,
    at_option: datetime | None,
    raw: bool,
    output: str | None,
    kind: str | None,
    as_json: bool,
    base: str,
    **common: Any,
) -> int:
    """Find the memento of URI closest to DATETIME; with --raw, download it.

    DATETIME has any form: 2010, 2010-05-17, 20100517120000, an HTTP date.
    """
    kind = "json" if as_json else kind
    if at is not None and at_option is not None:
        raise UsageError("DATETIME and --datetime exclude each other", hint="leave one of them out")
    at = at or at_option
    if raw and kind:
        raise UsageError("--raw and --format cannot be combined", hint="leave one of them out")
    if output and not raw:
        raise UsageError("-o is for the body", hint="add --raw")
    refuse_inputs(output, [place for place in (common["registry"], common["maps"]) if place])
    question = _Question(Options(**common), uri)
    if not raw:
        return _choose(question, at, kind, base)
    answer, found = question.run(lambda asking: _fetch(asking, at or datetime.now(UTC)))
    if found is None:
        return question.finish(answer, 0)
    chosen, replay, body = found
    _write(body, output)
    code = question.finish(answer, 1)
    talk(f"{chosen.uri}: {format_http_date(chosen.captured_at)}, status {replay.status}, {len(body):,} bytes")
    return code


def _choose(question: _Question, at: datetime | None, kind: str | None, base: str) -> int:
    """Show the closest memento. TimeGates answer fastest; only TimeMaps give its neighbours with certainty."""
    from recollect.formats.timemap import Place, write_memento

    if kind is None:
        answer = question.ask(lambda aggregator, lookup: aggregator.timegates(lookup, at))
    else:
        answer = question.ask(lambda aggregator, lookup: aggregator.timemaps(lookup))
    choice = answer.negotiated(at)
    if choice is None:
        return question.finish(answer, 0)
    if kind is None:
        click.echo(choice.closest.uri)
    else:
        place = Place(base.rstrip("/"), question.uri)
        sys.stdout.buffer.write(write_memento(kind, place, choice))
    code = question.finish(answer, 1)
    talk(f"closest: {format_http_date(choice.closest.captured_at)} ({choice.closest.archive})")
    return code


def _write(body: bytes, output: str | None) -> None:
    if output is None:
        sys.stdout.buffer.write(body)
        return
    from recollect.formats.containers import atomic_output

    with atomic_output(output) as out:
        out.write(body)


@dataclass(frozen=True, slots=True)
class _Asking:
    """The open things a question needs."""

    aggregator: Aggregator
    client: ArchiveClient
    lookup: LookupRequest
    archives: dict[str, Archive]


class _Question:
    """One URI, the archives to ask, and how progress is shown."""

    def __init__(self, options: Options, uri: str) -> None:
        from recollect.aggregator.http.target import clean_uri
        from recollect.archives.registry import choose, load_archives

        self.options = options
        self.uri = clean_uri(uri)
        self.archives = load_archives(options.registry)
        self.chosen = frozenset(a.id for a in choose(self.archives, options.ask)) if options.ask else None

    def ask(self, question: Callable[[Aggregator, LookupRequest], Awaitable[LookupResult]]) -> LookupResult:
        """The answer to one question to the aggregator."""

        async def asked(asking: _Asking) -> LookupResult:
            return await question(asking.aggregator, asking.lookup)

        return self.run(asked)

    def run(self, job: Callable[[_Asking], Awaitable[_T]]) -> _T:
        """Do a job with everything open, and show progress meanwhile."""
        with progress_bar(quiet=self.options.quiet) as progress:
            return asyncio.run(self._run(job, progress))

    async def _run(self, job: Callable[[_Asking], Awaitable[_T]], progress: ProgressCallback) -> _T:
        from recollect.aggregator.archiveset import ArchiveSet
        from recollect.aggregator.service import Aggregator, LookupRequest
        from recollect.archives.opening import ClientOptions, open_client

        options = self.options
        async with open_client(ClientOptions(timeout=options.timeout)) as client:
            archive_set = ArchiveSet(self.archives, self._maps())
            aggregator = Aggregator(client, archive_set, deadline=options.timeout, top_k=options.top_k)
            total = sum(decision.ask for decision in aggregator.route(self.uri, self.chosen))
            answered: list[Outcome] = []
            named = any(not name.strip().startswith("!") for name in options.ask.split(",") if name.strip())
            lookup = LookupRequest(self.uri, self.chosen, named, on_outcome=answered.append)
            ticking = asyncio.ensure_future(_tick(progress, answered, total))
            try:
                return await job(_Asking(aggregator, client, lookup, {a.id: a for a in self.archives}))
            finally:
                ticking.cancel()
                with suppress(asyncio.CancelledError):
                    await ticking
                await aggregator.close()

    def _maps(self) -> Any:
        if self.options.maps is None:
            return None
        from recollect.routing.maps import Maps

        maps = Maps.open(self.options.maps, self.archives)
        for problem in maps.problems:
            talk(f"warning: {problem}")
        return maps

    def finish(self, answer: LookupResult, found: int) -> int:
        """Show the outcome of each archive, and choose the exit code."""
        if not self.options.quiet:
            rows = [_row(decision, outcome) for decision, outcome in _by_archive(answer)]
            emit_table(["archive", "", "mementos", "time", "why"], rows, right=[2, 3], file=sys.stderr)
        failed = len({outcome.archive for outcome in answer.failed})
        heard = sum(outcome.kind != "error" for outcome in answer.outcomes)
        if not found:
            asked = sum(decision.ask for decision in answer.decisions)
            talk(f"no mementos of {self.uri} found; {heard} of {asked} archives asked have answered")
        if failed:
            return 3 if heard or found else 1
        return 0 if found else 1


async def _tick(progress: ProgressCallback, answered: list[Outcome], total: int) -> None:
    while True:
        progress(Progress("asking", len(answered), total, "archives"))
        await asyncio.sleep(0.2)


def _by_archive(answer: LookupResult) -> list[tuple[Decision, Outcome | None]]:
    outcomes = {outcome.archive: outcome for outcome in answer.outcomes}
    # Archives that the user excluded need no row.
    return [(d, outcomes.get(d.archive)) for d in answer.decisions if d.source != "choice"]


def _row(decision: Decision, outcome: Outcome | None) -> tuple[str, str, str, str, str]:
    from recollect.aggregator.explain import outcome_words, why

    if outcome is None:
        return decision.archive, "asked" if decision.ask else "skipped", "", "", why(decision)
    time = f"{outcome.elapsed:.2f} s"
    if outcome.kind == "error":
        return decision.archive, "failed", "", time, outcome_words(outcome)
    state = "partial" if outcome.partial else "asked"
    return decision.archive, state, f"{outcome.count:,}", time, outcome_words(outcome) or why(decision)


_HOPS = 5
_TRIES = 5
_MAX_BODY = 1 << 30


async def _fetch(asking: _Asking, at: datetime) -> tuple[LookupResult, tuple[Memento, ReplayResponse, bytes] | None]:
    """The closest memento that an archive can give, as captured; captured redirects are followed in the archives."""
    first, uri = None, asking.lookup.uri_r
    for _ in range(_HOPS):
        answer = await asking.aggregator.timegates(replace(asking.lookup, uri_r=uri), at)
        first = first or answer
        found = await _fetch_one(asking, answer, uri, at)
        if found is None:
            break
        onward = found[1].location
        if onward is None:
            return first, found
        talk(f"the capture of {uri} redirects to {onward}")
        uri = onward
    assert first is not None
    return first, None


async def _fetch_one(
    asking: _Asking, answer: LookupResult, uri: str, at: datetime
) -> tuple[Memento, ReplayResponse, bytes] | None:
    from recollect.archives.client import decode_body
    from recollect.archives.replay import Wanted, fetch

    nearest = sorted(answer.mementos, key=lambda m: (abs(m.captured_at - at), m.captured_at))
    for chosen in nearest[:_TRIES]:
        body = bytearray()
        wanted = Wanted(uri, chosen.captured_at, chosen.uri)
        try:
            archive = asking.archives[chosen.archive]
            replay = await fetch(asking.client, archive, wanted, body.extend, max_bytes=_MAX_BODY)
            if replay.standing == "archived":
                plain, _ = decode_body(bytes(body), replay.header("content-encoding"), _MAX_BODY)
                return chosen, replay, plain
            why = replay.detail
        except ArchiveError as error:
            why = str(error)
        talk(f"{chosen.archive} could not give {chosen.uri}: {why}")
    return None
