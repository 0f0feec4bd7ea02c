"""What the kernels of profiling and their callers agree on: codes, and the places of fields in small arrays.

Apart from `kernels`, so that callers need not import the compiler (see `native`).
"""

from __future__ import annotations

import numpy as np

# What a line turned out to be.
GOOD, ODD = 0, 1
# What a file is, for `parse`.
SURT_LIST, CDX, CDXJ = 0, 1, 2
# Fields of `spec`.
KIND, DELIMITER, FIELDS, KEY, TIME, URL, MEDIA, STATUS = range(8)
# Fields of `counts`.
LINES, RUNS, MEDIA_TYPES, CONSUMED, LAST_MEDIA = range(5)
# Field of `known` that says whether it holds something: place, length and field of the text before three values.
LEARNT = 9
MEDIA_SLOTS = 4096
MAX_MEDIA = 1024

# What a byte may be without making a key odd: bit 1 in a host, bit 2 in a path.
ORDINARY = np.zeros(256, np.uint8)
for _byte in b"abcdefghijklmnopqrstuvwxyz0123456789-_.,":
    ORDINARY[_byte] |= 1
for _byte in range(0x21, 0x7F):
    if not 65 <= _byte <= 90 and _byte not in b"*#?":
        ORDINARY[_byte] |= 2


# JSON names of the fields that are read, and those (-1) that only the careful parser reads, which has them in
# `formats.cdx`. Flat: for each its length, its field, its bytes.
_NAMES = (
    *((name, URL) for name in ("url", "original")),
    *((name, MEDIA) for name in ("mime", "mimetype", "mime_type")),
    *((name, STATUS) for name in ("status", "statuscode", "status_code")),
    *((name, -1) for name in ("uri", "u", "m", "content_type", "s", "mct", "hsc")),
)
NAMES = np.array([part for name, field in _NAMES for part in (len(name), field, *name.encode())], np.int64)
