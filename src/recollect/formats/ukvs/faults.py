"""What is wrong with a map, line by line.

Hides: the fast way (a whole piece of plainly good lines is passed by one regular expression and one comparison of
neighbours) and the slow way, which names what the fast way did not like. An *error* breaks the format, or hides a
record from readers or searches; a *note* has no effect on readers. Constant memory: a key that comes twice
is found where its lines are neighbours, as they are in a sorted map.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator
from itertools import islice
from operator import lt
from pathlib import Path
from typing import Literal, NamedTuple

from recollect.errors import BadURI, FormatError
from recollect.formats.containers import BOM, open_input, whole_lines
from recollect.formats.frequency import parse_token
from recollect.formats.ukvs import lenient
from recollect.formats.ukvs.header import Builder, Header
from recollect.formats.ukvs.periods import Period
from recollect.formats.ukvs.records import inner_frequency, shown, split
from recollect.formats.ukvs.setblocks import other_versions, set_fault
from recollect.model import Problem, Progress, ProgressCallback
from recollect.uris import uri_key

_SEGMENT = rb"[!\"$-)+-.0->@\[-~]+"
_HOST = rb"[a-z0-9][a-z0-9_,-]*[a-z0-9_-]"
_GOOD_KEY = rb"%b(?:\)/(?:(?:%b/)*%b(?:/\*)?|\*)?|,\*)" % (_HOST, _SEGMENT, _SEGMENT)
_COUNT = rb"(0|[1-9]\d{0,17})"
_GOOD = re.compile(rb"^(%b) %b[-+~]?(?:/(?:%b[-+~]?)?)?$" % (_GOOD_KEY, _COUNT, _COUNT), re.MULTILINE)
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
_SURT_COLUMNS = frozenset(("surt", "surt_uri"))
_HINT_SORT = "sort it with `LC_ALL=C sort`"


class Fault(NamedTuple):
    """One fault; `line` is None if it is of the file as a whole."""

    line: int | None
    level: Literal["error", "note"]
    code: str
    reason: str
    excerpt: str = ""


def validate(path: str | os.PathLike[str], progress: ProgressCallback | None = None) -> Iterator[Fault]:
    """Every fault of a map in any container (`-` is stdin), in the order of its lines."""
    check = _Check()
    problems: list[Problem] = []
    size = Path(path).stat().st_size if Path(path).is_file() else None
    with open_input(path, problems.append) as stream:
        ended = True
        for piece in whole_lines(stream, problems.append):
            ended = piece.endswith(b"\n")
            yield from check.piece(piece)
            if progress is not None:
                progress(Progress("validating", stream.consumed, size, "bytes"))
    for problem in problems:
        yield Fault(None, "error", "damaged", problem.reason, problem.excerpt)
    yield from check.end(ended)


class _Check:
    """Goes through a map piece by piece."""

    def __init__(self) -> None:
        self._builder = Builder()
        self._header: Header | None = None
        self._simple = False
        self._line = 1
        self._key = b""
        self._group: set[tuple[bytes, ...]] = set()
        self._more: tuple[bytes, ...] = ()
        self._once: set[str] = set()

    def piece(self, piece: bytes) -> Iterator[Fault]:
        if self._header is None:
            at = yield from self._head(piece)
            piece = piece[at:]
        if not piece or self._good(piece):
            return
        for line in piece.removesuffix(b"\n").split(b"\n"):
            yield from self._record(line)
            self._line += 1

    def end(self, ended: bool) -> Iterator[Fault]:
        if self._header is None and not self._builder.any:
            yield Fault(None, "error", "empty-file", "neither headers nor records")
        elif not ended:
            yield Fault(self._line - 1, "note", "no-final-newline", "the last line has no newline")

    def _head(self, piece: bytes) -> Generator[Fault, None, int]:
        """Go through header lines; returns where the records start."""
        at = 0
        if self._line == 1 and piece.startswith(BOM):
            yield Fault(1, "error", "byte-order-mark", "a byte-order mark before the first header")
            at = len(BOM)
        while at < len(piece):
            end = piece.find(b"\n", at) + 1 or len(piece)
            raw = piece[at:end].removesuffix(b"\n")
            line = raw.strip()
            if line[:1] not in (b"", b"!", b"@", b"#"):
                yield from self._columns(line)
                return at
            yield from self._spacing(raw)
            if line[:1] in (b"!", b"@"):
                try:
                    self._builder.add(line)
                except FormatError as error:
                    yield self._fault("bad-header", str(error), line)
            at = end
            self._line += 1
        return at

    def _columns(self, line: bytes) -> Iterator[Fault]:
        self._header = header = self._builder.header(line)
        self._simple = header.keys == ("surt",) and header.values == ("frequency",) and header.policy != "URIR"
        if not self._builder.has_fields:
            columns = ", ".join((*header.keys, *header.values)) + ("" if header.values else " and JSON")
            yield Fault(None, "note", "no-fields", f"no !fields header; the columns are taken to be {columns}")

    def _good(self, piece: bytes) -> bool:
        """Whether all lines of a piece are plainly good; then they are passed."""
        if not self._simple:
            return False
        rows = _GOOD.findall(piece)
        if len(rows) != piece.count(b"\n") + (not piece.endswith(b"\n")):
            return False
        keys = [row[0] for row in rows]
        if self._key >= keys[0] or not all(map(lt, keys, islice(keys, 1, None))):
            return False
        if any(len(r) >= len(m) and int(r) > int(m) > 0 for _, m, r in rows if r):
            return False
        self._key, self._more, self._group = keys[-1], (), {()}
        self._line += len(rows)
        return True

    def _record(self, raw: bytes) -> Iterator[Fault]:
        assert self._header is not None
        line = raw.strip()
        if not line:
            yield self._fault("empty-line", "an empty line between records, where searches would stop", b"")
            return
        yield from self._spacing(raw)
        if line[:1] in (b"!", b"@"):
            yield self._fault("header-after-data", "header after data: it is not read there", line)
            return
        if line[:1] == b"#":
            yield self._fault("comment-after-data", "comment after data: comments stand before the first record", line)
            return
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            yield self._fault("not-utf-8", f"not UTF-8: {error.reason} at byte {error.start + 1}", line)
        try:
            tokens, block = split(line, len(self._header.keys) + len(self._header.values))
        except FormatError as error:
            yield self._fault(error.what.replace(" ", "-"), str(error), line)
            return
        yield from self._order(tokens, line)
        yield from self._keys(tokens, line)
        yield from self._values(tokens, block, line)

    def _spacing(self, raw: bytes) -> Iterator[Fault]:
        if raw[:1] in (b" ", b"\t"):
            yield self._fault("leading-space", "white space before the first word, where searches would miss it", raw)
        if raw.endswith(b"\r") and "carriage-return" not in self._once:
            self._once.add("carriage-return")
            yield self._fault(
                "carriage-return", "lines end with CR LF; LF is enough (reported once)", b"", level="note"
            )

    def _order(self, tokens: list[bytes], line: bytes) -> Iterator[Fault]:
        assert self._header is not None
        key, more = tokens[0], tuple(tokens[1 : len(self._header.keys)])
        if key != self._key:
            if key < self._key:
                why = f"unsorted: comes after {shown(self._key)}; {_HINT_SORT}"
                yield self._fault("unsorted", why, line)
            self._group.clear()
        elif more in self._group:
            yield self._fault("duplicate-key", "duplicate key", line)
        elif more < self._more and not any(b":" in token for token in (*more, *self._more)):
            yield self._fault("unsorted", f"unsorted: the further keys are below the line before; {_HINT_SORT}", line)
        self._key, self._more = key, more
        self._group.add(more)

    def _keys(self, tokens: list[bytes], line: bytes) -> Iterator[Fault]:
        assert self._header is not None
        for name, token in zip(self._header.keys, tokens, strict=False):
            if name in _SURT_COLUMNS:
                fault = key_fault(token, self._header.policy)
                # A map of all schemes says so, and has keys such as dns:example.com.
                foreign = b")" not in token and self._header.meta.get("all_schemes") is True
                if fault is not None and not (foreign and fault[0] == "bad-key"):
                    code, level, reason = fault
                    yield self._fault(code, reason, line, level=level)
            elif _CONTROL.search(token):
                yield self._fault("bad-key", f"a control character in {name}", line)
            elif name == "datetime" and token != b"?":
                try:
                    Period.parse(token)
                except FormatError as error:
                    yield self._fault("bad-datetime", str(error), line)

    def _values(self, tokens: list[bytes], block: bytes, line: bytes) -> Iterator[Fault]:
        assert self._header is not None
        try:
            found = lenient.loads(block) if block else {}
            if not isinstance(found, dict):
                raise FormatError("bad JSON", why="not an object")
            if "set" in found:
                if reason := set_fault(found["set"], tokens[0]):
                    yield self._fault("bad-set", reason, line)
                for version in other_versions(found["set"]):
                    yield self._fault("other-set", f"a set of version {version}", line, level="note")
        except FormatError as error:
            yield self._fault("bad-json", str(error), block)
            return
        try:
            if "frequency" in self._header.values:
                token = tokens[len(self._header.keys) + self._header.values.index("frequency")]
                yield from self._frequency(token, line)
            elif block:
                inner_frequency(block)
        except FormatError as error:
            yield self._fault("bad-frequency", str(error), line)

    def _frequency(self, token: bytes, line: bytes) -> Iterator[Fault]:
        frequency = parse_token(token)
        m, r = frequency.uri_m, frequency.uri_r
        if m.value and r.value and r.value > m.value and m.bound in ("", "-") and r.bound in ("", "+"):
            yield self._fault("more-uri-r", f"{token.decode()}: more URI-Rs than URI-Ms", line, level="note")
        if token.decode() not in (str(frequency), f"{frequency}/"):
            reason = f"{token.decode()} is better written {frequency}"
            yield self._fault("odd-frequency", reason, line, level="note")

    def _fault(self, code: str, reason: str, line: bytes, *, level: Literal["error", "note"] = "error") -> Fault:
        return Fault(self._line, level, code, reason, shown(line))


def key_fault(key: bytes, policy: str = "HxPx") -> tuple[str, Literal["error", "note"], str] | None:
    """What is wrong with a SURT key: code, level and reason; None if it is in normal form."""
    if key == b"*":
        return None
    stem = key[:-2] if key.endswith((b"/*", b",*")) else key
    if b"*" in stem:
        return "literal-star", "error", "literal * in a key, which is not a wildcard there; it is written %2a"
    if _CONTROL.search(key):
        return "bad-key", "error", "bad key: a control character; it is written as % and two hex digits"
    if key.startswith(b'"'):
        return "bad-key", "error", "bad key: a key in quotes is never found; leave the quotes out"
    surt = stem + b")/" if key.endswith(b",*") else stem
    if b"?" in surt and policy == "URIR":
        surt = surt.partition(b"?")[0]
    elif b"?" in surt or b"#" in surt:
        return "bad-key", "error", "bad key: a query or fragment, which lookups cut off"
    try:
        normal = uri_key(surt)
    except BadURI as error:
        return "bad-key", "error", f"bad key: {error.why}; a key is like com,example)/path"
    if surt.startswith(b"(") or b"://" in surt.partition(b")")[0]:
        return "bad-key", "error", f"bad key: it has a scheme; {shown(normal)} is looked for"
    if normal in (surt, surt + b"/"):
        # The reference program writes it so; lookups find it.
        return None if normal == surt or stem != key else ("no-slash", "note", "no / after the host; we write it")
    if surt.endswith(b"/") and normal == surt.rstrip(b"/"):
        return "trailing-slash", "note", "a trailing slash; we write keys without"
    return "not-normal", "note", f"not in normal form, which is {shown(normal)}"
