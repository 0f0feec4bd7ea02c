"""The language of a visitor: by a link (`?lang=de`, kept in a cookie), else by the browser.

Hides: where the choice is kept. Pages and errors of a request are made in its language.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from urllib.parse import urlencode

from aiohttp import web

from recollect.ui.messages import languages, preferred, using

PARAMETER = "lang"
_COOKIE = "recollect-language"
_YEAR = 365 * 86_400
_here: ContextVar[tuple[tuple[str, str], ...] | None] = ContextVar("query", default=None)


@dataclass(frozen=True, slots=True)
class LanguageLink:
    """The same page in another language."""

    code: str
    name: str
    href: str


def links() -> list[LanguageLink]:
    """A link for every language: to the same page, or to the start after a form was sent."""
    query = _here.get()
    place, kept = ("/", ()) if query is None else ("", query)
    return [
        LanguageLink(code, one.name, f"{place}?{urlencode([*kept, (PARAMETER, code)])}")
        for code, one in languages().items()
    ]


@web.middleware
async def middleware(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Serve a request in the language of its visitor."""
    asked = request.query.get(PARAMETER, "")
    language = preferred(request.headers.get("Accept-Language", ""), asked, request.cookies.get(_COOKIE, ""))
    query = tuple((name, value) for name, value in request.query.items() if name != PARAMETER)
    _here.set(query if request.method in ("GET", "HEAD") else None)
    with using(language):
        response = await handler(request)
    if asked == language and not response.prepared:
        response.set_cookie(_COOKIE, language, max_age=_YEAR, path="/", httponly=True, samesite="Lax")
    if not response.prepared and response.content_type == "text/html":
        response.headers["Content-Language"] = language
        response.headers["Vary"] = "Accept-Language, Cookie"
    return response
