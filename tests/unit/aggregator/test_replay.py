"""Which memento is tried when an archive cannot replay the closest one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from recollect.aggregator.http.replay import nearest_of_each
from recollect.formats.timemap import Memento, TimeMap, merge

START = datetime(2010, 1, 1, tzinfo=UTC)
moments = st.integers(0, 40).map(lambda days: START + timedelta(days=days))


@given(st.lists(st.tuples(st.sampled_from("abc"), moments), max_size=20), moments)
def test_the_nearest_memento_of_each_archive(held: list[tuple[str, datetime]], at: datetime) -> None:
    timemaps = [
        (
            name,
            TimeMap.of(
                [Memento(f"http://{name}.example/{n}", when) for n, (one, when) in enumerate(held) if one == name]
            ),
        )
        for name in "abc"
    ]
    found = nearest_of_each(merge(timemaps), at)
    distances = [abs(memento.captured_at - at) for memento in found]
    assert distances == sorted(distances)
    by_archive = {memento.archive: memento.captured_at for memento in found}
    assert len(by_archive) == len(found)
    assert by_archive == {
        name: min((when for one, when in held if one == name), key=lambda when: (abs(when - at), when))
        for name in {one for one, _ in held}
    }
