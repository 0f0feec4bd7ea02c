"""Published by one command, served by another, discovered by a third."""

import gzip
import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from click.testing import CliRunner

from recollect.cli.discover import discover
from recollect.cli.publish import publish
from recollect.formats.ukvs.reader import MapFile


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """`recollect serve --publish` over a map of 30 keys in pages of 7."""
    lines = "".join(f"com,a)/{n:02d} 1\n" for n in range(30))
    (tmp_path / "m.ukvs").write_text('!id {uri: "http://127.0.0.1/"}\n' + lines)
    (tmp_path / "a.json").write_text('[{"id": "one", "name": "One", "timemap": "http://127.0.0.1:9/t/"}]')
    CliRunner().invoke(publish, [str(tmp_path / "m.ukvs"), "--to", str(tmp_path / "www"), "--page-keys", "7"])
    command = [sys.executable, "-m", "recollect", "serve", "--archives", "a.json", "--port", "0", "--publish", "www"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def get(url: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    request = urllib.request.Request(url, headers={name.replace("_", "-"): value for name, value in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read()


def test_the_smallest_file_the_client_takes_is_sent(server: str):
    plain = get(f"{server}.well-known/mementomap")[2]
    unpack = {
        "gzip": gzip.decompress,
        "zstd": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
    }
    for accepted, coding in [
        *(("gzip, zstd", "zstd"), ("gzip", "gzip"), ("zstd;q=0, gzip", "gzip")),
        *(("zstd;q=0.0", ""), ("br", ""), ("", "")),
    ]:
        _, headers, body = get(f"{server}.well-known/mementomap", Accept_Encoding=accepted)
        assert (headers.get("Content-Encoding", ""), headers["Vary"]) == (coding, "Accept-Encoding"), accepted
        assert unpack.get(coding, bytes)(body) == plain


def test_conditions_ranges_links_and_discovery(server: str, tmp_path: Path):
    status, headers, body = get(f"{server}.well-known/mementomap")
    assert status == 200 and b"com,a)/06 1\n" in body and b"com,a)/07" not in body
    assert 'rel="next"' in headers["Link"] and 'rel="mementomap"' in headers["Link"]
    assert get(f"{server}.well-known/mementomap", If_None_Match=headers["Etag"])[0] == 304
    status, _, part = get(f"{server}.well-known/mementomap", Range="bytes=5-9")
    assert (status, part) == (206, body[5:10])
    whole = get(f"{server}.well-known/mementomap", Range="bytes=5-9", If_Range=headers["Etag"])
    assert (whole[0], whole[2]) == (206, body[5:10])
    whole = get(f"{server}.well-known/mementomap", Range="bytes=5-9", If_Range='"of-another-map"')
    assert (whole[0], whole[2]) == (200, body), "a download must not go on with another map"
    assert get(f"{server}mementomap/..%2f..%2fm.ukvs")[0] == 404
    assert len(json.loads(get(f"{server}mementomap/index.json")[2])["pages"]) == 5

    found = CliRunner().invoke(discover, [server, "--maps", str(tmp_path / "maps"), "--json"])
    assert json.loads(found.stdout)[0]["outcome"] == "installed", found.output
    with MapFile(next((tmp_path / "maps").glob("*.ukvs.zst"))) as source:
        assert len(list(source)) == 30
