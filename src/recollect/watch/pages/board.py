"""The dashboard of a watch: as one file, and served.

Hides: markup and the small server. The page is Figure 60 of McCown 2007 (resources in each state over time) and a
table of the sites.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from recollect.datetimes import format_iso
from recollect.ui.look import (
    ASSET_TYPES,
    HEADERS,
    Html,
    Text,
    areas,
    asset,
    card,
    document,
    figures,
    key,
    notice,
    table,
    tag,
)
from recollect.ui.pages import INLINED, Inlined, Linked
from recollect.watch.board import Board, Counts, Line, share_of
from recollect.watch.records import RecoveryState
from recollect.watch.states import ResourceState, SiteState

if TYPE_CHECKING:
    from aiohttp import web

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
_GONE = (SiteState.LOST, SiteState.TAKEN_OVER)
_MOST_SITES = 1000
_REFRESH = 60


def dashboard_page(board: Board) -> str:
    """The dashboard as one file."""
    return _page(board, INLINED)


def _page(board: Board, files: Linked | Inlined, refresh: int = 0) -> str:
    states = [line.site.status.state for line in board.lines]
    gone = sum(state in _GONE for state in states)
    head = card(
        "",
        figures(
            [
                (f"{len(board.lines):,}", "site watched" if len(board.lines) == 1 else "sites watched"),
                (f"{gone:,}", "lost or taken over"),
                (_percent(share_of(board.total)), "of the resources with a known state would come back"),
                (f"{board.total[ResourceState.VULNERABLE]:,}", "resources held by no archive"),
            ]
        ),
    )
    warned: list[Text] = []
    if gone:
        names = ", ".join(line.site.uri for line in board.lines if line.site.status.state in _GONE)
        warned = [notice(f"Lost or taken over: {names}", bad=True)]
    return document(
        "Watched sites",
        tag("h1", "Watched sites"),
        *warned,
        head,
        over_time(board.series),
        card("Sites", _sites(board)),
        files=files,
        narrow=False,
        refresh=refresh,
        footer=f"as of {format_iso(board.at)}",
    )


def over_time(series: tuple[tuple[datetime, Counts], ...], title: str = "Resources over time") -> Html:
    """Figure 60: how many resources are in each state, stacked."""
    if not series:
        return card(title, tag("p", "Nothing was observed yet. Next: recollect watch run", class_="note"))
    layers = {state.value: [float(counts[state]) for _, counts in series] for state in KINDS}
    ends = [f"{series[index][0]:%Y-%m-%d}" for index in (0, -1)]
    picture = areas([at.timestamp() for at, _ in series], layers, [*KINDS.values()], title, ends)
    return card(title, picture, key({_WORDS[state]: kind for state, kind in KINDS.items()}))


def _sites(board: Board) -> Html:
    order = {SiteState.LOST: 0, SiteState.TAKEN_OVER: 0, SiteState.SUSPECT: 1, SiteState.MOVED: 2}
    lines = sorted(board.lines, key=lambda line: (order.get(line.site.status.state, 9), line.site.uri))
    headers = ["site", "state", "since", "recoverable", "resources", "vulnerable", "last check", "recovery"]
    return table(headers, [_row(line) for line in lines[:_MOST_SITES]], numbers=(3, 4, 5), caption="Sites")


def _row(line: Line) -> tuple[Text, ...]:
    site, status = line.site, line.site.status
    return (
        tag("span", site.uri, class_="address"),
        _state(line),
        tag("span", f"{status.since:%Y-%m-%d}", class_="whole") if status.since else "",
        _percent(line.recoverable),
        f"{sum(line.counts.values()):,}",
        f"{line.counts[ResourceState.VULNERABLE]:,}",
        tag("span", f"{site.last_visit:%Y-%m-%d %H:%M}" if site.last_visit else "never", class_="whole"),
        _recovery(line),
    )


def _state(line: Line) -> Html:
    site = line.site
    shown = tag("span", site.status.state.value.replace("-", " "), class_="state")
    if line.unseen_since is not None:
        return tag("span", shown, f" not seen since {line.unseen_since:%Y-%m-%d}")
    if site.status.state is not SiteState.MOVED:
        return shown
    return tag("span", shown, " to ", tag("span", site.moved_to, class_="address"))


def _recovery(line: Line) -> Text:
    """The folder of the last recovery, or how a recovery that is not done stands."""
    recovery = line.recovery
    if recovery is not None and recovery.state is not RecoveryState.DONE:
        return tag("span", recovery.state.value.replace("-", " "), class_="state")
    return tag("span", line.site.recovery, class_="address") if line.site.recovery else ""


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.0%}"


def board_app(board: Callable[[], Board], feed: Callable[[], bytes]) -> web.Application:
    """A server of the dashboard: `/`, `/status.json`, `/atom.xml`."""
    from aiohttp import web

    async def page(_: web.Request) -> web.Response:
        return web.Response(body=_page(board(), Linked(), _REFRESH).encode(), headers=HEADERS)

    async def status(_: web.Request) -> web.Response:
        return web.json_response(board().to_json())

    async def atom(_: web.Request) -> web.Response:
        return web.Response(body=feed(), headers={"Content-Type": "application/atom+xml; charset=utf-8"})

    async def file(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in ASSET_TYPES:
            raise web.HTTPNotFound
        return web.Response(body=asset(name), headers={"Content-Type": ASSET_TYPES[name]})

    app = web.Application()
    app.add_routes(
        [
            web.get("/", page),
            web.get("/status.json", status),
            web.get("/atom.xml", atom),
            web.get("/_/{name}", file),
        ]
    )
    return app
