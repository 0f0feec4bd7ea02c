"""Encryption by age (age-encryption.org), so that any `age` program opens what was sealed.

Hides: pyrage (MIT), imported when it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.errors import FormatError, UsageError
from recollect.installation import install_command

_AGE = b"age-encryption.org/v1\n"
# A passphrase is refused as too costly to try when the machine is much busier than the one that locked; that passes.
_TRIES = 5
_IDENTITY = "--identity takes the file that age-keygen wrote, or an SSH private key"


@dataclass(frozen=True, slots=True)
class Lock:
    """Who can open an object: age recipients, or anyone with the passphrase; with neither, all readers."""

    recipients: tuple[str, ...] = ()
    passphrase: str | None = None

    @property
    def is_open(self) -> bool:
        return not self.recipients and self.passphrase is None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The types of recipients that an object sealed with this lock has; see `lock_kinds`."""
        if self.recipients:
            return tuple(
                sorted(text.split(" ")[0] if text.startswith("ssh-") else "X25519" for text in self.recipients)
            )
        return () if self.passphrase is None else ("scrypt",)


def check_lock(lock: Lock) -> None:
    """Raise UsageError for recipients that age does not know, before any work is done."""
    if lock.recipients:
        _recipients(lock.recipients)
    elif lock.passphrase is not None:
        _pyrage()


def seal(data: bytes, lock: Lock) -> bytes:
    """Packed bytes, encrypted when there is a lock."""
    if lock.is_open:
        return data
    pyrage = _pyrage()
    if lock.recipients:
        return bytes(pyrage.encrypt(data, _recipients(lock.recipients)))
    return bytes(pyrage.passphrase.encrypt(data, lock.passphrase))


def _recipients(texts: Sequence[str]) -> list[object]:
    pyrage = _pyrage()
    found: list[object] = []
    for text in texts:
        parser = pyrage.ssh.Recipient.from_str if text.startswith("ssh-") else pyrage.x25519.Recipient.from_str
        try:
            found.append(parser(text))
        except pyrage.RecipientError as error:
            raise UsageError(
                "not an age recipient", where=text, why=str(error), hint="it begins with age1 or ssh-"
            ) from error
    return found


def _pyrage() -> Any:
    try:
        import pyrage
    except ImportError as error:
        raise UsageError("encryption needs the package pyrage", hint=install_command("protect")) from error
    return pyrage


class Locked(FormatError):
    """An encrypted object that none of the given identities opens."""


def lock_kinds(data: bytes) -> tuple[str, ...]:
    """How an object is encrypted: the types of its recipients, in order; empty if it is not."""
    if not is_locked(data):
        return ()
    head = data[: data.find(b"\n---") + 1 or 4096]
    kinds = [line.split(b" ")[1].decode("ascii", "replace") for line in head.split(b"\n") if line.startswith(b"-> ")]
    return tuple(sorted(kind for kind in kinds if not kind.endswith("-grease")))  # which age adds by chance


def is_locked(data: bytes) -> bool:
    return data.startswith(_AGE)


@dataclass(frozen=True, slots=True)
class Opener:
    """What a person has to open encrypted objects: the text of an identity file (age or SSH), or a passphrase."""

    identities: tuple[str, ...] = ()
    passphrase: str | None = None


def check_opener(opener: Opener) -> None:
    """Raise UsageError for identities that age does not know, before any work is done."""
    if opener.identities:
        pyrage = _pyrage()
        for text in opener.identities:
            _identities(pyrage, text)


def unseal(data: bytes, opener: Opener) -> bytes:
    """Packed bytes out of a sealed object; raises Locked."""
    if not is_locked(data):
        return data
    pyrage = _pyrage()
    keys = [key for text in opener.identities for key in _identities(pyrage, text)]
    failure = "no identity was given"
    attempts: list[Callable[[], bytes]] = []
    if keys:
        attempts.append(lambda: pyrage.decrypt(data, keys))
    if opener.passphrase is not None:
        attempts.append(lambda: pyrage.passphrase.decrypt(data, opener.passphrase))
    for attempt in attempts:
        for _ in range(_TRIES):
            try:
                return bytes(attempt())
            except pyrage.DecryptError as error:
                failure = str(error)
                if "work" not in failure:
                    break
    raise Locked("the object is encrypted", why=failure, hint="give --identity FILE, or --passphrase-file FILE")


def _identities(pyrage: Any, text: str) -> list[object]:
    if text.lstrip().startswith("-----BEGIN"):
        try:
            return [pyrage.ssh.Identity.from_buffer(text.encode())]
        except pyrage.IdentityError as error:
            raise UsageError(
                "not an SSH identity that can be used", why=str(error), hint="a private key without a passphrase"
            ) from error
    found = []
    for line in text.splitlines():
        if line.strip().startswith("AGE-SECRET-KEY-"):
            try:
                found.append(pyrage.x25519.Identity.from_str(line.strip()))
            except pyrage.IdentityError as error:
                raise UsageError("not an age identity", why=str(error), hint=_IDENTITY) from error
    if not found:
        raise UsageError("no identity in the file", why="no line begins with AGE-SECRET-KEY-", hint=_IDENTITY)
    return found
