"""A map in arrays: its lines as columns, its keys as a tree.

Hides: the parsing of millions of lines, and the order problem: subtrees are not contiguous in byte order (see
`kernels/walk.pxd`), yet the tree is built in one pass over byte-sorted rows, without sorting them again. The text
comes from `plainmap`, mapped and not loaded.

`KeyTable` has one row per record, in file order (bytes). About 45 bytes a row. `KeyTree` has one node per host
segment, port, path root and path segment. Node 0 is the root; a parent's number is smaller than its children's, so a
loop over nodes backwards goes bottom-up. About 18 bytes a node.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.errors import FormatError, NotSorted
from recollect.kernels import lines
from recollect.kernels import walk as kernels

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class KeyTable:
    """The records of a map as columns. A count of -1 is not stated; `bounds` packs two bits for M (low) and two for
    R: 0 exact, 1 `+`, 2 `-`, 3 `~`. `tails` is where a line's JSON begins, counted from the line's start; 0 for
    none."""

    data: Bytes
    offsets: NDArray[np.int64]
    key_lengths: NDArray[np.int32]
    line_lengths: NDArray[np.int32]
    uri_m: NDArray[np.int64]
    uri_r: NDArray[np.int64]
    bounds: NDArray[np.uint8]
    tails: NDArray[np.int32]
    wild: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.offsets)

    def key(self, row: int) -> bytes:
        """The key of a row."""
        start = int(self.offsets[row])
        return self.data[start : start + int(self.key_lengths[row])].tobytes()

    @property
    def void(self) -> NDArray[np.bool_]:
        """Rows whose frequency is a void: URI-Ms exactly 0 (`0`, `0-`, `0/20`)."""
        low = self.bounds & 3
        void: NDArray[np.bool_] = (self.uri_m == 0) & ((low == lines.EXACT) | (low == lines.AT_MOST))
        return void


@dataclass(frozen=True, slots=True)
class KeyTree:
    """The tree over a table. `kind` is ROOT, HOST, ADDRESS, PORT or PATH of `kernels.walk`; `depth` counts
    from 1 in hosts and again from 1 (the root of a host's paths) in paths; `row` is a row whose key begins with the
    node's name."""

    table: KeyTable
    parent: NDArray[np.int32]
    row: NDArray[np.int32]
    name_length: NDArray[np.int32]
    kind: NDArray[np.uint8]
    depth: NDArray[np.uint8]
    node_of: NDArray[np.int32]  # the node of each row: its exact key or, where `table.wild`, its wildcard

    def __len__(self) -> int:
        return len(self.parent)

    def name(self, node: int) -> bytes:
        """`com,x`, `com,x)` (the root of its paths), `com,x)/a`; empty for the root."""
        if node == 0:
            return b""
        start = int(self.table.offsets[self.row[node]])
        return self.table.data[start : start + int(self.name_length[node])].tobytes()

    def wildcard(self, node: int) -> bytes:
        """The key that covers a node and all below it."""
        if node == 0:
            return b"*"
        return self.name(node) + (b"/*" if self.kind[node] == kernels.PATH else b",*")


def table_of(data: Bytes, *, name: str = "") -> KeyTable:
    """The table of a map's text; raises NotSorted or FormatError with the line where the text is not plain and
    sorted."""
    count = lines.count_lines(data, 0, len(data))
    offsets = np.empty(count, np.int64)
    key_lengths = np.empty(count, np.int32)
    line_lengths = np.empty(count, np.int32)
    uri_m = np.empty(count, np.int64)
    uri_r = np.empty(count, np.int64)
    bounds = np.empty(count, np.uint8)
    tails = np.empty(count, np.int32)
    wild = np.empty(count, np.bool_)
    rows, status, at = kernels.scan_table(
        data, offsets, key_lengths, line_lengths, uri_m, uri_r, bounds, tails, wild.view(np.uint8)
    )
    if status:
        line = lines.count_lines(data, 0, at) + 1
        where = f"{name or 'map'}:{line}"
        if status == lines.IRREGULAR:
            raise FormatError("a line that is not a plain record", where=where)
        raise NotSorted("keys out of order or repeated", where=where, hint="recollect merge sorts and joins them")
    return KeyTable(
        data,
        offsets[:rows],
        key_lengths[:rows],
        line_lengths[:rows],
        uri_m[:rows],
        uri_r[:rows],
        bounds[:rows],
        tails[:rows],
        wild[:rows],
    )


def tree_of(table: KeyTable, *, max_host_depth: int = 0, max_path_depth: int = 0) -> KeyTree:
    """The tree of a table's keys; 0 means no limit of depth, else what lies deeper is one last segment."""
    no_limit = np.iinfo(np.int64).max
    capacity = len(table) + len(table) // 2 + 1024
    while True:
        parent = np.empty(capacity, np.int32)
        row = np.empty(capacity, np.int32)
        name_length = np.empty(capacity, np.int32)
        kind = np.empty(capacity, np.uint8)
        depth = np.empty(capacity, np.uint8)
        node_of = np.empty(len(table), np.int32)
        nodes = kernels.build_tree(
            table.data,
            table.offsets,
            table.key_lengths,
            max_host_depth or no_limit,
            max_path_depth or no_limit,
            parent,
            row,
            name_length,
            kind,
            depth,
            node_of,
        )
        if nodes >= 0:
            break
        capacity *= 2
    return KeyTree(table, parent[:nodes], row[:nodes], name_length[:nodes], kind[:nodes], depth[:nodes], node_of)
