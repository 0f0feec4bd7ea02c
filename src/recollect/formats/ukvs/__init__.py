"""UKVS maps: sorted text files of keys and frequencies; docs/ukvs.md is the exact format.

Hides: headers, columns, quoting, JSON blocks and both directions in constant memory. `open_map` / `read` give the
header and the records of a file in any container; `Writer` writes one whole or not at all; `faults.validate`
(a module of its own, as few commands need it) names every fault.
"""

from recollect.formats.ukvs.header import MEDIA_TYPE, Header
from recollect.formats.ukvs.periods import Period
from recollect.formats.ukvs.reader import MapFile, open_map, read
from recollect.formats.ukvs.records import Record, quote, unquote
from recollect.formats.ukvs.writer import Writer

__all__ = [
    "MEDIA_TYPE",
    "Header",
    "MapFile",
    "Period",
    "Record",
    "Writer",
    "open_map",
    "quote",
    "read",
    "unquote",
]
