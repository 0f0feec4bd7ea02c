"""Secrets and personal data that would be published: found by name and by shape.

Hides: the patterns. Not a proof: what is found deserves a look, what is not found may still be secret. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

_MAX_READ = 8 << 20
_SAMPLE_EMAILS = 5  # one address in a file is an imprint, several are people


class Secret(StrEnum):
    """What was found."""

    PRIVATE_KEY = "private key"
    CREDENTIALS = "credentials"
    PASSWORD_HASH = "password hash"
    TOKEN = "access token"
    PERSONAL = "personal data"


@dataclass(frozen=True, slots=True)
class Found:
    """One kind of secret in one file; `line` is the first place, 0 when it is known by the file name."""

    file: str
    kind: Secret
    line: int = 0
    times: int = 1

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.kind}" + (f" ({self.times:,} times)" if self.times > 1 else "")


_NAMES = re.compile(
    r"\.env(\..+)?|.*\.(pem|key|p12|pfx|jks|keystore|kdbx)|id_(rsa|dsa|ecdsa|ed25519)|\.netrc|\.pgpass|\.htpasswd"
    r"|credentials(\.\w+)?|secrets?\.(ya?ml|json|toml|ini|php|py)|master\.key",
    re.IGNORECASE,
)
_HARMLESS_NAMES = re.compile(r".*\.(example|sample|dist|template)", re.IGNORECASE)
_SHAPES: tuple[tuple[Secret, re.Pattern[bytes]], ...] = (
    (Secret.PRIVATE_KEY, re.compile(rb"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY|AGE-SECRET-KEY-1|recollect-secret-key-1 ")),
    (
        Secret.TOKEN,
        re.compile(
            rb"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{36}|\bglpat-[\w-]{20}|\bxox[abprs]-[\w-]{10,}"
            rb"|\bsk_live_[0-9a-zA-Z]{16,}|\bAIza[0-9A-Za-z_-]{35}|\bey[\w-]{10,}\.ey[\w-]{10,}\.[\w-]{10,}"
        ),
    ),
    (
        Secret.PASSWORD_HASH,
        re.compile(
            rb"\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}|\$argon2(?:id|i|d)\$v=|\$[PH]\$[./A-Za-z0-9]{31}|\$6\$[./A-Za-z0-9]{1,16}\$"
            rb"|\$5\$[./A-Za-z0-9]{1,16}\$|\$1\$[./A-Za-z0-9]{1,8}\$|\bpbkdf2(?:_sha\d+\$|:sha\d+:)|\bscrypt:\d+:\d+:\d+\$"
            rb"|\$wp\$2y\$"
        ),
    ),
    (
        Secret.CREDENTIALS,
        re.compile(
            rb"""(?i)(?:password|passwd|pwd|secret|api_?key|auth_?token|secret_?key|(?:auth|logged_in|nonce)_(?:key|salt))"""
            rb"""["']?\s*(?:=>?|:|,)\s*["'][^"'\s$<{][^"'\n]{5,}["']"""
            rb"""|[a-z][a-z0-9+]*://[^\s:/@'"]+:[^\s:/@'"]{3,}@[\w.-]+"""
        ),
    ),
)
_EMAIL = re.compile(rb"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}\b", re.IGNORECASE)


def scan(files: Iterable[tuple[str, bytes]]) -> Iterator[Found]:
    """What (name, content) pairs hold that should hardly be public."""
    for name, content in files:
        yield from _scan_file(name, content[:_MAX_READ])


def _scan_file(name: str, content: bytes) -> Iterator[Found]:
    base = PurePosixPath(name).name
    by_name = _NAMES.fullmatch(base) is not None and _HARMLESS_NAMES.fullmatch(base) is None
    if by_name:
        yield Found(name, Secret.CREDENTIALS)
    for kind, pattern in _SHAPES:
        matches = list(pattern.finditer(content))
        if matches and not (by_name and kind is Secret.CREDENTIALS):
            yield Found(name, kind, _line(content, matches[0].start()), len(matches))
    people = {match[0].lower() for match in _EMAIL.finditer(content)}
    if len(people) >= _SAMPLE_EMAILS:
        first = _EMAIL.search(content)
        yield Found(name, Secret.PERSONAL, _line(content, first.start()) if first else 0, len(people))


def _line(content: bytes, offset: int) -> int:
    return content.count(b"\n", 0, offset) + 1
