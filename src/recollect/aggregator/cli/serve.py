"""Commands of the aggregator's operator: `serve`, `route`, `replay`, `config`."""

from __future__ import annotations

import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.console import emit_json, emit_json_line, emit_table, json_option, numbered_lines, progress_bar, talk
from recollect.cli.logs import log_option, start_logging
from recollect.cli.types import DATE, DURATION, SHARE, Joined
from recollect.errors import BadURI, UsageError
from recollect.quantities import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from recollect.aggregator.kinds import KindOf
    from recollect.aggregator.simulation import Logged, RoutingTotals
    from recollect.archives.registry import Archive
    from recollect.routing.choice import Decision

_SERVE_EPILOG = """\b
Examples:
  recollect serve                                        the public archives, on http://127.0.0.1:1208/
  recollect serve --archives archives.json --maps maps/  ask only the archives that can answer
  recollect serve --port 0 --no-cache --no-learn         as MemGator: ask all archives, every time
  recollect serve --state /var/lib/recollect --workers 2 --access-log access.jsonl

\b
Every flag is also a setting: in a TOML file (--config) or in the environment (RECOLLECT_TOP_K=5);
`recollect config show` lists them all. SIGHUP reads archives and maps again, SIGTERM stops the server.
"""


def settings_options(command: Any) -> Any:
    """The flags of `serve`, each a setting of the same name."""
    options = [
        click.option("--config", type=click.Path(dir_okay=False), help="File of settings (TOML)."),
        click.option("--archives", metavar="FILE|URL", help="List of archives: MemGator's archives.json, or TOML."),
        click.option("--maps", help="Folder with one map or filter per archive, named by its id."),
        click.option("--host", help="Address to listen on.  [127.0.0.1]"),
        click.option("--port", type=int, help="Port to listen on, 0 for a free one.  [1208]"),
        click.option("--base-url", help="Public address, if a proxy is in front."),
        click.option("--workers", type=int, help="Processes that serve.  [1]"),
        click.option("--deadline", "--timeout", "deadline", help="Time limit for a response, like 10 or 500ms.  [30]"),
        click.option("--top-k", type=int, help="Ask at most N archives, the most probable first."),
        click.option(
            "--target-recall",
            help="Ask archives by probability until this share of the holdings is expected to be found.",
        ),
        click.option(
            "--floor", help="With --target-recall: the least share of what each archive holds to ask for.  [30%]"
        ),
        click.option(
            "--max-stale-loss", help="Ask an archive if the chance that its map's no is outdated is larger.  [1%]"
        ),
        click.option(
            "--any-status/--no-any-status",
            default=None,
            help="Ask also for captures that the status filter of a map leaves out.",
        ),
        click.option("--near", help="TimeGates skip archives whose maps show captures only further away, like 2y."),
        click.option("--budget", type=int, help="At most N requests per lookup, pages included."),
        click.option("--max-pages", type=int, help="Requests per archive and lookup.  [100]"),
        click.option("--concurrency", type=int, help="Requests at a time to one archive.  [100]"),
        click.option("--cache", help="memory, none, a file, or redis://host:port/db.  [memory]"),
        click.option("--no-cache", is_flag=True, help="Ask the archives every time."),
        click.option("--learn/--no-learn", default=None, help="Learn from outcomes what archives without a map hold."),
        click.option("--state", help="Folder that keeps the cache and the learned model over a restart."),
        click.option("--access-log", help="File for the access log (JSON lines), - for standard output."),
        click.option("--monitor/--no-monitor", default=None, help="Serve /monitor, events of every lookup."),
        click.option("--admin-token", help="Token of the operator; generated and printed if not given."),
        click.option("--admin-port", type=int, help="Separate port for the operator, on loopback."),
        click.option("--contact", help="Your mail or web address, for the archives (User-Agent)."),
        click.option("--refresh", help="Interval to look for changed archives and maps, like 10m."),
        click.option("--discover", help="Interval to fetch the maps that archives publish into --maps, like 24h."),
        click.option("--desk", help="Address of a recovery desk, which the pages link."),
        click.option("--publish", help="Folder made by `recollect publish`, served at /.well-known/mementomap."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _flags(given: dict[str, Any]) -> dict[str, Any]:
    if given.pop("no_cache", False):
        given["cache"] = "none"
    return given


@click.command("serve", epilog=_SERVE_EPILOG)
@settings_options
@log_option
@click.option("-v", "--verbose", is_flag=True, help="Print more messages on stderr.")
def serve(config: str | None, verbose: bool, **given: Any) -> int:
    """Run the Memento aggregator server. It asks only the archives that can answer."""
    from recollect.aggregator.http.serve import serve as run
    from recollect.settings import load_settings

    start_logging(verbose)
    settings = load_settings(_flags(given), config=config).settings

    def on_ready(address: str, token: str, operator: str) -> None:
        talk(f"Recollect listens on {address}/")
        if operator:
            talk(f"The operator's port is {operator}/")
        if not settings.admin_token:
            talk(f"The operator's token (for /metrics, /reload) is {token}")
        if not sys.stdout.isatty():
            # For the program that started us.
            click.echo(f"{address}/")

    return run(settings, on_ready)


_CONFIG_EPILOG = """\b
Examples:
  recollect config show                                  every setting, its value, and its source
  RECOLLECT_TOP_K=5 recollect config show --config recollect.toml --json
"""


@click.group("config", epilog=_CONFIG_EPILOG)
def config() -> None:
    """Show the settings of the server and the source of each value."""


@config.command("show", epilog=_CONFIG_EPILOG)
@click.option("--config", "file", type=click.Path(dir_okay=False), help="File of settings (TOML).")
@json_option
def show(file: str | None, as_json: bool) -> None:
    """Show every setting, its value, and the source of the value."""
    from recollect.settings import Settings, load_settings

    loaded = load_settings(config=file)
    rows = []
    for one in fields(Settings):
        value = getattr(loaded.settings, one.name)
        shown = "(set)" if one.metadata["secret"] and value else value
        rows.append((one.name, shown, loaded.sources[one.name], one.metadata["help"]))
    if as_json:
        emit_json({name: {"value": value, "from": source} for name, value, source, _ in rows})
        return
    emit_table(
        ("setting", "value", "from", "meaning"),
        [(name, "" if value is None else value, source, meaning) for name, value, source, meaning in rows],
    )


_ROUTE_EPILOG = """\b
Examples:
  recollect route http://example.com/ --maps maps/       which archives a lookup asks, and why
  recollect route - --maps maps/ --json < urls.txt       one JSON line per URI
  recollect route - --target-recall 95% --json < urls.txt  as many archives as needed
  recollect route http://example.com/ --maps maps/ --at 2005 --near 2y   as for a TimeGate
  recollect route http://example.com/logo.png --maps maps/ --referer http://example.com/
"""


@click.command("route", epilog=_ROUTE_EPILOG)
@click.argument("uri")
@click.option("--archives", "archives_file", help="List of archives: MemGator's archives.json, or TOML.")
@click.option("--maps", "maps_dir", help="Folder with one map or filter per archive, named by its id.")
@click.option("--top-k", type=click.IntRange(min=1), help="Ask at most N archives, the most probable first.")
@click.option(
    "--target-recall", type=SHARE, help="Ask archives by probability until this share of the holdings is expected."
)
@click.option(
    "--floor",
    type=SHARE,
    default="30%",
    show_default=True,
    help="With --target-recall: the least share of what each archive holds to ask for.",
)
@click.option(
    "--max-stale-loss",
    type=SHARE,
    default="1%",
    show_default=True,
    help="Ask an archive if the chance that its map's no is outdated is larger.",
)
@click.option("--any-status", is_flag=True, help="Ask also for captures that the status filter of a map leaves out.")
@click.option("--at", type=DATE, help="The datetime a TimeGate is asked for: 2005, 2005-06-01.")
@click.option("--near", type=DURATION, help="With --at: skip archives with captures only further away, like 2y.")
@click.option("--referer", default="", help="The page that embeds URI.")
@json_option
def route(
    uri: str,
    archives_file: str | None,
    maps_dir: str | None,
    top_k: int | None,
    target_recall: float | None,
    floor: float,
    max_stale_loss: float,
    any_status: bool,
    at: datetime | None,
    near: float | None,
    referer: str,
    as_json: bool,
) -> int:
    """Explain which archives a lookup of URI asks: the decision, the deciding key, and the probability that the archive
    holds the URI. Sends no requests."""
    from recollect.aggregator.archiveset import ArchiveSet
    from recollect.aggregator.explain import decision_json
    from recollect.aggregator.http.target import clean_uri, page_of
    from recollect.aggregator.referer import page_holders, with_page
    from recollect.archives.registry import load_archives
    from recollect.routing.choice import route as decide
    from recollect.routing.maps import Maps

    if near is not None and at is None:
        raise UsageError("--near needs a datetime", hint="add --at 2005")
    archives = load_archives(archives_file)
    maps = Maps.open(maps_dir, archives)
    archive_set = ArchiveSet(archives, maps if maps.maps else None)
    for problem in maps.problems:
        talk(f"ignored map: {problem}")
    for warning in maps.warnings:
        talk(f"warning: {warning}")
    page = page_of(referer)
    holders = page_holders(maps.evidence(page)) if page else {}
    shown = bad = 0
    for number, one in numbered_lines("-") if uri == "-" else [(0, uri)]:
        try:
            uri_r = clean_uri(one)
        except BadURI as error:
            if not number:
                raise
            bad += 1
            talk(f"ignored: line {number}: {error}")
            if as_json:
                emit_json_line({"uri": one, "error": str(error)})
            continue
        evidence = with_page(archive_set.evidence(uri_r, at=at, any_status=any_status), holders)
        decisions = decide(
            archive_set.usual_candidates,
            evidence,
            top_k=top_k,
            target_recall=target_recall,
            near=near,
            max_stale_loss=max_stale_loss,
            floor=floor,
            uri_r=uri_r,
        )
        shown += 1
        if as_json:
            entries = [decision_json(decision) for decision in decisions]
            emit_json_line({"uri": uri_r, "ask": sum(d.ask for d in decisions), "archives": entries})
        else:
            _show_route(uri_r, decisions)
    if bad and not shown:
        return 1
    return 3 if maps.problems or bad else 0


def _show_route(uri_r: str, decisions: Sequence[Decision]) -> None:
    from recollect.aggregator.explain import reason_words

    asked = sum(decision.ask for decision in decisions)
    emit_table(
        ("archive", "decision", "answer", "chance", "by", "key", "frequency", "expected", "promised", "reason"),
        [
            (
                d.archive,
                "ask" if d.ask else "skip",
                d.answer or "",
                "" if d.chance is None else f"{d.chance:.3g}",
                ", ".join(dict.fromkeys(filter(None, (d.source, *d.sources)))),
                d.key,
                d.frequency,
                f"{d.expected:g}" * d.ask,
                "" if d.promised is None else f"{d.promised:.0%}",
                reason_words(d),
            )
            for d in decisions
        ],
        title=f"{uri_r}: {asked} of {len(decisions)} archives are asked",
        right=[3, 7, 8],
    )


_REPLAY_EPILOG = """\b
Examples:
  recollect replay access.jsonl                          a log of `recollect serve --access-log`
  recollect replay access.jsonl --maps maps/             and with maps
  recollect replay urls.txt --archives archives.json --maps small/ --truth full/
  recollect replay access.jsonl --maps maps/ --estimate --target-recall 99%   one estimate, with and without referers
  recollect replay access.jsonl --maps by-year/ --truth by-year/ --near 2y     TimeGates by time
  recollect replay access.jsonl --top-k 3 --by tld,language                    the three most probable archives
"""


@click.command("replay", epilog=_REPLAY_EPILOG)
@click.argument("log", nargs=-1, required=True)
@click.option("--archives", "archives_file", help="List of archives.  [default: those in the log]")
@click.option("--maps", "maps_dir", help="Folder of the maps to route by.")
@click.option(
    "--truth",
    "truth_dir",
    help="Folder of complete maps of the archives, if the log does not say which archives held what.",
)
@click.option("--top-k", type=click.IntRange(min=1), help="Ask at most N archives, the most probable first.")
@click.option(
    "--by",
    cls=Joined,
    metavar="tld,language",
    help="With --top-k: also ask the archives that hold most of the URI's top-level domain and language.",
)
@click.option("--use", "ask", cls=Joined, metavar="IDS", help="Only these archives (a,b), or all but these (!a).")
@click.option("--estimate", is_flag=True, help="Also route by one estimate with --target-recall, and with referers.")
@click.option(
    "--near",
    type=DURATION,
    help="Also route TimeGates by maps with times; skip archives with captures only further away.",
)
@click.option(
    "--explore",
    type=float,
    default=0.05,
    show_default=True,
    help="Share of the skipped requests that are sent anyway, to learn.",
)
@click.option(
    "--target-recall",
    type=SHARE,
    default="95%",
    show_default=True,
    help="Recall that routing must reach for each archive.",
)
@click.option(
    "--floor",
    type=SHARE,
    default="30%",
    show_default=True,
    help="With --estimate: the least share of what each archive holds to ask for.",
)
@click.option(
    "--latency", type=float, default=0.5, show_default=True, help="Seconds per request where the log has none."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the random numbers for exploring.")
@json_option
def replay(
    log: tuple[str, ...],
    archives_file: str | None,
    maps_dir: str | None,
    truth_dir: str | None,
    top_k: int | None,
    by: str,
    ask: str,
    estimate: bool,
    near: float | None,
    explore: float,
    target_recall: float,
    floor: float,
    latency: float,
    seed: int,
    as_json: bool,
) -> int:
    """Simulate routing over the lookups of LOG: requests, recall and latency of each method."""
    from recollect.aggregator.http.target import page_of
    from recollect.aggregator.simulation import WAYS, read_log
    from recollect.aggregator.simulation import simulate as run
    from recollect.model import Problem
    from recollect.routing.maps import Maps

    kinds = _kinds(by, top_k)
    problems: list[Problem] = []
    lookups = [lookup for path in log for lookup in read_log(path, problems.append, page_of)]
    known = _simulated_archives(lookups, archives_file, ask)
    referers = estimate and any(lookup.page for lookup in lookups)
    for problem in problems[:10]:
        talk(f"ignored: {problem}")
    with progress_bar() as on_progress:
        tallies = run(
            lookups,
            [archive.id for archive in known],
            maps=Maps.open(maps_dir, known) if maps_dir else None,
            truth=Maps.open(truth_dir, known) if truth_dir else None,
            ways=(*WAYS, *(("estimate",) if estimate else ()), *(("referer",) if referers else ())),
            top_k=top_k,
            near=near,
            by=kinds,
            explore=explore,
            target_recall=target_recall,
            floor=floor,
            targets=_TARGETS,
            latency=latency,
            seed=seed,
            on_progress=on_progress,
        )
    _show_simulation(
        tallies, target_recall, len(lookups), [archive.id for archive in known], len(problems), as_json=as_json
    )
    return 3 if problems else 0


def _simulated_archives(lookups: Sequence[Logged], archives_file: str | None, ask: str) -> Sequence[Archive]:
    """The archives of a list, or else those that a log names. Maps are found by their ids; an id that only the log
    knows has no address, and needs none here."""
    from recollect.archives.registry import choose, load_archives

    known = [archive for archive in load_archives(archives_file) if not archive.ignore]
    if archives_file is None:
        by_id = {archive.id: archive for archive in known}
        named = sorted({archive for lookup in lookups for archive in lookup.held or {}})
        known = [by_id.get(archive_id) or _nameless(archive_id) for archive_id in named] or known
    return choose(tuple(known), ask) if ask else known


def _show_simulation(
    tallies: list[RoutingTotals],
    target_recall: float,
    lookups: int,
    archives: Sequence[str],
    left_out: int,
    *,
    as_json: bool,
) -> None:
    ways = [tally for tally in tallies if tally.target in (0, target_recall)]
    promises = sorted((tally for tally in tallies if tally.way == "learned"), key=lambda tally: tally.target)
    if as_json:
        emit_json(
            {
                "lookups": lookups,
                "archives": archives,
                "left_out": left_out,
                "ways": [_tally_json(tally) for tally in ways],
                "targets": [_target_json(tally, tallies[0]) for tally in promises],
            }
        )
        return
    _show_ways(ways, lookups, len(archives))
    if promises:
        _show_targets(promises, tallies[0])
        _show_archives(archives, promises)


_TARGETS = (0.9, 0.95, 0.99)


def _kinds(by: str, top_k: int | None) -> tuple[KindOf, ...]:
    from recollect.aggregator.kinds import KindOf

    names = [name.strip() for name in by.split(",") if name.strip()]
    unknown = [name for name in names if name not in tuple(KindOf)]
    if unknown:
        raise UsageError("unknown kind of URI", where=f"--by {unknown[0]}", why=f"known are {', '.join(KindOf)}")
    if names and top_k is None:
        raise UsageError("--by needs the number of archives to ask", hint="add --top-k 3")
    return tuple(dict.fromkeys(KindOf(name) for name in names))


def _show_ways(ways: list[RoutingTotals], lookups: int, archives: int) -> None:
    broadcast = ways[0].requests or 1
    timed = any(tally.timegates for tally in ways)
    rows = [
        (
            tally.way,
            tally.requests,
            f"{tally.requests / max(tally.lookups, 1):.2f}",
            f"{1 - tally.requests / broadcast:.1%}",
            f"{tally.recall:.2%}",
            f"{tally.timemap_recall / tally.timemaps:.2%}" if tally.timemaps else "",
            f"{tally.wasted:.1%}",
            f"{tally.latency(0.5):.3f}",
            f"{tally.latency(0.95):.3f}",
            *((f"{tally.closest / tally.timegates:.2%}" if tally.timegates else "",) * timed),
        )
        for tally in ways
    ]
    emit_table(
        (
            *("way", "requests", "a lookup", "saved", "recall", "of a TimeMap", "wasted", "median s", "p95 s"),
            *(("closest",) * timed),
        ),
        rows,
        title=f"{counted(lookups, 'lookup')}, {counted(archives, 'archive')}",
        right=range(1, 9 + timed),
    )


def _show_targets(promises: list[RoutingTotals], broadcast: RoutingTotals) -> None:
    rows = []
    for tally in promises:
        fields = _target_json(tally, broadcast)
        lowest = "" if fields["lowest_recall"] is None else f"{fields['lowest_recall']:.1%}"
        rows.append((f"{tally.target:.0%}", f"{fields['saved']:.1%}", f"{tally.recall:.2%}", lowest))
    emit_table(
        ("target", "saved", "recall", "lowest of an archive"),
        rows,
        title="Learned routing, by the target recall of every archive",
        right=range(4),
    )


def _show_archives(ids: Sequence[str], promises: list[RoutingTotals]) -> None:
    held = promises[0].held_by
    rows = [
        (one, held[one], *(f"{tally.found_by[one] / held[one]:.1%}" for tally in promises))
        for one in sorted(ids, key=lambda one: -held[one])
        if held[one]
    ]
    if rows:
        emit_table(
            ("archive", "holds", *(f"target {tally.target:.0%}" for tally in promises)),
            rows,
            title="Recall by archive, after the first 1,000 lookups",
            right=range(1, 2 + len(promises)),
        )


def _target_json(tally: RoutingTotals, broadcast: RoutingTotals) -> dict[str, Any]:
    by_archive = {one: round(tally.found_by[one] / held, 6) for one, held in sorted(tally.held_by.items()) if held}
    return {
        "target": tally.target,
        "requests": tally.requests,
        "saved": round(1 - tally.requests / (broadcast.requests or 1), 6),
        "recall": round(tally.recall, 6),
        "lowest_recall": min(by_archive.values(), default=None),
        "recall_by_archive": by_archive,
        "held_by_archive": dict(sorted(tally.held_by.items())),
    }


def _nameless(archive_id: str) -> Archive:
    from recollect.archives.registry import Archive

    return Archive(archive_id)


def _tally_json(tally: RoutingTotals) -> dict[str, Any]:
    return {
        "way": tally.way,
        "requests": tally.requests,
        "found": tally.found,
        "missed": tally.missed,
        "recall": round(tally.recall, 6),
        **({"timemap_recall": round(tally.timemap_recall / tally.timemaps, 6)} if tally.timemaps else {}),
        **({"closest": round(tally.closest / tally.timegates, 6)} if tally.timegates else {}),
        "wasted": round(tally.wasted, 6),
        "median_seconds": round(tally.latency(0.5), 4),
        "p95_seconds": round(tally.latency(0.95), 4),
    }
