"""`--allow-private` permits this machine and private networks; never link-local addresses or a cloud's metadata."""

from __future__ import annotations

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from recollect.archives.live import Failure, LiveClient, may_call, refusal

NEVER = [
    *("169.254.169.254", "169.254.1.1", "fe80::1", "fe80::1%eth0", "::ffff:169.254.169.254", "fd00:ec2::254"),
    *("168.63.129.16", "192.0.0.192", "100.100.100.200", "0.0.0.0", "::", "224.0.0.1", "255.255.255.255", "ff02::1"),
    *("fd20:ce::254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1"),
]
PRIVATE = ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "::1", "fd12:3456::1", "::ffff:127.0.0.1"]


@pytest.mark.parametrize("address", NEVER)
def test_link_local_and_metadata_addresses_are_never_called(address: str) -> None:
    assert not may_call(address, allow_private=False)
    assert not may_call(address, allow_private=True)
    host = f"[{address}]" if ":" in address else address
    assert refusal(f"http://{host}/", allow_private=True)


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_called_only_on_request(address: str) -> None:
    assert not may_call(address, allow_private=False)
    assert may_call(address, allow_private=True)


@pytest.mark.parametrize("target", ["http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/"])
def test_a_redirect_does_not_lead_to_metadata(target: str) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", target)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    async def ask() -> Failure | None:
        async with LiveClient(user_agent="test", allow_private=True, pace=0.0) as client:
            return (await client.get(f"http://127.0.0.1:{server.server_port}/")).failure

    try:
        assert asyncio.run(ask()) is Failure.REFUSED
    finally:
        server.shutdown()
        server.server_close()
