"""CDX listings in the shapes servers give them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recollect.archives.listing import Query, clean_digest, dialect_of, listing_url, parse_listing

DIGEST = "B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A"
WHEN = datetime(2014, 1, 3, 3, 3, 21, tzinfo=UTC)

PYWB = (
    b'{"urlkey": "com,example)/a", "timestamp": "20140103030321", "url": "http://example.com/a", "mime": "text/html", '
    b'"status": "200", "digest": "B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A", "length": "1043", "offset": "333", '
    b'"filename": "x.warc.gz", "source": "c"}\n'
)
WAYBACK = (
    b'[["timestamp","original","mimetype","statuscode","digest","length"],\n'
    b'["20140103030321","http://example.com/a","text/html","200","B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A","1043"],\n'
    b'[],\n["com%2Cexample%29%2Fb+20140103030321%21"]]'
)
OUTBACK = (
    b'[["com,example)/a",20140103030321,"http://example.com/a","text/html",200,"B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A","-",'
    b'"-",1043,333,"x.warc.gz"]]'
)
TEXT = (
    b"com,example)/a 20140103030321 http://example.com/a text/html 200 "
    b"B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A - - 1043 333 x\n"
)
CDXJ = b'com,example)/a 20140103030321 {"url": "http://example.com/a", "mime": "text/html", "status": "200", ' + (
    b'"digest": "sha1:B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A", "length": "1043"}\n'
)


@pytest.mark.parametrize("body", [PYWB, WAYBACK, OUTBACK, TEXT, CDXJ, b"\xef\xbb\xbf" + PYWB], ids=str)
def test_every_shape_gives_the_same_row(body: bytes) -> None:
    rows, _, unread = parse_listing(body)
    assert unread == 0
    assert [(r.uri, r.captured_at, r.status, r.media_type, r.digest, r.length) for r in rows] == [
        ("http://example.com/a", WHEN, 200, "text/html", DIGEST, 1043)
    ]


def test_resume_keys_come_out_decoded_and_go_back_encoded() -> None:
    _, resume, _ = parse_listing(WAYBACK)
    assert resume == "com,example)/b 20140103030321!"
    text = TEXT.replace(b" 333 x\n", b" 333 x.warc.gz\n") + b"\ncom%2Cexample%29%2Fb+20140103030321%21\n"
    assert parse_listing(text)[1] == resume
    url = listing_url("http://x/cdx", Query("http://example.com/", "prefix"), resume, limit=5)
    assert url.endswith("&resumeKey=com,example%29/b%2020140103030321%21")


def test_revisits_and_places_of_records() -> None:
    row = PYWB.replace(b'"text/html"', b'"warc/revisit"').replace(b'"status": "200", ', b"")
    (found,), _, _ = parse_listing(row)
    assert (found.revisit, found.status, found.media_type) == (True, None, "")
    assert found.locator == "333 1043 x.warc.gz"


@pytest.mark.parametrize(
    ("body", "rows", "unread"),
    [
        (b"", 0, 0),
        (b"[]", 0, 0),
        (b"<html>busy</html>", 0, 1),
        (PYWB + b'{"urlkey": "com,ex', 1, 1),  # cut off
        (WAYBACK[:-30], 1, 0),  # only the key to go on with is lost
        (WAYBACK[:-70], 0, 1),
        (PYWB.replace(b"20140103030321", b"nonsense"), 0, 1),
        (PYWB.replace(b"http://example.com/a", b"dns:example.com"), 0, 0),  # in order, and nothing for us
        (b" CDX N b a m s k r M S V g\n" + TEXT, 1, 0),
        (b"[" * 5000, 0, 1),
        (b'[1, {"a": 2}, ["x"]]', 0, 3),
    ],
)
def test_what_cannot_be_read_is_counted(body: bytes, rows: int, unread: int) -> None:
    found, _, bad = parse_listing(body)
    assert (len(found), bad) == (rows, unread)


@pytest.mark.parametrize(
    ("address", "dialect"),
    [
        ("https://web.archive.org/cdx/search/cdx", "wayback"),
        ("https://wayback.archive-it.org/all/timemap/cdx", "wayback"),
        ("https://index.commoncrawl.org/collinfo.json", "commoncrawl"),
        ("https://index.commoncrawl.org/CC-MAIN-2024-10-index", "commoncrawl"),
        ("http://localhost:8080/coll/cdx", "plain"),
        ("https://arquivo.pt/wayback/cdx", "plain"),
    ],
)
def test_who_pages_how(address: str, dialect: str) -> None:
    assert dialect_of(address) == dialect


def test_a_plain_server_is_never_given_a_limit_or_a_wildcard() -> None:
    url = listing_url("http://x/cdx?coll=a", Query("http://ex.com/a b?c=d&e", "prefix"))
    assert url == "http://x/cdx?coll=a&url=http://ex.com/a%20b%3Fc%3Dd%26e&matchType=prefix&output=json"


@pytest.mark.parametrize(
    ("text", "digest"), [("sha1:abc", "ABC"), ("ABC", "ABC"), ("-", ""), (None, ""), ("sha256:0f", "sha256:0f")]
)
def test_digests(text: str | None, digest: str) -> None:
    assert clean_digest(text) == digest
