"""Pages that carry blocks are the same pages, and the same again when they do not."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from recollect.protection.inject import Injector, injected, make_carrier
from recollect.protection.markup import Place, Scanner, Style, Unfit, carrier, carry, place, strip

BLOCKS = "recollect-block/1\nclass=code AAAA\nrecollect-end"

pieces = st.sampled_from(
    [
        "<html>", "<head>", "</head>", "<title>", "</title>", "<body>", "</body>", "</BODY >", "</html>", "<p class=x>",
        "<!--", "-->", "<!-- </body> -->", "<script>", "</script>", "var a = '</body>';", "<style>", "</style>",
        '<a title="</body>">', "<a title='", "'>", '"', "<svg>", "</svg>", "<style/>", "<frameset>", "</frameset>",
        "<noframes>", "</noframes>", "<textarea>", "</textarea>", "text", " ", "\n", "<", ">", "</", "<![CDATA[", "]]>",
        "<?xml version='1.0'?>", "<br/>", "日本", "é", "<plaintext>", "<!doctype html>", "--!>", "<!-->",
    ]
)  # fmt: skip
pages = st.lists(pieces, max_size=30).map("".join)


@settings(max_examples=400)
@given(pages, st.sampled_from(["utf-8", "utf-16", "utf-16-le", "utf-16-be", "shift_jis", "iso2022_jp", "gb18030"]))
@example("<html><body>\n</body></html>", "utf-16")
@example("</body>", "utf-8")
def test_carrying_changes_nothing_else_and_is_undone_exactly(text: str, charset: str) -> None:
    page = text.encode(charset, "replace")
    for style in Style:
        carried = carry(page, BLOCKS, style)
        if isinstance(carried, Unfit):
            continue
        assert len(carried) > len(page)
        assert strip(carried) == page
        assert carry(carried, BLOCKS, style) == carried
        other = carry(carried, BLOCKS.replace("AAAA", "BBBB"), style)
        assert not isinstance(other, Unfit) and strip(other) == page


@given(st.binary(max_size=300))
@example(b"\0")  # a zero before our `<` is not UTF-16
@example(b"<a b='")
def test_any_bytes_at_all_are_carried_and_restored(page: bytes) -> None:
    carried = carry(page, BLOCKS)
    assert isinstance(carried, Unfit) or strip(carried) == page
    assert strip(page) == page


@settings(max_examples=300)
@given(pages, st.lists(st.integers(0, 400), max_size=6))
def test_a_page_in_pieces_has_the_same_tags_at_the_same_places(text: str, cuts: list[int]) -> None:
    page = text.encode()
    whole = Scanner()
    expected = whole.feed(page, final=True)
    parts = Scanner()
    found = []
    at = 0
    for cut in sorted({min(cut, len(page)) for cut in cuts}):
        found += parts.feed(page[at:cut])
        at = cut
    found += parts.feed(page[at:], final=True)
    assert found == expected
    assert parts.is_open == whole.is_open


@settings(max_examples=300)
@given(pages, st.lists(st.integers(0, 400), max_size=6), st.booleans())
def test_a_stream_gets_its_carrier_once_wherever_it_is_cut(text: str, cuts: list[int], is_xml: bool) -> None:
    page = text.encode()
    inserted = make_carrier(BLOCKS, Style.SCRIPT, is_xml=is_xml)
    edges = [0, *sorted({min(cut, len(page)) for cut in cuts}), len(page)]
    cut_up = (page[a:b] for a, b in pairwise(edges))
    sent = b"".join(injected(cut_up, Injector(inserted, is_xml=is_xml)))
    assert len(sent) == len(page) + len(inserted)
    assert inserted.element in sent or inserted.comment in sent
    assert sent.replace(inserted.element, b"", 1).replace(inserted.comment, b"", 1) == page
    at_once = b"".join(injected(iter([page]), Injector(inserted, is_xml=is_xml)))
    assert sent == at_once


@given(st.lists(st.sampled_from(["<p>x</p>", "<script>'</body>'</script>", "<!-- </body> -->", "text"]), max_size=8))
def test_a_stream_and_a_file_are_changed_at_the_same_place(middle: list[str]) -> None:
    page = f"<html><head><title>t</title></head><body>{''.join(middle)}</body></html>".encode()
    expected = carry(page, BLOCKS)
    inserted = make_carrier(BLOCKS, Style.SCRIPT, is_xml=False)
    sent = b"".join(injected(iter([page]), Injector(inserted)))
    assert sent.replace(inserted.element, b"@") == expected.replace(carrier(BLOCKS, Style.SCRIPT).encode(), b"@")


@pytest.mark.parametrize(
    ("page", "before"),
    [
        ("<html><body>x</body></html>", "</body></html>"),
        ("<html><body>x</html>", "</html>"),
        ("x", ""),
        ("<body>a</body><!-- b </body> -->", "</body><!-- b </body> -->"),
        ("<body><script>document.write('</body>')</script>a</body>", "</body>"),
        ("<body><a title='</body>'>a</a></body >\n", "</body >\n"),
        ("<body>a<p title=it's>b</body>", "</body>"),
        ("<body>a</body>b</body>", "</body>"),
        ("<html><head><title>t</title></head><frameset rows=*><frame src=a></frameset></html>", "</head>"),
        ("<html><frameset><frame src=a><noframes><body>x</body></noframes></frameset></html>", "<frameset>"),
        ("<body><frameset></frameset>x</body>", "</body>"),
        ("<body><svg><style/><title/></svg></body>", "</body>"),
        ("<body><textarea></body></textarea></body>", "</body>"),
    ],
)
def test_blocks_go_before_the_real_end_of_the_body(page: str, before: str) -> None:
    where = place(page.encode())
    assert isinstance(where, Place)
    assert page[where.offset :].startswith(before) and (before or where.offset == len(page))


@pytest.mark.parametrize(
    ("page", "why"),
    [
        ("<body><script>var a = 1;", Unfit.UNCLOSED),
        ("<body><!-- never closed </body>", Unfit.UNCLOSED),
        ("<body><plaintext>a</body>", Unfit.PLAINTEXT),
        ("<html><body>x</body></html>".encode("utf-32"), Unfit.UTF32),
    ],
)
def test_pages_in_which_anything_would_show_are_refused(page: str | bytes, why: Unfit) -> None:
    assert carry(page if isinstance(page, bytes) else page.encode(), BLOCKS) is why


def test_xml_without_a_body_carries_a_comment_after_its_root() -> None:
    page = b"<?xml version='1.0'?><x:html xmlns:x='http://www.w3.org/1999/xhtml'><x:body/></x:html>\n"
    carried = carry(page, BLOCKS, is_xml=True)
    assert isinstance(carried, bytes) and carried.startswith(page) and b"<!-- BEGIN_FILE_RECOVERY" in carried
    assert strip(carried) == page


@given(pages)
def test_a_frame_or_a_page_that_is_not_ours_is_left_alone(text: str) -> None:
    page = f"{text}<script type='application/json'>{{}}</script><!-- BEGIN_FILE_RECOVERY blocks = 40 -->".encode()
    assume(b"recollect" not in page)
    assert strip(page) == page


@pytest.mark.parametrize("piece", [b'<a b="', b"<a", b"<a ", b"<a b=", b"</a", b"<!--", b"<a b  ", b"<a b='>"])
def test_malformed_pages_take_time_in_proportion_to_their_size(piece: bytes) -> None:
    def seconds(count: int) -> float:
        page = b"<html><body>" + piece * count + b"</body>"
        scanner = Scanner()
        start = time.process_time()
        place(page)
        for at in range(0, len(page), 8192):
            scanner.feed(page[at : at + 8192])
        scanner.feed(b"", final=True)
        return time.process_time() - start

    assert seconds(200_000) < 0.5 + 40 * seconds(20_000)
