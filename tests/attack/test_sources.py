"""Hostile files that people bring: bombs, traversal, damage."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import pytest

from recollect.errors import RecollectError
from recollect.model import Problem
from recollect.sources.recognise import open_source

RECORD = (
    b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://x.com/\r\nWARC-Date: 2015-01-01T00:00:00Z\r\n"
    b"Content-Length: 20\r\n\r\nHTTP/1.1 200 OK\r\n\r\na\r\n\r\n"
)


def packed(*pieces: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(packer.compress(piece) for piece in pieces) + packer.flush()


def test_a_member_that_unpacks_to_nothing_but_zeros_is_left_early(tmp_path: Path) -> None:
    zeros = [bytes(1 << 20)] * 300
    (tmp_path / "bomb.warc.gz").write_bytes(packed(RECORD, *zeros) + packed(RECORD.replace(b"x.com/", b"y.com/")))
    problems: list[Problem] = []
    source = open_source(tmp_path / "bomb.warc.gz")
    found = [one.url for one in source.captures(lambda _url: True, problems.append)]
    assert found == ["http://x.com/", "http://y.com/"]
    assert any("no record in much data" in str(problem) for problem in problems)


def test_a_file_of_one_member_is_not_unpacked_beyond_its_ratio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.sources.records._LARGE", 10)
    monkeypatch.setattr("recollect.sources.records._MOST_RATIO", -10_000_000)
    (tmp_path / "bomb.warc.gz").write_bytes(packed(RECORD, RECORD))
    with pytest.raises(RecollectError, match="too much"):
        list(open_source(tmp_path / "bomb.warc.gz").captures(lambda _url: True, lambda _problem: None))


def test_names_in_httracks_cache_lead_nowhere_outside_of_the_mirror(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    cache = tmp_path / "mirror/hts-cache"
    cache.mkdir(parents=True)
    with zipfile.ZipFile(cache / "new.zip", "w") as package:
        for number in range(3):
            info = zipfile.ZipInfo(f"http://lost.example/{number}", (2015, 1, 1, 0, 0, 0))
            package.writestr(info, b"")
    (tmp_path / "mirror/link.txt").symlink_to(tmp_path / "secret.txt")
    source = open_source(tmp_path / "mirror")
    for capture in source.captures(lambda _url: True, lambda _problem: None):
        assert b"secret" not in b"".join(source.read(capture.place).chunks)
    from recollect.sources.mirrors import HttrackSource

    assert isinstance(source, HttrackSource)
    for name in ("../secret.txt", str(tmp_path / "secret.txt"), "link.txt"):
        assert source._file((("X-Save", name),)) is None


def test_members_of_a_wacz_with_names_outside_of_it_are_not_written(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.wacz", "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("archive/../../../escaped.warc", RECORD)
        package.writestr("archive/data.warc", RECORD)
    source = open_source(tmp_path / "x.wacz")
    assert len(list(source.captures(lambda _url: True, lambda _problem: None))) == 2
    assert not list(tmp_path.parent.parent.glob("escaped.warc"))
    source.close()
