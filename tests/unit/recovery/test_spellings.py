"""Other spellings of an address: plausible, each once, and none of another resource."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.recovery.canonical import spellings, split


@pytest.mark.parametrize(
    ("uri", "others"),
    [
        ("http://a.example/dir/index.html", {"http://a.example/dir/", "http://www.a.example/dir/"}),
        ("http://a.example/dir/Default.asp", {"http://a.example/dir/", "http://a.example/dir/default.asp"}),
        ("http://www.a.example/dir/", {"http://www.a.example/dir", "http://www.a.example/dir/index.php"}),
        ("http://www.a.example/", {"http://a.example/", "http://www.a.example/index.htm"}),
        ("http://a.example/~joe/x.html", {"http://a.example/%7Ejoe/x.html"}),
        ("http://a.example/%7Ejoe", {"http://a.example/~joe", "http://a.example/%7Ejoe/"}),
        ("http://a.example/A/B.HTM", {"http://a.example/a/b.htm"}),
        ("http://a.example/x;jsessionid=1F?n=2", {"http://a.example/x?n=2"}),
        ("http://a.example/x.php?PHPSESSID=1&n=2", {"http://a.example/x.php?n=2"}),
    ],
)
def test_plausible_spellings(uri: str, others: set[str]) -> None:
    assert others <= set(spellings(uri))


PATHS = st.text(st.sampled_from("ab/A.~%7Eé=index.html"), max_size=12)


@given(st.sampled_from(["a.example", "www.a.example", "127.0.0.1:80", "localhost"]), PATHS)
def test_each_once_never_the_address_itself_and_always_of_the_host(host: str, path: str) -> None:
    uri = f"http://{host}/{path}"
    found = spellings(uri)
    assert len(found) == len(set(found)) <= 20 and uri not in found
    for other in found:
        assert split(other)[1].removeprefix("www.") == split(uri)[1].removeprefix("www.")
