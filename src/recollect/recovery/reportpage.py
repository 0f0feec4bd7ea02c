"""The report of a recovery as a page for people: one file, no script, nothing loaded but the recovered pages beside it.

Recovered pages are shown in frames with `sandbox` (no script, an origin of their own), or as pictures where the page
stands alone. Long tables are cut: report.json and summary.tsv have everything, and the page stays below 1 MB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlsplit

from recollect.recovery.alsofound import NAME as ALSO_FOUND
from recollect.recovery.ownership import Owner, ownership_words
from recollect.recovery.records import REASONS, Missing, Recovered
from recollect.recovery.report import Report
from recollect.recovery.sentences import Sentence, details, headline, outage, share, text
from recollect.recovery.verdicts import RETRIED, Reason
from recollect.ui import charts
from recollect.ui.messages import current, message
from recollect.ui.pages import INLINED, render

MOST_ROWS = 2000
_FEW = 10  # of what is missing, before the rest is folded
_MOST_PAGES = 6
_MOST_ARCHIVES = 7


def report_page(report: Report, *, pictures: Sequence[str] = (), alone: bool = False) -> str:
    """The page. `alone` is a page without the recovered folder beside it: it has no frames, and its links to recovered
    files get their base from the server. `pictures` are addresses of pictures of its pages (`data:`)."""
    _ = current().gettext
    figures = report.figures
    missing = _by_importance(report)
    links = {uri: _href(file) for uri, file in report.files.items()}
    pages = _pages(report)
    return render(
        "recovery/report.html",
        INLINED,
        name=", ".join(report.start),
        headline=text(Sentence(headline(figures))),
        share=text(share(figures)),
        lines=[text(line) for line in (*details(figures), *(outage(one) for one in figures.outages))],
        pictures=[
            {"src": src, "alt": current().gettext("Picture of a recovered page"), "href": "", "words": ""}
            for src in pictures
        ],
        front=pages[0] if pages else None,
        more=[] if alone else pages[1:],
        beside=not alone,
        ended=report.ended_at,
        life=_life(report),
        life_words=_life_words(report),
        sources=charts.shares(report.by_archive, _("Resources by archive"), (_("Archive"), _("Resources"))),
        by_archive=report.by_archive,
        few=_FEW,
        missing=missing[:MOST_ROWS],
        missing_rows=[(one["uri"], one["why"], one["found_on"]) for one in missing[:MOST_ROWS]],
        missing_count=len(missing),
        suspects=[(r.uri, r.suspect or "", r.doubt, f"{r.captured_at:%Y-%m-%d}") for r in report.suspects[:MOST_ROWS]],
        retry=any(one.reason in RETRIED for one in report.missing) or bool(figures.outages),
        never=any(one.reason is Reason.NEVER_ARCHIVED for one in report.missing),
        outside=report.outside[:MOST_ROWS],
        outside_count=len(report.outside),
        outside_hosts=list(report.outside_hosts.items())[:MOST_ROWS],
        kept=sorted(report.kept.items()),
        substitutes=[(one.uri, address, one.rule, one.evidence) for one, address in report.substitutes[:MOST_ROWS]],
        also_found=ALSO_FOUND if figures.unlinked and not alone else "",
        **_details(report, links),
    )


def _details(report: Report, links: Mapping[str, str]) -> dict[str, Any]:
    _ = current().gettext
    names = list(dict.fromkeys([*report.by_archive, *report.requests]))
    parts = {
        _("recovered"): len(report.resources) - len(report.suspects),
        _("doubtful"): len(report.suspects),
        _("missing"): len(report.missing),
        _("needed from other hosts"): len(report.outside),
    }
    return {
        "count": len(report.resources),
        "redirects": report.redirects,
        "requests": report.total_requests,
        "efficiency": report.efficiency,
        "parts": charts.donut(
            {name: n for name, n in parts.items() if n},
            [c for c, n in zip(("good", "warn", "bad", "none"), parts.values(), strict=True) if n],
            _("What became of the resources"),
            (_("Part"), _("Resources")),
        ),
        "archives": [
            (name, report.by_archive.get(name, 0), report.requests.get(name, 0), report.listings.get(name, ""))
            for name in names
        ],
        "reasons": [(reason, _(REASONS[reason]), count) for reason, count in report.by_reason.items()],
        "coherence": [(_(name), count) for name, count in report.coherence.items() if count],
        "furthest": report.furthest,
        "day": f"{report.at:%Y-%m-%d}" if report.at else "",
        "distances": [(_(name), count) for name, count in report.distances.items() if count],
        "far": _far(report),
        "resources": [_resource(resource, links, report.note(resource)) for resource in report.resources[:MOST_ROWS]],
        "local": [(one.name, one.words(report.by_archive.get(one.id, 0))) for one in report.sources],
    }


def _far(report: Report) -> list[tuple[str, str, int]]:
    """The resources furthest from the day that was asked for: address, capture, days."""
    found = [(r.uri, f"{r.captured_at:%Y-%m-%d}", report.days_from_day(r) or 0) for r in report.resources]
    return sorted((row for row in found if row[2]), key=lambda row: (-abs(row[2]), row[0]))[:MOST_ROWS]


def _href(file: str) -> str:
    return quote(file, safe="/-_.~!$&()*+,;=@")


def _resource(resource: Recovered, links: Mapping[str, str], local: str) -> dict[str, str]:
    _ = current().gettext
    note = _("live web") if resource.live else _("altered") if resource.altered else ""
    note = f" ({note})" if note else ""
    note += f" ({local})" if local else ""
    return {
        "uri": resource.uri,
        "href": links.get(resource.uri, ""),
        "type": resource.media_type,
        "archive": resource.archive,
        "note": note + (f" ({resource.suspect}?)" if resource.suspect else ""),
        "captured": f"{resource.captured_at:%Y-%m-%d}",
    }


def _pages(report: Report) -> list[dict[str, str]]:
    """The front page and some others, those near the root first."""
    found = {report.front: report.start[0] if report.start else ""} if report.front else {}
    pages = [r for r in report.resources if r.kind == "page" and r.suspect is None and r.uri in report.files]
    for page in sorted(pages, key=lambda r: (urlsplit(r.uri).path.count("/"), len(r.uri), r.uri)):
        if len(found) < _MOST_PAGES:
            found.setdefault(report.files[page.uri], page.uri)
    return [{"href": _href(file), "words": uri} for file, uri in found.items()]


def _by_importance(report: Report) -> list[dict[str, str]]:
    """Pages before files, those that the front page links to first."""
    front = set(report.start)

    def rank(one: Missing) -> tuple[bool, bool, int, str]:
        return one.kind != "page", one.found_on not in front, urlsplit(one.uri).path.count("/"), one.uri

    return [
        {"uri": one.uri, "why": one.detail or current().gettext(REASONS[one.reason]), "found_on": one.found_on or ""}
        for one in sorted(report.missing, key=rank)
    ]


def _life(report: Report) -> charts.Chart:
    """Captures by archive and year, the chosen ones' span, and the end of the site."""
    texts = current()
    _ = texts.gettext
    counts = charts.largest(report.captures, _MOST_ARCHIVES, _("other archives"))
    known = sorted(year for per_year in counts.values() for year in per_year)
    spans = _spans(report) if known else []
    newest = max((r.captured_at for r in report.resources), default=None)
    moments = []
    if newest and known:
        moments = [charts.Moment(newest.date(), _("newest copy used: %(day)s") % {"day": f"{newest:%Y-%m-%d}"})]
    label, headers = _("Captures by archive and year"), (_("Year"), _("Captures"))
    return charts.life(counts, label, headers, spans=spans, moments=moments)


_OWNERS = {
    Owner.OWN: ("good", message("the site's own time")),
    Owner.OTHER: ("bad", message("another owner")),
    Owner.PARKED: ("warn", message("a parked domain")),
}


def _spans(report: Report) -> list[charts.Span]:
    """The periods of ownership; each lasts until the next one begins."""
    spans = []
    for place, period in enumerate(report.ownership):
        later = report.ownership[place + 1].start if place + 1 < len(report.ownership) else None
        end = later or max(period.end, period.start + timedelta(days=90))
        colour, words = _OWNERS[period.owner]
        spans.append(charts.Span(period.start.date(), end.date(), colour, current().gettext(words)))
    return spans


def _life_words(report: Report) -> str:
    years = sorted(year for per_year in report.captures.values() for year in per_year)
    if not years:
        return ""
    texts = current()
    total = sum(sum(per_year.values()) for per_year in report.captures.values())
    fields = {"count": texts.number(total), "first": years[0], "last": years[-1]}
    if years[0] == years[-1]:
        words = texts.gettext("Archives captured pages and files of it %(count)s times in %(first)s.")
    else:
        words = texts.gettext("Archives captured pages and files of it %(count)s times from %(first)s to %(last)s.")
    words %= fields
    if owners := ownership_words(report.ownership):
        more = texts.gettext(
            "The site was %(owners)s. Pages that belong to another owner were left out; look through the pages marked "
            "doubtful."
        )
        words += " " + more % {"owners": owners}
    return words
