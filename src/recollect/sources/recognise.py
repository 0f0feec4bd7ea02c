"""Which source a path is, by its content, and opening it.

Hides: the order of the questions. A name alone decides nothing; only folders of caches and mirrors are known by the
names of the files that their program writes.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from recollect.errors import FormatError, RecollectError, UsageError
from recollect.formats.warc import arc_header
from recollect.model import Problem
from recollect.sources.chromium import ChromiumSource, is_block_cache, is_simple_cache
from recollect.sources.collections import FolderSource, IndexSource, files_below
from recollect.sources.files import head_of, is_html
from recollect.sources.firefox import FirefoxSource
from recollect.sources.har import HarSource
from recollect.sources.mhtml import MhtmlSource, is_mhtml
from recollect.sources.mirrors import (
    backup,
    host_folders,
    httrack,
    is_host_folder,
    mirror,
    stamp_folders,
    waybackpack,
)
from recollect.sources.model import Kind, Source
from recollect.sources.saved import files_folder, find_pages, saved_address, saved_pages
from recollect.sources.wacz import WaczSource
from recollect.sources.warcs import WarcSource

_PROBE = 1 << 16
_MOST_WINDOW = 1 << 27
_CDXJ = re.compile(rb"\S+ \d{4,17} \{[^\n]*\"filename\"")
_HAR = re.compile(rb"(?:\xef\xbb\xbf)?\s{0,64}\{\s{0,64}\"log\"\s{0,64}:")
_CONTAINERS = (Kind.WARC, Kind.ARC, Kind.WACZ, Kind.CDXJ, Kind.HAR, Kind.MHTML)
_CDX = re.compile(rb"\S+ \d{4,14} \S+ \S+ \S+ \S+ \S+")


def recognise(path: Path, base: str = "") -> Kind | None:
    """The kind of source that a path is; None for what holds no captures."""
    return _kind_of_folder(path, base) if path.is_dir() else _kind_of_file(path, base)


def _kind_of_file(path: Path, base: str = "") -> Kind | None:
    try:
        with path.open("rb") as file:
            raw = file.read(_PROBE)
    except OSError:
        return None
    if raw.startswith(b"PK\x03\x04"):
        return Kind.WACZ if _is_wacz(path) else None
    head = unpacked_head(raw)
    if head.startswith(b"WARC/"):
        return Kind.WARC
    line = head.partition(b"\n")[0].decode("utf-8", "surrogateescape").rstrip("\r")
    if head.startswith(b"filedesc:") or arc_header(line) is not None:
        return Kind.ARC
    if _is_index(head):
        return Kind.CDXJ
    if _HAR.match(raw):
        return Kind.HAR
    if is_mhtml(raw):
        return Kind.MHTML
    return Kind.SAVED if is_html(raw) and (base or saved_address(raw) is not None) else None


def _kind_of_folder(path: Path, base: str) -> Kind | None:
    if chromium_caches(path):
        return Kind.CHROMIUM
    if firefox_caches(path):
        return Kind.FIREFOX
    if (path / "hts-cache").is_dir():
        return Kind.HTTRACK
    if stamp_folders(path):
        return Kind.WAYBACKPACK
    if _is_downloader(path):
        return Kind.DOWNLOADER
    hosts = host_folders(path)
    if hosts and (not base or any(base.lower().startswith(f"http://{host.name.lower()}") for host in hosts)):
        return Kind.WGET
    files = list(files_below(path))
    if any(_kind_of_file(file) in _CONTAINERS for file in files):
        return Kind.FOLDER
    if find_pages(files, "") or any(files_folder(file) for file in files if base and is_html(head_of(file, 1024))):
        return Kind.SAVED
    if base:
        return Kind.BACKUP if files else None
    return Kind.WGET if is_host_folder(path) and files else None


def _is_downloader(path: Path) -> bool:
    inner = path / "websites"
    return (inner.is_dir() and bool(host_folders(inner))) or (path.name == "websites" and bool(host_folders(path)))


def chromium_caches(path: Path) -> list[Path]:
    """The HTTP caches of a Chromium profile, of a folder of profiles, or of a folder that is one."""
    names = ("", "Cache_Data", "Cache", "Cache/Cache_Data", "*/Cache", "*/Cache/Cache_Data", "*/*/Cache/Cache_Data")
    return [folder for folder in _folders(path, names) if is_block_cache(folder) or is_simple_cache(folder)]


def firefox_caches(path: Path) -> list[Path]:
    """The folders of entries of a Firefox profile, of a folder of profiles, or of its cache."""
    names = ("cache2/entries", "entries", "*/cache2/entries", "*/*/cache2/entries")
    found = _folders(path, names)
    if path.name == "entries" and path.parent.name == "cache2":
        found.append(path)
    return found


def _folders(path: Path, names: tuple[str, ...]) -> list[Path]:
    found = [path] if "" in names else []
    for name in names:
        if name:
            found += sorted(folder for folder in path.glob(name) if folder.is_dir() and not folder.is_symlink())
    return [folder for folder in found if "Shared Dictionary" not in folder.parts]


def unpacked_head(raw: bytes) -> bytes:
    """The first bytes of a file, without gzip or zstd."""
    if raw.startswith(b"\x1f\x8b"):
        try:
            return zlib.decompressobj(31).decompress(raw, _PROBE)
        except zlib.error:
            return b""
    if raw.startswith(b"\x28\xb5\x2f\xfd") or raw[1:4] == b"\x2a\x4d\x18":
        import zstandard

        try:
            unpacker = zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW)
            with unpacker.stream_reader(raw, read_across_frames=True) as stream:  # 64 kB can hold gigabytes
                return stream.read(_PROBE)
        except zstandard.ZstdError:
            return b""
    return raw


def _is_index(head: bytes) -> bool:
    if head.startswith((b" CDX ", b"CDX ")):
        return True
    lines = [line for line in head.split(b"\n")[:5] if line.strip() and not line.startswith((b"!", b"@"))]
    return bool(lines) and (_CDXJ.match(lines[0]) or (_CDX.match(lines[0]) and b")" in lines[0])) is not None


def _is_wacz(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as package:
            return any(name.startswith(("archive/", "indexes/")) for name in package.namelist())
    except (zipfile.BadZipFile, OSError, EOFError, ValueError):
        return False


def open_source(path: Path, base: str = "", on_problem: Callable[[Problem], None] = lambda _problem: None) -> Source:
    """The source at a path; raises UsageError for what is none. `base` is the address of files that do not say it."""
    if not path.exists():
        raise UsageError("no such file or folder", where=str(path))
    kind = recognise(path, base)
    if kind is None:
        raise _unknown(path)
    return _open_folder(path, kind, base, on_problem) if path.is_dir() else _open_file(path, kind, base)


def _open_file(path: Path, kind: Kind, base: str = "") -> Source:
    if kind in (Kind.WARC, Kind.ARC):
        return WarcSource(path, kind)
    if kind is Kind.WACZ:
        return WaczSource(path)
    if kind is Kind.HAR:
        return HarSource(path)
    if kind is Kind.MHTML:
        return MhtmlSource(path)
    if kind is Kind.SAVED:
        return saved_pages(path.parent, [path], base, path.name)
    return IndexSource(path)


def _open_folder(path: Path, kind: Kind, base: str, on_problem: Callable[[Problem], None]) -> Source:
    if kind is Kind.CHROMIUM:
        return ChromiumSource(chromium_caches(path), _profile_name("Chromium cache", path))
    if kind is Kind.FIREFOX:
        return FirefoxSource(firefox_caches(path), _profile_name("Firefox cache", path))
    if kind is Kind.HTTRACK:
        return httrack(path)
    if kind is Kind.WAYBACKPACK:
        return waybackpack(path, stamp_folders(path))
    if kind in (Kind.WGET, Kind.DOWNLOADER):
        root = path / "websites" if (path / "websites").is_dir() and kind is Kind.DOWNLOADER else path
        hosts = host_folders(root)
        return mirror(root, hosts, kind) if hosts else mirror(path.parent, [path], kind)
    if kind is Kind.SAVED:
        return saved_pages(path, find_pages(list(files_below(path)), base), base, path.name)
    return backup(path, base) if kind is Kind.BACKUP else _collection(path, base, on_problem)


def _profile_name(words: str, path: Path) -> str:
    """Named by the profile, not by the folder of its cache."""
    parts = [part for part in path.resolve().parts if part.lower() not in ("cache", "cache_data", "cache2", "entries")]
    return f"{words} {parts[-1]}" if len(parts) > 1 else words


def _collection(path: Path, base: str, on_problem: Callable[[Problem], None]) -> Source:
    files = list(files_below(path))
    parts: list[tuple[Path, Source]] = []
    for file in files:
        kind = _kind_of_file(file)
        if kind not in _CONTAINERS or kind is None:
            continue
        try:
            parts.append((file, _open_file(file, kind)))
        except (RecollectError, OSError) as error:
            on_problem(Problem(file.name, None, str(error)))
    if pages := find_pages(files, ""):
        parts.append((path, saved_pages(path, pages, base, path.name)))
    return FolderSource(path.name or str(path), parts)


def _unknown(path: Path) -> RecollectError:
    return FormatError(
        "no captures of pages in it",
        where=str(path),
        hint="docs/sources.md lists the formats; a folder of plain files needs --base http://its.address/",
    )
