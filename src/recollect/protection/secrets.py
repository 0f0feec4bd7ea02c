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
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

from recollect.protection.credentials import credentials

_MAX_READ = 256 << 20  # bytes of a file that are searched
_PIECE, _OVERLAP = 1 << 20, 1 << 13
_MAX_PACKED = 64 << 20  # bytes of all members of one package that are read
_MAX_MEMBERS = 5000
_DEPTH = 3  # packages in packages
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
    r"\.env(?:rc|\..+)?|[^/]+\.env|env\.(?:local|prod|production"
    r"|staging|dev|development)|\.flaskenv|\.renviron|\.dev\.vars"
    r"|[^/]+\.(?:pem|key|p12|pfx|p8|jks|keystore|bks|kdbx?|ppk|agekey"
    r"|gpg-key|ovpn|tfstate|tfvars|pkcs12|keytab|kubeconfig|private)"
    r"|id_(?:rsa|dsa|ecdsa|ed25519|ecdsa_sk|ed25519_sk|xmss)(?:[-_.][^/]*)?|ssh_host_\w+_key|identity|secring\.\w+"
    r"|[._]?netrc|\.pgpass|pgpass\.conf|\.?htpasswd|\.htdigest|\.my\.cnf|\.mylogin\.cnf|\.npmrc|\.pypirc|\.yarnrc\.yml"
    r"|\.git-credentials|\.dockercfg|\.dockerconfigjson|\.s3cfg|\.boto"
    r"|\.passwd-s3fs|\.?vault[-_](?:pass\w*|token)|\.ftp(?:config|pass)"
    r"|\.remote-sync\.json|sftp-config\.json|sftp\.json|filezilla\.xml|sitemanager\.xml|recentservers\.xml|winscp\.ini"
    r"|webservers\.xml|datasources\.local\.xml|hudson\.util\.secret|settings-security\.xml|\.terraformrc|terraform\.rc"
    r"|\.?rclone\.conf|kube\.?config(?:\.ya?ml)?|terraform\.tfstate(?:\.backup)?|shadow-?|gshadow-?|master\.passwd"
    r"|\.?\w*credentials|credentials\.(?:json|ya?ml|xml|csv|txt|ini|toml"
    r"|db|enc|properties)|.*credentials?\.(?:json|ya?ml|xml|csv|txt)"
    r"|credentials\.yml\.enc|client_secrets?(?:[-_.].*)?\.json|service[-_]?account[^/]*\.json|gcp[-_]?key[^/]*\.json"
    r"|[^/]*firebase-adminsdk[^/]*\.json|token\.(?:json|pickle)"
    r"|[._]?secrets?\.(?:ya?ml|json|toml|ini|env|txt|properties)"
    r"|\.secrets?|[._]?secret_?key(?:\.txt)?|[^/]+\.secrets?|(?:chap"
    r"|pap)-secrets|master\.key|secret_token\.rb|vault\.ya?ml"
    r"|wp-config(?:[-.]\w+)*\.php|localsettings\.php|\.fetchmailrc"
    r"|\.msmtprc|\.mbsyncrc|\.offlineimaprc|sasl_passwd(?:\.db)?"
    r"|passwd\.client|wallet\.dat|acme\.json|kaggle\.json|\.sentryclirc|\.databrickscfg|\.consul-token"
    r"|login data|logins\.json|key[34]\.db|cookies\.(?:sqlite|txt)"
    r"|\.(?:bash|zsh|sh|fish|ash|psql|mysql|sqlite|python|node_repl"
    r"|rediscli|irb|pry|php|mongo|dbshell)_?history|\.viminfo",
    re.IGNORECASE,
)
# Lists of passwords, as people name them in some languages.
_LISTS = re.compile(
    r"(?:passwords?|passwort|passwörter|passwoerter|kennwort"
    r"|kennwörter|kennwoerter|zugangsdaten|logins|contrase[ñn]as?"
    r"|claves|mots?[-_ ]?de[-_ ]?passe|senhas?|wachtwoord(?:en)?|lösenord|hasła|hasla|парол[ьи]|パスワード|密码)"
    r"\.(?:txt|csv|tsv|xlsx?|ods|docx?|odt|rtf|json|ya?ml)",
    re.IGNORECASE,
)
# Folders in which every file is a secret, and files that are secret in some folders only.
_FOLDERS = re.compile(
    r"(?:^|/)(?:\.ssh|\.gnupg|\.aws|\.azure|\.gcloud|\.password-store"
    r"|\.config/(?:gcloud|doctl|rclone)|\.kaggle|\.huggingface"
    r"|\.acme\.sh|\.electrum|\.bitcoin|\.thunderbird|\.mozilla|letsencrypt/(?:live|archive|accounts|keys))/",
    re.IGNORECASE,
)
_PATHS = re.compile(
    r"(?:^|/)(?:\.docker/config\.json|\.kube/config|\.m2/settings\.xml|\.config/gh/hosts\.yml|\.config/hub"
    r"|\.config/glab-cli/config\.yml|\.davfs2/secrets|\.gradle/gradle\.properties"
    r"|\.snowsql/config|\.cargo/credentials\.toml"
    r"|huggingface/token)$",
    re.IGNORECASE,
)
_HARMLESS_NAMES = re.compile(
    r"[^/]*[._-](?:example|sample|dist|template|tmpl|default)(?:\.\w+)?|[^/]*\.pub|known_hosts|authorized_keys",
    re.IGNORECASE,
)
# What editors and people put around the name of a copy.
_COPY = re.compile(
    r"(?:~|\.(?:bak|backup|old|orig|save|sav|sw[op]|tmp|copy|disabled|off|\d{1,14})"
    r"|[ _-]\(?(?:\d{1,3}|copy|kopie|copie|old|alt|bak|backup)\)?){1,9}$",
    re.IGNORECASE,
)
_COPY_OF = re.compile(
    r"^(?:copy[ _-]of[ _-]|kopie[ _-]von[ _-]|copie[ _-]de[ _-]|\d{4}-?\d\d-?\d\d[ _-]|old[ _-]|backup[ _-])",
    re.IGNORECASE,
)
# Names that are as often harmless: their contents decide.
_PUBLIC_PEM = re.compile(rb"-----BEGIN (?:TRUSTED )?(?:CERTIFICATE|(?:RSA |EC )?PUBLIC KEY|X509 CRL|DH PARAMETERS)")
_AUTH = re.compile(rb"(?i:auth|token|passw|secret)")
# The signing key that Recollect makes is known by its own first words.
_PRIVATE_KEY = re.compile(
    rb"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY|PuTTY-User-Key-File-\d"
    rb"|AGE-SECRET-KEY-(?:1|PQ-1)|AGE-PLUGIN-[A-Z0-9-]{1,60}-1|recollect-secret-key-1 "
    rb"|LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0EgUFJJ|BFQyBQUklW|BPUEVOU1NI|BFTkNSWVBU)"  # the same in base64
    rb"|\A0(?:\x82(?s:..)|\x81(?s:.)|(?s:.))\x02\x01[\x00\x01\x03][\x30\x02\x04]"  # DER: PKCS#8, PKCS#1, SEC 1, PKCS#12
    rb"|\"private_key\"\s{0,9}:\s{0,9}\"-|\"kty\"\s{0,9}:\s{0,9}\"(?:RSA|EC|OKP)\"[^{}]{0,2000}\"d\"\s{0,9}:"
)
_TOKEN = re.compile(
    rb"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{36}|\bgithub_pat_\w{40}"
    rb"|\bglpat-[\w-]{20}|\bgl(?:dt|rt|ptt|soat)-[\w-]{20}"
    rb"|\bxox[abeoprs]-[\w-]{10}|\bxapp-\d-[\w-]{10}|hooks\.slack\.com/services/[\w/]{20}"
    rb"|discord(?:app)?\.com/api/webhooks/\d+/[\w-]{20}"
    rb"|\b(?:sk|rk)_live_[0-9a-zA-Z]{16}|\bwhsec_[0-9a-zA-Z]{24}|\bsk-(?:ant"
    rb"|proj|svcacct|or)-[\w-]{20}|\bsk-[A-Za-z0-9]{40}"
    rb"|\bAIza[0-9A-Za-z_-]{35}|\bGOCSPX-[\w-]{20}|\bya29\.[\w-]{20}|\bnpm_[A-Za-z0-9]{36}"
    rb"|\bpypi-AgE[\w-]{20}|\bhf_[A-Za-z0-9]{30}"
    rb"|\bSG\.[\w-]{20}\.[\w-]{20}|\bkey-[0-9a-f]{32}\b|\bdop_v1_[0-9a-f]{40}"
    rb"|\bdckr_pat_[\w-]{20}|\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"
    rb"|\bEAAC[0-9A-Za-z]{20}|\bdapi[0-9a-f]{32}\b|\brubygems_[0-9a-f]{48}"
    rb"|\bcio[\w-]{32}\b|\bhvs\.[\w-]{20}|\blin_api_\w{20}"
    rb"|AccountKey=[A-Za-z0-9+/=]{40}|\bSharedAccessKey=[A-Za-z0-9+/=]{30}|\bsig=[A-Za-z0-9%]{40}"
    rb"|\b\d{8,10}:AA[\w-]{33}\b|\bey[\w-]{10,500}\.ey[\w-]{10,2000}\.[\w-]{10}"
)
_TOKEN_STEMS = tuple(
    b"AKIA ASIA ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- gldt- glrt- "
    b"glptt- glsoat- xox xapp- slack.com discord _live_ whsec_ sk- "
    b"AIza GOCSPX- ya29. npm_ pypi-AgE hf_ SG. key- dop_v1_ dckr_pat_ "
    b"shpat_ shpca_ shppa_ shpss_ EAAC dapi rubygems_ cio hvs. "
    b"lin_api_ AccountKey= SharedAccessKey= sig= :AA .ey".split()
)
_PASSWORD_HASH = re.compile(
    rb"\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}|\$argon2(?:id|i|d)\$v=\d|\$[PH]\$[./A-Za-z0-9]{31}"
    rb"|\$[56]\$(?:rounds=\d+\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{20}|\$6\$rounds=\d"
    rb"|\$(?:1|apr1)\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}"
    rb"|\$y\$[./A-Za-z0-9]{2,20}\$[./A-Za-z0-9]{4}|\$7\$[./A-Za-z0-9]{8}"
    rb"|\$wp\$2y\$\d|\{S?SHA(?:256|512)?\}[A-Za-z0-9+/=]{20}"
    rb"|\bpbkdf2(?:_sha\d+\$|:sha\d+:)\d+\$[^\s$]{4,64}\$[\w+/]{10}|\bscrypt:\d+:\d+:\d+\$[^\s$]{4,64}\$[0-9a-f]{10}"
    rb"|\bmd5\$[^\s$]{1,64}\$[0-9a-f]{32}|\bsha(?:1|256)\$[^\s$]{1,64}\$[0-9a-f]{40}"
)
# Each shape with texts of which a match has at least one: looking for them is quicker than the search.
_SHAPES: tuple[tuple[Secret, re.Pattern[bytes], tuple[bytes, ...]], ...] = (
    (Secret.PRIVATE_KEY, _PRIVATE_KEY, ()),
    (Secret.TOKEN, _TOKEN, _TOKEN_STEMS),
    (Secret.PASSWORD_HASH, _PASSWORD_HASH, (b"$", b"{S")),
)
_EMAIL = re.compile(rb"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}\b", re.IGNORECASE)
_Reader = Callable[[bytes], bytes]


def scan(files: Iterable[tuple[str, bytes]]) -> Iterator[Found]:
    """What (name, content) pairs hold that should hardly be public."""
    for name, content in files:
        yield from _scan_file(name, content)
        for inside, member in _all_members(name, content, _DEPTH):
            for found in _scan_file(inside, member):
                yield Found(f"{name}!{found.file}", found.kind, found.line, found.times)


def _all_members(name: str, content: bytes, depth: int) -> Iterator[tuple[str, bytes]]:
    """What a package holds, and the packages in it."""
    for inside, member in _members(content):
        own = inside or PurePosixPath(name).stem  # dump.sql of dump.sql.gz
        yield own, member
        if depth > 1:
            for deeper, data in _all_members(own, member, depth - 1):
                yield f"{own}!{deeper}", data


def is_secret_name(name: str) -> bool:
    """Whether a file is known as a secret by its name alone."""
    name = unicodedata.normalize("NFC", name)
    base = PurePosixPath(name).name
    if _HARMLESS_NAMES.fullmatch(base):
        return False
    names = {base, *(variant for variant in _originals(base) if not _HARMLESS_NAMES.fullmatch(variant))}
    by_base = any(_NAMES.fullmatch(one) or _LISTS.fullmatch(one) for one in names)
    return bool(by_base or _FOLDERS.search(name) or _PATHS.search(name))


def _originals(base: str) -> Iterator[str]:
    """The names that a file may be a copy of: `.env` of `.env.bak` and of `Copy of .env`, `wp-config.php` of
    `.wp-config.php.swp`, `site.key` of `site (1).key`."""
    plain = _COPY_OF.sub("", _COPY.sub("", base))
    yield plain
    yield plain.removeprefix(".")
    stem, dot, end = plain.rpartition(".")
    yield _COPY.sub("", stem) + dot + end


def _is_public(name: str, content: bytes) -> bool:
    """Whether a file with the name of a secret is none: certificates, settings of npm without a token, slides."""
    end = PurePosixPath(name).suffix.lower()
    if end in (".pem", ".key"):
        public = _PUBLIC_PEM.search(content) is not None or (end == ".key" and content.startswith(b"PK\x03\x04"))
        return public and b"PRIVATE KEY" not in content
    return PurePosixPath(name).name.lower() in (".npmrc", ".yarnrc.yml") and bool(content) and not _AUTH.search(content)


def _scan_file(name: str, content: bytes) -> Iterator[Found]:
    by_name = is_secret_name(name) and not _is_public(name, content)
    if by_name:
        yield Found(name, Secret.CREDENTIALS)
    text = _plain(content[:_MAX_READ])
    places: dict[Secret, set[int]] = {}
    for start, piece in _pieces(text):
        for kind, pattern, stems in _SHAPES:
            if _has_any(piece, stems):
                places.setdefault(kind, set()).update(start + match.start() for match in pattern.finditer(piece))
        if not by_name:
            places.setdefault(Secret.CREDENTIALS, set()).update(start + at for at in credentials(name, piece))
    for kind, offsets in places.items():
        if offsets:
            yield Found(name, kind, _line(text, min(offsets)), len(offsets))
    people: dict[bytes, int] = {}
    for match in _EMAIL.finditer(text):
        people.setdefault(match[0].lower(), match.start())
    if len(people) >= _SAMPLE_EMAILS:
        yield Found(name, Secret.PERSONAL, _line(text, min(people.values())), len(people))


def _pieces(text: bytes) -> Iterator[tuple[int, bytes]]:
    """(offset, piece) with an overlap, so that a search in a piece without any stem of a shape can be left out."""
    for start in range(0, max(1, len(text)), _PIECE):
        yield start, text[start : start + _PIECE + _OVERLAP]


def _has_any(piece: bytes, stems: tuple[bytes, ...]) -> bool:
    return not stems or any(stem in piece for stem in stems)


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
                data = member.read(min(left, _MAX_PACKED))
            left -= len(data)
            yield info.filename, data


def _tarred(content: bytes) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as package:
        for number, info in enumerate(package):
            if number >= _MAX_MEMBERS:
                return
            member = package.extractfile(info) if info.isreg() else None
            if member is not None:
                yield info.name, member.read(_MAX_PACKED)
