"""A real SMTP server (aiosmtpd) that answers as a test wants.

with answering("250 OK") as (port, got): ...      got has the envelopes
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import needs


@contextmanager
def answering(answer: str, at: str = "RCPT", port: int = 0) -> Iterator[tuple[int, list[Any]]]:
    needs.wheel("SMTP")
    from aiosmtpd.controller import Controller

    got: list[Any] = []

    class Handler:
        async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
            if at == "RCPT" and not answer.startswith("250"):
                return answer
            envelope.rcpt_tos.append(address)
            return "250 OK"

        async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
            got.append(envelope)
            return answer

    class OnAnyPort(Controller):
        def _trigger_server(self) -> None:
            self.port = self.server.sockets[0].getsockname()[1]
            super()._trigger_server()

    controller = OnAnyPort(Handler(), hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield controller.port, got
    finally:
        controller.stop()
