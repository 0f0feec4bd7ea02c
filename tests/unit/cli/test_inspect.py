"""`inspect` shows what files are taken for before they are used; files that are not inputs are ignored by name."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from recollect.cli.main import run

Capture = pytest.CaptureFixture[str]
CDXJ = "".join(
    f'com,x)/{i:02d} 20140103030321 {{"url": "http://x.com/{i:02d}", "mime": "text/html", "status": "200"}}\n'
    for i in range(60)
)
# Files of no use, and what is said of each.
STRANGERS = {
    "README.md": (b"# Indexes\n\nOf http://x.com/ and others.\n", "text that is not an index"),
    "MD5SUMS": (b"d41d8cd98f00b204e9800998ecf8427e  x.cdxj\n" * 3, "a list of checksums"),
    "x.png": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)), "a PNG image"),
    "noise": (bytes((i * 7919 + i // 3) % 256 for i in range(90_000)), "binary data"),
    "utf16.cdxj": (CDXJ.encode("utf-16"), "text in UTF-16; convert it with iconv"),
    "utf16le.cdxj": (CDXJ.encode("utf-16-le"), "text in UTF-16LE; convert it with iconv -f UTF-16LE"),
    "utf16be.cdxj": (CDXJ.encode("utf-16-be"), "text in UTF-16BE; convert it with iconv -f UTF-16BE"),
    "utf32.cdxj": (CDXJ.encode("utf-32"), "text in UTF-32; convert it with iconv -f UTF-32"),
    "utf32be.cdxj": (CDXJ.encode("utf-32-be"), "text in UTF-32BE; convert it with iconv -f UTF-32BE"),
    "summary.json": (b'{"captures": 5, "mimestatus": {}, "samples": [["2014", "http://x.com/"]]}', "by cdx-summary"),
    "pretty.json": (b'{\n  "captures": 9,\n  "tophosts": {\n    "x.com": 5\n  }\n}\n', "by cdx-summary"),
    "lone.loc": (b"part-0\t/data/part-0.gz\npart-1\thttps://h.example/part-1.gz\n", "the places of ZipNum shards"),
    "page.html": (b'<!DOCTYPE html><html><link rel="x" href="http://x.com/"></html>', "an HTML page"),
    "files.txt": (b"part-0.cdx.gz\npart-1.cdx.gz\n", "text that is not an index"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("in/x.cdxj").write_text(CDXJ)
    for name, (content, _) in STRANGERS.items():
        Path("in", name).write_bytes(content)
    with zipfile.ZipFile("in/sheet.xlsx", "w") as sheet:
        sheet.writestr("xl/workbook.xml", "<x/>")
    return tmp_path


def test_files_beside_indexes_are_ignored_by_name_and_change_no_exit_code(folder: Path, capsys: Capture) -> None:
    assert run(["profile", "in", "-o", "map.ukvs"]) == 0
    said = capsys.readouterr().err
    assert "damaged" not in said
    for name, (_, words) in STRANGERS.items():
        (line,) = [line for line in said.splitlines() if f"in/{name}:" in line]
        assert line.startswith("  ignored") and words in line
    assert run(["verify", "map.ukvs", "in"]) == 0
    assert run(["profile", "in", "-o", "map.ukvs", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["ignored"]) == len(STRANGERS) + 1


@pytest.mark.parametrize("name", STRANGERS)
def test_a_file_of_no_use_alone_is_an_error_of_one_line_that_says_what_it_is(
    folder: Path, capsys: Capture, name: str
) -> None:
    assert run(["profile", f"in/{name}", "-o", "map.ukvs"]) == 1
    first, hint = capsys.readouterr().err.splitlines()
    assert STRANGERS[name][1] in first and f"recollect inspect in/{name}" in hint
    assert not Path("map.ukvs").exists()
    assert run(["inspect", f"in/{name}"]) == 1
    assert STRANGERS[name][1] in capsys.readouterr().out


def test_inspect_shows_kind_columns_order_and_records(folder: Path, capsys: Capture) -> None:
    assert run(["inspect", "in/x.cdxj", "--records", "1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "in/x.cdxj: CDXJ, 5.4 kB",
        "  columns  url mime status",
        "  fields   timestamp, url, status, media_type",
        "  order    sorted (all 60 lines)",
        "  record   surt com,x)/00, timestamp 20140103030321, url http://x.com/00, status 200, media_type text/html",
    ]


def test_inspect_reads_every_kind_and_a_folder(folder: Path, capsys: Capture) -> None:
    Path("t.csv").write_text("time,url\n1356998400,http://x.com/\n")
    Path("u.txt").write_text("http://x.com/b\nhttp://x.com/a\n")
    assert run(["profile", "in/x.cdxj", "-o", "map.ukvs.gz", "-q"]) == 0
    assert run(["inspect", "in", "t.csv", "u.txt", "map.ukvs.gz", "--json"]) == 0
    found = {Path(one["file"]).name: one for one in json.loads(capsys.readouterr().out)}
    assert found["t.csv"]["columns"] == ["time", "url"] and found["t.csv"]["kind"] == "table of URLs"
    assert found["t.csv"]["records"][0]["timestamp"] == "20130101000000"
    assert found["u.txt"]["sorted"] is False and found["u.txt"]["whole"] is True
    assert found["map.ukvs.gz"]["container"] == "gzip" and found["map.ukvs.gz"]["records"][0]["frequency"] == "1/1"
    assert found["noise"]["kind"] == "unknown"


def test_format_and_columns_show_how_a_file_would_be_read(folder: Path, capsys: Capture) -> None:
    Path("t").write_text("http://x.com/ 7\nhttp://x.com/a 8\n")
    assert run(["inspect", "t", "--columns", "url,-", "--json"]) == 0
    assert "count" not in json.loads(capsys.readouterr().out)[0]["records"][0]
    assert run(["inspect", "t", "--input-format", "warc"]) == 0


@pytest.mark.parametrize("first", ["z" * 1_500_000, "com,x)/" + "a" * 1_500_000 + ' 2014 {"url": "http://x.com/"}'])
def test_a_first_line_of_megabytes_does_not_make_an_index_a_list(folder: Path, capsys: Capture, first: str) -> None:
    Path("long.cdxj").write_text(f"{first}\n{CDXJ}")
    assert run(["profile", "long.cdxj", "-o", "map.ukvs", "--json"]) == 3
    made = json.loads(capsys.readouterr().out)
    assert made["sources"][0]["kind"] == "CDXJ" and made["captures"] == 60
    with Path("long.cdxj").open("rb") as pipe:
        import subprocess
        import sys

        command = [sys.executable, "-m", "recollect", "profile", "-", "-o", "piped.ukvs", "--json"]
        made = json.loads(subprocess.run(command, stdin=pipe, capture_output=True, check=False).stdout)
    assert made["sources"][0]["kind"] == "CDXJ" and made["captures"] == 60


@pytest.mark.parametrize(
    ("text", "options"),
    [("", []), ("\n\n", []), (CDXJ, ["--status", "404"]), (CDXJ, ["--since", "2020"]), ("# only a comment\n", [])],
)
def test_an_empty_map_is_an_error_and_nothing_is_written(
    folder: Path, capsys: Capture, text: str, options: list[str]
) -> None:
    Path("e.cdxj").write_text(text)
    Path("map.ukvs").write_text("an older map\n")
    assert run(["profile", "e.cdxj", "-o", "map.ukvs", *options]) == 1
    assert Path("map.ukvs").read_text() == "an older map\n"
    capsys.readouterr()
    if text != "# only a comment\n":
        assert run(["profile", "e.cdxj", "-o", "map.ukvs", "--allow-empty", *options]) == 0
        assert run(["verify", "map.ukvs", "e.cdxj"]) == 0
        assert run(["publish", "map.ukvs", "--to", "public"]) == 0
        assert "warning: the map is empty" in capsys.readouterr().err


def test_statuses_that_an_index_does_not_have_are_named_in_the_error(folder: Path, capsys: Capture) -> None:
    Path("n.cdxj").write_text('com,x)/ 2014 {"url": "http://x.com/"}\n' * 3)
    assert run(["profile", "n.cdxj", "-o", "map.ukvs", "--status", "200"]) == 1
    assert "3 filtered (status ×3)" in capsys.readouterr().err and not Path("map.ukvs").exists()


def test_keys_that_are_not_those_of_their_urls_are_named_and_verify_judges_by_keys(
    folder: Path, capsys: Capture
) -> None:
    Path("k.cdxj").write_text("".join(f'com,y)/{i} 2014 {{"url": "http://x.com/{i}"}}\n' for i in range(9)))
    assert run(["profile", "k.cdxj", "-o", "map.ukvs"]) == 0
    assert "warning: k.cdxj: 9 of 9 keys" in capsys.readouterr().err
    assert run(["verify", "map.ukvs", "k.cdxj"]) == 0
    assert "the keys of 9 URLs differ" in capsys.readouterr().err
    # A map without them is still found out.
    Path("map.ukvs").write_text("".join(Path("map.ukvs").read_text().splitlines(keepends=True)[:-3]))
    assert run(["verify", "map.ukvs", "k.cdxj"]) == 1


@pytest.mark.parametrize("form", ["cdxj", "cdx"])
def test_a_map_just_made_is_verified_although_few_keys_outside_the_sample_differ_from_their_urls(
    folder: Path, capsys: Capture, form: str
) -> None:
    count = 30_000
    urls = [f"http://x.com/{i:05d}" for i in range(count)]
    for number in range(20_001, count, 3333):
        urls[number] = f"http://www.other.org/elsewhere/{number}"
    if form == "cdxj":
        lines = [f'com,x)/{i:05d} 2014 {{"url": "{url}"}}\n' for i, url in enumerate(urls)]
    else:
        lines = [" CDX N b a m s k r M S V g\n"]
        lines += [f"com,x)/{i:05d} 20140101000000 {url} text/html 200 - - - 1 2 f\n" for i, url in enumerate(urls)]
    Path(f"k.{form}").write_text("".join(lines))
    assert run(["profile", f"k.{form}", "-o", "map.ukvs"]) == 0
    capsys.readouterr()
    assert run(["verify", "map.ukvs", f"k.{form}"]) == 0
    assert "the keys of 3 URLs differ" in capsys.readouterr().err


def test_inputs_are_verified_in_the_form_they_were_profiled_in(folder: Path, capsys: Capture) -> None:
    Path("t").write_text("".join(f"http://x.com/{i} {1356998400 + i}\n" for i in range(9)))
    assert run(["profile", "t", "--columns", "url,count", "-o", "map.ukvs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["captures"] > 10**9
    assert run(["verify", "map.ukvs", "t"]) == 0
