"""Tables of written cases: one case a line, columns by tabs, `# heading` lines between groups.

`\\t \\n \\r \\\\ \\0 \\xNN \\uNNNN` stand for characters (`\\0` for nothing at all), `‹text*N›` for N times a text.
"""

from __future__ import annotations

import re
from pathlib import Path

_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|(.))")
_PLAIN = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\", "0": ""}
_TIMES = re.compile(r"‹(.+?)\*(\d+)›")


def read_table(path: Path) -> dict[str, list[tuple[str, ...]]]:
    """The rows of a table by their heading."""
    groups: dict[str, list[tuple[str, ...]]] = {}
    heading = ""
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("# "):
            heading = line[2:]
        elif line:
            groups.setdefault(heading, []).append(tuple(_decode(column) for column in line.split("\t")))
    return groups


def _decode(column: str) -> str:
    text = _TIMES.sub(lambda match: match[1] * int(match[2]), column)
    return _ESCAPE.sub(
        lambda match: chr(int(match[1] or match[2], 16)) if match[1] or match[2] else _PLAIN[match[3]], text
    )
