"""A map as ordered parts, written by the tasks that made them, or joined into one file.

    map/part-00000.ukvs        the header, written by the driver
    map/part-00001.ukvs        the lines of the first range of keys
    map/part-00003-seam.ukvs   keys that were made in two ranges, which stand before the lines of the third
    map/manifest.json          {"type": "MementoMap", "keys": N, "parts": [{"name", "bytes", "keys", "first", "last"}]}

Invariant: the parts in the order of the manifest (which is that of their names as bytes), one after the other, are the
map, byte for byte. The manifest is there only when all parts are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from recollect.spark.files import Target

MANIFEST = "manifest.json"
CHUNK = 1 << 20


@dataclass(slots=True)
class Range:
    """What a task wrote: keys, bytes, first and last key; and lines of keys that other tasks also have a share of."""

    keys: int = 0
    size: int = 0
    first: bytes = b""
    last: bytes = b""
    captures: int = 0
    uri_rs: int = 0
    seams: list[bytes] = field(default_factory=list)

    def saw(self, text: bytes) -> None:
        """Take note of lines that are written."""
        self.first = self.first or text.split(None, 1)[0]
        self.last = text[text.rfind(b"\n", 0, -1) + 1 :].split(None, 1)[0]
        self.size += len(text)


def in_chunks(texts: Iterable[bytes]) -> Iterator[bytes]:
    """Texts of whole lines joined to chunks of about a megabyte."""
    held: list[bytes] = []
    size = 0
    for text in texts:
        held.append(text)
        size += len(text)
        if size >= CHUNK:
            yield b"".join(held)
            held, size = [], 0
    if size:
        yield b"".join(held)


def write_texts(spark: Any, texts: Any, target: Target) -> None:
    """Write an RDD of texts (whole lines) to the target's staging folder; runs the job."""
    rows = texts.map(lambda text: (text[:-1],))
    frame = spark.createDataFrame(rows, "value binary", verifySchema=False)
    # A cast changes no byte, and the text writer writes them as they are; tests/engines has nasty ones.
    frame.selectExpr("cast(value as string) as value").write.option("lineSep", "\n").text(target.staging)


def assemble(
    target: Target, header: bytes, ranges: dict[int, Range], seams: dict[int, tuple[bytes, int]], *, as_parts: bool
) -> int:
    """Put header, ranges and seams (by the number of the range before which they stand) together; returns the bytes."""
    entries = [_entry("part-00000.ukvs", len(header), 0, b"", b"")]
    target.put("part-00000.ukvs", header)
    staged = target.staged()
    for number in sorted({*ranges, *seams}):
        if number in seams:
            text, keys = seams[number]
            name = f"part-{number + 1:05d}-seam.ukvs"
            target.put(name, text)
            lines = text.splitlines()
            entries.append(_entry(name, len(text), keys, lines[0].split(None, 1)[0], lines[-1].split(None, 1)[0]))
        found = ranges.get(number)
        if found is not None and found.size:
            name = f"part-{number + 1:05d}.ukvs"
            target.move(staged[number], name)
            entries.append(_entry(name, found.size, found.keys, found.first, found.last))
    names = [entry["name"] for entry in entries]
    if as_parts:
        manifest = {"type": "MementoMap", "keys": sum(entry["keys"] for entry in entries), "parts": entries}
        target.put(MANIFEST, json.dumps(manifest, indent=1).encode() + b"\n")
        target.as_parts(names)
    else:
        target.as_map(names)
    return sum(int(entry["bytes"]) for entry in entries)


def _entry(name: str, size: int, keys: int, first: bytes, last: bytes) -> dict[str, Any]:
    return {
        "name": name,
        "bytes": size,
        "keys": keys,
        "first": first.decode("utf-8", "surrogateescape"),
        "last": last.decode("utf-8", "surrogateescape"),
    }
