"""An archive that sends its answer in chunks of a byte costs linear time, and not without end."""

from __future__ import annotations

from time import process_time

import pytest

from recollect.archives.http1 import Connection
from recollect.errors import ArchiveError

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Sink:
    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.ended = False
        self.error: ArchiveError | None = None

    def head(self, status: int, raw: bytes) -> None:
        pass

    def data(self, chunk: bytes) -> None:
        self.parts.append(chunk)

    def end(self) -> None:
        self.ended = True

    def fail(self, error: ArchiveError, *, unanswered: bool) -> None:
        self.error = error


class Transport:
    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes) -> None:
        pass

    def close(self) -> None:
        pass

    abort = close


def received(answer: bytes, step: int) -> Sink:
    connection, sink = Connection("http://archive.example", lambda _: None), Sink()
    connection.connection_made(Transport())  # type: ignore[arg-type]
    connection.send(b"", sink)
    for at in range(0, len(answer), step):
        connection.data_received(answer[at : at + step])
    return sink


def seconds(answer: bytes, step: int) -> float:
    best = float("inf")
    for _ in range(3):
        started = process_time()
        received(answer, step)
        best = min(best, process_time() - started)
    return best


def test_reading_one_byte_chunks_takes_linear_time() -> None:
    small = HEAD + b"1\r\na\r\n" * 15_000 + b"0\r\n\r\n"
    large = HEAD + b"1\r\na\r\n" * 60_000 + b"0\r\n\r\n"
    assert b"".join(received(small, 1 << 30).parts) == b"a" * 15_000
    assert seconds(large, 1 << 30) < 10 * seconds(small, 1 << 30)  # 4 where linear, 16 where quadratic


def test_reading_a_head_byte_by_byte_takes_linear_time() -> None:
    small = b"HTTP/1.1 200 OK\r\nLink: " + b"a" * 30_000 + b"\r\nContent-Length: 0\r\n\r\n"
    large = b"HTTP/1.1 200 OK\r\nLink: " + b"a" * 120_000 + b"\r\nContent-Length: 0\r\n\r\n"
    assert received(small, 1).ended
    assert seconds(large, 1) < 10 * seconds(small, 1)


@pytest.mark.parametrize("step", [1 << 14, 1 << 30])
def test_an_answer_of_endless_small_chunks_is_refused(step: int) -> None:
    sink = received(HEAD + b"1\r\na\r\n" * 200_000 + b"0\r\n\r\n", step)
    assert sink.error is not None
    assert "small chunks" in str(sink.error)


def test_many_chunks_of_a_usual_size_are_read() -> None:
    chunk = b"100\r\n" + b"a" * 256 + b"\r\n"
    sink = received(HEAD + chunk * 90_000 + b"0\r\n\r\n", 1 << 16)
    assert sink.ended
    assert sum(map(len, sink.parts)) == 256 * 90_000
