"""An archive's holdings on one page: HTML with its style and charts inside, readable without script or network.

Hides: what is computed for which input. Indexes give everything; a map has lost times and statuses, so its page has
fewer sections, and says so. The numbers are those of `stats`, `tradeoff` and `overlap`; the layout is in
`reportsections`. Everything that came from an index or a log is escaped.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from recollect import __version__
from recollect.formats.containers import atomic_output
from recollect.formats.detect import Kind, find_sources
from recollect.formats.forms import Asked
from recollect.formats.logs import read_lookups
from recollect.formats.outputs import refuse_inputs
from recollect.model import Problem, Progress, ProgressCallback
from recollect.profiles.compaction.tradeoff import Tradeoff, tradeoff
from recollect.profiles.indexes.profile import profile
from recollect.profiles.statistics import reportsections as sections
from recollect.profiles.statistics.overlap import Overlap, overlap
from recollect.profiles.statistics.stats import Stats, stats

_MAPS = (Kind.MAP, Kind.PROFILE)
TREE_KEYS = 20_000_000
"""Above this number of keys the tradeoff is left to `recollect tradeoff`: it holds the whole tree in memory."""


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What the page is about, beside the numbers. `replay` is put before the URIs of the sample."""

    name: str = ""
    replay: str = ""
    sample: int = 20
    seed: int = 0
    top: int = 15


@dataclass(frozen=True, slots=True)
class ReportData:
    """Everything on the page."""

    stats: Stats
    inputs: tuple[str, ...]
    tradeoff: Tradeoff | None
    overlap: Overlap | None
    is_map: bool


def collect(
    paths: Iterable[str | os.PathLike[str]],
    *,
    accesses: Sequence[str | os.PathLike[str]] = (),
    asked: Asked | None = None,
    options: ReportOptions | None = None,
    temp_dir: str | os.PathLike[str] | None = None,
    progress: ProgressCallback | None = None,
) -> ReportData:
    """Count everything a report shows; `asked` is what is said of the form of `accesses`."""
    chosen = options or ReportOptions()
    inputs = [os.fspath(path) for path in paths]
    is_map = any(source.kind in _MAPS for source in find_sources(inputs, on_ignored=_pass_over))
    found = stats(inputs, top=chosen.top, sample=chosen.sample, seed=chosen.seed, temp_dir=temp_dir, progress=progress)
    with TemporaryDirectory(dir=temp_dir) as folder:
        keys = by_uri = inputs[0]
        if not is_map:
            keys, by_uri = str(Path(folder, "keys.ukvs")), str(Path(folder, "uris.ukvs"))
            _report_progress(progress, "making the map")
            profile(inputs, keys, temp_dir=temp_dir, allow_empty=True)
            if accesses:
                profile(inputs, by_uri, policy="URIR", temp_dir=temp_dir, allow_empty=True)
        curve = None
        if 0 < found.overview.keys <= TREE_KEYS:
            # What cannot be read of the log is counted by `overlap`.
            lookups = read_lookups([os.fspath(path) for path in accesses], _pass_over, asked) if accesses else None
            curve = tradeoff(keys, lookups=lookups, on_problem=_pass_over, progress=progress)
        _report_progress(progress, "comparing with accesses")
        matrix = overlap(by_uri, accesses, asked=asked, temp_dir=temp_dir) if accesses else None
    return ReportData(found, tuple(inputs), curve, matrix, is_map)


def _pass_over(_problem: Problem) -> None:
    """Counted elsewhere."""


def _report_progress(progress: ProgressCallback | None, stage: str) -> None:
    if progress is not None:
        progress(Progress(stage, 0, None, "steps"))


def page_of(data: ReportData, options: ReportOptions | None = None) -> str:
    """The page."""
    chosen = options or ReportOptions()
    name = chosen.name or ", ".join(Path(path).name or path for path in data.inputs[:3])
    style = Path(__file__).with_name("report.css").read_text("utf-8")
    parts = [
        sections.growth(data.stats),
        sections.statuses(data.stats),
        sections.media(data.stats),
        sections.places(data.stats),
        sections.distribution(data.stats),
        sections.shape(data.stats),
        sections.policies(data.stats),
        sections.prices(data.tradeoff),
        sections.accessed(data.overlap),
        sections.sample(data.stats, chosen.replay),
        sections.faults(data.stats),
    ]
    return sections.page(name, style, data.stats, [part for part in parts if part], data.is_map, __version__)


def write_report(
    paths: Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    accesses: Sequence[str | os.PathLike[str]] = (),
    asked: Asked | None = None,
    options: ReportOptions | None = None,
    temp_dir: str | os.PathLike[str] | None = None,
    progress: ProgressCallback | None = None,
) -> ReportData:
    """Count, lay out and write the page, all at once."""
    paths = list(paths)
    refuse_inputs(output, (*paths, *accesses))
    data = collect(paths, accesses=accesses, asked=asked, options=options, temp_dir=temp_dir, progress=progress)
    with atomic_output(output) as stream:
        stream.write(page_of(data, options).encode("utf-8", "replace"))
    return data
