"""A file read in splits gives every line once, wherever borders lie: inside lines, at their ends, in the longest."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recollect.engines.spark.maps import _ReadTask, _Split
from recollect.formats.detect import Kind, Source
from recollect.profiles.indexes.scan import ScanOptions, scan, scan_range

LENGTHS = st.sampled_from([1, 2, 20, 70, 300, 5000])
LINES = st.lists(st.tuples(LENGTHS, st.sampled_from(["\n", "\r\n", "\n\n"])), min_size=1, max_size=12)


@settings(max_examples=100, deadline=None)
@given(LINES, st.sampled_from([1, 7, 64, 100, 1000]), st.booleans(), st.booleans())
# Longer than a split and all that is read beyond its end.
@example([(1, "\n"), (300_000, "\n"), (5, "\r\n")], 10_000, True, False)
@example([(150_000, "\n"), (150_000, "\n")], 30_000, False, False)
def test_splits_of_an_index_are_the_whole(lines: list[tuple[int, str]], size: int, last: bool, bom: bool) -> None:
    text = "\ufeff" * bom + "".join(
        f'com,x{number})/ 20100101000000 {{"status": "200", "filename": "{"a" * length}"}}{end}'
        for number, (length, end) in enumerate(lines)
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "index.cdxj")
        file.write_bytes(text.encode() if last else text.rstrip().encode())
        source = Source(str(file), Kind.CDXJ, size=file.stat().st_size)
        whole = _seen(scan([source], _surts, ScanOptions(1)))
        assert source.size is not None
        step = max(size, source.size // 300)
        parts = [
            _seen(scan_range(source, start, min(start + step, source.size), _surts, ScanOptions(1)))
            for start in range(0, source.size, step)
        ]
    assert len(whole[0]) == len(lines)
    assert not whole[2]
    assert [surt for part in parts for surt in part[0]] == whole[0]
    assert sum(part[1] for part in parts) == whole[1]
    assert not [problem for part in parts for problem in part[2]]


def _surts(batch: Any) -> list[bytes]:
    return [batch.capture_at(line).surt for line in np.flatnonzero(batch.alive).tolist()]


def _seen(pieces: Any) -> tuple[list[bytes], int, list[Any]]:
    found = list(pieces)
    surts = [surt for piece in found for result in piece.results for surt in result]
    return surts, sum(piece.lines for piece in found), [problem for piece in found for problem in piece.problems]


@settings(max_examples=100, deadline=None)
@given(st.lists(LENGTHS, min_size=1, max_size=12), st.sampled_from([1, 7, 64, 1000]), st.sampled_from([16, 4096]))
def test_splits_of_a_map_are_the_whole(lengths: list[int], size: int, block: int) -> None:
    lines = [b"com,x%d)/%s 1/1\n" % (number, b"a" * length) for number, length in enumerate(lengths)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "map.ukvs")
        file.write_bytes(b"".join(lines).rstrip())
        total = file.stat().st_size
        task = _ReadTask(block, None)
        step = max(size, total // 300)
        splits = [_Split(0, 0, str(file), start, min(start + step, total)) for start in range(0, total, step)]
        texts = [text for split in splits for text in task._texts(split)]
    assert b"".join(texts) == b"".join(lines)
    assert all(text.endswith(b"\n") for text in texts)
