"""Maps found, fetched and installed from real servers, and hostile ones turned away."""

import asyncio
import gzip
import json
from pathlib import Path

import pytest

from loopback import Request, answer, loopback
from recollect.archives.client import ArchiveClient
from recollect.archives.discovery import Discovery, Limits, discover
from recollect.archives.registry import Archive
from recollect.cli.main import run as command
from recollect.formats.ukvs.reader import MapFile
from recollect.maps.lookup import open_map
from recollect.maps.publish import publish

MAP = b'!fields {keys: ["surt"], values: ["frequency"]}\n!id {uri: "http://127.0.0.1/"}\ncom,a)/ 1\ncom,b)/* 5/2\n'


def run(pages, tmp_path: Path, times: int = 1, **more) -> tuple[list[Discovery], list[Request]]:
    """Discover from a server that answers `pages(request)` (bytes of a whole answer)."""

    async def go():
        async def handler(request, writer):
            writer.write(pages(request))

        async with loopback(handler) as server, ArchiveClient(timeout=10) as client:
            archive = Archive(id="one", timegate=f"{server.base}/web/")
            found = [await discover(client, archive, tmp_path, **more) for _ in range(times)]
            return found, server.requests

    return asyncio.run(go())


def installed(tmp_path: Path) -> list[bytes]:
    with MapFile(tmp_path / "one.ukvs.zst") as source:
        return [record.key for record in source]


def test_well_known(tmp_path: Path):
    found, _ = run(lambda r: answer(MAP) if "well-known" in r.path else answer(b"", "404 Not Found"), tmp_path)
    assert (found[0].outcome, found[0].keys) == ("installed", 2)
    assert installed(tmp_path) == [b"com,a)/", b"com,b)/*"]


def test_link_header_and_html_link_come_first(tmp_path: Path):
    def header(request: Request) -> bytes:
        if request.path == "/":
            return answer(b"home", Link='</maps/a>; rel="mementomap"')
        return answer(MAP) if request.path == "/maps/a" else answer(b"", "404 Not Found")

    def page(request: Request) -> bytes:
        if request.path == "/":
            return answer(b"<html><link href='maps/b' rel='x mementomap'>", Content_Type="text/html")
        return answer(MAP) if request.path == "/maps/b" else answer(b"", "404 Not Found")

    assert run(header, tmp_path)[0][0].url.endswith("/maps/a")
    assert run(page, tmp_path)[0][0].url.endswith("/maps/b")


def test_an_unchanged_map_is_not_fetched_again(tmp_path: Path):
    def pages(request: Request) -> bytes:
        if "well-known" not in request.path:
            return answer(b"", "404 Not Found")
        if request.headers.get("if-none-match") == '"v1"':
            return answer(b"", "304 Not Modified")
        return answer(MAP, ETag='"v1"')

    found, _ = run(pages, tmp_path)
    assert found[0].outcome == "installed"

    async def again():
        async def handler(request, writer):
            writer.write(pages(request))

        async with loopback(handler) as server, ArchiveClient() as client:
            archive = Archive(id="one", timegate=f"{server.base}/web/")
            first = await discover(client, archive, tmp_path / "x")
            second = await discover(client, archive, tmp_path / "x")
            return first.outcome, second.outcome

    assert asyncio.run(again()) == ("installed", "unchanged")


def test_pages_are_followed_to_the_end(tmp_path: Path):
    source = tmp_path / "m.ukvs"
    source.write_bytes(MAP + b"".join(b"org,x)/%03d 1\n" % n for n in range(50)))
    publish(str(source), tmp_path / "www", updated_at="x", page_keys=7)

    def pages(request: Request) -> bytes:
        file = tmp_path / "www" / request.path.lstrip("/")
        return answer(file.read_bytes()) if file.is_file() else answer(b"", "404 Not Found")

    found, _ = run(pages, tmp_path)
    assert found[0].keys == 52
    assert len(installed(tmp_path)) == 52


def test_sets_are_found_in_pages(tmp_path: Path):
    full, small = tmp_path / "m.ukvs", tmp_path / "s.ukvs"
    keys = sorted(f"com,site{n % 7})/d{n % 11}/p{n}" for n in range(3000))
    full.write_text("".join(f"{key} 2/1\n" for key in keys))
    assert command(["compact", str(full), "-o", str(small), "--sets", "--max-bytes", "4kB", "-q"]) == 0
    publish(str(small), tmp_path / "www", updated_at="x", page_keys=2)

    def pages(request: Request) -> bytes:
        file = tmp_path / "www" / request.path.lstrip("/")
        return answer(file.read_bytes()) if file.is_file() else answer(b"", "404 Not Found")

    found, requests = run(pages, tmp_path)
    assert found[0].outcome == "installed"
    assert len(requests) > 2  # pages
    with open_map(tmp_path / "one.ukvs.zst") as opened:
        assert {verdict.answer for verdict in opened.lookup_many(keys)} == {"yes"}
        absent = [verdict.answer for verdict in opened.lookup_many([f"com,site1)/d1/q{n}" for n in range(500)])]
    assert absent.count("no") > 100


def test_an_interrupted_download_goes_on_where_it_stopped(tmp_path: Path):
    body = MAP + b"".join(b"org,x)/%06d 1\n" % n for n in range(20_000))
    cut = len(body) // 2

    def pages(request: Request) -> bytes:
        if "well-known" not in request.path:
            return answer(b"", "404 Not Found")
        if "range" in request.headers:
            begin = int(request.headers["range"].removeprefix("bytes=").rstrip("-"))
            assert request.headers["if-range"] == '"v1"'
            return answer(body[begin:], "206 Partial Content", ETag='"v1"')
        # promises everything, sends half and closes
        head = f'HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nETag: "v1"\r\nConnection: close\r\n\r\n'
        return head.encode() + body[:cut]

    async def go():
        async def handler(request, writer):
            whole = pages(request)
            writer.write(whole)
            if b"Connection: close" in whole[:200]:
                await writer.drain()
                writer.close()

        async with loopback(handler) as server, ArchiveClient(timeout=10) as client:
            archive = Archive(id="one", timegate=f"{server.base}/web/")
            first = await discover(client, archive, tmp_path)
            second = await discover(client, archive, tmp_path)
            return first, second, server.requests

    first, second, requests = asyncio.run(go())
    assert first.outcome == "failed"
    assert (second.outcome, second.keys) == ("installed", 20_002)
    assert any("range" in request.headers for request in requests)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html><body>Not found, but 200</body></html>", ""),
        (MAP + b"com,a)/zz 1\n", "sorted"),
        (MAP + b"org,x)/ many\n", "frequency"),
        (MAP.replace(b"127.0.0.1", b"other.example"), "another archive"),
        (gzip.compress(MAP + b"org,x)/" + b"a" * 30_000_000), "megabyte"),
        (gzip.compress(MAP + b"org,x)/a 1\n" * 3_000_000), "too big when decompressed"),
        (gzip.compress(MAP)[:-20], ""),
        (b"\x00" * 5000, ""),
        (b"", "neither header nor records"),
        (gzip.compress(b"!context " + b"a" * 30_000_000), "megabyte"),
        (MAP.replace(b"\ncom,", b'\n!meta {"links": {"next": "/.well-known/mementomap"}}\ncom,', 1), "loop"),
    ],
    ids=[
        *("html", "unsorted", "frequency", "foreign", "endless-line", "bomb", "truncated", "binary", "empty"),
        *("endless-header", "circle"),
    ],
)
def test_a_bad_map_does_no_harm(tmp_path: Path, body: bytes, reason: str):
    good = lambda r: answer(MAP) if "well-known" in r.path else answer(b"", "404 Not Found")  # noqa: E731
    run(good, tmp_path)
    before = (tmp_path / "one.ukvs.zst").read_bytes()
    bad = lambda r: answer(body) if "well-known" in r.path else answer(b"", "404 Not Found")  # noqa: E731
    found, _ = run(bad, tmp_path, limits=Limits(max_expanded=20_000_000 if b"zz" not in body else 10**9))
    assert found[0].outcome == "failed"
    assert reason in found[0].reason
    assert (tmp_path / "one.ukvs.zst").read_bytes() == before


def test_a_map_that_may_be_cut_off_is_not_installed(tmp_path: Path):
    async def go():
        async def handler(request, writer):
            known = "well-known" in request.path
            writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + MAP if known else answer(b"", "404 Not Found"))
            writer.close()

        async with loopback(handler) as server, ArchiveClient(timeout=20) as client:
            return await discover(client, Archive(id="one", timegate=f"{server.base}/web/"), tmp_path)

    found = asyncio.run(go())
    assert (found.outcome, "without its length" in found.reason) == ("failed", True)
    assert not (tmp_path / "one.ukvs.zst").exists()


@pytest.mark.parametrize("fields", [{"Content_Range": "bytes 5-99/100"}, {"ETag": '"v2"'}])
def test_a_part_of_another_file_is_not_appended(tmp_path: Path, fields: dict[str, str]):
    (tmp_path / ".discover").mkdir()
    (tmp_path / ".discover" / "one.part").write_bytes(MAP[:20])

    def pages(request: Request) -> bytes:
        if "well-known" not in request.path:
            return answer(b"", "404 Not Found")
        assert request.headers["range"] == "bytes=20-"
        return answer(MAP[30:], "206 Partial Content", **{"ETag": '"v1"', **fields})

    async def go():
        async def handler(request, writer):
            writer.write(pages(request))

        async with loopback(handler) as server, ArchiveClient(timeout=20) as client:
            known = {"part_url": f"{server.base}/.well-known/mementomap", "part_etag": '"v1"'}
            (tmp_path / ".discover" / "one.json").write_text(json.dumps(known))
            return await discover(client, Archive(id="one", timegate=f"{server.base}/web/"), tmp_path)

    found = asyncio.run(go())
    assert (found.outcome, "cannot go on" in found.reason) == ("failed", True)
    assert not (tmp_path / ".discover" / "one.part").exists()


def test_an_endless_map_is_cut_off(tmp_path: Path):
    async def go():
        async def handler(request, writer):
            if "well-known" not in request.path:
                writer.write(answer(b"", "404 Not Found"))
                return
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n" + MAP)
            for number in range(10_000):
                writer.write(b"org,x)/%08d 1\n" % number * 100)
                await writer.drain()

        async with loopback(handler) as server, ArchiveClient(timeout=20) as client:
            archive = Archive(id="one", timegate=f"{server.base}/web/")
            return await discover(client, archive, tmp_path, limits=Limits(max_bytes=1_000_000))

    found = asyncio.run(go())
    assert found.outcome == "failed"
    assert not (tmp_path / "one.ukvs.zst").exists()


def test_no_map_is_not_a_failure(tmp_path: Path):
    found, _ = run(lambda _r: answer(b"", "404 Not Found"), tmp_path)
    assert found[0].outcome == "none"


def _two_collections(tmp_path: Path, pages, *ids: str, **more) -> dict[str, Discovery]:
    """Discover the maps of archives that are collections of one host."""

    async def go():
        async def handler(request, writer):
            writer.write(pages(request))

        async with loopback(handler) as server, ArchiveClient(timeout=10) as client:
            known = [Archive(id=one, timemap=f"{server.base}/{one}/timemap/link/") for one in ids]
            return {one.id: await discover(client, one, tmp_path, known=known, **more) for one in known}

    return asyncio.run(go())


@pytest.mark.parametrize("identity", ["http://127.0.0.1/nat/", "http://127.0.0.1/nat"])
def test_the_map_of_a_collection_is_not_installed_for_another(tmp_path: Path, identity: str):
    text = f'!id {{"uri": "{identity}"}}\ncom,a)/ 1\n'.encode()
    found = _two_collections(
        tmp_path, lambda r: answer(text if "well-known" in r.path else b"home"), "nat", "camp", "nation"
    )
    assert [found[one].outcome for one in ("nat", "camp", "nation")] == ["installed", "failed", "failed"]
    assert identity in found["camp"].reason
    assert not (tmp_path / "camp.ukvs.zst").exists()


def test_a_map_of_the_host_is_installed_for_none_of_its_collections(tmp_path: Path):
    for text in (b'!id {"uri": "http://127.0.0.1/"}\ncom,a)/ 1\n', b'!meta {"name": "x"}\ncom,a)/ 1\n'):
        pages = lambda r, text=text: answer(text if "well-known" in r.path else b"home")  # noqa: E731
        found = _two_collections(tmp_path, pages, "nat", "camp")
        assert {one.outcome for one in found.values()} == {"failed"}
        assert "camp, nat" in found["nat"].reason
        assert _two_collections(tmp_path / "alone", pages, "nat")["nat"].outcome == "installed"
        assert _two_collections(tmp_path / "any", pages, "nat", "camp", any_id=True)["camp"].outcome == "installed"


def test_a_host_lists_the_maps_of_its_collections(tmp_path: Path):
    for name in ("nat", "camp", "other.dotted"):
        source = tmp_path / f"{name}.ukvs"
        source.write_text(f'!id {{"uri": "http://127.0.0.1/{name}/"}}\ncom,{name})/ 1\n')
        code = command(["publish", str(source), "--to", str(tmp_path / "www"), "--collection", name])
        assert code == 0

    def pages(request: Request) -> bytes:
        file = tmp_path / "www" / request.path.lstrip("/")
        return answer(file.read_bytes()) if file.is_file() else answer(b"", "404 Not Found")

    found = _two_collections(tmp_path / "maps", pages, "nat", "camp", "other.dotted", "absent")
    assert [one.outcome for one in found.values()] == ["installed", "installed", "installed", "failed"]
    assert "none of this archive" in found["absent"].reason
    for name in ("nat", "camp", "other.dotted"):
        with MapFile(tmp_path / "maps" / f"{name}.ukvs.zst") as source:
            assert [record.key for record in source] == [f"com,{name})/".encode()]
    link = (tmp_path / "www" / "mementomap" / "link.txt").read_text()
    assert link.count('rel="mementomap"') == 3 and 'anchor="http://127.0.0.1/nat/"' in link
    with open_map(str(tmp_path / "www" / ".well-known" / "mementomap")) as listed:
        assert listed.lookup("http://nat/").answer == "unknown"  # to a reader that does not know lists


def test_a_link_per_collection(tmp_path: Path):
    def pages(request: Request) -> bytes:
        if request.path == "/":
            links = [f'</maps/{one}>; rel="mementomap"; anchor="/{one}/"' for one in ("nat", "camp")]
            return answer(b"home", Link=", ".join(links))
        name = request.path.removeprefix("/maps/")
        return answer(f"com,{name})/ 1\n".encode()) if name in ("nat", "camp") else answer(b"", "404 Not Found")

    found = _two_collections(tmp_path, pages, "nat", "camp")
    assert [found[one].url.rpartition("/")[2] for one in ("nat", "camp")] == ["nat", "camp"]
