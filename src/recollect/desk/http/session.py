"""The login of the operator, and what all admin pages share.

Hides: sessions. The password is kept as scrypt; logins are throttled by network; the session is a random cookie
(`__Host-`, stored hashed) and every form carries the session's token and must come from the desk's origin.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import secrets
from typing import Any

from aiohttp import web

from recollect.desk import people
from recollect.desk.database import Connection, one
from recollect.desk.http.context import Denied, Desk, client_of, desk_of
from recollect.desk.http.pages import html, posted, see
from recollect.ui.look import Html, card, document, field, hidden, post, tag

COOKIE = "__Host-recollect"
_SESSION = 8 * 3600.0
_TRIES, _PERIOD = 5, 900.0
_LONGEST = 1000
NAV = {
    "/admin": "Jobs",
    "/admin/workers": "Workers",
    "/admin/archives": "Archives",
    "/admin/mails": "Mails",
    "/admin/statistics": "Statistics",
    "/admin/blocklist": "Blocklist",
    "/admin/takedowns": "Takedowns",
}


def page(title: str, here: str, *body: Any, csrf: str = "") -> web.Response:
    out = post("/admin/logout", hidden({"csrf": csrf}), button="Log out", plain=True, class_="small") if csrf else ""
    return html(document(title, tag("h1", title), *body, out, nav=NAV if csrf else None, here=here, narrow=False))


def _scrypt(password: str, salt: bytes) -> str:
    return hashlib.scrypt(password.encode(), salt=salt, n=2**14, r=8, p=1, maxmem=64 * 1024 * 1024).hex()


def set_password(desk: Desk) -> None:
    """Keep the operator's password as scrypt; without one in the settings, one is generated and written to a file."""
    password = desk.settings.admin_password
    path = desk.folder / "admin.password"
    if not password:
        if not path.exists():
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w") as file:
                file.write(secrets.token_urlsafe(12) + "\n")
        password = path.read_text().strip()

    def keep(c: Connection) -> None:
        row = one(c.rows("SELECT hash FROM credential WHERE name = 'admin'"))
        if row is not None and _matches(password, row["hash"]):
            return
        salt = secrets.token_bytes(16)
        c.change("DELETE FROM credential WHERE name = 'admin'")
        value = f"{salt.hex()}${_scrypt(password, salt)}"
        c.change("INSERT INTO credential VALUES ('admin', 'admin', ?, ?)", value, desk.now())
        c.change("DELETE FROM session")

    desk.database.transact(keep)


def _matches(password: str, stored: str) -> bool:
    salt, _, digest = stored.partition("$")
    return hmac.compare_digest(_scrypt(password, bytes.fromhex(salt)), digest)


async def login_form(_request: web.Request) -> web.Response:
    return _login_page("")


def _login_page(error: str, status: int = 200) -> web.Response:
    body = post(
        "/admin/login",
        field("password", "Password", kind="password", required=True, autocomplete="current-password", error=error),
        button="Log in",
    )
    response = page("Operator", "", card("", body))
    response.set_status(status)
    return response


async def login(request: web.Request) -> web.Response:
    desk = desk_of(request)
    given = await posted(request)
    bucket = f"login {people.hash_of(people.network_of(client_of(request)))}"
    if not await desk.run(people.allow, bucket, desk.now(), _TRIES, _PERIOD):
        return _login_page("too many attempts: wait a quarter of an hour", 429)
    stored = await desk.transact(lambda c: c.rows("SELECT hash FROM credential WHERE name = 'admin'"))
    password = str(given.get("password", ""))[:_LONGEST]
    # In a thread: scrypt is slow by design, and other requests are served meanwhile.
    if not stored or not await asyncio.to_thread(_matches, password, stored[0]["hash"]):
        return _login_page("wrong password", 403)
    cookie, csrf = secrets.token_urlsafe(32), secrets.token_urlsafe(24)

    def keep(c: Connection) -> None:
        c.change("INSERT INTO session VALUES (?, ?, ?)", people.hash_of(cookie), csrf, desk.now() + _SESSION)
        c.change("DELETE FROM attempt WHERE bucket = ?", bucket)

    await desk.transact(keep)
    response = see("/admin")
    response.set_cookie(COOKIE, cookie, path="/", secure=True, httponly=True, samesite="Strict", max_age=int(_SESSION))
    return response


async def session(request: web.Request) -> str:
    """The token of the session's forms; raises a redirect to the login."""
    desk = desk_of(request)
    cookie = request.cookies.get(COOKIE, "")
    rows = await desk.transact(
        lambda c: c.rows("SELECT csrf FROM session WHERE hash = ? AND expires > ?", people.hash_of(cookie), desk.now())
    )
    if not rows:
        raise web.HTTPSeeOther("/admin/login")
    return str(rows[0]["csrf"])


async def form(request: web.Request) -> tuple[Desk, dict[str, Any]]:
    """A form of a logged-in operator."""
    csrf = await session(request)
    given = await posted(request)
    if not hmac.compare_digest(str(given.pop("csrf", "")).encode("utf-8", "replace"), csrf.encode()):
        raise Denied("this form is too old", hint="open the page again")
    return desk_of(request), given


async def logout(request: web.Request) -> web.Response:
    desk, _ = await form(request)
    cookie = people.hash_of(request.cookies.get(COOKIE, ""))
    await desk.transact(lambda c: c.change("DELETE FROM session WHERE hash = ?", cookie))
    response = see("/admin/login")
    response.del_cookie(COOKIE, path="/", secure=True)
    return response


def search_form(path: str, asked: str) -> Html:
    """Find jobs or mails by a part of an address or of a site."""
    return tag(
        "form",
        field("q", "E-mail address, site or id", value=asked),
        tag("button", "Search", class_="plain"),
        method="get",
        action=path,
        class_="inline",
    )


def button(path: str, csrf: str, words: str, **fields: str) -> Html:
    """A form of one button."""
    return post(path, hidden({"csrf": csrf, **fields}), button=words, plain=True)
