"""Searching sorted text files in place: plain, BGZF, or zstd with a seek table; no index beside them.

Hides: block headers, the seek table, finding a block from any place in the file, and a small memory of read blocks.

Positions are byte offsets in the file *as stored*, compressed or not; each block stands for a range of them, so a
binary search over positions needs no count of blocks. In BGZF a block's start is found from any place by its fixed
bytes, and proved by another block standing where its length says, and by its checksum. In zstd the seek table has the
starts. A plain file is cut into blocks of `PLAIN_TEXT` bytes. Byte layouts: see `blockwriter`.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
import threading
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from itertools import dropwhile
from typing import NamedTuple, Protocol

import zstandard
from isal import isal_zlib

from recollect.errors import FormatError
from recollect.formats.blockwriter import BGZF_MEMBER, ZSTD_FOOTER, IsalError
from recollect.formats.containers import kind_of, open_input

PLAIN_TEXT = 1 << 14
# A compressed file without blocks is read into memory up to this much text; beyond it opening would be too dear.
SMALL = 1 << 28
KEPT_BLOCKS = 256
KNOWN_STARTS = 1 << 14
# No writer makes larger frames to be searched; a table that claims more is broken or hostile.
LARGEST_FRAME = 1 << 28
_MEMBER = re.compile(rb"\x1f\x8b\x08\x04.{6}\x06\0BC\x02\0(..)", re.DOTALL)
_HEADER = 18


class Block(NamedTuple):
    """Some text of the file, and the positions (of the file as stored) that it stands for."""

    start: int
    end: int
    text: bytes


class _Container(Protocol):
    kind: str
    length: int
    view: memoryview | None

    def start_at(self, position: int) -> int | None:
        """Where the first block at or after `position` starts."""

    def load(self, start: int) -> Block: ...

    def offsets(self) -> tuple[array[int], array[int]]:
        """Of all blocks the start, and the offset of its text; the last pair is the end."""

    def close(self) -> None: ...


class BlockFile:
    """Random access to a text file, plain or block-compressed, without an index. Many threads may use one.

    `block_at` is all that a binary search needs; `find` and `lines_from` are searches for files of sorted lines. Of a
    plain file (or one small enough to be decompressed into memory) `view` is all the text, for kernels that search it
    themselves; else it is None. Memory: `KEPT_BLOCKS` blocks, and 16 bytes per frame of a zstd file.

    A file that is replaced by renaming, as `atomic_output` does, stays here as it was until closed.
    """

    def __init__(self, container: _Container, path: str) -> None:
        self.path = path
        self.kind = container.kind
        self.length = container.length
        self._container = container
        self._kept: OrderedDict[int, Block] = OrderedDict()
        self._lock = threading.Lock()
        self._offsets: tuple[array[int], array[int]] | None = None

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> BlockFile:
        """Open a file by what it is; FormatError if it is compressed in one piece and large."""
        name = os.fspath(path)
        return cls(_container(name), name)

    @property
    def view(self) -> memoryview | None:
        """All the text, where that costs nothing: a plain file, mapped."""
        return self._container.view

    def close(self) -> None:
        """Let go of the file, and of `view`."""
        self._container.close()

    def __enter__(self) -> BlockFile:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def block_at(self, position: int) -> Block | None:
        """The first block that starts at or after `position`; None at the end."""
        start = self._container.start_at(position)
        if start is None:
            return None
        if self._container.view is not None:
            return self._container.load(start)
        with self._lock:
            if start in self._kept:
                self._kept.move_to_end(start)
                return self._kept[start]
        block = self._container.load(start)
        with self._lock:
            self._kept[start] = block
            while len(self._kept) > KEPT_BLOCKS:
                self._kept.popitem(last=False)
        return block

    def find(self, key: bytes) -> bytes | None:
        """The line (without its newline) whose first word is `key`, in a file of sorted lines."""
        line = next(self.lines_from(key), b"")
        return line if line.split(None, 1)[:1] == [key] else None

    def lines_from(self, key: bytes) -> Iterator[bytes]:
        """The lines of a sorted file from the first that is not below `key`, without their newlines.

        Lines are compared as bytes. White space is below every byte of a key, so this is the order of keys too.
        """
        last = self._last_below(key)
        if last is None:
            return iter(())
        # Every line starts after a newline, except the first of the file.
        place = (last, 0) if last.start == 0 else self._line_start(last)
        if place is None:
            return iter(())
        block, cut = place
        return dropwhile(lambda line: line < key, self._lines(block, _first_not_below(block.text, key, cut)))

    @property
    def size(self) -> int:
        """Bytes of text. The first use for BGZF walks over all block headers (1 GB has some 60,000)."""
        return self._table()[1][-1]

    def read(self, offset: int, count: int) -> bytes:
        """`count` bytes of text from `offset` of the text; fewer at the end. For BGZF see `size`."""
        starts, offsets = self._table()
        parts: list[bytes] = []
        block = self.block_at(starts[max(0, bisect_right(offsets, offset, 0, len(offsets) - 1) - 1)])
        skip = offset - offsets[bisect_left(starts, block.start)] if block else 0
        while block is not None and count > 0:
            part = block.text[skip : skip + count]
            parts.append(part)
            count -= len(part)
            skip = 0
            block = self.block_at(block.end)
        return b"".join(parts)

    def _table(self) -> tuple[array[int], array[int]]:
        if self._offsets is None:
            self._offsets = self._container.offsets()
        return self._offsets

    def _last_below(self, key: bytes) -> Block | None:
        """The last block after whose start a line below `key` begins; else the first block."""
        best = self.block_at(0)
        low, high = best.end if best else 0, self.length
        while low < high:
            # A block starts at `low`; where few can be left, looking there is quicker than halving.
            near = best is not None and high - low <= 2 * (best.end - best.start)
            middle = low if near else (low + high) // 2
            block = self.block_at(middle)
            if block is None or block.start >= high:
                high = middle
                continue
            line = self._first_line(block)
            if line is not None and line < key:
                best, low = block, block.end
            else:
                high = middle
        return best

    def _line_start(self, block: Block) -> tuple[Block, int] | None:
        """Where the first line after a newline begins, in this block or a later one."""
        current: Block | None = block
        while current is not None:
            newline = current.text.find(b"\n")
            if newline >= 0:
                return current, newline + 1
            current = self.block_at(current.end)
        return None

    def _first_line(self, block: Block) -> bytes | None:
        place = self._line_start(block)
        if place is None:
            return None
        found, cut = place
        end = found.text.find(b"\n", cut)
        return found.text[cut:end] if end >= 0 else next(self._lines(found, cut), None)

    def _lines(self, block: Block, cut: int) -> Iterator[bytes]:
        """All lines from the one that starts at `cut` of the block's text; most callers want the first few only."""
        current: Block | None = block
        parts: list[bytes] = []
        while current is not None:
            text = current.text
            while (end := text.find(b"\n", cut)) >= 0:
                if parts:
                    yield b"".join((*parts, text[cut:end]))
                    parts = []
                else:
                    yield text[cut:end]
                cut = end + 1
            if cut < len(text):
                parts.append(text[cut:])
            cut = 0
            current = self.block_at(current.end)
        if parts:
            yield b"".join(parts)


def _first_not_below(text: bytes, key: bytes, start: int) -> int:
    """Where the first line not below `key` starts, from the line at `start` on; a last line that is cut off counts."""
    low, high = start, text.rfind(b"\n") + 1
    while low < high:
        middle = (low + high) // 2
        line = text.rfind(b"\n", low, middle) + 1 or low
        end = text.find(b"\n", middle)
        if text[line:end] < key:
            low = end + 1
        else:
            high = line
    return max(low, start)


class _Plain:
    """Text that lies in memory, or is mapped there."""

    def __init__(self, text: mmap.mmap | bytes, kind: str) -> None:
        self.kind = kind
        self.length = len(text)
        self._text = text
        self.view: memoryview | None = memoryview(text)

    def start_at(self, position: int) -> int | None:
        start = -(-position // PLAIN_TEXT) * PLAIN_TEXT
        return start if start < self.length else None

    def load(self, start: int) -> Block:
        end = min(start + PLAIN_TEXT, self.length)
        return Block(start, end, self._text[start:end])

    def offsets(self) -> tuple[array[int], array[int]]:
        starts = array("Q", [*range(0, self.length, PLAIN_TEXT), self.length])
        return starts, starts

    def close(self) -> None:
        if self.view is not None:
            self.view.release()
            self.view = None
        if isinstance(self._text, mmap.mmap):
            self._text.close()


class _Stored:
    """A file whose blocks are read when asked for."""

    view: memoryview | None = None

    def __init__(self, path: str) -> None:
        self._path = path
        self._handle = os.open(path, os.O_RDONLY)
        self.length = os.fstat(self._handle).st_size

    def bytes_at(self, position: int, count: int) -> bytes:
        return os.pread(self._handle, count, position)

    def broken(self, position: int, why: str) -> FormatError:
        return FormatError(
            "damaged file", where=self._path, why=f"{why} at byte {position}", hint="fetch the file again"
        )

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


class _Bgzf(_Stored):
    kind = "bgzf"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._known: dict[int, int | None] = {}

    def start_at(self, position: int) -> int | None:
        # Binary searches ask for the same places again and again. Other threads may clear what is known at any time.
        known = self._known.get(position, -1)
        if known == -1:
            if len(self._known) >= KNOWN_STARTS:
                self._known.clear()
            known = self._known[position] = self._search(position)
        return known

    def _search(self, position: int) -> int | None:
        window = self.bytes_at(position, BGZF_MEMBER + _HEADER)
        for match in _MEMBER.finditer(window):
            start = position + match.start()
            following = start + int.from_bytes(match[1], "little") + 1
            if following == self.length or _MEMBER.match(self.bytes_at(following, _HEADER)):
                return start
        if position == 0:
            raise self.broken(0, "no BGZF block")
        return None

    def load(self, start: int) -> Block:
        member = self.bytes_at(start, BGZF_MEMBER)
        match = _MEMBER.match(member)
        if match is None:
            raise self.broken(start, "no BGZF block")
        end = int.from_bytes(match[1], "little") + 1
        try:
            crc, size = struct.unpack("<II", member[end - 8 : end])
            text = isal_zlib.decompressobj(-15).decompress(member[_HEADER : end - 8], BGZF_MEMBER)
        except (IsalError, struct.error) as error:
            raise self.broken(start, f"bad BGZF block ({error})") from error
        if len(text) != size or isal_zlib.crc32(text) != crc:
            raise self.broken(start, "bad checksum of a BGZF block")
        return Block(start, start + end, text)

    def offsets(self) -> tuple[array[int], array[int]]:
        starts, offsets = array("Q", [0]), array("Q", [0])
        while starts[-1] < self.length:
            match = _MEMBER.match(self.bytes_at(starts[-1], _HEADER))
            if match is None:
                raise self.broken(starts[-1], "no BGZF block")
            end = starts[-1] + int.from_bytes(match[1], "little") + 1
            offsets.append(offsets[-1] + int.from_bytes(self.bytes_at(end - 4, 4), "little"))
            starts.append(end)
        return starts, offsets


class _Zstd(_Stored):
    kind = "zstd-seekable"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._thread = threading.local()
        self._starts, self._offsets = array("Q", [0]), array("Q", [0])
        try:
            self._read_table()
        except BaseException:
            self.close()
            raise

    def _read_table(self) -> None:
        count, flags, _ = struct.unpack("<IBI", self.bytes_at(self.length - 9, 9))
        width = 12 if flags & 0x80 else 8  # with a checksum per frame, which frames have themselves
        table = self.bytes_at(self.length - 9 - width * count, width * count)
        if len(table) != width * count:
            raise self.broken(self.length - 9, "bad zstd seek table")
        sizes = struct.iter_unpack("<II4x" if width == 12 else "<II", table)
        for stored, text in sizes:
            self._starts.append(self._starts[-1] + stored)
            self._offsets.append(self._offsets[-1] + text)
        if self._starts[-1] + 8 + width * count + 9 != self.length:
            raise self.broken(self.length - 9, "the zstd seek table is not of this file")

    def start_at(self, position: int) -> int | None:
        at = bisect_left(self._starts, position, 0, len(self._starts) - 1)
        return self._starts[at] if at < len(self._starts) - 1 else None

    def load(self, start: int) -> Block:
        at = bisect_left(self._starts, start)
        end, size = self._starts[at + 1], self._offsets[at + 1] - self._offsets[at]
        frame = self.bytes_at(start, end - start)
        decompressor = getattr(self._thread, "decompressor", None)  # one thread at a time may use it
        if decompressor is None:
            decompressor = self._thread.decompressor = zstandard.ZstdDecompressor()
        try:
            if size > LARGEST_FRAME or zstandard.frame_content_size(frame) not in (size, -1):
                raise self.broken(start, "a zstd frame of another size than the seek table says")
            text = decompressor.decompress(frame, max_output_size=size)
        except zstandard.ZstdError as error:
            raise self.broken(start, f"bad zstd frame ({error})") from error
        if len(text) != size:
            raise self.broken(start, "a zstd frame of another size than the seek table says")
        return Block(start, end, text)

    def offsets(self) -> tuple[array[int], array[int]]:
        return self._starts, self._offsets


def _container(path: str) -> _Container:
    with open(path, "rb") as handle:  # noqa: PTH123 - a path as the user typed it
        head = handle.read(_HEADER)
        kind = kind_of(head)
        if kind == "plain":
            size = os.fstat(handle.fileno()).st_size
            return _Plain(mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) if size else b"", kind)
        if kind == "gzip" and _MEMBER.match(head):
            return _Bgzf(path)
        if kind == "zstd":
            handle.seek(max(0, os.fstat(handle.fileno()).st_size - 4))
            if handle.read(4) == struct.pack("<I", ZSTD_FOOTER):
                return _Zstd(path)
    return _Plain(_decompressed(path, kind), kind)


def _decompressed(path: str, kind: str) -> bytes:
    parts: list[bytes] = []
    size = 0
    with open_input(path) as stream:
        while part := stream.read1(1 << 20):
            parts.append(part)
            size += len(part)
            if size > SMALL:
                raise FormatError(
                    f"a {kind} file of one piece cannot be searched",
                    where=path,
                    hint=f"write it again in blocks: recollect merge {path} -o map.ukvs.zst",
                )
    return b"".join(parts)
