"""Pages saved by browsers: "complete" (a page and a folder of its files), one HTML file, or SingleFile's pages.

The address is that of the comment `<!-- saved from url=(0026)http://lost.example/ -->` (Chromium, Edge, Internet
Explorer: the number is the length of the address), of SingleFile's comment (`url: ...`, `saved date: ...`), of the
canonical link, or `--base`. Files of the folder beside it (`Page_files`, in other languages another word) get the
address that the page's own link to them has; where they came from is not kept by browsers. Pages are as they stood
after their scripts ran, with links changed: they count as altered, like style sheets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from urllib.parse import quote, urljoin

from recollect.sources.browsers import WEB
from recollect.sources.collections import files_below
from recollect.sources.files import FileEntry, FilesSource, head_of, is_html
from recollect.sources.model import Kind, Tally

_SAVED_FROM = re.compile(rb"<!--\s{0,8}saved from url=\(\d{1,8}\)([^\s<>]{1,4000}?)\s{0,8}-->", re.I)
_SINGLE_FILE = re.compile(
    rb"<!--\s{0,8}Page saved with SingleFile\s{1,8}url:\s{0,8}(\S{1,4000})\s{1,8}(?:saved date:([^\n<>]{1,200}))?"
)
_LINK = re.compile(rb"<(?:link|meta)\b([^<>]{1,4000})>", re.I)
_CANONICAL = re.compile(rb"\brel\s{0,4}=\s{0,4}[\"']?canonical\b|\bproperty\s{0,4}=\s{0,4}[\"']?og:url\b", re.I)
_ADDRESS = re.compile(rb"\b(?:href|content)\s{0,4}=\s{0,4}[\"']?(https?://[^\s\"'<>]{1,2000})", re.I)
# Chromium names the folder in its language, Firefox always `_files`.
_FOLDER_WORDS = (
    *("_files", "_fichiers", "-Dateien", "_archivos", "_arquivos", "_ficheiros", "_bestanden", "_file", "_pliki"),
    *("_filer", "_soubory", "_elemei", "_dosyalar", "_tiedostot", "_fitxers", "_datoteke", ".files"),
)
_JS_DATE = re.compile(r"\w{3} (\w{3} \d{1,2} \d{4} \d{2}:\d{2}:\d{2}) GMT([+-]\d{4})")


def saved_address(head: bytes) -> tuple[str, datetime | None, bool] | None:
    """The address that a saved page states, when it was saved, and whether a browser's comment says so."""
    single = _SINGLE_FILE.search(head)
    if single is not None and WEB.match(single[1].decode("utf-8", "replace")):
        return single[1].decode("utf-8", "replace"), _date((single[2] or b"").decode("latin-1")), True
    comment = _SAVED_FROM.search(head)
    if comment is not None:
        url = comment[1].decode("utf-8", "replace").replace("&#45;", "-").replace("%2D%2D", "--")
        return (url, None, True) if WEB.match(url) else None
    for match in _LINK.finditer(head):
        if _CANONICAL.search(match[1]) and (found := _ADDRESS.search(match[1])):
            return unescape(found[1].decode("utf-8", "replace")), None, False
    return None


def _date(text: str) -> datetime | None:
    match = _JS_DATE.search(text)
    if match is None:
        return None
    try:
        return datetime.strptime(f"{match[1]} {match[2]}", "%b %d %Y %H:%M:%S %z").astimezone(UTC)
    except ValueError:
        return None


def files_folder(page: Path) -> Path | None:
    """The folder with the files of a page that was saved complete."""
    stem = page.name.rpartition(".")[0]
    for word in _FOLDER_WORDS:
        folder = page.with_name(stem + word)
        if folder.is_dir() and not folder.is_symlink():
            return folder
    return None


def saved_pages(root: Path, pages: list[Path], base: str, name: str) -> FilesSource:
    """Pages below a folder with the files that belong to them."""

    def layout(tally: Tally) -> Iterator[FileEntry]:
        taken: set[Path] = set()
        for page in pages:
            stated = saved_address(head_of(page))
            if stated is None and not base:
                tally.note_other("page without an address")
                continue
            lone = len(pages) == 1 or page.name.lower() in ("index.html", "index.htm")
            guess = base if lone else urljoin(base, quote(page.relative_to(root).as_posix()))
            url, moment = (stated[0], stated[1]) if stated is not None else (guess, None)
            url = url.partition("#")[0]
            yield FileEntry(page, url, moment, altered=True)
            folder = files_folder(page)
            for path in files_below(folder) if folder is not None else ():
                if path not in taken:
                    taken.add(path)
                    yield FileEntry(path, urljoin(url, quote(path.relative_to(page.parent).as_posix())), moment, True)

    return FilesSource(Kind.SAVED, root, layout, name=name)


def find_pages(files: list[Path], base: str) -> list[Path]:
    """The saved pages among files: those that state their address, or with `base` all that are pages."""
    pages = [path for path in files if is_html(head_of(path, 1024))]
    inner = {folder for path in pages if (folder := files_folder(path)) is not None}
    return [
        path for path in pages if inner.isdisjoint(path.parents) and (base or saved_address(head_of(path)) is not None)
    ]
