"""One archive sends a TimeMap of 64 MB: other clients hardly notice, deadlines hold, memory is bounded."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from small_archives import Server, SmallArchives, server_process, small_archives

PAGE = "http://lost.example/some/path/as/long/as/usual"
MEGABYTES = 64
MEMENTOS = 420_000
QUICK = ("--no-learn", "--no-cache")


def moments() -> Iterator[tuple[str, str]]:
    """(14 digits, RFC 1123) of one capture every half hour."""
    day = datetime(2001, 1, 1)
    for number in range(MEMENTOS // 48):
        at = day + timedelta(days=number)
        digits, words = f"{at:%Y%m%d}", f"{at:%a, %d %b %Y}"
        for half in range(48):
            clock = f"{half // 2:02d}:{half % 2 * 30:02d}:00"
            yield f"{digits}{clock.replace(':', '')}", f"{words} {clock} GMT"


def link_format() -> bytes:
    lines = [
        f'<http://web.archive.example/web/{stamp}/{PAGE}>; rel="memento"; datetime="{words}"; license="none"'
        for stamp, words in moments()
    ]
    return ",\n".join([f'<{PAGE}>; rel="original"', *lines]).encode()


def in_json() -> bytes:
    rows = [{"datetime": words, "uri": f"http://web.archive.example/web/{stamp}/{PAGE}"} for stamp, words in moments()]
    return json.dumps({"original_uri": PAGE, "mementos": {"list": rows}}).encode()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, SmallArchives]]:
    with small_archives() as archives:
        archives.add("link", {}, body=link_format())
        archives.add("json", {}, body=in_json())
        archives.add("bomb", {}, body=gzip.compress(bytes(1 << 28), 1), fields={"Content-Encoding": "gzip"})
        archives.add("small", {PAGE: ["20150101000000"]})
        registry = archives.write(tmp_path_factory.mktemp("large"))
        (registry.parent / "recollect").mkdir()
        (registry.parent / "recollect" / "config.toml").write_text('max_answer = "80MB"\n')
        with server_process(registry, *QUICK, "--deadline", "60") as server:
            yield server, archives


def waits(base: str, until: Callable[[], bool], path: str = "/health") -> list[float]:
    """Seconds that each request of another client took, in order of length."""
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=30)
    took = []
    while not until() or len(took) < 50:
        began = time.perf_counter()
        connection.request("GET", path)
        connection.getresponse().read()
        took.append(time.perf_counter() - began)
        time.sleep(0.002)
    connection.close()
    return sorted(took)


def fetch(base: str, path: str) -> tuple[int, dict[str, str], int]:
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=120)
    connection.request("GET", path)
    response = connection.getresponse()
    size = 0
    while chunk := response.read(1 << 20):
        size += len(chunk)
    connection.close()
    return response.status, {name.lower(): value for name, value in response.getheaders()}, size


@pytest.mark.parametrize("archive", ["link", "json"])
@pytest.mark.parametrize("endpoint", ["timemap/link", "summary"])
def test_others_hardly_wait_while_64_megabytes_are_read_merged_and_sent(
    server: tuple[Server, SmallArchives], archive: str, endpoint: str
) -> None:
    base = server[0].base
    answers: list[tuple[int, dict[str, str], int]] = []
    path = f"/{endpoint}/{PAGE}?archives={archive}"
    client = threading.Thread(target=lambda: answers.append(fetch(base, path)))
    usual = waits(base, lambda: True)
    client.start()
    took = waits(base, lambda: not client.is_alive())
    client.join()
    status, headers, size = answers[0]
    assert (status, headers["x-memento-count"]) == (200, str(MEMENTOS))
    assert endpoint == "summary" or (size > MEGABYTES * 10**6 and headers["etag"].startswith("W/"))
    # Before, all clients waited for 2.3 s. On idle processors the wait is under 0.1 s; here other tests keep them busy.
    p99, p99_usual = took[int(len(took) * 0.99)], usual[int(len(usual) * 0.99)]
    print(
        f"{archive} {endpoint}: p99 {p99 * 1000:.0f} ms (alone {p99_usual * 1000:.0f}), longest {took[-1] * 1000:.0f}"
    )
    assert p99 < 1.0


def test_reading_ends_at_the_deadline(server: tuple[Server, SmallArchives]) -> None:
    began = time.perf_counter()
    connection = http.client.HTTPConnection(urlsplit(server[0].base).netloc, timeout=60)
    connection.request("GET", f"/summary/{PAGE}?archives=json", headers={"Prefer": 'wait="0.7"'})
    response = connection.getresponse()
    response.read()
    assert "json=" in response.headers["X-Recollect-Partial"]
    assert time.perf_counter() - began < 0.7 + 5.0
    connection.close()


def test_memory_for_an_answer_is_bounded(server: tuple[Server, SmallArchives]) -> None:
    status = Path(f"/proc/{server[0].process.pid}/status")
    if not status.exists():
        pytest.skip("no /proc here")
    fetch(server[0].base, f"/timemap/link/{PAGE}?archives=link")
    peak = int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1]) / 1024
    print(f"peak {peak:.0f} MB")
    assert peak < 100 + 10 * MEGABYTES


@pytest.mark.parametrize("path", [f"/?uri={PAGE}", f"/timemap/link/{PAGE}?archives=bomb"])
def test_lookups_hardly_wait_while_a_page_is_drawn_or_a_gzip_bomb_is_unpacked(
    server: tuple[Server, SmallArchives], path: str
) -> None:
    # The last of this file: the page asks all archives, which takes the memory of two large answers.
    base = server[0].base
    answers: list[tuple[int, dict[str, str], int]] = []
    client = threading.Thread(target=lambda: answers.append(fetch(base, path)))
    client.start()
    took = waits(base, lambda: not client.is_alive(), f"/timemap/link/{PAGE}?archives=small")
    client.join()
    assert answers[0][0] == (200 if path.startswith("/?") else 502)
    # Before, all lookups waited for the merge of the large one: 4 s and more.
    print(f"{path[:9]}: p99 {took[int(len(took) * 0.99)] * 1000:.0f} ms, longest {took[-1] * 1000:.0f}")
    assert took[-1] < 2.5
