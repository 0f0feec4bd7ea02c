"""Summaries of other tools: written by `stats --summary`, read by `profile`, named by `inspect`."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

from recollect.cli.main import cli
from recollect.maps.lookup import open_map

INDEX = """\
 CDX N b a m s k r M S V g
com,example)/ 20140101000000 http://example.com/ text/html 200 AAA - - 1000 0 a.warc.gz
com,example)/ 20150201000000 https://example.com/ text/html 200 AAB - - 1100 1 a.warc.gz
com,example)/a/b.png?x=1&y=2 20150301000000 http://example.com/a/b.png?x=1&y=2 image/png 200 AAC - - 500 2 a.warc.gz
com,example)/gone 20150301000000 http://example.com/gone text/html 404 AAD - - 300 3 a.warc.gz
com,example,www2)/c 20160301000000 http://www2.example.com/c warc/revisit - AAE - - 200 4 a.warc.gz
org,other)/x.css 20160401000000 http://other.org/x.css text/css 200 AAF - - 700 5 a.warc.gz
org,other)/y 20160401000000 http://other.org/y application/atom+xml 301 AAG - - 700 6 a.warc.gz
"""
KINDS = ("cdx-summary", "cdx-summarize", "archive-profiler")


@pytest.fixture
def index(tmp_path: Path) -> Path:
    path = tmp_path / "a.cdx"
    path.write_text(INDEX)
    return path


def run(*arguments: object, code: int = 0) -> str:
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done.stdout


def summary(index: Path, kind: str, *more: str) -> Path:
    path = index.with_name(f"{kind}.out")
    path.write_text(run("stats", index, "--summary", kind, *more))
    return path


def test_cdx_summary_counts_as_that_tool_does(index: Path) -> None:
    found = json.loads(summary(index, "cdx-summary").read_text())
    assert [found[name] for name in ("captures", "urls", "hosts", "bytes")] == [7, 6, 3, 4500]
    assert (found["first"], found["last"]) == ("20140101000000", "20160401000000")
    assert found["tophosts"] == {"example.com": 4, "other.org": 2, "www2.example.com": 1}
    assert found["mimestatus"]["HTML"] == {"2XX": 2, "3XX": 0, "4XX": 1, "5XX": 0, "Other": 0}
    assert found["mimestatus"]["Revisit"]["Other"] == found["mimestatus"]["XML"]["3XX"] == 1
    assert found["pathquery"]["P2"]["Q2"] == 1 and found["pathquery"]["P0"]["Q0"] == 2
    assert found["yearmonth"]["2015"]["03"] == 2
    assert len(found["samples"]) == 2


def test_cdx_summarize_counts_second_level_domains_by_year(index: Path) -> None:
    lines = dict(line.split(" ", 1) for line in summary(index, "cdx-summarize").read_text().splitlines())
    example = json.loads(lines["example.com"])
    assert sorted(lines) == ["example.com", "other.org"] and sorted(example) == ["2014", "2015"]
    assert (example["2015"]["n_html"], example["2015"]["n_image"], example["2015"]["n_total"]) == (1, 1, 2)
    assert (example["2015"]["n_https"], example["2015"]["s_https"], example["2015"]["s_total"]) == (1, 1100, 1600)


def test_archive_profiler_counts_prefixes_of_hosts(index: Path) -> None:
    stats = json.loads(summary(index, "archive-profiler").read_text())["stats"]
    assert stats["suburi"]["com,example)/"] == {"urir": 4, "urim": {"total": 5, "min": 1, "max": 2}}
    assert stats["suburi"]["com)/"]["urim"]["total"] == 5 and stats["time"]["201604"]["urir"] == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_map_of_a_summary_holds_what_the_index_holds(index: Path, kind: str) -> None:
    path = summary(index, kind)
    target = index.with_name("map.ukvs")
    run("profile", path, "-o", target, "-q")
    run("validate", target)
    with open_map(target) as found:
        for line in INDEX.splitlines()[1:]:
            words = line.split()
            if kind != "cdx-summarize" or words[4] == "200":
                assert found.lookup(words[2]).answer == "yes", line
        assert found.lookup("http://absent.net/").answer == "no"
    assert f"a summary by {kind.replace('archive-', 'archive_')}" in run("inspect", path)


def test_years_of_cdx_summarize_are_in_the_map(index: Path) -> None:
    target = index.with_name("map.ukvs")
    run("profile", summary(index, "cdx-summarize"), "-o", target, "-q")
    assert 'com,example,* 3~ {"datetime": {"2014": "1~", "2015": "2~"}}' in target.read_text()
    assert '"status": ["2xx"]' in target.read_text()


def test_a_summary_that_lists_a_part_of_the_hosts_is_refused(index: Path) -> None:
    target = index.with_name("map.ukvs")
    done = CliRunner().invoke(cli, ["profile", str(summary(index, "cdx-summary", "--top", "1")), "-o", str(target)])
    assert done.exit_code == 1 and not target.exists()


@pytest.mark.parametrize("line", ['example.com {"2014": {"n_total": "x"}}', 'example.com {"2014": {"n_total": 1}', "x"])
def test_a_bad_line_of_a_summary_is_named(index: Path, line: str) -> None:
    path = summary(index, "cdx-summarize")
    path.write_text(path.read_text() + line + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "recollect", "profile", str(path), "-o", str(index.with_name("map.ukvs"))],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and f"{path}:3" in done.stderr
    assert not index.with_name("map.ukvs").exists()


def test_a_map_has_no_captures_to_summarize(index: Path) -> None:
    target = index.with_name("map.ukvs")
    run("profile", index, "-o", target, "-q")
    done = subprocess.run(
        [sys.executable, "-m", "recollect", "stats", str(target), "--summary", "cdx-summary"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "give the indexes" in done.stderr


# What `mementomap generate` (0.1.0b2) writes for the index.
THEIRS = """\
com,example) 2
com,example)/a/b.png 1
com,example)/gone 1
com,example,www2)/c 1
org,other)/x.css 1
org,other)/y 1
"""


def test_maps_of_mementomap_are_read_and_ours_have_its_lines(index: Path) -> None:
    theirs, ours = index.with_name("theirs.ukvs"), index.with_name("ours.ukvs")
    theirs.write_text(THEIRS)
    assert "theirs.ukvs: map" in run("inspect", theirs)
    uris = ("http://example.com/", "http://example.com/gone", "http://www2.example.com/c", "http://example.com/no")
    with open_map(theirs) as found:
        assert [found.lookup(uri).answer for uri in uris] == ["yes", "yes", "yes", "no"]
    run("profile", index, "-o", ours, "-q")
    keys = [line.split()[0] for line in ours.read_text().splitlines() if not line.startswith("!")]
    assert [key.removesuffix("/") for key in keys] == [line.split()[0] for line in THEIRS.splitlines()]
    if find_spec("mementomap"):
        program = [Path(sys.executable).with_name("mementomap"), "lookup", ours, "com,example)/gone"]
        done = subprocess.run(program, capture_output=True, text=True, check=True)
        assert "com,example)/gone 1/1" in done.stdout
