"""Name servers of a domain, asked of a DNS server (RFC 1035): one question of type NS, over UDP, over TCP if cut off.

Hides: the wire format. An answer is what a server said for certain; everything else (no server, a time-out, an error,
an answer to another question) is unknown, which is an empty tuple. Bytes come from others: lengths and compression
pointers are checked, pointers only lead back.
"""

from __future__ import annotations

import asyncio
import secrets
import struct
from dataclasses import dataclass
from pathlib import Path

TIMEOUT = 5.0
_NS, _IN = 2, 1
_MOST_NAME = 255
_MOST_RECORDS = 256
_HEADER = struct.Struct(">6H")
_RECURSE, _RESPONSE, _CUT, _CODE = 0x0100, 0x8000, 0x0200, 0x000F
_NO_ERROR, _NO_SUCH_NAME = 0, 3


@dataclass(frozen=True, slots=True)
class NameServer:
    """A DNS server that is asked."""

    host: str
    port: int = 53


class BadDnsAnswer(ValueError):
    """Bytes that are not an answer."""


def system_resolver(path: str | Path = "/etc/resolv.conf") -> NameServer | None:
    """The first name server that the system asks; None if the file does not say."""
    try:
        lines = Path(path).read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    fields = [line.split() for line in lines]
    return next((NameServer(line[1]) for line in fields if line[:1] == ["nameserver"] and len(line) > 1), None)


async def ask_name_servers(server: NameServer, domain: str, timeout: float = TIMEOUT) -> tuple[str, ...]:
    """The name servers of a domain in lower case, sorted; empty if they are unknown."""
    number = secrets.randbelow(1 << 16)
    try:
        question = make_question(domain, number)
        async with asyncio.timeout(timeout):
            content = await _over_udp(server, question)
            if _is_cut(content):
                content = await _over_tcp(server, question)
        return read_answer(content, domain, number)
    except (BadDnsAnswer, OSError, TimeoutError, EOFError, UnicodeError):
        return ()


async def gives_answers(server: NameServer, domain: str, timeout: float = TIMEOUT) -> bool:
    """Whether a DNS server can say for certain that a name in no cache exists or not (RFC 2308). A resolver
    that does not reach the servers of the domain answers with an error, or not at all; its cache has no such name.
    """
    number = secrets.randbelow(1 << 16)
    try:
        question = make_question(f"recollect-{secrets.token_hex(6)}.{domain}", number)
        async with asyncio.timeout(timeout):
            content = await _over_udp(server, question)
        echoed, flags, *_ = _HEADER.unpack_from(content)
    except (BadDnsAnswer, OSError, TimeoutError, UnicodeError, struct.error):
        return False
    return echoed == number and bool(flags & _RESPONSE) and flags & _CODE in (_NO_ERROR, _NO_SUCH_NAME)


def make_question(domain: str, number: int) -> bytes:
    """A query for the NS records of a domain."""
    labels = domain.rstrip(".").encode("idna").split(b".")
    if not all(0 < len(label) < 64 for label in labels):
        raise BadDnsAnswer(f"not a domain: {domain}")
    name = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    return _HEADER.pack(number, _RECURSE, 1, 0, 0, 0) + name + struct.pack(">2H", _NS, _IN)


def _is_cut(content: bytes) -> bool:
    return len(content) >= _HEADER.size and bool(_HEADER.unpack_from(content)[1] & _CUT)


def read_answer(content: bytes, domain: str, number: int) -> tuple[str, ...]:
    """The name servers that an answer lists for a domain; raises BadDnsAnswer."""
    try:
        echoed, flags, questions, answers, _, _ = _HEADER.unpack_from(content)
        if echoed != number or not flags & _RESPONSE or flags & _CODE or questions != 1:
            raise BadDnsAnswer("not an answer to this question")
        name, place = _name(content, _HEADER.size)
        wanted = domain.rstrip(".").encode("idna").decode().lower()
        if name != wanted or struct.unpack_from(">2H", content, place) != (_NS, _IN):
            raise BadDnsAnswer("an answer to another question")
        place += 4
        found = set()
        for _ in range(min(answers, _MOST_RECORDS)):
            owner, place = _name(content, place)
            kind, group, _, size = struct.unpack_from(">2HIH", content, place)
            place += 10
            if (kind, group, owner) == (_NS, _IN, wanted):
                found.add(_name(content, place)[0])
            place += size
    except struct.error as error:
        raise BadDnsAnswer("the answer ends early") from error
    return tuple(sorted(found))


def _name(content: bytes, place: int) -> tuple[str, int]:
    """A name in lower case, and where the bytes after it begin."""
    labels: list[str] = []
    end: int | None = None
    lowest = place
    while True:
        if place >= len(content):
            raise BadDnsAnswer("a name ends early")
        size = content[place]
        if size & 0xC0 == 0xC0:
            (pointer,) = struct.unpack_from(">H", content, place)
            end = place + 2 if end is None else end
            place = pointer & 0x3FFF
            if place >= lowest:
                raise BadDnsAnswer("a name that points ahead")
            lowest = place
            continue
        if size & 0xC0:
            raise BadDnsAnswer("an unknown kind of label")
        place += 1
        if size == 0:
            return ".".join(labels), place if end is None else end
        labels.append(content[place : place + size].decode("ascii", "replace").lower())
        place += size
        if sum(map(len, labels)) > _MOST_NAME:
            raise BadDnsAnswer("a name that is too long")


class _Receiver(asyncio.DatagramProtocol):
    def __init__(self) -> None:
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def datagram_received(self, data: bytes, addr: object) -> None:
        if not self.answer.done():
            self.answer.set_result(data)

    def error_received(self, exc: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(exc)


async def _over_udp(server: NameServer, question: bytes) -> bytes:
    # The socket is connected, so the system drops datagrams of others.
    loop = asyncio.get_running_loop()
    transport, receiver = await loop.create_datagram_endpoint(_Receiver, remote_addr=(server.host, server.port))
    try:
        transport.sendto(question)
        return await receiver.answer
    finally:
        transport.close()


async def _over_tcp(server: NameServer, question: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(server.host, server.port)
    try:
        writer.write(struct.pack(">H", len(question)) + question)
        (size,) = struct.unpack(">H", await reader.readexactly(2))
        return await reader.readexactly(size)
    finally:
        writer.close()
