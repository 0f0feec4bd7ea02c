"""A map as an Arrow table, for notebooks.

Hides where the map is. Columns: key (binary, as keys are bytes), uri_m and uri_r (null when unknown), and what else the
map has: further key columns by their names, and `json`. Bounds (`5+`) are in the columns uri_m_bound and uri_r_bound
when any count has one.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.errors import UsageError
from recollect.formats.ukvs import Header, Record, open_map, unquote
from recollect.installation import install_command

if TYPE_CHECKING:
    import pyarrow as pa


def table_of(path: str | None, text: bytes | None = None) -> pa.Table:
    """The table of a map in a file, or of one in memory."""
    if path is not None:
        with open_map(path) as opened:
            return _table(opened.header, list(opened))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "map.ukvs")
        file.write_bytes(text or b"")
        return table_of(str(file))


def _table(header: Header, records: list[Record]) -> pa.Table:
    try:
        import pyarrow as pa
    except ImportError:
        raise UsageError("Arrow tables need pyarrow", hint=install_command("arrow")) from None

    columns: dict[str, pa.Array] = {"key": pa.array([record.key for record in records], pa.binary())}
    for index, name in enumerate(header.keys[1:]):
        columns[name] = pa.array([unquote(record.more_keys[index]) for record in records], pa.string())
    for name in ("uri_m", "uri_r"):
        counts = [getattr(record.frequency, name) for record in records]
        columns[name] = pa.array([count.value for count in counts], pa.int64())
        if any(count.bound for count in counts):
            columns[f"{name}_bound"] = pa.array([count.bound for count in counts], pa.string())
    if any(record.json for record in records):
        columns["json"] = pa.array([record.json or None for record in records], pa.string())
    return pa.table(columns)
