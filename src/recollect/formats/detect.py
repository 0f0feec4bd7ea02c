"""What an input is, by its content: the kinds of files that list the holdings of an archive, and where they are.

Hides: names and suffixes, which lie; folders and globs; ZipNum clusters (a `.idx` that names compressed shards); the
difference between nine kinds of text. A file is judged by its first lines, by majority, so one broken line at the top,
however long, does not mislead.

Invariants: sources come in the order they were named, folders sorted by name, no file twice; a ZipNum index stands for
its shards; nothing is read beyond the head of a file.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from recollect.errors import FormatError, UsageError
from recollect.formats.cdx import Layout, parse_layout, usual_layout
from recollect.formats.cells import is_epoch, is_time
from recollect.formats.containers import BOM, InputStream, open_input
from recollect.formats.forms import Asked, Form, Style, looks_like_uri
from recollect.formats.parts import is_parted, parted_size
from recollect.model import Problem
from recollect.uris import is_surt

HEAD = 1 << 16
SAMPLE = 40
_USUAL_LAYOUT = Layout()
_SHARD_SUFFIXES = (".gz", ".cdx.gz", ".cdxj.gz")
_TIME = re.compile(r"\d{4,20}", re.ASCII)
_CDXJ_TIME = re.compile(r"\d{4,20}|\d{4}-\d\d-\d\dT[\d:.]+Z", re.ASCII)
_BLOCK = re.compile(r"(?:[a-z]+\s+)?\{")
_FREQUENCY = re.compile(r"(?:\d+[-+~]?)?(?:/(?:\d+[-+~]?)?)?", re.ASCII)


class Kind(StrEnum):
    """What a file holds."""

    CDX = "CDX"
    CDXJ = "CDXJ"
    SURTS = "SURT list"
    URLS = "URL list"
    LOG = "access log"
    TABLE = "table of URLs"
    WARC = "WARC"
    ARC = "ARC"
    WACZ = "WACZ"
    PARQUET = "Parquet"
    TIMEMAP = "TimeMap"
    MAP = "map"
    PROFILE = "CDXJ profile"
    ZIPNUM = "ZipNum index"
    EMPTY = "empty"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Source:
    """One input file (`-` is stdin) and what it is; `container` is plain, gzip, bzip2, zstd or blocks (see `zipnum`).

    `stream` is open for what can be read only once: stdin and pipes. `name` is what people call it, where that is not
    its path. `form` is that of a list, log or table; `what` describes a file of no known kind.
    """

    path: str
    kind: Kind
    container: str = "plain"
    size: int | None = None
    layout: Layout = _USUAL_LAYOUT
    stream: InputStream | None = None
    name: str = ""
    form: Form | None = None
    what: str = ""

    @property
    def label(self) -> str:
        """What people call it."""
        return self.name or ("<stdin>" if self.path == "-" else self.path)


INDEXES = (Kind.CDXJ, Kind.WARC, Kind.ARC, Kind.WACZ, Kind.PARQUET)
# What is not read from its beginning to its end.
_NEEDS_A_FILE = (Kind.PARQUET, Kind.WACZ, Kind.MAP, Kind.PROFILE)
_TELLING = (Kind.CDX, Kind.CDXJ, Kind.ZIPNUM)
# Kinds that only all lines together can distinguish; see `forms`.
_LISTS = (Kind.URLS, Kind.LOG)
_KINDS_ASKED = {
    "cdx": Kind.CDX,
    "cdxj": Kind.CDXJ,
    "warc": Kind.WARC,
    "arc": Kind.ARC,
    "wacz": Kind.WACZ,
    "parquet": Kind.PARQUET,
    "timemap": Kind.TIMEMAP,
    "map": Kind.MAP,
}


def find_sources(
    paths: Iterable[str | os.PathLike[str]],
    on_problem: Callable[[Problem], None] | None = None,
    *,
    asked: Asked | None = None,
    on_ignored: Callable[[Problem], None] | None = None,
) -> list[Source]:
    """The files of these names, each with its kind, or the kind that was `asked` for.

    Shards that a ZipNum index names but that are not there go to `on_problem`, or raise. Files that are of no known
    kind (what lies beside indexes: a README, checksums) go to `on_ignored`, or else to `on_problem`.
    """
    found: dict[str, Source] = {}
    for name in files_of(paths):
        for source in _resolved(name, on_problem, on_ignored or on_problem, asked or Asked()):
            identity = source.path if source.path == "-" else os.path.realpath(source.path)
            found.setdefault(identity, source)
    return list(found.values())


def files_of(paths: Iterable[str | os.PathLike[str]]) -> Iterator[str]:
    """The files that are named, are in folders, or match globs; raises UsageError for a name that means none."""
    for given in paths:
        name = os.fspath(given)
        if name == "-" or Path(name).is_file() or Path(name).is_fifo() or is_parted(Path(name)):
            yield name
        elif Path(name).is_dir():
            yield from _in_folder(name)
        elif glob.has_magic(name) and (matches := sorted(glob.glob(name, recursive=True))):  # noqa: PTH207 - as typed, perhaps absolute
            for match in matches:
                yield from _in_folder(match) if Path(match).is_dir() else [match]
        else:
            raise UsageError(
                "no such file", where=name, hint="check the path; quote globs to let recollect expand them"
            )


def _in_folder(folder: str) -> Iterator[str]:
    names = [
        os.path.join(where, file)  # noqa: PTH118 - os.walk's strings
        for where, files in _walked(folder)
        for file in files
        if not file.startswith(".") and not (file.endswith(".loc") and _has_index(files))
    ]
    if not names:
        raise UsageError("an empty folder", where=folder, hint="name a folder with index files in it")
    yield from sorted(names, key=os.fsencode)


def _walked(folder: str) -> Iterator[tuple[str, list[str]]]:
    """Each folder below one with the names of its files; folders that are hidden (`.git`, `.recollect`) are not."""
    for where, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield where, files


def _has_index(files: list[str]) -> bool:
    """Whether a folder has a ZipNum index, whose `.loc` files contain places and no URLs."""
    return any(file.endswith(".idx") for file in files)


def _resolved(
    name: str,
    on_problem: Callable[[Problem], None] | None,
    on_ignored: Callable[[Problem], None] | None,
    asked: Asked,
) -> list[Source]:
    source = inspect(name, asked)
    if source.kind is Kind.UNKNOWN:
        hint = f"recollect inspect {name}, or say what it is: --input-format, --columns time,url"
        return _refused(Problem(source.label, None, source.what), on_ignored, hint)
    if source.kind is not Kind.ZIPNUM:
        return [source]
    shards = []
    for shard, path in _shards(name):
        if path is None:
            problem = Problem(name, None, f"its shard {shard!r} is not beside it")
            _refused(problem, on_problem, "put the shards in the folder of the .idx file, or name them in a .loc file")
        else:
            shards.append(inspect(path, asked))
    return shards


def _refused(problem: Problem, on_problem: Callable[[Problem], None] | None, hint: str) -> list[Source]:
    if on_problem is None:
        raise FormatError("cannot use a file", where=problem.file, why=problem.reason, hint=hint)
    on_problem(problem)
    return []


def not_a_map(path: str) -> str:
    """What a file is that is certainly not a map, as text; empty for maps, also broken ones, and for unknown files."""
    if not Path(path).is_file():
        return ""
    source = inspect(path)
    with open_input(path, lambda _damage: None) as stream:
        head = stream.preview(HEAD, SAMPLE)
    lines = _sample(head)
    if source.kind in (Kind.MAP, Kind.PROFILE, Kind.EMPTY):
        return ""
    if source.kind is Kind.UNKNOWN and _is_document(head):  # some of its lines may look like those of a map
        return source.what
    if any(line[0] in "!@" for line in lines):
        return ""
    if source.kind in (Kind.UNKNOWN, *_LISTS, Kind.SURTS, Kind.TABLE) and any(map(_is_record, lines)):
        return ""
    if source.kind is Kind.CDX and len(source.layout.letters) < 9 and not source.layout.from_header:
        return ""
    return source.what or f"it is a file of another kind ({source.kind}); see `recollect inspect {path}`"


def _is_document(head: bytes) -> bool:
    """Whether this is binary data, JSON or markup; keys begin with none of these, but for IPv6 addresses."""
    from recollect.formats.unsupported import is_binary

    return is_binary(head) or bool(re.match(rb"\s*(?:[{<]|\[\s*[\[{\"])", head))


def _is_record(line: str) -> bool:
    """Whether a line could be one of a map: a key and a frequency, or a JSON block."""
    words = line.split(None, 2)
    return len(words) >= 2 and bool(_FREQUENCY.fullmatch(words[1]) or words[1].startswith("{"))


@contextmanager
def on_disk(
    sources: Iterable[Source], temp_dir: str | os.PathLike[str] | None, on_problem: Callable[[Problem], None]
) -> Iterator[list[Source]]:
    """The sources; what came through a pipe but cannot be read from one is in a temporary file meanwhile."""
    with ExitStack() as stack:
        settled = []
        for source in sources:
            if source.stream is not None and source.kind in _NEEDS_A_FILE:
                file = stack.enter_context(tempfile.NamedTemporaryFile(dir=temp_dir, prefix="recollect-"))
                with source.stream as stream:
                    shutil.copyfileobj(stream, file, 1 << 20)
                file.flush()
                for why in (stream.damage, stream.flaw):
                    if why:
                        on_problem(Problem(source.label, None, why))
                size = os.fstat(file.fileno()).st_size
                source = replace(source, path=file.name, name=source.label, stream=None, container="plain", size=size)
            settled.append(source)
        yield settled


def inspect(path: str, asked: Asked | None = None) -> Source:
    """The kind of one file, or the one that was `asked` for."""
    if path == "-" or Path(path).is_fifo():
        stream = open_input(path, lambda _damage: None)
        return replace(inspect_stream(stream, path, asked=asked), stream=stream)
    if is_parted(Path(path)):
        with open_input(path) as stream:
            return inspect_stream(stream, path, parted_size(Path(path)))
    size = Path(path).stat().st_size
    with open_input(path, lambda _damage: None) as stream:
        source = inspect_stream(stream, path, size, asked)
    # What few files need is imported for them.
    if source.container == "gzip" and source.kind in (Kind.CDX, Kind.CDXJ):
        from recollect.formats.zipnum import lacks_newlines

        return replace(source, container="blocks") if lacks_newlines(path) else source
    if source.kind is Kind.WACZ:
        from recollect.formats.unsupported import describe
        from recollect.formats.warc import is_other_zip

        if is_other_zip(path):
            return replace(source, kind=Kind.UNKNOWN, what=describe(b"PK\x03\x04", []))
    return source


def inspect_stream(stream: InputStream, path: str, size: int | None = None, asked: Asked | None = None) -> Source:
    """The kind of what an open stream holds, without taking anything out of it."""
    head = stream.preview(HEAD, SAMPLE)
    asked = asked or Asked()
    kind, layout = kind_of_text(head) if not asked.is_lookups else (Kind.UNKNOWN, Layout())
    if asked.format and not asked.is_lookups:
        kind = _KINDS_ASKED[asked.format]
        layout = layout if layout != Layout() else _vote(_sample(head))[1]
        return Source(path, kind, stream.kind, size, layout)
    if kind is Kind.MAP and b'"n_' in head:  # a line of cdx-summarize looks like one of a map
        from recollect.formats.summaries import kind_of_summary
        from recollect.formats.unsupported import describe

        if kind_of_summary(head[:HEAD].decode("utf-8", "replace")) is not None:
            return Source(path, Kind.UNKNOWN, stream.kind, size, what=describe(head, []))
    if kind not in (Kind.UNKNOWN, *_LISTS):
        return Source(path, kind, stream.kind, size, layout)
    from recollect.formats.logs import SAMPLE_BYTES, sample_lines
    from recollect.formats.unsupported import describe, is_binary, is_checksums, is_locations

    lines = _sample(head)
    if not asked.is_lookups and (is_checksums(lines) or is_locations(lines)):
        return Source(path, Kind.UNKNOWN, stream.kind, size, what=describe(head, lines))
    form = asked.form(sample_lines(stream.preview(SAMPLE_BYTES)) or lines)
    if form is None or (not asked.is_lookups and is_binary(head)):
        return Source(path, Kind.UNKNOWN, stream.kind, size, what=describe(head, lines))
    if form.style is Style.LIST:
        surts = sum(is_surt(line) for line in lines)
        kind = Kind.SURTS if 2 * surts > len(lines) else Kind.URLS
    else:
        kind = Kind.LOG if form.style is Style.LOG else Kind.TABLE
    return Source(path, kind, stream.kind, size, form=form)


def kind_of_text(head: bytes) -> tuple[Kind, Layout]:
    """The kind of content that begins so, and for CDX its layout."""
    head = head.removeprefix(BOM)
    if head.startswith(b"PAR1"):
        return Kind.PARQUET, Layout()
    if head.startswith(b"PK\x03\x04"):
        return Kind.WACZ, Layout()
    if head.startswith(b"WARC/"):
        return Kind.WARC, Layout()
    if head.startswith(b"filedesc:"):
        return Kind.ARC, Layout()
    if not head.strip():
        return Kind.EMPTY, Layout()
    whole = _kind_of_document(head[:HEAD].decode("utf-8", "surrogateescape"))
    if whole is not None:
        return whole, Layout()
    lines = _sample(head)
    layout = next((found for line in lines if (found := parse_layout(line)) is not None), None)
    if layout is not None:
        return Kind.CDX, layout
    return _vote(lines)


def _sample(head: bytes) -> list[str]:
    """The first lines of a file; the last of a long head may be incomplete, and says nothing where there are others."""
    text = head.removeprefix(BOM).decode("utf-8", "surrogateescape")
    lines = [line for line in text.splitlines()[: SAMPLE + 1] if line.strip()]
    if len(lines) > 1 and len(head) >= HEAD // 2 and not text.endswith("\n"):
        lines.pop()
    # One line that is longer than all that are looked at says less than any other.
    usual = [line for line in lines if len(line) <= HEAD]
    return usual or [line[:HEAD] for line in lines]


def _kind_of_document(text: str) -> Kind | None:
    """Kinds that are one document: TimeMaps; and those with a distinct header."""
    start = text.lstrip()[:4000]
    if re.match(r"<[^<>]*>\s*;", start) and re.search(r"\brel\s*=", start):
        return Kind.TIMEMAP
    if start.startswith(("{", "[")) and re.search(r'"(?:original_uri|mementos|timemap_uri)"\s*:', start):
        return Kind.TIMEMAP
    headers = [line for line in start.splitlines() if line[:1] in ("!", "@")]
    if any("memento_datetime" in line or '"original_uri"' in line for line in headers):
        return Kind.TIMEMAP
    if any("archiveprofile" in line or '"urikey#' in line for line in headers):
        return Kind.PROFILE
    if any(line.startswith(("!fields", "@fields")) and "frequency" in line for line in headers):
        return Kind.MAP
    return None


def _vote(lines: list[str]) -> tuple[Kind, Layout]:
    votes = Counter(_kind_of_line(line) for line in lines if line[0] not in "!@#")
    votes.pop((Kind.UNKNOWN, None), None)
    if not votes:
        return Kind.UNKNOWN, Layout()
    # A line with many matching parts is better evidence than a line with one word.
    (kind, layout), _ = max(votes.items(), key=lambda item: item[1] * (4 if item[0][0] in _TELLING else 1))
    return kind, layout or Layout()


def _kind_of_line(line: str) -> tuple[Kind, Layout | None]:
    cells = line.split("\t")
    if len(cells) >= 4 and cells[2].isdigit() and cells[3].isdigit() and len(cells[0].split()) <= 2:
        return Kind.ZIPNUM, None
    words = line.split(None, 2)
    if line.startswith("{"):
        return (Kind.CDXJ if '"urlkey"' in line and '"timestamp"' in line else Kind.LOG), None
    if len(words) >= 3 and _CDXJ_TIME.fullmatch(words[1]) and _BLOCK.match(words[2]):
        return Kind.CDXJ, None
    if len(words) >= 2 and words[1].startswith("{"):
        return (
            Kind.TIMEMAP if _TIME.fullmatch(words[0]) else Kind.PROFILE if '"frequency"' in line else Kind.MAP
        ), None
    for delimiter in (" ", "\t"):
        layout = _layout_of(line.split(delimiter), delimiter)
        if layout is not None:
            return Kind.CDX, layout
    if len(words) == 2 and _FREQUENCY.fullmatch(words[1]) and re.search(r"[),*]", words[0]):
        return Kind.MAP, None
    return Kind.URLS, None  # or any list, log or table, or none; all lines together decide


def _layout_of(fields: list[str], delimiter: str) -> Layout | None:
    """The layout of a CDX line without header; fewer fields than usual are the first of the usual ones."""
    if len(fields) < 2 or not _TIME.fullmatch(fields[1]) or not re.search(r"[.),]", fields[0]):
        return None
    usual = usual_layout(len(fields), delimiter)
    if usual is not None or len(fields) >= 9:
        return usual
    # With few fields a number may as well be a frequency, an epoch or an identifier, and what is after it anything.
    if len(fields[1]) < 8 or not is_time(fields[1]) or is_epoch(fields[1]):
        return None
    if len(fields) > 2 and not looks_like_uri(fields[2]) and (fields[2].isdigit() or not is_surt(fields[0])):
        return None
    return Layout("NbamskrM"[: len(fields)], delimiter)


def _shards(index: str) -> Iterator[tuple[str, str | None]]:
    """(name, path or None) of each shard that a ZipNum index names, in order."""
    named: dict[str, None] = {}
    with open_input(index) as stream:
        for raw in stream:
            cells = raw.rstrip(b"\r\n").split(b"\t")
            if len(cells) >= 4:
                named.setdefault(os.fsdecode(cells[1]))
    places = _locations(Path(index).parent)
    for shard in named:
        yield shard, _shard_path(shard, Path(index), places.get(shard, []), alone=len(named) == 1)


def beside_index(name: str) -> Iterator[str]:
    """What a ZipNum index needs besides itself: its shards, and the `.loc` files that say where they are."""
    if inspect(name).kind is Kind.ZIPNUM:
        yield from (path for _, path in _shards(name) if path is not None)
        yield from map(str, Path(name).parent.glob("*.loc"))


def _locations(folder: Path) -> dict[str, list[str]]:
    """What `.loc` files say: shard, then its places, separated by tabs."""
    places: dict[str, list[str]] = {}
    for file in folder.glob("*.loc"):
        for line in file.read_text("utf-8", "surrogateescape").splitlines():
            name, *paths = line.split("\t")
            places.setdefault(name, []).extend(paths)
    return places


def _shard_path(shard: str, index: Path, places: list[str], *, alone: bool) -> str | None:
    # What is relative is relative to the folder of the index.
    candidates = [index.parent / place for place in places]
    candidates += [index.parent / (shard + suffix) for suffix in ("", *_SHARD_SUFFIXES)]
    if alone:  # beside an index of the same name, as small clusters have it
        candidates += [index.with_suffix(suffix) for suffix in _SHARD_SUFFIXES]
    return next((str(path) for path in candidates if path.is_file()), None)
