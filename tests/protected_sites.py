"""Small protected sites for tests: folders of pages, files to protect, keys."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from recollect.protection import site as sites
from recollect.protection.code import Code, available
from recollect.protection.keys import SigningKey
from recollect.protection.pack import gather
from recollect.protection.sealing import Options

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
KEY = SigningKey(bytes(range(32)))
OTHER_KEY = SigningKey(bytes(range(1, 33)))
CODES = [code for code in Code if available(code)]


def write_site(folder: Path, pages: int = 12) -> Path:
    """A site whose front page links to its other pages."""
    (folder / "articles").mkdir(parents=True)
    links = "".join(f'<a href="articles/{n}.html">{n}</a>\n' for n in range(1, pages))
    (folder / "index.html").write_text(f"<!DOCTYPE html>\n<html><body>\n{links}</body></html>\n")
    for n in range(1, pages):
        (folder / "articles" / f"{n}.html").write_text(f"<html>\n<body><h1>Article {n}</h1></body>\n</html>\n")
    (folder / "style.css").write_text("body { color: #222 }\n")
    return folder


def write_app(folder: Path, size: int = 20_000, seed: int = 1) -> Path:
    """Files that a server would have."""
    (folder / "templates").mkdir(parents=True)
    (folder / "main.py").write_text("print('hello')\n")
    (folder / "run.sh").write_text("#!/bin/sh\nexec python main.py\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "templates" / "page é.html.j2").write_text("{{ body }}\n")
    (folder / "data.bin").write_bytes(random.Random(seed).randbytes(size))
    return folder


def protect(site: Path, sources: Iterable[str], **changes: object) -> sites.Applied:
    options = Options(**{"key": KEY, "now": NOW, "code": CODES[0], "need": 0.4, **changes})  # type: ignore[arg-type]
    return sites.apply(site, gather(sources), options)


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder by name."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".recollect" not in path.parts
    }
