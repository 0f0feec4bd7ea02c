"""A line of a list is one URI, including its spaces, for every reader of lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.formats.cdx import parse_surt
from recollect.formats.detect import Kind, inspect
from recollect.formats.lists import uri_of_line
from recollect.formats.logs import parse_entry
from recollect.uris import surt


@pytest.mark.parametrize(
    ("line", "uri"),
    [
        ("http://x.org/a b", "http://x.org/a%20b"),
        (" http://x.org/a b \r\n", "http://x.org/a%20b"),
        ("http://x.org/Foo - Bar 02.mp3", "http://x.org/Foo%20-%20Bar%2002.mp3"),
        ("http://x.org/?q=a  b&c=d", "http://x.org/?q=a%20%20b&c=d"),
        ("x.org/vol 2 part 3.pdf", "x.org/vol%202%20part%203.pdf"),
        ("org,x)/a b", "org,x)/a%20b"),
        ("http://x.org/a", "http://x.org/a"),
    ],
)
def test_spaces_belong_to_the_uri(line: str, uri: str) -> None:
    assert uri_of_line(line) == uri
    assert parse_entry(line.strip()).uri == uri
    if not uri.startswith("org,"):
        assert parse_surt(line).surt.decode() == surt(line)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "http://x.org/a 5",
        "org,x)/a 5/2",
        "org,x)/a 20140101000000 text/html",
        'org,x)/a {"frequency": 1}',
        "http://x.org/a http://x.org/b",
        "org,x)/a org,x)/b",
        "http://x.org/a\tb",
        "see x.org for more",
        "some words",
    ],
)
def test_lines_of_other_formats_are_not_uris(line: str) -> None:
    assert uri_of_line(line) is None


def test_a_list_with_spaces_is_a_list(tmp_path: Path) -> None:
    (tmp_path / "urls").write_text("http://x.org/a b\nhttp://x.org/c d\n")
    (tmp_path / "surts").write_text("org,x)/a b\n")
    assert inspect(str(tmp_path / "urls")).kind is Kind.URLS
    assert inspect(str(tmp_path / "surts")).kind is Kind.SURTS
