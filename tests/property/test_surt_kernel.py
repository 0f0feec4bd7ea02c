"""The compiled way from a URI to its SURT agrees with the careful one, and takes what is ordinary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.errors import BadURI
from recollect.kernels.surts import ordinary_surt, surts_of_list
from recollect.uris import surt, uri_key

_labels = st.from_regex(r"(www[0-9]?|[a-zA-Z0-9_-]{1,6}|0[0-7]{1,3}|[0-9]{1,3})", fullmatch=True)
_hosts = st.lists(_labels, min_size=1, max_size=4).map(".".join)
_ports = st.sampled_from(["", "", ":80", ":443", ":8080", ":0", ":080", ":65536", ":x", ":"])
_segments = st.from_regex(
    r"[a-zA-Z0-9._~!$'*,;:@\"-]{0,5}|a?%[0-9a-fA-F]{2}b?|\.\.?|\(s\)|\([0-9a-z]{24}\)|(page)?\.aspx", fullmatch=True
)
_paths = st.lists(_segments, max_size=4).map(lambda parts: "".join(f"/{part}" for part in parts))
_parameters = st.sampled_from(
    ["a", "a=", "a=1", "B=2", "b", "", "=", "id=7", "sid=" + "a1" * 16, "q=%41", "?", "a=1=2"]
)
_queries = st.one_of(st.just(""), st.lists(_parameters, max_size=5).map(lambda parts: "?" + "&".join(parts)))
_fragments = st.sampled_from(["", "", "#", "#top?x", "#(a)"])
_noise = st.text(st.sampled_from("aZ.:/?#&=%()[]@ \t\\é-"), max_size=3)


@st.composite
def uris(draw: st.DrawFn) -> str:
    scheme = draw(st.sampled_from(["http://", "https://", "HTTP://", "http:/", "ftp://"]))
    uri = scheme + draw(_hosts) + draw(_ports) + draw(_paths) + draw(_queries) + draw(_fragments)
    at = draw(st.integers(0, len(uri)))
    return uri[:at] + draw(_noise) + uri[at:] if draw(st.booleans()) else uri


def _careful(uri: str) -> bytes | None:
    try:
        made = surt(uri).encode()
        uri_key(made)
    except BadURI:
        return None
    return made


@given(uris())
@example("http://www./")
@example("http://x.com/(0123456789abcdefghijklmn)/page.aspx")
@example("http://x.com/a%2F%2e%2E/b?x%26a=%23%C3%A9")
@example("http://x.com/%2541?%25")
@example("https://x.com:443?cfid=1&cftoken=2")
@example("http://x.com/a?aspsessionidabcdefgh=abcdefghijklmnopqrstuvwx&b")
def test_what_is_made_is_what_the_careful_way_makes(uri: str) -> None:
    made = ordinary_surt(uri.encode())
    if made is not None:
        assert made == _careful(uri)
        assert len(made) <= len(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "http://example.com",
        "https://www.Example.com:443/",
        "http://a.b.example.org:8080/Path/page.html?b=2&a=1#top",
        "http://x-y.example/?id=5&sid=7&version=2",
        "http://x.example/a%20b/(c)/%C3%A9?q=%7Euser",
        "https://1password.example/a/b/c/",
    ],
)
def test_ordinary_uris_are_taken(uri: str) -> None:
    assert ordinary_surt(uri.encode()) == surt(uri).encode()


@given(
    st.lists(uris().filter(lambda uri: "\n" not in uri), max_size=5), st.sampled_from([b"\n", b"\r\n"]), st.booleans()
)
def test_a_list_keeps_its_lines(lines: list[str], newline: bytes, ended: bool) -> None:
    text = newline.join(line.encode() for line in lines) + (newline if ended else b"")
    room = np.zeros(len(text), np.uint8)
    copied = room[: surts_of_list(np.frombuffer(text, np.uint8), room)].tobytes()
    expected = [ordinary_surt(line.removesuffix(b"\r")) or line for line in text.split(b"\n")]
    assert copied == b"\n".join(expected)
