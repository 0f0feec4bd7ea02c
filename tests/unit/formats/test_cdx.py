"""Index lines of every maker become captures, or say why not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recollect.errors import FormatError
from recollect.formats.cdx import (
    Capture,
    Layout,
    NotACapture,
    parse_cdx,
    parse_cdxj,
    parse_layout,
    parse_surt,
    what_it_is,
)

ELEVEN = "com,x)/a 20140103030321 http://x.com/a text/html 200 DIGEST - - 1043 333 f.warc.gz"


def test_a_line_of_eleven_fields() -> None:
    assert parse_cdx(ELEVEN, Layout()) == Capture(
        b"com,x)/a", "20140103030321", "http://x.com/a", 200, "text/html", "DIGEST", 1043, "f.warc.gz"
    )


@pytest.mark.parametrize(
    ("line", "filename"),
    [
        ("com,x)/a 20140103030321 http://x.com/a text/html 200 D - 333 f.warc.gz", "f.warc.gz"),
        ("com,x)/a 20140103030321 http://x.com/a text/html 200 D - - 333 f.warc.gz", "f.warc.gz"),
        ("com,x)/a 20140103030321 http://x.com/a text/html 200 D - - 1 333 f.warc.gz 1 2 o.warc.gz", "f.warc.gz"),
    ],
)
def test_nine_ten_and_fourteen_fields_without_header(line: str, filename: str) -> None:
    capture = parse_cdx(line, Layout())
    assert (capture.status, capture.media_type, capture.filename) == (200, "text/html", filename)


def test_the_header_names_delimiter_and_fields() -> None:
    layout = parse_layout("\tCDX\ta\tb\tN\ts")
    assert layout == Layout("abNs", "\t", True)
    assert parse_cdx("http://x.com/\t2014\tcom,x)/\t404", layout) == Capture(
        b"com,x)/", "20140101000000", "http://x.com/", 404
    )


@pytest.mark.parametrize("line", ["com,x)/ 2014", "CDX", " CDXJ a b", "com,x)/ CDX N b"])
def test_other_lines_are_not_headers(line: str) -> None:
    assert parse_layout(line) is None


def test_with_a_header_the_number_of_fields_must_be_right() -> None:
    with pytest.raises(FormatError, match="2 fields instead of 11"):
        parse_cdx("com,x)/a 20140103030321", parse_layout(" CDX N b a m s k r M S V g") or Layout())


@pytest.mark.parametrize(("url", "kind"), [("dns:2phone.example", "dns"), ("urn:1", None), ("x.com:80/a", None)])
def test_a_number_after_the_colon_is_a_port_only_if_it_is_one(url: str, kind: str | None) -> None:
    assert what_it_is("", url, None, None) == kind


def test_cdxj_of_openwayback_3() -> None:
    fields = '{"uri": "http://x.com/a", "sha": "D", "hsc": "200", "mct": "text/html", "cle": 7, "ref": "warcfile:f#1"}'
    whole = Capture(b"(com,x,)/a", "20140103030321", "http://x.com/a", 200, "text/html", "D", 7, "warcfile:f#1")
    assert parse_cdxj(f"(com,x,)/a 2014-01-03T03:03:21Z response {fields}") == whole
    assert parse_cdxj(f"(com,x,)/a 2014-01-03T03:03:21.5Z revisit {fields}") == replace(
        whole, media_type="warc/revisit"
    )
    for kind in ("request", "metadata"):
        with pytest.raises(NotACapture) as other:
            parse_cdxj(f"(com,x,)/a 2014-01-03T03:03:21Z {kind} {fields}")
        assert other.value.kind == kind


@pytest.mark.parametrize("key", ["x.com/a", "http://www.x.com/a", "x.com:80/a"])
def test_a_key_that_is_a_url_is_made_a_surt(key: str) -> None:
    assert parse_cdx(ELEVEN.replace("com,x)/a", key), Layout()).surt == b"com,x)/a"


@pytest.mark.parametrize(
    ("block", "fields"),
    [
        ('{"url": "http://x.com/", "mime": "text/html", "status": "200"}', ("http://x.com/", "text/html", 200)),
        ('{"mime_type": "TEXT/HTML; charset=x", "status_code": "302", "locator": "urn:a"}', (None, "text/html", 302)),
        ('{"original": "http://x.com/", "mimetype": "-", "statuscode": 404}', ("http://x.com/", None, 404)),
        ('{"url": "http:\\/\\/x.com\\/", "mime": "text\\/html", "status": null}', ("http://x.com/", "text/html", None)),
        ('{"mime": "a/b", "mime-detected": "c/d", "status": "2OO"}', (None, "a/b", None)),
        ('{"nested": {"mime": "x/y"}, "list": [{"status": 1}], "mime": "a/b"}', (None, "a/b", None)),
        ('{"url": "http://x.com/", "archive": "web.archive.org", "urim": "http://a/"}', ("http://x.com/", None, None)),
    ],
)  # fmt: skip
def test_flavours_of_cdxj(block: str, fields: tuple[object, ...]) -> None:
    capture = parse_cdxj(f"com,x)/ 20140103030321 {block}")
    assert (capture.url, capture.media_type, capture.status) == fields


def test_a_line_that_is_all_json_has_its_key_inside() -> None:
    line = '{"urlkey": "com,x)/a", "timestamp": "20140103030321", "url": "http://x.com/a", "languages": "eng,fra"}'
    assert parse_cdxj(line) == Capture(b"com,x)/a", "20140103030321", "http://x.com/a", language="eng,fra")


def test_an_object_broken_after_the_needed_fields_is_read_up_to_them() -> None:
    capture = parse_cdxj('com,x)/ 20140103030321 {"url": "http://x.com/", "mime": "a/b", "status": "200", broken}')
    assert (capture.media_type, capture.status) == ("a/b", 200)


@pytest.mark.parametrize(
    "line",
    [
        "com,x)/ 20140103030321",
        'com,x)/ 20140103030321 {"url": "http://x.com/", "mime": "a/b", "status": "200", "digest": "AB',
        'com,x)/ 20140103030321 {"mime": "a/b", broken}',
        "com,x)/ 20140103030321 [1]",
        'com,x)/ 201 {"mime": "a/b"}',
        'com,x)/ 2014010303032x {"mime": "a/b"}',
        'notakey 20140103030321 {"mime": "a/b"}',
    ],
)
def test_broken_lines_raise(line: str) -> None:
    with pytest.raises(FormatError):
        parse_cdxj(line)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ('dns:x.com 20140103030321 {"url": "dns:x.com"}', "dns"),
        ('com,x) 20140103030321 {"url": "dns:x.com", "mime": "text/dns"}', "dns"),
        ('com,x)/ 20140103030321 {"url": "http://x.com/", "mime": "text/dns"}', "dns"),
        ('warcinfo:/f.warc 20140103030321 {"url": "warcinfo:/f.warc"}', "warcinfo"),
        ('com,x)/ 20140103030321 {"url": "urn:view:http://x.com/"}', "urn"),
        ('com,x)/ 20140103030321 {"url": "screenshot:http://x.com/"}', "screenshot"),
        ('metadata)/x 20140103030321 {"url": "metadata://x/"}', "metadata"),
        ('com,x)/ 20140103030321 {"url": "http://x.com/", "mime": "text/anvl"}', "metadata"),
        ("!meta {}", "header"),
        ("@about {}", "header"),
        ("", "header"),
    ],
)
def test_lines_that_are_not_captures_say_what_they_are(line: str, kind: str) -> None:
    with pytest.raises(NotACapture) as caught:
        parse_cdxj(line)
    assert caught.value.kind == kind


def test_all_schemes_can_be_asked_for() -> None:
    assert parse_cdxj('dns:x.com 20140103030321 {"url": "dns:x.com"}', all_schemes=True).surt == b"dns:x.com"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("20140231", "20140228000000"),
        ("2014", "20140101000000"),
        ("20191301000000", "20191201000000"),
        ("20140103030321123", "20140103030321"),
    ],
)
def test_odd_times_become_real_moments(text: str, clean: str) -> None:
    assert parse_cdxj(f'com,x)/ {text} {{"mime": "a/b"}}').timestamp == clean


@pytest.mark.parametrize(
    ("line", "surt"), [("com,x)/a", b"com,x)/a"), ("http://www.x.com/A", b"com,x)/a"), ("x.com", b"com,x)/")]
)
def test_lists_of_surts_and_urls(line: str, surt: bytes) -> None:
    assert parse_surt(line).surt == surt
