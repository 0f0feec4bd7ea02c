"""The head of a map: what its columns are, whose holdings it lists, and how it was made.

Hides: the two spellings (`!` of UKVS, `@` of the CDXJ profiles before it), lenient JSON, and how repeated headers
merge.

Reading: a header is `!name value`, the value JSON (leniently read) or, if it is not JSON, plain text. Repeated headers
merge in the order of the file: objects key by key (the later wins), lists by adding what is new. `!fields` names the
columns; without it they are `surt` and `frequency`. Of the older spelling, `@id` is text, `@about` is `!meta`, and
`@keys` names the key columns; its records have no value columns, all is in their JSON.

Writing: strict JSON, one `!meta` line per entry, all lines in the order of bytes, so that `LC_ALL=C sort` leaves a
map as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from recollect.errors import FormatError
from recollect.formats.ukvs import lenient

CONTEXT = "http://oduwsdl.github.io/contexts/ukvs"
CDXJ_CONTEXT = "https://oduwsdl.github.io/contexts/archiveprofile.jsonld"
MEDIA_TYPE = "application/ukvs"


@dataclass(frozen=True, slots=True)
class Header:
    """What stands in front of a map's records. `style` is `cdxj` for profiles of the older kind."""

    keys: tuple[str, ...] = ("surt",)
    values: tuple[str, ...] = ("frequency",)
    context: tuple[Any, ...] = (CONTEXT,)
    id: Mapping[str, Any] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    other: Mapping[str, Any] = field(default_factory=dict)
    style: str = "ukvs"

    @property
    def policy(self) -> str:
        """The URI-Key policy of the keys; HxPx if the map does not say."""
        policy = self.meta.get("policy")
        kind = str(self.meta.get("type", ""))
        if policy is None and kind.startswith("urikey#"):
            policy = kind.removeprefix("urikey#")
        return str(policy) if policy else "HxPx"

    @property
    def lists_voids(self) -> bool:
        """Whether the map lists absences only, so that a key it lacks is unknown instead of absent."""
        return self.meta.get("scope") == "voids"

    @property
    def covers_all(self) -> bool:
        """Whether a line `*` covers every URI. In a map of another maker it is the archive's total (Alam et al. 2019,
        Figure 2), unless `!meta` says `covers_all`, or how the map was compacted."""
        stated = self.meta.get("covers_all")
        if isinstance(stated, bool):
            return stated
        ours = str(self.meta.get("generator", "")).startswith("recollect")
        return ours or any(name in self.meta for name in ("compaction", "merged", "scope", "scopes"))

    @property
    def is_complete(self) -> bool:
        """Whether a key that the map lacks is absent; in a map of voids or of a sample it is unknown."""
        return self.meta.get("scope") not in ("voids", "sample")

    def encode(self) -> bytes:
        """The header lines as they are written."""
        if self.style == "cdxj":
            return self._encode_cdxj()
        lines = [
            _line("!context", list(self.context)),
            _line("!fields", {"keys": list(self.keys), "values": list(self.values)}),
        ]
        if self.id:
            lines.append(_line("!id", dict(self.id)))
        lines += [_line("!meta", {name: value}) for name, value in self.meta.items()]
        lines += [_line(f"!{name}", value) for name, value in self.other.items()]
        return b"".join(sorted(lines))

    def _encode_cdxj(self) -> bytes:
        context = next((item for item in self.context if isinstance(item, str)), CDXJ_CONTEXT)
        lines = [f"@context {context}\n".encode()]
        if self.id:
            lines.append(f"@id {self.id.get('uri') or lenient.dumps(dict(self.id))}\n".encode())
        if self.keys != ("surt",):
            lines.append(_line("@keys", list(self.keys)))
        lines.append(_line("@about", dict(self.meta)))
        return b"".join(lines)


def _line(name: str, value: Any) -> bytes:
    return f"{name} {lenient.dumps(value)}\n".encode()


def parse(lines: Iterable[bytes]) -> Header:
    """The header of these header lines; raises FormatError at the first that is broken."""
    builder = Builder()
    for line in lines:
        builder.add(line)
    return builder.header()


class Builder:
    """Merges header lines, one by one."""

    def __init__(self) -> None:
        self._found: dict[str, Any] = {}
        self._old = False
        self.has_fields = False

    def add(self, line: bytes) -> None:
        """Take one header line; raises FormatError, and then the line has changed nothing."""
        try:
            text = line.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            raise FormatError("not UTF-8", why=f"{error.reason} at byte {error.start + 1}") from error
        mark, (name, *rest) = text[:1], (text[1:].split(None, 1) or [""])
        if not name:
            raise FormatError("bad header", why="no name after the " + mark)
        value = _value(rest[0] if rest else "", name)
        name = {"about": "meta"}.get(name, name) if mark == "@" else name
        if mark == "@" and name == "keys":
            name, value = "fields", {"keys": value}
        if name == "fields":
            self._check_fields(value)
        if name in ("meta", "id") and not isinstance(value, dict):
            value = {"uri": value} if name == "id" and isinstance(value, str) else {"value": value}
        self._old = self._old or mark == "@"
        self._found[name] = _merged(self._found[name], value) if name in self._found else value
        self.has_fields = self.has_fields or name == "fields"

    @staticmethod
    def _check_fields(value: Any) -> None:
        if not isinstance(value, dict):
            raise FormatError("bad header", why="!fields is not an object with keys and values")
        for part in ("keys", "values"):
            names = value.get(part, [])
            if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
                raise FormatError("bad header", why=f"the {part} of !fields are not a list of names")
        if value.get("keys") == []:
            raise FormatError("bad header", why="!fields has no keys")

    @property
    def any(self) -> bool:
        """Whether there was a header at all."""
        return bool(self._found)

    def header(self, first_record: bytes = b"") -> Header:
        """The header so far; where it names no value columns, the first record shows whether all is in its JSON."""
        found = dict(self._found)
        fields = found.pop("fields", {})
        context = found.pop("context", ())
        keys = tuple(fields.get("keys", ("surt",)))
        after_keys = first_record.split(None, len(keys))[len(keys) :]
        old = "values" not in fields and (after_keys[0].startswith(b"{") if after_keys else self._old)
        return Header(
            keys=keys,
            values=tuple(fields.get("values", () if old else ("frequency",))),
            context=tuple(context) if isinstance(context, list) else (context,) if context else (),
            id=found.pop("id", {}),
            meta=found.pop("meta", {}),
            other=found,
            style="cdxj" if old else "ukvs",
        )


def _value(text: str, name: str) -> Any:
    if text[:1] in ("{", "[", '"'):
        try:
            return lenient.loads(text)
        except FormatError as error:
            raise FormatError("bad header", where=name, why=str(error)) from error
    try:
        return lenient.loads(text)
    except FormatError:
        return text


def _merged(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **new}
    if isinstance(old, list) and isinstance(new, list):
        return [*old, *(item for item in new if item not in old)]
    return new
