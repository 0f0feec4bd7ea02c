"""From a store to a tree, a WARC, a WACZ and a re-hosting kit."""

import json
import re
import zipfile
from html import unescape
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from recollect.errors import RecollectError
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


def test_links_lead_to_files_and_what_is_missing_to_a_local_page(tmp_path: Path):
    with fill(tmp_path, SITE, redirects=REDIRECTS) as store:
        done = restore(store, tmp_path)
    home = (tmp_path / "x.com/index.html").read_text()
    assert 'href="about.html">about' in home
    assert 'href="about.html">old' in home, "a redirect is followed to the file it ends at"
    assert 'data-missing="http://x.com/gone" href="../not-recovered.html#http%3A%2F%2Fx.com%2Fgone"' in home
    assert '<li id="http://x.com/gone">' in (tmp_path / "not-recovered.html").read_text()
    assert 'src="i.png"' in home
    assert 'href="list.php@p=2.html"' in (tmp_path / "x.com/about.html").read_text()
    assert 'href="css/s.css"' in (tmp_path / "x.com/list.php@p=2.html").read_text()
    assert (tmp_path / "x.com/css/s.css").read_text() == "a{b:url(../i.png)}"
    assert (tmp_path / "x.com/i.png").read_bytes() == b"\x89PNG\x00\xff"
    assert (done.links_local, done.links_original) == (7, 1)


def test_links_to_missing_pages_stay_as_they_were_on_request(tmp_path: Path):
    with fill(tmp_path, SITE, redirects=REDIRECTS) as store:
        restore(store, tmp_path, missing="keep")
    assert 'href="http://x.com/gone"' in (tmp_path / "x.com/index.html").read_text()
    assert not (tmp_path / "not-recovered.html").exists()


EMBEDS = (
    b'<meta http-equiv="Content-Security-Policy" content="default-src https://x.com">'
    b'<script src="/live.js" integrity="x">fallback()</script><link rel=stylesheet href="//cdn.net/s.css">'
    b'<iframe src="/frame.html"></iframe><iframe src="http://ads.net/ad"></iframe><frame src="http://ads.net/f">'
    b'<img src="/gone.png" srcset="/gone.png 1x, /i.png 2x"><img data-src="http://t.net/late.png">'
    b'<img srcset="/gone.png 1x"><object data="/o.swf"></object><embed src="/e.swf">'
    b'<video poster="/p.jpg" src="/v.mp4">'
    b'<link rel="dns-prefetch" href="//t.net"><link rel=preconnect href="https://t.net"><link rel=icon href="/f.ico">'
    b'<style>@import "/gone.css"; b{c:url(/gone.gif)}</style><p style="background:url(http://t.net/x.png)">'
    b'<a href="http://other.org/" ping="http://t.net/ping">out</a><meta http-equiv=refresh content="9; url=http://new.net/">'
    b'<iframe srcdoc=\'<script src="http://t.net/in.js"></script><img src="/i.png">\'></iframe>'
    b'<svg><image xlink:href="http://t.net/s.png"/><use href="/sprite.svg#a"/></svg><body background="/bg.gif">'
)


@pytest.mark.parametrize("missing", ["neutral", "keep"])
def test_nothing_that_a_browser_loads_by_itself_points_to_the_live_web(tmp_path: Path, missing: str):
    site = [("http://x.com/", "text/html", EMBEDS), ("http://x.com/i.png", "image/png", b"\x89PNG")]
    with fill(tmp_path, site) as store:
        done = restore(store, tmp_path, missing=missing)  # type: ignore[arg-type]
    page = (tmp_path / "x.com/index.html").read_text()
    loaded = re.sub(
        r'data-missing="[^"]*"|data-was-ping="[^"]*"|<a href="http://other.org/"|data:[^)]*#http[^)]*',
        "",
        unescape(page),
    )
    assert "://" not in loaded.replace("data-was-http-equiv", "").replace("default-src https://x.com", "")
    assert 'src="data:text/javascript,"' in page and 'href="data:text/css,"' in page
    assert 'data-missing="http://x.com/live.js"' in page and "data-was-integrity" in page
    assert 'srcset="i.png 2x"' in page, "a candidate that came back stays"
    assert 'data-was-http-equiv="Content-Security-Policy"' in page, "the page's own policy would forbid the copy"
    assert page.startswith("<meta charset") and "default-src &#x27;self&#x27;" in page
    assert {"http://x.com/live.js", "http://cdn.net/s.css", "http://t.net/in.js", "http://x.com/gone.gif"} <= set(
        done.neutral
    )
    assert "http://other.org/" not in done.neutral and "http://x.com/i.png" not in done.neutral


@pytest.mark.parametrize("media_type", ["text/html, text/html", "text/plain", "application/octet-stream", "unk"])
def test_a_page_of_another_type_that_a_browser_opens_as_a_page_calls_nothing(tmp_path: Path, media_type: str):
    """Servers of long ago sent pages as anything; the name of the copy makes a browser run them."""
    page = b'<html><script src="http://t.net/live.js"></script><svg><title/></svg><iframe src="http://t.net/"></iframe>'
    with fill(tmp_path, [("http://x.com/", "text/html", b"<p>"), ("http://x.com/old.html", media_type, page)]) as store:
        restore(store, tmp_path)
    copy = (tmp_path / "x.com/old.html").read_text()
    assert "http://t.net" not in re.sub(r'data-missing="[^"]*"', "", copy) and "Content-Security-Policy" in copy


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


@pytest.mark.parametrize(
    ("body", "title"),
    [(b"<TITLE>a\n b</TITLE>", "a b"), (b"<title>x", ""), (b"no", ""), (b"<title><script>1</script></title>", "1")],
)
def test_titles(body: bytes, title: str):
    assert page_title(body, "utf-8") in (title, "<script>1</script>")
