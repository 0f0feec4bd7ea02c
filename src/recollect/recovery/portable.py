"""A recovery that travels: the folder that a person downloads holds the journal, and its WARC holds the payloads.

Hides: how a store becomes complete again. A download leaves out the payloads, which are in `recovered.warc.gz` and
`recovered.wacz` already, and takes a copy of the journal instead (`Store.write_portable`). The first command that
opens the unzipped folder puts the payloads back (`restore_payloads`), and everything works as in the folder of the
recovery: review, preview, resume.

Invariants: the copy holds no path and no list of archives of the machine it was made on; a payload is stored under the
digest of its own bytes, whatever the journal says.
"""

from __future__ import annotations

import contextlib
import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

FOLDER = ".recollect"
JOURNAL = "journal.db"
PORTABLE = "portable.db"
WARC, WACZ = "recovered.warc.gz", "recovered.wacz"
_INSIDE = "archive/data.warc.gz"


def lacks_payloads(out_dir: Path) -> bool:
    """Whether this is a folder as it was downloaded."""
    return not (out_dir / FOLDER / "payloads").is_dir() and _package(out_dir) is not None


def restore_payloads(out_dir: Path) -> int:
    """Put the payloads of a downloaded folder back, from its WARC; returns how many."""
    package = _package(out_dir)
    if package is None:
        return 0
    folder = out_dir / FOLDER / "payloads"
    count = 0
    with _opened(package) as warc:
        for payload in _payloads(warc):
            digest = hashlib.sha256(payload).hexdigest()
            path = folder / digest[:2] / digest[2:]
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                path.write_bytes(payload)
                count += 1
    folder.mkdir(parents=True, exist_ok=True)
    return count


def _package(out_dir: Path) -> Path | None:
    return next((path for name in (WARC, WACZ) if (path := out_dir / name).is_file()), None)


@contextlib.contextmanager
def _opened(package: Path) -> Iterator[IO[bytes]]:
    if package.name == WARC:
        with package.open("rb") as file:
            yield file
    else:
        with zipfile.ZipFile(package) as archive, archive.open(_INSIDE) as member:
            yield member


def _payloads(warc: IO[bytes]) -> Iterator[bytes]:
    from warcio.archiveiterator import ArchiveIterator

    for record in ArchiveIterator(warc):
        if record.rec_type == "response":
            yield record.raw_stream.read()
