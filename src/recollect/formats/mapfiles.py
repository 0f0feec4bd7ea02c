"""Whether a file that is named as a map can be one. Separate from `detect`, which knows every kind of input and takes
ten times as long to import: a map that names its columns, as nearly all do, needs nothing of it.
"""

from __future__ import annotations

from pathlib import Path

from recollect.errors import UsageError
from recollect.formats.containers import open_input
from recollect.formats.filters import is_filter

HEAD, SAMPLE = 1 << 16, 40  # bytes and lines to look at


def expect_map(path: str) -> None:
    """Raise UsageError if a file is an index, whose times would be read as frequencies, or certainly not a map, which
    would answer no to everything."""
    if path == "-" or not Path(path).is_file():
        return
    with open_input(path, lambda _damage: None) as stream:
        head = stream.preview(HEAD, SAMPLE)
    if b"!fields" in head or b"!meta" in head:
        return
    from recollect.formats.detect import INDEXES, Kind, kind_of_text, not_a_map

    kind, layout = kind_of_text(head)
    if kind in INDEXES or (kind is Kind.CDX and len(layout.letters) >= 9):
        hint = f"recollect profile {path} -o map.ukvs"
        raise UsageError(f"{kind} where a map is expected", where=path, hint=hint)
    if head and (other := not_a_map(path)) and not is_filter(path):
        raise UsageError("not a map", where=path, why=other, hint=f"recollect inspect {path}")
