"""What a request asks for: the URI inside the path, and nothing decoded twice."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.aggregator.http.target import clean_uri, page_of, parse_target, without_user
from recollect.errors import BadURI, UsageError


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("http://example.com/", "http://example.com/"),
        ("https://Example.com/A%2Fb?x=1&y=%26#frag", "https://Example.com/A%2Fb?x=1&y=%26"),
        ("example.com", "http://example.com"),
        ("example.com:8080/a", "http://example.com:8080/a"),
        ("http:/example.com/", "http://example.com/"),
        ("HTTP://example.com/", "http://example.com/"),
        ("http%3A%2F%2Fexample.com%2F%3Fq%3D2", "http://example.com/?q=2"),
        ("http%3A%2F%2Fexample.com%2Fa%252Fb", "http://example.com/a%2Fb"),
        ("http://example.com/100%25", "http://example.com/100%25"),
        ("http://example.com/100%zz", "http://example.com/100%25zz"),
        ("http://example.com/?u=http%3A%2F%2Fother.example%2F", "http://example.com/?u=http%3A%2F%2Fother.example%2F"),
        ("ftp://example.com/pub", "ftp://example.com/pub"),
        ("http://[2001:db8::1]/", "http://[2001:db8::1]/"),
        ("http://example.com/a;b=1,c", "http://example.com/a;b=1,c"),
        ("http://user:pass@example.com:8080/a@b", "http://example.com:8080/a@b"),
        ("http%3A%2F%2Fuser%40home%3Apass%40example.com%2F", "http://example.com/"),
        ("https://@[2001:db8::1]/", "https://[2001:db8::1]/"),
        ("http://example.com?to=a@b", "http://example.com?to=a@b"),
    ],
)
def test_the_uri_is_what_the_client_meant(sent: str, meant: str) -> None:
    assert clean_uri(sent) == meant


@pytest.mark.parametrize(
    "sent",
    [
        "",
        "/",
        "http://",
        "http://./",
        "http://a b/",
        "http://a\nb/",
        "http%3A%2F%2Fa%0D%0Ab%2F",
        "http://" + "a" * 9000,
        "mailto:a@b.example",
        "javascript:alert(1)",
        # pywb's TimeGate answers the next three with 500.
        "http://[1:2]/",
        "http://[....]/",
        "http://%ff.example/",
        "http://[::1]:65536/",
        "http://a.example:99999/",
    ],
)
def test_what_is_not_a_uri_is_refused(sent: str) -> None:
    with pytest.raises(BadURI):
        clean_uri(sent)


@pytest.mark.parametrize(
    "uri",
    ["http://[2001:db8::1]:8080/", "http://b%C3%BCcher.example/", "http://a.example:65535/", "http://a.example:/"],
)
def test_unusual_hosts_that_may_exist_are_taken(uri: str) -> None:
    assert clean_uri(uri) == uri


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("link/http://a.example/?page=2", ("link", None, "http://a.example/?page=2", "")),
        ("json/3/http://a.example/", ("json", 3, "http://a.example/", "")),
        ("cdxj/http%3A%2F%2Fa.example%2F?page=2&archives=ia", ("cdxj", 2, "http://a.example/", "ia")),
        ("link?url=http%3A%2F%2Fa.example%2F&page=4", ("link", 4, "http://a.example/", "")),
        ("link/http://a.example/?archives=ia,!is", ("link", None, "http://a.example/?archives=ia,!is", "")),
        ("link/http://a.example/?archives=ia,pt", ("link", None, "http://a.example/", "ia,pt")),
        ("link/http://a.example/?page=2&archives=ia", ("link", None, "http://a.example/?page=2&archives=ia", "")),
        ("link/http://a.example/?archives=ia&x=1", ("link", None, "http://a.example/?archives=ia&x=1", "")),
    ],
)
def test_timemap_requests(rest: str, expected: tuple[str, int | None, str, str]) -> None:
    target = parse_target("timemap", rest, {"ia", "pt"})
    assert (target.kind, target.page, target.uri_r, target.archives) == expected


@pytest.mark.parametrize(
    ("rest", "kind", "at"),
    [
        ("2014/a.example", "", datetime(2014, 1, 1, tzinfo=UTC)),
        ("json/20140127/a.example", "json", datetime(2014, 1, 27, tzinfo=UTC)),
        ("proxy/20140127171230/a.example", "proxy", datetime(2014, 1, 27, 17, 12, 30, tzinfo=UTC)),
        ("2014id_/a.example", "raw", datetime(2014, 1, 1, tzinfo=UTC)),
    ],
)
def test_memento_requests(rest: str, kind: str, at: datetime) -> None:
    target = parse_target("memento", rest)
    assert (target.kind, target.at, target.uri_r) == (kind, at, "http://a.example")


@pytest.mark.parametrize(
    ("endpoint", "rest"),
    [
        ("timemap", "xml/http://a.example/"),
        ("timemap", "http://a.example/"),
        ("timemap", "link/0/http://a.example/"),
        ("timemap", "link/http%3A%2F%2Fa.example%2F?page=x"),
        ("timemap", "link/http%3A%2F%2Fa.example%2F?from=soon"),
        ("timemap", "link/http%3A%2F%2Fa.example%2F?to=2014-02-30"),
        ("timemap", "link/http%3A%2F%2Fa.example%2F?nonsense=1"),
        ("memento", "201/a.example"),
        ("memento", "20141332/a.example"),
        ("memento", "20140231/a.example"),
        ("memento", "201401271712301/a.example"),
        ("memento", "xml/2014/a.example"),
    ],
)
def test_what_cannot_be_meant_is_refused(endpoint: str, rest: str) -> None:
    with pytest.raises(UsageError):
        parse_target(endpoint, rest)


def test_a_range_of_time_includes_its_ends() -> None:
    target = parse_target("timemap", "link/http%3A%2F%2Fa.example%2F?from=2010&to=2011-06")
    assert target.since == datetime(2010, 1, 1, tzinfo=UTC)
    assert target.until == datetime(2011, 6, 30, 23, 59, 59, tzinfo=UTC)


visible = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters="#%\\\\"), max_size=40)


@given(st.sampled_from(["http", "https"]), visible)
def test_a_uri_means_the_same_plain_and_encoded(scheme: str, path: str) -> None:
    uri = f"{scheme}://a.example/{path}"
    assert clean_uri(uri) == uri
    assert clean_uri(quote(uri, safe="")) == uri
    assert parse_target("timegate", uri).uri_r == uri
    assert parse_target("timemap", f"link/{quote(uri, safe='')}?page=2").uri_r == uri


@given(st.text(max_size=60))
def test_any_text_is_a_uri_fit_for_headers_or_is_refused(text: str) -> None:
    try:
        uri = clean_uri(text)
    except BadURI:
        return
    assert uri.startswith(("http://", "https://", "ftp://"))
    assert not any(ord(c) < 32 or ord(c) == 127 for c in uri)
    assert clean_uri(uri) == uri


@pytest.mark.parametrize("text", ["http://a.example/%0AX", "http://a.example/?q=%0d", "http%3A%2F%2Fa.example%2F%2500"])
def test_control_characters_are_refused_encoded_ones_too(text: str) -> None:
    with pytest.raises(BadURI, match="control characters"):
        clean_uri(text)


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("http://me:pw@a.example/x@y", "http://a.example/x@y"),
        ("http://s.example/timemap/link/http://me:pw@a.example/", "http://s.example/timemap/link/http://a.example/"),
        (
            "http://s.example/?uri=http%3A%2F%2Fme%3Apw%40a.example%2F",
            "http://s.example/?uri=http%3A%2F%2Fa.example%2F",
        ),
        ("http://a.example/?mail=b@c.example", "http://a.example/?mail=b@c.example"),
        ("", ""),
    ],
)
def test_user_names_and_passwords_are_left_out_of_text(text: str, without: str) -> None:
    assert without_user(text) == without


def test_a_range_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(UsageError, match="after"):
        parse_target("timemap", "link/http%3A%2F%2Fa.example%2F?from=2015&to=2014")
    assert parse_target("timemap", "link/http%3A%2F%2Fa.example%2F?from=2015&to=2015").since is not None


@pytest.mark.parametrize(
    ("referer", "page"),
    [
        ("http://127.0.0.1:1208/memento/20050101000000/http://example.com/a?b=1", "http://example.com/a?b=1"),
        ("http://127.0.0.1:1208/memento/proxy/2005/http://example.com/", "http://example.com/"),
        ("http://127.0.0.1:1208/timegate/http://example.com/", "http://example.com/"),
        ("https://archive.example/web/20050101000000im_/http://example.com/", "http://example.com/"),
        ("http://127.0.0.1:1208/", ""),
        ("http://live.example/page", "http://live.example/page"),
        ("android-app://x", ""),
        ("http://", ""),
        ("", ""),
    ],
)
def test_the_page_that_a_referer_names(referer: str, page: str) -> None:
    assert page_of(referer, "127.0.0.1:1208") == page
