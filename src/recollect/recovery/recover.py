"""A recovery from beginning to end: survey, crawl, restore, report. The library's door; the edge only asks and prints.

Hides: beginning, resuming and repeating, and the order of the outputs. Invariants: an output folder belongs to one
start; what was recovered before is never asked for again; outputs are made from the store alone, so they can be made
anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from recollect.archives.client import ArchiveClient
from recollect.archives.proxies import from_environment
from recollect.archives.registry import Archive, choose, load_archives
from recollect.datetimes import format_timestamp
from recollect.errors import UsageError
from recollect.model import ProgressCallback
from recollect.recovery.crawl import RETRIED, TIMEOUT, Crawl, Event, Finished, Status
from recollect.recovery.journal import Journal, now_utc
from recollect.recovery.lister import Lister, site_queries
from recollect.recovery.maps import Maps
from recollect.recovery.meter import PATIENCE, Meter, evenly, quotas_of
from recollect.recovery.options import Options
from recollect.recovery.rehost import write_kit
from recollect.recovery.report import Report, make_report, write_report
from recollect.recovery.restore import restore
from recollect.recovery.scope import Scope
from recollect.recovery.store import Store
from recollect.recovery.survey import Survey, survey
from recollect.recovery.warcs import write_wacz, write_warc

NAME = "recovered"


@dataclass(frozen=True, slots=True)
class Outputs:
    """What to make of the store."""

    tree: bool = True
    warc: bool = True
    wacz: bool = True
    kit: bool = True
    summary: Path | None = None  # where the summary goes, if not into the folder


@dataclass(frozen=True, slots=True)
class Watch:
    """Who is told what while a recovery runs."""

    status: Callable[[Status], None] = lambda _status: None
    event: Callable[[Event], None] = lambda _event: None
    listed: Callable[[Survey], bool] = lambda _survey: True  # False: do not go on
    progress: ProgressCallback = lambda _progress: None
    stop: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class Recovery:
    """How it ended; no report when the user did not want to go on."""

    finished: Finished
    report: Report | None


def recover(
    uri: str,
    out_dir: str | Path,
    *,
    archives: Sequence[Archive] | None = None,
    options: Options | None = None,
    outputs: Outputs = Outputs(),  # noqa: B008 - frozen
    watch: Watch = Watch(),  # noqa: B008 - frozen
) -> Recovery:
    """Recover a site into a folder, from the given archives or the public ones; again to fill gaps."""
    known = archives if archives is not None else choose(load_archives(), "")
    chosen = options or Options(Scope((uri,)))
    with Store.create(Path(out_dir)) as store:
        prepare(store, chosen, resuming=False)
        return recover_site(store, known, chosen, outputs=outputs, watch=watch)


def survey_site(
    archives: Sequence[Archive], options: Options, maps: Maps, on_page: Callable[[str, int], None]
) -> Survey:
    """What the archives hold of a site, nothing kept."""

    async def ask(store: Store) -> Survey:
        asked, skipped = _asked(archives, options, maps)
        journal = Journal(store)
        async with ArchiveClient(timeout=TIMEOUT, proxies=from_environment) as client:
            meter = Meter(client, journal, quotas_of(asked, options.quotas))
            lister = Lister(meter, journal, options.rules, on_page)
            start = options.scope.start
            queries = site_queries(options.scope)
            polite = [evenly(archive) for archive in asked]
            await asyncio.gather(lister.list_site(polite, queries), lister.ask_front(polite, start))
        return survey(journal, archives, options, skipped)

    with Store.in_memory() as store:
        return asyncio.run(ask(store))


def _asked(archives: Sequence[Archive], options: Options, maps: Maps) -> tuple[list[Archive], dict[str, str]]:
    """The archives worth asking, and why the others are not: a rule of theirs, or their map."""
    asked, skipped = [], {}
    for archive in archives:
        rules = [archive.rule(uri) for uri in options.scope.start]
        if all(rule is not None for rule in rules):
            skipped[archive.id] = f"by rule: {rules[0]}"
        elif not maps.may_hold_site(archive, options.scope):
            skipped[archive.id] = "its map has nothing of the site"
        else:
            asked.append(archive)
    return asked, skipped


def prepare(store: Store, options: Options, *, resuming: bool) -> None:
    """Make a store ready for a run: a new one, one to go on with, or one to fill the gaps of."""
    start = list(options.scope.start)
    if store.start and store.start != start:
        raise UsageError(
            "the folder holds another recovery",
            where=str(store.out_dir),
            why=f"of {', '.join(store.start)}",
            hint="choose another folder with -o",
        )
    journal = Journal(store)
    if not store.start:
        store.set_meta("began_at", format_timestamp(now_utc()))
    elif not resuming:
        # A later run: list afresh, and look again for whatever did not come; what is there is not asked for again.
        journal.forget_listings()
        journal.requeue(("never-archived", "rejected", "out-of-range", "blocked"))
    journal.requeue(RETRIED)
    store.set_meta("start", start)
    store.set_meta("rules", options.rules.to_json())
    store.set_meta("options", options.to_json())


def recover_site(
    store: Store,
    archives: Sequence[Archive],
    options: Options,
    *,
    maps: Maps | None = None,
    outputs: Outputs = Outputs(),  # noqa: B008 - frozen
    watch: Watch = Watch(),  # noqa: B008 - frozen
    patience: float = PATIENCE,
    wait: bool = False,
) -> Recovery:
    """Recover into a prepared store, then write everything that is made of it."""
    maps = maps or Maps()
    asked, skipped = _asked(archives, options, maps)

    def listed(journal: Journal) -> bool:
        return watch.listed(survey(journal, archives, options, skipped))

    crawl = Crawl(
        store,
        asked,
        options,
        on_status=watch.status,
        on_event=watch.event,
        on_listed=listed,
        may_hold=maps.may_hold,
        patience=patience,
        stop=watch.stop,
        wait=wait,
    )
    finished = asyncio.run(crawl.run())
    if finished.stopped == "not wanted":
        return Recovery(finished, None)
    return Recovery(finished, write_outputs(store, outputs, watch.progress))


def write_outputs(store: Store, outputs: Outputs, progress: ProgressCallback) -> Report:
    """The browsable tree, the WARC and WACZ, the re-hosting kit and the report, from the store alone."""
    folder = store.out_dir
    names = restore(store, folder, progress=progress).names if outputs.tree else {}
    if outputs.warc:
        write_warc(store, folder / f"{NAME}.warc.gz")
    if outputs.wacz:
        write_wacz(store, folder / f"{NAME}.wacz", title=", ".join(store.start))
    if outputs.kit and names:
        write_kit(store, names, folder / "rehost")
    report = make_report(store, names)
    write_report(report, folder, summary=outputs.summary)
    return report
