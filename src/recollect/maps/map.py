"""`Map`: one open map, in whichever form it comes.

Hides: the containers of a map (plain, BGZF, seekable zstd, a folder of parts, pages, a filter), and which reader each
needs. `Map.open` opens any of them; the methods are those of a Python collection of records.

    with Map.open("archive.ukvs.zst") as m:
        "http://example.com/" in m          # whether the answer is "yes"
        m.lookup("http://example.com/")     # the answer, the deciding key, its frequency, and why it is unknown
        m.scope.complete_until
        len(m), list(m)                     # number of records, and the records in the order of bytes
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import datetime

from recollect.errors import FormatError
from recollect.formats.ukvs import Header, MapFile, Record
from recollect.formats.ukvs.periods import Period
from recollect.maps.lookup import Holdings, Lookup, open_map, period_of
from recollect.maps.scope import ANY, Query, Scope
from recollect.model import Answer

Moment = Period | datetime | str


class Map:
    """An open map. It is closed by `close`, or at the end of a `with` block; threads may share it."""

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self._count: int | None = None

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Map:
        """Open a map, a folder of parts or a filter; raises FormatError for what is none of them."""
        return cls(open_map(path))

    @property
    def path(self) -> str:
        """The file or folder it was opened from."""
        return self._holdings.path

    @property
    def header(self) -> Header:
        """What the map says of itself."""
        return self._holdings.header

    @property
    def scope(self) -> Scope:
        """The requests that the map can answer with "no"."""
        return self._holdings.scope

    def lookup(self, uri: str, query: Query = ANY, *, at: Moment | None = None) -> Lookup:
        """Look up a URI or SURT; raises BadURI.

        `at` is the time that is asked about: a datetime, or a text such as `2014` or `2014-06:2016`. `query` is what
        else is known of the request.
        """
        return self._holdings.lookup(uri, query, at=_period(at))

    def lookup_many(self, uris: Iterable[str], query: Query = ANY, *, at: Moment | None = None) -> Iterator[Lookup]:
        """Look up a stream of URIs or SURTs, in their order; what is not a URI is answered "unknown"."""
        return self._holdings.lookup_many(uris, query, at=_period(at))

    def __contains__(self, uri: object) -> bool:
        return isinstance(uri, str) and self.lookup(uri).answer == Answer.YES

    def __iter__(self) -> Iterator[Record]:
        if "filter" in self.header.meta:
            raise FormatError("a filter has no records", where=self.path, why="it keeps hashes of keys only")
        with MapFile(self.path) as file:
            yield from file.records()

    def __len__(self) -> int:
        if "filter" in self.header.meta:
            return int(self.header.meta["keys"])
        if self._count is None:
            self._count = sum(1 for _ in self)
        return self._count

    def __bool__(self) -> bool:
        return True  # an empty map is a map

    def __repr__(self) -> str:
        extent = self.scope.extent()
        return f"<Map {self.path!r}{f', {extent}' if extent else ''}>"

    def close(self) -> None:
        """Close the file."""
        self._holdings.close()

    def __enter__(self) -> Map:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def _period(at: Moment | None) -> Period | None:
    return at if at is None or isinstance(at, Period) else period_of(at)
