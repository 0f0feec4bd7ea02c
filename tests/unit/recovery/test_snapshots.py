"""One site in every form it may be kept in gives one snapshot."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from recollect.errors import UsageError
from recollect.recovery.cli.measure import measure as command
from recollect.recovery.restore import restore
from recollect.recovery.snapshots import open_snapshot
from recollect.recovery.warcs import write_wacz, write_warc
from stores import fill

SITE = [
    ("http://www.lost.example/", "text/html", b"<a href='/a/page.html'>x</a>"),
    ("http://www.lost.example/a/page.html", "text/html", b"<p>page"),
    ("http://www.lost.example/list.php?p=2", "text/html", b"list"),
    ("http://www.lost.example/i.png", "image/png", b"\x89PNG"),
    ("http://cdn.example/lib.js", "text/javascript", b"1"),
]
IDENTITIES = {"/", "/a/page.html", "/list.php?p=2", "/i.png", "//cdn.example/lib.js"}


@pytest.fixture
def recovered(tmp_path: Path) -> Path:
    out = tmp_path / "site"
    with fill(out, SITE, start="http://www.lost.example/") as store:
        restore(store, out)
        write_warc(store, tmp_path / "site.warc.gz")
        write_wacz(store, tmp_path / "site.wacz")
    return out


def lost_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "lost"
    for name, body in {
        "index.html": SITE[0][2],
        "a/page.html": SITE[1][2],
        "list.php?p=2": SITE[2][2],
        "i.png": SITE[3][2],
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(body)
    return folder


def test_a_recovery_a_warc_and_a_wacz_are_one_site(recovered: Path):
    for source in (recovered, recovered.parent / "site.warc.gz", recovered.parent / "site.wacz"):
        snapshot = open_snapshot(str(source))
        assert {r.uri for r in snapshot.resources} == IDENTITIES
        assert {r.uri: r.read() for r in snapshot.resources}["/"] == SITE[0][2], "as archived, not as rewritten"


def test_a_plain_folder_is_compared_by_path(tmp_path: Path, recovered: Path):
    result = CliRunner().invoke(command, [str(lost_folder(tmp_path)), str(recovered), "--json"])
    said = json.loads(result.stdout)
    assert (said["lost"], said["identical"], said["missing"]) == (4, 4, [])
    assert said["added"] == ["//cdn.example/lib.js"]
    assert said["success"]["s4"] == 0


def test_a_folder_of_hosts_is_read_as_hosts(tmp_path: Path):
    for name in ("lost.example/index.html", "lost.example/b.html", "cdn.example/x.js"):
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text(name)
    snapshot = open_snapshot(str(tmp_path / "tree"))
    assert {r.uri for r in snapshot.resources} == {"/", "/b.html", "//cdn.example/x.js"}


def test_the_table_and_the_diagram(tmp_path: Path, recovered: Path):
    svg = tmp_path / "d.svg"
    lost = lost_folder(tmp_path)
    (lost / "gone.html").write_text("never archived")
    result = CliRunner().invoke(command, [str(lost), str(recovered), "--diagram", str(svg), "--list"])
    assert result.exit_code == 0
    assert "missing\t/gone.html" in result.stdout
    assert svg.read_text().startswith("<svg")


def test_what_is_not_a_site_is_reported(tmp_path: Path):
    with pytest.raises(UsageError, match="no such site"):
        open_snapshot(str(tmp_path / "nothing"))
    with pytest.raises(UsageError, match="loopback"):
        open_snapshot("http://example.com/")
