"""Parquet indexes (Common Crawl's columns): rows as CDX lines.

Hides DuckDB, which reads only the columns needed and turns each row into one line of tab-separated fields; so Parquet
goes through the same fast parser as any index. Columns are found by their names, Common
Crawl's first: url_surtkey, url, fetch_time, fetch_status, content_mime_type (or content_mime_detected), content_digest,
warc_record_length, warc_filename, content_languages. A table without a SURT column needs one with URLs.
"""

from __future__ import annotations

from collections.abc import Iterator

from recollect.errors import FormatError
from recollect.formats.cdx import Layout

_ROWS = 1 << 16
_COLUMNS = {
    "N": ("url_surtkey", "surt_url", "surt", "urlkey"),
    "b": ("fetch_time", "timestamp", "datetime", "crawl_date", "warc_date"),
    "a": ("url", "original", "uri"),
    "m": ("content_mime_type", "content_mime_detected", "mime", "mime_type", "mimetype"),
    "s": ("fetch_status", "status", "status_code", "statuscode"),
    "k": ("content_digest", "digest"),
    "S": ("warc_record_length", "length"),
    "g": ("warc_filename", "filename"),
    "l": ("content_languages", "languages", "language"),
}


class ParquetIndex:
    """An open Parquet file: `layout` of its lines, then the lines in pieces."""

    def __init__(self, path: str) -> None:
        import duckdb

        self._path = path
        self._error = duckdb.Error
        self._database = duckdb.connect()
        try:
            described = self._database.execute("DESCRIBE SELECT * FROM read_parquet(?)", [path]).fetchall()
            [(rows,)] = self._database.execute("SELECT count(*) FROM read_parquet(?)", [path]).fetchall()
        except duckdb.Error as error:
            raise self._broken(error) from error
        self._columns = found_columns({str(name).lower(): (str(name), str(kind)) for name, kind, *_ in described}, path)
        self.rows = int(rows)
        self.layout = Layout("".join(self._columns), "\t", True)

    def lines(self) -> Iterator[tuple[bytes, int]]:
        """The rows as lines, in pieces and in the order of the file; with each piece the rows read so far."""
        line = " || chr(9) || ".join(_field(letter, *column) for letter, column in self._columns.items())
        query = f"SELECT {line} || chr(10) AS line FROM read_parquet(?)"
        done = 0
        try:
            result = self._database.execute(query, [self._path])
            while rows := result.fetchmany(_ROWS):
                done += len(rows)
                yield "".join([line for (line,) in rows]).encode(), done
        except self._error as error:
            raise self._broken(error) from error
        finally:
            self._database.close()

    def _broken(self, error: Exception) -> FormatError:
        return FormatError("cannot read Parquet", where=self._path, why=str(error).splitlines()[0])


def found_columns(types: dict[str, tuple[str, str]], path: str) -> dict[str, tuple[str, str]]:
    """For each letter of the layout the column's name and type; a key that is not there is made from the URL."""
    found = {
        letter: column
        for letter, names in _COLUMNS.items()
        if (column := next((types[name] for name in names if name in types), None)) is not None
    }
    if "N" not in found and "a" not in found:
        raise FormatError(
            "no URLs in Parquet",
            where=path,
            why=f"none of its columns ({', '.join(sorted(types)[:12])}) is known",
            hint="columns url_surtkey or url are needed; see docs/profile.md",
        )
    return found if "N" in found else {"N": found["a"], **found}


def _field(letter: str, column: str, kind: str) -> str:
    """The SQL expression of one field."""
    name = '"' + column.replace('"', '""') + '"'
    if kind.startswith("TIMESTAMP") or kind == "DATE":
        text = f"strftime({name}::TIMESTAMP, '%Y%m%d%H%M%S')"
    elif letter == "b":
        text = f"left(regexp_replace({name}::VARCHAR, '[^0-9]', '', 'g'), 14)"
    else:
        text = f"regexp_replace({name}::VARCHAR, '[\\t\\r\\n]', ' ', 'g')"
    return f"coalesce(nullif({text}, ''), '-')"
