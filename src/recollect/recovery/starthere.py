"""START-HERE: the first page of a recovered folder, for a person who lost a site.

Hides: layout. The figures and sentences are those of `figures` and `sentences`; everything else is fixed text in the
current language, and links to files that are there. Three ways online, and what to do when the domain has another
owner.
"""

from __future__ import annotations

from urllib.parse import quote

from recollect.recovery.alsofound import NAME as ALSO_FOUND
from recollect.recovery.outputs import NO_SCRIPT
from recollect.recovery.report import Report
from recollect.recovery.sentences import Sentence, details, headline, outage, share, text
from recollect.recovery.timeline import FOLDER as CAPTURES
from recollect.recovery.timeline import NAME as TIMELINES
from recollect.ui.messages import current
from recollect.ui.pages import INLINED, render

NAME = "START-HERE.html"


def start_here_page(report: Report, folders: frozenset[str], *, scripts: bool = True) -> str:
    """The page; `folders` are the outputs that were written (`site`, `kit`, `as-archived` ...)."""
    figures = report.figures
    return render(
        "recovery/start_here.html",
        INLINED,
        site=", ".join(report.start),
        headline=text(Sentence(headline(figures))),
        share=text(share(figures)),
        lines=[text(line) for line in (*details(figures), *(outage(one) for one in figures.outages))],
        links=[(quote(file), words) for file, words in _links(report, folders)],
        scripts=scripts,
        runs=bool(folders & {"site", "kit"}),
        kit="kit" in folders,
    )


def _links(report: Report, folders: frozenset[str]) -> list[tuple[str, str]]:
    texts = current()
    found = []
    if report.front:
        found.append((report.front, texts.gettext("The recovered site, for browsing on this computer")))
    if report.figures.unlinked and "site" in folders:
        found.append((ALSO_FOUND, texts.gettext("Older pages and files that no link leads to")))
    if "no-script" in folders and "site" in folders and report.front:
        found.append((f"{NO_SCRIPT}/{report.front}", texts.gettext("The site without scripts: nothing in it runs")))
    if CAPTURES in folders:
        found.append((TIMELINES, texts.gettext("All captures of each page and file, over the years")))
    if "as-archived" in folders:
        found.append(("as-archived/", texts.gettext("The files exactly as they were archived, to edit and upload")))
    if "markdown" in folders:
        found.append(("markdown/", texts.gettext("The pages as Markdown, for a site generator")))
    found.append(("report.html", texts.gettext("The report: where each file comes from, and what is missing")))
    return found
