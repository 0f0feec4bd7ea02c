import gzip
import subprocess

import pytest

from recollect.errors import FormatError, NotSorted
from recollect.formats.frequency import Frequency
from recollect.formats.ukvs import Header, Period, Record, Writer, lenient, open_map, quote, read, unquote
from ukvs_samples import FIGURE_2, OLD_PROFILE, UKVS_TEXT


def records_of(path, **options):
    header, records = read(path, **options)
    return header, list(records)


@pytest.fixture
def write(tmp_path):
    def write(text, name="map.ukvs"):
        path = tmp_path / name
        path.write_bytes(text)
        return path

    return write


# -- headers ----------------------------------------------------------------------------------------------


def test_figure_2_of_the_paper(write):
    header, records = records_of(write(FIGURE_2))
    assert header.keys == ("surt",)
    assert header.values == ("frequency",)
    assert header.id == {"uri": "https://archive.example.org/"}
    assert header.meta == {
        "name": "Example Archive",
        "year": 1996,
        "type": "MementoMap",
        "updated_at": "2018-09-03T13:27:52Z",
    }
    assert [(r.key, str(r.frequency)) for r in records] == [
        (b"*", "54321/20000"),
        (b"com,*", "10000+"),
        (b"org,arxiv)/", "100"),
        (b"org,arxiv)/*", "2500~/900"),
        (b"org,arxiv)/pdf/*", "0"),
        (b"uk,co,bbc)/images/*", "300+/20-"),
    ]


def test_keys_and_values_by_fields(write):
    header, records = records_of(write(UKVS_TEXT["people"]))
    assert header.keys == ("lname", "fname")
    assert records[0].keys == (b"Doe", b"Jane")
    assert [unquote(token) for token in records[1].values] == ["Masters", "Business Consultant"]
    assert records[2].json == '{dob: "May 7, 1920", awards: ["Fiction 42", "Mad Scientist"]}'
    assert records[3].values == (b"-", b"Assistant")


def test_profiles_of_the_older_kind(write):
    header, records = records_of(write(OLD_PROFILE))
    assert header.style == "cdxj"
    assert header.policy == "H3P1"
    assert header.id == {"uri": "http://www.webarchive.org.uk/ukwa/"}
    assert header.meta["name"] == "UKWA 1996 Collection"
    assert [(r.key, str(r.frequency)) for r in records][:2] == [
        (b"com,dilos)/region", "14"),
        (b"edu,orst)/groups", "3"),
    ]
    assert records[0].json == '{"frequency": 14, "spread": 2}'


def test_columns_are_guessed_where_no_header_names_them(write):
    assert records_of(write(b"com,a)/ 5\n"))[0].values == ("frequency",)
    header, records = records_of(write(b'com,a)/ {"frequency": "5+/2"}\n'))
    assert header.values == ()
    assert str(records[0].frequency) == "5+/2"
    assert records_of(write(b"@id http://a/\ncom,a)/ 5\n"))[0].values == ("frequency",)


def test_repeated_headers_merge(write):
    text = (
        b'!context ["a"]\n!context ["b", "a"]\n!meta {x: 1, y: {z: 1}}\n!meta {x: 2}\n!fields {keys: ["surt"]}\n'
        b'!fields {values: ["frequency", "spread"]}\n!note one\n!note {"two": 2}\ncom,a)/ 5 2\n'
    )
    header, records = records_of(write(text))
    assert header.context == ("a", "b")
    assert header.meta == {"x": 2, "y": {"z": 1}}
    assert header.values == ("frequency", "spread")
    assert header.other == {"note": {"two": 2}}
    assert records[0].values == (b"2",)


def test_headers_are_written_strictly_and_sorted(write):
    header = Header(id={"uri": "http://a/"}, meta={"type": "MementoMap", "name": "Ä"}, other={"note": "x"})
    lines = header.encode().split(b"\n")
    assert lines == [*sorted(lines[:-1]), b""]
    assert b'!meta {"name": "\xc3\x84"}' in lines
    back = records_of(write(header.encode()))[0]
    assert back == header


@pytest.mark.parametrize(
    "line",
    [b"!", b"! ", b"!meta {", b"!fields []", b"!fields {keys: []}", b'!fields {keys: "surt"}', b"!fields", b"!id \xff"],
)
def test_broken_headers_are_named_with_their_line(write, line):
    path = write(b"!meta {a: 1}\n" + line + b"\ncom,a)/ 5\n")
    with pytest.raises(FormatError, match=r"map\.ukvs:2"):
        open_map(path)
    problems = []
    header, records = records_of(path, on_problem=problems.append)
    assert [problem.line for problem in problems] == [2]
    assert header.meta == {"a": 1}
    assert len(records) == 1


# -- lenient JSON -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("{a: 1, b_c-d.e: [1, 2,], }", {"a": 1, "b_c-d.e": [1, 2]}),
        ("{'a': 'it\\'s \"so\"'}", {"a": 'it\'s "so"'}),
        ('{2014: "20~/10"}', {"2014": "20~/10"}),
        ("{a : \"x: {y}, 'z'\"}", {"a": "x: {y}, 'z'"}),
        ("{true: true, null: null}", {"true": True, "null": None}),
        ('{a: "\\u00e9"}', {"a": "é"}),
        ("5", 5),
    ],
)
def test_lenient_json(text, value):
    assert lenient.loads(text) == value
    assert lenient.loads(text.encode()) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{a}",
        "{a: b}",
        "{a: 1} x",
        "[1 2]",
        "{'a: 1}",
        '{"a: 1}',
        "NaN",
        "{a: Infinity}",
        "[,]",
        "{:1}",
        "[" * 100_000,
    ],
)
def test_what_is_not_json(text):
    with pytest.raises(FormatError, match="bad JSON"):
        lenient.loads(text)


# -- records ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"com,b)/", "wrong field count: 1"),
        (b"com,b)/ 1 2", "wrong field count: 3"),
        (b"com,b)/ {}", "wrong field count: 1"),
        (b"com,b)/ x", "bad frequency"),
        (b'"com,b)/ 5', "bad quotes"),
        (b'"com,b)/"x 5', "bad quotes"),
        (b"!meta {a: 1}", "header after data"),
        (b"@about {}", "header after data"),
        (b"# words", "comment after data"),
    ],
)
def test_bad_lines_are_named_and_skipped(write, line, reason):
    path = write(b"com,a)/ 1\n" + line + b"\ncom,c)/ 3\n")
    problems = []
    _, records = records_of(path, on_problem=problems.append)
    assert [record.key for record in records] == [b"com,a)/", b"com,c)/"]
    assert [(problem.file, problem.line) for problem in problems] == [(str(path), 2)]
    assert reason in problems[0].reason
    with pytest.raises(FormatError, match=r"map\.ukvs:2"):
        records_of(path)


@pytest.mark.parametrize(
    "text",
    [
        b"com,a)/ 1\ncom,b)/ 2\n",
        b"com,a)/ 1\ncom,b)/ 2",
        b"com,a)/ 1\r\ncom,b)/ 2\r\n",
        b"\xef\xbb\xbfcom,a)/ 1\ncom,b)/ 2\n",
        b"\n\n  com,a)/\t \t1  \n\ncom,b)/ 2 \t\n\n",
        b"# by hand\ncom,a)/ 1\ncom,b)/ 2\n",
    ],
    ids=["plain", "no final newline", "CRLF", "byte-order mark", "white space", "comment"],
)
def test_harmless_differences_are_read_over(write, text):
    assert [(r.key, str(r.frequency)) for r in records_of(write(text))[1]] == [(b"com,a)/", "1"), (b"com,b)/", "2")]


def test_json_blocks_are_kept_byte_for_byte(write, tmp_path):
    block = b'{ odd:  \'spacing\', "b": [1,2 , ] , \xc3\xa9: "\xff"}'
    path = write(b"com,a)/ 5 " + block + b"  \r\ncom,b)/ 6\n")
    header, records = records_of(path)
    assert records[0].json.encode("utf-8", "surrogateescape") == block
    with Writer(tmp_path / "out.ukvs", header) as writer:
        for record in records:
            writer.write(record)
    assert (tmp_path / "out.ukvs").read_bytes().endswith(b"com,a)/ 5 " + block + b"\ncom,b)/ 6\n")


def test_unsorted_maps_are_noticed_when_asked(write):
    path = write(b"com,b)/ 1\ncom,a)/ 2\n")
    with pytest.raises(NotSorted, match="com,a"):
        records_of(path, ordered=True)
    assert len(records_of(path)[1]) == 2


@pytest.mark.parametrize("text", ["", "a b", '"', "a", "!x", "é", "\t", "{", 'a"b', "\u2028", "a\nb"])
def test_tokens_are_quoted_only_where_needed(text):
    token = quote(text)
    assert unquote(token) == text
    assert b"\n" not in token
    assert token.startswith(b'"') == (text not in ("é", "a", 'a"b'))


def test_damaged_containers_end_with_a_problem(write):
    path = write(gzip.compress(b"com,a)/ 1\ncom,bcdef)/ 2\n")[:-10], "map.gz")
    problems = []
    _, records = records_of(path, on_problem=problems.append)
    assert [record.key for record in records] == [b"com,a)/"]
    assert len(problems) == 2
    with pytest.raises(FormatError, match="cut off"):
        records_of(path)


@pytest.mark.parametrize(
    ("token", "inside", "outside"),
    [
        ("2014", ["20140101000000", "20141231235959"], ["20131231235959", "20150101000000"]),
        ("201", ["20150101000000"], ["20200101000000"]),
        ("2014:2015", ["20140101000000", "20151231235959"], ["20160101000000"]),
        (":2015", ["19960101000000"], ["20160101000000"]),
        ("2015:", ["20250101000000"], ["20141231235959"]),
        (":", ["19960101000000", "20250101000000"], []),
    ],
)
def test_periods_of_a_datetime_column(token, inside, outside):
    period = Period.parse(token)
    assert all(period.contains(moment) for moment in inside)
    assert not any(period.contains(moment) for moment in outside)


@pytest.mark.parametrize("token", ["", "x", "2014-01", "1" * 15, "2015:2014", "::", "2014:x"])
def test_what_is_not_a_period(token):
    with pytest.raises(FormatError, match="bad datetime"):
        Period.parse(token)


# -- writing ----------------------------------------------------------------------------------------------


def test_a_written_map_is_as_sort_would_leave_it(tmp_path):
    path = tmp_path / "map.ukvs"
    header = Header(id={"uri": "http://a/"}, meta={"name": "A", "type": "MementoMap"})
    with Writer(path, header) as writer:
        for key in sorted(
            [b"*", b"com,*", b"com,a)/", b"com,a)/*", b"com,a)/b", b"com,a)/b-c", b"com,a)/b/c", b"4,3,2,1)/"]
        ):
            writer.write(Record(key, (), Frequency.exact(1)))
    done = subprocess.run(["sort", "-c", str(path)], env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}, check=False)
    assert done.returncode == 0


def test_disorder_and_repetition_are_refused_and_nothing_is_left(tmp_path):
    for second, error in ((b"com,a)/", NotSorted), (b"com,b)/", FormatError)):
        with pytest.raises(error), Writer(tmp_path / "map.ukvs", Header()) as writer:
            writer.write(Record(b"com,b)/"))
            writer.write(Record(second))
        assert list(tmp_path.iterdir()) == []


def test_records_that_do_not_fit_the_header_are_refused(tmp_path):
    with pytest.raises(FormatError, match="wrong field count"), Writer(tmp_path / "m", Header()) as writer:
        writer.write(Record(b"com,b)/", (b"2014",)))
    with pytest.raises(FormatError, match="more than one line"), Writer(tmp_path / "m", Header()) as writer:
        writer.write(Record(b"com,b)/", json='{"a":\n1}'))


def test_profiles_of_the_older_kind_are_written_back(write, tmp_path):
    header, records = records_of(write(OLD_PROFILE))
    with Writer(tmp_path / "out.cdxj", header) as writer:
        for record in records:
            writer.write(record)
    assert (tmp_path / "out.cdxj").read_bytes() == OLD_PROFILE


def test_a_map_may_be_written_onto_itself(write):
    path = write(FIGURE_2)
    header, records = read(path)
    with Writer(path, header) as writer:
        for record in records:
            writer.write(record)
    assert len(records_of(path)[1]) == 6
