"""Everything that is made of a store: the browsable tree, the WARC and WACZ, the re-hosting kit and the report.

Hides: the order of the outputs and their names. They are made from the store alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.model import ProgressCallback
from recollect.recovery.filenames import ANY_SYSTEM, WINDOWS
from recollect.recovery.store import Store

if TYPE_CHECKING:
    from recollect.recovery.report import Report
    from recollect.recovery.restore import MissingLinks

NAME = "recovered"


@dataclass(frozen=True, slots=True)
class Outputs:
    """What to make of the store."""

    tree: bool = True
    warc: bool = True
    wacz: bool = True
    kit: bool = True
    summary: Path | None = None  # where the summary goes, if not into the folder
    windows_names: bool = False  # short names of ASCII letters
    missing: MissingLinks = "neutral"  # links to pages that did not come back: to a local page, or as they were

    def to_json(self) -> dict[str, Any]:
        return {
            "tree": self.tree,
            "warc": self.warc,
            "wacz": self.wacz,
            "kit": self.kit,
            "summary": str(self.summary.resolve()) if self.summary else None,
            "missing": self.missing,
            "windows_names": self.windows_names,
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Outputs:
        summary = value.get("summary")
        flags = {name: bool(value.get(name, True)) for name in ("tree", "warc", "wacz", "kit")}
        return Outputs(
            **flags,
            summary=Path(summary) if summary else None,
            windows_names=bool(value.get("windows_names", False)),
            missing=value.get("missing", "neutral"),
        )


def write_outputs(store: Store, outputs: Outputs, progress: ProgressCallback) -> Report:
    """The browsable tree, the WARC and WACZ, the re-hosting kit and the report, from the store alone."""
    # Imported here, because a survey names outputs and makes none.
    from recollect.recovery.alsofound import NAME as ALSO_FOUND
    from recollect.recovery.ownfiles import OwnFiles
    from recollect.recovery.rehost import write_also_found, write_kit
    from recollect.recovery.report import make_report, write_report
    from recollect.recovery.restore import restore
    from recollect.recovery.warcs import stream_wacz, stream_warc

    folder = store.out_dir
    files = OwnFiles(store)
    names: dict[str, str] = {}
    neutral: dict[str, str] = {}
    rules = WINDOWS if outputs.windows_names else ANY_SYSTEM
    if outputs.tree:
        done = restore(store, folder, files=files, missing=outputs.missing, names=rules, progress=progress)
        names, neutral = done.names, done.neutral
    if outputs.warc:
        with files.open(f"{NAME}.warc.gz") as out:
            stream_warc(store, out, f"{NAME}.warc.gz")
    if outputs.wacz:
        with files.open(f"{NAME}.wacz") as out:
            stream_wacz(store, out, title=", ".join(store.start))
    if outputs.kit:
        write_kit(store, files, missing=outputs.missing, name_rules=rules)
    if outputs.tree:
        write_also_found(store, files, names, ALSO_FOUND)
    report = make_report(store, names, neutral=neutral, kept=files.kept)
    write_report(report, files, summary=outputs.summary)
    files.finish()
    return report
