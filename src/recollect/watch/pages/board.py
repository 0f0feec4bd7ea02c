"""The dashboard of a watch: as one file, and served.

Hides: markup. The page is Figure 60 of McCown 2007 (resources in each state over time), a table of the sites, and a
part for each site: its lost pages, how archives keep it, what would bring more of it back, and its last visits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from recollect.datetimes import format_iso
from recollect.ui.look import (
    Html,
    Text,
    areas,
    card,
    document,
    facts,
    figures,
    key,
    notice,
    table,
    tag,
)
from recollect.ui.pages import INLINED, Inlined, Linked
from recollect.watch.advice import MISSING_HEADERS, MissingPage, missing_row
from recollect.watch.board import Board, Counts, Detail, Line
from recollect.watch.records import RecoveryState, held_of, percent_of
from recollect.watch.states import HIDDEN, ResourceState, SiteState

KINDS = {
    ResourceState.REPLICATED: "good",
    ResourceState.VULNERABLE: "warn",
    ResourceState.ENDANGERED: "risk",
    ResourceState.UNRECOVERABLE: "bad",
    ResourceState.UNKNOWN: "none",
}
_WORDS = {
    ResourceState.REPLICATED: "replicated: live and held by an archive",
    ResourceState.VULNERABLE: "vulnerable: live, held by none",
    ResourceState.ENDANGERED: "endangered: gone, held by an archive",
    ResourceState.UNRECOVERABLE: "unrecoverable: gone, held by none",
    ResourceState.UNKNOWN: "unknown",
}
BADGES = {
    SiteState.NEW: ("none", "\N{WHITE CIRCLE}"),
    SiteState.FINE: ("good", "\N{CHECK MARK}"),
    SiteState.BACK: ("good", "\N{CLOCKWISE OPEN CIRCLE ARROW}"),
    SiteState.PAGES_LOST: ("warn", "\N{MINUS SIGN}"),
    SiteState.BAD_CERTIFICATE: ("warn", "\N{WARNING SIGN}"),
    SiteState.MAINTENANCE: ("warn", "\N{HAMMER AND PICK}"),
    SiteState.DEFAULT_PAGE: ("bad", "\N{EMPTY SET}"),
    SiteState.SUSPENDED: ("bad", "\N{DOUBLE VERTICAL LINE}"),
    SiteState.DOMAIN_EXPIRED: ("bad", "!"),
    SiteState.SUSPECT: ("warn", "?"),
    SiteState.LOST: ("bad", "\N{MULTIPLICATION X}"),
    SiteState.TAKEN_OVER: ("bad", "\N{BLACK FLAG}"),
    SiteState.MOVED: ("risk", "\N{RIGHTWARDS ARROW}"),
}
"""By state, a class of the style sheet and a sign, so that colour is not all that tells states apart."""
_GONE = (SiteState.LOST, SiteState.TAKEN_OVER, *HIDDEN)
_MOST_SITES = 1000


def dashboard_page(board: Board, details: Mapping[str, Detail] | None = None) -> str:
    """The dashboard as one file; sites with details have a part of it."""
    known = details or {}

    def place(_: int, line: Line) -> str:
        return f"#{_anchor(line)}" if line.site.uri in known else line.site.uri

    parts = [tag("section", *site_parts(one), id=_anchor(one.line)) for one in known.values()]
    return board_page(board, INLINED, place, parts=parts)


def _anchor(line: Line) -> str:
    return "site-" + hashlib.blake2b(line.site.uri.encode(), digest_size=6).hexdigest()


def board_page(
    board: Board,
    files: Linked | Inlined,
    place: Callable[[int, Line], str],
    *,
    refresh: int = 0,
    parts: Sequence[Html] = (),
) -> str:
    """The dashboard; `place` is where the row of a site leads."""
    states = [line.site.status.state for line in board.lines]
    gone = sum(state in _GONE for state in states)
    head = card(
        "",
        figures(
            [
                (f"{len(board.lines):,}", "site watched" if len(board.lines) == 1 else "sites watched"),
                (f"{gone:,}", "not seen by visitors"),
                (percent_of(board.total), "of the resources with a known state would come back"),
                (f"{board.total[ResourceState.VULNERABLE]:,}", "resources held by no archive"),
                (f"{sum(len(line.lost) for line in board.lines):,}", "lost pages"),
            ]
        ),
    )
    warned: list[Text] = []
    if gone:
        names = ", ".join(line.site.uri for line in board.lines if line.site.status.state in _GONE)
        warned = [notice(f"Lost, taken over or hidden by their hosts: {names}", bad=True)]
    return document(
        "Watched sites",
        tag("h1", "Watched sites"),
        *warned,
        head,
        over_time(board.series),
        card("Sites", _sites(board, place)),
        *parts,
        files=files,
        narrow=False,
        refresh=refresh,
        footer=f"as of {format_iso(board.at)}",
    )


def over_time(series: tuple[tuple[datetime, Counts], ...], title: str = "Resources over time") -> Html:
    """Figure 60 as shares: which part of the resources known at a time is in each state. Numbers would grow with the
    sample, since each visit finds more addresses of a large site."""
    if not series:
        return card(title, tag("p", "Nothing was observed yet. Next: recollect watch run", class_="note"))
    totals = [sum(counts.values()) or 1 for _, counts in series]
    layers = {
        state.value: [100.0 * counts[state] / total for (_, counts), total in zip(series, totals, strict=True)]
        for state in KINDS
    }
    ends = [f"{series[index][0]:%Y-%m-%d}" for index in (0, -1)]
    picture = areas([at.timestamp() for at, _ in series], layers, [*KINDS.values()], title, ends)
    note = tag("p", "Percent of the resources known at each time.", class_="note")
    return card(title, picture, key({_WORDS[state]: kind for state, kind in KINDS.items()}), note)


def _sites(board: Board, place: Callable[[int, Line], str]) -> Html:
    lines = sorted(board.lines, key=lambda line: (_URGENCY.get(line.site.status.state, 9), line.site.uri))
    headers = ["site", "state", "since", "comes back", *(state.value for state in ResourceState), "lost pages"]
    rows = [_row(line, place(number, line)) for number, line in enumerate(lines[:_MOST_SITES])]
    columns = range(3, 5 + len(ResourceState))
    return table([*headers, "last check"], rows, numbers=[*columns], caption="Sites", stacked=True)


_URGENCY = dict.fromkeys(_GONE, 0) | {
    SiteState.PAGES_LOST: 1,
    SiteState.BAD_CERTIFICATE: 1,
    SiteState.SUSPECT: 1,
    SiteState.MOVED: 2,
}


def _row(line: Line, place: str) -> tuple[Text, ...]:
    site, status = line.site, line.site.status
    known = held_of(line.counts)[1]
    return (
        tag("a", site.uri, href=place, class_="address"),
        state_of(line),
        tag("span", f"{status.since:%Y-%m-%d}", class_="whole") if status.since else "",
        f"{percent_of(line.counts)} of {known:,}" if known else "unknown",
        *(f"{line.counts[state]:,}" for state in ResourceState),
        f"{len(line.lost):,}",
        tag("span", f"{site.last_visit:%Y-%m-%d}" if site.last_visit else "never", class_="whole"),
    )


def badge(state: SiteState) -> Html:
    """A state with its colour and sign."""
    kind, sign = BADGES[state]
    return tag("span", tag("span", sign, aria_hidden="true"), state.value.replace("-", " "), class_=f"badge {kind}")


def state_of(line: Line) -> Html:
    """The state of a site, and what qualifies it."""
    site = line.site
    shown: list[Text] = [badge(site.status.state)]
    if line.offline_since is not None:
        shown.append(f" nothing answers since {line.offline_since:%Y-%m-%d}")
    elif line.unseen_since is not None:
        shown.append(f" not seen since {line.unseen_since:%Y-%m-%d}")
    if site.status.state is SiteState.MOVED:
        shown += [" to ", tag("span", site.moved_to, class_="address")]
    if site.notes.injected:
        shown.append(f" new links to {', '.join(site.notes.injected[:3])}")
    return tag("span", *shown)


def _recovery(line: Line) -> Text:
    """The folder of the last recovery, or how a recovery that is not done stands."""
    recovery = line.recovery
    if recovery is not None and recovery.state is not RecoveryState.DONE:
        return tag("span", recovery.state.value.replace("-", " "), class_="state")
    return tag("span", line.site.recovery, class_="address") if line.site.recovery else ""


def site_parts(detail: Detail, form: Text = "") -> list[Html]:
    """The page of one site; `form` is the button that accepts its present content."""
    line = detail.line
    site = line.site
    facts_ = [
        ("State", state_of(line)),
        ("Since", f"{site.status.since:%Y-%m-%d %H:%M}" if site.status.since else ""),
        ("Would come back", percent_of(line.counts)),
        *((state.value.capitalize(), f"{count:,}") for state, count in line.counts.items()),
        ("Last check", f"{site.last_visit:%Y-%m-%d %H:%M}" if site.last_visit else "never"),
        ("Certificate until", site.notes.certificate_until[:10] or "unknown"),
        ("Recovery", _recovery(line) or "none"),
    ]
    parts = [tag("h2", site.uri, class_="address"), card("", facts(facts_), form)]
    if line.lost:
        rows = [
            (
                tag("span", one.uri, class_="address"),
                f"{one.gone_since:%Y-%m-%d}" if one.gone_since else "",
                tag("a", f"{one.copied_at:%Y-%m-%d}" if one.copied_at else "copy", href=one.copy)
                if one.copy
                else "none",
            )
            for one in line.lost[:_MOST_SITES]
        ]
        parts.append(
            card(
                "Lost pages",
                table(["address", "gone since", "copy"], rows, caption="Lost pages", stacked=True),
                level=3,
            )
        )
    if detail.keeping:
        parts.append(card("How archives keep it", _keeping(detail), level=3))
    for one in detail.advice:
        listed = tag("ul", *(tag("li", page, class_="address") for page in one.pages))
        parts.append(card(one.gap.value.replace("-", " ").capitalize(), tag("p", one.text), listed, level=3))
    if detail.missing:
        parts.append(card("What leads to the resources that no archive holds", _missing(detail.missing), level=3))
    visits = [
        (tag("span", f"{one.at:%Y-%m-%d %H:%M}", class_="whole"), one.seen.value, one.why) for one in detail.visits
    ]
    parts.append(
        card("Last visits", table(["at", "seen", "why"], visits, caption="Last visits", stacked=True), level=3)
    )
    return parts


def _missing(pages: Sequence[MissingPage]) -> Html:
    rows: list[tuple[Text, ...]] = []
    for address, source, *cells in map(missing_row, pages[:_MOST_SITES]):
        rows.append((tag("span", address, class_="address"), tag("span", source, class_="address"), *cells))
    return table(MISSING_HEADERS, rows, numbers=(2, 3, 4), caption="Held by no archive", stacked=True)


def _keeping(detail: Detail) -> Html:
    def days(value: float | None) -> str:
        return "unknown" if value is None else f"{value:.1f}"

    rows = [
        (
            *(one.archive, f"{one.held:,} of {one.resources:,}", days(one.t_a), days(one.ttl_c)),
            "unknown" if one.p_r is None else f"{one.p_r:.2f}",
            *(days(one.endangered), f"{one.endangered_now:,}", f"{one.vulnerable_now:,}"),
        )
        for one in detail.keeping
    ]
    headers = ["archive", "held", "t_a, days", "TTL_c, days", "P_r", "endangered, days", "endangered", "vulnerable"]
    return table(headers, rows, numbers=[*range(1, 8)], caption="How archives keep it", stacked=True)


def site_page(detail: Detail, files: Linked | Inlined, form: Text = "") -> str:
    """The page of one site."""
    back = tag("p", tag("a", "All watched sites", href="/"))
    return document(detail.line.site.uri, back, *site_parts(detail, form), files=files, narrow=False)
