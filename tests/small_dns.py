"""A DNS server on loopback that answers, over UDP and TCP, exactly what a test wants."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from recollect.archives.names import NameServer

Answer = Callable[[bytes, bool], bytes]
"""From a question, and whether it came over TCP, to an answer."""


def name(text: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in text.split(".")) + b"\0"


def reply(question: bytes, *servers: str, flags: int = 0x8180, owner: bytes = b"\xc0\x0c") -> bytes:
    """An answer with NS records, names compressed as servers do."""
    records = b"".join(owner + struct.pack(">2HIH", 2, 1, 300, len(name(server))) + name(server) for server in servers)
    return question[:2] + struct.pack(">5H", flags, 1, len(servers), 0, 0) + question[12:] + records


@asynccontextmanager
async def dns_server(answer: Answer) -> AsyncIterator[NameServer]:
    class Udp(asyncio.DatagramProtocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = transport

        def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
            self.transport.sendto(answer(data, False), addr)  # type: ignore[attr-defined]

    async def tcp(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (size,) = struct.unpack(">H", await reader.readexactly(2))
        content = answer(await reader.readexactly(size), True)
        writer.write(struct.pack(">H", len(content)) + content)
        writer.close()

    server = await asyncio.start_server(tcp, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(Udp, local_addr=("127.0.0.1", port))
    try:
        yield NameServer("127.0.0.1", port)
    finally:
        transport.close()
        server.close()
