"""Files are known by their content, whatever they are called."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pytest
import zstandard

from recollect.errors import FormatError, RecollectError
from recollect.formats.detect import Kind, find_sources, inspect
from recollect.model import Problem

CDX = "com,x)/ 20140103030321 http://x.com/ text/html 200 D - - 1 2 f.warc.gz\n"
CDXJ = 'com,x)/ 20140103030321 {"url": "http://x.com/"}\n'


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (" CDX N b a m s k r M S V g\n" + CDX, Kind.CDX),
        (CDX * 3, Kind.CDX),
        ("x.com/ 20140103030321 http://x.com/ text/html 200 D - - 1 2 f.warc.gz\n", Kind.CDX),
        ("com,x)/ 20140103030321\n", Kind.CDX),
        ("com,x)/ 20140103030321 http://x.com/\n", Kind.CDX),
        ("com,x)/\t20140103030321\t-\ttext/html\n", Kind.CDX),
        # What is after the time of a table is not the URL.
        ("http://x.com/\t20140103030321\t7\n", Kind.TABLE),
        ("http://x.com/ 20140103030321 200 text/html\n", Kind.TABLE),
        ("com,x)/ 20140103030321 200\n", Kind.TABLE),
        (CDXJ, Kind.CDXJ),
        ("garbage line\n" + CDXJ * 3, Kind.CDXJ),
        ('!context ["http://oduwsdl.github.io/contexts/cdxj"]\n!meta {"created_at": "x"}\n' + CDXJ, Kind.CDXJ),
        ('{"urlkey": "com,x)/", "timestamp": "20140103030321", "url": "http://x.com/"}\n', Kind.CDXJ),
        ("com,x)/\ncom,y)/a\n", Kind.SURTS),
        ("http://x.com/\nhttp://y.com/\n", Kind.URLS),
        ("www.x.com\n", Kind.URLS),
        ("http://x.com/soft\u00adhyphen\n", Kind.URLS),
        ("com,x)/ 12/3\ncom,y)/* 5+\n", Kind.MAP),
        ('!fields {keys: ["surt"], values: ["frequency"]}\ncom,x)/ 12\n', Kind.MAP),
        ('@context https://x.org/archiveprofile.jsonld\ncom,x)/ {"frequency": 1, "spread": 1}\n', Kind.PROFILE),
        ('com,x)/ {"frequency": 1, "spread": 1}\n', Kind.PROFILE),
        ("com,x)/ 20140103030321\tshard\t0\t275\t1\n", Kind.ZIPNUM),
        ('1.2.3.4 - - [16/Jan/2019:05:00:00 -0700] "GET /web/2016/http://x.com/ HTTP/1.1" 200 12\n', Kind.LOG),
        ("INFO: 2019/01/16 12:00:00.123456 Aggregating Mementos for http://x.com/\n", Kind.LOG),
        ("7 http://x.com/\n", Kind.TABLE),
        ('<http://x.com/>; rel="original",\n', Kind.TIMEMAP),
        ('{"original_uri": "http://x.com/", "mementos": {}}', Kind.TIMEMAP),
        ('!meta {"original_uri": "http://x.com/"}\n20140103030321 {"uri": "http://a/"}\n', Kind.TIMEMAP),
        ("WARC/1.0\r\nWARC-Type: warcinfo\r\n", Kind.WARC),
        ("filedesc://x.arc 0.0.0.0 20070629170700 text/plain 200\n", Kind.ARC),
        ("", Kind.EMPTY),
        ("\n\n", Kind.EMPTY),
        ("just some prose, which is not an index\nand more of it\n", Kind.UNKNOWN),
    ],
)  # fmt: skip
def test_kinds(tmp_path: Path, content: str, kind: Kind) -> None:
    file = tmp_path / "any.name"
    file.write_text(content)
    found = inspect(str(file))
    assert (found.kind, found.container) == (kind, "plain")


@pytest.mark.parametrize(
    ("container", "pack"),
    [("gzip", gzip.compress), ("bzip2", bz2.compress), ("zstd", zstandard.ZstdCompressor().compress)],
)
def test_containers(tmp_path: Path, container: str, pack) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "any.name"
    file.write_bytes(pack(CDXJ.encode()))
    found = inspect(str(file))
    assert (found.kind, found.container) == (Kind.CDXJ, container)


def test_binary_kinds(tmp_path: Path) -> None:
    for name, magic, kind in (("a", b"PAR1....", Kind.PARQUET), ("b", b"PK\x03\x04....", Kind.WACZ)):
        (tmp_path / name).write_bytes(magic)
        assert inspect(str(tmp_path / name)).kind is kind


def test_folders_and_globs_are_sorted_and_nothing_comes_twice(tmp_path: Path) -> None:
    for name in ("b.cdxj", "a.cdxj", "sub/c.cdxj", ".hidden"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(CDXJ)
    names = [Path(source.path).name for source in find_sources([tmp_path, str(tmp_path / "*.cdxj")])]
    assert names == ["a.cdxj", "b.cdxj", "c.cdxj"]


def test_a_zipnum_index_stands_for_its_shards(tmp_path: Path) -> None:
    (tmp_path / "cluster.idx").write_text(
        "com,a)/ 20140103030321\tpart-0\t0\t9\t1\ncom,b)/ 2014\tpart-1\t0\t9\t2\ncom,c)/ 2014\tpart-2\t0\t9\t3\n"
    )
    (tmp_path / "part-0.gz").write_bytes(gzip.compress(CDX.encode()))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/p1").write_bytes(gzip.compress(CDX.encode()))
    (tmp_path / "cluster.loc").write_text("part-1\telsewhere/p1\n")
    problems: list[Problem] = []
    sources = find_sources([tmp_path / "cluster.idx"], problems.append)
    assert [Path(source.path).name for source in sources] == ["part-0.gz", "p1"]
    assert "part-2" in problems[0].reason


def test_the_places_of_shards_are_relative_to_their_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster/cluster.idx").write_text("com,a)/ 20140103030321\tpart-0\t0\t9\t1\n")
    (tmp_path / "cluster/cluster.loc").write_text("part-0\t/moved/part-0.gz\n")
    (tmp_path / "cluster/part-0.gz").write_bytes(gzip.compress(CDX.encode()))
    monkeypatch.chdir(tmp_path)
    for named in ("cluster/cluster.idx", "cluster"):
        assert [source.path for source in find_sources([named])] == ["cluster/part-0.gz"]


def test_what_is_missing_or_unknown_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RecollectError, match="no such file"):
        find_sources([tmp_path / "none"])
    with pytest.raises(RecollectError, match="empty folder"):
        find_sources([tmp_path])
    (tmp_path / "README").write_text("Only words in here.\n")
    problems: list[Problem] = []
    assert find_sources([tmp_path], problems.append) == []
    assert problems[0].file.endswith("README")
    with pytest.raises(FormatError):
        find_sources([tmp_path])


def test_hidden_files_and_folders_are_not_inputs(tmp_path: Path) -> None:
    for name in ("a.cdxj", ".b.cdxj", ".git/c.cdxj", "d/.e/f.cdxj", "d/g.cdxj"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text(CDXJ)
    found = [str(Path(source.path).relative_to(tmp_path / "in")) for source in find_sources([tmp_path / "in"])]
    assert found == ["a.cdxj", "d/g.cdxj"]
    assert len(find_sources([tmp_path / "in/.git"])) == 1, "what is named is an input"
