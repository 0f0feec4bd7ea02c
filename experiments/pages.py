"""A folder of labelled real pages from WARC and ARC files, for `recollect watch evaluate --pages`.

    make experiment-pages ARGS='crawl.warc.gz other.arc.gz -o pages/'
    make experiment-pages ARGS='crawl.warc.gz --same club.example=club.example.org'

Every host with at least 12 HTML pages is a site: eight of its pages, evenly spread over its addresses, are its past,
the others are its own pages, to be judged. Up to three pages of every other host are shown as takeovers of it: its
front page, if it was captured, and others. Files and labels are written to the folder, and then judged.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from recollect.recovery.decoding import decoded, effective_encoding
from recollect.watch.realpages import COLUMNS, TABLE

LEAST, PAST, FROM_EACH = 12, 8, 3


def html_pages(path: str) -> Iterator[tuple[str, bytes]]:
    """Addresses and contents of the HTML pages of a file."""
    from warcio.archiveiterator import ArchiveIterator

    with Path(path).open("rb") as file:
        for record in ArchiveIterator(file, arc2warc=True):
            headers = record.http_headers
            if record.rec_type != "response" or headers is None or headers.get_statuscode() != "200":
                continue
            if "html" in (headers.get_header("content-type") or ""):
                raw = record.content_stream().read()
                encoding = effective_encoding(headers.get_header("content-encoding") or "", raw[:1024])
                yield record.rec_headers.get_header("WARC-Target-URI"), decoded(raw, encoding)


def rows_of(pages: dict[str, bytes], same: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """Site, label and address of every page that is shown; a host of `same` is another name of its site."""
    hosts: dict[str, list[str]] = {}
    for uri in sorted(pages):
        host = (urlsplit(uri).hostname or "").removeprefix("www.")
        hosts.setdefault(same.get(host, host), []).append(uri)
    for host, own in hosts.items():
        if len(own) < LEAST:
            continue
        past = {own[number * len(own) // PAST] for number in range(PAST)}
        yield from ((host, "past" if uri in past else "own", uri) for uri in own)
        for other, theirs in hosts.items():
            if other != host:
                front_first = sorted(theirs, key=lambda uri: (len(urlsplit(uri).path), uri))
                step = max(1, len(theirs) // FROM_EACH)
                yield from ((host, "takeover", uri) for uri in front_first[::step][:FROM_EACH])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="WARC and ARC files")
    parser.add_argument("-o", "--output", default="pages", help="folder to write")
    parser.add_argument("--same", action="append", default=[], metavar="SITE=HOST", help="HOST is SITE by another name")
    given = parser.parse_args(arguments)
    same = {host: site for site, _, host in (pair.partition("=") for pair in given.same)}
    folder = Path(given.output)
    folder.mkdir(parents=True, exist_ok=True)
    pages = {uri: content for path in given.files for uri, content in html_pages(path)}
    names = {uri: hashlib.sha256(uri.encode()).hexdigest()[:16] + ".html" for uri in pages}
    for uri, content in pages.items():
        (folder / names[uri]).write_bytes(content)
    with (folder / TABLE).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows((site, label, uri, names[uri]) for site, label, uri in rows_of(pages, same))
    from recollect.cli.main import run

    return run(["watch", "evaluate", "--pages", str(folder)])


if __name__ == "__main__":
    sys.exit(main())
