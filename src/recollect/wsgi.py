"""`advertise`: a WSGI application, such as pywb, that also serves its archive's published map and points to it.

    from pywb.apps.wayback import application
    from recollect.wsgi import advertise
    application = advertise(application, "public/")

Hides: HTTP of static files (conditions, one range, gzip and zstd for clients that take them), and which files of the
folder may be seen: those that `recollect publish` and `recollect keep` write, and no others. Every other request goes
to the application as it came; its answers get one more `Link` header, after their own, and are changed in nothing else.

Needs only the standard library, so that it fits into any server's environment. `recollect.asgi` is the same for ASGI.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import formatdate, parsedate_to_datetime
from pathlib import Path
from types import TracebackType
from typing import Any

WELL_KNOWN = "/.well-known/mementomap"
MEDIA_TYPE = "application/ukvs"
RELATION = "mementomap"
BLOCK = 1 << 16
_PUBLIC = re.compile(
    r"/\.well-known/mementomap(?:\.gz|\.zst)?"
    r"|/mementomap/(?:index\.json|link\.txt|map\.ukvs\.(?:gz|zst)|page-\d{5}\.ukvs(?:\.gz|\.zst)?"
    r"|[A-Za-z0-9_-][A-Za-z0-9._-]*/(?:index\.json|map\.ukvs\.(?:gz|zst)))"
    r"|/status\.(?:html|json|prom)|/_/(?:look\.css|icon\.svg)"
)
_TYPES = {
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
    ".prom": "text/plain; version=0.0.4; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".gz": "application/gzip",
    ".zst": "application/zstd",
}
_CODINGS = (("zstd", ".zst"), ("gzip", ".gz"))
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")

Headers = list[tuple[str, str]]
ExcInfo = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]
StartResponse = Callable[..., Callable[[bytes], object]]
Application = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Reply:
    """A response from the published folder: `length` bytes of `path` from `start` on; no body without a path."""

    status: str
    headers: Headers
    path: Path | None = None
    start: int = 0
    length: int = 0


def advertise(application: Application, folder: str | os.PathLike[str], *, base_uri: str = "") -> Application:
    """Wrap an application: serve the map published in `folder`, and name it in the Link header of every answer.

    `base_uri` is where the folder is served, if that is not the root of this application.
    """
    root = Path(folder)

    def advertised(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        link = link_to(base_uri or environ.get("SCRIPT_NAME", ""))
        if environ.get("REQUEST_METHOD") in ("GET", "HEAD"):
            asked = {name: environ.get(f"HTTP_{name.upper().replace('-', '_')}", "") for name in CONDITIONS}
            reply = answer(root, environ.get("PATH_INFO", ""), asked, link)
            if reply is not None:
                start_response(reply.status, reply.headers)
                return body_of(reply) if environ["REQUEST_METHOD"] == "GET" else ()

        def start(status: str, headers: Headers, exc_info: ExcInfo | None = None) -> Callable[[bytes], object]:
            more = () if exc_info is None else (exc_info,)
            return start_response(status, with_link(headers, link), *more)

        return application(environ, start)

    return advertised


def link_to(base: str) -> str:
    """The value of the Link header for a map served below `base`."""
    return f'<{base.rstrip("/")}{WELL_KNOWN}>; rel="{RELATION}"; type="{MEDIA_TYPE}"'


def with_link(headers: Iterable[tuple[str, str]], link: str) -> Headers:
    """The headers and, after them, the link, unless they have it."""
    found = list(headers)
    has = any(name.lower() == "link" and f'rel="{RELATION}"' in value for name, value in found)
    return found if has else [*found, ("Link", link)]


CONDITIONS = ("Accept-Encoding", "If-None-Match", "If-Modified-Since", "Range", "If-Range")


def answer(root: Path, path: str, asked: Mapping[str, str], link: str) -> Reply | None:
    """The answer to a request for a file of the published folder; None if the path is not one of them."""
    if not _PUBLIC.fullmatch(path):
        return None
    file, coding = _chosen(root / path[1:], asked.get("Accept-Encoding", ""))
    try:
        found = file.stat()
    except OSError:
        return None
    etag = f'"{found.st_mtime_ns:x}-{found.st_size:x}"'
    headers = [
        ("Content-Type", _TYPES.get(Path(path).suffix, MEDIA_TYPE)),
        ("ETag", etag),
        ("Last-Modified", formatdate(found.st_mtime, usegmt=True)),
        ("Accept-Ranges", "bytes"),
        ("Vary", "Accept-Encoding"),
        ("Cache-Control", "public, max-age=300"),
        ("Access-Control-Allow-Origin", "*"),
        ("X-Content-Type-Options", "nosniff"),
        ("Link", link),
    ]
    if coding:
        headers.append(("Content-Encoding", coding))
    if _unchanged(asked, etag, found.st_mtime):
        return Reply("304 Not Modified", headers[1:])  # no body, so no type
    size = found.st_size
    part = _part(asked, etag, size)
    if part is None:
        return Reply("200 OK", [*headers, ("Content-Length", str(size))], file, 0, size)
    start, end = part
    if start >= end:
        return Reply(
            "416 Range Not Satisfiable", [*headers, ("Content-Range", f"bytes */{size}"), ("Content-Length", "0")]
        )
    said = [("Content-Range", f"bytes {start}-{end - 1}/{size}"), ("Content-Length", str(end - start))]
    return Reply("206 Partial Content", [*headers, *said], file, start, end - start)


def body_of(reply: Reply) -> Iterator[bytes]:
    """The bytes of an answer, block by block."""
    left = reply.length
    if reply.path is None or not left:
        return
    with reply.path.open("rb") as file:
        file.seek(reply.start)
        while left and (piece := file.read(min(BLOCK, left))):
            left -= len(piece)
            yield piece


def _chosen(file: Path, accepted: str) -> tuple[Path, str]:
    """The file to send and its content coding: a compressed one beside it where the client takes it."""
    if file.suffix not in (".gz", ".zst"):
        for coding, suffix in _CODINGS:
            smaller = file.with_name(file.name + suffix)
            if _takes(accepted, coding) and smaller.is_file():
                return smaller, coding
    return file, ""


def _takes(accepted: str, coding: str) -> bool:
    for part in accepted.lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() == coding:
            return not re.fullmatch(r"\s*q\s*=\s*0(?:\.0*)?\s*", weight)
    return False


def _unchanged(asked: Mapping[str, str], etag: str, changed: float) -> bool:
    if tags := asked.get("If-None-Match"):
        known = [tag.strip().removeprefix("W/") for tag in tags.split(",")]
        return etag in known or "*" in known
    if since := asked.get("If-Modified-Since"):
        try:
            return int(changed) <= parsedate_to_datetime(since).timestamp()
        except (ValueError, TypeError):
            return False
    return False


def _part(asked: Mapping[str, str], etag: str, size: int) -> tuple[int, int] | None:
    """The one range that is asked for; None for all of the file, an empty one if it has no such part."""
    found = _RANGE.fullmatch(asked.get("Range", "").strip())
    if found is None or (asked.get("If-Range") and asked["If-Range"].strip() != etag):
        return None
    first, last = found.groups()
    if not first:
        return (max(size - int(last), 0), size) if last else None
    if last and int(last) < int(first):
        return None
    return int(first), min(int(last) + 1, size) if last else size
