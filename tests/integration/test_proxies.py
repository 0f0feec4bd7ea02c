"""Requests through a proxy: plain ones in absolute form, encrypted ones through a tunnel, loopback never."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from loopback import Request, answer, loopback
from recollect.archives.client import ArchiveClient
from recollect.archives.proxies import Proxy, from_environment
from recollect.archives.registry import Archive
from recollect.archives.transport import Request as Asked
from recollect.archives.transport import Response
from recollect.errors import ArchiveUnreachable, RequestRefused


async def get(client: ArchiveClient, archive: Archive, url: str, **options: Any) -> Response:
    return await client.send(Asked(archive, url, **options))


async def reply(request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(answer(f"{request.line} {request.headers.get('proxy-authorization')}".encode()))


def test_a_plain_request_is_sent_whole_to_the_proxy() -> None:
    async def run() -> bytes:
        async with loopback(reply) as proxy:
            way = Proxy("127.0.0.1", proxy.port, b"Proxy-Authorization: Basic eDp5\r\n")
            async with ArchiveClient(proxies=lambda _scheme, _host: way) as client:
                archive = Archive("a", cdx="http://archive.example/cdx")
                return (await get(client, archive, "http://archive.example/cdx?url=x")).body

    assert asyncio.run(run()) == b"GET http://archive.example/cdx?url=x HTTP/1.1 Basic eDp5"


def test_an_encrypted_request_goes_through_a_tunnel(tmp_path: Path) -> None:
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=x -addext subjectAltName=IP:127.0.0.1"
    subprocess.run([*command.split(), "-keyout", key, "-out", cert], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    asked: list[bytes] = []

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        host, _, port = asked[-1].split()[1].decode().rpartition(":")
        onward_reader, onward_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

        async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                target.write(data)
            target.close()

        await asyncio.gather(copy(reader, onward_writer), copy(onward_reader, writer))

    async def run() -> tuple[bytes, bytes]:
        proxy = await asyncio.start_server(pass_on, "127.0.0.1", 0)
        way = Proxy("127.0.0.1", proxy.sockets[0].getsockname()[1])
        async with loopback(reply, ssl=context) as server:
            base = f"https://127.0.0.1:{server.port}"
            trusting = ssl.create_default_context(cafile=str(cert))
            async with ArchiveClient(tls=trusting, proxies=lambda _s, _h: way) as client:
                archive = Archive("a", cdx=f"{base}/cdx")
                first = (await get(client, archive, f"{base}/cdx")).body
                second = (await get(client, archive, f"{base}/cdx?again")).body
        proxy.close()
        return first, second

    assert asyncio.run(run()) == (b"GET /cdx HTTP/1.1 None", b"GET /cdx?again HTTP/1.1 None")
    assert len(asked) == 1 and asked[0].startswith(b"CONNECT 127.0.0.1:")


def test_a_proxy_that_refuses_is_a_failure_that_names_it() -> None:
    async def refuse(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(status="407 Proxy Authentication Required"))

    async def run() -> None:
        async with loopback(refuse) as proxy:
            way = Proxy("127.0.0.1", proxy.port)
            async with ArchiveClient(proxies=lambda _s, _h: way) as client:
                await get(client, Archive("a", cdx="https://archive.example/cdx"), "https://archive.example/cdx")

    with pytest.raises(ArchiveUnreachable, match="407"):
        asyncio.run(run())


def test_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert from_environment("http", "archive.example") is None
    monkeypatch.setenv("HTTP_PROXY", "http://me:s%40cret@proxy.example:3128")
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example")
    monkeypatch.setenv("NO_PROXY", ".intern.example")
    found = from_environment("http", "archive.example")
    assert found == Proxy("proxy.example", 3128, b"Proxy-Authorization: Basic bWU6c0BjcmV0\r\n")
    assert "bWU6" not in repr(found)
    assert from_environment("https", "archive.example") == Proxy("proxy.example", 80)
    for near in ("127.0.0.1", "localhost", "[::1]", "wiki.intern.example"):
        assert from_environment("http", near) is None
    monkeypatch.setenv("HTTP_PROXY", "socks5://proxy.example")
    with pytest.raises(RequestRefused, match="proxy"):
        from_environment("http", "archive.example")
