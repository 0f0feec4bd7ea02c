"""Browsable previews, on an origin of their own that the operator configures: never on the desk's.

Hides: reading the zip of a result. Pages are sandboxed without script, forms and requests to anywhere but their own
files; addresses are signed with a secret of this run of the desk and end after a day.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import mimetypes
import secrets
import zipfile
from pathlib import Path
from urllib.parse import quote

from aiohttp import web

from recollect.desk.http.context import DESK, Desk
from recollect.desk.jobs import Job

_KEY = secrets.token_bytes(32)
_LIFETIME = 86_400
_MOST = 64 * 1024 * 1024
_POLICY = (
    "sandbox; default-src 'none'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; font-src 'self' data:; "
    "media-src 'self'; frame-ancestors 'none'; form-action 'none'; base-uri 'none'"
)


def preview_path(desk: Desk, job: Job) -> str:
    """The signed address of a preview's front page."""
    front = str(job.result.get("summary", {}).get("front") or "")
    return f"{preview_folder(desk, job)}{quote(front)}"


def preview_folder(desk: Desk, job: Job) -> str:
    """The signed address below which the files of a result are."""
    until = int(desk.now()) + _LIFETIME
    return f"/{job.id}/{until}-{_sign(job.id, until)}/"


def _sign(job: str, until: int) -> str:
    return hmac.new(_KEY, f"{job} {until}".encode(), hashlib.sha256).hexdigest()[:32]


async def show(request: web.Request) -> web.Response:
    desk = request.app[DESK]
    job, name = request.match_info["job"], request.match_info["name"]
    until, _, signature = request.match_info["signature"].partition("-")
    if not (until.isascii() and until.isdigit() and len(until) < 16) or int(until) < desk.now():
        raise web.HTTPNotFound()
    if not hmac.compare_digest(signature.encode("utf-8", "replace"), _sign(job, int(until)).encode()):
        raise web.HTTPNotFound()
    body = await asyncio.to_thread(_read, desk.results(job) / "result.zip", name)
    if body is None:
        raise web.HTTPNotFound()
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return web.Response(
        body=body,
        headers={
            "Content-Type": kind,
            "Content-Security-Policy": _POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "private, no-store",
        },
    )


def _read(path: Path, name: str) -> bytes | None:
    try:
        with zipfile.ZipFile(path) as archive:
            entry = archive.getinfo(name)
            return archive.read(entry) if entry.file_size <= _MOST else None
    except (OSError, KeyError, zipfile.BadZipFile):
        return None


def create_app(desk: Desk) -> web.Application:
    app = web.Application()
    app[DESK] = desk
    app.add_routes([web.get("/{job:[0-9a-f]+}/{signature}/{name:.+}", show)])
    return app
