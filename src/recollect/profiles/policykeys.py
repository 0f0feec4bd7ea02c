"""Keys of other policies than HxPx, put into a batch.

Hides that such a key is no beginning of the SURT. Each run of the batch gets the policy's key instead of its own; runs
of one URI key mostly follow each other and share it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from recollect.profiles.batch import Batch
from recollect.uris import parse_policy, policy_key


def rekeying(policy: str) -> Callable[[Batch, NDArray[np.int32]], None] | None:
    """What gives the runs of a batch their keys under a policy; None for HxPx, whose keys they have."""
    if parse_policy(policy).name == "HxPx":
        return None

    def rekey(batch: Batch, runs: NDArray[np.int32]) -> None:
        size = len(batch.text)
        pieces = [batch.text]
        key_at, key_length = batch.key_at.copy(), batch.key_length.copy()
        places: dict[bytes, int] = {}
        for run in runs.tolist():
            key = policy_key(batch.surt(run), policy)
            if key not in places:
                places[key] = size
                pieces.append(np.frombuffer(key, np.uint8))
                size += len(key)
            key_at[run], key_length[run] = places[key], len(key)
        batch.text, batch.key_at, batch.key_length = np.concatenate(pieces), key_at, key_length

    return rekey
