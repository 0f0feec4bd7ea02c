"""Pages to collect blocks from: a folder of files, WARC and WACZ files.

Hides: containers and content encodings. Every capture counts, not only the newest of a page. A damaged file gives what
is readable before the damage, and is named.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from recollect.errors import UsageError
from recollect.model import Problem

MAX_PAGE = 64 << 20
OnProblem = Callable[[Problem], None]
Page = tuple[str, bytes]  # where it was found, and its content


def pages_of(source: Path, on_problem: OnProblem) -> Iterator[Page]:
    """The pages in a file or a folder, whatever it is."""
    if source.is_dir():
        yield from _folder(source, on_problem)
    elif source.is_file():
        yield from _file(source, source.name, on_problem)
    else:
        raise UsageError("no such source", where=str(source), hint="a URL, a folder, a WARC or a WACZ file")


def _folder(folder: Path, on_problem: OnProblem) -> Iterator[Page]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield from _file(path, path.relative_to(folder).as_posix(), on_problem)


def _file(path: Path, name: str, on_problem: OnProblem) -> Iterator[Page]:
    lower = path.name.lower()
    if lower.endswith((".warc", ".warc.gz", ".arc", ".arc.gz")):
        with path.open("rb") as stream:
            yield from _warc(stream, name, on_problem)
    elif lower.endswith(".wacz") or (lower.endswith(".zip") and zipfile.is_zipfile(path)):
        yield from _wacz(path, name, on_problem)
    elif path.stat().st_size <= MAX_PAGE:
        yield name, path.read_bytes()


def _wacz(path: Path, name: str, on_problem: OnProblem) -> Iterator[Page]:
    try:
        with zipfile.ZipFile(path) as package:
            for inside in sorted(package.namelist()):
                if inside.lower().endswith((".warc", ".warc.gz")):
                    with package.open(inside) as stream:
                        yield from _warc(stream, f"{name}!{inside}", on_problem)
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        on_problem(Problem(str(path), None, f"damaged zip file: {error}"))


def _warc(stream: IO[bytes], name: str, on_problem: OnProblem) -> Iterator[Page]:
    from warcio.archiveiterator import ArchiveIterator
    from warcio.exceptions import ArchiveLoadFailed

    number = 0
    try:
        for record in ArchiveIterator(stream):
            number += 1
            if record.rec_type not in ("response", "resource"):
                continue
            uri = record.rec_headers.get_header("WARC-Target-URI") or record.rec_headers.get_header("uri")
            date = record.rec_headers.get_header("WARC-Date") or ""
            content = _content(record.content_stream())
            if content is None:
                on_problem(Problem(name, number, "a payload that is too big or cannot be decoded", (uri or "")[:120]))
            else:
                yield f"{uri or name} {date}".strip(), content
    except (ArchiveLoadFailed, ValueError, EOFError, OSError) as error:
        on_problem(Problem(name, number, f"cannot read on after this record: {error}"))


def _content(stream: IO[bytes]) -> bytes | None:
    import zlib

    import brotli
    from warcio.bufferedreaders import ChunkedDataException

    out = io.BytesIO()
    try:
        while piece := stream.read(1 << 16):
            out.write(piece)
            if out.tell() > MAX_PAGE:
                return None
    except (zlib.error, brotli.error, ChunkedDataException, ValueError, EOFError, OSError):
        return None
    return out.getvalue()
