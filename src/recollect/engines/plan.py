"""Plans: how an operation on maps is shared out, whatever engine runs it.

A plan has three parts. **Split**: maps are cut into ranges of hosts between which nothing depends on anything; `depth`
says how deep in hosts the borders may lie. **Work**: the lines of one range, from the maps of the range in files, and a
note about them. **Combine**: the header of the map and the result, from the notes of all ranges. A plan may have a
survey first, whose sum over all ranges the work needs. Nothing here knows an engine; the class of an engine runs any
plan (`engines.spark.engine`), and an engine on one machine needs none: it calls the operation itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from recollect.formats.ukvs import Header
from recollect.model import Problem

# How deep in the host a border lies: a domain, a top-level domain, or nowhere.
DOMAIN, TOP, NOWHERE = 2, 1, 0
CHUNK = 1 << 20
Result = TypeVar("Result", covariant=True)


class InputMap(Protocol):
    """What a plan sees of a map."""

    @property
    def name(self) -> str: ...
    @property
    def header(self) -> Header: ...
    @property
    def size(self) -> int: ...


@dataclass(slots=True)
class Range:
    """The note of a range: keys, bytes, first and last key, and lines of keys that other ranges also have a share of.
    `counts` are further sums and `problems` what could not be read, for the operations that have them."""

    keys: int = 0
    size: int = 0
    first: bytes = b""
    last: bytes = b""
    captures: int = 0
    uri_rs: int = 0
    seams: list[bytes] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def saw(self, text: bytes) -> None:
        """Take note of lines that are written."""
        self.first = self.first or text.split(None, 1)[0]
        self.last = text[text.rfind(b"\n", 0, -1) + 1 :].split(None, 1)[0]
        self.size += len(text)

    def as_json(self) -> dict[str, Any]:
        """The note as JSON has it; bytes become text of the same length (Latin-1)."""
        values = asdict(self)
        values["first"], values["last"] = self.first.decode("latin-1"), self.last.decode("latin-1")
        values["seams"] = [line.decode("latin-1") for line in self.seams]
        return values

    @classmethod
    def of_json(cls, values: dict[str, Any]) -> Range:
        """The note that JSON has; raises TypeError, KeyError or ValueError if it is none."""
        note = cls(**values)
        note.first, note.last = values["first"].encode("latin-1"), values["last"].encode("latin-1")
        note.seams = [line.encode("latin-1") for line in values["seams"]]
        note.problems = [Problem(**problem) for problem in values["problems"]]
        return note


# The lines of a range, from one file for each map; `note` gets its keys, counts and problems. Engines send it to tasks.
Work = Callable[[Sequence[str], Range], Iterator[bytes]]
# What a survey finds in a range; sums of arrays.
Survey = Callable[[Sequence[str]], Any]


class MapPlan(Protocol, Generic[Result]):
    """An operation that makes a map of maps."""

    @property
    def name(self) -> str:
        """Of the operation; with `options` and the stamps of inputs it identifies the work."""

    @property
    def stage(self) -> str:
        """For progress."""

    @property
    def sources(self) -> Sequence[str]:
        """The maps, in their order."""

    def options(self) -> Mapping[str, object]:
        """What changes the lines, as plain values."""

    def check(self, maps: Sequence[InputMap]) -> None:
        """Raise if the maps are none for this operation."""

    def depth(self, widest: int) -> int:
        """How deep borders may lie, given the depth of the widest wildcard."""

    def survey(self, maps: Sequence[InputMap]) -> Survey | None:
        """The survey, if one is needed."""

    def surveyed(self, total: Any) -> dict[str, Any]:
        """What the work needs of the sum of all surveys (None without one), as JSON has it."""

    def work(self, maps: Sequence[InputMap], found: Mapping[str, Any]) -> Work:
        """The work, given what was surveyed."""

    def combine(
        self, maps: Sequence[InputMap], found: Mapping[str, Any], ranges: Mapping[int, Range], size: int
    ) -> tuple[bytes, Result]:
        """The header of the map, and the result; `size` is the bytes of all maps."""


def in_chunks(texts: Iterable[bytes]) -> Iterator[bytes]:
    """Texts of whole lines joined to chunks of about a megabyte."""
    held: list[bytes] = []
    size = 0
    for text in texts:
        held.append(text)
        size += len(text)
        if size >= CHUNK:
            yield b"".join(held)
            held, size = [], 0
    if size:
        yield b"".join(held)


def without_header(text: bytes) -> bytes:
    """Lines from the first one that is not a header."""
    at = 3 if text.startswith(b"\xef\xbb\xbf") else 0
    while at < len(text) and text[at : at + 1] in (b"!", b"@", b"#", b"\n", b"\r"):
        at = text.index(b"\n", at) + 1
    return text[at:]
