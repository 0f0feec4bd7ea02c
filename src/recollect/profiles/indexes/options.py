"""How to profile: one frozen value for the library, the command and every engine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recollect.datetimes import format_iso
from recollect.errors import UsageError
from recollect.formats.forms import Asked
from recollect.formats.languages import DETECTORS
from recollect.maps.scope import Selection
from recollect.profiles.indexes.scan import PIECE
from recollect.profiles.indexes.select import selection
from recollect.uris import parse_policy

# What `by` takes -> its name in a map.
DIMENSIONS = {
    "year": "datetime",
    "month": "datetime",
    "status": "status",
    "media-type": "media_type",
    "language": "language",
}
OUTPUT_FORMATS = ("ukvs", "cdxj")


@dataclass(frozen=True, slots=True)
class ProfileOptions:
    """The options of `profile`, checked when it is made; raises UsageError for what cannot be meant.

    Any sequence, or one text, may be given where tuples are declared. `statuses` to `where` choose captures (see
    `select`), `by` is any of year, month, status, media-type and language. `detect_language` (py3langid or lingua)
    detects the language of texts in WARC and ARC files that have no Content-Language. `updated_at` goes into the header
    as it is; without it the header has no time. `input_format` and `columns` say what the inputs are where their
    content does not (see `forms`). A profile without captures is an error unless `allow_empty`.
    `compare_keys` looks at samples of lines for keys that are not those of their URLs, and notes them. `threads` and
    `memory_limit` (bytes) of None stand for what the machine has.
    """

    policy: str = "HxPx"
    output_format: str = "ukvs"
    statuses: tuple[str, ...] = ()
    media_types: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    exclude: tuple[str, ...] = ()
    where: str = ""
    by: tuple[str, ...] = ()
    by_columns: bool = False
    detect_language: str = ""
    all_schemes: bool = False
    allow_empty: bool = False
    compare_keys: bool = True
    input_format: str = ""
    columns: str = ""
    name: str = ""
    archive_id: str = ""
    updated_at: datetime | None = None
    strict: bool = False
    threads: int | None = None
    memory_limit: int | None = None
    temp_dir: str | None = None
    piece: int = PIECE

    def __post_init__(self) -> None:
        chosen = selection(
            statuses=self.statuses,
            media_types=self.media_types,
            since=self.since,
            until=self.until,
            exclude=self.exclude,
            where=self.where,
        )
        Asked.of(self.input_format, self.columns)
        by = tuple(_one_of(dimension, tuple(DIMENSIONS), "decomposition") for dimension in _listed(self.by))
        if self.detect_language:
            _one_of(self.detect_language, DETECTORS, "detector of languages")
            if "language" not in by:
                raise UsageError("a detected language is not used", hint="add --by language")
        if self.by_columns and not by:
            raise UsageError("no decomposition to put into columns", hint="add --by year, for example")
        if self.by_columns and self.output_format == "cdxj":
            raise UsageError("a CDXJ profile has one key column", hint="leave out --by-columns, or write UKVS")
        checked: dict[str, Any] = {
            "policy": parse_policy(self.policy).name,
            "output_format": _one_of(self.output_format, OUTPUT_FORMATS, "output format"),
            "statuses": chosen.statuses,
            "media_types": chosen.media_types,
            "since": chosen.since,
            "until": chosen.until,
            "exclude": chosen.exclude,
            "by": by,
            "temp_dir": None if self.temp_dir is None else os.fspath(self.temp_dir),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def chosen(self) -> Selection:
        """Which captures count."""
        return selection(
            statuses=self.statuses,
            media_types=self.media_types,
            since=self.since,
            until=self.until,
            exclude=self.exclude,
            where=self.where,
        )

    @property
    def asked(self) -> Asked:
        """What was said of the form of the inputs."""
        return Asked.of(self.input_format, self.columns)

    @property
    def workers(self) -> int:
        """Threads to parse with."""
        return self.threads or min(os.cpu_count() or 1, 8)

    @property
    def memory(self) -> int:
        """Bytes for sorting."""
        return self.memory_limit or quarter_of_memory()

    def as_meta(self) -> dict[str, str]:
        """What the header says of the archive: name, id, updated_at, if known."""
        updated = "" if self.updated_at is None else format_iso(self.updated_at)
        named = {"name": self.name, "id": self.archive_id, "updated_at": updated}
        return {key: value for key, value in named.items() if value}


def _listed(value: Iterable[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _one_of(value: str, known: Sequence[str], what: str) -> str:
    if value not in known:
        raise UsageError(f"no such {what}", where=repr(value), hint=f"one of {', '.join(known)}")
    return value


def quarter_of_memory() -> int:
    """A quarter of the machine's memory, in bytes."""
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) // 4
