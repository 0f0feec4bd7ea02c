"""UKVS maps: sorted text files of keys and frequencies; docs/ukvs.md is the exact format.

Hides: headers, columns, quoting, JSON blocks and both directions in constant memory. `open_map` / `read` give the
header and the records of a file in any container; `Writer` writes one whole or not at all; `validate` names every
fault.
"""

from recollect.formats.ukvs.faults import Fault, validate
from recollect.formats.ukvs.header import MEDIA_TYPE, Header
from recollect.formats.ukvs.periods import Period
from recollect.formats.ukvs.reader import MapFile, open_map, read
from recollect.formats.ukvs.records import Record, quote, unquote
from recollect.formats.ukvs.writer import Writer

__all__ = [
    "MEDIA_TYPE",
    "Fault",
    "Header",
    "MapFile",
    "Period",
    "Record",
    "Writer",
    "open_map",
    "quote",
    "read",
    "unquote",
    "validate",
]
