"""Doors to the SURTs of ordinary URIs."""

import numpy as np
from numpy.typing import NDArray

def ordinary_surt(uri: bytes) -> bytes | None: ...
def surts_of_list(text: NDArray[np.uint8], out: NDArray[np.uint8]) -> int: ...
