"""Secrets and personal data that would be published: found by name and by shape, also inside of packages.

Hides: the patterns. Not a proof: a match deserves a look, and a file without a match may still be secret. Zip, tar and
gzip files are looked into (`packages`), tables of databases too; text in UTF-16 is read as such. Files are read in
pieces: memory does not grow with them.
"""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import PurePosixPath
from typing import IO

from recollect.protection import credentials
from recollect.protection.packages import has_password_column
from recollect.protection.packages import members as _members
from recollect.protection.search import Places, Search, Shape, Test
from recollect.protection.selection import is_version_control_name

_HEAD = 1 << 16
_READ = 1 << 20
_DEPTH = 3  # packages in packages
_SAMPLE_EMAILS = 5  # one address in a file is an imprint, several are people
_MOST_EMAILS = 10_000


class Secret(StrEnum):
    """What was found."""

    PRIVATE_KEY = "private key"
    CREDENTIALS = "credentials"
    PASSWORD_HASH = "password hash"
    TOKEN = "access token"
    VERSION_CONTROL = "version control, with all earlier versions"
    UNSEARCHED = "not searched: too large, damaged, or of an unknown compression"
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
    r"|[._]?netrc|\.pgpass|pgpass\.conf|[^/]*\.htpasswd|htpasswd|\.htdigest|\.my\.cnf|\.mylogin\.cnf|\.npmrc|\.pypirc|\.yarnrc\.yml"
    r"|\.git-credentials|\.dockercfg|\.dockerconfigjson|\.s3cfg|\.boto"
    r"|\.passwd-s3fs|[\w.-]*vault[-_](?:pass\w*|token)(?:\.txt)?|\.ftp(?:config|pass)"
    r"|\.remote-sync\.json|sftp-config\.json|sftp\.json|filezilla\.xml|sitemanager\.xml|recentservers\.xml|winscp\.ini"
    r"|webservers\.xml|datasources\.local\.xml|hudson\.util\.secret|settings-security\.xml|\.terraformrc|terraform\.rc"
    r"|\.?rclone\.conf|kube\.?config(?:\.ya?ml)?|terraform\.tfstate(?:\.backup)?|shadow-?|gshadow-?|master\.passwd"
    r"|\.?\w*credentials|credentials\.(?:json|ya?ml|xml|csv|txt|ini|toml"
    r"|db|enc|properties)|.*credentials?\.(?:json|ya?ml|xml|csv|txt)"
    r"|credentials\.(?:yml\.enc|tfrc\.json)|(?:access_?tokens?|\w*token_cache)\.(?:json|bin)|[^/]+\.1p(?:if|ux)"
    r"|(?:bitwarden|lastpass|keepass|1password|dashlane|chrome[-_ ]passwords)[^/]*\.(?:json|csv|xml|html)"
    r"|client_secrets?(?:[-_.].*)?\.json|service[-_]?account[^/]*\.json|gcp[-_]?key[^/]*\.json"
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
    r"|\.snowsql/config|\.cargo/credentials\.toml|\.composer/auth\.json"
    r"|huggingface/token)$",
    re.IGNORECASE,
)
_HARMLESS_NAMES = re.compile(
    r"[^/]*[._-](?:example|sample|dist|template|tmpl|default)(?:\.\w+)?|[^/]*\.pub|known_hosts|authorized_keys",
    re.IGNORECASE,
)
# What editors and people put around the name of a copy.
_COPY = re.compile(
    r"(?:~|#|\.(?:bak|backup|old|orig|save|sav|sw[op]|tmp|copy|disabled|off|\d{1,14})"
    r"|[ _-]\(?(?:\d{1,3}|copy|kopie|copie|old|alt|bak|backup)\)?){1,9}$",
    re.IGNORECASE,
)
_COPY_OF = re.compile(
    r"^(?:\.?#|copy[ _-]of[ _-]|kopie[ _-]von[ _-]|copie[ _-]de[ _-]|\d{4}-?\d\d-?\d\d[ _-]|old[ _-]|backup[ _-])",
    re.IGNORECASE,
)
# Names that are as often harmless: their contents decide.
_PUBLIC_PEM = re.compile(
    rb"-----BEGIN (?:TRUSTED )?(?:CERTIFICATE|(?:RSA |EC )?PUBLIC KEY|X509 CRL|DH PARAMETERS|EC PARAMETERS)"
)
_AUTH = re.compile(rb"(?i:auth|token|passw|secret)")
# The signing key that Recollect makes is known by its own first words.
_PRIVATE_KEY = re.compile(
    rb"(?<=-----)BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY|(?<=---- )BEGIN SSH2 ENCRYPTED PRIVATE KEY|PuTTY-User-Key-File-\d"
    rb"|AGE-SECRET-KEY-(?:1|PQ-1)|AGE-PLUGIN-[A-Z0-9-]{1,60}-1|recollect-secret-key-1 "
    rb"|LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0EgUFJJ|BFQyBQUklW|BPUEVOU1NI|BFTkNSWVBU)"  # the same in base64
    rb"|\"private_key\"\s{0,9}:\s{0,9}\"-|untrusted comment: [^\n]{0,200}secret key"
)
_KEY_STEMS = (
    *(b"begin ", b"putty-user-key-file-", b"age-secret-key-", b"age-plugin-", b"recollect-secret-key-1 "),
    *(b"ls0tls1crudjti", b'"private_key"', b"untrusted comment: "),
)
_DER = re.compile(  # PKCS#1, PKCS#8, PKCS#12, SEC 1; and an encrypted PKCS#8
    rb"0(?:\x82(?s:..)|\x81(?s:.)|(?s:.))(?:\x02\x01[\x00\x01\x03][\x30\x02\x04]"
    rb"|0(?:\x82(?s:..)|\x81(?s:.)|(?s:.))\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x05)"
)
_STORES = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce", b"\x03\xd9\xa2\x9a")  # JKS, JCEKS, KeePass
_HISTORY = re.compile(rb"# v\d git bundle\n|HG[12]0|SVN-fs-dump-format-version: ")
_JWK_PRIVATE = re.compile(rb"\"(?:d|k)\"\s{0,9}:\s{0,9}\"")
_JWK = re.compile(rb"\"kty\"\s{0,9}:\s{0,9}\"(?:RSA|EC|OKP|oct)\"")
_TOKEN = re.compile(
    rb"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{36}|\bgithub_pat_\w{40}"
    rb"|\bglpat-[\w-]{20}|\bgl(?:dt|rt|ptt|soat|cbt|imt|agent|ft)-[\w-]{20}"
    rb"|\bxox[abeoprs]-[\w-]{10}|\bxapp-\d-[\w-]{10}|hooks\.slack\.com/services/[\w/]{20}"
    rb"|discord(?:app)?\.com/api/webhooks/\d+/[\w-]{20}"
    rb"|\b(?:sk|rk)_(?:live|test)_[0-9a-zA-Z]{16}|\bwhsec_[0-9a-zA-Z]{24}|\bsk-(?:ant"
    rb"|proj|svcacct|or)-[\w-]{20}|\bsk-[A-Za-z0-9]{40}"
    rb"|\bAIza[0-9A-Za-z_-]{35}|\bGOCSPX-[\w-]{20}|\bya29\.[\w-]{20}|\bnpm_[A-Za-z0-9]{36}"
    rb"|\bpypi-AgE[\w-]{20}|\bhf_[A-Za-z0-9]{30}"
    rb"|\bSG\.[\w-]{20}[\w-]{0,10}\.[\w-]{20}|\bkey-[0-9a-f]{32}\b|\bdo[por]_v1_[0-9a-f]{40}"
    rb"|\bdckr_pat_[\w-]{20}|\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"
    rb"|\bEAAC[0-9A-Za-z]{20}|\bdapi[0-9a-f]{32}\b|\brubygems_[0-9a-f]{48}"
    rb"|\bcio[A-Za-z0-9]{32}\b|\bhv[sb]\.[\w-]{20}|\blin_api_\w{20}|\bsq0(?:atp|csp)-[\w-]{22}|\bATATT3[\w=-]{50}"
    rb"|AccountKey=[A-Za-z0-9+/=]{40}|\bSharedAccessKey=[A-Za-z0-9+/=]{30}|\bsig=[A-Za-z0-9%]{40}"
    rb"|(?<=\d{8}):AA[\w-]{33}\b|\bey[JA][\w-]{8,500}\.ey[\w-]{10,2000}\.[\w-]{10}"
)
_TOKEN_STEMS = tuple(
    b"akia asia ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- gldt- glrt- glptt- glsoat- glcbt- glimt- glagent- "
    b"glft- xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp- hooks.slack.com discord.com discordapp.com sk_live_ "
    b"rk_live_ sk_test_ rk_test_ whsec_ sk- aiza gocspx- ya29. npm_ pypi-age hf_ sg. key- dop_v1_ doo_v1_ dor_v1_ "
    b"dckr_pat_ shpat_ shpca_ shppa_ shpss_ eaac dapi rubygems_ cio hvs. hvb. lin_api_ sq0atp- sq0csp- atatt3 "
    b"accountkey= sharedaccesskey= sig= :aa eyj eya".split()
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
_HASH_STEMS = tuple(
    b"$2a$ $2b$ $2x$ $2y$ $argon2 $p$ $h$ $5$ $6$ $1$ $apr1$ $y$ $7$ $wp$ {sha {ssha pbkdf2 scrypt: md5$ sha1$ "
    b"sha256$".split()
)
_EMAIL = re.compile(rb"@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}\b")
_LOCAL = re.compile(rb"[\w.+-]{1,64}\Z")


def _begins(pattern: re.Pattern[bytes]) -> Test:
    return lambda text, at: pattern.match(text, at) is not None


def _is_private_jwk(text: bytes, at: int) -> bool:
    """Whether the object of JSON around the type of a key has its private part."""
    start, end = text.rfind(b"{", max(0, at - 4000), at), text.find(b"}", at, at + 4000)
    whole = text[max(start, at - 4000) : end if end >= 0 else at + 4000]
    return _JWK.match(text, at) is not None and _JWK_PRIVATE.search(whole) is not None


_COMMON = (
    Shape(Secret.PRIVATE_KEY, _KEY_STEMS, _begins(_PRIVATE_KEY)),
    Shape(Secret.PRIVATE_KEY, (b'"kty"',), _is_private_jwk),
    Shape(Secret.TOKEN, _TOKEN_STEMS, _begins(_TOKEN)),
    Shape(Secret.PASSWORD_HASH, _HASH_STEMS, _begins(_PASSWORD_HASH)),
)
_CREDENTIALS = (
    Shape(Secret.CREDENTIALS, credentials.WORD_STEMS, credentials.is_named_value),
    Shape(Secret.CREDENTIALS, credentials.CALL_STEMS, credentials.is_call),
    Shape(Secret.CREDENTIALS, credentials.CONNECT_STEMS, credentials.is_connection),
    Shape(Secret.CREDENTIALS, credentials.AUTH_STEMS, credentials.is_basic_auth),
    Shape(Secret.CREDENTIALS, (b"://",), credentials.is_address),
    Shape(Secret.CREDENTIALS, credentials.ALWAYS_STEMS, credentials.is_command),
    Shape(Secret.CREDENTIALS, credentials.SQL_STEMS, credentials.is_password_row),
)
_SETTINGS = Shape(Secret.CREDENTIALS, credentials.WORD_STEMS, credentials.is_setting)
_IN_SECRET_FILES = Search(_COMMON)
_IN_PROGRAMS = Search((*_COMMON, *_CREDENTIALS))
_IN_OTHERS = Search((*_COMMON, *_CREDENTIALS, _SETTINGS))


def scan(files: Iterable[tuple[str, bytes]]) -> Iterator[Found]:
    """What (name, content) pairs hold that should hardly be public."""
    for name, content in files:
        yield from scan_stream(name, io.BytesIO(content))


def scan_stream(name: str, stream: IO[bytes], depth: int = _DEPTH) -> Iterator[Found]:
    """What a file holds that should hardly be public: in it, and in the packages in it."""
    yield from _scan_text(name, stream)
    if depth:
        stream.seek(0)
        history: set[str] = set()
        for inside, member in _members(stream):
            kept_in = next((part for part in PurePosixPath(inside).parts if is_version_control_name(part)), "")
            if kept_in and kept_in not in history:
                history.add(kept_in)
                yield Found(f"{name}!{kept_in}", Secret.VERSION_CONTROL)
            own = inside or PurePosixPath(name).stem  # dump.sql of dump.sql.gz
            if member is None:
                yield Found(f"{name}!{own}", Secret.UNSEARCHED)
                continue
            for found in scan_stream(own, member, depth - 1):
                yield Found(f"{name}!{found.file}", found.kind, found.line, found.times)


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


def _is_public(name: str, head: bytes) -> bool:
    """Whether a file with the name of a secret is none: certificates, settings of npm without a token, slides."""
    end = PurePosixPath(name).suffix.lower()
    if end in (".pem", ".key"):
        public = _PUBLIC_PEM.search(head) is not None or (end == ".key" and head.startswith(b"PK\x03\x04"))
        return public and b"PRIVATE KEY" not in head
    return PurePosixPath(name).name.lower() in (".npmrc", ".yarnrc.yml") and bool(head) and not _AUTH.search(head)


def _scan_text(name: str, stream: IO[bytes]) -> Iterator[Found]:
    head = stream.read(_HEAD)
    by_name = is_secret_name(name) and not _is_public(name, head)
    if by_name:
        yield Found(name, Secret.CREDENTIALS)
    if _HISTORY.match(head):
        yield Found(name, Secret.VERSION_CONTROL)
    if _DER.match(head) or head.startswith(_STORES):
        yield Found(name, Secret.PRIVATE_KEY, 1)
    people = _People()
    pieces = people.watched(_plain(chain((head,), iter(lambda: stream.read(_READ), b""))))
    search = _IN_SECRET_FILES if by_name else _IN_PROGRAMS if credentials.is_program(name) else _IN_OTHERS
    places = search.find(pieces)
    if not by_name and Secret.CREDENTIALS not in places and _has_passwords(stream, head):
        places[Secret.CREDENTIALS] = Places(0, 1)
    for kind in sorted(places):
        yield Found(name, kind, places[kind].line, places[kind].times)
    if len(people.addresses) >= _SAMPLE_EMAILS:
        yield Found(name, Secret.PERSONAL, people.line, len(people.addresses))


def _has_passwords(stream: IO[bytes], head: bytes) -> bool:
    """Whether a table has a column of passwords: of a database of SQLite, or in text."""
    if head.startswith(b"SQLite format 3\0"):
        stream.seek(0)
        return has_password_column(stream)
    return credentials.has_password_column(b"".join(_plain((head,))))


class _People:
    """Addresses of people, counted while a text goes by; one that lies across two pieces is missed."""

    def __init__(self) -> None:
        self.addresses: set[bytes] = set()
        self.line = 0
        self._lines = 0

    def watched(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            at = piece.find(b"@")
            while at >= 0 and len(self.addresses) < _MOST_EMAILS:
                local, domain = _LOCAL.search(piece[max(0, at - 64) : at]), _EMAIL.match(piece, at)
                if local is not None and domain is not None:
                    self.line = self.line or self._lines + piece.count(b"\n", 0, at) + 1
                    self.addresses.add((local[0] + domain[0]).lower())
                at = piece.find(b"@", at + 1)
            self._lines += piece.count(b"\n")
            yield piece


def _plain(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The bytes as text of one byte for each character, where they are UTF-16: Windows programs write it."""
    wide: bool | None = None
    for piece in pieces:
        if wide is None:
            head = piece[:200]
            wide = head.startswith((b"\xff\xfe", b"\xfe\xff")) or (len(head) > 20 and 3 * head.count(0) > len(head))
            piece = piece.removeprefix(b"\xff\xfe").removeprefix(b"\xfe\xff").removeprefix(b"\xef\xbb\xbf")
        yield piece.replace(b"\0", b"") if wide else piece
