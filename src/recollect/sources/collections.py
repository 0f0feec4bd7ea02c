"""Several files as one source: an index with the WARCs that it names, and a folder of files of any kind.

Hides: which file is which. A name in an index leads only to a file that was found below the index's own folder (or the
folder beside it, as in `indexes/` and `archive/`): an index never names a file elsewhere on the disk. Symbolic links
are not followed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from recollect.errors import FormatError, RecollectError
from recollect.model import Problem
from recollect.sources.model import Depth, Kind, Source, SourceCapture, SourcePayload, Tally, Wanted
from recollect.sources.records import RecordFile
from recollect.sources.wacz import index_capture, read_index
from recollect.sources.warcs import payload_of

MOST_FILES = 2_000_000


def files_below(folder: Path, *, most: int = MOST_FILES) -> Iterator[Path]:
    """The regular files of a folder and its folders, in order of their names; no symbolic links."""
    count = 0
    for where, folders, files in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if not Path(where, name).is_symlink())
        for name in sorted(files):
            path = Path(where, name)
            if path.is_symlink() or not path.is_file():
                continue
            count += 1
            if count > most:
                return
            yield path


class IndexSource:
    """A CDX or CDXJ index and the WARC or ARC files that lie with it."""

    kind = Kind.CDXJ
    depth = Depth.DEEP
    private = False

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.tally = Tally()
        self._path = path
        self._open: dict[str, RecordFile] = {}
        self._files: dict[str, Path] = {}
        beside = path.parent.parent / "archive"
        for root in (path.parent, beside) if beside.is_dir() else (path.parent,):
            for file in files_below(root):
                if is_record_name(file.name):
                    self._files.setdefault(file.name, file)
        self.named: set[Path] = set()  # files whose captures the index has

    def captures(self, wanted: Wanted, on_problem: Callable[[Problem], None]) -> Iterator[SourceCapture]:
        lacking: set[str] = set()
        with self._path.open("rb") as index:
            for row in read_index(index, self._path.name, on_problem):
                offset, _, rest = row.locator.partition(" ")
                name = rest.partition(" ")[2].rpartition("/")[2]
                file = self._files.get(name)
                if file is None:
                    if name not in lacking and len(lacking) < 20:
                        on_problem(Problem(self._path.name, None, "a WARC of the index is not in its folder", name))
                        lacking.add(name)
                    self.tally.note_other("line of a missing file")
                    continue
                self.named.add(file)
                self.tally.entries += 1
                if wanted(row.uri):
                    self.tally.taken += 1
                    yield index_capture(row, f"{offset}@{name}")

    def read(self, place: str) -> SourcePayload:
        offset, _, name = place.partition("@")
        if name not in self._open:
            path = self._files[name]
            self._open[name] = RecordFile(lambda: path.open("rb"), name)
        return payload_of(self._open[name], offset)

    def seeds(self) -> tuple[str, ...]:
        return ()

    def close(self) -> None:
        for file in self._open.values():
            file.close()


def is_record_name(name: str) -> bool:
    """Is this how WARC and ARC files are called?"""
    return name.lower().removesuffix(".gz").removesuffix(".zst").endswith((".warc", ".arc"))


class FolderSource:
    """Files of a folder, each a source of its own; a WARC that an index of the folder names is not listed twice."""

    kind = Kind.FOLDER
    depth = Depth.DEEP

    def __init__(self, name: str, parts: Sequence[tuple[Path, Source]]) -> None:
        self.name = name
        self._parts = sorted(parts, key=lambda part: (not isinstance(part[1], IndexSource), str(part[0])))
        self.private = any(part.private for _, part in parts)
        self.kinds = tuple(dict.fromkeys(part.kind for _, part in self._parts))

    @property
    def tally(self) -> Tally:
        total = Tally()
        for _, part in self._parts:
            total.entries += part.tally.entries
            total.taken += part.tally.taken
            total.damaged += part.tally.damaged
            for kind, count in part.tally.others.items():
                total.others[kind] = total.others.get(kind, 0) + count
        return total

    def captures(self, wanted: Wanted, on_problem: Callable[[Problem], None]) -> Iterator[SourceCapture]:
        named: set[Path] = set()
        for number, (path, part) in enumerate(self._parts):
            if path in named:
                continue
            try:
                for capture in part.captures(wanted, on_problem):
                    yield capture._replace(place=f"{number}:{capture.place}")
            except (RecollectError, OSError) as error:
                on_problem(Problem(path.name, None, str(error)))
            if isinstance(part, IndexSource):
                named |= part.named

    def read(self, place: str) -> SourcePayload:
        number, mark, inner = place.partition(":")
        if not mark or not number.isdigit() or int(number) >= len(self._parts):
            raise FormatError("no such place", where=self.name)
        return self._parts[int(number)][1].read(inner)

    def seeds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(url for _, part in self._parts for url in part.seeds()))

    def close(self) -> None:
        for _, part in self._parts:
            part.close()
