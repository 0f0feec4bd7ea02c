"""The scope of a map: which requests it can answer with "no"."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import recollect
from recollect.formats.ukvs import Header, MapFile
from recollect.maps.filters import make_filter
from recollect.maps.lookup import period_of
from recollect.maps.mediatypes import PAGE, media_types_of
from recollect.maps.merge import merge_maps
from recollect.maps.scope import LimitKind, Query, Scope, joined

CDX = """\
 CDX N b a m s k r M S V g
com,example)/ 20110101000000 http://example.com/ text/html 200 A - - 1 0 a.warc
com,example)/gone 20110601000000 http://example.com/gone text/html 404 A - - 1 0 a.warc
com,example)/robots.txt 20110101000000 http://example.com/robots.txt text/plain 200 A - - 1 0 a.warc
com,example)/static/logo.png 20120101000000 http://example.com/static/logo.png image/png 200 A - - 1 0 a.warc
com,example)/style.css 20130101000000 http://example.com/style.css text/css 200 A - - 1 0 a.warc
"""


@pytest.fixture
def index(tmp_path: Path) -> Path:
    path = tmp_path / "a.cdx"
    path.write_text(CDX)
    return path


def _scope(**meta: object) -> Scope:
    return Scope.of(Header(meta=meta))


@pytest.mark.parametrize(
    ("address", "types"),
    [
        ("http://example.com", PAGE),
        ("http://example.com/", PAGE),
        ("http://example.com/a.b/c", PAGE),
        ("http://example.com/v1.2", PAGE),
        ("http://example.com/index.PHP?x=logo.png", PAGE),
        ("com,example)/a.html", PAGE),
        ("http://example.com/logo.png?v=2", ("image/png", "image/x-png")),
        ("com,example)/style.css", ("text/css",)),
        ("http://example.com/file.xyz", ()),
    ],
)
def test_an_address_tells_the_media_type(address: str, types: tuple[str, ...]) -> None:
    assert media_types_of(address) == types


@pytest.mark.parametrize(
    ("filters", "uri", "query", "kind"),
    [
        ({"media_type": ["text/html"]}, "http://a.org/x", Query(), None),
        ({"media_type": ["text/html"]}, "http://a.org/x.png", Query(), LimitKind.MEDIA_TYPE),
        ({"media_type": ["text/html"]}, "http://a.org/x.unheard", Query(), LimitKind.MEDIA_TYPE),
        ({"media_type": ["image/*"]}, "http://a.org/x.png", Query(), None),
        ({"media_type": ["image/*"]}, "http://a.org/x", Query(), LimitKind.MEDIA_TYPE),
        ({"media_type": ["image/*"]}, "http://a.org/x", Query(media_type="image/gif"), None),
        ({"media_type": ["text/javascript"]}, "http://a.org/x.js", Query(), LimitKind.MEDIA_TYPE),
        ({"status": ["200"]}, "http://a.org/x", Query(), None),
        ({"status": ["200"]}, "http://a.org/x", Query(any_status=True), LimitKind.STATUS),
        ({"status": ["2xx"]}, "http://a.org/x", Query(status="204"), None),
        ({"status": ["2xx"]}, "http://a.org/x", Query(status="404"), LimitKind.STATUS),
        ({"status": ["200"]}, "http://a.org/x", Query(status="2xx"), LimitKind.STATUS),
        ({"from": "20100101000000"}, "http://a.org/x", Query(), LimitKind.DATE),
        ({"from": "20100101000000"}, "http://a.org/x", Query(period_of("2011")), None),
        ({"from": "2010", "to": "2012"}, "http://a.org/x", Query(period_of("2012")), None),
        ({"from": "2010", "to": "2012"}, "http://a.org/x", Query(period_of("2012:2013")), LimitKind.DATE),
        ({"from": "2010", "to": "2012"}, "http://a.org/x", Query(period_of("2009-12-31")), LimitKind.DATE),
        ({"exclude": ["robots.txt"]}, "http://a.org/Robots.txt", Query(), LimitKind.EXCLUDED),
        ({"exclude": ["robots.txt"]}, "org,a)/b/robots.txt", Query(), LimitKind.EXCLUDED),
        ({"exclude": ["robots.txt"]}, "http://a.org/robots.txt/x", Query(), None),
        ({"host": ["a.org"]}, "http://www.a.org/x", Query(), None),
        ({"host": ["a.org"]}, "http://b.org/x", Query(), LimitKind.HOST),
        ({"where": "year > 2010"}, "http://a.org/x", Query(), LimitKind.WHERE),
        ({"colour": "red"}, "http://a.org/x", Query(), LimitKind.UNREAD),
        ("text/html", "http://a.org/x", Query(), LimitKind.UNREAD),
        ({"from": "soon"}, "http://a.org/x", Query(), LimitKind.UNREAD),
        ({}, "ftp://a.org/x", Query(), LimitKind.SCHEME),
    ],
)
def test_filters_limit_the_answers(filters: object, uri: str, query: Query, kind: LimitKind | None) -> None:
    limit = _scope(filters=filters).limit(uri, query)
    assert (limit and limit.kind) == kind
    assert limit is None or str(limit)


def test_a_time_after_the_map_is_unknown() -> None:
    scope = _scope(updated_at="2024-03-01T00:00:00Z")
    assert scope.limit("http://a.org/", Query(period_of("2023"))) is None
    assert scope.limit("http://a.org/", Query(period_of("2024"))) == (LimitKind.NEWER, "2024-03-01")
    assert scope.limit("http://a.org/") is None
    of_span = _scope(span={"from": "20100101000000", "to": "20110101000000"})
    assert of_span.limit("http://a.org/", Query(period_of("2012"))) == (LimitKind.NEWER, "2011-01-01")


def test_a_scope_is_written_as_it_was_read() -> None:
    for meta in (
        {"scope": "voids", "updated_at": "2024-03-01T00:00:00Z"},
        {"filters": {"status": ["200"], "media_type": ["text/html"], "from": "20100101000000", "host": ["a.org"]}},
        {"filters": {"colour": True}, "all_schemes": True},
        {"scopes": [{"filters": {"status": ["200"]}}, {"filters": {"exclude": ["a"]}}]},
    ):
        assert Scope.from_meta(Scope.from_meta(meta).as_meta()) == Scope.from_meta(meta)


def test_joined_scopes_limit_where_one_of_them_does() -> None:
    pages = _scope(filters={"media_type": ["text/html"]}, updated_at="2020-01-01T00:00:00Z")
    all_of_it = _scope(updated_at="2022-01-01T00:00:00Z")
    both = joined([pages, all_of_it])
    assert both.limit("http://a.org/x.png") is not None
    assert both.limit("http://a.org/x") is None
    assert both.complete_until == pages.complete_until
    assert joined([both, all_of_it]).limit("http://a.org/x.png") is not None
    assert joined([all_of_it, _scope()]).complete_until is None


def test_lookup_outside_of_a_scope_is_unknown_in_every_form(index: Path, tmp_path: Path) -> None:
    target = tmp_path / "pages.ukvs"
    recollect.profile(str(index), target, media_types=("text/html",), statuses=("200",))
    merge_maps([target], tmp_path / "pages.ukvs.gz")
    merge_maps([target], tmp_path / "pages.ukvs.zst")
    make_filter(target, tmp_path / "pages.filter")
    recollect.profile(str(target), tmp_path / "again.ukvs")
    for name in ("pages.ukvs", "pages.ukvs.gz", "pages.ukvs.zst", "pages.filter", "again.ukvs"):
        with recollect.Map.open(tmp_path / name) as opened:
            logo = opened.lookup("http://example.com/static/logo.png")
            assert (logo.answer, logo.limit and logo.limit.kind) == ("unknown", LimitKind.MEDIA_TYPE), name
            assert [one.answer for one in opened.lookup_many(["http://example.com/x", "http://example.com/x.css"])] == [
                "no",
                "unknown",
            ], name
            assert "http://example.com/" in opened
            assert "http://example.com/static/logo.png" not in opened
            assert "status 200 only" in opened.lookup("http://example.com/x").reason(opened.scope)


def test_a_merge_of_different_scopes_says_no_only_where_all_do(index: Path, tmp_path: Path) -> None:
    pages, images, both = (tmp_path / f"{name}.ukvs" for name in ("pages", "images", "both"))
    recollect.profile(str(index), pages, media_types=("text/html",))
    recollect.profile(str(index), images, media_types=("image/*",))
    merge_maps([pages, images], both)
    with recollect.Map.open(both) as opened, MapFile(both) as file:
        assert json.dumps(file.header.meta["scopes"])
        assert "http://example.com/static/logo.png" in opened
        assert "http://example.com/" in opened
        assert opened.lookup("http://example.com/style.css").answer == "unknown"
        assert opened.lookup("http://example.com/other").answer == "unknown"  # images were profiled only as images


def test_a_map_behaves_like_a_collection(index: Path, tmp_path: Path) -> None:
    target = tmp_path / "m.ukvs"
    recollect.profile(str(index), target)
    with recollect.Map.open(target) as opened:
        assert len(opened) == 5
        assert next(iter(opened)).key == b"com,example)/"
        assert "m.ukvs" in repr(opened)
        assert opened.lookup("http://example.com/", at="2011").answer == "yes"
