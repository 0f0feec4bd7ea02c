"""Types of the SURTs of ordinary URIs."""

import numpy as np
from numpy.typing import NDArray

SAME_SURT: int
OTHER_SURT: int
NO_URL: int

def ordinary_surt(uri: bytes) -> bytes | None: ...
def surts_of_list(text: NDArray[np.uint8], out: NDArray[np.uint8]) -> int: ...
def compare_urls(
    text: NDArray[np.uint8],
    starts: NDArray[np.int32],
    run_of: NDArray[np.int32],
    surt_at: NDArray[np.int32],
    surt_length: NDArray[np.int32],
    found: NDArray[np.uint8],
) -> None: ...
