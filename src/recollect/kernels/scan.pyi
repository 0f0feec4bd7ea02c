"""Types of the reader of index lines."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

GOOD: int
IRREGULAR: int

SURT_LIST: int
CDX: int
CDXJ: int

UNUSED: int
URL: int
MEDIA: int
STATUS: int
TIME: int
CAREFUL: int

class LineFormat:
    """What the lines of a file are made of.

    `fields` says what each field of a CDX line is, the first of which must be the key (UNUSED); without fields every
    line is IRREGULAR. `names` says what the fields of a JSON object are; others are not needed.
    """

    def __init__(
        self,
        kind: int,
        *,
        delimiter: bytes = b" ",
        fields: Sequence[int] = (),
        names: Mapping[bytes, int] | None = None,
    ) -> None: ...

class Scanner:
    """Reads texts of whole lines into columns of one length, which it keeps and fills again with each text."""

    lines: int
    runs: int

    def __init__(
        self,
        *,
        starts: NDArray[np.int32],
        run_of: NDArray[np.int32],
        times: NDArray[np.int64],
        statuses: NDArray[np.int16],
        media: NDArray[np.int16],
        states: NDArray[np.uint8],
        surt_at: NDArray[np.int32],
        surt_length: NDArray[np.int32],
        key_length: NDArray[np.int32],
    ) -> None: ...
    def read(self, text: NDArray[np.uint8], form: LineFormat) -> int: ...
    @property
    def media_types(self) -> list[tuple[int, int]]: ...
