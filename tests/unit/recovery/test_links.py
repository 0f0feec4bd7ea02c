"""Links of documents as they are on the web: broken, old, and in every place a URL can hide."""

from __future__ import annotations

import gzip

import pytest

from recollect.recovery.links import (
    MAX_LINKS,
    Link,
    css_references,
    document_form,
    effective_type,
    read_document,
    refresh_target,
    srcset_uris,
)

BASE = "http://a.example/dir/page.html"


def links(html: str | bytes, media_type: str = "text/html", **options: str) -> dict[str, Link]:
    data = html.encode() if isinstance(html, str) else html
    document = read_document(data, BASE, media_type, **options)
    assert document is not None
    return {link.uri.removeprefix("http://a.example"): link for link in document.links}


@pytest.mark.parametrize(
    ("markup", "uri", "kind", "embedded"),
    [
        ("<a href='x.html'>", "/dir/x.html", "page", False),
        ("<A HREF=/y>", "/y", "page", False),
        ("<a href='?q=1'>", "/dir/page.html?q=1", "page", False),
        ("<a href=' x\n.html '>", "/dir/x.html", "page", False),
        ("<a href='..\\up.html'>", "/up.html", "page", False),
        ("<area href=map.html>", "/dir/map.html", "page", False),
        ("<img src=p.png>", "/dir/p.png", "asset", True),
        ("<img lowsrc=l.png>", "/dir/l.png", "asset", True),
        ("<img data-src=late.png>", "/dir/late.png", "asset", True),
        ("<img srcset='s.png 1x, t,u.png 2x'>", "/dir/t,u.png", "asset", True),
        ("<picture><source srcset=w.webp></picture>", "/dir/w.webp", "asset", True),
        ("<body background=bg.gif>", "/dir/bg.gif", "asset", True),
        ("<td background='bg.gif'>", "/dir/bg.gif", "asset", True),
        ("<script src=s.js></script>", "/dir/s.js", "asset", True),
        ("<link rel=stylesheet href=s.css>", "/dir/s.css", "asset", True),
        ("<link rel='shortcut icon' href=/f.ico>", "/f.ico", "asset", True),
        ("<link rel=canonical href=/c>", "/c", "page", False),
        ("<link rel=alternate type=application/rss+xml href=feed>", "/dir/feed", "page", False),
        ("<frameset><frame src=f.html></frameset>", "/dir/f.html", "page", True),
        ("<iframe src=i.html></iframe>", "/dir/i.html", "page", True),
        ("<object data=o.swf></object>", "/dir/o.swf", "asset", True),
        ("<object><param name=movie value=m.swf></object>", "/dir/m.swf", "asset", True),
        ("<applet code=A.class codebase=/java/></applet>", "/java/A.class", "asset", True),
        ("<embed src=e.mid>", "/dir/e.mid", "asset", True),
        ("<input type=image src=b.gif>", "/dir/b.gif", "asset", True),
        ("<video poster=v.jpg src=v.mp4></video>", "/dir/v.jpg", "asset", True),
        ("<p style=\"background:url('st.png')\">", "/dir/st.png", "asset", True),
        ("<style>@import 'i.css'; a{background:url(u.png)}</style>", "/dir/i.css", "asset", True),
        ("<meta http-equiv=Refresh content='0; URL=next.html'>", "/dir/next.html", "page", False),
        ("<meta property='og:image' content='/og.png'>", "/og.png", "asset", False),
        ("<svg><image xlink:href='v.png'/></svg>", "/dir/v.png", "asset", True),
        ("<!--[if IE 6]><link rel=stylesheet href=ie.css><![endif]-->", "/dir/ie.css", "asset", True),
        ("<noscript><img src=n.png></noscript>", "/dir/n.png", "asset", True),
        ("<a href='/caf\u00e9'>", "/caf%C3%A9", "page", False),
    ],
)
def test_where_links_hide(markup: str, uri: str, kind: str, embedded: bool) -> None:
    found = links(f"<html>{markup}</html>")
    assert uri in found
    assert (found[uri].kind, found[uri].embedded, found[uri].guess) == (kind, embedded, False)


@pytest.mark.parametrize(
    "markup",
    [
        "<a href='mailto:x@y'>",
        "<a href='javascript:go()'>",
        "<a href='#top'>",
        "<a href=''>",
        "<img src='data:x'>",
        "<a href='tel:1'>",
        "<link rel=preconnect href=//cdn.example>",
        "<a href='http://[bad/'>",
        "<a href='http://'>",
        "<a href='//'>",
    ],
)
def test_what_leads_nowhere_is_not_a_link(markup: str) -> None:
    assert links(markup) == {}


def test_base_is_the_base_and_fragments_are_cut() -> None:
    found = links("<base href='/other/'><a href='x#part'><img src='p.png'><base href='/ignored/'>")
    assert set(found) == {"/other/x", "/other/p.png"}


def test_strings_of_scripts_are_guesses_and_real_links_outweigh_them() -> None:
    found = links("<a href='#' onmouseover=\"swap('b.gif')\"><script>go('c.png'); location='/next'</script>")
    assert {uri: link.guess for uri, link in found.items()} == {"/dir/b.gif": True, "/dir/c.png": True, "/next": True}
    both = links("<a onclick=\"f('b.gif')\"></a><img src='b.gif'>")
    assert not both["/dir/b.gif"].guess


def test_a_query_is_encoded_in_the_page_s_charset_and_a_path_in_utf_8() -> None:
    page = '<meta charset="iso-8859-1"><a href="é?q=é">'.encode("latin-1")
    assert set(links(page)) == {"/dir/%C3%A9?q=%E9"}


@pytest.mark.parametrize("codec", ["utf-8", "cp1251", "shift_jis", "utf-16"])
def test_declared_charsets_are_used(codec: str) -> None:
    data = '<html><head><title>日本</title></head><a href="x">'.encode(codec, "replace")
    document = read_document(data, BASE, "text/html", codec if codec != "utf-16" else None)
    assert document is not None and [link.uri for link in document.links] == ["http://a.example/dir/x"]


def test_text_and_title_are_what_people_see() -> None:
    document = read_document(
        b"<title> A\n title </title><script>hidden()</script><p>Seen <b>words</b></p><style>no{}</style> tail"
        b"<form><input type=password></form>",
        BASE,
        "text/html",
    )
    assert document is not None
    assert (document.title, document.text, document.has_password) == ("A title", "A title Seen words tail", True)


def test_css_in_all_its_spellings() -> None:
    css = """@charset "utf-8"; @import "a.css" screen; @IMPORT url(b.css); /* url(no.png) */
    x { background: URL( "c.png" ), url('d e.png') ; content: "url(no.png)"; }
    @media print { y { src: url(f.woff) format("woff") } } z { background: u\\72l(g.png) } a { b: url(h\\ i.png) }"""
    assert list(css_references(css)) == ["a.css", "b.css", "c.png", "d e.png", "f.woff", "g.png", "h i.png"]


@pytest.mark.parametrize(
    ("srcset", "expected"),
    [
        ("a.png, b.png 2x", ["a.png", "b.png"]),
        ("a,b.png 1x,c.png 2x", ["a,b.png", "c.png"]),
        ("  a.png  100w , b.png", ["a.png", "b.png"]),
        ("a.png,", ["a.png"]),
        ("", []),
        ("a.png (x, y), b.png", ["a.png", "b.png"]),
    ],
)
def test_srcset(srcset: str, expected: list[str]) -> None:
    assert list(srcset_uris(srcset)) == expected


@pytest.mark.parametrize(
    ("content", "target"),
    [("5; url=a.html", "a.html"), ("0;URL='b.html'", "b.html"), ("0; c.html", "c.html"), ("30", None), ("", None)],
)
def test_meta_refresh(content: str, target: str | None) -> None:
    assert refresh_target(content) == target


def test_sitemaps_feeds_robots_manifests_and_svg() -> None:
    sitemap = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc> /m </loc></url></urlset>"
    assert set(links(sitemap, "text/xml")) == {"/m"}
    rss = (
        "<rss><channel><item><link>/r</link><enclosure url='/e.mp3'/>"
        "<description>&lt;img src='/d.png'&gt;</description></item></channel></rss>"
    )
    assert {u: k.kind for u, k in links(rss, "application/rss+xml").items()} == {
        "/r": "page",
        "/e.mp3": "asset",
        "/d.png": "asset",
    }
    atom = "<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='/at'/></entry><logo>/l.png</logo></feed>"
    assert set(links(atom, "application/atom+xml")) == {"/at", "/l.png"}
    robots = read_document(b"User-agent: *\nSitemap: /s.xml\n", "http://a.example/robots.txt", "text/plain")
    assert robots is not None and [link.uri for link in robots.links] == ["http://a.example/s.xml"]
    manifest = '{"start_url": "/app", "icons": [{"src": "i.png"}, 3], "screenshots": "no"}'
    assert set(links(manifest, "application/manifest+json")) == {"/app", "/dir/i.png"}
    drawing = "<use xlink:href='u.svg#x'/><g style='fill:url(p.svg#y)'/>"
    svg = f"<svg xmlns:xlink='http://www.w3.org/1999/xlink'>{drawing}</svg>"
    assert set(links(svg, "image/svg+xml")) == {"/dir/u.svg", "/dir/p.svg"}


def test_the_form_is_detected_by_type_then_by_bytes_then_by_name() -> None:
    assert document_form("text/html", BASE, b"") == "html"
    assert document_form("", BASE, b"\n <!DOCTYPE HTML>") == "html"
    assert document_form("application/octet-stream", "http://a/x.css", b"a{}") == "css"
    assert document_form("image/png", BASE, b"<html>") is None
    assert document_form("text/plain", "http://a/robots.txt", b"<html>") == "html"
    assert document_form("text/plain", "http://a/notes.txt", b"plain") is None
    assert document_form("text/html, text/html", BASE, b"") == "html"
    assert document_form("text/xml", "http://a/x", b"<?xml version='1.0'?><!-- x --><svg>") == "svg"


@pytest.mark.parametrize(
    ("declared", "uri", "head", "kept"),
    [
        ("text/html, text/html", "http://a/x", b"<html>", "text/html"),
        ("unk", "http://a/x", b"<html>", "text/html"),
        ("application/octet-stream", "http://a/x.htm", b"<html>", "text/html"),
        ("application/x-httpd-php", "http://a/x.php", b"<html>", "text/html"),
        ("application/vnd.wap.xhtml+xml", "http://a/x", b"<html>", "application/xhtml+xml"),
        ("text/xml", "http://a/x", b"<!DOCTYPE html><html>", "application/xhtml+xml"),
        ("text/xml", "http://a/x.rss", b"<rss>", "text/xml"),
        # The name of a file decides what a browser takes it for; without one text stays text.
        ("text/plain", "http://a/x.html?y=.txt", b"<html>", "text/html"),
        ("text/plain", "http://a/x.css", b"a{}", "text/css"),
        ("text/plain", "http://a/x.svg", b"<svg>", "image/svg+xml"),
        ("text/plain", "http://a/x", b"<html>", "text/plain"),
        ("text/plain", "http://a/x.txt", b"<html>", "text/plain"),
        ("application/pdf", "http://a/x.html", b"%PDF", "application/pdf"),
        ("application/octet-stream", "http://a/x.bin", b"\0", "application/octet-stream"),
    ],
)
def test_the_type_of_a_copy(declared: str, uri: str, head: bytes, kept: str) -> None:
    assert effective_type(declared, uri, head) == kept


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0\0",
        b"<",
        b"<!--",
        b"<a href=",
        b"<" * 100_000,
        b"<div>" * 50_000,
        b"\xff\xfe\x00",
        b"<svg" + b"<" * 999,
    ],
)
@pytest.mark.parametrize(
    "media_type", ["text/html", "text/xml", "image/svg+xml", "text/css", "application/manifest+json"]
)
def test_damaged_documents_do_no_harm(data: bytes, media_type: str) -> None:
    assert read_document(data, BASE, media_type) is not None


def test_a_bomb_of_entities_or_links_is_bounded() -> None:
    laughs = "".join(f"<!ENTITY l{n} '{f'&l{n - 1};' * 10}'>" for n in range(1, 10))
    bomb = f"<!DOCTYPE x [<!ENTITY l0 'ha'>{laughs}]><urlset><url><loc>&l9;</loc></url></urlset>"
    assert links(bomb, "text/xml") == {}
    many = "".join(f"<a href=/{n}>" for n in range(MAX_LINKS + 10))
    assert len(links(many)) == MAX_LINKS


def test_gzipped_sitemaps_are_read_whatever_their_type() -> None:
    xml = b"<?xml version='1.0'?><urlset><url><loc>http://a.example/one</loc></url></urlset>"
    for media_type in ("application/x-gzip", "application/gzip", "application/xml", "application/octet-stream"):
        document = read_document(gzip.compress(xml), "http://a.example/sitemap.xml.gz", media_type)
        assert document is not None and [link.uri for link in document.links] == ["http://a.example/one"], media_type
    index = b"<sitemapindex><sitemap><loc>http://a.example/s2.xml.gz</loc></sitemap></sitemapindex>"
    document = read_document(gzip.compress(index), "http://a.example/sitemap_index.xml.gz", "application/gzip")
    assert document is not None and [link.uri for link in document.links] == ["http://a.example/s2.xml.gz"]
    assert read_document(gzip.compress(b"a program"), "http://a.example/program.tar.gz", "application/gzip") is None
    text = read_document(b"http://a.example/x\nnot one\n", "http://a.example/sitemap.txt", "text/plain")
    assert text is not None and [link.uri for link in text.links] == ["http://a.example/x"]


def test_damaged_or_hostile_gzip_gives_no_document_or_the_readable_part() -> None:
    packed = gzip.compress(b"<urlset><url><loc>http://a.example/one</loc></url>" + b" " * 5000)
    for body in (packed[:-9], b"\x1f\x8bnonsense"):
        document = read_document(body, "http://a.example/sitemap.xml.gz", "application/gzip")
        assert document is None or len(document.links) <= 1


def test_a_page_inside_a_page() -> None:
    html = """<iframe srcdoc="<a href='/in.html'>x</a><img src=&quot;i.png&quot;>"></iframe>"""
    document = read_document(html.encode(), "http://a.example/d/", "text/html")
    assert document is not None
    assert {(link.uri, link.kind) for link in document.links} == {
        ("http://a.example/in.html", "page"),
        ("http://a.example/d/i.png", "asset"),
    }


def test_json_ld() -> None:
    html = """<script type="application/ld+json">{"@context": "https://schema.org", "@id": "http://a.example/#me",
      "@graph": [{"@type": "Article", "url": "/story", "image": ["/1.jpg", {"@type": "ImageObject", "url": "/2.jpg"}],
      "publisher": {"logo": {"url": "/logo.png"}, "sameAs": ["http://social.example/a"], "name": "/not/a/link"}},
      {"itemListElement": [{"item": "http://a.example/list"}, {"url": "no address"}]}]}</script>
      <script type="application/ld+json">{broken</script>"""
    document = read_document(html.encode(), "http://a.example/", "text/html")
    assert document is not None
    certain = {(link.uri.removeprefix("http://a.example"), link.kind) for link in document.links if not link.guess}
    assert certain == {
        ("/story", "page"), ("/1.jpg", "asset"), ("/2.jpg", "asset"), ("/logo.png", "asset"), ("/list", "page")
    }  # fmt: skip


@pytest.mark.parametrize(
    "script",
    [
        "self.addEventListener('install', e => caches.open('v1').then(c => c.addAll(['/', '/page', 'app.css'])))",
        "const urls = [\n  '/',\n  '/page',\n  'app.css',\n];\ncaches.open(x).then(cache => cache.addAll(urls));",
        'precacheAndRoute([{"revision":"1","url":"app.css"},{url:"/",revision:null},{"url":"/page","revision":"2"}]);',
    ],
)
def test_the_lists_of_service_workers_are_certain_links(script: str) -> None:
    document = read_document(script.encode(), "http://a.example/sw.js", "text/javascript")
    assert document is not None
    certain = {link.uri: link.kind for link in document.links if not link.guess}
    assert certain == {
        "http://a.example/": "page", "http://a.example/page": "page", "http://a.example/app.css": "asset"
    }  # fmt: skip


def test_arrays_of_other_scripts_stay_guesses() -> None:
    script = b"var days = ['/monday', '/tuesday']; var files = ['a.png'];"
    document = read_document(script, "http://a.example/x.js", "text/javascript")
    assert document is not None and [(link.uri, link.guess) for link in document.links] == [
        ("http://a.example/a.png", True)
    ]


@pytest.mark.parametrize(
    ("name", "media_type"),
    [("site.webmanifest", "application/manifest+json"), ("manifest.json", "application/json"), ("m.webmanifest", "")],
)
def test_web_manifests(name: str, media_type: str) -> None:
    text = """{"start_url": "./start", "icons": [{"src": "i.png"}], "screenshots": [{"src": "/s.png"}, 5],
      "shortcuts": [{"url": "/new", "icons": [{"src": "n.png"}]}], "serviceworker": {"src": "sw.js"}}"""
    document = read_document(text.encode(), f"http://a.example/app/{name}", media_type)
    assert document is not None
    assert {(link.uri.removeprefix("http://a.example"), link.kind) for link in document.links} == {
        ("/app/start", "page"), ("/app/i.png", "asset"), ("/s.png", "asset"), ("/new", "page"),
        ("/app/n.png", "asset"), ("/app/sw.js", "asset"),
    }  # fmt: skip
