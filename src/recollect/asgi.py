"""`advertise` for ASGI applications: the same rules as `recollect.wsgi`.

from recollect.asgi import advertise
app = advertise(app, "public/")
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

from recollect.wsgi import CONDITIONS, Reply, answer, body_of, link_to, with_link

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


def advertise(application: Application, folder: str | os.PathLike[str], *, base_uri: str = "") -> Application:
    """Wrap an application: serve the map published in `folder`, and name it in the Link header of every answer."""
    root = Path(folder)

    async def advertised(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        prefix = str(scope.get("root_path", ""))
        link = link_to(base_uri or prefix)
        if scope["method"] in ("GET", "HEAD"):
            headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
            asked = {name: headers.get(name.lower(), "") for name in CONDITIONS}
            reply = answer(root, str(scope["path"]).removeprefix(prefix), asked, link)
            if reply is not None:
                await _send(reply, send, with_body=scope["method"] == "GET")
                return

        async def linked(message: Message) -> None:
            if message["type"] == "http.response.start":
                said = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in message.get("headers", ())]
                if len(with_link(said, link)) > len(said):
                    added = (b"link", link.encode("latin-1"))
                    message = {**message, "headers": [*message.get("headers", ()), added]}
            await send(message)

        await application(scope, receive, linked)

    return advertised


async def _send(reply: Reply, send: Send, *, with_body: bool) -> None:
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in reply.headers]
    await send({"type": "http.response.start", "status": int(reply.status[:3]), "headers": headers})
    if with_body:
        for piece in body_of(reply):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})
