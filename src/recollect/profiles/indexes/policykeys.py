"""Keys of other policies than HxPx, put into a batch.

Hides that such a key is not a prefix of the SURT. Each run of the batch gets the policy's key instead of its own. Under
a policy HmPn the key depends on the host and the first n path segments alone, which neighbours mostly share, so it is
made once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from recollect.errors import BadURI
from recollect.profiles.indexes.batch import Batch
from recollect.uris import parse_policy, policy_key


@lru_cache(maxsize=64)
def key_under(policy: str) -> Callable[[bytes], bytes]:
    """What makes the policy's key of a URI key."""
    paths = parse_policy(policy).paths

    @lru_cache(maxsize=1 << 14)
    def made(beginning: bytes) -> bytes:
        return policy_key(beginning, policy)

    if paths is None:
        return made
    depth = paths + 1
    return lambda key: made(b"/".join(key.split(b"/", depth)[:depth]) if depth > 1 else key[: key.find(b")") + 1])


def rekeying(policy: str) -> Callable[[Batch, NDArray[np.int32]], None] | None:
    """What gives the runs of a batch their keys under a policy; None for HxPx, whose keys they have."""
    if parse_policy(policy).name == "HxPx":
        return None

    by_key = parse_policy(policy).paths is not None
    made = key_under(policy)

    def rekey(batch: Batch, runs: NDArray[np.int32]) -> None:
        size = len(batch.text)
        pieces = [batch.text]
        key_at, key_length = batch.key_at.copy(), batch.key_length.copy()
        places: dict[bytes, int] = {}
        for run in runs.tolist():
            try:
                key = made(batch.key(run)) if by_key else policy_key(batch.surt(run), policy)
            except BadURI:  # `dns:example.com`, kept on demand, is the same under every policy
                key = batch.key(run)
            if key not in places:
                places[key] = size
                pieces.append(np.frombuffer(key, np.uint8))
                size += len(key)
            key_at[run], key_length[run] = places[key], len(key)
        batch.text, batch.key_at, batch.key_length = np.concatenate(pieces), key_at, key_length

    return rekey
