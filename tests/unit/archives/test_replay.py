"""What of an archive's answer is the original's, and pages freed of an archive's additions."""

from __future__ import annotations

import pytest

from recollect.archives.registry import Archive
from recollect.archives.replay import original_headers, split_memento, unwrap

IA = Archive(
    id="ia", raw="https://web.archive.org/web/{timestamp}id_/{uri}", timemap="https://web.archive.org/web/timemap/"
)


def test_prefixed_headers_are_the_original_s_and_the_rest_the_archive_s() -> None:
    fields = [
        ("server", "nginx"),
        ("date", "today"),
        ("content-type", "text/html"),
        ("x-archive-orig-server", "Apache"),
        ("x-archive-orig-date", "then"),
        ("x-archive-orig-content-length", "7"),
        ("memento-datetime", "then"),
        ("x-ts", "200"),
    ]
    assert original_headers(fields) == (
        ("content-type", "text/html"),
        ("server", "Apache"),
        ("date", "then"),
        ("content-length", "7"),
    )


def test_bare_headers_are_kept_without_what_an_archive_adds() -> None:
    fields = [("Content-Type", "text/css"), ("ETag", "1"), ("Link", "<x>; rel=original"), ("Memento-Datetime", "x")]
    fields += [("X-Archive-Orig-Date", "then"), ("Date", "today"), ("X-Archive-Orig-Transfer-Encoding", "chunked")]
    assert original_headers(fields) == (
        ("Content-Type", "text/css"),
        ("ETag", "1"),
        ("Date", "then"),
        ("Transfer-Encoding", "chunked"),
    )


@pytest.mark.parametrize(
    ("uri", "parts"),
    [
        ("https://web.archive.org/web/2010id_/http://a.example/x", ("2010", "http://a.example/x")),
        (
            "https://web.archive.org/web/20100102030405/http:/a.example/x?y=/1/",
            ("20100102030405", "http://a.example/x?y=/1/"),
        ),
        ("//web.archive.org/web/20100102030405im_/a.example/x", ("20100102030405", "http://a.example/x")),
        ("https://elsewhere.example/web/2010/http://a.example/", None),
        ("https://web.archive.org/about", None),
    ],
)
def test_mementos_are_taken_apart(uri: str, parts: tuple[str, str] | None) -> None:
    assert split_memento(IA, uri) == parts


def test_a_rewritten_page_is_unwrapped() -> None:
    page = (
        b'<html><head><script src="//archive.org/includes/analytics.js"></script>\n'
        b'<link rel="stylesheet" href="/_static/css/banner-styles.css">\n<!-- End Wayback Rewrite JS Include -->\n'
        b"<title>T</title></head><body><!-- BEGIN WAYBACK TOOLBAR INSERT --><div>bar</div>"
        b'<!-- END WAYBACK TOOLBAR INSERT --><a href="https://web.archive.org/web/20100102030405/http://a.example/b">b</a>'
        b'<img src="/web/20100102030405im_/http://a.example/i.png"></body></html>\n'
        b"<!-- FILE ARCHIVED ON 03:04:05 Jan 02, 2010 AND RETRIEVED -->"
    )
    assert unwrap(IA, page) == (
        b'<html><head><title>T</title></head><body><a href="http://a.example/b">b</a>'
        b'<img src="http://a.example/i.png"></body></html>\n'
    )
