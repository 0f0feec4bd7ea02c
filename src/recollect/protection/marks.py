"""The mark that begins a block, and pages as text of one byte for each character, in which it is looked for."""

from __future__ import annotations

import re

BEGIN = "recollect-block/1"


def ascii_text(page: bytes) -> bytes:
    """The page one byte per character: UTF-16 narrowed, with 0xFF for what is not Latin-1; anything else as it is."""
    order = utf16_order(page)
    return page if order is None else narrowed(page, order)


def utf16_order(page: bytes) -> str | None:
    """`little` or `big` for UTF-16, by its mark or by the zeros beside the first `<` and what follows it."""
    if page.startswith(b"\xff\xfe") or re.match(rb"(?:\s\0)*<\0[!-~]\0", page):
        return "little"
    if page.startswith(b"\xfe\xff") or re.match(rb"(?:\0\s)*\0<\0[!-~]", page):
        return "big"
    return None


def narrowed(page: bytes, order: str) -> bytes:
    """UTF-16 as one byte per code unit; those beyond Latin-1 become 0xFF."""
    import numpy as np  # not needed by the middleware, which never meets UTF-16

    even = page[: len(page) // 2 * 2]
    low, high = (even[0::2], even[1::2]) if order == "little" else (even[1::2], even[0::2])
    units = np.frombuffer(low, dtype=np.uint8)
    return np.where(np.frombuffer(high, dtype=np.uint8) == 0, units, np.uint8(0xFF)).tobytes()
