"""A batch: some thousands of captures as columns, grouped into runs of one SURT.

Hides how lines become columns: the kernel reads what is ordinary, the careful parser what is not, and both end up in
the same arrays. Captures from other formats (WARC records, TimeMaps) are put into the same columns by `batch_of`.

Invariants: `alive` is False for lines that are not captures; `media[i]` is a number into `media_types`, which starts
with None (no media type); every run that has living captures has a key in normal form; `rest` is what the key leaves of
the SURT, so that (key, rest) is the same exactly when the SURT is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.errors import BadURI, FormatError
from recollect.formats.cdx import (
    FIELD_NAMES,
    HEADER,
    MAX_KEY,
    METADATA_TYPES,
    OTHER_TYPES,
    Capture,
    Layout,
    NotACapture,
    clean_media_type,
)
from recollect.formats.detect import Kind
from recollect.kernels import scan as kernels
from recollect.kernels.records import Runs
from recollect.uris import uri_key

# Lines per batch. Columns for this number of lines and the text of the batch fit into the second-level cache.
BATCH_LINES = 1 << 16
_KINDS = {Kind.CDX: kernels.CDX, Kind.CDXJ: kernels.CDXJ, Kind.SURTS: kernels.SURT_LIST, Kind.URLS: kernels.SURT_LIST}
_FIELDS = {"timestamp": kernels.TIME, "url": kernels.URL, "media_type": kernels.MEDIA, "status": kernels.STATUS}
# Names of fewer than three letters are read by the careful parser alone, which does so in whole objects only.
_NAMES = {
    name.encode(): _FIELDS[field] if len(name) >= 3 else kernels.CAREFUL
    for field in ("url", "media_type", "status")
    for name in FIELD_NAMES[field]
}
# The path and query of a SURT whose path needs no encoding.
_PLAIN_PATH = re.compile(rb"(/[!\"$-)+->@\[-~]*)(?:\?.*)?", re.DOTALL)
Parser = Callable[[str], Capture]
Ints = NDArray[Any]


@dataclass(slots=True)
class Batch:
    """Captures as columns. `text` holds SURTs and keys; `run_of`, `times`, ... have one entry per line."""

    text: NDArray[np.uint8]
    run_of: Ints
    times: Ints
    statuses: Ints
    media: Ints
    alive: NDArray[np.bool_]
    surt_at: Ints
    surt_length: Ints
    key_at: Ints
    key_length: Ints
    media_types: list[str | None]
    capture_at: Callable[[int], Capture]
    weights: Ints | None = None
    offset: int = 0  # lines of the piece that stand before the batch
    starts: NDArray[np.int32] | None = None  # where each line begins in the text, if that has the lines
    left_out: Counter[str] = field(default_factory=Counter)
    problems: list[tuple[int, str, str]] = field(default_factory=list)

    def surt(self, run: int) -> bytes:
        """The SURT of a run, as the index spells it."""
        at = int(self.surt_at[run])
        return self.text[at : at + int(self.surt_length[run])].tobytes()

    def key(self, run: int) -> bytes:
        """The URI key of a run."""
        at = int(self.key_at[run])
        return self.text[at : at + int(self.key_length[run])].tobytes()

    def runs(self) -> Runs:
        """The runs for the kernels, as they are now."""
        return Runs(self.text, self.surt_at, self.surt_length, self.key_at, self.key_length)

    def captures(self, keep: NDArray[np.bool_]) -> Ints:
        """For each run the number of captures that are kept."""
        weights = None if self.weights is None else self.weights[keep]
        counts = np.bincount(self.run_of[keep], weights, minlength=len(self.surt_at))
        return counts.astype(np.int64, copy=False)


class Columns:
    """Buffers for the columns of one batch, reused by one thread."""

    def __init__(self, lines: int = BATCH_LINES) -> None:
        self.starts, self.run_of = np.empty(lines, np.int32), np.empty(lines, np.int32)
        self.times = np.empty(lines, np.int64)
        self.statuses, self.media = np.empty(lines, np.int16), np.empty(lines, np.int16)
        self.states = np.empty(lines, np.uint8)
        self.surt_at, self.surt_length = np.empty(lines, np.int32), np.empty(lines, np.int32)
        self.key_length = np.empty(lines, np.int32)
        self.scanner = kernels.Scanner(
            starts=self.starts, run_of=self.run_of, times=self.times, statuses=self.statuses, media=self.media,
            states=self.states, surt_at=self.surt_at, surt_length=self.surt_length, key_length=self.key_length,
        )  # fmt: skip


def format_of(kind: Kind, layout: Layout) -> kernels.LineFormat:
    """What the kernel must know of a file."""
    if kind is not Kind.CDX:
        return kernels.LineFormat(_KINDS[kind], names=_NAMES)
    fields = [kernels.UNUSED] * len(layout.letters)
    for name, field_kind in _FIELDS.items():
        if (position := layout.position(name)) >= 0:
            fields[position] = field_kind
    # The kernel takes the first field for the key; in a file with another order nothing is ordinary.
    return kernels.LineFormat(
        kernels.CDX, delimiter=layout.delimiter.encode()[:1], fields=fields if layout.key == 0 else ()
    )


def read_batch(
    columns: Columns,
    text: NDArray[np.uint8],
    begin: int,
    form: kernels.LineFormat,
    parser: Parser,
    all_schemes: bool,
) -> tuple[Batch, int]:
    """The batch of the first lines of text[begin:], and where it stopped."""
    scanner = columns.scanner
    stop = scanner.read(text[begin:], form)
    lines, runs = scanner.lines, scanner.runs
    text = text[begin : begin + stop]
    names: list[str | None] = [None]
    for at, length in scanner.media_types:
        names.append(clean_media_type(text[at : at + length].tobytes().decode("utf-8", "surrogateescape")))
    starts = columns.starts[:lines]

    def line_text(line: int) -> str:
        last = int(starts[line + 1]) if line + 1 < lines else stop
        return text[int(starts[line]) : last].tobytes().decode("utf-8", "surrogateescape").rstrip("\r\n")

    batch = Batch(
        text, columns.run_of[:lines], columns.times[:lines], columns.statuses[:lines], columns.media[:lines] + 1,
        columns.states[:lines] == kernels.GOOD,
        columns.surt_at[:runs], columns.surt_length[:runs], columns.surt_at[:runs], columns.key_length[:runs],
        names, lambda line: parser(line_text(line)), starts=starts,
    )  # fmt: skip
    _LineRepair(batch, line_text, all_schemes).run()
    return batch, begin + stop


def batch_of(captures: Sequence[Capture], all_schemes: bool = False) -> Batch:
    """A batch of captures that some other reader made."""
    count = len(captures)
    names: dict[str | None, int] = {None: 0}
    batch = Batch(
        np.empty(0, np.uint8), np.zeros(count, np.int32), np.empty(count, np.int64), np.empty(count, np.int16),
        np.empty(count, np.int16), np.ones(count, np.bool_),
        np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int32),
        [], captures.__getitem__, np.array([capture.count for capture in captures], np.int64),
    )  # fmt: skip
    repair = _LineRepair(batch, lambda line: captures[line].surt.decode("utf-8", "replace"), all_schemes)
    for line, capture in enumerate(captures):
        batch.times[line] = int(capture.timestamp or 0)
        batch.statuses[line] = capture.status or 0
        batch.media[line] = names.setdefault(capture.media_type, len(names))
        repair.place(line, capture.surt)
    batch.media_types = list(names)
    repair.finish()
    return batch


class _LineRepair:
    """Adds to a batch what the kernel leaves out: irregular keys and lines, and runs for SURTs that no line has."""

    def __init__(self, batch: Batch, line_text: Callable[[int], str], all_schemes: bool) -> None:
        self._batch = batch
        self._line_text = line_text
        self._all_schemes = all_schemes
        self._numbers = {name: number for number, name in reversed(list(enumerate(batch.media_types)))}
        self._extra: list[bytes] = []
        self._size = len(batch.text)
        self._runs: dict[bytes, int] = {}
        self._new: list[tuple[int, int, int, int]] = []

    def run(self) -> None:
        """Make keys of irregular runs, then read irregular lines, then leave out what is not a capture."""
        batch = self._batch
        too_long = batch.surt_length > MAX_KEY
        if too_long.any():
            batch.alive &= ~too_long[batch.run_of]
        irregular_runs = np.flatnonzero(batch.key_length < 0)
        if irregular_runs.size:
            self._repair_keys(irregular_runs)
        for line in np.flatnonzero(~batch.alive).tolist():
            self._repair_line(line)
        self.finish()
        if not self._all_schemes:
            self._leave_out()

    def _repair_keys(self, irregular_runs: Ints) -> None:
        batch = self._batch
        batch.key_at, batch.key_length = batch.key_at.copy(), batch.key_length.copy()
        unusable = np.zeros(len(batch.surt_at), np.bool_)
        same_host = _SameHost()
        text = batch.text.tobytes()
        ends = batch.surt_at + batch.surt_length
        for run, start, end in zip(
            irregular_runs.tolist(), batch.surt_at[irregular_runs].tolist(), ends[irregular_runs].tolist(), strict=True
        ):
            surt = text[start:end]
            if b")" not in surt:  # a URL in a list, which the careful parser reads
                unusable[run] = True
                continue
            try:
                if b"\t" in surt or b"\r" in surt:
                    raise BadURI("two words")  # or so the careful parser may think
                key = same_host.key(surt)
            except BadURI:
                unusable[run] = True
                continue
            if not surt.startswith(key):
                batch.key_at[run] = self._keep(key)
            batch.key_length[run] = len(key)
        batch.alive &= ~unusable[batch.run_of]

    def _repair_line(self, line: int) -> None:
        batch = self._batch
        try:
            capture = batch.capture_at(line)
        except NotACapture as other:
            if other.kind != HEADER:
                batch.left_out[other.kind] += 1
            return
        except FormatError as error:
            batch.problems.append((line, str(error), self._line_text(line)[:160]))
            return
        if capture.flaw:
            batch.problems.append((line, capture.flaw, self._line_text(line)[:160]))
        batch.alive[line] = True
        batch.times[line] = int(capture.timestamp or 0)
        batch.statuses[line] = capture.status or 0
        batch.media[line] = self._number(capture.media_type)
        run = int(batch.run_of[line])
        if batch.key_length[run] < 0 or capture.surt != batch.surt(run):
            self.place(line, capture.surt)

    def _number(self, media_type: str | None) -> int:
        if media_type not in self._numbers:
            self._numbers[media_type] = len(self._batch.media_types)
            self._batch.media_types.append(media_type)
        return self._numbers[media_type]

    def place(self, line: int, surt: bytes) -> None:
        """Put a line into the run of a SURT that stands in no line of the batch."""
        if surt not in self._runs:
            try:
                key = uri_key(surt)
            except BadURI:
                key = foreign_key(surt)
            at = self._keep(surt)
            key_at = at if surt.startswith(key) else self._keep(key)
            self._runs[surt] = len(self._batch.surt_at) + len(self._new)
            self._new.append((at, len(surt), key_at, len(key)))
        self._batch.run_of[line] = self._runs[surt]

    def _keep(self, piece: bytes) -> int:
        at = self._size
        self._extra.append(piece)
        self._size += len(piece)
        return at

    def finish(self) -> None:
        """Add the new runs and their text to the batch."""
        batch = self._batch
        if self._extra:
            extra = np.frombuffer(b"".join(self._extra), np.uint8)
            batch.text = np.concatenate([batch.text, extra])
        if self._new:
            added = np.array(self._new, np.int32).T
            batch.surt_at = np.concatenate([batch.surt_at, added[0]])
            batch.surt_length = np.concatenate([batch.surt_length, added[1]])
            batch.key_at = np.concatenate([batch.key_at, added[2]])
            batch.key_length = np.concatenate([batch.key_length, added[3]])

    def _leave_out(self) -> None:
        """Records about captures that only their media type identifies."""
        batch = self._batch
        for number, name in enumerate(batch.media_types):
            if name in OTHER_TYPES or name in METADATA_TYPES:
                found = batch.alive & (batch.media == number)
                if name not in OTHER_TYPES:
                    found &= batch.statuses == 0
                batch.left_out[OTHER_TYPES.get(name, "metadata")] += int(found.sum())
                batch.alive &= ~found


class _SameHost:
    """Keys of many consecutive SURTs with the same irregular host (an IP address), made from the first one's."""

    def __init__(self) -> None:
        self._host = self._made = b"\0"

    def key(self, surt: bytes) -> bytes:
        """The same as `uri_key`."""
        if surt.startswith(self._host) and (path := _PLAIN_PATH.fullmatch(surt, len(self._host))):
            return self._made + (path[1].rstrip(b"/") or b"/")
        key = uri_key(surt)
        self._host, self._made = surt[: surt.find(b")") + 1], key[: key.find(b")") + 1]
        return key


def foreign_key(surt: bytes) -> bytes:
    """The key of an entry that is not a web capture (`dns:example.com`): itself, encoded like any key."""
    encoded = b"".join(
        bytes((byte,)) if 0x20 < byte < 0x7F and byte not in b"*" else b"%%%02x" % byte for byte in surt.lower()
    )
    return b"%%%02x" % encoded[0] + encoded[1:] if encoded[:1] in (b"!", b"@", b'"', b"#", b"{") else encoded
