"""The polite client: the only code that calls archives.

Hides: connection reuse, TLS, per-archive gates (concurrency, rate, Retry-After), redirects, decompression, and the
bounds on time and size. Absence (404) and any other status is an answer, not an error; errors are kinds of
ArchiveError.

Invariants:
- Only an archive's own hosts (those in its configured URLs, and its `allow_hosts`) are ever called, also after a
  redirect; the archive's credentials go to its own hosts only.
- `deadline` is a moment of the running loop's clock and covers everything: queueing, connecting, TLS, redirects, body.
- Nothing of a URL or header value can become another header.
- A caller that is cancelled leaves no open request: its connection is closed, its pass given on.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import sys
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from io import BytesIO
from math import inf
from typing import TYPE_CHECKING, TypeVar

from recollect import __version__
from recollect.archives.gate import Gate, InFlightLimit, Pace
from recollect.archives.http1 import Connection, Headers
from recollect.archives.proxies import Proxy, tunnel
from recollect.archives.sinks import Streamed, Whole
from recollect.archives.transport import Permits, Request, RequestKind, Response, StreamedResponse
from recollect.errors import AnswerTooBig, ArchiveTimeout, ArchiveUnreachable, BadAnswer, RequestRefused
from recollect.formats.timemap.links import resolve

if TYPE_CHECKING:
    from recollect.archives.registry import Archive, Rate

USER_AGENT = f"recollect/{__version__} (web archive client)"
_IDLE_SECONDS = 30.0
_SMALL_BODY = 32 * 1024  # compressed bytes that are decoded at once, if they grow to no more than
_SMALL_PLAIN = 1 << 20  # this many: some milliseconds
_MOST_CODINGS = 3
_MOST_MEMBERS = 1000  # of one gzip body
_DEFLATED, _INFLATED = 1 << 16, 1 << 20  # bytes that one call to zlib takes, and gives
_MOST_SPELLINGS = 1000  # of an archive's own hosts, in upper and lower case
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_DEFAULT_PORTS = {"http": 80, "https": 443}

_URL = re.compile(r"(https?)://([^/?#\\@\s]+)([^#]*)", re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]]+)(?::(\d{1,5}))?")
_UNSAFE = re.compile(r"[^\x21-\x7e]")
_BAD_FIELD = re.compile(r"[\r\n\0]")
_Sink = TypeVar("_Sink", Whole, Streamed)
_FIELD_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class _Origin:
    """A scheme, host and port, with its idle connections (the last used first)."""

    __slots__ = ("authority", "host", "idle", "port", "proxy", "tls", "where")

    def __init__(self, scheme: str, host: str, port: int, proxy: Proxy | None) -> None:
        self.proxy = proxy
        self.tls = scheme == "https"
        self.host = host.strip("[]")
        self.port = port
        self.authority = host if port == _DEFAULT_PORTS[scheme] else f"{host}:{port}"
        self.where = f"{scheme}://{self.authority}"
        self.idle: list[Connection] = []


class _Peer:
    """What the client keeps of one archive."""

    __slots__ = ("allowed", "archive", "fields", "gate", "origins", "own", "paces", "private_fields")

    def __init__(self, archive: Archive, gate: Gate, fields: bytes) -> None:
        self.archive = archive
        self.gate = gate
        index, replay = archive.index_rate, archive.replay_rate
        pace = _pace(index)
        # One limit for both kinds of requests is one limit, not two.
        self.paces = {RequestKind.INDEX: pace, RequestKind.REPLAY: pace if replay == index else _pace(replay)}
        self.fields = fields
        self.private_fields = _fields(dict(archive.headers))
        self.own = {place for url in _urls(archive) for place in _places(url)}
        self.allowed = self.own | {place for host in archive.allow_hosts for place in _places(f"http://{host}")}
        # (scheme://authority as written) -> (origin, request fields); filled as URLs are seen, only for allowed hosts.
        self.origins: dict[str, tuple[_Origin, bytes]] = {}

    def may_call(self, host: str, port: int) -> bool:
        place = f"{host}:{port}"
        if place in self.allowed:
            return True
        parents = host.split(".")
        return any(f"*.{'.'.join(parents[i:])}:{port}" in self.allowed for i in range(1, len(parents)))


class ArchiveClient:
    """Asks archives. Make it inside a running loop, `await close()` it (or use `async with`)."""

    def __init__(
        self,
        *,
        user_agent: str = USER_AGENT,
        concurrency: int = 8,
        in_flight: int | None = None,
        patience: float = inf,
        timeout: float = 30.0,
        connect_timeout: float = 5.0,
        backs_off: bool = True,
        permits: Permits | None = None,
        tls: ssl.SSLContext | None = None,
        proxies: Callable[[str, str], Proxy | None] = lambda _scheme, _host: None,
    ) -> None:
        """`concurrency` and `timeout` (seconds per request) hold for archives that set none themselves; `in_flight` is
        how many requests may be out over all archives, beyond an equal share for each (None: no bound). `patience` is
        how long a request waits for its turn (a rate, a pause, a free place) before it is ArchiveThrottled.
        `backs_off`: pause after a 429 also when the archive does not say for how long (an aggregator has breakers for
        that).
        `permits` is asked before every request, after the limits of this client."""
        self._loop = asyncio.get_running_loop()
        self._fields = _fields({"User-Agent": user_agent})
        self._concurrency = concurrency
        self._in_flight = InFlightLimit(sys.maxsize if in_flight is None else in_flight)
        self._patience = patience
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._backs_off = backs_off
        self._permits = permits
        # Permits of callers that were written before requests could be counted have no such method.
        self._on_finished: Callable[[Archive], None] | None = getattr(permits, "finished", None)
        self._tls = tls
        self._proxies = proxies
        self._peers: dict[str, _Peer] = {}
        self._origins: dict[tuple[str, str, int], _Origin] = {}
        self._reaper: asyncio.TimerHandle | None = None
        self._closed = False
        self._paused_until = 0.0

    async def __aenter__(self) -> ArchiveClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every idle connection; requests under way are the business of their callers."""
        self._closed = True
        if self._reaper is not None:
            self._reaper.cancel()
        for origin in self._origins.values():
            while origin.idle:
                origin.idle.pop().close()

    # --- asking

    async def send(self, request: Request) -> Response:
        """The whole answer to a request."""
        started = self._loop.time()
        peer = self._peer(request.archive)
        until = self._until(request.archive, started, request.deadline)
        await peer.gate.enter(min(until, started + self._patience), peer.paces[request.kind])
        try:
            sink, final = await self._follow(
                peer, request, until, lambda: Whole(self._loop, request.max_bytes, request.partial)
            )
            self._finished(peer)
        finally:
            peer.gate.leave()
        headers = Headers(sink.raw)
        body, cut = sink.body(), sink.cut
        if request.decode and body and b"ncoding" in sink.raw:
            body, cut = await self._decoded(body, headers.get("content-encoding"), request, cut, until)
            if cut and not request.partial:
                error = AnswerTooBig if len(body) >= request.max_bytes else BadAnswer
                raise error("answer not whole", where=final, why=cut)
        return Response(sink.status, headers, body, final, self._loop.time() - started, cut)

    async def _decoded(self, body: bytes, coding: str, request: Request, cut: str, until: float) -> tuple[bytes, str]:
        """The body without its content coding. What takes long (a large body, or a small one that grows: a bomb) is
        done in a thread, where zlib lets other clients go on, and ends at the deadline."""
        if len(body) < _SMALL_BODY:
            plain, why = decode_body(body, coding, min(request.max_bytes, _SMALL_PLAIN), cut)
            if len(plain) < _SMALL_PLAIN:
                return plain, why
        try:
            async with asyncio.timeout_at(None if until == inf else until):
                return await asyncio.to_thread(decode_body, body, coding, request.max_bytes, cut)
        except TimeoutError:
            raise ArchiveTimeout("deadline passed", where=request.url, why="the answer was not decoded") from None

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamedResponse]:
        """An answer whose body is read as it comes, in bounded memory, still encoded as the archive sent it."""
        peer = self._peer(request.archive)
        started = self._loop.time()
        until = self._until(request.archive, started, request.deadline)
        await peer.gate.enter(min(until, started + self._patience), peer.paces[request.kind])
        sink: Streamed | None = None
        try:
            sink, final = await self._follow(peer, request, until, lambda: Streamed(self._loop, request.max_bytes))
            timer = None if until == inf else self._loop.call_at(until, sink.expire)
            try:
                yield StreamedResponse(sink.status, Headers(sink.raw), final, sink.chunks())
            finally:
                if timer is not None:
                    timer.cancel()
        finally:
            if sink is not None:
                sink.discard()
                self._finished(peer)
            peer.gate.leave()

    @property
    def any_paused(self) -> bool:
        """Whether any archive asked not to be called for a while."""
        return self._loop.time() < self._paused_until

    def pause_left(self, archive: Archive) -> float:
        """Seconds for which the archive asked not to be called."""
        return self._peer(archive).gate.pause_left

    def end_pause(self, archive: Archive) -> None:
        """Forget that the archive asked for a pause."""
        self._peer(archive).gate.paused_until = 0.0

    def in_use(self, archive: Archive) -> int:
        """Requests to this archive under way now."""
        return self._peer(archive).gate.inside

    # --- the parts of it

    async def _follow(
        self, peer: _Peer, request: Request, until: float, new_sink: Callable[[], _Sink]
    ) -> tuple[_Sink, str]:
        headers, method, url = request.headers, request.method, request.url
        extra = _fields(headers) if headers else b""
        if not headers or "Accept-Encoding" not in headers:
            extra += b"Accept-Encoding: gzip, deflate\r\n"
        left = request.hops
        while True:
            origin, fields, target = self._locate(peer, url)
            if self._permits is not None:
                await self._permits.acquire(peer.archive, request.kind, until)
            try:
                if request.before is not None:
                    request.before()
                sink = new_sink()
                data = b"".join((method.encode(), b" ", target, fields, extra, b"\r\n"))
                await self._send(origin, data, sink, until, expects_body=method != "HEAD")
                status = sink.status
                self._notice(peer, request.kind, sink)
                if not request.hops or status not in _REDIRECTS:
                    return sink, url
                location = Headers(sink.raw).get("location")
                if not location:
                    return sink, url
                sink.discard()
                if left == 0:
                    raise BadAnswer("too many redirects", where=url, why=f"more than {request.hops}")
                left -= 1
                onward = resolve(url, location)
                if onward is None:
                    raise RequestRefused("redirect to something that is not a web URL", where=repr(location[:200]))
            except BaseException:
                self._finished(peer)
                raise
            self._finished(peer)
            url = onward

    def _finished(self, peer: _Peer) -> None:
        if self._on_finished is not None:
            self._on_finished(peer.archive)

    def _notice(self, peer: _Peer, kind: RequestKind, sink: Whole | Streamed) -> None:
        """Take note of what a status says about our rate; an archived 429 or 503 says nothing."""
        if sink.status not in (429, 503):
            peer.gate.noticed(sink.status, "")
            return
        headers = Headers(sink.raw)
        if "memento-datetime" in headers:
            return
        peer.gate.noticed(sink.status, headers.get("retry-after"))
        self._paused_until = max(self._paused_until, peer.gate.paused_until)
        pause = peer.gate.pause_left
        if self._permits is not None and pause:
            self._permits.paused(peer.archive, kind, pause)

    async def _send(
        self, origin: _Origin, request: bytes, sink: Whole | Streamed, until: float, *, expects_body: bool
    ) -> None:
        while True:
            connection = self._idle_connection(origin) or await self._connect(origin, until)
            reused = connection.uses > 0
            waiter = sink.start(connection)
            timer = None if until == inf else self._loop.call_at(until, sink.expire)
            connection.send(request, sink, expects_body=expects_body)
            try:
                await waiter
                return
            except ArchiveUnreachable:
                # An archive may close an idle connection just as we use it; that says nothing about the archive.
                if not (reused and sink.unanswered):
                    raise
            except BaseException:
                connection.close()
                raise
            finally:
                if timer is not None:
                    timer.cancel()

    def _idle_connection(self, origin: _Origin) -> Connection | None:
        idle = origin.idle
        while idle:
            connection = idle.pop()
            if connection.usable:
                return connection
        return None

    async def _connect(self, origin: _Origin, until: float) -> Connection:
        if self._closed:
            raise RuntimeError("the client is closed")
        now = self._loop.time()
        limit = min(until, now + self._connect_timeout)
        try:
            async with asyncio.timeout_at(limit):
                connection = Connection(origin.where, lambda connection: self._put_back(origin, connection))
                if origin.proxy is not None and origin.tls:
                    await tunnel(origin.proxy, origin.host, origin.port, connection, self._context())
                    return connection
                await self._loop.create_connection(
                    lambda: connection,
                    origin.proxy.host if origin.proxy else origin.host,
                    origin.proxy.port if origin.proxy else origin.port,
                    ssl=self._context() if origin.tls else None,
                )
        except TimeoutError:
            raise ArchiveTimeout("no connection", where=origin.where, why=f"within {limit - now:.1f} s") from None
        except (OSError, ssl.CertificateError, UnicodeError) as error:
            raise ArchiveUnreachable("no connection", where=origin.where, why=_reason(error)) from error
        return connection

    def _put_back(self, origin: _Origin, connection: Connection) -> None:
        if self._closed:
            connection.close()
            return
        connection.idle_since = self._loop.time()
        origin.idle.append(connection)
        if self._reaper is None:
            self._reaper = self._loop.call_later(_IDLE_SECONDS / 2, self._reap)

    def _reap(self) -> None:
        """Close connections that were not used for a while."""
        self._reaper = None
        oldest = self._loop.time() - _IDLE_SECONDS
        left = 0
        for origin in self._origins.values():
            for connection in origin.idle:
                if connection.idle_since < oldest:
                    connection.close()
            origin.idle = [connection for connection in origin.idle if connection.usable]
            left += len(origin.idle)
        if left and not self._closed:
            self._reaper = self._loop.call_later(_IDLE_SECONDS / 2, self._reap)

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls

    def _until(self, archive: Archive, now: float, deadline: float | None) -> float:
        own = now + (archive.timeout or self._timeout)
        return own if deadline is None else min(own, deadline)

    def _peer(self, archive: Archive) -> _Peer:
        peer = self._peers.get(archive.id)
        if peer is None or (peer.archive is not archive and peer.archive != archive):
            if peer is not None and not peer.gate.inside and not peer.gate.waiting:
                self._in_flight.quit(peer.gate)
            concurrency = archive.concurrency or self._concurrency
            gate = Gate(archive.id, concurrency=concurrency, backs_off=self._backs_off, in_flight=self._in_flight)
            peer = self._peers[archive.id] = _Peer(archive, gate, self._fields)
        return peer

    def _locate(self, peer: _Peer, url: str) -> tuple[_Origin, bytes, bytes]:
        match = _URL.match(url)
        if match is None:
            raise RequestRefused("not a web URL", where=repr(url[:200]))
        scheme, authority, target = match.groups()
        known = peer.origins.get(f"{scheme}://{authority}")
        if known is None:
            if len(peer.origins) > _MOST_SPELLINGS:
                peer.origins.clear()
            known = peer.origins[f"{scheme}://{authority}"] = self._allow(peer, scheme.lower(), authority)
        if _UNSAFE.search(target):
            target = _UNSAFE.sub(_percent, target)
        if target[:1] != "/":
            target = "/" + target
        origin = known[0]
        if origin.proxy is not None and not origin.tls:
            target = origin.where + target
        return origin, known[1], target.encode("ascii")

    def _allow(self, peer: _Peer, scheme: str, authority: str) -> tuple[_Origin, bytes]:
        host, port = _host_and_port(scheme, authority)
        if not peer.may_call(host, port):
            raise RequestRefused(
                "not one of the archive's hosts",
                where=f"{host}:{port}",
                why=f"archive {peer.archive.id}",
                hint=f'add "{host}" to its allow_hosts if the archive really spreads over it',
            )
        key = (scheme, host, port)
        origin = self._origins.get(key)
        if origin is None:
            origin = self._origins[key] = _Origin(scheme, host, port, self._proxies(scheme, host))
        fields = b" HTTP/1.1\r\n" + _fields({"Host": origin.authority}) + peer.fields
        if origin.proxy is not None and not origin.tls:
            fields += origin.proxy.fields
        if f"{host}:{port}" in peer.own:
            fields += peer.private_fields
        return origin, fields


def _pace(rate: Rate | None) -> Pace | None:
    return Pace(rate.per_second, rate.burst) if rate else None


def _urls(archive: Archive) -> list[str]:
    return [
        url for url in (archive.timemap, archive.timegate, archive.cdx, archive.raw, archive.search, archive.map) if url
    ]


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogatepass"))


def _fields(headers: Mapping[str, str]) -> bytes:
    lines = []
    for name, value in headers.items():
        if not _FIELD_NAME.fullmatch(name) or _BAD_FIELD.search(value):
            raise RequestRefused("not a header", where=repr(name), why="it would end the request early")
        lines.append(f"{name}: {value}\r\n".encode("utf-8", "surrogateescape"))
    return b"".join(lines)


def _host_and_port(scheme: str, authority: str) -> tuple[str, int]:
    match = _AUTHORITY.fullmatch(authority)
    if match is None or int(match[2] or 0) > 65535:
        raise RequestRefused("not a host", where=repr(authority[:200]))
    host = match[1].lower().rstrip(".")
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError as error:
            raise RequestRefused("not a host", where=repr(authority[:200]), why=str(error)) from error
    return host, int(match[2] or _DEFAULT_PORTS[scheme])


def _places(url: str) -> Iterable[str]:
    """`host:port` a configured URL allows; with a default port, both of them (archives move to https)."""
    match = _URL.match(url)
    if match is None:
        return []
    scheme, authority, _ = match.groups()
    host, port = _host_and_port(scheme.lower(), authority)
    return [f"{host}:80", f"{host}:443"] if port in (80, 443) else [f"{host}:{port}"]


def decode_body(body: bytes, coding: str, limit: int, cut: str = "") -> tuple[bytes, str]:
    """Undo gzip and deflate, never beyond `limit` bytes; (body, why it is cut)."""
    names = [part.strip().lower() for part in coding.split(",") if part.strip()]
    if len(names) > _MOST_CODINGS:
        raise BadAnswer("too many content codings", where=coding[:80])
    for name in reversed(names):
        if name in ("identity", "none"):
            continue
        if name not in ("gzip", "x-gzip", "deflate"):
            raise BadAnswer("unknown content coding", where=name[:80], why="only gzip and deflate were offered")
        try:
            body, why = _inflate(body, name, limit)
        except zlib.error as error:
            raise BadAnswer("damaged compression", where=name, why=str(error)) from error
        cut = cut or why
    return body, cut


def _inflate(body: bytes, name: str, limit: int) -> tuple[bytes, str]:
    """(the body, why it is cut). A gzip body may have several members (RFC 1952, section 2.2)."""
    raw_deflate = name == "deflate" and (body[:1] or b"x")[0] & 0x0F != 8
    plain, at = BytesIO(), 0
    for _ in range(_MOST_MEMBERS):
        inflater = zlib.decompressobj(-zlib.MAX_WBITS if raw_deflate else zlib.MAX_WBITS | 32)
        # In pieces: one call for all would copy it all at its end, and no other thread could run meanwhile.
        while at < len(body) and not inflater.eof:
            given = body[at : at + _DEFLATED]
            at += len(given)
            full = True
            while (given or full) and not inflater.eof:
                part = inflater.decompress(given, _INFLATED)
                plain.write(part)
                given, full = inflater.unconsumed_tail, len(part) == _INFLATED
                if plain.tell() > limit:
                    plain.truncate(limit)
                    return plain.getvalue(), f"more than {limit} bytes when decompressed"
        if not inflater.eof:
            return plain.getvalue(), "compressed body ends early"
        at -= len(inflater.unused_data)
        if name == "deflate" or body[at : at + 2] != b"\x1f\x8b":
            return plain.getvalue(), ""
    return plain.getvalue(), f"more than {_MOST_MEMBERS} compressed bodies in one"
