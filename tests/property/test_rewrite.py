"""Rewriting: whatever the markup, references keep their meaning and all other bytes stay."""

from urllib.parse import unquote, urljoin

from hypothesis import given
from hypothesis import strategies as st
from lxml import html as lxml_html

from recollect.recovery.rewrite import rewrite_css, rewrite_html

PAGE = "http://x.com/dir/page.html"
URLS = st.sampled_from(
    ["a.html", "/b", "../c?d=1&e=2", "//y.org/z", "http://x.com/q#f", "é", "a b", "%7Eu", "?x", "c;d=1,2"]
)
QUOTES = st.sampled_from(['"', "'"])


@st.composite
def pages(draw) -> tuple[str, list[str]]:
    parts, urls = [], []
    for _ in range(draw(st.integers(0, 8))):
        url, quote = draw(URLS), draw(QUOTES)
        urls.append(url)
        attribute = draw(st.sampled_from(["href", "HREF", " href ", "\nhref\n"]))
        escaped = url.replace("&", draw(st.sampled_from(["&", "&amp;"])))
        noise = draw(st.sampled_from(["", " class=x", " title='>'", ' data-x="<a href=/>"', " disabled"]))
        parts.append(
            f"<a{noise} {attribute}={quote}{escaped}{quote}>{draw(st.sampled_from(['t', '&lt;', 'é', '<b>x</b>']))}</a>"
        )
        parts.append(
            draw(st.sampled_from(["", "<!-- <a href='no'> -->", "<script>'<a href=no>'</script>", "\r\n", "<br/>"]))
        )
    return "".join(parts), urls


@given(pages())
def test_every_reference_still_names_the_same_resource(page):
    text, urls = page
    out = rewrite_html(text.encode(), PAGE, "text/html; charset=utf-8", lambda _uri: None)
    if not urls:
        return
    tree = lxml_html.document_fromstring(b"<meta charset=utf-8>" + out)
    found = [urljoin(PAGE, a.get("href")) for a in tree.iter("a")]
    assert [unquote(f) for f in found] == [unquote(urljoin(PAGE, u)) for u in urls]


@given(pages())
def test_every_local_reference_is_found_by_a_browser_like_parser(page):
    text, urls = page
    asked: list[str] = []

    def rewriter(uri: str) -> str:
        asked.append(uri)
        return f"local-{len(asked)}.html"

    out = rewrite_html(text.encode(), PAGE, "text/html; charset=utf-8", rewriter)
    assert len(asked) == len(urls)
    for number in range(1, len(asked) + 1):
        assert out.count(f"local-{number}.html".encode()) == 1


@given(st.binary(max_size=400))
def test_damaged_bytes_never_crash_and_links_apart_nothing_changes(body: bytes):
    rewrite_html(body, PAGE, "text/html; charset=windows-1252", lambda _uri: "x")
    rewrite_css(body, PAGE, "text/css", lambda _uri: "x")


@given(st.text(alphabet="abc <>/=\"'&;!-\n", max_size=120))
def test_markup_soup_never_crashes(soup: str):
    rewrite_html(soup.encode(), PAGE, "text/html", lambda _uri: "x")
