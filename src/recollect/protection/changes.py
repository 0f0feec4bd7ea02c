"""What changed in a class since its version was made, as an object of its own.

A version lives as long as archives need to capture enough pages that carry it. Files that change meanwhile do not make
a new version: they go into a second class, `NAME-changes`, whose blocks are few because it is small. Both together are
the newest files.

Hides: the form of the object. It is a tar archive like any other: the files that are new or different, and first a
member `.recollect/changes.json` with

    base      SHA-256 of the sealed object of the version that it changes
    removed   names that the version has and the newest files have not
    patched   names whose member is not the content but a patch: a zstd frame that has the version's content of the
              same name as its dictionary (as `zstd --patch-from` writes it)
    ranges    if the version could not be opened, but its chunks are known (`chunks.py`): the newest archive as ranges
              of the version's archive, [offset, length], and of the member `.recollect/literals` for an offset of -1
    sha256    of the archive that the ranges lead to

Pure. Invariant: `merge(base, make(base, ..., newest))` has the members of `newest`.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from recollect.errors import FormatError
from recollect.protection.chunks import Chunks, Delta, Digest, delta, splice

SUFFIX = "-changes"
_NOTES = ".recollect/changes.json"
_LITERALS = ".recollect/literals"
_MAX_NOTES = 64 << 20
MAX_MERGED = 4 << 30
_PATCH_FROM = 4096  # bytes of a file from which a patch may be smaller
_PATCH_MOST = 64 << 20  # larger files are taken whole: a patch needs a window of their size
_WINDOW = 1 << 27


def changes_class(name: str) -> str:
    """The class that carries the changes of a class."""
    return name + SUFFIX


def is_changes_class(name: str) -> bool:
    return name.endswith(SUFFIX)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A member of an archive."""

    content: bytes | None  # None for a folder
    mode: int


def _entries(archive: bytes) -> dict[str, _Entry]:
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
        found: dict[str, _Entry] = {}
        for info in tar:
            member = tar.extractfile(info) if info.isreg() else None
            if member is None and not info.isdir():
                raise FormatError("neither a file nor a folder", where=repr(info.name))
            found[info.name.rstrip("/")] = _Entry(member.read() if member is not None else None, info.mode)
        return found


def _written(entries: Iterator[tuple[str, _Entry]]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, entry in entries:
            info = tarfile.TarInfo(name)
            info.mode = entry.mode
            if entry.content is None:
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
            else:
                info.size = len(entry.content)
                tar.addfile(info, io.BytesIO(entry.content))
    return out.getvalue()


def make(base: bytes, base_object: str, newest: bytes) -> bytes:
    """The changes from one archive to another; `base_object` names the sealed object of the first."""
    before, after = _entries(base), _entries(newest)
    patched: list[str] = []
    changed: list[tuple[str, _Entry]] = []
    for name, entry in after.items():
        old = before.get(name)
        if old == entry:
            continue
        patch = _patch(old.content, entry.content) if old is not None else None
        if patch is not None:
            patched.append(name)
        changed.append((name, entry if patch is None else _Entry(patch, entry.mode)))
    notes = {"base": base_object, "removed": sorted(before.keys() - after.keys()), "patched": sorted(patched)}
    return _written(iter([_noted(notes), *changed]))


def make_spliced(chunks: Chunks, base_object: str, newest: bytes, digest: Digest) -> bytes:
    """The changes from a version of which only the chunks are known to an archive."""
    change = delta(chunks, newest, digest)
    notes = {
        "base": base_object,
        "removed": [],
        "patched": [],
        "ranges": change.ranges,
        "sha256": hashlib.sha256(newest).hexdigest(),
    }
    return _written(iter([_noted(notes), (_LITERALS, _Entry(change.literals, 0o644))]))


def _noted(notes: dict[str, Any]) -> tuple[str, _Entry]:
    return _NOTES, _Entry(json.dumps(notes, sort_keys=True).encode(), 0o644)


def base_of(changes: bytes) -> str:
    """The SHA-256 of the sealed object that these changes belong to; empty if this is not such an archive."""
    try:
        with tarfile.open(fileobj=io.BytesIO(changes), mode="r:") as tar:
            return str(_notes(tar)["base"])
    except (tarfile.TarError, FormatError):
        return ""


def changed_names(changes: bytes) -> frozenset[str]:
    """The names of the members that are new or different."""
    return frozenset(_entries(changes)) - {_NOTES}


def merge(base: bytes, changes: bytes, most: int = MAX_MERGED) -> bytes:
    """The archive that the changes lead to; raises FormatError if it had more than `most` bytes."""
    try:
        with tarfile.open(fileobj=io.BytesIO(changes), mode="r:") as tar:
            notes = _notes(tar)
        if "ranges" in notes:
            return _spliced(base, notes, _entries(changes), most)
        entries = _entries(base)
        for name in notes["removed"]:
            entries.pop(name, None)
        patched = set(notes["patched"])
        for name, entry in _entries(changes).items():
            if name == _NOTES:
                continue
            if name in patched and entry.content is not None:
                entry = _Entry(_patched(entries.get(name), entry.content, name), entry.mode)
            entries[name] = entry
    except tarfile.TarError as error:
        raise FormatError("the changes cannot be read", why=str(error)) from error
    return _written(iter(sorted(entries.items(), key=lambda item: item[0].encode("utf-8", "surrogateescape"))))


def _spliced(base: bytes, notes: dict[str, Any], entries: dict[str, _Entry], most: int) -> bytes:
    ranges, literals = notes["ranges"], entries.get(_LITERALS)
    is_list = isinstance(ranges, list) and all(
        isinstance(one, list) and len(one) == 2 and all(type(value) is int for value in one) for one in ranges
    )
    if not is_list or literals is None or literals.content is None:
        raise FormatError("the changes cannot be read", why="their notes have another form")
    archive = splice(base, Delta(tuple((one[0], one[1]) for one in ranges), literals.content), most)
    if hashlib.sha256(archive).hexdigest() != notes.get("sha256"):
        raise FormatError("the changes do not fit their version", why="they lead to other files")
    return archive


def _notes(tar: tarfile.TarFile) -> dict[str, Any]:
    info = tar.next()
    member = tar.extractfile(info) if info is not None and info.name == _NOTES and info.size <= _MAX_NOTES else None
    if member is None:
        raise FormatError("not an object of changes")
    try:
        notes = json.loads(member.read())
    except (ValueError, RecursionError) as error:
        raise FormatError("not an object of changes", why=str(error)) from error
    lists = isinstance(notes, dict) and all(
        isinstance(notes.get(key), list) and all(isinstance(name, str) for name in notes[key])
        for key in ("removed", "patched")
    )
    if not lists or not isinstance(notes.get("base"), str):
        raise FormatError("not an object of changes", why="its notes have another form")
    return dict(notes)


def _patch(old: bytes | None, new: bytes | None) -> bytes | None:
    """A patch from one content to another, if it is worth one."""
    if old is None or new is None or not _PATCH_FROM <= len(new) <= _PATCH_MOST or len(old) > _PATCH_MOST:
        return None
    import zstandard

    dictionary = zstandard.ZstdCompressionDict(old, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    window = max(len(old) + len(new), 1 << 10).bit_length()
    parameters = zstandard.ZstdCompressionParameters(
        compression_level=12, window_log=min(window, 27), enable_ldm=True, write_content_size=True
    )
    patch = zstandard.ZstdCompressor(dict_data=dictionary, compression_params=parameters).compress(new)
    return patch if 2 * len(patch) < len(new) else None


def _patched(old: _Entry | None, patch: bytes, name: str) -> bytes:
    import zstandard

    content = old.content if old is not None else None
    if content is None:
        raise FormatError("a patch of a file that is not there", where=name)
    dictionary = zstandard.ZstdCompressionDict(content, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    try:
        if zstandard.frame_content_size(patch) > _PATCH_MOST:
            raise FormatError("a patch that is too large", where=name)
        decompressor = zstandard.ZstdDecompressor(dict_data=dictionary, max_window_size=_WINDOW)
        return decompressor.decompress(patch, max_output_size=_PATCH_MOST)
    except zstandard.ZstdError as error:
        raise FormatError("a patch that cannot be read", where=name, why=str(error)) from error
