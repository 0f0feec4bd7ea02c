"""The small server of a dashboard: `/`, `/site`, `/accept`, `/status.json`, `/atom.xml`.

Hides: routes. Pages only read; `/accept` shows a button for a signed link, and only the button (a POST with the same
signature) changes anything: mail programs and crawlers open links by themselves, and other sites cannot sign.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlencode

from recollect.quantities import counted
from recollect.ui.look import ASSET_TYPES, HEADERS, Html, asset, card, document, tag
from recollect.ui.pages import Linked
from recollect.watch.board import Board, Detail, Line
from recollect.watch.pages.board import board_page, site_page, state_of

if TYPE_CHECKING:
    from aiohttp import web

_REFRESH = 60


class Dashboard(Protocol):
    """What the server shows and does."""

    def board(self) -> Board: ...

    def feed(self) -> bytes: ...

    def detail(self, uri: str) -> Detail | None: ...

    def signature(self, uri: str) -> str:
        """What allows to accept the present content of a site; empty if there is nothing to accept."""

    def accept(self, uri: str) -> str:
        """Accept it; what was accepted, in words."""


def _form(uri: str, signed: str) -> Html:
    """The button that accepts the present content of a site."""
    if not signed:
        return Html("")
    return tag(
        "form",
        tag("input", type="hidden", name="site", value=uri),
        tag("input", type="hidden", name="signed", value=signed),
        tag("p", "If the site is as you want it, accept it: the watch takes its present content for the site's."),
        tag("button", "Accept the present content", type="submit"),
        method="post",
        action="/accept",
    )


def _content_of(detail: Detail | None) -> list[Html]:
    """What would be accepted: the state, pages that are gone, new links."""
    if detail is None:
        return []
    lost = [tag("li", page.uri, class_="address") for page in detail.line.lost]
    return [
        tag("p", state_of(detail.line)),
        *([tag("p", f"{counted(len(lost), 'page')} gone:"), tag("ul", *lost)] if lost else []),
    ]


def _message(title: str, *parts: Html) -> bytes:
    back = tag("p", tag("a", "All watched sites", href="/"))
    return document(title, tag("h1", title), card("", *parts, back), files=Linked()).encode()


def board_app(dashboard: Dashboard) -> web.Application:
    """A server of the dashboard."""
    from aiohttp import web

    def place(_: int, line: Line) -> str:
        return f"/site?{urlencode({'uri': line.site.uri})}"

    async def page(_: web.Request) -> web.Response:
        content = board_page(dashboard.board(), Linked(), place, refresh=_REFRESH)
        return web.Response(body=content.encode(), headers=HEADERS)

    async def site(request: web.Request) -> web.Response:
        uri = request.query.get("uri", "")
        detail = dashboard.detail(uri)
        if detail is None:
            raise web.HTTPNotFound
        content = site_page(detail, Linked(), _form(uri, dashboard.signature(uri)))
        return web.Response(body=content.encode(), headers=HEADERS)

    async def ask(request: web.Request) -> web.Response:
        uri, signed = request.query.get("site", ""), request.query.get("signed", "")
        if not _is_valid(dashboard, uri, signed):
            return web.Response(status=403, body=_message("This link is not valid any more"), headers=HEADERS)
        what = _content_of(dashboard.detail(uri))
        return web.Response(body=_message(f"Accept {uri}?", *what, _form(uri, signed)), headers=HEADERS)

    async def accept(request: web.Request) -> web.Response:
        fields = await request.post()
        uri, signed = str(fields.get("site", "")), str(fields.get("signed", ""))
        if not _is_valid(dashboard, uri, signed):
            return web.Response(status=403, body=_message("This link is not valid any more"), headers=HEADERS)
        words = dashboard.accept(uri)
        return web.Response(body=_message(f"{uri} is accepted", tag("p", words)), headers=HEADERS)

    async def status(_: web.Request) -> web.Response:
        return web.json_response(dashboard.board().to_json())

    async def atom(_: web.Request) -> web.Response:
        return web.Response(body=dashboard.feed(), headers={"Content-Type": "application/atom+xml; charset=utf-8"})

    async def file(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in ASSET_TYPES:
            raise web.HTTPNotFound
        return web.Response(body=asset(name), headers={"Content-Type": ASSET_TYPES[name]})

    app = web.Application()
    routes: list[tuple[str, Callable[[web.Request], object]]] = [
        *(("/", page), ("/site", site), ("/accept", ask), ("/status.json", status), ("/atom.xml", atom)),
        ("/_/{name}", file),
    ]
    app.add_routes([*(web.get(path, handler) for path, handler in routes), web.post("/accept", accept)])  # type: ignore[arg-type]
    return app


def _is_valid(dashboard: Dashboard, uri: str, signed: str) -> bool:
    import hmac

    expected = dashboard.signature(uri)
    return bool(expected) and hmac.compare_digest(expected.encode(), signed.encode("utf-8", "replace"))
