"""Asking the live web, politely and safely: the only place that calls hosts which are not archives.

Hides: redirects, name resolution, and which addresses must not be called. Invariants:

- only http and https; every hop of a redirect is checked again;
- a name is resolved by us, and only public addresses are connected to, so that neither a redirect nor a name server
  leads to a private network (`allow_private` permits loopback and private addresses, for tests and intranets);
- sizes, times and redirects are bounded; what is cut off is marked;
- at most one request a second to a host (`pace`);
- an answer is never an exception: a failure is a `Failure`, because for a watched site it is an observation.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

MAX_BODY = 8 * 1024 * 1024
MAX_REDIRECTS = 5
TIMEOUT = 30.0
PACE = 1.0
PERMANENT = frozenset((301, 308))
_REDIRECTS = frozenset((301, 302, 303, 307, 308))


class Failure(StrEnum):
    """Why there is no answer."""

    NO_NAME = "no-name"
    """The name does not exist (NXDOMAIN). A name server that does not answer is UNREACHABLE."""
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    TLS = "tls"
    BAD_ANSWER = "bad-answer"
    REDIRECTS = "too-many-redirects"
    REFUSED = "refused"
    """Not asked: another scheme, or an address that is not public."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One redirect on the way."""

    status: int
    url: str


@dataclass(frozen=True, slots=True)
class LiveAnswer:
    """What the live web said of a URL; `failure` is None if there was an HTTP answer, whatever its status."""

    asked: str
    url: str
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    """By lower-case name."""
    body: bytes = b""
    truncated: bool = False
    hops: tuple[Hop, ...] = ()
    failure: Failure | None = None
    why: str = ""

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class _NotPublic(OSError):
    """The name leads to an address that must not be called."""


class _Resolver(AbstractResolver):
    """Resolves names and hides addresses that are not public."""

    def __init__(self, allow_private: bool) -> None:
        self._allow_private = allow_private

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family)
        addresses = [(kind, str(place[0])) for kind, _, _, _, place in found]
        if not self._allow_private:
            addresses = [(kind, address) for kind, address in addresses if is_public(address)]
            if not addresses:
                raise _NotPublic(f"{host} has no public address")
        return [
            ResolveResult(hostname=host, host=address, port=port, family=kind, proto=0, flags=socket.AI_NUMERICHOST)
            for kind, address in addresses
        ]

    async def close(self) -> None:
        """Nothing is open."""


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public internet; addresses inside of others (6to4, mapped) count as both."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    inner: ipaddress.IPv4Address | None = None
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
    return ip.is_global and not ip.is_multicast and (inner is None or is_public(str(inner)))


class LiveClient:
    """Fetches from live sites. Make it inside a running loop; use it as a context manager."""

    def __init__(
        self,
        *,
        user_agent: str,
        allow_private: bool = False,
        timeout: float = TIMEOUT,
        max_body: int = MAX_BODY,
        pace: float = PACE,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._allow_private = allow_private
        self._timeout = timeout
        self._max_body = max_body
        self._pace = pace
        self._sleep = sleep
        self._free_at: dict[str, float] = {}
        connector = aiohttp.TCPConnector(resolver=_Resolver(allow_private), use_dns_cache=False, limit_per_host=1)
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": user_agent},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=True,
            max_line_size=32 * 1024,
            max_field_size=32 * 1024,
        )

    async def __aenter__(self) -> LiveClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._session.close()

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> LiveAnswer:
        """Ask for a URL, redirects followed; every failure is part of the answer."""
        hops: list[Hop] = []
        here = url
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._once(url, here, headers or {}, tuple(hops))
            location = answer.headers.get("location", "")
            if answer.failure is not None or answer.status not in _REDIRECTS or not location:
                return answer
            hops.append(Hop(answer.status, here))
            try:
                here = urljoin(here, location)
            except ValueError as error:
                return LiveAnswer(url, here, hops=tuple(hops), failure=Failure.REFUSED, why=str(error))
        return LiveAnswer(url, here, hops=tuple(hops), failure=Failure.REDIRECTS, why=f"more than {MAX_REDIRECTS}")

    async def post(self, url: str, content: bytes, headers: Mapping[str, str]) -> LiveAnswer:
        """Post to a URL; a redirect is the answer, not followed."""
        return await self._once(url, url, headers, (), content)

    async def _once(
        self, asked: str, url: str, headers: Mapping[str, str], hops: tuple[Hop, ...], content: bytes | None = None
    ) -> LiveAnswer:
        def failed(failure: Failure, why: str) -> LiveAnswer:
            return LiveAnswer(asked, url, hops=hops, failure=failure, why=why)

        refused = self._refused(url)
        if refused:
            return failed(Failure.REFUSED, refused)
        await self._wait_turn(url)
        try:
            async with asyncio.timeout(self._timeout):
                method = "GET" if content is None else "POST"
                async with self._session.request(
                    method, url, headers=headers, data=content, allow_redirects=False
                ) as response:
                    body, truncated = await self._read(response)
                    fields = {name.lower(): value for name, value in response.headers.items()}
                    return LiveAnswer(asked, url, response.status, fields, body, truncated, hops)
        except TimeoutError:
            return failed(Failure.TIMEOUT, f"no answer within {self._timeout:g} s")
        except aiohttp.ClientConnectorDNSError as error:
            return failed(*_of_name(error.os_error))
        except aiohttp.ClientConnectorError as error:
            tls = isinstance(error, (aiohttp.ClientConnectorSSLError, aiohttp.ClientConnectorCertificateError))
            return failed(Failure.TLS if tls else Failure.UNREACHABLE, str(error.os_error or error))
        except (aiohttp.ClientError, ValueError, UnicodeError) as error:
            return failed(Failure.BAD_ANSWER, f"{type(error).__name__}: {error}"[:300])
        except OSError as error:
            return failed(Failure.UNREACHABLE, str(error))

    async def _read(self, response: aiohttp.ClientResponse) -> tuple[bytes, bool]:
        parts: list[bytes] = []
        left = self._max_body
        async for part in response.content.iter_chunked(1 << 16):
            parts.append(part[:left])
            left -= len(part)
            if left < 0:
                response.close()
                return b"".join(parts), True
        return b"".join(parts), False

    def _refused(self, url: str) -> str:
        try:
            split = urlsplit(url)
            host = split.hostname or ""
        except ValueError as error:
            return str(error)
        if split.scheme.lower() not in ("http", "https") or not host:
            return "only http and https are asked"
        if split.username is not None or split.password is not None:
            return "an address with a user name is not asked"
        if self._allow_private:
            return ""
        try:
            return "" if is_public(host) else f"{host} is not a public address"
        except ValueError:
            return ""  # a name; the resolver looks at its addresses

    async def _wait_turn(self, url: str) -> None:
        host = urlsplit(url).netloc.lower()
        now = asyncio.get_running_loop().time()
        turn = max(now, self._free_at.get(host, 0.0))
        self._free_at[host] = turn + self._pace
        if turn > now:
            await self._sleep(turn - now)


def _of_name(error: Any) -> tuple[Failure, str]:
    """A name that does not exist is an observation; a name server that does not answer says nothing."""
    if isinstance(error, _NotPublic):
        return Failure.REFUSED, str(error)
    code = getattr(error, "errno", None)
    missing = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
    return (Failure.NO_NAME if code in missing else Failure.UNREACHABLE), str(error)
