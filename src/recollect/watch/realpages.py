"""Labelled real pages: a folder of pages with a table of what each is, judged as a watch judges them.

Hides: the table. `FOLDER/labels.csv` has the columns `site`, `label`, `uri`, `file` (relative to the folder). Pages
with the label `past` are what the watch has seen of a site; all others are shown to it as the site's front page:

    own        another page of the site            takeover   a page of another site
    redesign   the site in a new form              parked     a page of a domain seller

`uri` is where the page was captured, so that relative links are read as they were. No page of `past` is judged.
"""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from recollect.archives.live import LiveAnswer
from recollect.errors import FormatError
from recollect.recovery.fingerprint import SiteFingerprint, page_of
from recollect.recovery.links import read_document
from recollect.watch.labelled import Label, Pages
from recollect.watch.states import VisitResult
from recollect.watch.visit import judge_visit

TABLE = "labels.csv"
PAST = "past"
COLUMNS = ("site", "label", "uri", "file")


@dataclass(frozen=True, slots=True)
class LabelledPage:
    """One row of the table."""

    site: str
    label: Label | None
    """None for a page of the past."""
    uri: str
    file: Path


@dataclass(frozen=True, slots=True)
class RealPages:
    """How the signals did on real pages."""

    sites: int
    past: int
    pages: Pages
    wrong: tuple[str, ...]
    """Pages that were judged wrongly: site, label and address."""


def read_table(folder: Path) -> list[LabelledPage]:
    """The rows of a table; raises FormatError with the line that is wrong."""
    path = folder / TABLE
    rows = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise FormatError("columns are missing", where=str(path), why=", ".join(missing))
            for row in reader:
                where = f"{path}, line {reader.line_num}"
                word = row["label"] or ""
                if word not in (PAST, *Label):
                    raise FormatError(
                        "unknown label", where=where, why=word, hint=f"one of: {PAST}, {', '.join(Label)}"
                    )
                page = folder / (row["file"] or "")
                if not page.is_file():
                    raise FormatError("no such page", where=where, why=row["file"] or "no file")
                rows.append(LabelledPage(row["site"], None if word == PAST else Label(word), row["uri"], page))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FormatError("cannot read the table of labels", where=str(path), why=str(error)) from error
    return rows


def judge_pages(folder: Path) -> RealPages:
    """Judge every labelled page against the past of its site."""
    rows = read_table(folder)
    fingerprints: dict[str, SiteFingerprint] = {}
    past = 0
    for row in rows:
        fingerprint = fingerprints.setdefault(row.site, SiteFingerprint())
        if row.label is None:
            document = read_document(row.file.read_bytes(), row.uri, "text/html")
            if document is not None:
                fingerprint.learn(page_of(document, row.uri))
            past += 1
    shown: Counter[Label] = Counter()
    foreign: Counter[Label] = Counter()
    wrong = []
    for row in rows:
        if row.label is None:
            continue
        answer = LiveAnswer(row.uri, row.uri, 200, {"content-type": "text/html"}, row.file.read_bytes())
        called = judge_visit(answer, fingerprints[row.site]).seen in (
            VisitResult.FOREIGN,
            VisitResult.FOREIGN_CONFIRMED,
        )
        shown[row.label] += 1
        foreign[row.label] += called
        if called != row.label.foreign:
            wrong.append(f"{row.site}: {row.label} {row.uri}")
    counts = {label: (shown[label], foreign[label]) for label in Label if shown[label]}
    return RealPages(len(fingerprints), past, Pages("real", counts), tuple(wrong))
