"""Files that a person adds to a job: a crawl, saved pages, a HAR, which its recovery reads like archives.

Hides: files that arrive whole or not at all, and what is accepted. Invariants: a file is kept only if it is one of the
formats that `recollect.sources` reads by itself, under a name that the desk made; names, number and sizes are bounded
by settings; files are taken only before the recovery begins, and only for a request that announced them (`own_files`):
its job is that person's alone, because its result shows what was in them. Whether others asked for the same site
changes no answer. They lie beside the result and go with it.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from aiohttp import web

from recollect.desk import queue
from recollect.desk.database import Connection
from recollect.desk.http.context import (
    BadRequest,
    Denied,
    Desk,
    authorized,
    check_origin,
    desk_of,
    json_reply,
    require,
)
from recollect.desk.jobs import Job
from recollect.desk.states import State
from recollect.errors import ResourceError
from recollect.quantities import format_size
from recollect.sources.model import Kind
from recollect.sources.recognise import recognise

_EARLY = (State.PENDING, State.QUEUED)
_ACCEPTED = (Kind.WARC, Kind.ARC, Kind.WACZ, Kind.HAR, Kind.MHTML, Kind.SAVED)
_PIECE = 1 << 20


def folder_of(desk: Desk, job: str) -> Path:
    return desk.results(job) / "sources"


def files_of(desk: Desk, job: str) -> list[Path]:
    """The files that were added to a job, in order of their names."""
    folder = folder_of(desk, job)
    return sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []


def described(desk: Desk, job: str) -> list[dict[str, Any]]:
    """The files of a job, for its page and the API."""
    return [{"name": path.name, "size": path.stat().st_size} for path in files_of(desk, job)]


def is_open(desk: Desk, job: Job, state: State) -> bool:
    """May files still be added to a job that is shown in this state?"""
    return bool(desk.settings.upload_bytes) and bool(job.options.get("own_files")) and state in _EARLY


async def put(request: web.Request) -> web.Response:
    """PUT /api/jobs/ID/sources/NAME: add a file to a job before its recovery begins."""
    check_origin(request)
    desk, job = await _open_job(request)
    await _keep(desk, job, request.match_info["name"], request.content.iter_chunked(_PIECE))
    return json_reply({"id": job.id, "sources": described(desk, job.id)})


async def remove(request: web.Request) -> web.Response:
    """DELETE /api/jobs/ID/sources/NAME."""
    check_origin(request)
    desk, job = await _open_job(request)
    for path in files_of(desk, job.id):
        if path.name == request.match_info["name"]:
            path.unlink(missing_ok=True)
    return json_reply({"id": job.id, "sources": described(desk, job.id)})


async def posted(request: web.Request) -> web.Response:
    """The form of a job's page: one file or several."""
    check_origin(request)
    desk, job = await _open_job(request)
    reader = await request.multipart()
    while (part := await reader.next()) is not None:
        if name := getattr(part, "filename", None):
            await _keep(desk, job, str(name), _chunks(part))
    raise web.HTTPSeeOther(f"/jobs/{job.id}?token={request.query.get('token', '')}")


async def _chunks(part: Any) -> AsyncIterator[bytes]:
    while piece := await part.read_chunk(_PIECE):
        yield piece


async def _open_job(request: web.Request) -> tuple[Desk, Job]:
    """The job of a request that may add files to it."""
    desk = desk_of(request)
    job, _ = await authorized(request)
    if not desk.settings.upload_bytes:
        raise Denied("this desk takes no files")
    if not job.options.get("own_files"):
        raise Denied("this request did not announce files", hint='ask again with "own_files": true')
    if job.state not in _EARLY:
        raise BadRequest("files can be added only before the recovery begins", where=job.id)
    return desk, job


async def _keep(desk: Desk, job: Job, name: str, pieces: AsyncIterator[bytes]) -> None:
    """Take one file, if it is what it should be and there is room for it."""
    folder = folder_of(desk, job.id)
    target = folder / safe_name(name)
    others = [path for path in files_of(desk, job.id) if path != target]
    if len(others) >= desk.settings.upload_files:
        raise BadRequest("too many files", why=f"at most {desk.settings.upload_files}")
    room = desk.settings.upload_bytes - sum(path.stat().st_size for path in others)
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder.parent / f".{secrets.token_hex(8)}.part"
    try:
        with temporary.open("wb") as file:
            async for piece in pieces:
                room -= len(piece)
                if room < 0:
                    raise BadRequest(
                        "the files are too large", why=f"at most {format_size(desk.settings.upload_bytes)}"
                    )
                await asyncio.to_thread(file.write, piece)
        kind = await asyncio.to_thread(recognise, temporary, job.uri)
        if kind not in _ACCEPTED:
            raise BadRequest(
                "not a file that holds pages", where=target.name, hint="WARC, ARC, WACZ, HAR, MHTML or a saved page"
            )

        def keep(c: Connection) -> None:
            if queue.get(c, job.id).state not in _EARLY:
                raise BadRequest("files can be added only before the recovery begins", where=job.id)
            if temporary.exists():  # a transaction may run twice
                temporary.replace(target)

        await desk.transact(keep)
    except OSError as error:
        raise ResourceError("cannot keep the file", where=target.name, why=error.strerror or str(error)) from error
    finally:
        temporary.unlink(missing_ok=True)


def safe_name(name: str) -> str:
    """A name for the disk and for reports; nothing of a path, no hidden file."""
    last = re.split(r"[/\\]", name)[-1]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", last).strip("-.")[-80:] or "file"


async def of_worker(request: web.Request) -> web.StreamResponse:
    """A file of a job, for the worker that recovers it."""
    desk = desk_of(request)
    await require(request, "worker")
    for path in files_of(desk, request.match_info["job"]):
        if path.name == request.match_info["name"]:
            return web.FileResponse(path)
    raise queue.UnknownJob("no such file", where=request.match_info["name"][:80])


ROUTES = [
    web.put("/api/jobs/{job}/sources/{name}", put),
    web.delete("/api/jobs/{job}/sources/{name}", remove),
    web.post("/jobs/{job}/sources", posted),
    web.get("/api/worker/jobs/{job}/sources/{name}", of_worker),
]
