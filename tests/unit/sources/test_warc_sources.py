"""WARC, ARC and WACZ files, folders and indexes of them: every capture is listed once and read by its place."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from pywb_archive import Capture, write_warc
from recollect.errors import FormatError, RecollectError
from recollect.model import Problem
from recollect.sources.model import Kind, Mark, Source, SourceCapture, TimeOrigin
from recollect.sources.recognise import open_source, recognise

HOME = Capture("http://lost.example/", "20150101000000", b"<p>home of the frogs")
PAGE = Capture("http://lost.example/a?b=1", "20160102030405", b"<p>" + b"toads " * 20_000)
IMAGE = Capture("http://lost.example/i.png", "20160102030405", bytes(range(256)) * 4, "image/png")
OTHER = Capture("http://other.example/", "20160102030405", b"<p>other")
ALL = (HOME, PAGE, IMAGE, OTHER)


def listed(source: Source, problems: list[Problem] | None = None) -> list[SourceCapture]:
    note = problems.append if problems is not None else lambda _problem: None
    return list(source.captures(lambda _url: True, note))


def body(source: Source, capture: SourceCapture) -> bytes:
    return b"".join(source.read(capture.place).chunks)


def assert_all_read(source: Source, captures: Sequence[Capture] = ALL) -> None:
    found = {capture.url: capture for capture in listed(source)}
    assert sorted(found) == sorted(capture.uri for capture in captures)
    for capture in reversed(captures):  # in another order than they lie
        assert body(source, found[capture.uri]) == capture.body
        assert f"{found[capture.uri].captured_at:%Y%m%d%H%M%S}" == capture.timestamp
    source.close()


def warc(folder: Path, name: str = "crawl.warc.gz", captures: Sequence[Capture] = ALL) -> Path:
    write_warc(folder / name, captures)
    return folder / name


def arc_bytes(captures: Sequence[Capture]) -> bytes:
    lines = b"1 0 test\nURL IP-address Archive-date Content-type Archive-length\n"
    parts = [b"filedesc://x.arc 0.0.0.0 20150101000000 text/plain %d\n%s\n" % (len(lines), lines)]
    for capture in captures:
        block = b"HTTP/1.0 200 OK\r\nContent-Type: " + capture.media_type.encode() + b"\r\n\r\n" + capture.body
        head = f"{capture.uri} 1.2.3.4 {capture.timestamp} text/html {len(block)}\n".encode()
        parts.append(head + block + b"\n")
    return b"".join(parts)


@pytest.mark.parametrize("form", ["members", "plain", "whole", "zstd"])
def test_every_record_of_a_warc_is_read_by_its_place_however_it_is_packed(tmp_path: Path, form: str) -> None:
    path = warc(tmp_path)
    plain = gzip.decompress(path.read_bytes())
    if form == "plain":
        path.write_bytes(plain)
    elif form == "whole":
        path.write_bytes(gzip.compress(plain, mtime=0))
    elif form == "zstd":
        import zstandard

        path.write_bytes(zstandard.compress(plain))
    assert recognise(path) is Kind.WARC
    assert_all_read(open_source(path))


def test_a_large_file_of_one_gzip_member_is_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.sources.records._LARGE", 100)
    path = warc(tmp_path)
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()), mtime=0))
    source = open_source(path)
    assert all("+" not in capture.place for capture in listed(source))
    assert_all_read(source)


def test_an_arc_is_read_like_a_warc(tmp_path: Path) -> None:
    path = tmp_path / "old.arc"
    path.write_bytes(arc_bytes(ALL))
    assert recognise(path) is Kind.ARC
    assert_all_read(open_source(path))


def test_a_chunked_body_comes_without_its_chunk_sizes_and_says_that_it_was_chunked(tmp_path: Path) -> None:
    chunked = b"5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n"
    field = ("Transfer-Encoding", "chunked")
    path = warc(tmp_path, captures=[Capture("http://a.example/", "20150101000000", chunked, headers=(field,))])
    source = open_source(path)
    payload = source.read(listed(source)[0].place)
    assert b"".join(payload.chunks) == b"hello world"
    assert payload.header("transfer-encoding") == "chunked"


def test_a_body_that_only_claims_to_be_chunked_comes_as_it_is(tmp_path: Path) -> None:
    field = ("Transfer-Encoding", "chunked")
    path = warc(tmp_path, captures=[Capture("http://a.example/", "20150101000000", b"<p>no chunks", headers=(field,))])
    source = open_source(path)
    assert body(source, listed(source)[0]) == b"<p>no chunks"


def test_damage_in_the_middle_loses_its_record_only(tmp_path: Path) -> None:
    path = warc(tmp_path)
    data = bytearray(path.read_bytes())
    places = [int(capture.place) for capture in listed(open_source(path))]
    data[places[1] + 40 : places[1] + 60] = b"\xff" * 20
    path.write_bytes(data)
    problems: list[Problem] = []
    found = listed(open_source(path), problems)
    assert {capture.url for capture in found} >= {HOME.uri, IMAGE.uri, OTHER.uri}
    assert problems


def test_a_record_that_is_cut_off_is_marked(tmp_path: Path) -> None:
    path = warc(tmp_path, "crawl.warc", [PAGE])
    data = gzip.decompress(path.read_bytes())
    path.write_bytes(data[:-200])
    problems: list[Problem] = []
    source = open_source(path)
    (capture,) = listed(source, problems)
    assert capture.marks == (Mark.TRUNCATED,) and capture.altered
    assert problems
    with pytest.raises(FormatError, match="cut off"):
        body(source, capture)


def cdxj(path: Path, name: str | None = None) -> str:
    source = open_source(path)
    lines = []
    for capture in listed(source):
        fields = {"url": capture.url, "mime": capture.media_type, "status": str(capture.status), "length": "9"}
        fields |= {"offset": capture.place, "filename": name or path.name}
        lines.append(f"key {capture.captured_at:%Y%m%d%H%M%S} {json.dumps(fields)}\n")
    return "".join(lines)


def wacz(folder: Path, *, index: bool = True, packed: bool = False, pages: Sequence[str] = ()) -> Path:
    inner = warc(folder, "data.warc.gz")
    path = folder / "collection.wacz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as package:
        package.write(inner, "archive/data.warc.gz")
        if index:
            buffer = io.BytesIO()
            with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as out:
                out.write(cdxj(inner).encode())
            package.writestr("indexes/index.cdx.gz", buffer.getvalue())
        lines = [json.dumps({"format": "json-pages-1.0"}), *(json.dumps({"url": url, "seed": True}) for url in pages)]
        package.writestr("pages/pages.jsonl", "\n".join(lines))
        package.writestr("datapackage.json", "{}")
    inner.unlink()
    return path


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("packed", [True, False])
def test_a_wacz_is_read_by_its_index_and_without_one(tmp_path: Path, index: bool, packed: bool) -> None:
    path = wacz(tmp_path, index=index, packed=packed, pages=["http://lost.example/"])
    assert recognise(path) is Kind.WACZ
    source = open_source(path)
    assert source.seeds() == ("http://lost.example/",)
    origin = TimeOrigin.INDEX if index else TimeOrigin.HEADER
    assert {capture.origin for capture in listed(source)} == {origin}
    assert_all_read(source)


def test_an_index_reads_the_warcs_beside_it_and_no_other_file(tmp_path: Path) -> None:
    folder = tmp_path / "collection"
    (folder / "indexes").mkdir(parents=True)
    (folder / "archive").mkdir()
    path = warc(folder / "archive")
    outside = warc(tmp_path, "outside.warc.gz", [HOME])
    text = cdxj(path) + cdxj(outside, "../../outside.warc.gz") + cdxj(outside, str(outside))
    (folder / "indexes" / "index.cdxj").write_text(text)
    problems: list[Problem] = []
    source = open_source(folder / "indexes" / "index.cdxj")
    assert len(listed(source, problems)) == len(ALL)
    assert "outside.warc.gz" in str(problems[0])
    assert_all_read(source)


def test_a_folder_holds_each_capture_once_with_and_without_an_index(tmp_path: Path) -> None:
    path = warc(tmp_path, "one.warc.gz", [HOME, PAGE])
    warc(tmp_path, "two.warc.gz", [IMAGE, OTHER])
    (tmp_path / "index.cdxj").write_text(cdxj(path))
    (tmp_path / "notes.txt").write_text("not an archive")
    assert_all_read(open_source(tmp_path))


def test_links_out_of_a_folder_are_not_followed(tmp_path: Path) -> None:
    warc(tmp_path, "outside.warc.gz", [OTHER])
    folder = tmp_path / "folder"
    folder.mkdir()
    warc(folder, "inside.warc.gz", [HOME])
    (folder / "link.warc.gz").symlink_to(tmp_path / "outside.warc.gz")
    (folder / "up").symlink_to(tmp_path, target_is_directory=True)
    assert_all_read(open_source(folder), [HOME])


def test_what_holds_no_captures_is_refused_with_words(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    for path in (tmp_path, tmp_path / "notes.txt", tmp_path / "missing"):
        with pytest.raises(RecollectError):
            open_source(path)
