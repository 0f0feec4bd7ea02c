"""Proxies between us and archives, as the environment names them: HTTP_PROXY, HTTPS_PROXY, NO_PROXY.

Hides: which requests use a proxy, its credentials, and the tunnel for https (CONNECT). Hosts on loopback are never
asked through a proxy. A proxy sees plain requests, and of https only the host's name.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import os
import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from recollect.errors import RequestRefused

if TYPE_CHECKING:
    from recollect.archives.http1 import Connection

_MAX_ANSWER = 64 * 1024


@dataclass(frozen=True, slots=True)
class Proxy:
    """Where a proxy is, and the header fields it wants."""

    host: str
    port: int
    fields: bytes = field(default=b"", repr=False)


def from_environment(scheme: str, host: str) -> Proxy | None:
    """The proxy for a host, or None to go straight."""
    if not any(name.lower() == f"{scheme}_proxy" for name in os.environ):
        return None
    from urllib.request import getproxies_environment, proxy_bypass

    address = getproxies_environment().get(scheme, "")
    if not address or _is_loopback(host) or proxy_bypass(host):
        return None
    split = urlsplit(address if "://" in address else f"http://{address}")
    if split.scheme != "http" or not split.hostname:
        raise RequestRefused(
            "not a proxy we can use", where=address.rpartition("@")[2], why="expected http://host:port"
        )
    fields = b""
    if split.username is not None:
        secret = f"{unquote(split.username)}:{unquote(split.password or '')}".encode()
        fields = b"Proxy-Authorization: Basic " + base64.b64encode(secret) + b"\r\n"
    return Proxy(split.hostname, split.port or 80, fields)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


async def tunnel(proxy: Proxy, host: str, port: int, connection: Connection, context: ssl.SSLContext) -> None:
    """Open an encrypted line to a host through a proxy, and give it to the connection."""
    loop = asyncio.get_running_loop()
    transport, answer = await loop.create_connection(_Answer, proxy.host, proxy.port)
    try:
        name = f"[{host}]" if ":" in host else host
        target = f"{name}:{port}".encode("ascii")
        transport.write(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (target, target, proxy.fields))
        first = await answer.line
        if first.split(b" ", 2)[1:2] != [b"200"]:
            raise OSError(f"the proxy answers {first.decode('latin-1')!r}")
        secured = await loop.start_tls(transport, connection, context, server_hostname=host)
        if secured is None:
            raise OSError("the connection broke")
    except BaseException:
        transport.abort()
        raise
    connection.connection_made(secured)


class _Answer(asyncio.Protocol):
    """Reads a proxy's answer to CONNECT: its first line, when its head is whole."""

    def __init__(self) -> None:
        self.line: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._head = b""

    def data_received(self, data: bytes) -> None:
        self._head += data
        if self.line.done():
            return
        if b"\r\n\r\n" in self._head:
            self.line.set_result(self._head.partition(b"\r\n")[0])
        elif len(self._head) > _MAX_ANSWER:
            self.line.set_exception(OSError("the proxy's answer has no end"))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.line.done():
            self.line.set_exception(exc or OSError("the proxy closed the connection"))
