"""No command destroys what it reads: an output that is one of the inputs is refused, and nothing is written."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from recollect.cli.main import run
from recollect.errors import UsageError
from recollect.formats.outputs import refuse_inputs
from recollect.watch.store import Store as Watch

CDXJ = 'com,x)/ 20140103030321 {"url": "http://x.com/", "mime": "text/html", "status": "200"}\n'
JOURNAL = """{"archive": "a", "version": 1}
{"kind": "uri", "uri": "http://x.com/", "key": "com,x)/", "outcome": "held", "why": ""}
"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index, a map, a list of URLs, and links to the index."""
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("in/x.cdxj").write_text(CDXJ)
    Path("in/urls.txt").write_text("http://x.com/\nhttp://x.com/a\n")
    Path("in/README.txt").write_text("What these files are, in many words.\n")
    assert run(["profile", "in/x.cdxj", "-o", "map.svg", "-q"]) == 0
    Path("soft").symlink_to("in/x.cdxj")
    os.link("in/x.cdxj", "hard")
    Path("folder-link").symlink_to("in")
    Path("zipnum").mkdir()
    block = gzip.compress(CDXJ.encode())
    Path("zipnum/cdx-00000.gz").write_bytes(block)
    Path("zipnum/cluster.idx").write_text(f"com,x)/ 20140103030321\tcdx-00000.gz\t0\t{len(block)}\t1\n")
    Path("zipnum/cluster.loc").write_text("cdx-00000.gz\tcdx-00000.gz\n")
    Path("run").mkdir()
    Path("run/journal.jsonl").write_text(JOURNAL)
    Path("archives.json").write_text(json.dumps([{"id": "a", "timemap": "http://127.0.0.1:9/timemap/link/"}]))
    Path("site").mkdir()
    Path("site/index.html").write_text("<p>a page</p>")
    Path("desk").mkdir()
    Path("desk/desk.sqlite").write_bytes(b"the database of a desk")
    with Watch(Path("watch")):
        pass
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "profile in/x.cdxj -o in/x.cdxj",
        "profile in/x.cdxj -o ./in/../in/x.cdxj",
        "profile in/x.cdxj -o soft",
        "profile soft -o in/x.cdxj",
        "profile in/x.cdxj -o hard",
        "profile in -o in/x.cdxj",
        "profile in -o in/README.txt",
        "profile folder-link -o in/x.cdxj",
        "profile in -o soft",
        "profile in/*.cdxj -o in/x.cdxj",
        "profile map.svg -o map.svg",
        "profile in/x.cdxj -o in/x.cdxj --policy H1P0 --output-format cdxj",
        "report in/x.cdxj -o in/x.cdxj",
        "report in -o hard",
        "report map.svg -o r.html --lookups in/urls.txt -o in/urls.txt",
        "filter in/x.cdxj -o in/x.cdxj",
        "filter map.svg -o map.svg",
        "tradeoff map.svg -o map.svg",
        "voids in/urls.txt --map map.svg -o in/urls.txt",
        "voids in/urls.txt --map map.svg -o map.svg",
        "compact map.svg -o in/urls.txt --lookups in/urls.txt --max-keys 5",
        # A file that is named is an input, also where the same map in a folder is the one of an earlier run.
        "profile in/x.cdxj map.svg -o map.svg",
        # What a ZipNum index names is read with it.
        "profile zipnum/cluster.idx -o zipnum/cdx-00000.gz",
        "profile zipnum/cluster.idx -o zipnum/cluster.loc",
        "profile zipnum -o zipnum/cluster.loc",
        "report zipnum/cluster.idx -o zipnum/cdx-00000.gz",
        "filter zipnum/cluster.idx -o zipnum/cdx-00000.gz",
        # Outputs that are not maps.
        "sample map run -o run/journal.jsonl",
        "measure site site --diagram site/index.html",
        "memento http://x.com/ 2014 --raw -o archives.json --archives archives.json",
        "recover http://x.com/ -o new --log archives.json --archives archives.json",
        "recover http://x.com/ -o new --summary archives.json --archives archives.json",
        "desk backup --data desk -o desk/desk.sqlite",
        "watch feed --data watch -o watch/watch.sqlite3",
        "watch dashboard --data watch -o watch/watch.sqlite3",
        "watch check http://x.com/ --archives archives.json -o archives.json",
        "protect plan site --files code=in/urls.txt --plot in/urls.txt",
        "protect plan site --files in --plot site/index.html",
    ],
)
def test_an_output_that_is_an_input_is_refused(world: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    before = {path: path.read_bytes() for path in world.rglob("*") if path.is_file()}
    assert run(command.split()) == 2
    said = capsys.readouterr().err
    assert "the output is one of the inputs" in said and "write to another file" in said
    assert {path: path.read_bytes() for path in world.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "command",
    [
        "compact map.svg -o map.svg",
        "merge map.svg map.svg -o map.svg",
        "profile in -o in/map.ukvs",
        "profile hard -o new.ukvs",
    ],
)
def test_commands_that_work_in_place_do_and_new_files_may_lie_beside_inputs(world: Path, command: str) -> None:
    assert run([*command.split(), "-q"]) == 0
    # The map of an earlier run in a folder of indexes is not one of them.
    assert run([*command.split(), "-q"]) == 0


def test_the_published_files_are_not_published_onto_themselves(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["publish", "map.svg", "--to", "public"]) == 0
    published = Path("public/mementomap/map.ukvs.gz").read_bytes()
    assert run(["publish", "public/mementomap/map.ukvs.gz", "--to", "public"]) == 2
    assert "one of the files that are published" in capsys.readouterr().err
    assert Path("public/mementomap/map.ukvs.gz").read_bytes() == published


def test_stdout_sent_to_an_input_is_refused(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("in/x.cdxj").open("a") as out:
        monkeypatch.setattr("sys.stdout", out)
        with pytest.raises(UsageError, match="standard output"):
            refuse_inputs("-", ["in"])
    with Path("other").open("w") as out:
        monkeypatch.setattr("sys.stdout", out)
        refuse_inputs("-", ["in"])


def test_what_is_not_a_file_is_not_an_input(world: Path) -> None:
    refuse_inputs("new", ["in"])
    refuse_inputs("/dev/null", ["/dev/null", "-", "hdfs://host/x"])
    refuse_inputs(None, ["in"])
