"""Pages of the watch as single files: what would come back if a site were lost today.

Hides: markup. A page that is written to a file carries its style sheet inside, so that it can be mailed or published.
"""

from __future__ import annotations

from recollect.datetimes import format_iso
from recollect.ui.look import Html, card, document, figures, notice, progress_bar, table, tag
from recollect.ui.pages import INLINED
from recollect.watch.check import Check, group_of
from recollect.watch.states import ResourceState

_MOST_ROWS = 500


def check_page(report: Check) -> str:
    """The report of one look at a live site."""
    whole = report.whole
    head = card(
        f"If {report.site} were lost today",
        figures(
            [
                (whole.percent, "of the resources with a known state would come back"),
                (f"{whole.total:,}", "live resources in the sample"),
                (f"{len(report.vulnerable):,}", "held by no archive"),
                (f"{whole.fresh:,}", "held in their present form"),
            ]
        ),
        progress_bar(whole.share or 0.0, "Share that would come back"),
        tag("p", _note(report), class_="note"),
    )
    parts = [head]
    if report.failed_archives:
        names = ", ".join(report.failed_archives)
        parts.append(notice(f"These archives did not answer, so some resources are unknown: {names}", bad=True))
    parts.append(card("By type", _types(report)))
    if report.vulnerable:
        rows = [
            (tag("span", one.resource.uri, class_="address"), group_of(one.resource.media_type))
            for one in report.vulnerable[:_MOST_ROWS]
        ]
        parts.append(
            card("Vulnerable: held by no archive", table(["address", "type"], rows, caption="Vulnerable", stacked=True))
        )
    parts.append(card("All resources of the sample", _resources(report)))
    title = f"If {report.site} were lost today"
    return document(title, tag("h1", "Watch check"), *parts, files=INLINED)


def _note(report: Check) -> str:
    note = f"Checked at {format_iso(report.at)}."
    if report.disallowed:
        note += f" Not visited, because robots.txt disallows it: {report.disallowed:,}."
    return note


def _types(report: Check) -> Html:
    rows = [(group.name, group.total, group.held, group.fresh, group.unknown, group.percent) for group in report.groups]
    headers = ["type", "live", "held", "fresh", "unknown", "comes back"]
    return table(headers, rows, numbers=(1, 2, 3, 4, 5), caption="By type", stacked=True)


def _resources(report: Check) -> Html:
    rows = []
    for one in report.looked[:_MOST_ROWS]:
        newest = one.copies[0] if one.copies else None
        alike = f"{newest.alike:.0%}" if newest is not None and newest.alike is not None else ""
        date = f"{newest.captured_at:%Y-%m-%d}" if newest is not None else ""
        state = tag("span", one.resource.state.value, class_="state")
        shown = ", ".join(one.resource.archives) if one.resource.state is not ResourceState.UNKNOWN else "unknown"
        address = tag("span", one.resource.uri, class_="address")
        rows.append((address, state, shown, tag("span", date, class_="whole"), alike))
    headers = ["address", "state", "archives", "newest copy", "alike"]
    return table(headers, rows, numbers=(4,), caption="Resources", stacked=True)
