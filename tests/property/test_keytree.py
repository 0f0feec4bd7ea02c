"""The tree of a map's keys, built in one pass over byte order, has the ancestors that lookup has."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from map_trees import above, holdings
from recollect.formats.frequency import Frequency
from recollect.profiles.compaction.keytable import table_of, tree_of


@given(holdings())
def test_every_key_hangs_below_the_wildcards_that_cover_it(records: dict[bytes, Frequency]) -> None:
    text = b"".join(key + b" " + str(records[key]).encode() + b"\n" for key in sorted(records))
    table = table_of(np.frombuffer(text, np.uint8))
    tree = tree_of(table)
    assert [table.key(row) for row in range(len(table))] == sorted(records)
    names = [tree.wildcard(node) for node in range(len(tree))]
    assert len({*names}) == len(names)
    for row in range(len(table)):
        key = table.key(row)
        node, chain = int(tree.node_of[row]), []
        while node >= 0:
            assert tree.parent[node] < node
            chain.append(names[node])
            node = int(tree.parent[node])
        assert chain == above(key)
        assert bool(table.wild[row]) == key.endswith(b"*")
        assert bool(table.void[row]) == records[key].is_void
        value, bound = records[key].uri_m.value, records[key].uri_m.bound
        assert table.uri_m[row] == (-1 if value is None else value)
        assert ["", "+", "-", "~"][table.bounds[row] & 3] == bound
