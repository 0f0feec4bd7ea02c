"""Statistics counted in ranges between borders and put together are those of one pass, whatever lies on the borders."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.engines.spark.maps import DOMAIN, borders_between
from recollect.formats.detect import find_sources
from recollect.maps.scope import Selection
from recollect.profiles.indexes.profile import InputCounts
from recollect.profiles.indexes.runs import RunStore
from recollect.profiles.indexes.scan import ScanOptions
from recollect.profiles.indexes.select import Filter
from recollect.profiles.statistics.statranges import RangeCounts, RangeSurts, joined
from recollect.profiles.statistics.stats import stats, tables
from recollect.profiles.statistics.statscan import CaptureCounts, CountingSink, read_all
from recollect.uris import uri_key

# Names whose domains, ports and neighbours bytes interleave.
HOSTS = ["com", "com:80", "com,x", "com,x,sub", "com,x-y", "com,x:8080", "com-x,a", "com-x:1", "com1,b", "com1"]
HOSTS += [
    "uk,co,bbc",
    "uk,co,bbc,news",
    "uk,gov",
    "4,3,2,1",
    "10,0,0,1",
    "[2001:db8::1]",
    "org,a",
    "org,b",
    "xn--p1ai,a",
]
PATHS = ["/", "/a", "/a-b", "/a/1", "/a/1/2/3/4/5/6/7", "/a//b", "/b?q=1", "/b?q=2", "/b", "/A"]
LINES = st.lists(
    st.builds(
        lambda host, path, year, status: f"{host}){path} {year}0101000000 http://x/ text/html {status} D - - 1 2 f",
        st.sampled_from(HOSTS),
        st.sampled_from(PATHS),
        st.integers(1996, 1999),
        st.sampled_from(["200", "404"]),
    ),
    min_size=2,
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(LINES, st.integers(2, 8), st.integers(1, 3))
def test_ranges_together_are_the_whole(lines: list[str], ranges: int, top: int) -> None:
    keys = [uri_key(line.split(" ")[0].encode()) for line in lines]
    borders = borders_between(((key, 1) for key in sorted(keys)), ranges, DOMAIN)
    with tempfile.TemporaryDirectory() as folder:
        whole = stats([_written(folder, "whole", lines)], top=top)
        counts, tally, parts = CaptureCounts(), InputCounts(), []
        for number in range(len(borders) + 1):
            low = borders[number - 1] if number else b""
            high = borders[number] if number < len(borders) else b"\xff"
            some = [line for line, key in zip(lines, keys, strict=True) if low <= key < high]
            file = _written(folder, f"part{number}", some)
            parts.append(_counted(file, top, borders[max(number - 1, 0) : number + 1], counts, tally))
        found = tables(counts, joined(top, parts), [], tally)
    differ = ("files", "bytes", "lines")
    assert _without(found.as_dict(), differ) == _without(whole.as_dict(), differ)


def _written(folder: str, name: str, lines: list[str]) -> Path:
    file = Path(folder, f"{name}.cdx")
    file.write_text("\n".join([" CDX N b a m s k r M S V g", *lines]) + "\n")
    return file


def _counted(file: Path, top: int, borders: list[bytes], counts: CaptureCounts, tally: InputCounts) -> RangeCounts:
    store = RunStore(1 << 20, piece=256)
    sink = CountingSink(Filter(Selection()), store, None)
    with closing(sink):
        read_all(find_sources([file], tally.note), sink, ScanOptions(1), tally, None)
        seen = RangeSurts(top, borders)
        seen.read(store)
    counts.add(sink.counts)
    return seen.counted


def _without(found: dict, names: tuple[str, ...]) -> dict:
    return found | {"overview": {name: value for name, value in found["overview"].items() if name not in names}}
