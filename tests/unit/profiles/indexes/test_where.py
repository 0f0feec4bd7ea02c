"""The language of --where: what it says, and that nothing else can be said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recollect.errors import UsageError
from recollect.formats.cdx import Capture
from recollect.profiles.indexes.where import compile_where

CAPTURE = Capture(b"com,x)/a", "20140601000000", "http://x.com/a.PDF", 200, "image/png", "SHA", 12, "f.warc.gz", None)


@pytest.mark.parametrize(
    "text",
    [
        "status == 200", "status = '200'", "status in [200, 404]", "not status in (301, 302)", "status <> 404",
        "media_type like 'image/*'", "media_type like 'IMAGE/p?g'", "url matches '[.]PDF$'", "not url matches 'html'",
        "timestamp >= 2014 and timestamp < 2015", "2010 <= year < 2015", "month == 6", "length > 10 AND length <= 12",
        "language == None", "language is None", "language != 'eng'", "'x.com' in url", "surt == 'com,x)/a'",
        "status == 404 or (digest == 'SHA' and filename like '*.warc.gz')", "length > -1",
    ],
)  # fmt: skip
def test_expressions_that_hold(text: str) -> None:
    assert compile_where(text)(CAPTURE)


@pytest.mark.parametrize(
    "text",
    [
        "status == 404",
        "language > 'a'",
        "language like '*'",
        "year < 2014",
        "'y.com' in url",
        "status in []",
        "length > 'x'",
    ],
)
def test_expressions_that_do_not_hold(text: str) -> None:
    assert not compile_where(text)(CAPTURE)


REVISIT = Capture(b"com,x)/a", "20140601000000", "http://x.com/a", None, "warc/revisit")


@pytest.mark.parametrize(
    "text",
    [
        "status == 200", "status != 200", "not status == 404", "200 <= status < 300", "status in [200, 404]",
        "status == 200 and year == 2014", "media_type == 'text/html'", "not media_type like 'image/*'",
        "media_type like 'image/*' and status == 200", "media_type matches 'html'", "year == 1999 or status == 200",
        "status == None", "media_type == 'warc/revisit'", "media_type in ['text/html', 'warc/revisit']",
        "media_type like 'warc/*'", "revisit", "revisit == true", "not (status == 404 or media_type == 'text/css')",
    ],
)  # fmt: skip
def test_unknown_fields_of_a_revisit_drop_none(text: str) -> None:
    assert compile_where(text)(REVISIT)


@pytest.mark.parametrize(
    "text",
    [
        "status == 200 and year == 1999", "status != None", "media_type != 'warc/revisit'", "not revisit",
        "not media_type like 'warc/*'", "language == 'eng'", "not (status == 404 or year == 2014)",
        "status == 200 and not revisit", "media_type not in ('warc/revisit', 'text/html')",
    ],
)  # fmt: skip
def test_known_fields_of_a_revisit_drop_it(text: str) -> None:
    assert not compile_where(text)(REVISIT)


def test_a_revisit_with_a_status_has_that_status() -> None:
    revisit = replace(REVISIT, status=404)
    assert compile_where("status == 404")(revisit)
    assert not compile_where("status == 200")(revisit)
    assert not compile_where("status == 200")(replace(CAPTURE, status=None))


@pytest.mark.parametrize(
    "text",
    [
        "", "status ==", "size > 1", "__import__('os')", "url.upper() == 'X'", "status + 1 == 201", "lambda: 1",
        "[x for x in url]", "url matches '('", "url like status", "f'{url}'", "status == 200; 1", "`ls`", "(status",
        "url[0] == 'h'", "status if 1 else 2",
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(UsageError):
        compile_where(text)
