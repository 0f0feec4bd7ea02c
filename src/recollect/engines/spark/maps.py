"""Maps on Spark: cut into ranges of hosts between which nothing depends on anything, each processed separately.

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
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from recollect.engines.plan import DOMAIN, NOWHERE, TOP, without_header
from recollect.engines.spark import exchange
from recollect.engines.spark.exchange import Sizes
from recollect.engines.spark.files import HadoopFiles, at_once, is_url, lines_behind, spelling, texts_of
from recollect.engines.spark.inputs import check_seen
from recollect.engines.spark.session import progress_of
from recollect.errors import RecollectError
from recollect.formats.containers import kind_of, open_input, whole_lines
from recollect.formats.parts import is_parted, part_names
from recollect.formats.ukvs import Header, open_map
from recollect.model import Problem, ProgressCallback

HEAD = 1 << 18
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
    """The map at a path or URL: a file, or a folder of parts."""
    if is_url(name):
        hadoop = HadoopFiles(spark)
        listed = hadoop.parts(name) or hadoop.files(name)
        with tempfile.NamedTemporaryFile(prefix="recollect-") as head:
            head.write(hadoop.head(listed[0], HEAD))
            head.flush()
            header = _header(head.name)
        return MapOnSpark(name, header, tuple((one.url, one.size) for one in listed), True)
    parts = part_names(Path(name)) if is_parted(Path(name)) else [Path(name)]
    if not parts[0].is_file():
        raise RecollectError("no such map", where=name, hint="Spark needs a file, a folder of parts, or a URL")
    files = tuple((str(part.absolute()), part.stat().st_size) for part in parts)
    return MapOnSpark(name, _header(name), files, False)


def find_maps(spark: Any, names: Sequence[str]) -> list[MapOnSpark]:
    """Maps at paths or URLs; raises if a worker does not see one."""
    maps = list(at_once(partial(find_map, spark), names))
    check_seen(spark, [path for one in maps if not one.remote for path, _ in one.files])
    return maps


def _header(path: str) -> Header:
    with open_map(path, lambda _problem: None) as opened:
        return opened.header


@dataclass(slots=True)
class MapNote:
    """What a task reports of a piece of a map: its size, that of its header, keys to make borders of, and the
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
    *,
    borders: list[bytes] | None = None,
    done: Iterable[int] = (),
) -> Ranged:
    """Read maps and bring together what belongs to a range of hosts. `depth` says how deep borders may lie, given the
    depth of the widest wildcard; `borders` are those of an earlier run, of whose ranges some are `done`."""
    from pyspark import StorageLevel

    from recollect.engines.spark.notes import notes

    reported = notes(spark)
    blocks = _blocks(spark, maps, sizes, _ReadTask(sizes.block, reported)).persist(StorageLevel.DISK_ONLY)
    with progress_of(spark, "reading", progress):
        blocks._jrdd.count()
    found: dict[Any, MapNote] = reported.value
    if borders is None:
        deep = depth(min((note.widest for note in found.values()), default=DOMAIN))
        size = sum(note.size for note in found.values())
        ranges = exchange.ranges_for(size, spark.sparkContext.defaultParallelism, sizes) if deep else 1
        borders = borders_between(((key, 1) for note in found.values() for key in note.keys), ranges, deep)
    texts = blocks.flatMap(_Cut(borders, frozenset(done))).partitionBy(len(borders) + 1, exchange.itself)
    return Ranged(texts, borders, found, blocks)


def border_at(key: bytes, depth: int) -> bytes:
    """The border that a key gives: safe for every node at least `depth` deep in hosts."""
    match = _HOST.match(key)
    segments = (match[0] if match else b"").split(b",")[:depth]
    last = segments[-1]
    end = next((index for index in range(1, len(last)) if last[index] <= 0x3A), len(last))
    return b",".join((*segments[:-1], last[:end]))


def borders_between(keys: Iterable[tuple[bytes, int]], ranges: int, depth: int) -> list[bytes]:
    """Borders for N ranges, or fewer, given keys with weights; none among IP addresses, which have no domain."""
    if ranges < 2:
        return []
    places = (((border_at(key, depth), b""), weight) for key, weight in keys if not _ADDRESS.match(key))
    return sorted({key for key, _ in exchange.borders_of(places, ranges)} - {b""})


def _blocks(spark: Any, maps: Sequence[MapOnSpark], sizes: Sizes, task: _ReadTask) -> Any:
    """The lines of all maps as an RDD of (map, text); one read for files of tasks, one for those that Spark opens."""
    context = spark.sparkContext
    places = {(number, file): path for number, one in enumerate(maps) for file, (path, _) in enumerate(one.files)}
    remote = {spelling(path): place for place, path in places.items() if maps[place[0]].remote}
    local = [(number, one) for number, one in enumerate(maps) if not one.remote]
    splits = [split for number, one in local for split in _splits(context, number, one, sizes)]
    found = []
    if splits:
        found.append(context.parallelize(splits, min(len(splits), 20_000)).flatMap(task.local))
    if remote:
        frame = lines_behind(spark, [path for place, path in places.items() if maps[place[0]].remote])
        found.append(frame.mapInArrow(_Remote(remote, task), "map int, text binary").rdd.map(_as_block))
    return context.union(found) if found else context.parallelize([], 1)


def _splits(context: Any, number: int, one: MapOnSpark, sizes: Sizes) -> Iterator[_Split]:
    """The files of a map cut up: plain ones by ranges, others whole."""
    step = max(sizes.smallest_split, min(sizes.split, one.size // (3 * context.defaultParallelism)))
    for file, (path, size) in enumerate(one.files):
        with Path(path).open("rb") as head:
            plain = kind_of(head.read(16)) == "plain"
        if not plain:
            yield _Split(number, file, path, 0, None)
            continue
        for start in range(0, size, step):
            yield _Split(number, file, path, start, min(start + step, size))


@dataclass(frozen=True, slots=True)
class _Remote:
    """Reads lines that come from Spark in Arrow batches; `places` are map and file by URL."""

    places: dict[str, tuple[int, int]]
    task: _ReadTask

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        # A partition may have several splits, in any order.
        for (path, start), some in groupby(texts_of(batches), key=lambda text: text[0]):
            texts = (text for _, text in some)
            for number, block in self.task.noted((*self.places[path], start), texts, start == 0):
                columns = {"map": pa.array([number], pa.int32()), "text": pa.array([block], pa.binary())}
                yield pa.RecordBatch.from_pydict(columns)


def _as_block(row: Any) -> tuple[int, bytes]:
    return int(row[0]), bytes(row[1])


@dataclass(frozen=True, slots=True)
class _ReadTask:
    """Reads a piece of a map; gives its lines in blocks."""

    block: int
    reported: Any

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
        """The texts without header, each with the number of its map; the driver keeps the numbers."""
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
        self.reported.add({place: note})


def _widest(text: bytes) -> int:
    """The depth of the widest wildcard among lines."""
    if text.startswith(b"* ") or b"\n* " in text:
        return NOWHERE
    return TOP if re.search(rb"^[^\s,)]+,\* ", text, re.MULTILINE) else DOMAIN


@dataclass(frozen=True, slots=True)
class _Cut:
    """Cuts sorted lines at borders, and leaves out ranges that are done."""

    borders: list[bytes]
    done: frozenset[int]

    def __call__(self, block: tuple[int, bytes]) -> Iterator[tuple[int, tuple[int, bytes]]]:
        number, text = block
        lines = text.splitlines(keepends=True)
        if any(second < first for first, second in pairwise(lines)):
            lines.sort()
        at = 0
        for index, border in enumerate(self.borders):
            end = _first_not_below(lines, border, at)
            if end > at and index not in self.done:
                yield index, (number, b"".join(lines[at:end]))
            at = end
        if at < len(lines) and len(self.borders) not in self.done:
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
