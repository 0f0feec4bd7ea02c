"""Blocks as text: signed, found in any element, and refused by name when anything is wrong with them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protected_sites import KEY, OTHER_KEY
from recollect.protection.block import (
    MANIFEST,
    Block,
    Refusal,
    Refused,
    Version,
    is_class_name,
    mentions,
    read,
    text_bytes,
    write,
)
from recollect.protection.code import Code
from recollect.protection.collect import Collector

VERSION = Version("code", "20260301120000", "0123456789abcdef", "ab" * 32, 1000, Code.GF256, 4, KEY.public)
BLOCK = Block(VERSION, 7, 12, bytes(range(256)))
TEXT = write(BLOCK, KEY)


def only(page: bytes | str) -> Block | Refused:
    (found,) = list(read(page if isinstance(page, bytes) else page.encode()))
    return found


def test_what_is_written_is_read() -> None:
    assert VERSION.geometry.block_bytes == len(BLOCK.payload)
    assert only(TEXT) == BLOCK
    assert abs(len(TEXT) - text_bytes(len(BLOCK.payload))) < 20


@pytest.mark.parametrize(
    "page",
    [
        '<html><body><script type="application/vnd.recollect">{}</script></body>',
        "<!-- BEGIN_FILE_RECOVERY {} END_FILE_RECOVERY -->",
        "<div hidden>{}</div>",
        '<meta name="x" content="{}">',
        '<script type="application/ld+json">{{"x": "{}"}}</script>',
        "<template>{}</template>",
    ],
)
def test_any_element_carries_a_block(page: str) -> None:
    assert only(page.format(TEXT)) == BLOCK
    assert only(page.format(" ".join(TEXT.split()))) == BLOCK, "white space is folded by minifiers"
    assert only(page.format(TEXT).encode("utf-16")) == BLOCK


def test_a_block_has_no_character_that_means_anything_in_markup() -> None:
    assert not set(TEXT) & set("<>&\"'") and "--" not in TEXT


@pytest.mark.parametrize(
    "field", ["class=code", "version=20260301120000", "need=4", "number=7", "pages=12", "size=1000", "content=0123"]
)
def test_a_changed_header_is_forged_or_does_not_fit(field: str) -> None:
    last = field[-1]
    forged = TEXT.replace(field, field[:-1] + ("f" if last == "e" else str((int(last) + 1) % 10)), 1)
    found = only(forged)
    assert isinstance(found, Refused) and found.refusal in (Refusal.FORGED, Refusal.TRUNCATED), found


def test_a_changed_payload_is_forged() -> None:
    at = TEXT.index("recollect-end") - 20
    found = only(TEXT[:at] + ("A" if TEXT[at] != "A" else "B") + TEXT[at + 1 :])
    assert isinstance(found, Refused) and found.refusal is Refusal.FORGED
    assert "version 20260301120000" in str(found)


def test_a_block_signed_with_another_key_under_our_name_is_forged() -> None:
    found = only(write(BLOCK, OTHER_KEY))
    assert isinstance(found, Refused) and found.refusal is Refusal.FORGED


def test_a_cut_page_holds_a_truncated_block() -> None:
    for cut in range(len("recollect-block/1 "), len(TEXT) - len("recollect-end")):
        found = only(TEXT[:cut])
        assert isinstance(found, Refused) and found.refusal is Refusal.TRUNCATED
    missing = TEXT.replace("recollect-end", "", 1) + "\n" + TEXT
    assert [type(one) for one in read(missing.encode())] == [Refused, Block]


def test_a_payload_cut_in_the_middle_is_truncated() -> None:
    lines = TEXT.split("\n")
    lines[-2] = lines[-2][:100]
    found = only("\n".join(lines))
    assert isinstance(found, Refused) and found.refusal is Refusal.TRUNCATED and "75 of 256 bytes" in str(found)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("code=gf256", "code=magic"),
        ("need=4", "need=0"),
        ("need=4", "need=-4"),
        ("number=7", "number=16777216"),
        ("size=1000", "size=99999999999999"),
        ("class=code", "class=../x"),
        ("object=ab", "object=zz"),
        (" sign=", " sing="),
    ],
)
def test_a_header_without_sense_is_malformed(old: str, new: str) -> None:
    found = only(TEXT.replace(old, new, 1))
    assert isinstance(found, Refused) and found.refusal is Refusal.MALFORMED


def test_a_block_of_a_later_format_is_named() -> None:
    found = only(TEXT.replace("recollect-block/1", "recollect-block/2"))
    assert isinstance(found, Refused) and found.refusal is Refusal.FORMAT and "recollect-block/2" in str(found)


def test_foreign_keys_are_refused_when_one_is_trusted() -> None:
    foreign = write(Block(Version(**{**_fields(VERSION), "key": OTHER_KEY.public}), 7, 12, BLOCK.payload), OTHER_KEY)
    collector = Collector([KEY.public])
    assert collector.add("page", f"{TEXT}\n{foreign}".encode()) == [BLOCK]
    assert collector.refusals == {Refusal.FOREIGN: 1}
    assert collector.named[0][0] == "page" and "signed by" in str(collector.named[0][1])


def _fields(version: Version) -> dict[str, object]:
    return {name: getattr(version, name) for name in Version.__slots__}


@settings(max_examples=200)
@given(st.binary(max_size=400))
def test_no_bytes_break_the_reader(noise: bytes) -> None:
    for page in (noise, b"recollect-block/1 " + noise, TEXT.encode()[:300] + noise + b" recollect-end", noise * 2):
        for found in read(page):
            assert isinstance(found, Refused)
    assert BLOCK in list(read(b"<html>" + noise.replace(b"recollect", b"") + b" " + TEXT.encode()))
    assert mentions(TEXT.encode())


def test_names_of_classes() -> None:
    assert is_class_name("code") and is_class_name("data-2")
    assert not any(is_class_name(name) for name in ("", "Code", "a b", "../x", MANIFEST, "x" * 40))
