"""The status page of a map that keeps itself current, as static files in the look of all pages."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

from recollect.errors import UsageError
from recollect.formats.containers import atomic_output
from recollect.profiles.upkeep.status import Status
from recollect.profiles.upkeep.update import Update, Way
from recollect.quantities import counted, format_size
from recollect.ui.look import Html, asset, card, document, facts, figures, notice, tag
from recollect.ui.pages import Linked

PAGE, DATA, METRICS = "status.html", "status.json", "status.prom"
_ASSETS = ("look.css", "icon.svg")
_MARKS = ('<meta name="generator" content="Recollect ', "<footer>Recollect ")  # the second of earlier versions
_WAYS = {
    Way.UNCHANGED: "nothing had changed",
    Way.PATCHED: "what is new was added to the map",
    Way.BUILT: "the map was built from all indexes",
}


def write_status(folder: Path, status: Status) -> None:
    """Write status.html, status.json and status.prom into the published folder."""
    page = folder / PAGE
    before = page.read_text(errors="replace") if page.is_file() else _MARKS[0]
    if not any(mark in before for mark in _MARKS):
        raise UsageError("a page that recollect did not write", where=str(page), hint="move it away")
    (folder / "_").mkdir(parents=True, exist_ok=True)
    bodies = {f"_/{name}": asset(name) for name in _ASSETS}
    bodies[PAGE] = status_page(status).encode()
    bodies[DATA] = json.dumps(status.as_dict(published=True), indent=2).encode() + b"\n"
    bodies[METRICS] = status.as_metrics().encode()
    for name, body in bodies.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != body:
            with atomic_output(path) as out:
                out.write(body)


def status_page(status: Status) -> str:
    """The page for people."""
    body: list[Html] = [tag("h1", f"The map of {status.name}" if status.name else "The map of this archive")]
    if status.error:
        body.append(
            notice(
                tag("p", tag("b", "The last update failed."), " The map that was published before is still served."),
                tag("p", status.error),
                bad=True,
            )
        )
    else:
        body.append(notice(tag("p", "The map is up to date.")))
    if status.update is not None:
        body += _about(status, status.update)
    body.append(_when(status))
    return document("Status of the map", *body, files=Linked("."))


def _about(status: Status, done: Update) -> list[Html]:
    share = done.bytes / status.max_bytes if status.max_bytes else 0.0
    numbers = figures(
        (
            (f"{done.captures:,}", "captures"),
            (f"{done.keys:,}", "keys"),
            (format_size(done.bytes), f"{share:.0%} of {format_size(status.max_bytes)}"),
        )
    )
    proof = (
        f"{counted(done.verified, 'capture')} looked up in the map before it was published, all found"
        if done.verified
        else "nothing new to look up"
    )
    changes = f"{done.added_keys:,} added, {done.changed_keys:,} changed, {done.removed_keys:,} removed"
    rows = [] if status.has_exclusions else [("Index files", f"{done.files:,}")]
    rows += [("Verified", proof), ("Keys in the last change", changes)]
    if done.partial_files:
        rows.append(("Damaged index files", f"{done.partial_files:,}: what could be read is in the map"))
    parts = [card("What it holds", numbers, facts(rows))]
    links = [
        tag("li", tag("a", words, href=place))
        for place, words in (
            (".well-known/mementomap", "the map"),
            ("mementomap/index.json", "its files and checksums"),
            (DATA, "this page as JSON"),
            (METRICS, "metrics for Prometheus"),
        )
    ]
    return [*parts, card("Files", tag("ul", *links))]


def _when(status: Status) -> Html:
    rows: list[tuple[str, str]] = [("Last check", _moment(status.checked_at))]
    if status.update is not None:
        if status.update.updated_at:
            rows.append(("Last change", _moment(datetime.fromisoformat(status.update.updated_at))))
        rows.append(("Result", _WAYS[status.update.way]))
    rows.append(("Duration", f"{status.seconds:.1f} s"))
    if status.next_at is not None:
        rows.append(("Next look", _moment(status.next_at)))
    return card("Updates", facts(rows))


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
