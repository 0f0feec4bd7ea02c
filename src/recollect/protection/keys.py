"""Signing keys: Ed25519 pairs in two small text files.

Hides: the library (cryptography: maintained by the Python Cryptographic Authority, Apache-2.0 or BSD, wheels for every
platform; imported when it is used) and the files. A secret file is one line `recollect-secret-key-1 BASE64`, a public
one `recollect-public-key-1 BASE64`; lines that begin with `#` are comments.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.errors import FormatError, UsageError
from recollect.installation import install_command

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

KEY_BYTES = 32
SIGNATURE_BYTES = 64
_NONCE = 12
_SECRET = "recollect-secret-key-1"
_PUBLIC = "recollect-public-key-1"


@dataclass(frozen=True, slots=True)
class SigningKey:
    """The secret half. Its text never appears in a representation."""

    _seed: bytes

    @property
    def public(self) -> bytes:
        return _private(self._seed).public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        return _private(self._seed).sign(message)

    def digest(self, message: bytes) -> bytes:
        """A keyed digest: recognises content again without revealing it."""
        return hmac.new(self._seed, b"recollect content" + message, hashlib.sha256).digest()

    def lock(self, message: bytes, about: bytes) -> bytes:
        """Encrypt a note for the owner of this key; the same note about the same thing gives the same bytes."""
        nonce = self._derived(b"note nonce" + hashlib.sha256(about).digest() + message)[:_NONCE]
        return nonce + _cipher(self._derived(b"note key")).encrypt(nonce, message, about)

    def unlock(self, data: bytes, about: bytes) -> bytes | None:
        """A note that this key locked; None for any other bytes, or one about something else."""
        from cryptography.exceptions import InvalidTag

        try:
            return _cipher(self._derived(b"note key")).decrypt(data[:_NONCE], data[_NONCE:], about)
        except (InvalidTag, ValueError):
            return None

    def _derived(self, purpose: bytes) -> bytes:
        return hmac.new(self._seed, b"recollect " + purpose, hashlib.sha256).digest()

    def __repr__(self) -> str:
        return "SigningKey(…)"


def verify(public: bytes, signature: bytes, message: bytes) -> bool:
    """Did the owner of `public` sign `message`?"""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        raise _missing() from error
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _private(seed: bytes) -> Ed25519PrivateKey:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError as error:
        raise _missing() from error
    return Ed25519PrivateKey.from_private_bytes(seed)


def _cipher(key: bytes) -> ChaCha20Poly1305:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    except ImportError as error:
        raise _missing() from error
    return ChaCha20Poly1305(key)


def _missing() -> UsageError:
    return UsageError("signatures need the package cryptography", hint=install_command("protect"))


def fingerprint(public: bytes) -> str:
    """A key's short name for people: 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(public).hexdigest()[:16]


def new_key() -> SigningKey:
    return SigningKey(os.urandom(KEY_BYTES))


def public_path(secret: Path) -> Path:
    """Where the public half of a key file goes: site.key and site.pub."""
    return secret.with_suffix(".pub")


def write_pair(key: SigningKey, path: Path) -> Path:
    """Write the secret file (readable by its owner only) and the public one; neither may exist. Returns the latter."""
    beside = public_path(path)
    if beside == path:
        raise UsageError("not a name for a secret key", where=str(path), hint="-o site.key; site.pub is written beside")
    for one in (path, beside):
        if one.exists():
            raise UsageError(
                "the file exists", where=str(one), hint="a lost key cannot be had again: choose another name"
            )
    public = base64.b64encode(key.public).decode()
    path.parent.mkdir(parents=True, exist_ok=True)
    note = "# Keep this file secret and keep a copy of it elsewhere.\n"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as out:
        out.write(f"{note}{_SECRET} {base64.b64encode(key._seed).decode()}\n")
    beside.write_text(f"{_PUBLIC} {public}\n")
    return beside


def read_secret(path: Path) -> SigningKey:
    return SigningKey(_read(path, _SECRET))


def read_public(text: str) -> bytes:
    """A public key from a file, or as text; the public half of a secret file too."""
    path = Path(text)
    if path.is_file():
        try:
            return _read(path, _PUBLIC)
        except FormatError:
            return read_secret(path).public
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise UsageError("not a public key", where=text, hint="give the .pub file that keygen wrote")
    return key


def _read(path: Path, kind: str) -> bytes:
    for line in path.read_text(errors="replace").splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == kind:
            try:
                key = base64.b64decode(words[1], validate=True)
            except (binascii.Error, ValueError):
                break
            if len(key) == KEY_BYTES:
                return key
    raise FormatError(
        "not a key", where=str(path), why=f"no line {kind!r}", hint="recollect protect keygen -o site.key"
    )
