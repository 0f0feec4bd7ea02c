import gzip

import pytest

from recollect.formats.ukvs.faults import validate
from ukvs_samples import FIGURE_2, OLD_PROFILE, UKVS_TEXT

HEAD = b'!fields {"keys": ["surt"], "values": ["frequency"]}\n'


@pytest.fixture
def faults(tmp_path):
    def faults(text, level="error"):
        path = tmp_path / "map"
        path.write_bytes(text)
        return [(fault.line, fault.code) for fault in validate(path) if fault.level == level]

    return faults


@pytest.mark.parametrize("name", UKVS_TEXT)
def test_the_examples_of_the_ukvs_text_are_clean(faults, name):
    assert faults(UKVS_TEXT[name]) == []


def test_the_papers_samples_are_clean(faults):
    assert faults(FIGURE_2) == []
    assert faults(FIGURE_2, "note") == []
    assert faults(OLD_PROFILE) == []
    assert faults(gzip.compress(FIGURE_2)) == []


GOOD_KEYS = [
    b"*",
    b"com,*",
    b"com,x,*",
    b"com,x)/",
    b"com,x)/*",
    b"com,x)/a",
    b"com,x)/a/*",
    b"com,x)/a//b",
    b"com,x)/a/b.c-d_e~f",
    b"com,x:8080)/a",
    b"com,x:8080,*",
    b"4,3,2,1)/",
    b"4,3,2,1)/a/*",
    b"[::1])/",
    b"localhost)/",
    b"uk)/",
    b"uk,co,bbc)/1/2/3/i",
    b"com,x)/%2a",
    b"com,x)/%c3%a9",
    b"com,x)/a!b",
    b"com,x)/a'()+,;=:@&$",
]


@pytest.mark.parametrize("key", GOOD_KEYS)
def test_keys_in_normal_form_are_clean(faults, key):
    for level in ("error", "note"):
        assert faults(HEAD + key + b" 5\n", level) == []


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"com,x)/a*b 5", "literal-star"),
        (b"com,x)/*/b 5", "literal-star"),
        (b"com,x)/a* 5", "literal-star"),
        (b"com,x* 5", "literal-star"),
        (b"*,com 5", "literal-star"),
        (b"com,x)/**  5", "literal-star"),
        (b"com,x 5", "bad-key"),
        (b"x 5", "bad-key"),
        (b"/* 5", "bad-key"),
        (b",* 5", "bad-key"),
        (b"http://example.com/ 5", "bad-key"),
        (b"http://(com,x)/a 5", "bad-key"),
        (b"dns:example.com 5", "bad-key"),
        (b"com,x)/a?b=1 5", "bad-key"),
        (b"com,x)/a#b 5", "bad-key"),
        (b"com,x)/a\x00b 5", "bad-key"),
        (b"com,x)/a\x1b[31m 5", "bad-key"),
        (b'"com,x)/a" 5', "bad-key"),
        (b"com,x)/ 5x", "bad-frequency"),
        (b"com,x)/ 5/5/5", "bad-frequency"),
        (b"com,x)/ 99999999999999999999", "bad-frequency"),
        (b"com,x)/", "wrong-field-count"),
        (b"com,x)/ 1 2", "wrong-field-count"),
        (b'com,x)/ "1', "bad-quotes"),
        (b"com,x)/ 1 {a: }", "bad-json"),
        (b"com,x)/ 1 {a: 1} x", "bad-json"),
        (b"com,x)/ 1 {a: 1}}", "bad-json"),
        (b'com,x)/ 5 {"set": {"v": 1, "k": 1, "parts": 1, "bits": "AAA="}}', "bad-set"),
        (b'com,x)/* 5 {"set": {"v": 1, "k": 1, "parts": 9, "bits": "AAA="}}', "bad-set"),
        (b'com,x)/* 5 {"set": {"v": 1, "k": 0, "parts": 1, "bits": "AAA="}}', "bad-set"),
        (b'com,x)/* 5 {"set": {"v": 1, "k": 1, "parts": 1, "bits": "?"}}', "bad-set"),
        (b'com,x)/* 5 {"set": []}', "bad-set"),
        (b"com,x)/\xff 5", "not-utf-8"),
        (b'com,x)/ 5 {"a": "\xff"}', "not-utf-8"),
        (b" com,x)/ 5", "leading-space"),
        (b"\tcom,x)/ 5", "leading-space"),
        (b"!meta {a: 1}", "header-after-data"),
        (b"@about {a: 1}", "header-after-data"),
        (b"# words", "comment-after-data"),
        (b"", "empty-line"),
        (b"com,a)/ 7", "unsorted"),
        (b"com,b)/ 7", "duplicate-key"),
    ],
)
def test_every_kind_of_fault_is_named_with_its_line(faults, line, code):
    found = faults(HEAD + b"com,b)/ 1\n" + line + b"\nzz,z)/ 1\n")
    assert (3, code) in found
    assert {number for number, _ in found} == {3}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"com,x)/a/ 5", "trailing-slash"),
        (b"com,x) 5", "no-slash"),
        (b"com,x)/A 5", "not-normal"),
        (b"com,x)/\xc3\xa9 5", "not-normal"),
        (b"com,x,)/ 5", "not-normal"),
        (b"1.2.3.4)/ 5", "not-normal"),
        (b"com,x)/ 5/6", "more-uri-r"),
        (b"com,x)/ 007", "odd-frequency"),
        (b"com,x)/ 5\r", "carriage-return"),
        (b"com,x)/ 5", "no-final-newline"),
    ],
)
def test_notes_have_no_effect_on_readers(faults, line, code):
    text = HEAD + line
    assert faults(text) == []
    assert code in [found for _, found in faults(text, "note")]


def test_faults_of_the_file(faults):
    for nothing in (b"", b"\n", b"# words\n\n"):
        assert faults(nothing) == [(None, "empty-file")]
    assert faults(b"\xef\xbb\xbf" + FIGURE_2) == [(1, "byte-order-mark")]
    assert faults(b"!meta {\n" + FIGURE_2) == [(1, "bad-header")]
    assert (None, "damaged") in faults(gzip.compress(FIGURE_2)[:-3])
    assert faults(b"com,x)/ 5\n", "note") == [(None, "no-fields")]
    assert faults(HEAD) == []


def test_further_key_columns_are_checked(faults):
    head = b'!fields {"keys": ["surt", "datetime"], "values": ["frequency"]}\n'
    assert faults(head + b"com,x)/ 2014 5\ncom,x)/ 2015 5\ncom,x)/ : 10\n") == []
    assert faults(head + b"com,x)/ 2015 5\ncom,x)/ 2014 5\n") == [(3, "unsorted")]
    assert faults(head + b"com,x)/ : 5\ncom,x)/ 2014 5\ncom,x)/ : 5\n") == [(4, "duplicate-key")]
    assert faults(head + b"com,x)/ May 5\n") == [(2, "bad-datetime")]
    # A profile of a list, which has no times, has such rows.
    assert faults(head + b"com,x)/ : 10\ncom,x)/ ? 10\n") == []
    assert faults(b'!fields {keys: ["a", "b"], values: []}\nx z\nx y\ny a\n') == [(3, "unsorted")]


def test_queries_are_keys_under_the_policy_that_keeps_them(faults):
    assert faults(b'!meta {policy: "URIR"}\n' + HEAD + b"com,x)/a?b=1 5\n") == []


def test_other_schemes_are_keys_in_a_map_that_says_so(faults):
    assert faults(b"!meta {all_schemes: true}\n" + HEAD + b"dns:example.com 5\nzz*z 1\n") == [(4, "literal-star")]


def test_faults_are_found_anywhere_in_a_large_map(faults):
    lines = [b"com,x)/%06d 1/1" % number for number in range(100_000)]
    assert faults(HEAD + b"\n".join(lines) + b"\n") == []
    lines[70_000] = lines[69_999]
    lines[90_000] = b"com,x)/090000 one"
    lines[99_998], lines[99_999] = lines[99_999], lines[99_998]
    assert faults(HEAD + b"\n".join(lines) + b"\n") == [
        (70_002, "duplicate-key"),
        (90_002, "bad-frequency"),
        (100_001, "unsorted"),
    ]
