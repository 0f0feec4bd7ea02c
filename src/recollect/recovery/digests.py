"""Are received bytes those of the index? Digests of captures against payloads."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Literal

from recollect.archives.replay import ReplayResponse
from recollect.errors import FormatError
from recollect.recovery.choose import Candidate
from recollect.recovery.decoding import decoded
from recollect.recovery.payloads import PayloadWriter


def differs(candidate: Candidate, replay: ReplayResponse, incoming: PayloadWriter) -> bool:
    if not candidate.digest or candidate.is_redirect or "chunked" in replay.header("transfer-encoding").lower():
        return False
    return compare_digest(candidate.digest, incoming) == "differs"


Agreement = Literal["same", "decoded", "differs", "unknown"]


def compare_digest(digest: str, incoming: PayloadWriter) -> Agreement:
    """Does a payload, or what is packed in it, have the digest of the index? Only SHA-1 is understood."""
    expected = _sha1_of(digest)
    if expected is None:
        return "unknown"
    if expected == incoming.sha1_bytes:
        return "same"
    payload = incoming.peek()
    if not payload.startswith(b"\x1f\x8b"):
        return "differs"
    try:
        inside = hashlib.sha1(decoded(payload, "gzip"), usedforsecurity=False).digest()
    except FormatError:
        return "differs"
    return "decoded" if inside == expected else "differs"


def _sha1_of(digest: str) -> bytes | None:
    name, mark, value = digest.partition(":")
    if mark and name.lower() != "sha1":
        return None
    value = value if mark else digest
    try:
        if len(value) == 32:
            return base64.b32decode(value.upper())
        if len(value) == 40:
            return bytes.fromhex(value)
    except (binascii.Error, ValueError):
        return None
    return None
