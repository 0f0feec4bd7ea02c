"""Secrets and personal data that would be published: found by name and by shape, also inside of packages.

Hides: the patterns. Not a proof: a match deserves a look, and a file without a match may still be secret. Zip, tar and
gzip files are looked into, in bounded time and memory; text in UTF-16 is read as such. Pure but for what it is given.
"""

from __future__ import annotations

import bz2
import io
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

_MAX_READ = 8 << 20
_MAX_PACKED = 64 << 20  # bytes of all members of one package that are read
_MAX_MEMBERS = 5000
_SAMPLE_EMAILS = 5  # one address in a file is an imprint, several are people


class Secret(StrEnum):
    """What was found."""

    PRIVATE_KEY = "private key"
    CREDENTIALS = "credentials"
    PASSWORD_HASH = "password hash"
    TOKEN = "access token"
    VERSION_CONTROL = "version control, with all earlier versions"
    PERSONAL = "personal data"


# What is never published unless the user says so; addresses of people alone are a warning.
REFUSED = frozenset(Secret) - {Secret.PERSONAL}


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
    r"\.env(?:rc|\..+)?|[^/]+\.env"
    r"|[^/]+\.(?:pem|key|p12|pfx|p8|jks|keystore|bks|kdbx?|ppk|agekey|gpg-key|ovpn|tfstate|tfvars|pkcs12|keytab|kubeconfig)"
    r"|id_(?:rsa|dsa|ecdsa|ed25519|ecdsa_sk|ed25519_sk|xmss)|ssh_host_\w+_key|identity|secring\.\w+"
    r"|[._]netrc|\.pgpass|pgpass\.conf|\.htpasswd|\.htdigest|\.my\.cnf|\.mylogin\.cnf|\.npmrc|\.pypirc|\.yarnrc\.yml"
    r"|\.git-credentials|\.dockercfg|\.dockerconfigjson|\.s3cfg|\.boto|\.passwd-s3fs|\.vault[-_]pass\w*|\.ftpconfig"
    r"|\.remote-sync\.json|sftp-config\.json|sftp\.json|filezilla\.xml|sitemanager\.xml|recentservers\.xml|winscp\.ini"
    r"|rclone\.conf|kubeconfig|terraform\.tfstate(?:\.backup)?|shadow-?|gshadow-?|master\.passwd"
    r"|credentials(?:\.\w+)*|.*credentials?\.(?:json|ya?ml|xml|csv|txt)|client_secrets?(?:[-_.].*)?\.json"
    r"|service[-_]?account[^/]*\.json|[^/]*firebase-adminsdk[^/]*\.json|token\.(?:json|pickle)"
    r"|[._]?secrets?\.(?:ya?ml|json|toml|ini|php|py|rb|env|txt|properties)|master\.key|secret_token\.rb"
    r"|passwords?\.(?:txt|csv|xlsx?|ods|docx?|json|ya?ml)|wp-config(?:[-.]\w+)*\.php|localsettings\.php",
    re.IGNORECASE,
)
# Folders in which every file is a secret, and files that are secret in some folders only.
_FOLDERS = re.compile(r"(?:^|/)(?:\.ssh|\.gnupg|\.aws|\.azure|\.gcloud|\.password-store)/", re.IGNORECASE)
_PATHS = re.compile(
    r"(?:^|/)(?:\.docker/config\.json|\.kube/config|\.m2/settings\.xml|\.config/gh/hosts\.yml)$", re.IGNORECASE
)
_HARMLESS_NAMES = re.compile(
    r"[^/]*[._-](?:example|sample|dist|template|tmpl|default)(?:\.\w+)?|[^/]*\.pub|known_hosts|authorized_keys",
    re.IGNORECASE,
)
# The signing key that Recollect makes is known by its own first words.
_PRIVATE_KEY = re.compile(
    rb"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY|PuTTY-User-Key-File-\d"
    rb"|AGE-SECRET-KEY-(?:1|PQ-1)|AGE-PLUGIN-[A-Z0-9-]{1,60}-1|recollect-secret-key-1 "
    rb"|\"private_key\"\s{0,9}:\s{0,9}\"-|\"kty\"\s{0,9}:\s{0,9}\"(?:RSA|EC|OKP)\"[^{}]{0,2000}\"d\"\s{0,9}:"
)
_TOKEN = re.compile(
    rb"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{36}|\bgithub_pat_\w{40}|\bglpat-[\w-]{20}|\bgl(?:dt|rt|ptt|soat)-[\w-]{20}"
    rb"|\bxox[abeoprs]-[\w-]{10}|\bxapp-\d-[\w-]{10}|hooks\.slack\.com/services/[\w/]{20}|discord(?:app)?\.com/api/webhooks/\d+/[\w-]{20}"
    rb"|\b(?:sk|rk)_live_[0-9a-zA-Z]{16}|\bwhsec_[0-9a-zA-Z]{24}|\bsk-(?:ant|proj|svcacct|or)-[\w-]{20}|\bsk-[A-Za-z0-9]{40}"
    rb"|\bAIza[0-9A-Za-z_-]{35}|\bGOCSPX-[\w-]{20}|\bya29\.[\w-]{20}|\bnpm_[A-Za-z0-9]{36}|\bpypi-AgE[\w-]{20}|\bhf_[A-Za-z0-9]{30}"
    rb"|\bSG\.[\w-]{20}\.[\w-]{20}|\bkey-[0-9a-f]{32}\b|\bdop_v1_[0-9a-f]{40}|\bdckr_pat_[\w-]{20}|\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"
    rb"|\bEAAC[0-9A-Za-z]{20}|\bdapi[0-9a-f]{32}\b|\brubygems_[0-9a-f]{48}|\bcio[\w-]{32}\b|\bhvs\.[\w-]{20}|\blin_api_\w{20}"
    rb"|AccountKey=[A-Za-z0-9+/=]{40}|\bSharedAccessKey=[A-Za-z0-9+/=]{30}|\bsig=[A-Za-z0-9%]{40}"
    rb"|\b\d{8,10}:AA[\w-]{33}\b|\bey[\w-]{10,500}\.ey[\w-]{10,2000}\.[\w-]{10}"
)
_PASSWORD_HASH = re.compile(
    rb"\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}|\$argon2(?:id|i|d)\$v=|\$[PH]\$[./A-Za-z0-9]{31}|\$6\$[./A-Za-z0-9]{1,16}\$"
    rb"|\$6\$rounds=\d|\$5\$[./A-Za-z0-9]{1,16}\$|\$1\$[./A-Za-z0-9]{1,8}\$|\$apr1\$|\$y\$[./A-Za-z0-9]|\$7\$[./A-Za-z0-9]{8}"
    rb"|\bpbkdf2(?:_sha\d+\$|:sha\d+:)|\bscrypt:\d+:\d+:\d+\$|\$wp\$2y\$|\{S?SHA(?:256|512)?\}[A-Za-z0-9+/=]{20}"
)
_WORD = (
    rb"(?:password|passwd|passphrase|\bpwd|secret|api_?-?key|auth_?token|access_?token|access_?key|secret_?key|private_?key"
    rb"|(?:auth|logged_in|nonce)_(?:key|salt))"
)
_CREDENTIALS = re.compile(
    # a value in quotes behind a name, as in code and JSON
    rb"(?i:" + _WORD + rb"\w{0,30}[\"']?\]?\s{0,20}(?:=>?|:|,)\s{0,20}[\"'][^\"'\s$<{%][^\"'\n]{5})"
    # a value without quotes in a line of its own, as in .env, INI, YAML and properties
    rb"|(?im:^[ \t]{0,40}(?:export[ \t]{1,9})?[\w.-]{0,60}?" + _WORD + rb"[\w.-]{0,30}[ \t]{0,10}[=:][ \t]{0,10}"
    rb"[^\s\"'$<{%(\[*][^\s(){}<>\[\]*,;]{5,200}[ \t]{0,40}\r?$)"
    # a user name and a password in an address
    rb"|\b[a-zA-Z][a-zA-Z0-9+]{0,20}://[^\s:/@'\"<>]{1,200}:[^\s:/@'\"<>${]{3,200}@[\w.-]"
    # a header
    rb"|(?i:\bauthorization[\"']?\s{0,5}[:=,]\s{0,5}[\"']?(?:basic|bearer)\s{1,5}[\w+/=.-]{8})"
)
_SHAPES: tuple[tuple[Secret, re.Pattern[bytes]], ...] = (
    (Secret.PRIVATE_KEY, _PRIVATE_KEY),
    (Secret.TOKEN, _TOKEN),
    (Secret.PASSWORD_HASH, _PASSWORD_HASH),
    (Secret.CREDENTIALS, _CREDENTIALS),
)
_EMAIL = re.compile(rb"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}\b", re.IGNORECASE)
_Reader = Callable[[bytes], bytes]


def scan(files: Iterable[tuple[str, bytes]]) -> Iterator[Found]:
    """What (name, content) pairs hold that should hardly be public."""
    for name, content in files:
        yield from _scan_file(name, content)
        for inside, member in _members(content):
            for found in _scan_file(inside, member):
                yield Found(f"{name}!{found.file}", found.kind, found.line, found.times)


def is_secret_name(name: str) -> bool:
    """Whether a file is known as a secret by its name alone."""
    base = PurePosixPath(name).name
    if _HARMLESS_NAMES.fullmatch(base):
        return False
    return bool(_NAMES.fullmatch(base) or _FOLDERS.search(name) or _PATHS.search(name))


def _scan_file(name: str, content: bytes) -> Iterator[Found]:
    by_name = is_secret_name(name)
    if by_name:
        yield Found(name, Secret.CREDENTIALS)
    text = _plain(content[:_MAX_READ])
    for kind, pattern in _SHAPES:
        matches = list(pattern.finditer(text))
        if matches and not (by_name and kind is Secret.CREDENTIALS):
            yield Found(name, kind, _line(text, matches[0].start()), len(matches))
    people: dict[bytes, int] = {}
    for match in _EMAIL.finditer(text):
        people.setdefault(match[0].lower(), match.start())
    if len(people) >= _SAMPLE_EMAILS:
        yield Found(name, Secret.PERSONAL, _line(text, min(people.values())), len(people))


def _plain(content: bytes) -> bytes:
    """The bytes as text of one byte for each character, where they are UTF-16: Windows programs write it."""
    head = content[:200]
    wide = head.startswith((b"\xff\xfe", b"\xfe\xff")) or (len(head) > 20 and 3 * head.count(0) > len(head))
    text = content.replace(b"\0", b"") if wide else content
    return text.removeprefix(b"\xff\xfe").removeprefix(b"\xfe\xff").removeprefix(b"\xef\xbb\xbf")


def _line(content: bytes, offset: int) -> int:
    return content.count(b"\n", 0, offset) + 1


# Inside of packages


def _members(content: bytes) -> Iterator[tuple[str, bytes]]:
    """(name, content) of what a zip, tar or compressed file holds; a damaged one gives what can be read."""
    try:
        if content.startswith(b"PK\x03\x04"):
            yield from _zipped(content)
            return
        inner = _unpacked(content)
        if inner is None and content[257:262] != b"ustar":
            return
        tar = content if inner is None else inner
        if tar[257:262] == b"ustar":
            yield from _tarred(tar)
        else:
            yield "", tar
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, OSError, EOFError, ValueError):
        return
    except (NotImplementedError, RuntimeError):  # an unknown compression, an encrypted member
        return


def _unpacked(content: bytes) -> bytes | None:
    """The text of a compressed file up to a limit; None for other files."""
    if content.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(31).decompress(content, _MAX_PACKED)
    if content.startswith(b"BZh"):
        return bz2.BZ2Decompressor().decompress(content, _MAX_PACKED)
    if content.startswith(b"\xfd7zXZ\x00"):
        try:
            return lzma.LZMADecompressor(memlimit=1 << 28).decompress(content, _MAX_PACKED)
        except lzma.LZMAError:
            return None
    if content.startswith(b"\x28\xb5\x2f\xfd"):
        import zstandard

        try:
            with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(io.BytesIO(content)) as reader:
                return reader.read(_MAX_PACKED)
        except zstandard.ZstdError:
            return None
    return None


def _zipped(content: bytes) -> Iterator[tuple[str, bytes]]:
    left = _MAX_PACKED
    with zipfile.ZipFile(io.BytesIO(content)) as package:
        for info in package.infolist()[:_MAX_MEMBERS]:
            if info.is_dir():
                continue
            if left <= 0 or info.flag_bits & 1:
                yield info.filename, b""  # the name may say enough
                continue
            with package.open(info) as member:
                data = member.read(min(left, _MAX_READ))
            left -= len(data)
            yield info.filename, data


def _tarred(content: bytes) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as package:
        for number, info in enumerate(package):
            if number >= _MAX_MEMBERS:
                return
            member = package.extractfile(info) if info.isreg() else None
            if member is not None:
                yield info.name, member.read(_MAX_READ)
