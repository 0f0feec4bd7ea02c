"""Clients of HTTP/1.0 that do not read take no more memory than others: large TimeMaps are streamed to them too."""

from __future__ import annotations

import re
import socket
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from small_archives import server_process, small_archives

PAGE = "http://lost.example/" + "long/" * 30
MEMENTOS = 30_000  # about 8 MB as a TimeMap
CLIENTS = 20


def resident(pid: int) -> float:
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024  # type: ignore[index]


def ask(base: str, connection: str = "") -> socket.socket:
    split = urlsplit(base)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # little is read before the server has to wait
    client.settimeout(60)
    client.connect((split.hostname, split.port))
    client.sendall(f"GET /timemap/link/{PAGE} HTTP/1.0\r\n{connection}\r\n".encode())
    return client


def read_all(client: socket.socket) -> bytes:
    parts = []
    while part := client.recv(1 << 20):
        parts.append(part)
    client.close()
    return b"".join(parts)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc here")
def test_clients_of_http_1_0_do_not_hold_whole_timemaps(tmp_path: Path) -> None:
    first = datetime(2001, 1, 1)
    times = [f"{first + timedelta(minutes=number):%Y%m%d%H%M%S}" for number in range(MEMENTOS)]
    with small_archives() as archives:
        archives.add("a", {PAGE: times})
        with server_process(archives.write(tmp_path), "--no-learn") as server:
            answer = read_all(ask(server.base, "Connection: keep-alive\r\n"))  # ends although it asks to go on
            assert answer.count(b"/" + PAGE.encode()) >= MEMENTOS
            before = resident(server.process.pid)
            clients = [ask(server.base) for _ in range(CLIENTS)]
            for client in clients:
                assert client.recv(64).startswith(b"HTTP/1.0 200")
            grown = resident(server.process.pid) - before
            print(f"{len(answer) / 10**6:.1f} MB each; {grown:.0f} MB for {CLIENTS} clients")
            for client in clients:
                client.close()
    assert grown < CLIENTS * len(answer) / 10**6 / 2
