"""Reading files that may be compressed or damaged; writing files completely or not at all.

Hides: recognising plain, gzip, bzip2 and zstd by their first bytes (names lie), many members or frames in one file,
decompression in a separate thread (the libraries release the interpreter lock), and temporary files.

Reading: `open_input` gives a buffered binary stream. When a compressed file is cut off or damaged, everything before
the damage is delivered first, then the stream says so once: to `on_problem` if given (then it ends like any file),
else by raising FormatError from the read after the last good byte, or from `close` if the caller did not read that
far. `stream.damage` holds the reason. After damage in the middle of gzip data `stream.resume()` goes on at the next
member. `whole_lines` cuts a stream into big pieces that end with a line, and withholds the part of a line that stands
before damage, because half a key is another key.

Writing: `atomic_output` writes beside the target and renames at the end; an exception, Ctrl-C included, leaves what
was there before. `.gz` is written as BGZF and `.zst` as seekable frames (see `blockwriter`), which `zcat` and
`zstdcat` read.
"""

from __future__ import annotations

import bz2
import errno
import io
import os
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, Protocol, cast

import zstandard

from recollect.errors import FormatError, RecollectError, ResourceError
from recollect.formats.blockwriter import BGZF, ZSTD_SEEKABLE, BlockWriter
from recollect.formats.gzips import PIECE, Damage, Flaw, Gap, gzip_text
from recollect.formats.temporaries import create_beside
from recollect.model import Problem

OnProblem = Callable[[Problem], None]

AHEAD = 8  # pieces a reading thread may be ahead
BUFFER = 1 << 20
# What Windows programs put in front of text; readers of text pass over it.
BOM = b"\xef\xbb\xbf"
CUT_LINE = "the line before the damage is incomplete and was left out"
# No line of any index or map is longer; a file without newlines must not fill the memory.
LONGEST_LINE = 1 << 24
# zstd's own limit of 128 MB refuses files made with `--long`; memory is only used by files that ask for it.
ZSTD_WINDOW = 1 << 31
# Files of others must not choose how much memory we take: 8 MB is what RFC 9659 asks of web content.
FOREIGN_ZSTD_WINDOW = 1 << 23
# Text of one step is bounded by what this much input can hold: 1,024 blocks of 128 KB.
ZSTD_STEP = 1 << 12


class InputStream(io.BufferedReader):
    """A readable binary stream over a file of any container; iterate it for lines."""

    def __init__(self, raw: _Raw) -> None:
        super().__init__(raw, BUFFER)
        self._source = raw
        self.kind = raw.kind
        self.label = raw.label

    @property
    def damage(self) -> str:
        """Why the stream ended early, once its last good byte has been read; else empty."""
        return self._source.damage

    @property
    def is_broken(self) -> bool:
        """Whether it ended early, and where it ended is now."""
        return self._source.ended and bool(self._source.damage)

    @property
    def flaw(self) -> str:
        """What is wrong with a complete stream (a checksum), once all has been read; else empty."""
        return self._source.flaw

    def resume(self) -> bool:
        """After damage in the middle of gzip data, go on with the next whole member; False if there was no such damage.
        Only for readers that know by themselves where a record begins: what follows is not the line that was cut."""
        resumed, self._source.at_gap = self._source.at_gap, False
        self._source.ended = self._source.ended and not resumed
        return resumed

    @property
    def consumed(self) -> int:
        """Bytes of the file (compressed as it is) that have been read, for progress."""
        return self._source.consumed

    def preview(self, size: int, lines: int = 1) -> bytes:
        """The first bytes, without taking them out: at least `size`, and more until `lines` lines are whole, as far as
        there are any and no line is longer than `LONGEST_LINE`. Only before anything has been read."""
        return self._source.preview(size, lines)

    def close(self) -> None:
        """Close the file; raises FormatError if it is damaged and this was not reported yet."""
        try:
            super().close()
        finally:
            if not sys.is_finalizing():
                self._source.complain()


class _Raw(io.RawIOBase):
    """Bytes out of an iterator of pieces, which ends with `Damage` if the file does."""

    def __init__(
        self, handle: BinaryIO, label: str, on_problem: OnProblem | None, *, owned: bool = True, foreign: bool = False
    ) -> None:
        self._handle = handle
        self._owned = owned
        self._on_problem = on_problem
        self._reported = False
        self.ended = False
        self._piece = memoryview(b"")
        self._held: deque[bytes] = deque()
        self.label = label
        self.damage = self.flaw = ""
        self.at_gap = False
        head = handle.read(PIECE)
        self.kind = kind_of(head)
        self._meter = _Meter(handle, head)
        pieces = (_foreign_zstd if foreign and self.kind == "zstd" else _DECODERS[self.kind])(self._meter.read)
        # A thread costs more than it brings for a file that has been read already, or that needs no decoding; and one
        # that is only looked at needs no text ahead of its preview.
        self._may_read_ahead = len(head) == PIECE and self.kind != "plain"
        self._pieces: Iterator[bytes] = pieces

    @property
    def consumed(self) -> int:
        return self._meter.consumed

    def preview(self, size: int, lines: int) -> bytes:
        """The first bytes; see `InputStream.preview`. What ends the stream is kept for whoever reads on."""
        held = sum(map(len, self._held))
        newlines = sum(piece.count(b"\n") for piece in self._held)
        while held < size or (newlines < lines and held < size + LONGEST_LINE):
            try:
                piece = next(self._pieces)
            except (StopIteration, Damage) as end:
                self._pieces = _ending(end)
                break
            self._held.append(piece)
            if isinstance(piece, Gap):
                break
            held += len(piece)
            newlines += piece.count(b"\n")
        return b"".join(piece for piece in self._held if not isinstance(piece, Flaw))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.ended:
            self.complain()
            return 0
        if self._may_read_ahead:
            self._may_read_ahead, self._pieces = False, _Ahead(self._pieces)
        while not self._piece:
            try:
                self._piece = memoryview(self._held.popleft() if self._held else next(self._pieces))
            except StopIteration:
                self.ended = True
                return 0
            except Damage as damage:
                self._note(str(damage))
                return 0
            if isinstance(self._piece.obj, Gap):
                self.at_gap = True
                self._note(self._piece.obj.decode())
                self._piece = memoryview(b"")
                return 0
            if isinstance(self._piece.obj, Flaw):
                self._take_flaw(self._piece.obj)
        view = memoryview(buffer).cast("B")
        count = min(len(view), len(self._piece))
        view[:count] = self._piece[:count]
        self._piece = self._piece[count:]
        return count

    def _take_flaw(self, flaw: Flaw) -> None:
        """Report a flaw at once, or at the end if there is no callback; reading continues."""
        self._piece = memoryview(b"")
        self.flaw = flaw.decode()
        if self._on_problem is not None:
            self._on_problem(Problem(self.label, None, self.flaw))

    def _note(self, reason: str) -> None:
        """The end, for now: what the caller has is good, and the next read raises."""
        self.damage = reason
        self.ended = True
        if self._on_problem is not None:
            self._reported = True
            self._on_problem(Problem(self.label, None, reason))

    def complain(self) -> None:
        """Report damage that was not reported yet."""
        why = self.damage or (self.flaw if self._on_problem is None else "")
        if why and not self._reported:
            self._reported = True
            raise FormatError(
                "damaged file",
                where=self.label,
                why=why,
                hint="what came before the damage was read; fetch the file again, or see `gzip -t` / `zstd -t`",
            )

    def close(self) -> None:
        if not self.closed:
            if isinstance(self._pieces, _Ahead):
                self._pieces.stop()
            if self._owned:
                self._handle.close()
        super().close()


def _ending(end: Exception) -> Iterator[bytes]:
    """Nothing, and then this end."""
    if isinstance(end, Damage):
        raise end
    yield from ()


class _Meter:
    """Reads a file whose head has been read, and counts."""

    def __init__(self, handle: BinaryIO, head: bytes) -> None:
        self._handle = handle
        self._head = head
        self.consumed = 0

    def read(self) -> bytes:
        piece, self._head = self._head or self._handle.read(PIECE), b""
        self.consumed += len(piece)
        return piece


class _Ahead:
    """An iterator that runs in a thread of its own, a few pieces ahead."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._queue: queue.Queue[bytes | Exception] = queue.Queue(AHEAD)
        self._stop = threading.Event()
        # The thread must not hold this object, or an abandoned stream would never be collected and stopped.
        self._thread = threading.Thread(
            target=_fill, args=(pieces, self._queue, self._stop), name="recollect-read-ahead", daemon=True
        )
        self._thread.start()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        item = self._queue.get()
        if isinstance(item, Exception):
            raise item
        return item

    def stop(self) -> None:
        """End the thread; it uses the file, which may be closed afterwards."""
        self._stop.set()
        while self._thread.is_alive():
            with suppress(queue.Empty):
                self._queue.get_nowait()
            self._thread.join(0.01)


def _fill(pieces: Iterator[bytes], out: queue.Queue[bytes | Exception], stop: threading.Event) -> None:
    try:
        for piece in pieces:
            out.put(piece)
            if stop.is_set():
                return
        out.put(StopIteration())
    except Exception as error:  # every error belongs to the reader, on whose behalf this thread works
        out.put(error)


class _Decompressor(Protocol):
    eof: bool
    needs_input: bool
    unused_data: bytes

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _plain(read: Callable[[], bytes]) -> Iterator[bytes]:
    while piece := read():
        yield piece


def _bzip2(read: Callable[[], bytes]) -> Iterator[bytes]:
    return _members(
        read, cast(Callable[[], _Decompressor], bz2.BZ2Decompressor), b"BZh", (OSError, EOFError, ValueError), "bzip2"
    )


def _members(
    read: Callable[[], bytes],
    new: Callable[[], _Decompressor],
    magic: bytes,
    errors: tuple[type[Exception], ...],
    name: str,
) -> Iterator[bytes]:
    """The text of all members (gzip) or streams (bzip2), one after the other."""
    rest = read()
    while True:
        # Tape blocks end with zeros; these are not damage.
        while not (rest := rest.lstrip(b"\0")):
            if not (rest := read()):
                return
        while len(rest) < len(magic) and (more := read()):
            rest += more
        if not rest.startswith(magic):
            raise Damage(f"bytes after the end of the {name} data that are not {name} data")
        decoder = new()
        while not decoder.eof:
            if not rest and decoder.needs_input and not (rest := read()):
                raise Damage(f"{name} data is cut off")
            try:
                piece = decoder.decompress(rest, PIECE)
            except errors as error:
                raise Damage(f"{name} data is damaged ({error})") from error
            rest = b""
            if piece:
                yield piece
        rest = decoder.unused_data


def _zstd(read: Callable[[], bytes], window: int = ZSTD_WINDOW) -> Iterator[bytes]:
    """The text of all frames; skippable frames (the seek table) hold none."""
    library = zstandard.ZstdDecompressor(max_window_size=window)
    rest = memoryview(b"")
    while True:
        if not rest and not (rest := memoryview(read())):
            return
        frame = library.decompressobj()
        while not frame.eof:
            if not rest and not (rest := memoryview(read())):
                raise Damage("zstd data is cut off")
            try:
                piece = frame.decompress(rest[:ZSTD_STEP])
            except zstandard.ZstdError as error:
                raise Damage(f"zstd data is damaged ({error})") from error
            used = min(ZSTD_STEP, len(rest)) - (len(frame.unused_data) if frame.eof else 0)
            rest = rest[used:]
            if piece:
                yield piece


def _foreign_zstd(read: Callable[[], bytes]) -> Iterator[bytes]:
    return _zstd(read, FOREIGN_ZSTD_WINDOW)


_DECODERS: dict[str, Callable[[Callable[[], bytes]], Iterator[bytes]]] = {
    "plain": _plain,
    "gzip": gzip_text,
    "bzip2": _bzip2,
    "zstd": _zstd,
}


def kind_of(head: bytes) -> str:
    """The container that starts with these bytes: plain, gzip, bzip2 or zstd."""
    if head.startswith(b"\x1f\x8b\x08"):
        return "gzip"
    if head.startswith(b"BZh") and head[4:10] in (b"\x31\x41\x59\x26\x53\x59", b"\x17\x72\x45\x38\x50\x90"):
        return "bzip2"
    if head.startswith(b"\x28\xb5\x2f\xfd") or (head[1:4] == b"\x2a\x4d\x18" and 0x50 <= head[0] <= 0x5F):
        return "zstd"
    return "plain"


def open_input(
    path: str | os.PathLike[str], on_problem: OnProblem | None = None, *, foreign: bool = False
) -> InputStream:
    """Open a file, or stdin for `-`, and decompress it by what it is; see the module's text for damaged files.
    Decompressing a `foreign` file takes little memory, or is refused as damage."""
    name = os.fspath(path)
    if name == "-":
        return InputStream(_Raw(sys.stdin.buffer, "<stdin>", on_problem, owned=False))
    handle: Any
    try:
        handle = _parts(name) or open(name, "rb", buffering=0)  # noqa: PTH123, SIM115 - owned by the stream
    except IsADirectoryError as error:
        raise RecollectError("a folder where a file is expected", where=name, hint=f"try {name}/*") from error
    try:
        return InputStream(_Raw(cast(BinaryIO, handle), name, on_problem, foreign=foreign))
    except BaseException:
        handle.close()
        raise


def input_over(handle: IO[bytes], label: str, on_problem: OnProblem | None = None) -> InputStream:
    """A stream over what another file gives, such as a member of a zip file, which stays open."""
    return InputStream(_Raw(cast(BinaryIO, handle), label, on_problem, owned=False))


def _parts(name: str) -> Any:
    """The text of a folder that is a map in parts; None for everything else."""
    if not Path(name).is_dir():
        return None
    from recollect.formats.parts import JoinedParts, is_parted

    return JoinedParts(Path(name)) if is_parted(Path(name)) else None


def whole_lines(stream: InputStream, on_problem: OnProblem | None = None, *, size: int = BUFFER) -> Iterator[bytes]:
    """The stream in pieces of about `size` bytes, each of whole lines; only the last may lack its newline.

    What stands before damage without its newline is withheld, and reported to `on_problem`. A line longer than
    `LONGEST_LINE` becomes an empty line, so that line numbers stay correct, and is reported; it raises without
    `on_problem`.
    """
    parts: list[bytes] = []
    held = 0
    while piece := stream.read1(size):
        cut = piece.rfind(b"\n") + 1
        if not cut:
            held += len(piece)
            # Of a line that is too long its beginning is kept, to be shown.
            if held <= LONGEST_LINE or not parts:
                parts.append(piece)
            continue
        if held > LONGEST_LINE:
            _too_long(stream, parts, on_problem)
            parts, piece = [], piece[piece.find(b"\n") :]
            cut = piece.rfind(b"\n") + 1
        parts.append(piece[:cut] if cut < len(piece) else piece)
        yield b"".join(parts) if len(parts) > 1 else parts[0]
        parts = [piece[cut:]] if cut < len(piece) else []
        held = len(piece) - cut
    if held > LONGEST_LINE:
        _too_long(stream, parts, on_problem)
        parts = []
    if not parts:
        return
    last = b"".join(parts)
    if not stream.damage:
        yield last
    elif on_problem is not None:
        on_problem(Problem(stream.label, None, CUT_LINE, _excerpt(last)))


def _too_long(stream: InputStream, parts: list[bytes], on_problem: OnProblem | None) -> None:
    reason = f"a line of more than {LONGEST_LINE >> 20} MB was left out"
    if on_problem is None:
        raise FormatError(reason, where=stream.label)
    on_problem(Problem(stream.label, None, reason, _excerpt(parts[0])))


def _excerpt(text: bytes) -> str:
    return ascii(text[:80].decode("utf-8", "replace"))[1:-1]


class OutputTooLarge(RecollectError):
    """A file that is larger than it may be; what was in its place is still there."""


@contextmanager
def atomic_output(
    path: str | os.PathLike[str], *, private: bool = False, max_bytes: int | None = None
) -> Iterator[BinaryIO]:
    """A writable binary file that takes its place when the block ends well, and vanishes when it does not.
    `private` ones are readable by their owner only, whatever the umask. One of more than `max_bytes` on disk does not
    take its place: raises OutputTooLarge.

    `.gz` and `.zst` are compressed so that they can be searched; anything else is plain. `-` is stdout, and a path
    that is not a regular file (a pipe, /dev/null) is written directly.
    """
    name = os.fspath(path)
    if name == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(os.path.realpath(name))  # a link stays a link to the new content
    with _named(name, target):
        if _is_special(target, name):
            with target.open("wb") as direct, compressed(direct, name) as out:
                yield out
            return
        handle, temporary = _beside(target, name, private=private)
        try:
            with os.fdopen(handle, "wb", buffering=BUFFER) as file:
                with compressed(file, name) as out:
                    yield out
                file.flush()
                size = os.fstat(file.fileno()).st_size
                if max_bytes is not None and size > max_bytes:
                    raise OutputTooLarge("the output is too large", where=name, why=f"{size:,} of {max_bytes:,} bytes")
                os.fsync(file.fileno())
                temporary.replace(target)  # while its lock is held
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def check_output(path: str | os.PathLike[str]) -> None:
    """Raise what `atomic_output` would at its start; better before hours of work than after."""
    name = os.fspath(path)
    target = Path(os.path.realpath(name))
    if name != "-" and not _is_special(target, name):
        handle, temporary = _beside(target, name)
        os.close(handle)
        temporary.unlink()


def _is_special(target: Path, name: str) -> bool:
    """Whether a target is a pipe or a device, which has no place to write beside."""
    if target.is_dir():
        raise RecollectError("cannot write", where=name, why="it is a folder", hint="name a file in it")
    return target.exists() and not target.is_file()


@contextmanager
def _named(name: str, target: Path) -> Iterator[None]:
    """The system does not say which file did not fit; only writing can fail so."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        hint = f"free some space in {target.parent}, or write elsewhere"
        raise ResourceError("cannot write", where=name, why=error.strerror or str(error), hint=hint) from error


def _beside(target: Path, name: str, *, private: bool = False) -> tuple[int, Path]:
    try:
        return create_beside(target, private=private)
    except OSError as error:
        folder, reason = target.parent, error.strerror or str(error)
        if not folder.exists():
            raise RecollectError(
                "cannot write", where=name, why="its folder does not exist", hint=f"mkdir -p {folder}"
            ) from error
        if not folder.is_dir():
            raise RecollectError(
                "cannot write", where=name, why=f"{folder} is not a folder", hint="name a file in a folder"
            ) from error
        why = f"no file can be made in {folder}: {reason}"
        hint = f"write to another folder, or see who may write there: ls -ld {folder}"
        raise RecollectError("cannot write", where=name, why=why, hint=hint) from error


# How files are compressed that are written, by the end of their names.
COMPRESSIONS = {".gz": BGZF, ".bgz": BGZF, ".zst": ZSTD_SEEKABLE, ".zstd": ZSTD_SEEKABLE}


@contextmanager
def compressed(file: IO[bytes], name: str) -> Iterator[BinaryIO]:
    """A stream into `file`, compressed as the end of `name` says."""
    kind = COMPRESSIONS.get(Path(name).suffix.lower())
    if kind is None:
        yield cast(BinaryIO, file)
        return
    writer = BlockWriter(file, kind)
    try:
        yield cast(BinaryIO, writer)
    except BaseException:
        writer.abandon()
        raise
    writer.finish()
