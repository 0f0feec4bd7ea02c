import gzip
import json
import subprocess
import sys

import pytest

from recollect.errors import FormatError, UsageError
from recollect.formats.ukvs import read
from recollect.formats.ukvs.faults import validate
from recollect.maps import linesort
from recollect.maps.diff import diff_maps
from recollect.maps.linesort import LineSorter
from recollect.maps.merge import MergeOptions, merge_maps
from ukvs_samples import OLD_PROFILE

HEAD = '!fields {"keys": ["surt"], "values": ["frequency"]}\n'


@pytest.fixture
def merged(tmp_path):
    """The data lines of merged texts; a text may have headers of its own in front."""

    def merged(*texts, **options):
        paths = []
        for number, text in enumerate(texts):
            paths.append(tmp_path / f"{number}.ukvs")
            paths[-1].write_text(("" if text.startswith(("!fields", "@")) else HEAD) + text)
        merged.result = merge_maps(paths, tmp_path / "out.ukvs", MergeOptions(**options))
        merged.header, records = read(tmp_path / "out.ukvs")
        assert [fault for fault in validate(tmp_path / "out.ukvs") if fault.level == "error"] == []
        list(records)
        lines = (tmp_path / "out.ukvs").read_text().splitlines()
        return [line for line in lines if line[0] not in "!@"]

    return merged


def test_captures_add_and_uris_are_bounded(merged):
    assert merged("com,a)/ 5/2\ncom,b)/ 1/1\n", "com,a)/ 7/3\ncom,c)/ 4\n") == [
        "com,a)/ 12/3+",
        "com,b)/ 1/1",
        "com,c)/ 4",
    ]
    assert merged("com,a)/ 5/2\n", "com,a)/ 7/3\n", disjoint=True) == ["com,a)/ 12/5"]


def test_totals_of_wildcards_include_what_other_maps_list_below(merged):
    wide = "com,x)/* 10/4\n"
    exact = "com,x)/ 1/1\ncom,x)/a 5/2\ncom,x-y)/ 3/1\n"
    assert merged(wide, exact) == ["com,x)/ 1+/1+", "com,x)/* 16/4+", "com,x)/a 5+/2+", "com,x-y)/ 3/1"]
    nested = "com,x)/a/* 5/2\ncom,x)/a/b 3/1\n"
    assert merged(wide, nested)[0] == "com,x)/* 15/4+", "the outermost key counts for all that is in it"


def test_hosts_cover_subdomains_and_ports_but_no_neighbours(merged):
    others = "com,x)/ 1\ncom,x,y)/ 2\ncom,x-y)/ 4\ncom,x:80)/ 8\ncom,xy)/ 16\n"
    assert merged("com,x,* 100\n", others) == [
        "com,x)/ 1+",
        "com,x,* 111",
        "com,x,y)/ 2+",
        "com,x-y)/ 4",
        "com,x:80)/ 8+",
        "com,xy)/ 16",
    ]


def test_an_address_is_one_segment(merged):
    assert merged("* 9\n4,3,* 0\n", "4,3,2,1)/ 5\n") == ["* 14", "4,3,* 0", "4,3,2,1)/ 5+"]


def test_a_void_gives_way_to_what_is_held(merged):
    assert merged("com,x)/a 0\n", "com,x)/a 5/2\n") == ["com,x)/a 5/2"]
    assert merged("com,x)/a 0/20\n", "com,x)/a 0\n") == ["com,x)/a 0/20+"]


def test_a_void_is_dropped_where_another_map_may_hold_something(merged):
    assert merged("com,x)/a 0\n", "com,x)/* 5\n") == ["com,x)/* 5"]
    assert merged.result.voids_dropped == 1
    assert merged("com,x)/a/* 0\n", "com,* /\n") == ["com,* /"]
    assert merged("com,x)/a 0\ncom,x)/* 3\n", "com,x)/* 5\n") == ["com,x)/* 8"]


def test_a_void_stays_where_no_other_map_holds_anything(merged):
    assert merged("com,x)/a/* 0\n", "com,x)/a/b 5\n") == ["com,x)/a/* 0", "com,x)/a/b 5"]
    assert merged("com,x)/a 0\n", "com,* 9\ncom,x)/* 0\n") == ["com,* 9", "com,x)/* 0", "com,x)/a 0"]
    assert merged("com,x)/a 3\n", "com,* 9\ncom,x)/* 0\n") == ["com,* 12", "com,x)/* 0", "com,x)/a 3"]


def test_voids_listed_for_the_archive_stay(merged):
    voids = HEAD + '!meta {"scope": "voids"}\ncom,x)/a 0\ncom,x)/b 0\n'
    assert merged("com,x)/* 5\ncom,x)/b 2\n", voids) == ["com,x)/* 5", "com,x)/a 0", "com,x)/b 2"]
    assert "scope" not in merged.header.meta
    merged(voids, voids)
    assert merged.header.lists_voids


def test_one_uri_is_one_uri(merged):
    head = HEAD + '!meta {"policy": "URIR"}\n'
    assert merged(head + "com,x)/?a 5/1\n", head + "com,x)/?a 7/1\n") == ["com,x)/?a 12/1"]


def test_spread_counts_profiles(merged):
    assert merged("com,a)/ 5\ncom,b)/ 1\n", "com,a)/ 7\n", spread=True) == [
        'com,a)/ 12 {"spread": 2}',
        'com,b)/ 1 {"spread": 1}',
    ]
    assert merged('com,a)/ 5 {"spread": 3}\n', "com,a)/ 7\ncom,b)/ 1\n") == ['com,a)/ 12 {"spread": 4}', "com,b)/ 1"]


def test_older_profiles_merge_with_each_other_and_with_maps(merged):
    old = OLD_PROFILE.decode()
    assert merged(old, old)[0] == 'com,dilos)/region {"frequency": 28, "spread": 4}'
    assert merged.header.style == "cdxj"
    new = HEAD + '!meta {"policy": "H3P1"}\ncom,dilos)/region 6\n'
    assert merged(old, new)[0] == 'com,dilos)/region 20 {"spread": 3}'
    assert merged.header.policy == "H3P1"
    assert merged(new, new, style="cdxj") == ['com,dilos)/region {"frequency": 12}']


def test_json_blocks_merge_by_their_meaning(merged):
    first = 'com,a)/ 5/2 {"datetime": {"2014": "3/2", "2015": 2}, "note": "x", "tags": ["a"]}\n'
    second = 'com,a)/ 7/3 {"datetime": {"2015": 7}, "note": "y", "tags": ["b", "a"]}\n'
    line = merged(first, second)[0]
    assert json.loads(line.split(None, 2)[2]) == {
        "datetime": {"2014": "3/2", "2015": 9},
        "note": "x",
        "tags": ["a", "b"],
    }
    assert merged.result.conflicts == 1
    # Where a map does not decompose, the rest may lie anywhere.
    assert merged(first, "com,a)/ 7\n")[0].startswith('com,a)/ 12/2+ {"datetime": {"2014": "3+/2+", "2015": "2+"}')


def test_json_is_kept_byte_for_byte_where_nothing_changes(merged):
    odd = 'com,a)/ 5 {odd:  "spacing" ,}'
    assert merged(odd + "\n", "com,b)/ 1\n") == [odd, "com,b)/ 1"]


def test_unreadable_json_is_reported_and_the_key_kept(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text(HEAD + "com,a)/ 5 {bad\n")
    problems = []
    merge_maps([tmp_path / "a", tmp_path / "b"], tmp_path / "c", on_problem=problems.append)
    assert (tmp_path / "c").read_text().endswith("\ncom,a)/ 10\n")
    assert "bad JSON" in problems[0].reason
    with pytest.raises(FormatError, match="bad JSON"):
        merge_maps([tmp_path / "a", tmp_path / "b"], tmp_path / "d")
    assert not (tmp_path / "d").exists()


def test_key_columns_are_layers_of_their_own(merged):
    head = '!fields {"keys": ["surt", "datetime"], "values": ["frequency"]}\n'
    first = head + "com,x)/* : 9\ncom,x)/* 2014 5\ncom,x)/a 2014 2\n"
    second = head + "com,x)/a : 4\ncom,x)/a 2014 3\ncom,x)/a 2015 1\n"
    assert merged(first, second) == [
        "com,x)/* 2014 8+",
        "com,x)/* : 13+",
        "com,x)/a 2014 5",
        "com,x)/a 2015 1+",
        "com,x)/a : 4+",
    ]


def test_unsorted_maps_are_sorted_and_repeated_keys_added(merged, monkeypatch):
    assert merged("com,b)/ 1\ncom,a)/ 2\ncom,b)/ 3\n", "com,a)/ 4\n") == ["com,a)/ 6", "com,b)/ 4"]
    assert merged.result.duplicates == 1
    assert len(merged.result.sorted_first) == 1
    lines = "".join(f"com,{number * 7919 % 1000:03})/ 1\n" for number in range(1000))
    monkeypatch.setattr(linesort, "BUDGET", 5000)
    assert merged(lines) == sorted(lines.splitlines())


def test_an_output_may_take_the_place_of_an_input(tmp_path):
    old, new = tmp_path / "map.ukvs.gz", tmp_path / "new.ukvs"
    old.write_bytes(gzip.compress(b"com,a)/ 5\n"))
    new.write_text("com,b)/ 7\n")
    merge_maps([old, new], old)
    assert [record.key for record in read(old)[1]] == [b"com,a)/", b"com,b)/"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["map.ukvs.gz", "new.ukvs"]


def test_bad_lines_are_reported_once_with_their_place(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text(HEAD + "com,x)/* 1\ncom,y)/ bad\n")
    problems = []
    merge_maps([tmp_path / "a", tmp_path / "b"], tmp_path / "c", on_problem=problems.append)
    assert [(problem.file, problem.line) for problem in problems] == [(str(tmp_path / n), 3) for n in "ab"]
    with pytest.raises(FormatError, match="bad frequency"):
        merge_maps([tmp_path / "a"], tmp_path / "d")


def test_headers_merge(merged):
    first = HEAD + (
        '!id {"uri": "http://a/"}\n!meta {"name": "A", "year": 1, "same": 1, "gamma": 2.5, "page": 1}\n'
        '!meta {"counts": {"captures": 5, "uri_rs": 2, "keys": 1}, "sources": [{"name": "x"}]}\n'
        '!meta {"span": {"from": "1996", "to": "2000"}}\ncom,a)/ 5/2\n'
    )
    second = HEAD + (
        '!id {"uri": "http://a/"}\n!meta {"name": "B", "year": 2, "same": 1}\n'
        '!meta {"counts": {"captures": 7, "uri_rs": 3}, "span": {"from": "1999", "to": "2003"}}\ncom,a)/ 7/3\n'
    )
    merged(first, second, updated_at="2024-01-01T00:00:00Z")
    meta = merged.header.meta
    assert merged.header.id == {"uri": "http://a/"}
    assert meta["name"] == "A"
    assert meta["counts"] == {"captures": 12, "keys": 1}
    assert meta["span"] == {"from": "1996", "to": "2003"}
    assert [source["name"] for source in meta["sources"]] == ["x", "1.ukvs"]
    assert meta["same"] == 1
    assert meta["merged"] == [{"name": "A", "year": 1}, {"name": "B", "year": 2}]
    assert meta["updated_at"] == "2024-01-01T00:00:00Z"
    assert not {"gamma", "page", "year"} & set(meta)
    merged(first, second, disjoint=True)
    assert merged.header.meta["counts"] == {"captures": 12, "uri_rs": 5, "keys": 1}


def test_uri_rs_and_gamma_are_known_where_no_key_is_in_two_maps(merged):
    counted = HEAD + '!meta {"counts": {"captures": %d, "uri_rs": %d, "keys": 1}}\n%s\n'
    merged(counted % (5, 2, "com,a)/ 5/2"), counted % (8, 3, "com,b)/ 8/3"))
    assert merged.header.meta["counts"] == {"captures": 13, "uri_rs": 5, "keys": 2}
    assert merged.header.meta["gamma"] == 2.6
    for others in (
        (counted % (5, 2, "com,a)/ 5/2"), counted % (8, 3, "com,a)/ 8/3")),  # a key in both
        (counted % (5, 2, "com,a)/* 5/2"), counted % (8, 3, "com,a)/x 8/3")),  # a wildcard may hold the other key
        (counted % (5, 2, "com,a)/ 5/2"), HEAD + '!meta {"counts": {"captures": 8}}\ncom,b)/ 8/3\n'),  # not said
    ):
        merged(*others)
        assert "uri_rs" not in merged.header.meta["counts"] and "gamma" not in merged.header.meta


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ('!fields {"keys": ["surt", "datetime"], "values": ["frequency"]}\n', "key columns differ"),
        ('!fields {"keys": ["surt"], "values": ["frequency", "x"]}\n', "value columns differ"),
        (HEAD + '!id {"uri": "http://b/"}\n', "http://b/"),
    ],
)
def test_maps_that_do_not_belong_together_are_refused(merged, other, why):
    with pytest.raises(UsageError, match=why):
        merged(HEAD + '!id {"uri": "http://a/"}\n', other)


def test_ids_may_differ_when_one_is_given(merged):
    merged(HEAD + '!id {"uri": "http://a/"}\n', HEAD + '!id {"uri": "http://b/"}\n', archive="http://c/")
    assert merged.header.id == {"uri": "http://c/"}


def test_maps_without_frequencies_are_refused(merged):
    with pytest.raises(FormatError, match="without frequencies"):
        merged('!fields {keys: ["lname"], values: ["x"]}\na b\n')


def test_pipes_are_read_more_than_once(tmp_path):
    (tmp_path / "a").write_text("com,x)/* 5\n")
    code = "import sys; from recollect.maps.merge import merge_maps; merge_maps(['-', sys.argv[1]], sys.argv[2])"
    command = [sys.executable, "-c", code, str(tmp_path / "a"), str(tmp_path / "out")]
    subprocess.run(command, input=gzip.compress(b"com,x)/a 2\n"), check=True)
    assert (tmp_path / "out").read_text().endswith("com,x)/* 7\ncom,x)/a 2+\n")


def test_lines_of_any_number_are_sorted(tmp_path, monkeypatch):
    monkeypatch.setattr(linesort, "_FAN_IN", 3)
    lines = [b"%d" % (number * 7919 % 5003) for number in range(5003)]
    with LineSorter(tmp_path, budget=3000) as sorter:
        for line in lines:
            sorter.add(line)
        assert list(sorter) == sorted(lines)
        assert list(sorter) == sorted(lines)
        assert list(tmp_path.iterdir()) == [], "temporary files have no names"


def test_pages_are_one_map(merged):
    def page(number, lines):
        return HEAD + f'!meta {{"page": {number}, "pages": 2, "links": {{"next": "{number}"}}, "name": "A"}}\n' + lines

    first, second = page(1, "com,x)/* 10\ncom,x)/a 4\n"), page(2, "com,x)/b 5\ncom,y)/ 1\n")
    assert merged(second, first) == ["com,x)/* 10", "com,x)/a 4", "com,x)/b 5", "com,y)/ 1"]
    assert merged.header.meta == {"name": "A"}
    assert merged(first, "com,x)/b 2\n", second)[0] == "com,x)/* 12"
    with pytest.raises(UsageError, match="pages of a map are missing"):
        merged(first, "com,z)/ 2\n")


def test_damage_of_an_unsorted_map_is_reported_too(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"com,b)/ 1\ncom,a)/ 2\ncom,c)/ 3\n")[:-9])
    problems = []
    merge_maps([tmp_path / "a.gz"], tmp_path / "out", on_problem=problems.append)
    assert {problem.file for problem in problems} == {str(tmp_path / "a.gz")}
    assert "cut off" in problems[0].reason
    with pytest.raises(FormatError, match="cut off"):
        merge_maps([tmp_path / "a.gz"], tmp_path / "out")


# -- diff -------------------------------------------------------------------------------------------------


def changes(tmp_path, old, new):
    for name, text in (("old", old), ("new", new)):
        (tmp_path / name).write_text(text)
    with diff_maps(tmp_path / "old", tmp_path / "new") as found:
        return [(change.kind, b" ".join(change.keys).decode()) for change in found.changes]


def test_changes_are_found(tmp_path):
    old = 'com,a)/ 1\ncom,b)/ 2\ncom,c)/ 3\ncom,d)/ 4 {"x": 1, "y": 2}\ncom,e)/ 5 {"x": 1}\n'
    new = 'com,0)/ 1\ncom,b)/ 2\ncom,c)/ 4\ncom,d)/ 4 {y: 2, x: 1}\ncom,e)/ 5 {"x": 2}\n'
    expected = [("added", "com,0)/"), ("removed", "com,a)/"), ("changed", "com,c)/"), ("changed", "com,e)/")]
    assert changes(tmp_path, old, new) == expected
    assert changes(tmp_path, old, old) == []


def test_unsorted_maps_and_other_columns_are_compared(tmp_path):
    assert changes(tmp_path, "com,b)/ 1\ncom,a)/ 2\n", "com,a)/ 2\ncom,b)/ 1\n") == []
    head = '!fields {"keys": ["surt", "datetime"], "values": ["frequency"]}\n'
    old, new = "com,a)/ : 3\ncom,a)/ 2014 1\n", "com,a)/ 2014 1\ncom,a)/ 2015 2\ncom,a)/ : 3\n"
    assert changes(tmp_path, head + old, head + new) == [("added", "com,a)/ 2015")]
    with pytest.raises(UsageError, match="different columns"):
        changes(tmp_path, old, head + new)


def test_an_older_profile_equals_its_map(tmp_path):
    assert changes(tmp_path, 'com,a)/ {"frequency": 3}\n', "com,a)/ 3\n") == []
