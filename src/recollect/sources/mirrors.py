"""Downloads of other tools, by the layouts of their folders.

- **wget -r** (and curl-like tools): `host/path`. `index.html` is a folder's page. Queries are in the name
  (`list.php?id=1`, with `--restrict-file-names=windows` `list.php@id=1`). `--adjust-extension` adds `.html` (or `.css`,
  and `.gz` to packed pages), `--convert-links` makes links local, `--backup-converted` keeps the page as served as
  `.orig` (GNU Wget manual, sections 2.7, 2.9, 2.11). Times are those of files, which wget takes from Last-Modified.
- **HTTrack**: the same with names of its own (`list681a.html`) and local links. `hts-cache/new.zip` has an entry for
  each URL, with the head of the response in the extra field of its local header: `X-StatusCode`, `Content-Type`,
  `X-In-Cache` (1: the entry is the body as served, 0: the body is the file `X-Save`). Without that file, the comment
  `Mirrored from URL by HTTrack` of pages says their addresses.
- **wayback-machine-downloader**: `websites/host/path`, with `--all-timestamps` `websites/host/TIMESTAMP/path`; files as
  archived.
- **waybackpack**: `TIMESTAMP/host/path`; pages as the Wayback Machine shows them, unless `--raw` was given.
- **backup**: the files of a web server below `--base`. Programs and configuration of the server are left out.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, urljoin, urlsplit

from recollect.datetimes import parse_http_date, parse_timestamp
from recollect.errors import FormatError
from recollect.model import Problem
from recollect.sources.browsers import WEB, field, slice_of
from recollect.sources.collections import files_below
from recollect.sources.files import FileEntry, FilesSource, head_of, is_html, local_target, references, type_of
from recollect.sources.http import bare_type, parse_lines
from recollect.sources.model import Depth, Headers, Kind, SourceCapture, SourcePayload, Tally, TimeOrigin, Wanted

_HOST = re.compile(
    r"(?:(?:[a-z0-9_-]{1,63}\.)+[a-z][a-z0-9-]{1,62}|localhost|\d{1,3}(?:\.\d{1,3}){3})(?:[:+_]\d{2,5})?", re.I
)
_FILE_SUFFIX = re.compile(
    r"\.(?:html?|txt|css|js|png|jpe?g|gif|svg|ico|pdf|zip|gz|warc|har|xml|json|md|mht(?:ml)?)$", re.I
)
_STAMP = re.compile(r"\d{14}")
_DYNAMIC = re.compile(r"\.(?:php[3457]?|phtml|aspx?|jspx?|cgi|pl|cfm|do|shtml|py|rb)$", re.I)
_ADDED = re.compile(r"\.(?:html|css)$", re.I)
_AT = re.compile(r"(\.(?:php[3457]?|phtml|aspx?|jspx?|cgi|pl|cfm|do|shtml|html?))@(?=[^/@]{0,300}=)", re.I)
_MIRRORED = re.compile(
    rb"<!-- Mirrored from ([^\s<>]{3,2000}) by HTTrack Website Copier[^,]{0,60}, ([^<>]{10,60}?) -->"
)
_SAFE = "/%&=;+,:@!$'()*~"
_PROGRAM = re.compile(rb"<\?(?:php|=)|<%[@=\s]|^#!", re.I)
_NOT_PUBLIC = re.compile(r"(?:^|/)(?:\.[^/]+|cgi-bin|web\.config|wp-config\.php|thumbs\.db)(?:/|$)", re.I)
_EXTRA = 1 << 16


def host_folders(root: Path) -> list[Path]:
    """The folders of a mirror that are named by hosts and hold files."""
    try:
        return sorted(path for path in root.iterdir() if is_host_folder(path))
    except OSError:
        return []


def is_host_folder(path: Path) -> bool:
    return bool(_HOST.fullmatch(path.name)) and not _FILE_SUFFIX.search(path.name) and _is_folder(path)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def stamp_folders(root: Path) -> list[Path]:
    """Folders named by timestamps, with folders named by hosts in them."""
    try:
        found = [path for path in root.iterdir() if _STAMP.fullmatch(path.name) and _is_folder(path)]
    except OSError:
        return []
    return sorted(path for path in found if host_folders(path))


def _origin(folder: Path) -> str:
    host = folder.name.lower()
    host = re.sub(r"[+_](\d{2,5})$", r":\1", host)  # a port, as wget for Windows and HTTrack write it
    return f"http://{host}"


def address(origin: str, name: str) -> str:
    """The URL of a file by its path below the folder of its host."""
    if not WEB.match(name) and "?" not in name:
        name = _AT.sub(r"\1?", name, count=1)
    path, mark, query = name.partition("?")
    folder, slash, last = path.rpartition("/")
    if not mark and last.lower() in ("index.html", "index.htm"):
        last = ""
    return f"{origin}/{quote(folder + slash + last, safe=_SAFE)}" + (
        f"?{quote(query, safe=_SAFE + '?')}" if mark else ""
    )


def _served_name(name: str, referenced: frozenset[str]) -> str:
    """The name without what --adjust-extension added to it."""
    for suffix in (".html.gz", ".css.gz"):
        if name.lower().endswith(suffix):
            name = name[:-3]
    bare = _ADDED.sub("", name)
    if bare == name:
        return name
    if "?" in bare.rpartition("/")[2] or _AT.search(bare) or _DYNAMIC.search(bare):
        return bare
    # `/about` was saved as about.html if pages link to that only.
    return bare if f"/{bare}" in referenced and f"/{name}" not in referenced else name


def mirror(root: Path, hosts: list[Path], kind: Kind) -> FilesSource:
    """A mirror by wget, or a download with its layout."""

    def layout(tally: Tally) -> Iterator[FileEntry]:
        for host in hosts:
            yield from _host_layout(host, kind, tally)

    stamped = kind is Kind.DOWNLOADER and any(_timestamped(host) for host in hosts)
    return FilesSource(kind, root, layout, Depth.DEEP if stamped else Depth.FLAT)


def _timestamped(host: Path) -> bool:
    return any(_STAMP.fullmatch(path.name) and _is_folder(path) for path in host.iterdir())


def _host_layout(host: Path, kind: Kind, tally: Tally) -> Iterator[FileEntry]:
    origin = _origin(host)
    if kind is Kind.DOWNLOADER and _timestamped(host):
        for path in files_below(host):
            stamp, _, rest = path.relative_to(host).as_posix().partition("/")
            if rest and (moment := _moment(stamp)) is not None:
                yield FileEntry(path, address(origin, rest), moment)
        return
    files = list(files_below(host))
    names = {path: path.relative_to(host).as_posix() for path in files}
    originals = {path for path in files if path.with_name(path.name.removesuffix(".orig")) in names}
    originals = {path for path in originals if path.name.endswith(".orig")}
    links = _links(files, host)
    urls = {path: address(origin, _served_name(name, links.referenced)) for path, name in names.items()}
    converted = any(_is_local_name(origin, names[target], urls[target]) for target in links.local if target in urls)
    taken: set[str] = set()
    for path, url in urls.items():
        if path in originals:
            continue
        backup = path.with_name(path.name + ".orig")
        if url in taken:
            tally.note_other("second file of one address")
            continue
        taken.add(url)
        if backup in originals:
            yield FileEntry(backup, url)
        else:
            yield FileEntry(path, url, altered=converted, restore_links=converted)


def _is_local_name(origin: str, name: str, url: str) -> bool:
    """Is a link to a file by its name one that only a tool can have made?"""
    return not name.lower().endswith(("index.html", "index.htm")) and url != f"{origin}/{quote(name, safe=_SAFE)}"


class _Links:
    def __init__(self) -> None:
        self.referenced: frozenset[str] = frozenset()  # paths that pages link to from the root of the host
        self.local: set[Path] = set()  # files that relative references name


def _links(files: list[Path], host: Path) -> _Links:
    """The links of all pages of a host, as far as their first 256 KB."""
    links = _Links()
    referenced: set[str] = set()
    for path in files:
        head = head_of(path)
        if not is_html(head):
            continue
        place = f"http://h/{quote(path.relative_to(host).as_posix(), safe='/')}"
        for reference in references(head):
            target = local_target(path, reference)
            if target is not None:
                links.local.add(target)
            try:
                parts = urlsplit(urljoin(place, reference))
            except ValueError:
                continue
            if parts.netloc in ("h", host.name.lower()):
                referenced.add(parts.path)
    links.referenced = frozenset(referenced)
    return links


def waybackpack(root: Path, stamps: list[Path]) -> FilesSource:
    """A download by waybackpack."""

    def layout(_tally: Tally) -> Iterator[FileEntry]:
        for folder in stamps:
            moment = _moment(folder.name)
            for host in host_folders(folder):
                for path in files_below(host):
                    wrapped = b"web.archive.org" in head_of(path) and type_of(path)[0] == "text/html"
                    url = address(_origin(host), path.relative_to(host).as_posix())
                    yield FileEntry(path, url, moment, altered=wrapped, wrapped=wrapped)

    return FilesSource(Kind.WAYBACKPACK, root, layout, Depth.DEEP)


def _moment(stamp: str) -> datetime | None:
    try:
        return parse_timestamp(stamp) if _STAMP.fullmatch(stamp) else None
    except FormatError:
        return None


def backup(root: Path, base: str) -> FilesSource:
    """Files of a web server whose folder is at `base`."""
    origin = base.partition("?")[0].partition("#")[0].rstrip("/")

    def layout(tally: Tally) -> Iterator[FileEntry]:
        for path in files_below(root):
            name = path.relative_to(root).as_posix()
            if _NOT_PUBLIC.search(name):
                tally.note_other("hidden file")
            elif _DYNAMIC.search(name) and _PROGRAM.search(head_of(path, 1 << 16)):
                tally.note_other("program of the server")
            else:
                yield FileEntry(path, address(origin, name.replace("?", "%3F")))

    return FilesSource(Kind.BACKUP, root, layout)


# HTTrack -------------------------------------------------------------------------------------------------------------


def httrack(root: Path) -> HttrackSource | FilesSource:
    """A mirror by HTTrack: by its cache, or by the comments in its pages."""
    for name in ("new.zip", "old.zip"):
        cache = root / "hts-cache" / name
        if cache.is_file() and zipfile.is_zipfile(cache):
            return HttrackSource(root, cache)

    def layout(_tally: Tally) -> Iterator[FileEntry]:
        for host in host_folders(root):
            for path in files_below(host):
                comment = _MIRRORED.search(head_of(path))
                name = path.relative_to(host).as_posix()
                url = address(_origin(host), name)
                moment = None
                if comment is not None:
                    stated = comment[1].decode("utf-8", "replace")
                    url = stated if WEB.match(stated) else f"http://{stated}"
                    moment = _http_date(comment[2].decode("latin-1"))
                yield FileEntry(path, url, moment, altered=True, restore_links=True)

    return FilesSource(Kind.HTTRACK, root, layout)


def _http_date(text: str) -> datetime | None:
    try:
        return parse_http_date(text)
    except FormatError:
        return None


class HttrackSource:
    """A mirror by HTTrack with its cache: pages as they were served."""

    kind = Kind.HTTRACK
    depth = Depth.FLAT
    private = False

    def __init__(self, root: Path, cache: Path) -> None:
        self.name = root.name or str(root)
        self.tally = Tally()
        self._root = root
        self._cache = cache
        try:
            self._zip = zipfile.ZipFile(cache)
        except (zipfile.BadZipFile, OSError, EOFError, ValueError) as error:
            raise FormatError("HTTrack's cache is damaged", where=str(cache), why=str(error)) from error

    def captures(self, wanted: Wanted, on_problem: Callable[[Problem], None]) -> Iterator[SourceCapture]:
        for info in self._zip.infolist():
            self.tally.entries += 1
            url = info.filename if WEB.match(info.filename) else f"http://{info.filename}"
            if not wanted(url):
                continue
            try:
                headers, kept = self._head(info)
                path = None if kept else self._file(headers)
                length = info.file_size if kept else path.stat().st_size if path is not None else 0
            except (FormatError, OSError) as error:
                self.tally.damaged += 1
                on_problem(Problem(self.name, None, str(error), url[:120]))
                continue
            status = field(headers, "x-statuscode")
            code = int(status) if re.fullmatch(r"[1-5]\d\d", status, re.ASCII) else None
            if code == 200 and not kept and path is None:
                self.tally.note_other("without its file")
                continue
            self.tally.taken += 1
            moment = (
                datetime(*info.date_time, tzinfo=UTC) if _is_date(info.date_time) else datetime(1990, 1, 2, tzinfo=UTC)
            )
            media_type = bare_type(field(headers, "content-type"))
            yield SourceCapture(url, moment, TimeOrigin.INDEX, info.filename, code, media_type, length=length)

    def read(self, place: str) -> SourcePayload:
        try:
            info = self._zip.getinfo(place)
        except KeyError as error:
            raise FormatError("no such entry", where=place[:200]) from error
        headers, kept = self._head(info)
        status = field(headers, "x-statuscode")
        charset = field(headers, "x-charset")
        public = tuple((name, value) for name, value in headers if not name.lower().startswith("x-"))
        if charset and "charset" not in field(public, "content-type"):
            public = tuple(
                (name, f"{value}; charset={charset}" if name.lower() == "content-type" else value)
                for name, value in public
            )
        code = int(status) if status.isdigit() and len(status) == 3 else 200
        if kept:
            return SourcePayload(code, public, self._member(info))
        path = self._file(headers)
        chunks = slice_of(path, 0, path.stat().st_size) if path is not None else iter(())
        return SourcePayload(code, public, chunks)

    def _member(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        try:
            with self._zip.open(info) as member:
                while piece := member.read(1 << 18):
                    yield piece
        except (zipfile.BadZipFile, EOFError, zlib.error, RuntimeError, NotImplementedError) as error:
            raise FormatError("an entry of HTTrack's cache is damaged", where=self.name, why=str(error)) from error

    def _head(self, info: zipfile.ZipInfo) -> tuple[Headers, bool]:
        """Headers of an entry, and whether its body is in the cache."""
        with self._cache.open("rb") as file:
            file.seek(info.header_offset)
            header = file.read(30)
            if len(header) < 30 or not header.startswith(b"PK\x03\x04"):
                raise FormatError("HTTrack's cache is damaged")
            name, extra = int.from_bytes(header[26:28], "little"), int.from_bytes(header[28:30], "little")
            file.seek(name, 1)
            text = file.read(min(extra, _EXTRA)).decode("latin-1")
        _, headers = parse_lines(text)
        return headers, field(headers, "x-in-cache") == "1"

    def _file(self, headers: Headers) -> Path | None:
        """The file of an entry, never outside of the mirror."""
        name = field(headers, "x-save")
        if not name or "\0" in name:
            return None
        path = self._root / name
        inside = path.resolve().is_relative_to(self._root.resolve())
        return path if inside and path.is_file() and not path.is_symlink() else None

    def seeds(self) -> tuple[str, ...]:
        return ()

    def close(self) -> None:
        self._zip.close()


def _is_date(parts: tuple[int, ...]) -> bool:
    try:
        datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]
    except ValueError:
        return False
    return True
