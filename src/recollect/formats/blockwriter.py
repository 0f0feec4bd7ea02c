"""Writing compressed files that can still be searched: BGZF and zstd's seekable frames (`blocks` reads them).

Hides: block headers, the seek table, threads that compress.

BGZF (SAM specification, section 4.1): a gzip file of members of at most 64 KB each, whose header has FLG = 4 and an
extra field `BC` with the member's length - 1 (BSIZE, 2 bytes), ended by an empty member. zstd seekable
(facebook/zstd, contrib/seekable_format): a zstd file of independent frames, ended by a skippable frame (magic
0x184D2A5E) with 8 bytes per frame (compressed and decompressed size) and a footer (count, flags, 0x8F92EAB1).

Invariants of what `BlockWriter` writes: a block ends with a newline unless a line is longer than a block, so that a
search reads one block; `zcat` and `zstdcat` give the text back byte for byte.
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections import deque
from collections.abc import Callable
from typing import IO, TYPE_CHECKING

import zstandard
from isal import isal_zlib

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

# isal's own types call this an instance.
IsalError: type[Exception] = isal_zlib.IsalError  # type: ignore[assignment]

BGZF = "bgzf"
ZSTD_SEEKABLE = "zstd-seekable"

# A member may have 64 KB with header and trailer; this much text fits even when it does not compress.
BGZF_TEXT = 0xFF00
BGZF_MEMBER = 1 << 16
BGZF_START = b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0"
BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
# isal's best level: 8% larger than zlib's level 6 on a map, four times as fast.
BGZF_LEVEL = 3
# Measured on a map of 300,000 keys: 128 KB frames at level 6 are 8% smaller than 64 KB at level 3; a search
# reads one.
ZSTD_TEXT = 1 << 17
ZSTD_LEVEL = 6
ZSTD_TABLE = 0x184D2A5E
ZSTD_FOOTER = 0x8F92EAB1
WORKERS = 2


class BlockWriter:
    """Writes text as independent blocks; blocks are compressed by threads, in order."""

    def __init__(self, file: IO[bytes], kind: str) -> None:
        self._file = file
        self._limit = BGZF_TEXT if kind == BGZF else ZSTD_TEXT
        self._compress: Callable[[bytes], bytes] = _bgzf_member if kind == BGZF else _zstd_frame
        self._kind = kind
        self._text = bytearray()
        self._pool: ThreadPoolExecutor | None = None  # a file of one block needs none
        self._pending: deque[tuple[int, Future[bytes]]] = deque()
        self._frames: list[tuple[int, int]] = []

    def write(self, data: bytes) -> int:
        """Take some text."""
        self._text += data
        if len(self._text) > self._limit:
            self._cut()
        return len(data)

    def flush(self) -> None:
        """Blocks are written when they are full; nothing can be forced out earlier."""

    def _cut(self) -> None:
        text, start = self._text, 0
        while len(text) - start > self._limit:
            end = text.rfind(b"\n", start, start + self._limit) + 1
            end = end if end > start else start + self._limit
            self._submit(bytes(text[start:end]))
            start = end
        del text[:start]

    def _submit(self, block: bytes) -> None:
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(WORKERS, "recollect-compress")
        self._pending.append((len(block), self._pool.submit(self._compress, block)))
        while len(self._pending) > 4 * WORKERS or (self._pending and self._pending[0][1].done()):
            self._put()

    def _put(self) -> None:
        length, future = self._pending.popleft()
        self._write(future.result(), length)

    def _write(self, block: bytes, length: int) -> None:
        self._file.write(block)
        if self._kind == ZSTD_SEEKABLE:
            self._frames.append((len(block), length))

    def finish(self) -> None:
        """Write what is left, and the end that the container asks for."""
        self._cut()
        while self._pending:
            self._put()
        if self._text:
            last = bytes(self._text)
            self._write(self._compress(last), len(last))
            self._text.clear()
        if self._pool is not None:
            self._pool.shutdown()
        self._file.write(BGZF_END if self._kind == BGZF else _seek_table(self._frames))

    def abandon(self) -> None:
        """Stop the threads; the file is not wanted."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


def _bgzf_member(text: bytes) -> bytes:
    deflate = isal_zlib.compressobj(BGZF_LEVEL, isal_zlib.DEFLATED, -15)
    body = deflate.compress(text) + deflate.flush()
    if len(body) + 26 > BGZF_MEMBER:  # text that does not compress is stored
        stored = zlib.compressobj(0, zlib.DEFLATED, -15)
        body = stored.compress(text) + stored.flush()
    return b"".join(
        (BGZF_START, struct.pack("<H", len(body) + 25), body, struct.pack("<II", isal_zlib.crc32(text), len(text)))
    )


_local = threading.local()


def _zstd_frame(text: bytes) -> bytes:
    compressor = getattr(_local, "compressor", None)  # a compressor belongs to one thread at a time
    if compressor is None:
        compressor = _local.compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_checksum=True)
    frame: bytes = compressor.compress(text)
    return frame


def _seek_table(frames: list[tuple[int, int]]) -> bytes:
    table = b"".join(struct.pack("<II", *frame) for frame in frames)
    footer = struct.pack("<IBI", len(frames), 0, ZSTD_FOOTER)
    return struct.pack("<II", ZSTD_TABLE, len(table) + len(footer)) + table + footer
