"""Events of lookups for watchers, as server-sent events.

Hides: the queues. Each watcher has its own, bounded queue; a slow reader loses events and gets the number of lost ones.
A watcher cannot delay a lookup: publishing never waits.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

MAX_WATCHERS = 100
_QUEUE = 256
_HEARTBEAT_SECONDS = 15.0


class Monitor:
    """Sends events of lookups to watchers."""

    def __init__(self) -> None:
        self._queues: set[asyncio.Queue[bytes]] = set()
        self._lost: dict[asyncio.Queue[bytes], int] = {}

    @property
    def watchers(self) -> int:
        return len(self._queues)

    def publish(self, event: str, data: Any) -> None:
        """Send an event to all watchers, without waiting."""
        if not self._queues:
            return
        message = to_event(event, data)
        for queue in self._queues:
            try:
                queue.put_nowait(message)
            except asyncio.QueueFull:
                self._lost[queue] = self._lost.get(queue, 0) + 1

    async def watch(self) -> AsyncIterator[bytes]:
        """Events as bytes of an event stream, with a sign of life now and then."""
        queue: asyncio.Queue[bytes] = asyncio.Queue(_QUEUE)
        self._queues.add(queue)
        try:
            yield b": watching\n\n"
            while True:
                lost = self._lost.pop(queue, 0)
                if lost:
                    yield to_event("lost", {"events": lost})
                try:
                    async with asyncio.timeout(_HEARTBEAT_SECONDS):
                        message = await queue.get()
                except TimeoutError:
                    message = b": still here\n\n"
                yield message
        finally:
            self._queues.discard(queue)
            self._lost.pop(queue, None)


def to_event(event: str, data: Any) -> bytes:
    """One server-sent event; JSON has no raw line breaks, so nothing in it can end the event early."""
    return f"event: {event}\ndata: {json.dumps(data)}\n\n".encode()
