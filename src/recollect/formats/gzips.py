"""The text of gzip data of many members, and where it goes on after damage."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterator

from isal import igzip_lib, isal_zlib

from recollect.formats.blockwriter import IsalError

# Of compressed input, and of text per step. Each step hands the interpreter lock over: with pieces of 256 KB a profile
# of a gzip file took a fifth longer.
PIECE = 1 << 20
_MAGIC = b"\x1f\x8b\x08"
# The compressed data before damage in which the next member may begin: a decoder may run past it before it fails.
_KEPT = 8 << 20
# Of compressed data that must be sound for a member to be believed.
_TRIAL = 1 << 16
Read = Callable[[], bytes]


class Damage(Exception):
    """The compressed file breaks off; the text so far is good."""


class Flaw(bytes):
    """Not text but a remark: something is wrong, and nothing is missing."""

    def __new__(cls, reason: str) -> Flaw:
        return super().__new__(cls, reason.encode())


class Gap(Flaw):
    """Not text but a remark: something is missing here, and what follows is the text of a later member."""


def gzip_text(read: Read) -> Iterator[bytes]:
    """The text of all members. Checksums are compared here, not in the library, which would keep back the end of a
    member whose checksum is wrong; that is reported after all text (`Flaw`). After damage follows a `Gap`, and then
    the text of the next member that is sound."""
    members = _Members(read)
    while members.begin():
        try:
            yield from members.text()
        except _Unsound as damage:
            yield Gap(str(damage))
            if not members.find_next():
                return
    if members.wrong:
        some = "" if members.count == 1 else f" of {members.wrong:,} of {members.count:,} members"
        why = "all of it was read, and some of it may be altered"
        yield Flaw(f"gzip data is damaged: wrong checksum{some}; {why}")


class _Unsound(Exception):
    """What is here is not gzip data, and something follows it."""


class _Members:
    """Gzip data, member after member."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._rest = b""
        self._fed: deque[bytes] = deque()  # compressed data since the last member began, the last `_KEPT` of it
        self.count = self.wrong = 0  # members, and those of them with a wrong checksum
        self._was_wrong = False

    def begin(self) -> bool:
        """Whether there is anything more. Tape blocks end with zeros, which are not damage."""
        self._rest = self._rest.lstrip(b"\0")
        while not self._rest:
            more = self._read()
            if not more:
                return False
            self._rest = more.lstrip(b"\0")
        return True

    def text(self) -> Iterator[bytes]:
        """The text of the member that begins here."""
        rest = self._rest
        while (begin := _text_begins(rest)) is None and (more := self._read()):
            rest += more
        if begin is not None and begin < 0 and self._was_wrong:
            # A member that was cut, whose decoder took the beginning of the next for its own: that is one damage.
            self.wrong -= 1
            self._was_wrong = False
            raise _Unsound("gzip data is damaged")
        self._fed.clear()
        self._keep(rest)
        if begin is None:
            raise Damage("gzip data is cut off")
        if begin < 0:
            raise _Unsound("bytes after the end of the gzip data that are not gzip data")
        decoder = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_DEFLATE)
        rest, crc, size = rest[begin:], 0, 0
        while not decoder.eof:
            if not rest and decoder.needs_input:
                if not (rest := self._read()):
                    raise Damage("gzip data is cut off")
                self._keep(rest)
            try:
                piece = decoder.decompress(rest, PIECE)
            except (IsalError, EOFError) as error:
                raise _Unsound(f"gzip data is damaged ({error})") from error
            rest = b""
            if piece:
                crc, size = isal_zlib.crc32(piece, crc), size + len(piece)
                yield piece
        rest = decoder.unused_data
        while len(rest) < 8 and (more := self._read()):
            rest += more
            self._keep(more)
        self.count += 1
        if len(rest) < 8:
            raise Damage("gzip data is cut off")
        self._was_wrong = rest[:8] != struct.pack("<II", crc, size & 0xFFFFFFFF)
        self.wrong += self._was_wrong
        self._rest = rest[8:]

    def _keep(self, data: bytes) -> None:
        self._fed.append(data)
        while len(self._fed) > 1 + _KEPT // PIECE:
            self._fed.popleft()

    def find_next(self) -> bool:
        """Go to the next member that is sound, if there is one."""
        data, at = b"".join(self._fed), 1
        while True:
            at = data.find(_MAGIC, at)
            if at < 0:
                more = self._read()
                if not more:
                    return False
                data, at = data[-2:] + more, 0
                continue
            while len(data) - at < _TRIAL and (more := self._read()):
                data += more
            if _is_member(data[at : at + _TRIAL]):
                self._rest = data[at:]
                return True
            at += 1


def _is_member(data: bytes) -> bool:
    """Whether a member begins here whose data can be decoded, as far as it is in the buffer."""
    begin = _text_begins(data)
    if begin is None or begin < 0 or data[3] & 0xE0:
        return False
    decoder = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_DEFLATE)
    try:
        text = decoder.decompress(data[begin:], PIECE)
    except (IsalError, EOFError):
        return False
    return bool(text) or decoder.eof


def _text_begins(head: bytes) -> int | None:
    """Where the text of a gzip member begins (RFC 1952, section 2.3); None if more is needed, -1 if it is none."""
    if not _MAGIC.startswith(head[:3]) and head[:3] != _MAGIC:
        return -1
    if len(head) < 12:
        return None
    flags, at = head[3], 10
    if flags & 4:
        at += 2 + int.from_bytes(head[10:12], "little")
    for flag in (8, 16):  # a name and a comment, each with a zero at its end
        if flags & flag:
            at = head.find(b"\0", at) + 1
            if not at:
                return None
    at += 2 if flags & 2 else 0
    return at if at <= len(head) else None
