"""Links repointed in real-world markup, every other byte kept."""

import time

import pytest

from recollect.recovery.rewrite import rewrite_css, rewrite_html, rewrite_svg

PAGE = "http://x.com/dir/page.html"
LOCAL = {
    "http://x.com/": "../index.html",
    "http://x.com/dir/a.html": "a.html",
    "http://x.com/dir/a.html?id=2": "a.html@id=2.html",
    "http://x.com/img/i.png": "../img/i.png",
    "http://x.com/img/i2.png": "../img/i2.png",
    "http://x.com/s.css": "../s.css",
    "http://x.com/dir/é.html": "é-local.html",
    "http://cdn.net/lib.js": "../../cdn.net/lib.js",
}


def html(text: str, content_type: str = "text/html") -> str:
    return rewrite_html(text.encode(), PAGE, content_type, LOCAL.get).decode()


CASES = [
    # what the page says -> what it says afterwards
    ('<a href="a.html">', '<a href="a.html">'),
    ('<a href="/dir/a.html#top">', '<a href="a.html#top">'),
    ("<a href='/'>home</a>", "<a href='../index.html'>home</a>"),
    ("<a href=/>home</a>", '<a href="../index.html">home</a>'),
    ("<A HREF=/img/i.png CLASS=x>", '<A HREF="../img/i.png" CLASS=x>'),
    ('<a href="a.html?id=2&amp;x">', '<a href="http://x.com/dir/a.html?id=2&amp;x">'),
    ('<a href="a.html?id=2">', '<a href="a.html@id=2.html">'),
    ('<a href="gone.html">', '<a href="http://x.com/dir/gone.html">'),
    ('<a href="http://other.org/p?q=1">', '<a href="http://other.org/p?q=1">'),
    ('<a href="//cdn.net/lib.js">', '<a href="../../cdn.net/lib.js">'),
    ('<a href="#part">', '<a href="#part">'),
    ('<a href="">', '<a href="">'),
    ('<a href="mailto:a@b.c">', '<a href="mailto:a@b.c">'),
    ('<a href="javascript:void(0)">', '<a href="javascript:void(0)">'),
    ('<img src="data:image/png;base64,AA==">', '<img src="data:image/png;base64,AA==">'),
    ('<a href="\n/dir/\na.html ">', '<a href="a.html">'),
    ('<img src="/img/i.png" alt="<a href=/>">', '<img src="../img/i.png" alt="<a href=/>">'),
    ('<!-- <a href="/"> -->', '<!-- <a href="/"> -->'),
    ("<script>var a = '<a href=\"/\">';</script>", "<script>var a = '<a href=\"/\">';</script>"),
    ('<title><a href="/"></title>', '<title><a href="/"></title>'),
    ('<img srcset="/img/i.png 1x, /img/i2.png 2x">', '<img srcset="../img/i.png 1x, ../img/i2.png 2x">'),
    ('<img srcset="/img/i.png, no.png 2x">', '<img srcset="../img/i.png, http://x.com/dir/no.png 2x">'),
    ('<p style="background:url(/img/i.png)">', '<p style="background:url(../img/i.png)">'),
    ('<p style="background:url(&quot;/img/i.png&quot;)">', '<p style="background:url(../img/i.png)">'),
    ("<style>@import '/s.css'; a{b:url( \"/img/i.png\" )}</style>",
     "<style>@import url(../s.css); a{b:url(../img/i.png)}</style>"),
    ('<meta http-equiv="refresh" content="3; url=/">', '<meta http-equiv="refresh" content="3; url=../index.html">'),
    ('<meta http-equiv=Refresh content="0;URL=\'/\'">', '<meta http-equiv=Refresh content="0;URL=../index.html">'),
    ('<meta http-equiv="refresh" content="30">', '<meta http-equiv="refresh" content="30">'),
    ('<link rel="canonical" href="/dir/a.html">', '<link rel="canonical" href="http://x.com/dir/a.html">'),
    ('<link rel=stylesheet href=/s.css integrity="sha256-x" crossorigin>',
     '<link rel=stylesheet href="../s.css" data-was-integrity="sha256-x" data-was-crossorigin>'),
    ('<object data="/img/i.png"></object>', '<object data="../img/i.png"></object>'),
    ('<param name="movie" value="/img/i.png">', '<param name="movie" value="../img/i.png">'),
    ('<param name="other" value="/img/i.png">', '<param name="other" value="/img/i.png">'),
    ('<form action="/dir/a.html">', '<form action="a.html">'),
    ('<body background="/img/i.png">', '<body background="../img/i.png">'),
    ('<a title="a > b" href="/">', '<a title="a > b" href="../index.html">'),
    ('<a href="/" href="/second">', '<a href="../index.html" href="http://x.com/second">'),
    ('<a href="http://[broken/">', '<a href="http://[broken/">'),
    ('<a href="/unclosed', '<a href="/unclosed'),
    ("1 < 2 and <3", "1 < 2 and <3"),
    # Inside a drawing an element may be closed in its own tag; what follows it is not its text.
    ('<svg><title/></svg><a href="/">', '<svg><title/></svg><a href="../index.html">'),
    ('<svg><script href="/s.css"/><style/></svg><a href="/">',
     '<svg><script href="../s.css"/><style/></svg><a href="../index.html">'),
    ('<svg/><title/><a href="/"></title><a href="/">', '<svg/><title/><a href="/"></title><a href="../index.html">'),
    ('<svg></svg><script/>"<a href=/>"</script>', '<svg></svg><script/>"<a href=/>"</script>'),
    # Comments that end at once, or with an exclamation mark.
    ('<!--><a href="/"><!---><a href="/"><!-- <a href="/"> --!><a href="/">',
     '<!--><a href="../index.html"><!---><a href="../index.html"><!-- <a href="/"> --!><a href="../index.html">'),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), CASES)
def test_references(before: str, after: str):
    assert html(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<!DOCTYPE html><html lang=en><head><title>", "<!DOCTYPE html><html lang=en><head>POLICY<title>"),
        ("<html><body><script>", "<html>POLICY<body><script>"),
        ("<title>x</title><script>", "POLICY<title>x</title><script>"),
        # What a server or an intruder put in front of the page runs under the policy, too.
        (
            "<script>call()</script><!DOCTYPE html><html><head>",
            "POLICY<script>call()</script><!DOCTYPE html><html><head>",
        ),
        ("<html><script>call()</script><head>", "<html>POLICY<script>call()</script><head>"),
        (" <!-- <head> --> <html>\n<!-- x --><head><p>", " <!-- <head> --> <html>\n<!-- x --><head>POLICY<p>"),
        # Text ends the head before it began; a policy after it would not count.
        ("Warning: x <html><head><p>", "POLICYWarning: x <html><head><p>"),
        ("<html>x<head><p>", "<html>POLICYx<head><p>"),
        ("", "POLICY"),
    ],
)
def test_the_policy_is_the_first_thing_of_a_page(before: str, after: str):
    made = rewrite_html(before.encode(), PAGE, "text/html", LOCAL.get, policy="p").decode()
    assert made == after.replace("POLICY", '<meta http-equiv="Content-Security-Policy" content="p">')


def test_base_is_taken_out_and_its_meaning_kept():
    page = '<base href="http://x.com/img/"><img src="i.png"><a href="#x">'
    assert html(page) == (
        '<base data-was-href="http://x.com/img/"><img src="../img/i.png"><a href="http://x.com/img/#x">'
    )


def test_bytes_of_other_charsets_stay_and_are_declared_truly():
    body = "<html><head><title>Größe</title></head><a href='/'>ü</a>".encode("latin-1")
    out = rewrite_html(body, PAGE, "text/html; charset=ISO-8859-1", LOCAL.get)
    assert "Größe".encode("latin-1") in out
    assert b'<head><meta charset="windows-1252"><title>' in out


def test_a_false_declaration_is_corrected():
    body = '<head><meta http-equiv="Content-Type" content="text/html; charset=utf-8"></head>é'.encode("windows-1250")
    out = rewrite_html(body, PAGE, "text/html; charset=windows-1250", LOCAL.get)
    assert b"charset=windows-1250" in out and b"utf-8" not in out


def test_a_true_declaration_is_left_alone():
    body = '<meta charset="utf-8">é'.encode()
    assert rewrite_html(body, PAGE, "text/html; charset=UTF-8", LOCAL.get) == body


def test_utf16_pages_stay_utf16():
    body = "\ufeff<a href='/'>é</a>".encode("utf-16-le")
    assert rewrite_html(body, PAGE, "text/html", LOCAL.get).decode("utf-16-le") == "\ufeff<a href='../index.html'>é</a>"


def test_references_in_the_pages_charset_are_understood():
    body = '<meta charset="windows-1252"><a href="é.html">'.encode("windows-1252")
    out = rewrite_html(body, PAGE, "text/html", lambda uri: "found.html" if uri == "http://x.com/dir/é.html" else None)
    assert b'href="found.html"' in out


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('@import "/s.css" screen;', "@import url(../s.css) screen;"),
        ("/* url(/img/i.png) */", "/* url(/img/i.png) */"),
        ("a{b:url('/img/i.png')}", "a{b:url(../img/i.png)}"),
        ('c{content:"url(/img/i.png)"}', 'c{content:"url(/img/i.png)"}'),
        ("d{e:url(/im\\67/i.png)}", "d{e:url(../img/i.png)}"),
        ("f{g:url(no(p)e)}", "f{g:url(no(p)e)}"),
        ("h{i:url(/gone.png)}", "h{i:url(http://x.com/gone.png)}"),
    ],
)
def test_css(before: str, after: str):
    assert rewrite_css(before.encode(), "http://x.com/dir/x.css", "text/css", LOCAL.get).decode() == after


def test_svg_links():
    svg = b'<svg xmlns:xlink="http://www.w3.org/1999/xlink"><image xlink:href="/img/i.png"/></svg>'
    assert b'xlink:href="../img/i.png"' in rewrite_svg(svg, PAGE, "image/svg+xml", LOCAL.get)


def test_xml_closes_elements_in_their_own_tags_and_names_its_style_sheets():
    svg = (
        b'<?xml version="1.0"?><?xml-stylesheet href="/s.css"?>'
        b'<svg><title/><script href="/s.css"/><image href="/"/></svg>'
    )
    assert rewrite_svg(svg, PAGE, "image/svg+xml", LOCAL.get) == (
        b'<?xml version="1.0"?><?xml-stylesheet href="../s.css"?>'
        b'<svg><title/><script href="../s.css"/><image href="../index.html"/></svg>'
    )
    page = b'<html><script src="/s.css"/><a href="/"/></html>'
    assert b'href="../index.html"' in rewrite_html(page, PAGE, "application/xhtml+xml", LOCAL.get)
    gone = rewrite_svg(svg, PAGE, "image/svg+xml", lambda _: None, lambda _uri, use: f"data:{use}")
    assert b'<?xml-stylesheet data-missing="http://x.com/s.css" href="data:style"?>' in gone


@pytest.mark.parametrize(
    "piece",
    [
        "<!-- -->",
        "<html>",
        "<a ",
        '<a href="',
        "<a href='",
        "<!--",
        "<style>url(",
        "<script>",
        "<a b=c ",
        "&#x",
        "<p style='url(\"",
        "</",
    ],
)
def test_hostile_markup_takes_linear_time(piece: str):
    started = time.perf_counter()
    rewrite_html((piece * (1_000_000 // len(piece))).encode(), PAGE, "text/html; charset=utf-8", LOCAL.get)
    rewrite_css((piece * (1_000_000 // len(piece))).encode(), PAGE, "text/css; charset=utf-8", LOCAL.get)
    assert time.perf_counter() - started < 20
