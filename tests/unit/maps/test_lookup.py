"""What a map says of a URI, beyond keys: times, policies, voids, versions, threads."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from recollect.errors import BadURI, FormatError, RecollectError
from recollect.formats.blockwriter import BGZF, ZSTD_SEEKABLE, BlockWriter
from recollect.formats.containers import atomic_output, open_input
from recollect.maps.filters import make_filter
from recollect.maps.lookup import MapSet, MementoMap, open_map, period_of

FIELDS = '!fields {"keys": ["surt"], "values": ["frequency"]}\n'


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_uri_and_its_surt_have_one_answer(tmp_path: Path) -> None:
    opened = MementoMap.open(write(tmp_path / "m.ukvs", "com,example)/a 3/1\n"))
    for uri in (
        "http://example.com/a",
        "https://www.example.com/a/?q=1#f",
        "com,example)/a",
        "http://(com,example,)/a",
    ):
        found = opened.lookup(uri)
        assert (found.key, str(found.frequency), found.answer) == (b"com,example)/a", "3/1", "yes")


def test_a_key_that_an_index_spelled_with_www_is_found(tmp_path: Path) -> None:
    opened = MementoMap.open(write(tmp_path / "m.ukvs", "com,example,www)/a 3/1\n"))
    assert opened.lookup("http://www.example.com/a").answer == "yes"
    assert opened.lookup("http://example.com/a").answer == "no"


def test_what_one_spelling_holds_is_not_hidden_by_a_void_of_another(tmp_path: Path) -> None:
    opened = MementoMap.open(write(tmp_path / "m.ukvs", "com,example)/a 0\ncom,example,www)/* 5\n"))
    assert opened.lookup("http://www.example.com/a").answer == "yes"
    assert opened.lookup("http://example.com/a").answer == "no"


@pytest.mark.parametrize(
    ("frequency", "answer"),
    [
        ("5", "yes"),
        ("0", "no"),
        ("0/20", "no"),
        ("0-", "no"),
        ("/", "unknown"),
        ("/3", "yes"),
        ("0+", "yes"),
        ("1~", "yes"),
    ],
)
def test_the_answer_follows_from_the_frequency(tmp_path: Path, frequency: str, answer: str) -> None:
    opened = MementoMap.open(write(tmp_path / "m.ukvs", f"com,x)/* {frequency}\n"))
    assert opened.lookup("http://x.com/a").answer == answer


def test_what_a_map_of_voids_does_not_name_is_unknown(tmp_path: Path) -> None:
    opened = MementoMap.open(write(tmp_path / "m.ukvs", '!meta {"scope": "voids"}\ncom,x)/a/* 0\n'))
    assert opened.lookup("http://x.com/a/b").answer == "no"
    assert opened.lookup("http://x.com/b").answer == "unknown"


def test_what_is_not_a_uri_raises_alone_and_is_unknown_in_a_stream(tmp_path: Path) -> None:
    opened = MementoMap.open(write(tmp_path / "m.ukvs", "com,x)/ 1\n"))
    with pytest.raises(BadURI):
        opened.lookup("::::")
    found = list(opened.lookup_many(["http://x.com/", "::::", "http://y.com/"]))
    assert [one.answer for one in found] == ["yes", "unknown", "no"]


def test_a_policy_maps_the_uri_first(tmp_path: Path) -> None:
    opened = MementoMap.open(write(tmp_path / "m.ukvs", '!meta {"policy": "HxP1"}\ncom,x)/a 3\norg,y)/ 1\n'))
    assert opened.lookup("http://x.com/a/b/c").key == b"com,x)/a"
    assert opened.lookup("http://x.com/b").answer == "no"
    whole = MementoMap.open(write(tmp_path / "u.ukvs", '!meta {"policy": "URIR"}\ncom,x)/a?q=1 3\n'))
    assert whole.lookup("http://x.com/a?q=1").answer == "yes"
    assert whole.lookup("http://x.com/a?q=2").answer == "no"


def test_times_in_json_blocks(tmp_path: Path) -> None:
    block = '{"datetime": {"2014": "5/2", "2016": 3, "-": "1/1"}}'
    opened = MementoMap.open(write(tmp_path / "m.ukvs", f"com,x)/a 9/2 {block}\ncom,x)/b 4\n"))
    assert str(opened.lookup("http://x.com/a").frequency) == "9/2"
    # One capture has no time, so it may be of any.
    assert str(opened.lookup("http://x.com/a", at=period_of("2014")).frequency) == "6/2+"
    assert opened.lookup("http://x.com/a", at=period_of("2015")).answer == "yes"
    assert str(opened.lookup("http://x.com/b", at=period_of("1999")).frequency) == "4"


def test_times_in_a_key_column(tmp_path: Path) -> None:
    text = '!fields {"keys": ["surt", "datetime"], "values": ["frequency"]}\n'
    text += "com,x)/a 2014 5/2\ncom,x)/a 201603:201605 3/1\ncom,x)/a : 8/2\ncom,x)/b 2014 1/1\ncom,x)/b 2015 1/1\n"
    opened = MementoMap.open(write(tmp_path / "m.ukvs", text))
    assert str(opened.lookup("http://x.com/a").frequency) == "8/2"
    assert str(opened.lookup("http://x.com/b").frequency) == "2/1+"
    assert str(opened.lookup("http://x.com/a", at=period_of("2014-05")).frequency) == "5/2"
    assert str(opened.lookup("http://x.com/a", at=period_of("2016-04-30T12:00:00Z")).frequency) == "3/1"
    assert opened.lookup("http://x.com/a", at=period_of("2015")).answer == "no"
    assert str(opened.lookup("http://x.com/a", at=period_of("2010:2020")).frequency) == "8/2+"


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2014", "20140000000000", "20149999999999"),
        ("2014-06:2016", "20140600000000", "20169999999999"),
        ("2014-06-01T12:30:00Z", "20140601123000", "20140601123000"),
        (":2014", "00000000000000", "20149999999999"),
    ],
)
def test_periods_as_people_write_them(text: str, first: str, last: str) -> None:
    assert tuple(period_of(text)) == (first, last)


def test_an_older_profile_with_frequencies_in_json_is_searched(tmp_path: Path) -> None:
    text = '@context http://x/\n@keys ["surt"]\n1,2,3,4)/ {"frequency": 2}\ncom,x)/* {"frequency": 7}\n'
    assert MementoMap.open(write(tmp_path / "m.cdxj", text)).lookup("http://x.com/q").key == b"com,x)/*"
    with atomic_output(tmp_path / "m.cdxj.gz") as out:
        out.write(text.encode())
    packed = MementoMap.open(tmp_path / "m.cdxj.gz")
    assert packed.lookup("http://4.3.2.1/").key == b"1,2,3,4)/"
    assert str(packed.lookup("http://x.com/q").frequency) == "7"


def test_a_folder_of_parts_is_one_map(tmp_path: Path) -> None:
    write(tmp_path / "one.ukvs", FIELDS + "com,* 9\ncom,a)/x 1\n")
    write(tmp_path / "two.ukvs", FIELDS + "com,a)/y/* 0\norg,b)/ 1\n")
    with pytest.raises(RecollectError, match="no map in this folder"):
        MementoMap.open(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps({"parts": [{"path": "one.ukvs"}, "two.ukvs"]}))
    opened = MementoMap.open(tmp_path)
    found = [opened.lookup(uri) for uri in ("http://a.com/x", "http://a.com/y/z", "http://q.com/", "http://b.org/")]
    assert [(one.key, one.answer) for one in found] == [
        (b"com,a)/x", "yes"),
        (b"com,a)/y/*", "no"),
        (b"com,*", "yes"),
        (b"org,b)/", "yes"),
    ]


def test_a_map_of_other_things_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "m.ukvs", '!fields {"keys": ["language"], "values": ["frequency"]}\nen 5\n')
    with pytest.raises(FormatError, match="not of SURTs"):
        MementoMap.open(path)


def test_a_map_is_swapped_while_readers_of_the_old_one_go_on(tmp_path: Path) -> None:
    path = write(tmp_path / "m.ukvs", "com,x)/ 1\n")
    filtered = tmp_path / "f.filter"
    make_filter(path, filtered)
    maps = MapSet({"a": path, "f": filtered})
    assert {name: one.answer for name, one in maps.lookup("http://x.com/").items()} == {"a": "yes", "f": "yes"}
    old = maps.maps
    write(tmp_path / "new", "com,y)/ 1\n")
    (tmp_path / "new").replace(path)
    assert maps.lookup("http://x.com/")["a"].answer == "yes"
    assert maps.refresh() == ["a"]
    assert maps.refresh() == []
    assert maps.lookup("http://x.com/")["a"].answer == "no"
    assert maps.lookup("http://y.com/")["a"].answer == "yes"
    assert old["a"].lookup("http://x.com/").answer == "yes"


def test_a_broken_new_version_leaves_the_old_one_in_place(tmp_path: Path) -> None:
    path = write(tmp_path / "m.ukvs", "com,x)/ 1\n")
    maps = MapSet({"a": path})
    write(tmp_path / "new", '!fields {"keys": ["language"], "values": ["frequency"]}\nen 5\n')
    (tmp_path / "new").replace(path)
    with pytest.raises(FormatError):
        maps.refresh()
    assert maps.lookup("http://x.com/")["a"].answer == "yes"


@pytest.mark.parametrize("suffix", ["", ".zst"])
def test_a_closed_map_does_not_answer(tmp_path: Path, suffix: str) -> None:
    with atomic_output(tmp_path / f"m.ukvs{suffix}") as out:
        out.write(b"com,x)/ 1\n")
    with MementoMap.open(tmp_path / f"m.ukvs{suffix}") as opened:
        assert opened.lookup("http://x.com/").answer == "yes"
    with pytest.raises((RecollectError, OSError)):
        opened.lookup("http://x.com/")
    with pytest.raises((RecollectError, OSError)):
        list(opened.lookup_many(["http://x.com/"]))


def test_threads_and_tasks_may_share_a_map(tmp_path: Path) -> None:
    lines = "".join(f"com,x)/{number:05} {number + 1}\n" for number in range(20_000))
    write(tmp_path / "m.ukvs", lines)
    with atomic_output(tmp_path / "m.ukvs.zst") as out:
        out.write(lines.encode())
    for name in ("m.ukvs", "m.ukvs.zst"):
        opened = open_map(tmp_path / name)

        def work(start: int, opened: object = opened) -> bool:
            assert isinstance(opened, MementoMap)
            numbers = range(start, 20_000, 97)
            found = [opened.lookup(f"http://x.com/{number:05}") for number in numbers]
            return [str(one.frequency) for one in found] == [str(number + 1) for number in numbers]

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(work, range(16)))

        async def together(work: object = work) -> bool:
            assert callable(work)
            return all(await asyncio.gather(*(asyncio.to_thread(work, start) for start in range(4))))

        assert asyncio.run(together())


@pytest.mark.parametrize("count", [300, 400_000])
def test_a_map_that_is_not_sorted_is_put_in_order_for_the_search(tmp_path: Path, count: int) -> None:
    keys = [f"com,x)/{number:06}" for number in range(count)]
    # As sorting by letters alone, in some locales, or cutting queries off sorted SURTs leaves them.
    swapped = [keys[number ^ 1 if number % 10 < 2 else number] for number in range(count)]
    write(tmp_path / "m.ukvs", "".join(f"{key} 1\n" for key in swapped))
    opened = MementoMap.open(tmp_path / "m.ukvs")
    assert {found.answer for found in opened.lookup_many(keys[:2000])} == {"yes"}
    assert opened.lookup("com,x)/absent").answer == "no"


@pytest.mark.parametrize("blocks", [BGZF, ZSTD_SEEKABLE], ids=["bgzf", "zstd"])
@pytest.mark.parametrize("count", [3, 200_000], ids=["small", "sampled"])
def test_a_compressed_map_of_another_maker_that_is_not_sorted_is_put_in_order(
    tmp_path: Path, blocks: str, count: int
) -> None:
    keys = [f"com,x{number * 2654435761 % 2**32:08x})/a{number}" for number in range(count)]
    path = tmp_path / "m.ukvs"
    with path.open("wb") as raw:
        out = BlockWriter(raw, blocks)
        out.write("".join(f"{key} 1\n" for key in keys).encode())
        out.finish()
    with MementoMap.open(path) as opened:
        assert [key for key in keys[:: max(1, count // 100)] if opened.lookup(key).answer != "yes"] == []
        assert opened.lookup("com,y)/").answer == "no"


def test_records_of_one_key_may_be_in_two_parts(tmp_path: Path) -> None:
    fields = '!fields {"keys": ["surt", "datetime"], "values": ["frequency"]}\n'
    write(tmp_path / "part-0.ukvs", f"{fields}com,x)/a 2014 3\n")
    write(tmp_path / "part-1.ukvs", f"{fields}com,x)/a 2015 2\n")
    with MementoMap.open(tmp_path) as opened:
        found = {year: opened.lookup("com,x)/a", at=period_of(year)).answer for year in ("2013", "2014", "2015")}
        assert found == {"2013": "no", "2014": "yes", "2015": "yes"}
        assert str(next(opened.lookup_many(["com,x)/a"])).frequency) == "5"


def test_parts_with_headers_of_their_own_and_no_last_newline_are_one_map(tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    write(parts / "part-0.ukvs", FIELDS + "com,x)/a 1")
    write(parts / "part-1.ukvs", "")
    write(parts / "part-2.ukvs", FIELDS + "com,x)/b 2\ncom,x)/c 3")
    with open_input(parts) as whole:
        assert whole.read().decode() == FIELDS + "com,x)/a 1\ncom,x)/b 2\ncom,x)/c 3"
