"""From a store to a tree, a WARC, a WACZ and a re-hosting kit."""

import json
import zipfile
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from recollect.errors import RecollectError
from recollect.recovery.rehost import write_kit
from recollect.recovery.restore import restore
from recollect.recovery.warcs import page_title, write_wacz, write_warc
from stores import fill

HOME = (
    b"<title>Home &amp; more</title>"
    b'<a href="/about">about</a><a href="/old">old</a><a href="/gone">gone</a><img src="/i.png">'
)
SITE = [
    ("http://x.com/", "text/html", HOME),
    ("http://x.com/about", "text/html", b'<a href="/">home</a><a href="list.php?p=2">list</a>'),
    ("http://x.com/list.php?p=2", "text/html", b'<link rel=stylesheet href="/css/s.css">'),
    ("http://x.com/css/s.css", "text/css", b"a{b:url(/i.png)}"),
    ("http://x.com/i.png", "image/png", b"\x89PNG\x00\xff"),
]
REDIRECTS = [("http://x.com/old", "http://x.com/about")]


def test_links_lead_to_files_and_what_is_missing_stays_at_its_original_url(tmp_path: Path):
    with fill(tmp_path, SITE, redirects=REDIRECTS) as store:
        done = restore(store, tmp_path)
    home = (tmp_path / "x.com/index.html").read_text()
    assert 'href="about.html">about' in home
    assert 'href="about.html">old' in home, "a redirect is followed to the file it ends at"
    assert 'href="http://x.com/gone"' in home
    assert 'src="i.png"' in home
    assert 'href="list.php@p=2.html"' in (tmp_path / "x.com/about.html").read_text()
    assert 'href="css/s.css"' in (tmp_path / "x.com/list.php@p=2.html").read_text()
    assert (tmp_path / "x.com/css/s.css").read_text() == "a{b:url(../i.png)}"
    assert (tmp_path / "x.com/i.png").read_bytes() == b"\x89PNG\x00\xff"
    assert (done.links_local, done.links_original) == (7, 1)


def test_a_rerun_takes_away_its_own_old_files_and_nothing_else(tmp_path: Path):
    with fill(tmp_path, SITE) as store:
        restore(store, tmp_path)
        (tmp_path / "x.com/css/mine.txt").write_text("kept")
        store.db.execute("DELETE FROM resource WHERE uri LIKE '%css%' OR uri LIKE '%about%'")
        store.db.commit()
        restore(store, tmp_path)
    assert not (tmp_path / "x.com/about.html").exists()
    assert not (tmp_path / "x.com/css/s.css").exists()
    assert (tmp_path / "x.com/css/mine.txt").read_text() == "kept"


def test_a_symbolic_link_in_the_tree_leads_nowhere(tmp_path: Path):
    outside, out = tmp_path / "outside", tmp_path / "out"
    outside.mkdir()
    out.mkdir()
    (out / "x.com").symlink_to(outside)
    with fill(out, SITE) as store, pytest.raises(RecollectError, match="leads out"):
        restore(store, out)
    assert list(outside.iterdir()) == []


def test_the_warc_says_where_each_piece_came_from_and_is_reproducible(tmp_path: Path):
    with fill(tmp_path, SITE, redirects=REDIRECTS) as store:
        lines = write_warc(store, tmp_path / "a.warc.gz")
        first = (tmp_path / "a.warc.gz").read_bytes()
        write_warc(store, tmp_path / "a.warc.gz")
    assert (tmp_path / "a.warc.gz").read_bytes() == first
    records = {}
    with (tmp_path / "a.warc.gz").open("rb") as handle:
        for record in ArchiveIterator(handle):
            records[record.rec_headers.get_header("WARC-Target-URI")] = (
                record.rec_type, dict(record.rec_headers.headers), record.content_stream().read()
            )  # fmt: skip
    kind, headers, body = records["http://x.com/i.png"]
    assert (kind, body) == ("response", b"\x89PNG\x00\xff")
    assert headers["WARC-Source-URI"] == "http://archive.example/web/20150101000004id_/http://x.com/i.png"
    assert headers["WARC-Date"] == "2015-01-01T00:00:04Z"
    assert headers["Memento-Datetime"] == "Thu, 01 Jan 2015 00:00:04 GMT"
    assert len(lines) == 6 and lines == sorted(lines)


def test_index_offsets_lead_to_their_records(tmp_path: Path):
    with fill(tmp_path, SITE) as store:
        lines = write_warc(store, tmp_path / "a.warc.gz")
    for line in lines:
        fields = json.loads(line.split(" ", 2)[2])
        with (tmp_path / "a.warc.gz").open("rb") as handle:
            handle.seek(int(fields["offset"]))
            record = next(iter(ArchiveIterator(handle)))
            assert record.rec_headers.get_header("WARC-Target-URI") == fields["url"]


def test_the_wacz_has_everything_its_data_package_names(tmp_path: Path):
    import hashlib

    with fill(tmp_path, SITE) as store:
        write_wacz(store, tmp_path / "site.wacz", title="X")
    with zipfile.ZipFile(tmp_path / "site.wacz") as package:
        described = json.loads(package.read("datapackage.json"))
        for part in described["resources"]:
            body = package.read(part["path"])
            assert part["hash"] == "sha256:" + hashlib.sha256(body).hexdigest()
            assert part["bytes"] == len(body)
        assert package.getinfo("archive/data.warc.gz").compress_type == zipfile.ZIP_STORED
        pages = [json.loads(line) for line in package.read("pages/pages.jsonl").splitlines()]
        assert pages[1]["title"] == "Home & more"
        assert '"filename": "data.warc.gz"' in package.read("indexes/index.cdx").decode()
    assert sorted(p.name for p in tmp_path.iterdir()) == [".recollect", "site.wacz"]


def test_the_kit_maps_every_old_address(tmp_path: Path):
    with fill(tmp_path, SITE, redirects=REDIRECTS) as store:
        done = restore(store, tmp_path)
        write_kit(store, done.names, tmp_path / "rehost")
    rows = [line.split("\t") for line in (tmp_path / "rehost/redirects.tsv").read_text().splitlines()]
    assert ["file", "http://x.com/list.php?p=2", "x.com/list.php@p=2.html"] in rows
    assert ["redirect", "http://x.com/old", "http://x.com/about"] in rows
    nginx = (tmp_path / "rehost/nginx.conf").read_text()
    assert '"/list.php?p=2" "/list.php@p=2.html";' in nginx
    assert '"/old" "http://x.com/about";' in nginx
    assert "/i.png" not in nginx, "a file found under its own address needs no rule"


@pytest.mark.parametrize(
    ("body", "title"),
    [(b"<TITLE>a\n b</TITLE>", "a b"), (b"<title>x", ""), (b"no", ""), (b"<title><script>1</script></title>", "1")],
)
def test_titles(body: bytes, title: str):
    assert page_title(body, "utf-8") in (title, "<script>1</script>")
