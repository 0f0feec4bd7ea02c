"""One block as text: what pages carry and readers find, whatever element it is in.

    recollect-block/1
    class=code version=20261117173000 content=… object=… size=889123
    code=raptorq need=49 pages=123 number=17 key=… sign=…

    BASE64
    recollect-end

Hides: the text form and its signature. White space separates words and means nothing else, so that minifiers may fold
it; no character of it has a meaning in HTML, XML or JavaScript (`<`, `&`, `>`, `--` and quotes do not occur). A reader
looks for the marks and does not parse markup: any carrier that keeps text is read.

The signature (Ed25519) covers the header as it is written in `signed_bytes` and the payload. Invariant: what `read`
returns is whole, fits its geometry, and was signed by the key it names.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from recollect.protection.code import MAX_NEED, MAX_NUMBER, Code, Geometry
from recollect.protection.keys import KEY_BYTES, SIGNATURE_BYTES, SigningKey, verify
from recollect.protection.marks import BEGIN, ascii_text

END = "recollect-end"
MANIFEST = "manifest"  # the name of the class that lists the others; no class of files may have it
MAX_OBJECT = 1 << 36
_BEGINS = re.compile(rb"recollect-block/(\d{1,6})(?=\s)")
_END = END.encode()
_CLASS = re.compile(r"[a-z][a-z0-9-]{0,31}")
_FIELDS = ("class", "version", "content", "object", "size", "code", "need", "pages", "number", "key", "sign")


class Refusal(StrEnum):
    """Why a block is not taken."""

    FORMAT = "unknown format"
    TRUNCATED = "truncated"
    MALFORMED = "malformed"
    FORGED = "forged"
    FOREIGN = "foreign key"
    CONFLICT = "conflict"  # the same number of the same version with other bytes: the key's owner erred


@dataclass(frozen=True, slots=True)
class Version:
    """One version of one class: blocks of the same version, and only these, go together."""

    name: str  # of the class
    at: str  # 14 digits
    content: str  # keyed digest of what was packed, for its owner to know it again
    object: str  # SHA-256 of the sealed object
    size: int
    code: Code
    need: int
    key: bytes

    @property
    def geometry(self) -> Geometry:
        return Geometry(self.size, self.need)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a version; `pages` is how many pages carried one when it was made."""

    version: Version
    number: int
    pages: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Refused:
    """A block that is not taken, and why; `detail` names the field or the version where it is known."""

    refusal: Refusal
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.refusal}: {self.detail}" if self.detail else str(self.refusal)


def is_class_name(name: str) -> bool:
    return _CLASS.fullmatch(name) is not None and name != MANIFEST


def write(block: Block, key: SigningKey) -> str:
    """The block as text, signed."""
    head = _head(block)
    sign = base64.b64encode(key.sign(signed_bytes(head, block.payload))).decode()
    words = head.split(" ")
    lines = [BEGIN, " ".join(words[:5]), " ".join(words[5:]) + f" sign={sign}", ""]
    return "\n".join([*lines, base64.b64encode(block.payload).decode(), END])


def text_bytes(payload: int) -> int:
    """About how many characters a block with this payload has; a few more or less, by the digits in it."""
    return 4 * -(-payload // 3) + 370


def payload_bytes(text: int) -> int:
    """The largest payload of a block that surely has no more characters than `text`."""
    return (text - 390) // 4 * 3


def _head(block: Block) -> str:
    v = block.version
    key = base64.b64encode(v.key).decode()
    return (
        f"class={v.name} version={v.at} content={v.content} object={v.object} size={v.size} "
        f"code={v.code} need={v.need} pages={block.pages} number={block.number} key={key}"
    )


def signed_bytes(head: str, payload: bytes) -> bytes:
    """What is signed: the mark, the header's words with one space between them, and the payload's bytes."""
    return f"{BEGIN} {head}\n".encode() + payload


def read(page: bytes) -> Iterator[Block | Refused]:
    """Every block in a page's bytes, in order; what begins like a block and is none is named."""
    text = ascii_text(page)
    matches = list(_BEGINS.finditer(text))
    for index, match in enumerate(matches):
        limit = matches[index + 1].start() if index + 1 < len(matches) else len(text)
        if match[1] != b"1":
            yield Refused(Refusal.FORMAT, f"recollect-block/{match[1].decode()}")
            continue
        end = text.find(_END, match.end(), limit)
        if end < 0:
            yield Refused(Refusal.TRUNCATED, "the page ends inside it" if limit == len(text) else "it has no end")
            continue
        yield _parse(text[match.end() : end])


def mentions(page: bytes) -> bool:
    """Could there be a block in these bytes? Quick, and wrong only by saying yes."""
    return b"recollect-block/" in page or (b"\0" in page[:4096] and b"recollect-block/" in ascii_text(page))


def _parse(text: bytes) -> Block | Refused:
    words = text.decode("ascii", "replace").split()
    fields: dict[str, str] = {}
    for position, name in enumerate(_FIELDS):
        word = words[position] if position < len(words) else ""
        if not word.startswith(f"{name}="):
            return Refused(Refusal.MALFORMED, f"no {name}")
        fields[name] = word[len(name) + 1 :]
    what = f"class {fields['class'][:32]}, version {fields['version'][:14]}"
    version = _version(fields)
    if isinstance(version, str):
        return Refused(Refusal.MALFORMED, f"{what}: {version}")
    try:
        payload = base64.b64decode("".join(words[len(_FIELDS) :]), validate=True)
    except (binascii.Error, ValueError):
        return Refused(Refusal.TRUNCATED, f"{what}: its payload is not base64")
    wanted = version.size if version.name == MANIFEST else version.geometry.block_bytes
    if len(payload) != wanted:
        return Refused(Refusal.TRUNCATED, f"{what}: {len(payload):,} of {wanted:,} bytes")
    block = Block(version, int(fields["number"]), int(fields["pages"]), payload)
    signature = _binary(fields["sign"], SIGNATURE_BYTES)
    if signature is None or not verify(version.key, signature, signed_bytes(_head(block), payload)):
        return Refused(Refusal.FORGED, f"{what}: the signature does not fit")
    return block


def _version(fields: dict[str, str]) -> Version | str:
    """The version a header names, or what is wrong with it."""
    limits = {"size": MAX_OBJECT, "need": MAX_NEED, "pages": MAX_NUMBER, "number": MAX_NUMBER}
    for name, most in limits.items():
        text = fields[name]
        if not re.fullmatch(r"0|[1-9]\d{0,14}", text) or int(text) > most or (name == "need" and text == "0"):
            return f"{name}={text[:20]}"
    for name, pattern in (("version", r"\d{14}"), ("content", r"[0-9a-f]{16}"), ("object", r"[0-9a-f]{64}")):
        if not re.fullmatch(pattern, fields[name]):
            return f"{name}={fields[name][:20]}"
    if not _CLASS.fullmatch(fields["class"]):
        return "no class name"
    key = _binary(fields["key"], KEY_BYTES)
    if key is None:
        return "no key"
    if fields["code"] not in {code.value for code in Code}:
        return f"code={fields['code'][:20]} is unknown"
    return Version(
        fields["class"],
        fields["version"],
        fields["content"],
        fields["object"],
        int(fields["size"]),
        Code(fields["code"]),
        int(fields["need"]),
        key,
    )


def _binary(text: str, length: int) -> bytes | None:
    try:
        value = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return value if len(value) == length else None
