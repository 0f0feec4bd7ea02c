"""Vault pages: pages made to carry blocks, when a site has too few of its own.

Hides: their names and their text. A vault page says what it is; pages are linked in a row, from an index, and the index
from the site's root page by a link that readers do not see (dissertation, VIII.3.1: "robot vaults").
"""

from __future__ import annotations

from pathlib import Path

FOLDER = "recollect-vault"
INDEX = f"{FOLDER}/index.html"
_MARK = "<!-- recollect vault page -->"
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
{mark}
</head>
<body>
<h1>{title}</h1>
<p>This page carries a part of this website's own files, coded so that any sufficient number of such pages
restores them. See <code>recollect protect reclaim</code>.</p>
{links}
</body>
</html>
"""


def names(count: int) -> list[str]:
    """The names of a vault of `count` pages, the index first."""
    return [INDEX, *(f"{FOLDER}/page-{number:04d}.html" for number in range(1, count))][:count]


def page(number: int, count: int) -> bytes:
    """The vault page with this number (0 is the index), without blocks."""
    if number == 0:
        items = "\n".join(f'<li><a href="page-{n:04d}.html">Page {n}</a></li>' for n in range(1, count))
        links = f"<ul>\n{items}\n</ul>" if items else ""
        return _PAGE.format(title="Preservation copy", mark=_MARK, links=links).encode()
    following = f'<a href="page-{number + 1:04d}.html">Next</a>' if number + 1 < count else ""
    links = f'<p><a href="index.html">Index</a> {following}</p>'
    return _PAGE.format(title=f"Preservation copy, page {number}", mark=_MARK, links=links).encode()


def is_vault_folder(folder: Path) -> bool:
    """Is this the folder of vault pages of some site?"""
    index = folder / INDEX.rpartition("/")[2]
    if folder.name != FOLDER or not index.is_file():
        return False
    with index.open("rb") as handle:
        return _MARK.encode() in handle.read(1000)


def is_vault(name: str, content: bytes) -> bool:
    """Is a file of the site a vault page that we made?"""
    return name.startswith(f"{FOLDER}/") and _MARK.encode() in content[:1000]
