"""Everything that is made of a store: the browsable tree, the WARC and WACZ, the re-hosting kit and the report.

Hides: the order of the outputs and their names. They are made from the store alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.errors import UsageError
from recollect.model import ProgressCallback
from recollect.recovery.filenames import ANY_SYSTEM, WINDOWS, NameRules
from recollect.recovery.store import Store

if TYPE_CHECKING:
    from recollect.recovery.ownfiles import OwnFiles
    from recollect.recovery.report import Report
    from recollect.recovery.restore import MissingLinks, OutsideLinks

NAME = "recovered"
NO_SCRIPT = "no-script"  # the folder of the copy without scripts
# Name of an output as people choose it -> attribute of `Outputs`.
OUTPUTS = {
    "site": "tree",
    "warc": "warc",
    "wacz": "wacz",
    "kit": "kit",
    "as-archived": "as_archived",
    "markdown": "markdown",
    "no-script": "no_script",
}


@dataclass(frozen=True, slots=True)
class Outputs:
    """What to make of the store."""

    tree: bool = True
    warc: bool = True
    wacz: bool = True
    kit: bool = True
    as_archived: bool = False
    markdown: bool = False
    no_script: bool = False  # a second copy of the site, in which nothing runs
    outside: OutsideLinks = "robust"  # links to other sites: with Robust Links attributes, to an archive, as they were
    summary: Path | None = None  # where the summary goes, if not into the folder
    windows_names: bool = False  # short names of ASCII letters
    scripts: bool = True  # False: nothing runs in the site and the kit, so that nothing in them can leave
    missing: MissingLinks = "neutral"  # links to pages that did not come back: to a local page, or as they were

    @property
    def chosen(self) -> frozenset[str]:
        """The names of the outputs (`OUTPUTS`)."""
        return frozenset(name for name, attribute in OUTPUTS.items() if getattr(self, attribute))

    def only(self, names: Iterable[str]) -> Outputs:
        """These outputs and no others; raises UsageError for a name that is none."""
        wanted = {name.strip().lower() for name in names if name.strip()}
        unknown = sorted(wanted - OUTPUTS.keys())
        if unknown or not wanted:
            raise UsageError("not an output", where=", ".join(unknown), hint=f"choose of {','.join(OUTPUTS)}")
        return replace(
            self,
            tree="site" in wanted,
            warc="warc" in wanted,
            wacz="wacz" in wanted,
            kit="kit" in wanted,
            as_archived="as-archived" in wanted,
            markdown="markdown" in wanted,
            no_script="no-script" in wanted,
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "tree": self.tree,
            "warc": self.warc,
            "wacz": self.wacz,
            "kit": self.kit,
            "as_archived": self.as_archived,
            "markdown": self.markdown,
            "no_script": self.no_script,
            "outside": self.outside,
            "summary": str(self.summary.resolve()) if self.summary else None,
            "scripts": self.scripts,
            "missing": self.missing,
            "windows_names": self.windows_names,
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Outputs:
        summary = value.get("summary")
        flags = {name: bool(value.get(name, True)) for name in ("tree", "warc", "wacz", "kit")}
        return Outputs(
            **flags,
            as_archived=bool(value.get("as_archived", False)),
            markdown=bool(value.get("markdown", False)),
            no_script=bool(value.get("no_script", False)),
            outside=value.get("outside", "robust"),
            summary=Path(summary) if summary else None,
            windows_names=bool(value.get("windows_names", False)),
            scripts=bool(value.get("scripts", True)),
            missing=value.get("missing", "neutral"),
        )


def write_outputs(store: Store, outputs: Outputs, progress: ProgressCallback) -> Report:
    """The browsable tree, the WARC and WACZ, the re-hosting kit and the report, from the store alone."""
    # Imported here, because a survey names outputs and makes none.
    from recollect.recovery.alsofound import NAME as ALSO_FOUND
    from recollect.recovery.asarchived import write_as_archived
    from recollect.recovery.markdown import write_markdown
    from recollect.recovery.ownfiles import OwnFiles
    from recollect.recovery.rehost import write_also_found, write_kit
    from recollect.recovery.report import make_report, write_report
    from recollect.recovery.restore import restore
    from recollect.recovery.starthere import NAME as START_HERE
    from recollect.recovery.starthere import start_here_page
    from recollect.recovery.timeline import FOLDER as CAPTURES
    from recollect.recovery.timeline import write_timelines
    from recollect.recovery.warcs import stream_wacz, stream_warc

    folder = store.out_dir
    files = OwnFiles(store)
    names: dict[str, str] = {}
    neutral: dict[str, str] = {}
    rules = WINDOWS if outputs.windows_names else ANY_SYSTEM
    if outputs.tree:
        done = restore(
            store,
            folder,
            files=files,
            missing=outputs.missing,
            outside=outputs.outside,
            names=rules,
            scripts=outputs.scripts,
            progress=progress,
        )
        names, neutral = done.names, done.neutral
    if outputs.no_script:
        placed = _without_scripts(store, files, outputs, rules)
        names = names or placed
    if outputs.warc:
        with files.open(f"{NAME}.warc.gz") as out:
            stream_warc(store, out, f"{NAME}.warc.gz")
    if outputs.wacz:
        with files.open(f"{NAME}.wacz") as out:
            stream_wacz(store, out, title=", ".join(store.start))
    if outputs.kit:
        write_kit(
            store,
            files,
            missing=outputs.missing,
            outside=outputs.outside,
            name_rules=rules,
            scripts=outputs.scripts,
        )
    if outputs.as_archived:
        write_as_archived(store, files, name_rules=rules)
    if outputs.markdown:
        write_markdown(store, files, name_rules=rules)
    if outputs.tree:
        write_also_found(store, files, names, ALSO_FOUND)
    timelines = write_timelines(store, files, name_rules=rules)
    report = make_report(store, names, neutral=neutral, kept=files.kept)
    write_report(report, files, summary=outputs.summary)
    folders = outputs.chosen | ({CAPTURES} if timelines else set())
    page = start_here_page(report, folders, scripts=outputs.scripts)
    files.write(START_HERE, page.encode("utf-8", "replace"))
    files.finish()
    return report


def _without_scripts(store: Store, files: OwnFiles, outputs: Outputs, rules: NameRules) -> dict[str, str]:
    """Write the copy in which nothing runs, in a folder of its own; returns URI -> file."""
    from recollect.recovery.filenames import file_names, host_folder
    from recollect.recovery.restore import NOT_RECOVERED, Layout, restore

    pairs = ((resource.uri, resource.media_type) for resource in store.recovered(redirects=False))
    names = file_names(pairs, lambda uri: f"{NO_SCRIPT}/{host_folder(uri, rules)}", rules)
    layout = Layout(names, f"{NO_SCRIPT}/{NOT_RECOVERED}")
    missing, outside = outputs.missing, outputs.outside
    done = restore(store, store.out_dir, files=files, layout=layout, missing=missing, outside=outside, scripts=False)
    return done.names
