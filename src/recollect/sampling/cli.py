"""`recollect sample`: profile an archive that gives out no index, from outside."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.console import emit_json, emit_table, json_option, numbered_lines, progress_bar, talk
from recollect.cli.types import SHARE, contact_option
from recollect.errors import BadURI, UsageError
from recollect.quantities import counted

if TYPE_CHECKING:
    from recollect.archives.client import ArchiveClient
    from recollect.archives.registry import Archive
    from recollect.model import ProgressCallback
    from recollect.sampling.asking import ProbeCounts
    from recollect.sampling.journal import Journal
    from recollect.sampling.worth import Promise, Worth

EPILOG = """\b
Examples:
  recollect sample uris arquivo --list urls.txt --probes 500 -o run/
  recollect sample prefixes arquivo --keys keys.txt -o run/
  recollect sample search arquivo --terms seed.txt --queries 200 -o run/
  recollect sample map run/ -o maps/arquivo.ukvs --target-recall 95%

\b
Every answer is kept in RUN/journal.jsonl. The same command continues where it stopped; no request is sent twice.
"""

_SHOWN = 5
_Job = Callable[["ArchiveClient", "Archive", "Journal", "ProgressCallback"], Awaitable["ProbeCounts"]]


@click.group(epilog=EPILOG)
def sample() -> None:
    """Make a map of an archive without its index: ask it about samples."""


def _run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.argument("archive"),
        click.option("--archives", type=click.Path(exists=True, dir_okay=False), help="List of archives with ARCHIVE."),
        click.option("--output", "-o", "run", required=True, metavar="RUN", help="Folder of the run's journal."),
        contact_option,
        json_option,
    ):
        command = option(command)
    return command


def _example(*lines: str) -> str:
    return "\b\nExamples:\n" + "\n".join(f"  recollect sample {line}" for line in lines)


@sample.command(
    "uris",
    epilog=_example(
        "uris arquivo --list urls.txt --probes 500 -o run/",
        "uris mine --archives archives.toml --list urls.txt --stratify tld -o run/",
    ),
)
@_run_options
@click.option("--list", "source", required=True, metavar="FILE", help="URLs to draw the sample from; - for stdin.")
@click.option("--probes", default=500, show_default=True, type=click.IntRange(min=1), help="URLs to ask about.")
@click.option("--stratify", type=click.Choice(["tld"]), help="Give rare top-level domains more than their share.")
@click.option("--seed", default=1, show_default=True, help="Another seed draws another sample.")
def uris_command(
    archive: str,
    archives: str | None,
    run: str,
    as_json: bool,
    source: str,
    probes: int,
    stratify: str | None,
    seed: int,
) -> int:
    """Ask ARCHIVE about a sample of known URLs."""
    from recollect.sampling.uris import draw, sample_uris

    reading = _Reading(source)
    drawn = draw(reading.lines(), probes, seed=seed, stratify="tld" if stratify else "", on_bad=reading.bad)
    if not drawn.chosen:
        why = reading.problems[0] if drawn.bad else "the file is empty"
        raise UsageError("no URL to ask about", where=source, why=why)
    for problem in reading.problems:
        talk(f"ignored: {problem}")
    if drawn.bad > len(reading.problems):
        talk(f"ignored {counted(drawn.bad, 'line')} of {source} in total")

    async def job(client: ArchiveClient, asked: Archive, journal: Journal, progress: ProgressCallback) -> ProbeCounts:
        at_once = asked.concurrency or 4
        return await sample_uris(client, asked, drawn, journal, source=source, at_once=at_once, progress=progress)

    return _run(archive, archives, run, as_json, job)


class _Reading:
    """A list of URLs as it is read, and the first of its lines that are not URLs."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._number = 0
        self.problems: list[str] = []

    def lines(self) -> Iterator[str]:
        for number, line in numbered_lines(self._source):
            self._number = number
            yield line

    def bad(self, error: BadURI) -> None:
        if len(self.problems) < _SHOWN:
            self.problems.append(f"{self._source}:{self._number}: {error}")


@sample.command(
    "prefixes",
    epilog=_example(
        "prefixes arquivo --keys keys.txt -o run/", "prefixes arquivo --keys - -o run/   # example.com; com,example,*"
    ),
)
@_run_options
@click.option("--keys", "source", required=True, metavar="FILE", help="Domains, keys or URL prefixes, one per line.")
def prefixes_command(archive: str, archives: str | None, run: str, as_json: bool, source: str) -> int:
    """List domains or prefixes through ARCHIVE's CDX interface."""
    from recollect.sampling.prefixes import prefix_of, sample_prefixes

    prefixes = []
    for number, line in numbered_lines(source):
        try:
            prefixes.append(prefix_of(line.strip()))
        except (BadURI, UsageError) as error:
            raise UsageError(
                "not a domain, key or URL prefix", where=f"{source}:{number}", why=str(error), hint=error.hint
            ) from error
    if not prefixes:
        raise UsageError("no key to list", where=source, why="the file is empty")

    async def job(client: ArchiveClient, asked: Archive, journal: Journal, progress: ProgressCallback) -> ProbeCounts:
        return await sample_prefixes(client, asked, prefixes, journal, progress=progress)

    return _run(archive, archives, run, as_json, job)


@sample.command(
    "search",
    epilog=_example(
        "search arquivo --terms seed.txt --queries 200 -o run/",
        "search arquivo --terms words.txt --fixed -o run/",
    ),
)
@_run_options
@click.option("--terms", "source", required=True, metavar="FILE", help="Words to begin with, one query per line.")
@click.option(
    "--queries",
    default=200,
    show_default=True,
    type=click.IntRange(min=1),
    help="Number of queries, including those of earlier runs.",
)
@click.option("--results", default=50, show_default=True, type=click.IntRange(1, 500), help="Results of each query.")
@click.option("--fixed", is_flag=True, help="Search only for these terms; learn no words from the results.")
@click.option("--seed", default=1, show_default=True, help="Another seed draws other words.")
def search_command(
    archive: str,
    archives: str | None,
    run: str,
    as_json: bool,
    source: str,
    queries: int,
    results: int,
    fixed: bool,
    seed: int,
) -> int:
    """Search ARCHIVE's full text; words of the results become the next queries."""
    from recollect.sampling.search import sample_search

    terms = _terms(source)

    async def job(client: ArchiveClient, asked: Archive, journal: Journal, progress: ProgressCallback) -> ProbeCounts:
        return await sample_search(
            client, asked, terms, queries, journal, results=results, learn=not fixed, seed=seed, progress=progress
        )

    return _run(archive, archives, run, as_json, job)


def _terms(source: str) -> list[str]:
    terms = []
    for number, line in numbered_lines(source):
        if any("\udc80" <= char <= "\udcff" or char == "\0" for char in line):
            raise UsageError(
                "not text in UTF-8", where=f"{source}:{number}", hint="convert it: iconv -f LATIN1 -t UTF-8 (or UTF-16)"
            )
        terms.append(line)
    if not terms:
        raise UsageError("no term to search for", where=source, why="the file is empty")
    return terms


@sample.command("map", epilog=_example("map run/ -o maps/arquivo.ukvs --target-recall 95%"))
@click.argument("run", type=click.Path(exists=True, file_okay=False))
@click.option("--output", "-o", required=True, type=click.Path(dir_okay=False), help="The map to write.")
@click.option(
    "--target-recall", default="95%", show_default=True, type=SHARE, help="Share of what is held that must be found."
)
@click.option(
    "--floor",
    default="30%",
    show_default=True,
    type=SHARE,
    help="Share of what is held that `route --target-recall` asks for at least.",
)
@json_option
def map_command(run: str, output: str, target_recall: float, floor: float, as_json: bool) -> int:
    """Make a map of a RUN, and estimate its recall."""
    from recollect.formats.outputs import refuse_inputs
    from recollect.formats.ukvs import Writer
    from recollect.sampling.journal import NAME, read_journal
    from recollect.sampling.worth import TARGETS, worth_of

    if not 0 < target_recall < 1:
        raise UsageError("a recall lies between 0% and 100%", where="--target-recall")
    refuse_inputs(output, [Path(run) / NAME])
    archive, entries = read_journal(run)
    worth = worth_of(archive, entries, {*TARGETS, target_recall}, floor)
    if not (worth.probes or worth.seen or worth.listings):
        raise UsageError("nothing was answered in this run", where=run, hint="recollect sample uris --help")
    with Writer(output, worth.header(target_recall)) as writer:
        for record in worth.records:
            writer.write(record)
    _show_worth(worth, output, target_recall, as_json)
    return 0


def _run(name: str, registry: str | None, run: str, as_json: bool, job: _Job) -> int:
    from recollect.archives.opening import open_client
    from recollect.archives.registry import load_archives
    from recollect.sampling.journal import Journal
    from recollect.sampling.worth import worth_of

    known = {archive.id: archive for archive in load_archives(registry)}
    if name not in known:
        raise UsageError("no such archive", where=name, why=f"known are {', '.join(known)}")
    archive = known[name]

    async def asked(journal: Journal, progress: ProgressCallback) -> ProbeCounts:
        async with open_client() as client:
            return await job(client, archive, journal, progress)

    with Journal(run, name) as journal, progress_bar() as progress:
        tally = asyncio.run(asked(journal, progress))
        worth = worth_of(name, journal.entries)
    if as_json:
        emit_json(
            {"run": run, "asked_now": tally.asked, "errors_now": tally.errors, "stopped": tally.stopped} | _json(worth)
        )
    else:
        _show_run(worth, tally, run)
    if tally.stopped:
        talk(f"stopped early: {tally.stopped}\nThe same command goes on where it stopped.")
    return 3 if tally.stopped or tally.errors else 0


def _show_run(worth: Worth, tally: ProbeCounts, run: str) -> None:
    rows = [("asked now", f"{tally.asked:,}"), ("errors now", f"{tally.errors:,}")]
    if worth.probes:
        rows += [("URLs answered", f"{worth.probes:,}"), ("of them held", f"{worth.held:,}")]
    if worth.listings:
        rows += [("prefixes listed", f"{worth.listings:,}"), ("of them empty", f"{worth.empty_listings:,}")]
    if worth.queries:
        rows += [("queries answered", f"{worth.queries:,}")]
    rows += [("URLs seen in the archive", f"{worth.seen:,}")]
    emit_table(["", worth.archive], rows, right=[1])
    talk(f"next: recollect sample map {run} -o {worth.archive}.ukvs")


def _show_worth(worth: Worth, output: str, target: float, as_json: bool) -> None:
    if as_json:
        emit_json({"map": output, "keys": len(worth.records), "target_recall": target} | _json(worth))
        return
    talk(f"{output}: {counted(len(worth.records), 'key')} of a sample of {worth.archive}; what is not in it is unknown")
    if worth.share_held is not None:
        share = worth.share_held
        talk(
            f"of {counted(worth.probes, 'URL')} answered, {worth.held:,} are held: "
            f"{share.value:.1%} of the list ({share.low:.1%} to {share.high:.1%})"
        )
    if worth.uri_rs is not None:
        estimate = worth.uri_rs
        talk(
            f"URI-Rs that searches can reach: about {estimate.value:,.0f} ({estimate.low:,.0f} to {estimate.high:,.0f})"
        )
    if worth.promises:
        rows = [_promise_row(one) for one in worth.promises]
        emit_table(
            ["target recall", "recall", "asked", ""], rows, right=[0, 1, 2], title="Each find judged without itself"
        )
    if worth.floor is not None:
        talk(
            f"promised by `route --target-recall`, whatever other archives hold: at least {worth.floor.target:.0%} of "
            f"what {worth.archive} holds (here {worth.floor.recall:.0%}, by asking about {worth.floor.asked:.0%})"
        )


def _promise_row(one: Promise) -> tuple[str, str, str, str]:
    if one.asked is None:
        return f"{one.target:.0%}", f"{one.recall:.1%}", "", f"asked about URLs of {one.scope}; others unlikely"
    if one.threshold is None:
        why = "too few probes or finds: asked about everything unknown"
        return f"{one.target:.0%}", "100.0%", "100.0%", why
    return f"{one.target:.0%}", f"{one.recall:.1%}", f"{one.asked:.1%}", ""


def _json(worth: Worth) -> dict[str, Any]:
    return {
        "archive": worth.archive,
        "probes": worth.probes,
        "held": worth.held,
        "errors": worth.errors,
        "listings": worth.listings,
        "empty_listings": worth.empty_listings,
        "queries": worth.queries,
        "seen": worth.seen,
        "share_held": worth.share_held.as_json() if worth.share_held else None,
        "uri_rs": worth.uri_rs.as_json() if worth.uri_rs else None,
        "promises": [
            {
                "target_recall": one.target,
                "threshold": one.threshold,
                "enough_probes": one.threshold is not None,
                "recall": one.recall,
                "asked": one.asked,
                "asked_about": one.scope,
            }
            for one in worth.promises
        ],
        "floor": {"promised_recall": worth.floor.target, "recall": worth.floor.recall, "asked": worth.floor.asked}
        if worth.floor
        else None,
    }
