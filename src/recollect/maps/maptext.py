"""The text of a map for searching: a mapped file, a block-compressed file, or several parts in order.

Hides: where lines are. All three find the deciding line of a key among its lookup keys; see `kernels.search` for the
search itself. `find` gives (deciding key, its lines) or None; lines are several only where a map has more key columns
than one.

Memory: of a mapped file only lines with hashed sets are kept, up to `KEPT_LINES` bytes; of a compressed one a few
blocks of text.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import dropwhile, islice, takewhile
from operator import le
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from recollect.errors import RecollectError
from recollect.formats.blocks import BlockFile
from recollect.formats.parts import part_names
from recollect.formats.ukvs import Header, open_map
from recollect.kernels.search import MapSearch, mark_sets
from recollect.kernels.sets import ABSENT, HELD, UNDECIDED, HashedSet, ask_lines
from recollect.maps.plainmap import open_plain, plain_of, tidied
from recollect.maps.sets import anchor_of, sets_of
from recollect.uris import lookup_keys

if TYPE_CHECKING:  # a search for one URI needs no NumPy, which takes as long to import as all the rest
    import numpy as np
    from numpy.typing import NDArray

Hit = tuple[bytes, list[bytes]]
KNOWN_WILDCARDS = 1 << 12
MANY_LOOKUPS = 256  # from here on the sets they need are decoded for them alone; those of fewer are kept decoded
LONG_LINE = 1 << 10  # bytes from which on a line is kept after it was read; lines with sets have up to 80 kB
KEPT_LINES = 1 << 24  # bytes of kept lines
CHECKED_WHOLE = 1 << 24  # bytes; takes some 20 ms
CHECKED_PACKED = 1 << 20  # bytes of a compressed file, ten times as much text; takes some 50 ms
SAMPLES, SAMPLE_LINES = 256, 64


class MapText(Protocol):
    """Lines that can be searched."""

    header: Header

    def find(self, key: bytes) -> Hit | None: ...

    def find_many(self, keys: Sequence[bytes]) -> list[Hit | None]: ...

    def lines_under(self, start: bytes) -> Iterator[bytes]: ...

    def close(self) -> None: ...


def open_text(path: str) -> MapText:
    """Open a map for searching, by its container."""
    if Path(path).is_dir():
        return PartedText(path)
    file = BlockFile.open(path)
    if file.view is not None:
        text = MappedText(memoryview(file.view), path)
        return text if text.looks_sorted() else _put_in_order(path)
    with open_map(path) as opened:
        header = opened.header
    if header.style == "ukvs":
        if _blocks_rise(file):
            return BlockText(file, header)
        file.close()
        return _put_in_order(path)
    # The `@` headers of the older kind are not below all keys, so that a search among blocks could be led astray by
    # them.
    file.close()
    with open_plain(path) as plain:
        return MappedText(plain.data, path)


def _blocks_rise(file: BlockFile) -> bool:
    """Whether keys rise in a file of blocks: in all of a small one, in samples of a large one and from each to the
    next."""
    lines = list(file.lines_from(b"")) if file.length <= CHECKED_PACKED else []
    block = None if lines else file.block_at(0)
    while block is not None:
        # A block may begin and end within a line.
        lines += block.text.split(b"\n", SAMPLE_LINES)[1 if block.start else 0 : -1]
        block = file.block_at(block.end + file.length // SAMPLES)
    return _rise(list(dropwhile(lambda line: line[:1] in (b"!", b"#", b"\r", b""), lines)))


def _rise(lines: list[bytes]) -> bool:
    """Whether keys rise. A line that is not a record (empty, a comment) is below all keys and breaks the order."""
    keys = [line.partition(b" ")[0] for line in lines]
    return all(map(le, keys, islice(keys, 1, None)))


def _put_in_order(path: str) -> MappedText:
    """A sorted copy of a map that is not sorted, which is gone when the map is closed."""
    with open_plain(path) as plain, tidied(plain, lambda _problem: None) as tidy:
        return MappedText(tidy.data, path)


class MappedText:
    """Text in one piece: a mapped file, or a small one that was decompressed into memory."""

    def __init__(self, data: memoryview, path: str) -> None:
        self.data = data
        plain = plain_of(data, path)
        self.header = plain.header
        self.start = plain.start
        self.stop = len(self.data)
        self._search = MapSearch(data, plain.start)
        self._sets: dict[int, tuple[int, list[HashedSet]]] = {}
        self._kept: dict[int, Hit] = {}
        self._kept_bytes = 0

    def looks_sorted(self) -> bool:
        """Whether keys rise: all of a small map, samples of a large one. A search in disorder would miss things."""
        windows = 0 if self.stop - self.start <= CHECKED_WHOLE else SAMPLES
        return self._search.looks_sorted(windows, SAMPLE_LINES)

    def find(self, key: bytes) -> Hit | None:
        at = self._search.find(key)
        return None if at < 0 else self.hit_at(at)

    def find_many(self, keys: Sequence[bytes]) -> list[Hit | None]:
        if not keys:
            return []
        import numpy as np

        sizes = np.fromiter((len(key) for key in keys), np.int64, len(keys))
        offsets = np.cumsum(sizes) - sizes
        positions = self.search_many(np.frombuffer(b"".join(keys), np.uint8), offsets, sizes)
        return [None if at < 0 else self.hit_at(at) for at in positions.tolist()]

    def search_many(
        self, keys: NDArray[np.uint8], offsets: NDArray[np.int64], sizes: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """For keys in one buffer the positions of their deciding lines, or -1."""
        import numpy as np

        order = np.arange(len(offsets))
        positions = np.empty_like(order)
        self._search.find_many(keys, offsets, sizes, order, np.empty_like(order), positions)
        return positions

    def denied(
        self,
        keys: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        sizes: NDArray[np.int64],
        positions: NDArray[np.int64],
    ) -> NDArray[np.bool_]:
        """Which of the keys that were searched are denied by the hashed set of the wildcard that decides about them."""
        import numpy as np

        asked = np.zeros(len(positions), np.uint8)
        if not mark_sets(self.data, positions, asked):
            return asked.view(np.bool_)
        rows = np.flatnonzero(asked)
        rows = rows[np.argsort(positions[rows], kind="stable")]
        found = np.zeros(len(positions), np.uint8)
        if len(rows) >= MANY_LOOKUPS:
            ask_lines(self.data, positions, rows, keys, offsets, sizes, found)
            rows = rows[found[rows] == UNDECIDED]
            found[rows] = ABSENT
        for group in np.split(rows, np.flatnonzero(np.diff(positions[rows])) + 1) if len(rows) else ():
            anchor, sets = self._sets_at(int(positions[group[0]]))
            if not sets:
                found[group] = HELD
            for one in sets:
                one.ask(keys, offsets, sizes, group, anchor, found)
        return np.asarray((asked != 0) & (found == ABSENT))

    def _sets_at(self, at: int) -> tuple[int, list[HashedSet]]:
        """The length of a wildcard's name, and its sets."""
        if at not in self._sets:
            key, _, block = self._line(at)[0].split(None, 2)
            if len(self._sets) >= KNOWN_WILDCARDS:
                self._sets.clear()
            self._sets[at] = anchor_of(key), sets_of(block.decode("utf-8", "surrogateescape"))
        return self._sets[at]

    def lines_under(self, start: bytes) -> Iterator[bytes]:
        """The lines that begin with some bytes, which have no white space among them."""
        at = self._search.place(start)
        while at < self.stop:
            line, at = self._line(at)
            if not line.startswith(start):
                return
            yield line

    def hit_at(self, at: int) -> Hit:
        """The key of the record at a position, and its lines."""
        if kept := self._kept.get(at):
            return kept
        line, after = self._line(at)
        key = line.split(None, 1)[0]
        lines = [line]
        if len(self.header.keys) > 1:
            while after < self.stop:
                line, after = self._line(after)
                if line.split(None, 1)[:1] != [key]:
                    break
                lines.append(line)
        elif len(line) >= LONG_LINE:
            self._keep(at, (key, lines))
        return key, lines

    def _keep(self, at: int, hit: Hit) -> None:
        """Keep a long line, which takes longer to copy than all the rest of a lookup."""
        self._kept_bytes += len(hit[1][0])
        if self._kept_bytes > KEPT_LINES:
            self._kept = {}
            self._kept_bytes = len(hit[1][0])
        self._kept[at] = hit

    def _line(self, at: int) -> tuple[bytes, int]:
        """The line at a position, and where the next one begins."""
        size = 256
        while True:
            piece = self.data[at : at + size].tobytes()
            end = piece.find(b"\n")
            if end >= 0:
                return piece[:end], at + end + 1
            if at + size >= self.stop:
                return piece, self.stop
            size *= 4

    def close(self) -> None:
        """The area is unmapped with the last view of it, so that a search in another thread is never cut off."""


class ClosedText:
    """What is left of a map after it was closed: no text, so no answers. Saying "no" would be a lie."""

    def __init__(self, header: Header) -> None:
        self.header = header

    def find(self, key: bytes) -> Hit | None:
        raise RecollectError("the map has been closed")

    def find_many(self, keys: Sequence[bytes]) -> list[Hit | None]:
        raise RecollectError("the map has been closed")

    def lines_under(self, start: bytes) -> Iterator[bytes]:
        raise RecollectError("the map has been closed")

    def close(self) -> None:
        """It is."""


class BlockText:
    """Text in compressed blocks: a binary search over blocks, then inside one."""

    def __init__(self, file: BlockFile, header: Header) -> None:
        self.header = header
        self._file = file
        # Neighbours share most of their wildcards, so these are remembered; not by a method, whose cache would keep us.
        self._wildcard = lru_cache(KNOWN_WILDCARDS)(partial(_records, file, len(header.keys) > 1))
        weakref.finalize(self, file.close)

    def find(self, key: bytes) -> Hit | None:
        slashed = key[:-1] if key.endswith(b")/") else key + b"/"
        exact, *wider = lookup_keys(key)
        for candidate in (exact, slashed):
            if lines := _records(self._file, len(self.header.keys) > 1, candidate):
                return candidate, lines
        for candidate in wider:
            if lines := self._wildcard(candidate):
                return candidate, lines
        return None

    def find_many(self, keys: Sequence[bytes]) -> list[Hit | None]:
        found: list[Hit | None] = [None] * len(keys)
        # In order, so that neighbours find their blocks still in memory.
        for index in sorted(range(len(keys)), key=keys.__getitem__):
            found[index] = self.find(keys[index])
        return found

    def lines_under(self, start: bytes) -> Iterator[bytes]:
        return takewhile(lambda line: line.startswith(start), self._file.lines_from(start))

    def close(self) -> None:
        self._file.close()


def _records(file: BlockFile, several: bool, key: bytes) -> list[bytes]:
    """The records of exactly this key; where keys have one column, there is one at most."""
    lines = takewhile(lambda line: line.split(None, 1)[:1] == [key], file.lines_from(key))
    return list(lines) if several else list(islice(lines, 1))


class PartedText:
    """A folder whose files together are one sorted map, such as `part-00000.ukvs`, ..."""

    def __init__(self, path: str) -> None:
        names = part_names(Path(path))
        if not names:
            raise RecollectError("no map in this folder", where=path, hint="expected part-*.ukvs, or a manifest.json")
        self._parts: list[MapText] = [open_text(str(name)) for name in names]
        self.header = self._parts[0].header
        for part in self._parts:
            # Only the first part says what the columns are.
            part.header = self.header

    def find(self, key: bytes) -> Hit | None:
        best: Hit | None = None
        for part in self._parts:
            best = _joined(best, part.find(key))
        return best

    def find_many(self, keys: Sequence[bytes]) -> list[Hit | None]:
        best: list[Hit | None] = [None] * len(keys)
        for part in self._parts:
            for index, hit in enumerate(part.find_many(keys)):
                best[index] = _joined(best[index], hit)
        return best

    def lines_under(self, start: bytes) -> Iterator[bytes]:
        for part in self._parts:
            yield from part.lines_under(start)

    def close(self) -> None:
        for part in self._parts:
            part.close()


def _joined(old: Hit | None, new: Hit | None) -> Hit | None:
    """The deciding one of the hits of two parts; the records of one key may be in both."""
    if old is None or new is None:
        return old or new
    if new[0] == old[0]:
        return old[0], old[1] + new[1]
    return new if _wins(new[0], old[0]) else old


def _wins(new: bytes, old: bytes) -> bool:
    """Of two lookup keys of one URI: an exact key beats a wildcard, a longer wildcard a shorter one."""
    new_exact, old_exact = not new.endswith(b"*"), not old.endswith(b"*")
    return new_exact > old_exact or (new_exact == old_exact and len(new) > len(old))
