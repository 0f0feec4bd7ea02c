"""Every reader gives the answers of conformance/v1; the vectors and the shipped reader are those of their scripts."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from scripts import reader, vectors

import needs
from recollect.errors import BadURI
from recollect.maps.lookup import open_map

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "conformance" / "v1"


def rows() -> dict[str, list[list[str]]]:
    """The lookups of each map: URI, answer, key, frequency."""
    found: dict[str, list[list[str]]] = defaultdict(list)
    for line in (VECTORS / "lookups.tsv").read_text(encoding="utf-8").splitlines():
        name, *rest = line.split("\t")
        found[name].append(rest)
    return found


@pytest.mark.parametrize("name", sorted({*rows(), "plain.ukvs.gz", "plain.ukvs.zst"}))
def test_the_python_reader_gives_the_answers(name: str) -> None:
    holdings = open_map(VECTORS / name)
    for uri, answer, key, frequency in rows()[name.removesuffix(".gz").removesuffix(".zst")]:
        try:
            found = holdings.lookup(uri)
        except BadURI:
            assert (answer, key, frequency) == ("unknown", "-", "-"), uri
            continue
        given = (found.answer, "-" if found.key is None else found.key.decode("utf-8", "surrogateescape"))
        assert (*given, "-" if found.frequency is None else str(found.frequency)) == (answer, key, frequency), uri


def test_the_javascript_reader_gives_the_answers(tmp_path: Path) -> None:
    node = needs.program("Node.js")
    module = tmp_path / "mementomap.mjs"
    module.write_bytes(reader.MADE.read_bytes())
    command = [node, str(Path(__file__).with_name("vectors.mjs")), str(module), str(VECTORS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("4") and done.stdout.endswith("lookups, 0 wrong\n")


def test_the_shipped_reader_is_that_of_the_source_and_small() -> None:
    assert reader.MADE.read_text(encoding="utf-8") == reader.made(), "make reader"
    assert reader.MADE.stat().st_size <= 30_000


def test_the_vectors_are_those_of_the_script(tmp_path: Path) -> None:
    made, work = tmp_path / "made", tmp_path / "work"
    made.mkdir()
    work.mkdir()
    code = "import sys; from pathlib import Path; from scripts import vectors; vectors.write(*map(Path, sys.argv[1:]))"
    subprocess.run([sys.executable, "-c", code, str(made), str(work)], cwd=ROOT, check=True, timeout=300)
    for path in sorted(VECTORS.iterdir()):
        if path.suffix not in (".gz", ".zst"):  # their bytes depend on the compressor
            assert (made / path.name).read_bytes() == path.read_bytes(), f"make vectors: {path.name}"
    assert vectors.FOLDER == VECTORS
