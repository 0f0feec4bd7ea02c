"""A map as ordered parts, written by the tasks that made them, or joined into one file.

    map/part-00000.ukvs        the header, written by the driver
    map/part-00001.ukvs        the lines of the first range of keys
    map/part-00003-seam.ukvs   keys that were made in two ranges, which stand before the lines of the third
    map/manifest.json          {"type": "MementoMap", "keys": N, "parts": [{"name", "bytes", "keys", "first", "last"}]}

By URL the names are others (see `targets`). Invariant: the parts in the order of the manifest (which is that of their
names as bytes), one after the other, are the map, byte for byte. The manifest is there only when all parts are.
"""

from __future__ import annotations

from recollect.engines.plan import Range
from recollect.engines.spark.staging import Piece, Target


def assemble(target: Target, header: bytes, ranges: dict[int, Range], seams: dict[int, tuple[bytes, int]]) -> int:
    """Make a map of what the target received, with its header; returns the bytes."""
    pieces = pieces_of(header, ranges, seams)
    target.commit(pieces)
    return sum(piece.size for piece in pieces)


def pieces_of(header: bytes, ranges: dict[int, Range], seams: dict[int, tuple[bytes, int]]) -> list[Piece]:
    """Header, ranges and seams (by the number of the range before which they stand) in their order."""
    pieces = [Piece(0, "header", len(header), 0, text=header)]
    for number in sorted({*ranges, *seams}):
        if number in seams:
            text, keys = seams[number]
            lines = text.splitlines()
            first, last = lines[0].split(None, 1)[0], lines[-1].split(None, 1)[0]
            pieces.append(Piece(number, "seam", len(text), keys, first, last, text))
        found = ranges.get(number)
        if found is not None and found.size:
            pieces.append(Piece(number, "", found.size, found.keys, found.first, found.last))
    return pieces
