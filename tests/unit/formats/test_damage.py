"""Damage loses nothing that is whole, is one line, and reading goes on after it."""

from __future__ import annotations

import bz2
import gzip
import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from recollect.cli.main import run
from recollect.errors import FormatError
from recollect.formats.containers import open_input
from recollect.formats.warc import read_arc
from recollect.model import Problem
from recollect.profiles.indexes.profile import profile

Capture = pytest.CaptureFixture[str]
Pack = Callable[[bytes], bytes]
LINES = "".join(f'com,x)/{i:05d} 2014 {{"url": "http://x.com/{i:05d}"}}\n' for i in range(4000)).rstrip("\n").encode()


def wrong_checksum(text: bytes) -> bytes:
    packed = bytearray(gzip.compress(text))
    packed[-5] ^= 0xFF
    return bytes(packed)


@pytest.mark.parametrize("members", [1, 3])
def test_a_wrong_checksum_loses_nothing_and_is_named(tmp_path: Path, members: int) -> None:
    file = tmp_path / "x.cdxj.gz"
    parts = [gzip.compress(LINES + b"\n")] * (members - 1) + [wrong_checksum(LINES)]
    file.write_bytes(b"".join(parts))
    problems: list[Problem] = []
    with open_input(file, problems.append) as stream:
        assert stream.read() == (LINES + b"\n") * (members - 1) + LINES
    assert len(problems) == 1 and "wrong checksum" in problems[0].reason and "all of it was read" in problems[0].reason
    made = profile(file)
    assert made.totals.keys == 4000 and len(made.tally.damaged) == 1 and not made.tally.skipped
    with pytest.raises(FormatError, match="wrong checksum"), open_input(file) as stream:
        assert len(stream.read()) >= len(LINES)


def test_gzip_members_with_every_field_of_the_header(tmp_path: Path) -> None:
    body = gzip.compress(LINES, mtime=0)[10:]
    head = b"\x1f\x8b\x08\x1e" + bytes(6) + b"\x05\0extra" + b"name\0" + b"comment\0" + b"\0\0"
    (tmp_path / "x").write_bytes(head + body + gzip.compress(b"\nlast") + bytes(512))
    with open_input(tmp_path / "x") as stream:
        assert stream.read() == LINES + b"\nlast"
    for cut in (5, 14, 22, len(head) + 9, len(head) + len(body) - 3):
        (tmp_path / "x").write_bytes((head + body)[:cut])
        with pytest.raises(FormatError, match="cut off"), open_input(tmp_path / "x") as stream:
            stream.read()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, zstandard.compress])
def test_a_file_that_is_cut_off_is_one_line_of_damage(tmp_path: Path, capsys: Capture, pack: Pack) -> None:
    noise = random.Random(1)
    text = LINES + "".join(f"\ncom,y)/{noise.random()} 2014 {{}}" for _ in range(100_000)).encode()
    (tmp_path / "x").write_bytes(pack(text)[:-3000])
    assert run(["profile", str(tmp_path / "x"), "-o", str(tmp_path / "map.ukvs")]) == 3
    (said,) = [line for line in capsys.readouterr().err.splitlines() if "damaged" in line]
    assert "is cut off; the line before the damage is incomplete and was left out" in said


def test_a_hole_of_zeros_loses_no_line_whose_url_is_whole(tmp_path: Path) -> None:
    """Zeros in front of a key would make another key of it; what a line still says is its URL."""
    middle = LINES.index(b"com,x)/02000")
    file = tmp_path / "x.cdxj"
    file.write_bytes(LINES[:middle] + bytes(4096) + LINES[middle:])
    made = profile(file, tmp_path / "map.ukvs")
    assert made.totals.keys == 4000 and b"%00" not in (tmp_path / "map.ukvs").read_bytes()
    file.write_bytes(LINES[: middle + 5] + bytes(4096) + LINES[middle + 4101 :])
    made = profile(file, tmp_path / "map.ukvs")
    assert b"%00" not in (tmp_path / "map.ukvs").read_bytes() and sum(made.tally.skipped.values()) == 1


def test_noise_in_the_middle_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    noise = random.Random(1).randbytes(400_000)
    middle = LINES.index(b"com,x)/02000")
    (tmp_path / "x.cdxj").write_bytes(LINES[:middle] + noise + b"\n" + LINES[middle:])
    assert run(["profile", str(tmp_path / "x.cdxj"), "-o", str(tmp_path / "map.ukvs")]) == 3
    said = capsys.readouterr().err.splitlines()
    named = [line for line in said if "x.cdxj:" in line]
    assert len(named) == 1 and "x.cdxj:2001: " in named[0] and "more up to line" in named[0]
    assert all(line.isprintable() for line in said)
    assert "4,000 keys" in said[0]


def arc_record(url: str, body: bytes, length: int | None = None) -> bytes:
    http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body
    return f"{url} 1.2.3.4 20140103030321 text/html {len(http) if length is None else length}\n".encode() + http + b"\n"


def read(data: bytes, tmp_path: Path) -> tuple[list[str], list[str]]:
    (tmp_path / "x.arc").write_bytes(data)
    problems: list[Problem] = []
    with open_input(tmp_path / "x.arc") as stream:
        found = [capture.url or "" for capture in read_arc(stream, "x.arc", problems.append, lambda _: None)]
    return found, [problem.reason for problem in problems]


def test_arc_files_go_on_after_damage(tmp_path: Path, capsys: Capture) -> None:
    first = b"filedesc://x.arc 0.0.0.0 20140103030321 text/plain 12\n1 0 Example\n\n"
    good = [arc_record(f"http://x.com/{i} {i}", b"<p>" * i) for i in range(5)]
    urls = [f"http://x.com/{i} {i}" for i in range(5)]
    assert read(first + b"".join(good), tmp_path) == (urls, [])
    noise = random.Random(1).randbytes(3000)
    found, problems = read(first + good[0] + good[1] + noise + b"\n" + b"".join(good[2:]), tmp_path)
    assert found == urls and len(problems) == 1 and "no record where one should begin" in problems[0]
    short = arc_record("http://x.com/short", b"x" * 100, length=70)
    found, problems = read(first + short + b"".join(good), tmp_path)
    assert found == ["http://x.com/short", *urls] and len(problems) == 1
    found, problems = read(first + good[0] + good[1][:-20], tmp_path)
    assert found == urls[:2] and "cut off" in problems[0]
    assert capsys.readouterr() == ("", "")  # no library speaks for itself


def prose(number: int) -> bytes:
    dice = random.Random(number)
    return " ".join(f"{dice.randint(0, 99999)} word" for _ in range(700 + number)).encode()


def warc_record(number: int) -> bytes:
    body = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + prose(number)
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://x.com/{number}\r\n"
        f"WARC-Date: 2014-01-03T03:03:21Z\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body + b"\r\n\r\n"


def damaged(member: bytes, how: str) -> bytes:
    """A gzip member that cannot be decoded from the middle on."""
    middle = len(member) // 2
    if how == "lost":  # a part of the file is missing, up to the middle of the next member
        return member[:middle]
    if how == "noise":
        return member[:middle] + random.Random(5).randbytes(200) + member[middle + 200 :]
    return member[:20] + bytes(400) + member[420:] if how == "zeros" else b"\xff" * 900


@pytest.mark.parametrize("packing", ["warc.gz", "arc.gz", "wacz"])
@pytest.mark.parametrize("how", ["lost", "noise", "zeros", "other"])
def test_members_after_damage_are_read_and_the_damage_is_one_line(tmp_path: Path, how: str, packing: str) -> None:
    if packing == "arc.gz":
        records = [arc_record(f"http://x.com/{i}", prose(i)) for i in range(300)]
        records[0] = b"filedesc://x.arc 0.0.0.0 20140103030321 text/plain 12\n1 0 Example\n\n"
    else:
        records = [warc_record(i) for i in range(300)]
    members = [gzip.compress(record, 6) for record in records]
    for number in (100, 250):
        members[number] = damaged(members[number], how)
    data = b"".join(members)
    file = tmp_path / f"x.{packing}"
    if packing == "wacz":
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("archive/x.warc.gz", data)
    else:
        file.write_bytes(data)
    made = profile(file, by=["year"])
    lost = {100, 101, 250, 251} if how == "lost" else {100, 250}
    text = (made.text or b"").decode()
    for number in set(range(1, 300)) - lost:
        assert f"com,x)/{number} " in text, f"record {number} is lost"
    assert len(made.tally.damaged) == 2 and not made.tally.skipped, made.tally.damaged
    assert all("gzip data" in problem.reason for problem in made.tally.damaged)


def test_an_index_ends_at_damage_because_half_a_key_is_another_key(tmp_path: Path) -> None:
    cut = LINES.index(b"com,x)/02000") + 5
    first, second = gzip.compress(LINES[:cut]), gzip.compress(LINES[cut:])
    (tmp_path / "x.cdxj.gz").write_bytes(first[:-8] + b"\xff" * 50 + second)
    made = profile(tmp_path / "x.cdxj.gz")
    assert made.totals.keys <= 2000 and len(made.tally.damaged) >= 1
    assert all(f"com,x)/{i:05d} 1/1\n".encode() in (made.text or b"") for i in range(made.totals.keys))


def test_records_of_warcs_themselves_are_left_out_of_indexes(tmp_path: Path) -> None:
    kinds = ("warc/warcinfo", "warc/request", "warc/metadata", "text/html")
    (tmp_path / "x.cdx").write_text(
        " CDX N b a m s k r M S V g\n"
        + "".join(f"com,x)/{i} 20140103030321 http://x.com/{i} {kind} - - - - 1 2 f\n" for i, kind in enumerate(kinds))
    )
    made = profile(tmp_path / "x.cdx")
    assert made.totals.captures == 1 and set(made.tally.left_out) == {"warcinfo", "request", "metadata"}
