"""What a tradeoff says of weights is what compaction by weights does."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from map_trees import holdings, write_map
from recollect.formats.frequency import Frequency
from recollect.profiles.compaction.budget import Case, opened
from recollect.profiles.compaction.tradeoff import Point, by_weights, knee_of
from recollect.profiles.compaction.weights import Weights, compact_by_weights

weights = st.sampled_from([0.0, 0.05, 0.1, 0.2, 0.5, 1.0])


@given(holdings(voids=False, wildcards=False), weights, weights)
def test_weights_give_as_many_keys_as_compaction_by_weights(
    records: dict[bytes, Frequency], host: float, path: float
) -> None:
    with TemporaryDirectory() as folder:
        source = write_map(Path(folder) / "map.ukvs", records)
        made = compact_by_weights(source, Path(folder) / "small.ukvs", Weights(host, path, max_host_depth=12))
        with opened(source) as (_, branches):
            point = by_weights(Case(branches), lambda _: 0.25, Weights(host, path, max_host_depth=12))
    assert (point.keys, point.accuracy) == (made.keys_out, 0.75)


def test_the_knee_is_where_the_curve_stands_out_most() -> None:
    accuracies = (0.2, 0.8, 0.9, 0.95, 1.0)
    points = [Point(10**n, 10.0 ** (n - 5), right) for n, right in enumerate(accuracies)]
    assert knee_of(points) == points[1]
    assert knee_of(points[:2]) is None
    assert knee_of([Point(1, 0.1, 1.0)] * 3) is None
