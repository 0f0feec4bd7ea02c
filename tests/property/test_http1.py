"""The reader of HTTP answers gives the same answer however the bytes are cut, and never more than one per request."""

from __future__ import annotations

import gzip
import zlib
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.archives import client as client_module
from recollect.archives.client import decode_body
from recollect.archives.http1 import Connection, Headers
from recollect.errors import ArchiveError


class Transport:
    """Stands for a socket: the connection is a pure machine between `data_received` and its sink."""

    def __init__(self) -> None:
        self.closed = False

    def write(self, data: bytes) -> None: ...

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close


class Taken:
    def __init__(self) -> None:
        self.status = 0
        self.raw = b""
        self.body = b""
        self.ends: list[str] = []

    def head(self, status: int, raw: bytes) -> None:
        self.status, self.raw = status, raw

    def data(self, chunk: bytes) -> None:
        assert chunk
        self.body += chunk

    def end(self) -> None:
        self.ends.append("end")

    def fail(self, error: ArchiveError, *, unanswered: bool) -> None:
        self.ends.append(error.kind)


def read(pieces: list[bytes], *, expects_body: bool = True) -> tuple[Taken, list[Connection], Transport]:
    idle: list[Connection] = []
    connection = Connection("test", idle.append)
    transport: Any = Transport()
    connection.connection_made(transport)
    taken = Taken()
    connection.send(b"GET / HTTP/1.1\r\n\r\n", taken, expects_body=expects_body)
    for piece in pieces:
        if not transport.closed:
            connection.data_received(piece)
    if not taken.ends:
        connection.connection_lost(None)
    return taken, idle, transport


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted({p % (len(data) + 1) for p in places}), len(data)]
    return [data[a:b] for a, b in pairwise(edges) if a < b]


bodies = st.binary(max_size=300)
cuts = st.lists(st.integers(0, 2000), max_size=12)


def chunked(body: bytes, sizes: list[int]) -> bytes:
    out, at = b"", 0
    for size in sizes:
        piece = body[at : at + size]
        if piece:
            out += b"%x;ext=1\r\n%s\r\n" % (len(piece), piece)
            at += len(piece)
    if body[at:]:
        out += b"%X\r\n%s\r\n" % (len(body[at:]), body[at:])
    return out + b"0\r\nTrailer: x\r\n\r\n"


@given(bodies, cuts, st.booleans())
def test_a_counted_body_survives_any_cut(body: bytes, places: list[int], interim: bool) -> None:
    data = b"HTTP/1.1 100 Continue\r\n\r\n" if interim else b""
    data += b"HTTP/1.1 200 OK\r\ncontent-LENGTH:%d\r\n\r\n" % len(body) + body
    taken, idle, _ = read(cut(data, places))
    assert (taken.status, taken.body, taken.ends, len(idle)) == (200, body, ["end"], 1)


@given(bodies, st.lists(st.integers(1, 50), max_size=8), cuts)
def test_a_chunked_body_survives_any_cut(body: bytes, sizes: list[int], places: list[int]) -> None:
    data = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(body, sizes)
    taken, idle, _ = read(cut(data, places))
    assert (taken.body, taken.ends, len(idle)) == (body, ["end"], 1)


@given(bodies, cuts)
def test_a_body_without_length_ends_with_its_connection(body: bytes, places: list[int]) -> None:
    taken, idle, _ = read(cut(b"HTTP/1.0 200 OK\r\n\r\n" + body, places))
    assert (taken.body, taken.ends, idle) == (body, ["end"], [])


@given(st.binary(max_size=400), cuts)
def test_any_bytes_end_in_exactly_one_way(data: bytes, places: list[int]) -> None:
    taken, _, _ = read(cut(data, places))
    assert len(taken.ends) == 1


@given(bodies.filter(bool), cuts, st.integers(1, 300))
def test_a_body_cut_short_is_never_taken_for_whole(body: bytes, places: list[int], missing: int) -> None:
    data = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(body) + missing) + body
    taken, idle, _ = read(cut(data, places))
    assert (taken.ends, idle) == (["bad answer"], [])


def test_bytes_after_a_response_end_the_connection() -> None:
    taken, _, transport = read([b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\n"])
    assert taken.ends == ["end"]
    assert transport.closed


def test_what_is_not_a_body_is_bounded() -> None:
    for endless in (
        b"HTTP/1.1 100 Continue\r\n\r\n" * 1000,
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 100_000,
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000,
    ):
        taken, idle, _ = read([endless])
        assert (taken.ends, idle) == (["bad answer"], [])


def test_a_head_ends_at_the_first_empty_line_however_lines_end() -> None:
    taken, _, _ = read([b"HTTP/1.1 200 OK\nContent-Length: 4\n\n\r\n\r\n"])
    assert (taken.body, taken.ends) == (b"\r\n\r\n", ["end"])
    taken, _, _ = read([b"HTTP/1.1 200 OK\nContent-Length: 30\n\nContent-Length: 1\r\n\r\n123456789"])
    assert (len(taken.body), taken.ends) == (30, ["end"])


def test_two_lengths_are_refused() -> None:
    taken, _, _ = read([b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"])
    assert taken.ends == ["bad answer"]


def test_a_length_beside_chunks_is_read_by_chunks_and_the_connection_not_used_again() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n"
    taken, idle, _ = read([head + b"1\r\na\r\n0\r\n\r\n"])
    assert (taken.body, taken.ends, idle) == (b"a", ["end"], [])


def test_answers_that_have_no_body() -> None:
    for status in (b"204 No Content", b"304 Not Modified"):
        taken, idle, _ = read([b"HTTP/1.1 %s\r\nContent-Length: 5\r\n\r\n" % status])
        assert (taken.ends, len(idle)) == (["end"], 1)
    taken, idle, _ = read([b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"], expects_body=False)
    assert (taken.ends, len(idle)) == (["end"], 1)


def test_an_endless_head_is_refused() -> None:
    taken, _, _ = read([b"HTTP/1.1 200 OK\r\n"] + [b"X: " + b"y" * 65536 + b"\r\n"] * 5)
    assert taken.ends == ["bad answer"]


def test_headers_keep_order_repeats_and_folds() -> None:
    headers = Headers(b"HTTP/1.1 200 OK\r\nLink: <a>\r\nX: 1\r\n 2\r\nlink: <b>\r\nEmpty:\r\nNot a header")
    assert headers.items() == [("Link", "<a>"), ("X", "1 2"), ("link", "<b>"), ("Empty", "")]
    assert headers.get_all("LINK") == ["<a>", "<b>"]
    assert headers.get("link") == "<a>"
    assert "x" in headers and "y" not in headers


# Content codings


@given(
    st.lists(st.binary(max_size=300), min_size=1, max_size=4),
    st.sampled_from(["gzip", "deflate", "raw"]),
    st.integers(0, 700),
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(0, 3),
)
def test_bodies_are_decompressed_in_pieces_up_to_a_limit(
    members: list[bytes], coding: str, limit: int, given_size: int, part_size: int, lost: int
) -> None:
    whole = b"".join(members)
    if coding == "gzip":
        body = b"".join(map(gzip.compress, members))
    else:
        compressor = zlib.compressobj(wbits=-15 if coding == "raw" else 15)
        body = compressor.compress(whole) + compressor.flush()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(client_module, "_DEFLATED", given_size)
        patched.setattr(client_module, "_INFLATED", part_size)
        name = "gzip" if coding == "gzip" else "deflate"
        plain, cut = decode_body(body, name, limit)
        assert plain == whole[:limit]
        assert bool(cut) == (len(whole) > limit)
        plain, cut = decode_body(body[: max(0, len(body) - lost)], name, 10**6)
        assert whole.startswith(plain)
        assert bool(cut) == bool(lost)
