"""Detection of a file's kind takes linear time in the number of its columns."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest

from recollect.formats.detect import inspect


@pytest.mark.parametrize(
    "cell", ["a\t", "url\t", "1\t", "http://a.example/\t", "a,", "time,", "a ", "2020 ", "a|", "a;"]
)
@pytest.mark.parametrize("lines", [1, 3])
def test_wide_lines_are_detected_in_linear_time(cell: str, lines: int, tmp_path: Path) -> None:
    def seconds(count: int) -> float:
        file = tmp_path / f"{count}.txt"
        file.write_text((cell * count + "\n") * lines)
        best = float("inf")
        for _ in range(3):
            started = process_time()
            inspect(str(file))
            best = min(best, process_time() - started)
        return best

    assert seconds(80_000) < 10 * max(seconds(20_000), 0.002)  # 4 where linear, 16 where quadratic
