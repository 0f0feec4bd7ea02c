"""Maps on Spark: cut into ranges of hosts between which nothing depends on anything, each worked on by itself.

Hides: reading maps in pieces, and borders that no node of the tree crosses. Subtrees are contiguous by segments, not by
bytes (`com,a)`, `com,a-b)`, `com,a:80)`), so a border must not lie inside a domain, nor between a domain and its ports.
A border made of a domain's name up to its first byte not above `:` is safe: a node that such a border would cut is a
beginning of it, and goes on there with a byte up to `:`, which the border has not.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from recollect.errors import RecollectError
from recollect.formats.containers import kind_of, open_input, whole_lines
from recollect.formats.parts import is_parted, part_names
from recollect.formats.ukvs import Header, open_map
from recollect.model import Problem, ProgressCallback
from recollect.spark import exchange
from recollect.spark.exchange import Sizes
from recollect.spark.files import HadoopFiles, is_url
from recollect.spark.parts import in_chunks
from recollect.spark.session import progress_of

HEAD = 1 << 18
# How deep in the host a border lies: a domain, a top-level domain, or nowhere.
DOMAIN, TOP, NOWHERE = 2, 1, 0
_HOST = re.compile(rb"[^):]*")
_ADDRESS = re.compile(rb"[\d\[]")


@dataclass(frozen=True, slots=True)
class MapOnSpark:
    """A map and where its text is: files with sizes, in their order."""

    name: str
    header: Header
    files: tuple[tuple[str, int], ...]
    remote: bool

    @property
    def size(self) -> int:
        """Bytes as they are on disk."""
        return sum(size for _, size in self.files)


def find_map(spark: Any, name: str) -> MapOnSpark:
    """The map behind a path or URL: a file, or a folder of parts."""
    if is_url(name):
        files = HadoopFiles(spark)
        listed = [one for one in files.files(name) if one.name.startswith("part-") or one.url.endswith(one.name)]
        listed = [one for one in listed if one.name != "manifest.json"]
        with tempfile.NamedTemporaryFile(prefix="recollect-") as head:
            head.write(files.head(listed[0].url, HEAD))
            head.flush()
            header = _header(head.name)
        return MapOnSpark(name, header, tuple((one.url, one.size) for one in listed), True)
    parts = part_names(Path(name)) if is_parted(Path(name)) else [Path(name)]
    if not parts[0].is_file():
        raise RecollectError("no such map", where=name, hint="Spark needs a file, a folder of parts, or a URL")
    return MapOnSpark(name, _header(name), tuple((str(part), part.stat().st_size) for part in parts), False)


def _header(path: str) -> Header:
    with open_map(path, lambda _problem: None) as opened:
        return opened.header


@dataclass(slots=True)
class MapNote:
    """What a task tells of a piece of a map: its size and that of the header in it, keys to make borders of, and the
    widest wildcard in it."""

    size: int = 0
    head: int = 0
    keys: list[bytes] = field(default_factory=list)
    widest: int = DOMAIN
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Split:
    map: int
    file: int
    path: str
    start: int
    stop: int | None


@dataclass(slots=True)
class Ranged:
    """Maps as an RDD of (range, (map, text)) and the borders between ranges; `notes` is what reading found."""

    texts: Any
    borders: list[bytes]
    notes: dict[Any, MapNote]
    blocks: Any

    @property
    def size(self) -> int:
        """Bytes of text, headers among them."""
        return sum(note.size + note.head for note in self.notes.values())


def in_ranges(
    spark: Any,
    maps: Sequence[MapOnSpark],
    sizes: Sizes,
    depth: Callable[[int], int],
    progress: ProgressCallback | None = None,
) -> Ranged:
    """Read maps and bring together what belongs to a range of hosts. `depth` says how deep borders may lie, given the
    depth of the widest wildcard."""
    from pyspark import StorageLevel

    from recollect.spark.notes import notes

    told = notes(spark)
    blocks = spark.sparkContext.union([_read(spark, number, one, sizes, told) for number, one in enumerate(maps)])
    blocks = blocks.persist(StorageLevel.DISK_ONLY)
    with progress_of(spark, "reading", progress):
        blocks._jrdd.count()
    found: dict[Any, MapNote] = told.value
    deep = depth(min((note.widest for note in found.values()), default=DOMAIN))
    size = sum(note.size for note in found.values())
    ranges = exchange.ranges_for(size, spark.sparkContext.defaultParallelism, sizes) if deep else 1
    borders = borders_between(((key, 1) for note in found.values() for key in note.keys), ranges, deep)
    texts = blocks.flatMap(_Cut(borders)).partitionBy(len(borders) + 1, exchange.itself)
    return Ranged(texts, borders, found, blocks)


def border_at(key: bytes, depth: int) -> bytes:
    """The border that a key gives: safe for every node at least `depth` deep in hosts."""
    match = _HOST.match(key)
    segments = (match[0] if match else b"").split(b",")[:depth]
    last = segments[-1]
    end = next((index for index in range(1, len(last)) if last[index] <= 0x3A), len(last))
    return b",".join((*segments[:-1], last[:end]))


def borders_between(keys: Iterable[tuple[bytes, int]], ranges: int, depth: int) -> list[bytes]:
    """Borders for so many ranges, or fewer, given keys with weights; none among IP addresses, which have no domain."""
    if ranges < 2:
        return []
    places = (((border_at(key, depth), b""), weight) for key, weight in keys if not _ADDRESS.match(key))
    return sorted({key for key, _ in exchange.borders_of(places, ranges)} - {b""})


def _read(spark: Any, number: int, one: MapOnSpark, sizes: Sizes, told: Any) -> Any:
    task = _ReadTask(one.header, one.name, sizes.block, told)
    splits = []
    for file, (path, size) in enumerate(one.files):
        if one.remote:
            splits.append(_remote(spark, number, file, path, task))
            continue
        with Path(path).open("rb") as head:
            plain = kind_of(head.read(16)) == "plain"
        step = max(sizes.smallest_split, min(sizes.split, one.size // (3 * spark.sparkContext.defaultParallelism)))
        for start in range(0, size, step) if plain else ():
            splits.append(_Split(number, file, path, start, min(start + step, size)))
        if not plain:
            splits.append(_Split(number, file, path, 0, None))
    if one.remote:
        return spark.sparkContext.union(splits)
    return spark.sparkContext.parallelize(splits, max(len(splits), 1)).flatMap(task.local)


def _remote(spark: Any, number: int, file: int, path: str, task: _ReadTask) -> Any:
    frame = spark.read.option("lineSep", "\n").text(path)
    frame = frame.selectExpr("cast(value as binary) as line", "_metadata.file_block_start as start")

    def rows(found: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
        # A partition may have several splits, in any order.
        for start, some in groupby(found, key=lambda row: int(row[1])):
            texts = in_chunks(bytes(line) + b"\n" for line, _ in some)
            yield from task.noted((number, file, start), texts, start == 0)

    return frame.rdd.mapPartitions(rows)


@dataclass(frozen=True, slots=True)
class _ReadTask:
    """Reads a piece of a map; gives its lines in blocks."""

    header: Header
    name: str
    block: int
    told: Any

    def local(self, split: _Split) -> Iterator[tuple[int, bytes]]:
        place = (split.map, split.file, split.start)
        return self.noted(place, self._texts(split), split.start == 0)

    def _texts(self, split: _Split) -> Iterator[bytes]:
        if split.stop is None:
            with open_input(split.path) as stream:
                for piece in whole_lines(stream, size=self.block):
                    yield piece if piece.endswith(b"\n") else piece + b"\n"
            return
        with Path(split.path).open("rb") as file:
            at = split.start
            if at:
                file.seek(at - 1)
                at += len(file.readline()) - 1
            while at < split.stop:
                text = file.read(min(self.block, split.stop - at))
                if not text.endswith(b"\n"):
                    text += file.readline()
                at += len(text)
                yield text if text.endswith(b"\n") else text + b"\n"

    def noted(self, place: Any, texts: Iterator[bytes], first: bool) -> Iterator[tuple[int, bytes]]:
        """The texts without header, each with the number of its map; the driver is told about them."""
        note = MapNote()
        for text in texts:
            if first:
                whole, text, first = len(text), without_header(text), False
                note.head += whole - len(text)
            if not text:
                first = note.size == 0 and place[2] == 0
                continue
            note.size += len(text)
            note.keys.append(text.split(None, 1)[0])
            note.widest = min(note.widest, _widest(text))
            yield place[0], text
        self.told.add({place: note})


def without_header(text: bytes) -> bytes:
    """Lines from the first on that is no header."""
    at = 3 if text.startswith(b"\xef\xbb\xbf") else 0
    while at < len(text) and text[at : at + 1] in (b"!", b"@", b"#", b"\n", b"\r"):
        at = text.index(b"\n", at) + 1
    return text[at:]


def _widest(text: bytes) -> int:
    """The depth of the widest wildcard among lines."""
    if text.startswith(b"* ") or b"\n* " in text:
        return NOWHERE
    return TOP if re.search(rb"^[^\s,)]+,\* ", text, re.MULTILINE) else DOMAIN


@dataclass(frozen=True, slots=True)
class _Cut:
    """Cuts sorted lines at borders."""

    borders: list[bytes]

    def __call__(self, block: tuple[int, bytes]) -> Iterator[tuple[int, tuple[int, bytes]]]:
        number, text = block
        lines = text.splitlines(keepends=True)
        if any(second < first for first, second in pairwise(lines)):
            lines.sort()
        at = 0
        for index, border in enumerate(self.borders):
            end = _first_not_below(lines, border, at)
            if end > at:
                yield index, (number, b"".join(lines[at:end]))
            at = end
        if at < len(lines):
            yield len(self.borders), (number, b"".join(lines[at:]))


def _first_not_below(lines: Sequence[bytes], border: bytes, low: int) -> int:
    high = len(lines)
    while low < high:
        middle = (low + high) // 2
        if lines[middle] < border:
            low = middle + 1
        else:
            high = middle
    return low


@contextmanager
def spooled(pieces: Iterable[tuple[int, tuple[int, bytes]]], headers: Sequence[Header]) -> Iterator[list[str]]:
    """The maps of a range as files, one for each map, with its header and its lines in order."""
    folder = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or None
    with ExitStack() as stack:
        where = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="recollect-", dir=folder)))
        blocks = stack.enter_context(tempfile.TemporaryFile(dir=where))
        places: list[tuple[int, bytes, int, int]] = []
        for _, (number, text) in pieces:
            places.append((number, text.split(None, 1)[0], blocks.tell(), len(text)))
            blocks.write(text)
        files = [(where / f"{index}.ukvs").open("wb") for index in range(len(headers))]
        for file, header in zip(files, headers, strict=True):
            stack.callback(file.close)
            file.write(header.encode())
        for number, _, at, size in sorted(places):
            blocks.seek(at)
            files[number].write(blocks.read(size))
        for file in files:
            file.close()
        yield [file.name for file in files]


def plain_header(header: Header) -> Header:
    """The header for a map in a range, which needs only its columns."""
    return replace(header, meta={name: value for name, value in header.meta.items() if name not in ("page", "pages")})
