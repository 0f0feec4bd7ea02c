"""Asking the live web, politely and safely: the only place that calls hosts which are not archives.

Hides: redirects, name resolution, and which addresses must not be called. Invariants:

- only http and https; every hop of a redirect is checked again;
- the host is checked as the HTTP client reads it (`http://①②⑦.0.0.1/` is 127.0.0.1), by one parser for both;
- a name is resolved by us for each connection, and only public addresses are connected to, so that neither a redirect
  nor a name server leads to a private network (`allow_private` permits loopback and private addresses);
- sizes, times and redirects are bounded; what is cut off is marked;
- one request at a time to a host, and at most one a second (`pace`); the wait for a turn is not the host's fault and
  does not count for its time-out;
- an answer is never an exception: a failure is a `Failure`, because for a watched site it is an observation.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import TracebackType
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from recollect.archives.certificates import Certificate, read_certificate

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
    CERTIFICATE = "certificate"
    """The server answers; its certificate is not accepted."""
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
        addresses = [(kind, address) for kind, address in addresses if may_call(address, self._allow_private)]
        if not addresses:
            raise _NotPublic(f"{host} has no {'' if self._allow_private else 'public '}address that may be called")
        return [
            ResolveResult(hostname=host, host=address, port=port, family=kind, proto=0, flags=socket.AI_NUMERICHOST)
            for kind, address in addresses
        ]

    async def close(self) -> None:
        """Nothing is open."""


_UNICAST = ipaddress.IPv6Network("2000::/3")
"""What the registry gives out as global unicast addresses; Python calls others global, too (`::7f00:1`)."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public internet; an IPv4 address inside of an IPv6 one has to be public."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv4Address):
        return ip.is_global and not ip.is_multicast
    if ip.ipv4_mapped is not None:
        return is_public(str(ip.ipv4_mapped))
    if ip in _NAT64:
        return is_public(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
    inner = ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
    return ip in _UNICAST and ip.is_global and (inner is None or is_public(str(inner)))


_PRIVATE = tuple(
    map(ipaddress.ip_network, ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7"))
)
"""Networks of one machine or one organisation, which `allow_private` permits."""
_METADATA = tuple(
    map(ipaddress.ip_network, ("168.63.129.16/32", "192.0.0.192/32", "fd00:ec2::254/128", "fd20:ce::254/128"))
)
"""Where clouds tell machines their secrets, outside of the link-local networks: Azure, Oracle, Amazon, Google."""


def may_call(address: str, allow_private: bool) -> bool:
    """Whether an IP address may be called: public ones, with `allow_private` also those of this machine and of private
    networks; never link-local ones and never those where a cloud tells its machines their secrets."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        return may_call(str(ip.ipv4_mapped), allow_private)
    if any(ip in network for network in _METADATA):
        return False
    return is_public(str(ip)) or (allow_private and any(ip in network for network in _PRIVATE))


def refusal(url: str, allow_private: bool = False) -> str:
    """Why a URL is not asked; empty if it may be. What a name leads to, only the resolver knows."""
    try:
        parsed = URL(url)
        host, user = parsed.host or "", parsed.user or parsed.password
        _ = parsed.port
    except ValueError as error:
        return str(error)
    if parsed.scheme not in ("http", "https") or not host:
        return "only http and https are asked"
    if user is not None:
        return "an address with a user name is not asked"
    if any(character < " " or character == "\x7f" for character in url):
        return "an address has no control characters"
    try:
        permitted = may_call(host, allow_private)
    except ValueError:
        numbers = host.rstrip(".").rpartition(".")[2]
        # 2130706433, 0177.1 and 0x7f.1 are addresses for some libraries, and not names for any.
        numeric = numbers.isdigit() or numbers.lower().startswith("0x")
        return f"{host} is neither a name nor an IP address" if numeric else ""
    kind = "an address that may be called" if allow_private else "a public address"
    return "" if permitted else f"{host} is not {kind}"


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
        self._turns: dict[str, asyncio.Lock] = {}
        self._resolver = _Resolver(allow_private)
        # Made here and not by aiohttp's import, so that SSL_CERT_FILE of the environment counts.
        connector = aiohttp.TCPConnector(
            resolver=self._resolver, use_dns_cache=False, limit_per_host=1, ssl=ssl.create_default_context()
        )
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

    async def get(self, url: str, headers: Mapping[str, str] | None = None, *, verify: bool = True) -> LiveAnswer:
        """Ask for a URL, redirects followed; every failure is part of the answer. `verify` False accepts every
        certificate, to see the content behind one that expired."""
        hops: list[Hop] = []
        here = url
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._once(url, here, headers or {}, tuple(hops), verify=verify)
            location = answer.headers.get("location", "")
            if answer.failure is not None or answer.status not in _REDIRECTS or not location:
                return answer
            hops.append(Hop(answer.status, here))
            try:
                here = urljoin(here, location.strip())
            except ValueError as error:
                return LiveAnswer(url, here, hops=tuple(hops), failure=Failure.REFUSED, why=str(error))
        return LiveAnswer(url, here, hops=tuple(hops), failure=Failure.REDIRECTS, why=f"more than {MAX_REDIRECTS}")

    async def post(self, url: str, content: bytes, headers: Mapping[str, str]) -> LiveAnswer:
        """Post to a URL; a redirect is the answer, not followed."""
        return await self._once(url, url, headers, (), content)

    async def certificate(self, url: str) -> Certificate | None:
        """The certificate of a server, trusted or not; None without TLS or an answer."""
        if not url.startswith("https://") or refusal(url, self._allow_private):
            return None
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            async with asyncio.timeout(self._timeout):
                host, port = URL(url).host or "", URL(url).port or 443
                place = (await self._resolver.resolve(host, port))[0]["host"]
                _, writer = await asyncio.open_connection(place, port, ssl=context, server_hostname=host)
                try:
                    content = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
                finally:
                    writer.close()
        except (OSError, ValueError, IndexError):
            return None
        return read_certificate(content) if content else None

    async def _once(
        self,
        asked: str,
        url: str,
        headers: Mapping[str, str],
        hops: tuple[Hop, ...],
        content: bytes | None = None,
        *,
        verify: bool = True,
    ) -> LiveAnswer:
        why = refusal(url, self._allow_private)
        if why:
            return LiveAnswer(asked, url, hops=hops, failure=Failure.REFUSED, why=why)
        host = _host_key(url)
        clock = asyncio.get_running_loop().time
        async with self._turns.setdefault(host, asyncio.Lock()):
            wait = self._free_at.get(host, 0.0) - clock()
            if wait > 0:
                await self._sleep(wait)
            try:
                return replace(await self._ask(url, headers, content, verify), asked=asked, hops=hops)
            finally:
                # From the end of a request: however late it was sent, the server sees the next one a second later.
                self._free_at[host] = clock() + self._pace

    async def _ask(self, url: str, headers: Mapping[str, str], content: bytes | None, verify: bool) -> LiveAnswer:
        def failed(failure: Failure, why: str) -> LiveAnswer:
            return LiveAnswer(url, url, failure=failure, why=why[:300])

        try:
            async with asyncio.timeout(self._timeout):
                method = "GET" if content is None else "POST"
                async with self._session.request(
                    method, url, headers=headers, data=content, allow_redirects=False, ssl=verify
                ) as response:
                    body, truncated = await self._read(response)
                    fields = {name.lower(): value for name, value in response.headers.items()}
                    return LiveAnswer(url, url, response.status, fields, body, truncated)
        except TimeoutError:
            return failed(Failure.TIMEOUT, f"no answer within {self._timeout:g} s")
        except aiohttp.ClientConnectorDNSError as error:
            return failed(*_of_name(error.os_error))
        except aiohttp.ClientConnectorCertificateError as error:
            return failed(Failure.CERTIFICATE, _of_certificate(error.certificate_error))
        except aiohttp.ClientConnectorError as error:
            tls = isinstance(error, aiohttp.ClientConnectorSSLError)
            return failed(Failure.TLS if tls else Failure.UNREACHABLE, str(error.os_error or error))
        except (aiohttp.ClientError, ValueError, UnicodeError) as error:
            return failed(Failure.BAD_ANSWER, f"{type(error).__name__}: {error}")
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


def _host_key(url: str) -> str:
    """What has one turn: a host and its port, with or without `www.`."""
    return urlsplit(url).netloc.lower().removeprefix("www.")


def _of_certificate(error: Exception) -> str:
    """Why a certificate is not accepted, without the place in OpenSSL's source."""
    return getattr(error, "verify_message", "") or str(error)


def _of_name(error: Any) -> tuple[Failure, str]:
    """A name that does not exist is an observation; a name server that does not answer says nothing."""
    if isinstance(error, _NotPublic):
        return Failure.REFUSED, str(error)
    code = getattr(error, "errno", None)
    missing = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
    return (Failure.NO_NAME if code in missing else Failure.UNREACHABLE), str(error)
