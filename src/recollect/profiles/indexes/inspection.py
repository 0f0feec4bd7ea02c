"""The detected format of a file, without reading all of it: kind, dialect, columns, order, first records.

Hides: how each kind is looked into. Only a sample is read, so order and fields are those of the sample unless `whole`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from recollect.errors import BadURI, FormatError, RecollectError
from recollect.formats.cdx import Capture, NotACapture
from recollect.formats.containers import open_input, whole_lines
from recollect.formats.detect import Kind, Source, files_of, inspect
from recollect.formats.forms import Asked
from recollect.formats.ukvs import MapFile
from recollect.formats.zipnum import read_blocks
from recollect.model import Problem
from recollect.profiles.indexes.scan import LINE_KINDS, parser_of
from recollect.uris import key_of_uri, uri_key

SAMPLE_LINES = 10_000
# Lines of all indexes, places of one, and bytes from each, that keys are compared in.
# 600 lines show a disagreement of 0.5% of the keys 19 times in 20, and take 15 ms.
_KEY_SAMPLE, _PLACES, _KEY_BYTES = 600, 4, 1 << 18
_MAPS = (Kind.MAP, Kind.PROFILE)
_FIELDS = ("timestamp", "url", "status", "media_type", "digest", "length", "filename", "language")


@dataclass(frozen=True, slots=True)
class Inspection:
    """The detected format of one file. None is unknown, or has no meaning for its kind."""

    file: str
    kind: str
    container: str
    bytes: int | None
    dialect: str = ""
    columns: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    sorted: bool | None = None
    lines: int = 0
    whole: bool = False
    keys_disagree: int = 0
    records: tuple[dict[str, Any], ...] = ()
    problems: tuple[str, ...] = ()
    what: str = ""

    @property
    def usable(self) -> bool:
        """Whether the other commands can read it."""
        return self.kind not in (Kind.UNKNOWN.value, Kind.EMPTY.value)

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


def inspect_files(
    paths: Iterable[str | os.PathLike[str]], asked: Asked | None = None, *, records: int = 3
) -> Iterator[Inspection]:
    """Each file that is named, in folders, or matches globs."""
    for path in files_of(paths):
        yield inspect_file(path, asked, records=records)


def inspect_file(path: str, asked: Asked | None = None, *, records: int = 3) -> Inspection:
    """The detected format of one file."""
    source = inspect(path, asked)
    seen = _Sample(source, records)
    try:
        seen.read()
    except RecollectError as error:
        seen.problems.append(str(error))
    return seen.result()


class _Sample:
    """What a sample of a file shows."""

    def __init__(self, source: Source, records: int) -> None:
        self._source = source
        self._wanted = records
        self._dialect = ""
        self._columns: tuple[str, ...] = ()
        self._fields: set[str] = set()
        self._sorted: bool | None = None
        self._lines = 0
        self._whole = False
        self._captures: list[Capture] = []
        self._records: list[dict[str, Any]] = []
        self.problems: list[str] = []

    def read(self) -> None:
        kind = self._source.kind
        if kind in LINE_KINDS:
            self._read_lines()
        elif kind in _MAPS:
            self._read_map()
        elif kind is Kind.PARQUET:
            self._read_parquet()
        elif kind not in (Kind.UNKNOWN, Kind.EMPTY, Kind.ZIPNUM):
            self._read_records()

    def result(self) -> Inspection:
        source = self._source
        found = [name for name in _FIELDS if name in self._fields]
        return Inspection(
            source.label,
            source.kind.value,
            source.container,
            source.size,
            self._dialect or (str(source.form) if source.form else ""),
            self._columns or (source.form.columns if source.form else ()),
            tuple(found),
            self._sorted,
            self._lines,
            self._whole,
            len(disagreements(self._captures)),
            tuple(self._records or [_shown(capture) for capture in self._captures[: self._wanted]]),
            tuple(self.problems[:5]),
            source.what,
        )

    def _read_lines(self) -> None:
        source = self._source
        if source.kind is Kind.CDX:
            where = "named by its header" if source.layout.from_header else "by their number"
            self._dialect = f"{len(source.layout.letters)} fields, {where}"
            self._columns = tuple(source.layout.letters)
        parse = parser_of(source, all_schemes=False)
        last = b""
        self._sorted = True
        for line in self._sample():
            try:
                capture = parse(line)
            except NotACapture:
                continue
            except FormatError as error:
                self.problems.append(f"line {self._lines}: {error}")
                continue
            self._sorted = self._sorted and last <= capture.surt
            last = capture.surt
            self._take(capture)
            if source.kind is Kind.CDXJ and not self._columns:
                self._columns = _names_of(line)

    def _sample(self) -> Iterator[str]:
        """The first lines as text; sets how many there were, and whether these were all."""
        source = self._source
        problems: list[Problem] = []
        if source.container == "blocks":
            pieces: Iterable[bytes] = read_blocks(source.path, problems.append)
        else:
            pieces = whole_lines(source.stream or open_input(source.path, problems.append), problems.append)
        for piece in pieces:
            for raw in piece.splitlines():
                if self._lines >= SAMPLE_LINES:
                    return
                self._lines += 1
                yield raw.decode("utf-8", "surrogateescape")
        self._whole = True
        self.problems += [str(problem) for problem in problems]

    def _take(self, capture: Capture) -> None:
        self._captures.append(capture)
        self._fields |= {name for name in _FIELDS if getattr(capture, name) not in (None, "")}

    def _read_records(self) -> None:
        from recollect.formats.captures import read_captures

        problems: list[Problem] = []
        reading = read_captures(self._source, problems.append, lambda _kind: None)
        limit = SAMPLE_LINES if self._source.kind in (Kind.LOG, Kind.TABLE) else max(self._wanted, 1)
        for capture in islice(reading, limit):
            self._take(capture)
        self._lines = len(self._captures)
        self._whole = self._lines < limit
        self.problems += [str(problem) for problem in problems]

    def _read_parquet(self) -> None:
        from recollect.formats.parquet import ParquetIndex

        index = ParquetIndex(self._source.path)
        self._dialect, self._columns = f"{index.rows:,} rows", tuple(index.layout.letters)
        parse = parser_of(Source(self._source.path, Kind.CDX, layout=index.layout), all_schemes=False)
        for text, _ in index.lines():
            for line in text.decode("utf-8", "surrogateescape").splitlines()[:100]:
                try:
                    self._take(parse(line))
                except (NotACapture, FormatError):
                    continue
            break
        self._lines = len(self._captures)

    def _read_map(self) -> None:
        problems: list[Problem] = []
        with MapFile(self._source.path, problems.append) as opened:
            header = opened.header
            self._dialect = f"policy {header.policy}, {'CDXJ profile' if header.style == 'cdxj' else 'UKVS'}"
            self._columns = (*header.keys, *header.values)
            last: tuple[bytes, ...] = ()
            self._sorted, self._whole = True, True
            for record in opened:
                if self._lines >= SAMPLE_LINES:
                    self._whole = False
                    break
                self._lines += 1
                self._sorted = self._sorted and last <= (record.key, *record.more_keys)
                last = (record.key, *record.more_keys)
                if len(self._records) < self._wanted:
                    shown = {"key": record.key.decode("utf-8", "replace"), "frequency": str(record.frequency)}
                    self._records.append(shown)
        self.problems += [str(problem) for problem in problems]


def _shown(capture: Capture) -> dict[str, Any]:
    found = {name: getattr(capture, name) for name in _FIELDS}
    shown = {"surt": capture.surt.decode("utf-8", "replace"), **found, "count": capture.count}
    return {name: value for name, value in shown.items() if value not in (None, "") and (name, value) != ("count", 1)}


def _names_of(line: str) -> tuple[str, ...]:
    """The names in the JSON of a CDXJ line."""
    import json

    try:
        found = json.loads(line[line.index("{") :])
    except ValueError:
        return ()
    return tuple(found) if isinstance(found, dict) else ()


def disagreements(captures: Sequence[Capture]) -> list[tuple[str, str]]:
    """Keys of an index and the URLs beside them that have another key, once each."""
    found: dict[tuple[str, str], None] = {}
    for capture in captures:
        if capture.url and differs(capture.surt, capture.url):
            found.setdefault((capture.surt.decode("utf-8", "replace"), capture.url))
    return list(found)


def key_notes(sources: Sequence[Source]) -> list[str]:
    """A warning for each index whose keys are not those of its URLs, judged by samples of its lines."""
    indexes = [source for source in sources if source.kind in (Kind.CDX, Kind.CDXJ) and source.stream is None]
    notes = []
    for source in indexes:
        captures = list(_spread(source, max(_KEY_SAMPLE // len(indexes), 40)))
        if found := disagreements(captures):
            key, url = found[0]
            notes.append(
                f"warning: {source.label}: {len(found):,} of {len(captures):,} keys looked at are not those of the "
                f"URLs beside them (key {key[:100]}, URL {url[:100]}); the map has the keys"
            )
    return notes


def _spread(source: Source, lines: int) -> Iterator[Capture]:
    """Captures of some lines of an index: of a plain file from several places, else from its beginning."""
    parse = parser_of(source, all_schemes=False)
    texts = list(_texts(source))
    for text in texts:
        for raw in text.splitlines()[1 : lines // len(texts) + 1]:
            try:
                yield parse(raw.decode("utf-8", "surrogateescape"))
            except (NotACapture, FormatError):
                continue


def _texts(source: Source) -> Iterator[bytes]:
    """Pieces of an index, each with a line that may be incomplete in front and at its end."""
    if source.container != "plain":
        with open_input(source.path, lambda _problem: None) as stream:
            head = stream.preview(_KEY_BYTES, 2) if source.container != "blocks" else b""
        yield b"\n" + head[: head.rfind(b"\n") + 1]
        return
    size = source.size or 0
    with open(source.path, "rb") as file:  # noqa: PTH123
        for place in range(_PLACES if size > _KEY_BYTES else 1):
            file.seek(size * place // _PLACES)
            text = file.read(_KEY_BYTES)
            yield (b"\n" if place == 0 else b"") + text[: text.rfind(b"\n") + 1]


def differs(surt: bytes, url: str) -> bool:
    """Whether a URL is looked up by another key than the one an index has it under."""
    try:
        return uri_key(surt) != key_of_uri(url)
    except BadURI:
        return False  # it cannot be looked up by its URL at all
