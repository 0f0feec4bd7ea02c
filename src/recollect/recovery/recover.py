"""A recovery from beginning to end: survey, crawl, restore, report. The library's door; the edge only asks and prints.

Hides: beginning, resuming and repeating, and the order of the outputs. Invariants: an output folder belongs to one
start; what was recovered before is never asked for again; outputs are made from the store alone, so they can be made
again at any time (`remake`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from recollect.archives.opening import ClientOptions, open_client
from recollect.archives.registry import Archive
from recollect.archives.transport import Permits
from recollect.blocking import blocking
from recollect.datetimes import format_timestamp
from recollect.errors import UsageError
from recollect.recovery.canonical import visit_key
from recollect.recovery.disk import on_this_disk
from recollect.recovery.journal import Journal, Queued, now_utc
from recollect.recovery.knowledge import SiteKnowledge
from recollect.recovery.lister import Lister, site_queries
from recollect.recovery.local import LocalSources, open_local
from recollect.recovery.meter import PATIENCE, TIMEOUT, Meter, OutOfQuota, evenly, quotas_of
from recollect.recovery.options import Options
from recollect.recovery.outputs import Outputs, write_outputs
from recollect.recovery.ownership import Ownership
from recollect.recovery.plan import RecoveryPolicy
from recollect.recovery.progress import Finished, Watch
from recollect.recovery.scope import Scope
from recollect.recovery.sources import Sources, worth_asking
from recollect.recovery.store import Store
from recollect.recovery.survey import Survey, survey
from recollect.recovery.verdicts import RETRIED, Reason, Stop
from recollect.routing.maps import Maps

if TYPE_CHECKING:
    from recollect.recovery.report import Report

Archives = Sequence[Archive] | Sources


@dataclass(frozen=True, slots=True)
class Run:
    """How a run behaves; nothing of this changes what is recovered in the end."""

    patience: float = PATIENCE  # longest wait, in seconds, for an archive that is busy or silent
    wait: bool = False  # for the next period when a quota is used up, instead of ending
    used: Mapping[str, int] = field(
        default_factory=dict
    )  # requests made elsewhere in this period; `*`: to each archive
    longest_pause: float = inf  # seconds that a run waits in one go for an archive that refuses, instead of going on
    permits: Permits | None = None  # asked before every request, for a budget over several processes
    skip: frozenset[str] = frozenset()  # captures that are not read, by their address: reading them did not end


@dataclass(frozen=True, slots=True)
class Recovery:
    """How it ended; no report when the user did not want to go on."""

    finished: Finished
    report: Report | None


@blocking
def recover(
    start: str | Sequence[str] | None,
    out_dir: str | Path,
    *,
    archives: Archives | None = None,
    also: Sequence[str | Path] = (),
    base: str = "",
    maps: str | Path | Maps | None = None,
    options: Options | None = None,
    outputs: Outputs | None = None,
    watch: Watch = Watch(),  # noqa: B008 - frozen
    run: Run = Run(),  # noqa: B008 - frozen
) -> Recovery:
    """Recover a site into a folder: again to fill gaps, or with `start` None to resume what was interrupted.

    `archives` are archives, or `Sources` to read them from; by default the public ones, of a resumed recovery those it
    was begun with. `also` are files and folders that hold captures, too (`base`: the address of those that do not say
    it); with `Sources` they are in that value. `maps` is a folder of published maps. `options` and `outputs` of a
    resumed recovery are those it was begun with, unless given.
    """
    folder = Path(out_dir)
    before = Sources()
    if start is None:
        with Store.open(folder) as old:
            before = Sources.from_json(old.meta("asked", {}))
            options, archives, outputs = _resumed(old, options, archives, outputs)
    else:
        uris = (start,) if isinstance(start, str) else tuple(start)
        options = options or Options(Scope(uris))
    sources = archives if isinstance(archives, Sources) else None if archives is not None else Sources()
    known = sources.archives() if sources is not None else list(archives or ())  # type: ignore[arg-type]
    idle: list[str] = []
    if sources is not None and start is None and sources.use != before.use:
        # Another choice of archives holds for this run only; those left out are not taken to hold nothing.
        names = {archive.id for archive in known}
        idle = [one.id for one in replace(sources, use=before.use).archives() if one.id not in names]
    outputs = outputs or Outputs()
    places = maps or (sources.maps if sources else None)
    files = sources or Sources(also=tuple(str(path) for path in also), base=base)
    with (
        on_this_disk(folder),
        _opened(places, known, watch) as opened,
        open_local(files, options.scope, (archive.id for archive in known), watch.problem) as local,
        Store.create(folder) as store,
    ):
        known += local.archives
        prepare(store, options, resuming=start is None, again=bool(idle))
        if sources is not None:
            kept = replace(sources, use=before.use) if start is None else sources
            store.set_meta("asked", kept.to_json())
        store.set_meta("outputs", outputs.to_json())
        _charge(store, known, run.used)
        return _recover(store, known, options, opened, outputs, watch, run, idle, local)


def stored_options(out_dir: str | Path) -> Options:
    """The options a recovery was begun with; raises UsageError where there is none."""
    with Store.open(Path(out_dir)) as store:
        return _stored_options(store)


def stored_outputs(out_dir: str | Path) -> Outputs:
    """What a recovery wrote the last time."""
    with Store.open(Path(out_dir)) as store:
        return Outputs.from_json(store.meta("outputs", {}))


def _stored_options(store: Store) -> Options:
    stored = store.meta("options")
    if stored is None:
        raise UsageError("nothing to resume", where=str(store.out_dir), hint="recollect recover URI -o FOLDER")
    return Options.from_json(stored)


def _resumed(
    store: Store, options: Options | None, archives: Archives | None, outputs: Outputs | None
) -> tuple[Options, Archives, Outputs]:
    before = Sources.from_json(store.meta("asked", {}))
    if archives is None:
        archives = before
    elif isinstance(archives, Sources):
        archives = archives.over(before)
    return options or _stored_options(store), archives, outputs or Outputs.from_json(store.meta("outputs", {}))


@contextmanager
def _opened(maps: str | Path | Maps | None, archives: Sequence[Archive], watch: Watch) -> Iterator[Maps]:
    """The maps: those of a folder, and those that archives name; a damaged one is reported, and its archive asked."""
    if isinstance(maps, Maps):
        yield maps
        return
    opened = Maps.open(maps or None, archives)
    try:
        for problem in (*opened.problems, *opened.warnings):
            watch.problem(problem)
        yield opened
    finally:
        opened.close()


def _charge(store: Store, archives: Sequence[Archive], used: Mapping[str, int]) -> None:
    journal = Journal(store)
    for archive in archives:
        count = used.get(archive.id, used.get("*", 0))
        if count:
            journal.charge(archive.id, count)


@blocking
def survey_site(
    start: str | Sequence[str],
    *,
    archives: Archives | None = None,
    maps: str | Path | Maps | None = None,
    options: Options | None = None,
    on_page: Callable[[str, int], None] = lambda _archive, _captures: None,
    run: Run = Run(),  # noqa: B008 - frozen
    watch: Watch = Watch(),  # noqa: B008 - frozen
) -> Survey:
    """What the archives hold of a site, nothing kept. A few captures of the front page are looked at, to know when the
    owner's time ended. `on_page` is called with an archive and its captures so far."""
    uris = (start,) if isinstance(start, str) else tuple(start)
    wanted = options or Options(Scope(uris))
    sources = archives if isinstance(archives, Sources) else None if archives is not None else Sources()
    known = sources.archives() if sources is not None else list(archives or ())  # type: ignore[arg-type]

    async def ask(store: Store, opened: Maps, local: LocalSources) -> Survey:
        asked, skipped = worth_asking(known, wanted, opened)
        journal = Journal(store)
        async with open_client(ClientOptions(timeout=TIMEOUT), permits=run.permits) as client:
            quotas = quotas_of(asked, wanted.quotas)
            meter = Meter(client, journal, quotas, patience=run.patience, longest_pause=run.longest_pause)
            lister = Lister(meter, journal, wanted.rules, on_page, local=local)
            polite = [evenly(archive) for archive in asked]
            queries = site_queries(wanted.scope)
            await asyncio.gather(lister.list_site(polite, queries), lister.ask_front(polite, wanted.scope.start))
            ownership = await _owners(store, meter, lister, polite, wanted)
        return survey(journal, known, wanted, skipped, ownership)

    with (
        _opened(maps or (sources.maps if sources else None), known, watch) as opened,
        open_local(sources, wanted.scope, (archive.id for archive in known), watch.problem) as local,
        TemporaryDirectory(prefix="recollect-survey-") as folder,
        Store.create(Path(folder)) as store,
    ):
        known += local.archives
        return asyncio.run(ask(store, opened, local))


async def _owners(
    store: Store, meter: Meter, lister: Lister, archives: Sequence[Archive], options: Options
) -> Ownership:
    """Whose site it was, and when, by the looks that a recovery would take."""
    from recollect.recovery.acquire import Acquirer  # with the judge of pages
    from recollect.recovery.owners import owner_evidence, search_ownership

    if options.keep_suspects or options.dates.at is not None:
        return Ownership()
    journal = Journal(store)
    start = frozenset(visit_key(uri, options.rules) for uri in options.scope.start)
    usable = frozenset(archive.id for archive in archives if meter.budget(archive.id) != 0)
    acquirer = Acquirer(store, journal, meter, lister, archives, options)
    site = SiteKnowledge(repeats=journal.repeated_digests())
    evidence = owner_evidence(journal, options, start, usable)
    try:
        return await search_ownership(evidence, lambda one, front: acquirer.observe(one, site, front=front))
    except OutOfQuota:
        return Ownership()


def _same_start(before: Sequence[str], start: Sequence[str], options: Options) -> bool:
    """Is it one site, in whatever spelling: with or without www, http or https?"""
    return {visit_key(uri, options.rules) for uri in before} == {visit_key(uri, options.rules) for uri in start}


def prepare(store: Store, options: Options, *, resuming: bool, again: bool = False) -> None:
    """Make a store ready for a run: a new one, one to go on with, or one to fill the gaps of.

    `again` is a resumed run that asks chosen archives once more, also for what they refused.
    """
    start = list(options.scope.start)
    if store.start and not _same_start(store.start, start, options):
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
        journal.requeue((Reason.NEVER_ARCHIVED, Reason.REJECTED, Reason.OUT_OF_RANGE, Reason.BLOCKED))
        with journal.transaction():
            for one in store.drop_substitutes():
                journal.enqueue(Queued(one.key, one.uri, one.kind, one.found_on))
    else:
        _requeue_for(journal, Options.from_json(store.meta("options")), options)
    journal.requeue((*RETRIED, Reason.BLOCKED) if again else RETRIED)
    if not store.start:
        store.set_meta("start", start)
    store.set_meta("rules", options.rules.to_json())
    store.set_meta("options", options.to_json())


def _requeue_for(journal: Journal, before: Options, now: Options) -> None:
    """Put back what options that are new to a resumed recovery may bring."""
    if now.keep_suspects and not before.keep_suspects:
        journal.requeue((Reason.REJECTED,))
    if now.live_fallback and not before.live_fallback:
        journal.requeue((Reason.NEVER_ARCHIVED, Reason.REJECTED, Reason.BLOCKED))


def _recover(
    store: Store,
    archives: Sequence[Archive],
    options: Options,
    maps: Maps,
    outputs: Outputs,
    watch: Watch,
    run: Run,
    idle: Sequence[str],
    local: LocalSources,
) -> Recovery:
    """Recover into a prepared store, then write everything that is made of it."""
    from recollect.recovery.crawl import Crawl  # with the judge of pages, which a survey does not need

    asked, skipped = worth_asking(archives, options, maps)

    def listed(journal: Journal) -> bool | RecoveryPolicy:
        return watch.listed(survey(journal, archives, options, skipped))

    crawl = Crawl(
        store,
        asked,
        options,
        on_status=watch.status,
        on_event=watch.event,
        on_listed=listed,
        may_hold=lambda archive, uri: maps.may_hold(archive.id, uri),
        patience=run.patience,
        longest_pause=run.longest_pause,
        stop=watch.stop,
        wait=run.wait,
        permits=run.permits,
        on_reading=watch.reading,
        skip=run.skip,
        idle=idle,
        local=local,
    )
    finished = asyncio.run(crawl.run())
    if finished.stopped == Stop.DECLINED:
        return Recovery(finished, None)
    return Recovery(finished, write_outputs(store, outputs, watch.progress))


def remake(out_dir: str | Path, *, outputs: Outputs | None = None, watch: Watch = Watch()) -> Report:  # noqa: B008
    """Make the outputs of a recovery again, from its store alone: after a review, or with other choices."""
    folder = Path(out_dir)
    with Store.open(folder) as old:
        chosen = outputs or Outputs.from_json(old.meta("outputs", {}))
    with on_this_disk(folder), Store.create(folder) as store:
        store.set_meta("outputs", chosen.to_json())
        return write_outputs(store, chosen, watch.progress)
