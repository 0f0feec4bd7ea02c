"""A published map: whole, in pages, compressed, described."""

import hashlib
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from recollect.cli.publish import publish as command
from recollect.errors import NotSorted
from recollect.formats.containers import open_input
from recollect.formats.ukvs.reader import MapFile
from recollect.maps.publish import publish

HEAD = b'!fields {keys: ["surt"], values: ["frequency"]}\n!id {uri: "https://archive.example/"}\n!meta {name: "A"}\n'
LINES = [b"com,a)/ 1\n", b"com,b)/ 2/1\n", b"com,b)/* 5\n", b"com,c)/x 0\n", b"org,d)/ 3\n"]


@pytest.fixture
def a_map(tmp_path: Path) -> str:
    path = tmp_path / "m.ukvs"
    path.write_bytes(HEAD + b"".join(LINES))
    return str(path)


def records(path: Path) -> list[bytes]:
    with open_input(path) as stream:
        return [line + b"\n" for line in stream.read().splitlines() if not line.startswith(b"!")]


def test_a_small_map_is_one_file_in_three_encodings(a_map: str, tmp_path: Path):
    done = publish(a_map, tmp_path / "www", updated_at="2026-01-01T00:00:00Z")
    for suffix in ("", ".gz", ".zst"):
        assert records(tmp_path / f"www/.well-known/mementomap{suffix}") == LINES
    assert done.index["keys"] == 5 and done.index["pages"] == []
    assert done.link == '</.well-known/mementomap>; rel="mementomap"; type="application/ukvs"'


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_pages_one_after_another_are_the_map(a_map: str, tmp_path: Path, size: int):
    www = tmp_path / "www"
    done = publish(a_map, www, updated_at="x", page_keys=size)
    if size == 5:
        assert done.index["pages"] == []
        return
    page, seen = www / ".well-known/mementomap", []
    while True:
        with MapFile(page) as source:
            links = source.header.meta["links"]
            seen += [record.key for record in source]
        if "next" not in links:
            break
        page = www / links["next"].lstrip("/")
    assert seen == [line.split()[0] for line in LINES]
    assert records(www / "mementomap/map.ukvs.gz") == LINES


def test_a_shorter_map_takes_old_pages_away(a_map: str, tmp_path: Path):
    www = tmp_path / "www"
    publish(a_map, www, updated_at="x", page_keys=1)
    publish(a_map, www, updated_at="x", page_keys=3)
    assert sorted(p.name for p in (www / "mementomap").glob("page-*.ukvs")) == ["page-00001.ukvs", "page-00002.ukvs"]


def test_the_index_describes_every_file(a_map: str, tmp_path: Path):
    www = tmp_path / "www"
    publish(a_map, www, updated_at="x", page_keys=2)
    index = json.loads((www / "mementomap/index.json").read_text())
    for entry in index["files"]:
        body = (www / entry["path"].lstrip("/")).read_bytes()
        assert (len(body), hashlib.sha256(body).hexdigest()) == (entry["bytes"], entry["sha256"])


def test_an_unsorted_map_is_refused(tmp_path: Path):
    bad = tmp_path / "bad.ukvs"
    bad.write_bytes(b"com,b)/ 1\ncom,a)/ 1\n")
    with pytest.raises(NotSorted):
        publish(str(bad), tmp_path / "www", updated_at="x")
    assert not (tmp_path / "www/mementomap/index.json").exists()


def test_a_map_without_keys_is_published_too(tmp_path: Path):
    empty = tmp_path / "empty.ukvs"
    empty.write_bytes(HEAD)
    publish(str(empty), tmp_path / "www", updated_at="x")
    assert records(tmp_path / "www/.well-known/mementomap") == []


def test_the_command_says_the_header_to_send(a_map: str, tmp_path: Path):
    result = CliRunner().invoke(command, [a_map, "--to", str(tmp_path / "w"), "--base-url", "https://a.example/"])
    assert result.exit_code == 0
    assert '<https://a.example/.well-known/mementomap>; rel="mementomap"' in result.stderr
