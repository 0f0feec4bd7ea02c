"""`recollect archives list|check`: who is asked, and who answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.console import emit_json, emit_table, json_option, progress_bar, talk
from recollect.cli.types import archives_option, contact_option
from recollect.errors import UsageError
from recollect.model import Progress

if TYPE_CHECKING:
    from recollect.aggregator.outcomes import Outcome
    from recollect.archives.registry import Archive
    from recollect.model import ProgressCallback

EPILOG = """\b
Examples:
  recollect archives list                               the built-in list of public archives
  recollect archives list --archives archives.json      your own list (or MemGator's)
  recollect archives check                              ask each for a page that all of them hold
  recollect archives check ia arquivo --json
"""
CHECK_EPILOG = """\b
Examples:
  recollect archives check
  recollect archives check ia arquivo --uri http://www.iana.org/
  recollect archives check --archives archives.toml --timeout 10 --json

\b
Each archive gets one request for the TimeMap of one URI (more if it has pages). An HTML page instead of a TimeMap, a
browser challenge, or a timeout is a failure; "none" is not.
Exit code: 0 all answered, 3 some failed, 1 all failed, 2 wrong usage.
"""


@click.group(epilog=EPILOG)
def archives() -> None:
    """List archives, and check whether they answer."""


@archives.command("list", epilog=EPILOG)
@archives_option
@json_option
def list_archives(registry: str | None, as_json: bool) -> int:
    """List the archives with their interfaces and rate limits."""
    from recollect.archives.registry import load_archives

    known = load_archives(registry)
    if as_json:
        emit_json([_described(archive) for archive in known])
        return 0
    rows = [
        (a.id, a.name, _offers(a), str(a.index_rate or ""), _remark(a))
        for a in sorted(known, key=lambda archive: archive.ignore)
    ]
    emit_table(["id", "name", "offers", "rate", ""], rows)
    asked = sum(not archive.ignore for archive in known)
    talk(f"{asked} of {len(known)} archives are asked; the others only when named")
    return 0


def _offers(archive: Archive) -> str:
    offered = [name for name in ("timemap", "timegate", "cdx", "raw", "map") if getattr(archive, name)]
    return " ".join(offered)


def _remark(archive: Archive) -> str:
    rules = [f"only {', '.join(archive.only)}"] if archive.only else []
    rules += [f"never {', '.join(archive.never)}"] if archive.never else []
    ignored = [f"not asked{': ' + archive.note if archive.note else ''}"] if archive.ignore else []
    return "; ".join(ignored + rules)


def _described(archive: Archive) -> dict[str, Any]:
    """All of it but secrets: of headers only the names."""
    described: dict[str, Any] = {
        name: getattr(archive, name)
        for name in ("id", "name", "timemap", "timegate", "cdx", "raw", "map")
        if getattr(archive, name)
    }
    rates = {"index": archive.index_rate, "replay": archive.replay_rate}
    described["rates"] = {name: str(rate) for name, rate in rates.items() if rate}
    for name in ("concurrency", "timeout", "probability", "allow_hosts", "only", "never", "note"):
        if getattr(archive, name):
            described[name] = getattr(archive, name)
    if archive.headers:
        described["headers"] = [name for name, _ in archive.headers]
    described["ignore"] = archive.ignore
    return described


@archives.command("check", epilog=CHECK_EPILOG)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@archives_option
@contact_option
@click.option("--uri", default="http://example.com/", show_default=True, help="URI to look up.")
@click.option(
    "--timeout",
    default=30.0,
    show_default=True,
    type=click.FloatRange(min=0.01),
    help="Time limit in seconds for each archive.",
)
@json_option
def check(ids: tuple[str, ...], registry: str | None, uri: str, timeout: float, as_json: bool) -> int:
    """Ask each archive (those with ID, or all of the list) for one page, and show which of them answer."""
    from recollect.archives.registry import choose, load_archives

    chosen = choose(load_archives(registry), ",".join(ids))
    if not chosen:
        raise UsageError("no archives to check", hint="`recollect archives list` shows them")
    with progress_bar() as progress:
        outcomes = asyncio.run(_check(chosen, uri, timeout, progress))
    if as_json:
        emit_json([_state(outcome) for outcome in outcomes])
    else:
        rows = [
            (o.archive, o.kind if o.kind == "error" else "ok", f"{o.count:,}", f"{o.elapsed:.2f} s", _words(o))
            for o in outcomes
        ]
        emit_table(["archive", "state", "mementos", "time", ""], rows, right=[2, 3])
    failed = sum(outcome.kind == "error" for outcome in outcomes)
    return 0 if not failed else 1 if failed == len(outcomes) else 3


async def _check(chosen: tuple[Archive, ...], uri: str, timeout: float, progress: ProgressCallback) -> list[Outcome]:
    from recollect.aggregator.gather import gather_timemaps
    from recollect.archives.opening import ClientOptions, open_client

    done = 0

    def on_outcome(_outcome: Outcome) -> None:
        nonlocal done
        done += 1
        progress(Progress("asking", done, len(chosen), "archives"))

    progress(Progress("asking", 0, len(chosen), "archives"))
    async with open_client(ClientOptions(timeout=timeout)) as client:
        deadline = asyncio.get_running_loop().time() + timeout
        return await gather_timemaps(client, chosen, uri, deadline=deadline, on_outcome=on_outcome)


def _words(outcome: Outcome) -> str:
    from recollect.aggregator.explain import outcome_words

    return outcome_words(outcome) or "; ".join(outcome.timemap.problems)


def _state(outcome: Outcome) -> dict[str, Any]:
    from recollect.aggregator.explain import outcome_fields

    return {
        "archive": outcome.archive,
        "state": "error" if outcome.kind == "error" else "ok",
        "requests": outcome.requests,
        "seconds": round(outcome.elapsed, 3),
        "error": "",
        "why": "",
        "partial": "",
        "problems": [],
        **outcome_fields(outcome),
    }
