"""Hostile URIs: an answer or one clear error, in bounded time, whatever the repetition."""

from __future__ import annotations

import time

import pytest

from recollect.errors import BadURI
from recollect.uris import key_of_uri, spellings, surt

ID24, ID32 = "0123456789abcdefghijklmn", "0123456789abcdef" * 2
MEGABYTE = 1 << 20


def repeat(text: str) -> str:
    """About a megabyte."""
    return text * (MEGABYTE // len(text))


@pytest.mark.parametrize(
    "uri",
    [
        "http://example.com/%" + repeat("25"),
        "http://example.com/" + repeat("%25"),
        "http://example.com/?" + repeat("cfid="),
        "http://example.com/?" + repeat("cfid=1&cftoken="),
        "http://example.com/?" + repeat(f"sid={ID32[:31]}-"),
        "http://example.com/?" + repeat("jsessionid="),
        "http://example.com/" + repeat(f"({ID24})/"),
        "http://example.com/.aspx/" + repeat(f"({ID24})/"),
        "http://example.com/" + repeat(f"({ID24})/") + "?x.aspx",
        "http://example.com/" + repeat(f"({ID24})/") + "%3Fx.aspx",
        "http://example.com/(" + repeat(f"a({ID24})"),
        "http://example.com/" + repeat("../a/"),
        "http://example.com/" + repeat("/"),
        "http://example.com/?" + repeat("a&"),
        "http://" + repeat("a."),
        "http://" + repeat("ü.")[:50_000],
        "http://" + repeat("ü")[:50_000],
        "http://" + repeat("1"),
        "http://" + repeat("0"),
        "http://" + repeat("1."),
        "http://1." + repeat("0"),
        "http://1." + repeat("1"),
        "http://example.com:" + repeat("0"),
        "http://[" + repeat(":"),
        "http://example.com:" + repeat("8"),
        "http://" + repeat("@"),
        repeat("http://"),
        repeat("a"),
        repeat(" "),
        "http://example.com/#" + repeat("#"),
        "javascript:" + repeat("(1)"),
        "data:," + repeat("%2525"),
    ],
    ids=lambda uri: uri[:40],
)
def test_a_megabyte_of_anything_takes_seconds_at_most(uri: str) -> None:
    start = time.process_time()
    try:
        surt(uri)
    except BadURI as error:
        assert len(str(error)) < 300
    assert time.process_time() - start < 5  # quadratic ways take hours


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\x00",
        "\ud800",
        "com,example)/\ud800",
        "com,example)/\udcff",
        "\udcff",
        "%",
        "%%%",
        "http://%",
        "http://%/",
        "http://%%/",
        "http://\x00/",
        "http://\udcff/",
        "http://\ufffd/",
        "http://\u202e/",
        "http://a\u200b/",
        "http://xn--/",
        "http://xn--\x00/",
        "http://xn--ü/",
        "http://‥/",
        "http://./",
        "http://。/",
        "http://[/",
        "http://]/",
        "http://[]/",
        "http://[::1%25eth0]/",
        "http://[fe80::1%25]:80/",
        "http://[::1]]/",
        "http://[[::1]]/",
        "http://:/",
        "http://:0/",
        "http://a:0/",
        "http://a:99999/",
        "http://a:abc/",
        "http://a:٣/",
        "http://٣/",
        "http://²/",
        "http://1.²/",
        "http://@:/",
        "javascript:",
        "javascript:alert(1)/",
        "data:",
        "data:text/html,<b>)/",
        "\\\\host\\share",
        "C:\\dir\\file",
        "-",
        "*",
        "!meta",
        ")",
        ")/",
        "()/",
        ",)/",
        "::",
        "://",
        "http",
        "http:",
        "é:x",
        "http://a/\n\n?\n#\n",
    ],
    ids=ascii,
)
def test_short_and_strange(text: str) -> None:
    for function in (surt, key_of_uri, spellings):
        try:
            answer = function(text)
        except BadURI as error:
            assert error.why
            str(error).encode()  # it can be printed
        else:
            assert answer
