"""Links that only one of the two programs sees: the crawl follows what the rewriter replaces, and what menus name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.recovery.reading import read_links
from recollect.recovery.rewrite import Use, rewrite_html

BASE = "http://a.example/dir/"


def links(markup: str, media_type: str = "text/html") -> dict[str, tuple[str, bool]]:
    document = read_links(markup.encode(), BASE, media_type)
    assert document is not None
    return {link.uri.removeprefix(BASE): (link.kind, link.guess) for link in document.links}


@pytest.mark.parametrize(
    ("markup", "name", "kind", "guess"),
    [
        (
            "<script>var menu=[['Classes','annotated.html'],['x','list.php?id=3#top']]</script>",
            "annotated.html",
            "page",
            True,
        ),
        ('<script>var menu={url:"list.php?id=3#top"}</script>', "list.php?id=3", "page", True),
        ("<select onchange='go(this)'><option value='b.html'>b<option value=''>-</select>", "b.html", "page", True),
        ("<select><option value='old/'>old</select>", "old/", "page", True),
        (
            "<frameset><frame src=f.html><noframes><body><a href=plain.html>x</a></noframes></frameset>",
            "plain.html",
            "page",
            False,
        ),
        ("<p><svg><a xlink:href='map.html'><rect/></a></svg>", "map.html", "page", False),
        ("<?xml-stylesheet href='s.css' type='text/css'?><html><p>x", "s.css", "asset", False),
        ("<html><body background=a.gif><p>x</p><body background=b.gif><p>y", "b.gif", "asset", False),
        ("<link rel=chapter href=c2.html><p>x", "c2.html", "page", False),
        ("<link rel='Appendix' href=ap.html><p>x", "ap.html", "page", False),
    ],
)
def test_links_of_menus_frames_drawings_and_old_markup(markup: str, name: str, kind: str, guess: bool) -> None:
    assert links(markup).get(name) == (kind, guess)


def test_words_in_a_list_are_not_addresses() -> None:
    found = links("<select><option value='1'>1<option value='red'>r<option value='Mr. X'>x</select>")
    assert found == {}


def test_style_sheets_of_a_drawing() -> None:
    drawing = (
        "<?xml version='1.0'?><?xml-stylesheet type='text/css' href='s.css'?><svg xmlns='http://www.w3.org/2000/svg'/>"
    )
    assert links(drawing, "image/svg+xml").get("s.css") == ("asset", False)


FRAGMENTS = st.lists(
    st.sampled_from(
        [
            *(
                "<a href=p.html>",
                "<body background=i.gif>",
                "<noframes>",
                "</noframes>",
                "<frameset>",
                "<table background=t.gif>",
            ),
            *(
                "<svg>",
                "<a xlink:href=q.html>",
                "<image xlink:href=g.png>",
                "</svg>",
                "<iframe src=f.html>",
                "<!--",
                "-->",
            ),
            *(
                "<img src=x.png",
                "<link rel=stylesheet href=s.css>",
                "<script src=a.js></script>",
                "<base href=/b/>",
                "</body>",
            ),
            *(
                "<title>",
                "</title>",
                "<form action=go.php>",
                "<td style='background:url(u.gif)'>",
                "<style>b{c:url(v.gif)}</style>",
            ),
        ]
    ),
    max_size=12,
)


@given(FRAGMENTS)
def test_whatever_the_rewriter_replaces_was_read(parts: list[str]) -> None:
    body = "".join(parts).encode()
    seen: set[str] = set()

    def see(uri: str, use: Use) -> None:
        seen.add(uri.partition("#")[0])

    rewrite_html(body, BASE, "text/html", lambda _uri: None, see)
    document = read_links(body, BASE, "text/html")
    assert seen <= ({link.uri for link in document.links} if document else set())
