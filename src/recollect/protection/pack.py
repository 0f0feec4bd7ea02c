"""Files to one sealed object and back.

Hides: the archive (tar, USTAR/PAX), compression (xz or zstd) and encryption (age). A sealed object is a plain
`.tar.xz` or `.tar.zst`, or that in age's format: `age -d`, `xz -d` and `tar -x` open it without this program.

Invariants: the same files give the same packed bytes (names sorted, no owners, no times; the executable bit is kept).
Unpacking writes below its folder only, makes no links and no devices, overwrites nothing, and stops at a limit of bytes
and of files, counted while they come.
"""

from __future__ import annotations

import io
import lzma
import os
import re
import shutil
import tarfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import IO, cast

from recollect.errors import FormatError, ResourceError, UsageError
from recollect.formats.temporaries import replacing
from recollect.protection.age import is_locked
from recollect.protection.block import is_class_name
from recollect.protection.changes import changes_class, is_changes_class
from recollect.protection.chunks import is_chunks_class
from recollect.protection.markup import is_page, strip
from recollect.protection.selection import OWN_FOLDER, Selection, is_version_control, walk

DEFAULT_CLASS = "files"
MAX_UNPACKED = 4 << 30
MAX_FILES = 200_000
_MAX_HEADER = 1 << 20  # bytes of an extended header: names are shorter
_PAGE_START = 4096
_XZ = b"\xfd7zXZ\x00"
_ZSTD = b"\x28\xb5\x2f\xfd"
_XZ_MEMORY = 1 << 30  # `xz -9` needs 65 MB to unpack


class Compression(StrEnum):
    XZ = "xz"
    ZSTD = "zstd"


@dataclass(frozen=True, slots=True)
class Member:
    """A file to be packed: where it is, and its name in the archive."""

    path: Path
    name: str
    size: int
    executable: bool
    is_folder: bool = False
    is_page: bool = False


@dataclass(frozen=True, slots=True)
class Packing:
    """What is packed for one class; `skipped` are (name, why) of what is not."""

    name: str
    members: tuple[Member, ...]
    skipped: tuple[tuple[str, str], ...] = ()
    version_control: tuple[str, ...] = ()
    """Folders of version control that were met and not packed."""

    @property
    def files(self) -> tuple[Member, ...]:
        return tuple(member for member in self.members if not member.is_folder)

    @property
    def size(self) -> int:
        return sum(member.size for member in self.members)


_ALL = Selection()


def gather(sources: Iterable[str], selection: Selection = _ALL) -> list[Packing]:
    """The files of `[CLASS=]PATH` arguments, by class in order of name.

    A folder with a slash at its end gives its contents, one without gives itself, as with rsync. All classes are
    unpacked into one folder, so a name that two sources give is an error.
    """
    classes: dict[str, _Gathered] = {}
    owners: dict[str, str] = {}
    for source in sources:
        name, path = _split(source)
        own = classes.setdefault(name, _Gathered())
        for member in _walk(path, own, selection):
            if member.name in owners and not (member.is_folder and member.name in own.members):
                raise UsageError(
                    "two sources give the same file",
                    where=member.name,
                    why=f"{owners[member.name]} and {source}",
                    hint="leave the slash at the end of a folder away to keep the folder's name",
                )
            if not _is_safe(member.name):
                raise UsageError(
                    "a name that cannot be unpacked again", where=repr(member.name), hint="rename it, or leave it out"
                )
            owners.setdefault(member.name, source)
            own.members[member.name] = member
    packings = []
    for name, own in sorted(classes.items()):
        if not any(not member.is_folder for member in own.members.values()) and not own.version_control:
            raise UsageError("there is nothing to protect", where=name, why="no files")
        ordered = sorted(own.members.values(), key=lambda member: member.name.encode("utf-8", "surrogateescape"))
        packings.append(Packing(name, tuple(ordered), tuple(own.skipped), tuple(own.version_control)))
    return packings


@dataclass(slots=True)
class _Gathered:
    """The files of one class while its sources are walked."""

    members: dict[str, Member] = field(default_factory=dict)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    version_control: list[str] = field(default_factory=list)


def _split(source: str) -> tuple[str, str]:
    name, mark, path = source.partition("=")
    if not mark or os.path.lexists(source):
        name, path = DEFAULT_CLASS, source
    elif (
        not is_class_name(changes_class(name))
        or not is_class_name(name)
        or is_changes_class(name)
        or is_chunks_class(name)
    ):
        raise UsageError(
            "not a name of a class",
            where=name,
            hint="code=app/: up to 24 small letters, digits and -; not manifest, and no -changes or -chunks at its end",
        )
    if not path:
        raise UsageError("no path", where=f"--files {source!r}", hint="--files app/ or --files code=app/")
    return name, path


def _walk(source: str, own: _Gathered, selection: Selection) -> Iterable[Member]:
    path = Path(source)
    if not path.exists():
        raise UsageError("no such file", where=source, hint="check the spelling of --files")
    if is_version_control(path.resolve()) and not selection.version_control:
        own.version_control.append(source)
        return
    if path.is_file():
        why = selection.reason(path)
        if why:
            own.skipped.append((path.name, why))
        else:
            yield _member(path, path.name)
        return
    if not path.is_dir():
        raise UsageError("not a regular file", where=source, hint="give files and folders with --files")
    keep_name = not source.endswith(("/", os.sep)) and path.name not in ("", ".", "..")
    prefix = f"{path.name}/" if keep_name else ""
    if keep_name:
        yield Member(path, path.name, 0, False, is_folder=True)
    for walked in walk(path, selection):
        inside = prefix + walked.path.relative_to(path).as_posix()
        if walked.version_control:
            own.version_control.append(f"{inside}/" if walked.is_folder else inside)
        elif walked.skipped:
            own.skipped.append((inside, walked.skipped))
        elif walked.is_folder:
            yield Member(walked.path, inside, 0, False, is_folder=True)
        else:
            yield _member(walked.path, inside)


def _member(path: Path, name: str) -> Member:
    status = path.stat()
    with path.open("rb") as handle:
        page = is_page(name, handle.read(_PAGE_START))
    size = len(strip(path.read_bytes())) if page else status.st_size
    return Member(path, name, size, bool(status.st_mode & 0o100), is_page=page)


# Packing -------------------------------------------------------------------------------------------------------------


def archive(packing: Packing) -> bytes:
    """The files as a tar archive that depends on names, contents and executable bits only."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for member in packing.members:
            info = tarfile.TarInfo(member.name)
            if member.is_folder:
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(info)
                continue
            content = member.path.read_bytes()
            if member.is_page:  # pages of the site itself go in without their blocks
                content = strip(content)
            info.size, info.mode = len(content), 0o755 if member.executable else 0o644
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def compress(data: bytes, compression: Compression, level: int | None = None) -> bytes:
    if compression is Compression.ZSTD:
        import zstandard

        # The window of level 19 is 8 MB; every decoder takes it.
        return zstandard.ZstdCompressor(level=level or 19, threads=0, write_content_size=True).compress(data)
    return lzma.compress(data, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC64, preset=6 if level is None else level)


# Unpacking -----------------------------------------------------------------------------------------------------------


def suffix(data: bytes) -> str:
    """The usual end of the name of a file with these bytes: .tar.xz, .tar.zst or .tar.age."""
    return ".tar.age" if is_locked(data) else ".tar.zst" if data.startswith(_ZSTD) else ".tar.xz"


def save_sealed(data: bytes, folder: Path, name: str) -> Path:
    """Save an object as it is, in a file that is not there yet or has the same bytes."""
    path = folder / f"{name}{suffix(data)}"
    if not _is_there(folder, path.name, io.BytesIO(data)):
        folder.mkdir(parents=True, exist_ok=True)
        _write(path, io.BytesIO(data), executable=False)
    return path


@dataclass(frozen=True, slots=True)
class Limits:
    """What is unpacked at most."""

    total_bytes: int = MAX_UNPACKED
    files: int = MAX_FILES


def expand(data: bytes, limits: Limits) -> IO[bytes]:
    """A stream of the tar archive in packed bytes; reading more than the limit raises."""
    if data.startswith(_XZ):
        # The memory limit of lzma counts what an evil header asks for before it is given.
        raw = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
        return cast(IO[bytes], _Expanding(data, raw.decompress, lambda: raw.eof, limits.total_bytes))
    if data.startswith(_ZSTD):
        import zstandard

        reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(io.BytesIO(data))
        return cast(IO[bytes], _Bounded(reader, limits.total_bytes))
    if data[257:262] == b"ustar":
        return cast(IO[bytes], _Bounded(io.BytesIO(data), limits.total_bytes))
    raise FormatError("not a packed object", why="neither xz, zstd nor tar")


def expanded(data: bytes, limits: Limits) -> bytes:
    """The whole tar archive in packed bytes."""
    try:
        with expand(data, limits) as stream:
            return b"".join(iter(lambda: stream.read(1 << 20), b""))
    except (lzma.LZMAError, EOFError) as error:
        raise FormatError("the object cannot be unpacked", why=str(error)) from error
    except Exception as error:
        if type(error).__name__ == "ZstdError":
            raise FormatError("the object cannot be unpacked", why=str(error)) from error
        raise


class _Bounded(io.RawIOBase):
    """A stream that refuses to give more than `limit` bytes."""

    def __init__(self, inner: IO[bytes], limit: int) -> None:
        self._inner = inner
        self._left = limit + (1 << 20)  # the archive's own headers

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        piece = self._inner.read(1 << 16 if size < 0 else size)
        self._left -= len(piece)
        if self._left < 0:
            raise too_big()
        return piece


class _Expanding(io.RawIOBase):
    """xz, expanded piece by piece with a limit."""

    def __init__(
        self, data: bytes, expand: Callable[[bytes, int], bytes], ended: Callable[[], bool], limit: int
    ) -> None:
        self._data, self._expand, self._ended = data, expand, ended
        self._left = limit + (1 << 20)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._ended():
            return b""
        piece = self._expand(self._data, 1 << 16 if size < 0 else size)
        self._data = b""
        self._left -= len(piece)
        if self._left < 0:
            raise too_big()
        return piece


def too_big() -> FormatError:
    return FormatError("the object unpacks to more than allowed", hint="allow more with --max-size if you trust it")


def unpack(data: bytes, folder: Path, limits: Limits = Limits()) -> list[str]:  # noqa: B008 - frozen
    """Unpack into `folder`; returns the names of the files.

    The whole archive is read twice: everything is checked before the first write, and nothing is kept in memory. A file
    that is there with the same bytes is left alone; one with other bytes stops everything (law 8).
    """
    try:
        missing, names = _checked(data, folder, limits)
        with _opened(data, limits) as tar:
            for info in tar:
                path = folder / _safe_name(info)
                if info.isdir():
                    path.mkdir(parents=True, exist_ok=True)
                elif path in missing:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    _write(path, _content(tar, info), executable=bool(info.mode & 0o100))
    except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise FormatError("the object cannot be unpacked", why=str(error)) from error
    except Exception as error:
        if type(error).__name__ == "ZstdError":
            raise FormatError("the object cannot be unpacked", why=str(error)) from error
        raise
    return names


def _checked(data: bytes, folder: Path, limits: Limits) -> tuple[set[Path], list[str]]:
    """The files that are not there yet, and the names of all; raises for anything that is not safe."""
    missing: set[Path] = set()
    kinds: dict[str, bool] = {}  # name -> is it a folder?
    total = 0
    with _opened(data, limits) as tar:
        for info in tar:
            name = _safe_name(info)
            if len(kinds) >= limits.files:
                raise FormatError("the object holds too many files", why=f"more than {limits.files:,}")
            if name in kinds:
                raise FormatError("the object holds a file twice", where=name)
            kinds[name] = info.isdir()
            total += info.size
            if total > limits.total_bytes:
                raise too_big()
            if info.isdir():
                _check_folder(folder, name)
            elif not _is_there(folder, name, _content(tar, info)):
                missing.add(folder / name)
    for name in kinds:
        for parent in PurePosixPath(name).parents:
            if kinds.get(parent.as_posix()) is False:
                raise FormatError("the object holds a file as a folder", where=parent.as_posix())
    return missing, [name for name, is_folder in kinds.items() if not is_folder]


class _Header(tarfile.TarInfo):
    """A header whose extension has a bounded size: the library reads extensions into memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Header:
        info = super().frombuf(buf, encoding, errors)
        if info.type not in (*tarfile.REGULAR_TYPES, tarfile.DIRTYPE) and info.size > _MAX_HEADER:
            raise FormatError("the object holds a header that is too long", why=f"{info.size:,} bytes")
        return info


def _opened(data: bytes, limits: Limits) -> tarfile.TarFile:
    return tarfile.open(fileobj=expand(data, limits), mode="r|", tarinfo=_Header)


def _content(tar: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    opened = tar.extractfile(info)
    assert opened is not None  # a regular file
    return opened


def _is_safe(name: str) -> bool:
    """Does a name stay in its folder, on every system? Colons and backslashes are letters on some."""
    parts = PurePosixPath(name).parts
    return not (
        not parts
        or parts[0] == OWN_FOLDER
        or name.startswith(("/", "\\"))
        or "\0" in name
        or ".." in re.split(r"[/\\]", name)
        or re.match(r"[A-Za-z]:(?:[/\\]|$)", name)
        or (os.name == "nt" and ("\\" in name or ":" in name))
    )


def _safe_name(info: tarfile.TarInfo) -> str:
    name = info.name.rstrip("/")
    if not _is_safe(name):
        raise FormatError("the object names a file outside its folder", where=repr(info.name))
    if not (info.isreg() or info.isdir()):
        raise FormatError("the object holds something that is neither a file nor a folder", where=repr(info.name))
    return "/".join(PurePosixPath(name).parts)


def _check_way(folder: Path, name: str) -> Path:
    """Where a file goes; raises UsageError if a link leads elsewhere, or a file is in the place of a folder above."""
    path = folder
    parts = PurePosixPath(name).parts
    for depth, part in enumerate(parts, 1):
        path = path / part
        if path.is_symlink():
            raise UsageError("a link is in the way", where=str(path), hint="choose an empty folder with -o")
        if depth < len(parts) and path.is_file():
            raise UsageError("a file is in the way of a folder", where=str(path), hint="choose an empty folder with -o")
    return path


def _check_folder(folder: Path, name: str) -> None:
    path = _check_way(folder, name)
    if path.is_file():
        raise UsageError("a file is in the way of a folder", where=str(path), hint="choose an empty folder with -o")


def _is_there(folder: Path, name: str, content: IO[bytes]) -> bool:
    """Is the file there already? Raises UsageError if something else is in its place."""
    path = _check_way(folder, name)
    if not path.exists():
        return False
    if path.is_dir() or not _same(path, content):
        raise UsageError("the file exists and is another one", where=str(path), hint="choose an empty folder with -o")
    return True


def _same(path: Path, content: IO[bytes]) -> bool:
    with path.open("rb") as there:
        while piece := content.read(1 << 16):
            if there.read(len(piece)) != piece:
                return False
        return not there.read(1)


def _write(path: Path, content: IO[bytes], *, executable: bool) -> None:
    try:
        with replacing(path, mode=0o755 if executable else 0o644) as out:
            shutil.copyfileobj(content, out)
    except OSError as error:
        raise ResourceError("cannot write", where=str(path), why=error.strerror or str(error)) from error
