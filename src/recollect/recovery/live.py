"""The live web as a last source (`--live-fallback`): one request after the other, within each host's robots.txt.

Hides: robots.txt, asked once for each host. A host that does not answer for it allows nothing.
"""

from __future__ import annotations

import asyncio
import re
from urllib.parse import urljoin

from recollect.archives.registry import Archive, Rate
from recollect.archives.replay import ReplayResponse
from recollect.archives.robots import MOST_BYTES, NOTHING, Robots, robots_of_response
from recollect.archives.transport import Request, RequestKind
from recollect.errors import AnswerTooBig, ArchiveError
from recollect.recovery.canonical import split
from recollect.recovery.journal import now_utc
from recollect.recovery.meter import Meter
from recollect.recovery.payloads import PayloadWriter

LIVE = "live"


class LiveWeb:
    """Live hosts, asked through the meter of a recovery."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._robots: dict[str, asyncio.Future[Robots]] = {}

    async def fetch(self, uri: str, incoming: PayloadWriter, max_bytes: int) -> ReplayResponse | None:
        """The answer of the live web with status 200, its body in `incoming`; None otherwise, and where robots.txt
        forbids it. Raises ArchiveError."""
        scheme, host, _, _ = split(uri)
        origin = f"{scheme}://{host}"
        live = Archive(
            id=f"{LIVE}-{re.sub(r'[^a-z0-9.-]', '-', host)}",
            timegate=f"{origin}/",
            raw=f"{origin}/{{timestamp}}{{uri}}",
            replay_rate=Rate(1, 1),
            concurrency=2,
        )
        if origin not in self._robots:
            self._robots[origin] = asyncio.ensure_future(self._rules(live, uri))
        if not (await self._robots[origin]).allow(uri):
            return None
        request = Request(live, uri, kind=RequestKind.REPLAY, max_bytes=max_bytes, hops=0)
        async with self._meter.stream(request) as response:
            if response.status != 200:
                return None
            async for chunk in response:
                incoming.write(chunk)
            return ReplayResponse("archived", 200, uri, now_utc(), tuple(response.headers))

    async def _rules(self, host: Archive, uri: str) -> Robots:
        ask = Request(host, urljoin(uri, "/robots.txt"), kind=RequestKind.REPLAY, max_bytes=MOST_BYTES, hops=3)
        body = bytearray()
        try:
            async with self._meter.stream(ask) as response:
                async for chunk in response:
                    body += chunk
        except AnswerTooBig:
            pass  # the first part is read
        except ArchiveError:
            return NOTHING
        return robots_of_response(response.status, response.headers.get("content-type", ""), bytes(body))
