"""ZipNum shards: an index compressed in blocks of some thousand lines, each a gzip member of its own.

Hides one trap: the blocks of some makers end without a newline, so that unpacking the file as a whole glues the last
line of a block to the first line of the next. `lacks_newlines` recognises such a file; `read_blocks` gives its blocks
as whole lines. (In other gzip files a member may end anywhere, BGZF ends them every 64 kB, so the trap is only seen
where both sides of the first border are whole lines.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

from isal import igzip_lib

from recollect.model import Problem

_READ = 1 << 18
# Blocks have some thousand lines; a file with longer ones is not ZipNum.
_LARGEST_BLOCK = 1 << 23
# The type stubs of the library do not declare its error as a class.
_ISAL_ERRORS = (cast(type[Exception], igzip_lib.IsalError), EOFError)
_LINE_BEGINS = re.compile(rb"\S++[ \t]\d{4,20}[ \t](?=\S)")
_JSON_BEGINS = re.compile(rb"(?:\A|[ \t])\{")
_GAP = re.compile(rb"\s\s")


def _is_whole(line: bytes) -> bool:
    """Whether a line has a key, a time, and fields with one blank between them; JSON is closed."""
    begin = _LINE_BEGINS.match(line)
    if begin is None:
        return False
    rest = line[begin.end() :].rstrip()
    json = _JSON_BEGINS.search(rest)
    fields = rest[: json.start()] if json else rest
    return not _GAP.search(fields) and (json is None or rest.endswith(b"}"))


def lacks_newlines(path: str) -> bool:
    """Whether the first two members of a gzip file are blocks of lines without a newline between them."""
    try:
        members = _members(path, _LARGEST_BLOCK)
        first, second = next(members, b""), next(members, b"")
    except _Damage:
        return False
    if not first or not second or first.endswith(b"\n"):
        return False
    last, following = first.rsplit(b"\n", 1)[-1], second.split(b"\n", 1)[0]
    return _is_whole(last) and _is_whole(following)


def read_blocks(path: str, on_problem: Callable[[Problem], None]) -> Iterator[bytes]:
    """The blocks of a shard, each ending with a newline; damage is reported after all that came before it."""
    try:
        for block in _members(path):
            yield block if block.endswith(b"\n") else block + b"\n"
    except _Damage as damage:
        on_problem(Problem(path, None, str(damage)))


class _Damage(Exception):
    pass


def _members(path: str, largest: int | None = None) -> Iterator[bytes]:
    """The text of each gzip member; stops before one that is longer than `largest`.

    A member that breaks off is left out: half a line is another key.
    """
    with Path(path).open("rb", buffering=0) as file:
        rest = file.read(_READ)
        while rest:
            decoder = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
            parts: list[bytes] = []
            while not decoder.eof:
                if largest is not None and sum(map(len, parts)) > largest:
                    return
                if not rest and not (rest := file.read(_READ)):
                    raise _Damage("gzip data is cut off")
                try:
                    parts.append(decoder.decompress(rest))
                except _ISAL_ERRORS as error:
                    raise _Damage(f"gzip data is damaged ({error})") from error
                rest = b""
            yield b"".join(parts)
            rest = decoder.unused_data or file.read(_READ)
