"""The published map, served by the aggregator: conditions, ranges, gzip and zstd on request, links of pages.

Hides: which files of the tree may be seen (only those `recollect publish` writes) and their headers. The bytes
come from the folder as they are, so a new `recollect publish` into it is served at once.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from recollect.aggregator.http.app import Context, RequestRecord
from recollect.aggregator.http.replies import COMMON, OPERATOR, error_reply, without_cors
from recollect.formats.ukvs.header import MEDIA_TYPE

LINK = f'</.well-known/mementomap>; rel="mementomap"; type="{MEDIA_TYPE}"'
_PUBLIC = re.compile(
    r"\.well-known/mementomap(?:\.gz|\.zst)?"
    r"|mementomap/(?:index\.json|link\.txt|map\.ukvs\.(?:gz|zst)|page-\d{5}\.ukvs(?:\.gz|\.zst)?"
    r"|[A-Za-z0-9_-][A-Za-z0-9._-]*/(?:index\.json|map\.ukvs\.(?:gz|zst)))"
)
_TYPES = {".json": "application/json", ".txt": "text/plain; charset=utf-8", ".gz": "application/gzip"}


async def well_known(context: Context, request: web.BaseRequest, rest: str, _seen: RequestRecord) -> web.StreamResponse:
    """`/.well-known/mementomap`."""
    return _file(context, request, f".well-known/{rest}")


async def folder(context: Context, request: web.BaseRequest, rest: str, _seen: RequestRecord) -> web.StreamResponse:
    """`/mementomap/…`: index, pages, the whole map."""
    return _file(context, request, f"mementomap/{rest}")


def _file(context: Context, request: web.BaseRequest, name: str) -> web.StreamResponse:
    name = name.partition("?")[0]
    root = context.settings.publish
    if root is None:
        return error_reply(404, "this server publishes no map", hint="recollect serve --publish DIR")
    path = Path(root) / name
    if not _PUBLIC.fullmatch(name) or not path.is_file():
        return error_reply(404, f"no such file: /{name[:100]}", hint="/mementomap/index.json lists what there is")
    links = [LINK, *_page_links(Path(root), name)]
    media_type = _TYPES.get(path.suffix) or ("application/zstd" if path.suffix == ".zst" else MEDIA_TYPE)
    headers = {**COMMON, "Link": ", ".join(links), "Content-Type": media_type, "Cache-Control": "public, max-age=3600"}
    if path.suffix not in (".gz", ".zst"):
        headers["Vary"] = "Accept-Encoding"
        accepted = request.headers.get("Accept-Encoding", "").lower()
        for coding, suffix in (("zstd", ".zst"), ("gzip", ".gz")):
            smaller = path.with_name(path.name + suffix)
            if re.search(rf"\b{coding}\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))", accepted) and smaller.is_file():
                headers["Content-Encoding"], path = coding, smaller
                break
    response = _PublishedFile(path, headers=headers)
    return without_cors(response) if request.get(OPERATOR) else response


class _PublishedFile(web.FileResponse):
    """A file with ranges and conditions, of which `If-Range` may be an ETag: a download that goes on must not be of
    another map than it began with."""

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        wanted = request.headers.get("If-Range", "").strip()
        if wanted.startswith(('"', "W/")):
            status = self._path.stat()
            if wanted != f'"{status.st_mtime_ns:x}-{status.st_size:x}"':
                fields = {name: value for name, value in request.headers.items() if name.lower() != "range"}
                request = request.clone(headers=fields)
        return await super().prepare(request)


def _page_links(root: Path, name: str) -> list[str]:
    """first, prev, next and last of a page, as the index has them."""
    try:
        index = json.loads((root / "mementomap" / "index.json").read_text(encoding="utf-8"))
        pages = [page["path"] for page in index["pages"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    here = 0 if name.startswith(".well-known") else next((i for i, p in enumerate(pages) if p[1:] == name), -1)
    if not pages or here < 0:
        return []
    found = {"first": pages[0], "last": pages[-1]}
    if here > 0:
        found["prev"] = pages[here - 1]
    if here + 1 < len(pages):
        found["next"] = pages[here + 1]
    return [f'<{path}>; rel="{rel}"' for rel, path in found.items()]
