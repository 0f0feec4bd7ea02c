"""A recovered site's WACZ and WARC open in a real pywb."""

import urllib.request
from pathlib import Path

from pywb_archive import pywb_archive
from recollect.recovery.warcs import write_wacz, write_warc
from stores import fill

SITE = [
    ("http://x.com/", "text/html", b"<title>Home</title><h1>Back again</h1>"),
    ("http://x.com/q?a=1", "text/html", b"query one"),
    ("http://x.com/i.png", "image/png", b"\x89PNG\x00\xff"),
]


def read(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return bytes(answer.read())


def test_pywb_replays_the_warc_and_the_wacz(tmp_path: Path):
    with fill(tmp_path / "out", SITE) as store:
        write_warc(store, tmp_path / "out/site.warc.gz")
        write_wacz(store, tmp_path / "out/site.wacz")
    for number, warc in enumerate([tmp_path / "out/site.warc.gz", tmp_path / "out/site.wacz"]):
        with pywb_archive(tmp_path / f"archive{number}", warcs=[warc]) as archive:
            for uri, _, body in SITE:
                assert read(archive.raw.format(timestamp="2015", uri=uri)) == body
