"""What a person asks for, checked, and what a job is. Pure.

Hides: which addresses are refused and why. Invariants: the URI of a `Submission` is an http(s) URI with a public host
name (no user information, no IP address in any notation, no local name); its e-mail is exactly one address that can
stand in a header; two submissions that ask for the same have the same fingerprint.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from recollect.datetimes import format_iso, parse_asked, parse_or_none
from recollect.desk.states import State
from recollect.errors import BadURI, RecollectError, UsageError
from recollect.recovery.canonical import visit_key
from recollect.recovery.choose import DatePreference
from recollect.recovery.options import Options
from recollect.recovery.scope import Scope, registered_domain
from recollect.ui.messages import current

MAX_URI = 2000
_SCHEME = re.compile(r"(https?)://", re.IGNORECASE)
_OTHER_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!\d)")
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9])?)+", re.IGNORECASE)
_NUMBERS = re.compile(r"(?:0x[0-9a-f]*|\d+)(?:\.(?:0x[0-9a-f]*|\d+))*", re.IGNORECASE)
_LOCAL = frozenset(
    ("localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "private", "arpa")
)
_EMAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.)*[A-Za-z0-9-]{1,63}")


class Refused(RecollectError):
    """A submission that is not taken, with the field it is about and the reason for the person."""

    def __init__(self, what: str, *, where: str = "", why: str = "", hint: str = "") -> None:
        super().__init__(what, where=where, why=why, hint=hint)
        self.field = where


class Extent(StrEnum):
    """How much of the site."""

    SITE = "site"
    PAGE = "page"


@dataclass(frozen=True, slots=True)
class Submission:
    """What one person asks for."""

    uri: str
    email: str
    name: str = ""
    extent: Extent = Extent.SITE
    archives: tuple[str, ...] = ()
    dates: DatePreference = DatePreference()  # noqa: RUF009 - frozen
    windows_names: bool = False
    scripts: bool = False  # whether the site and the kit keep what runs in their pages
    own_files: bool = False  # whether the person adds files of the site: the job is then theirs alone
    language: str = ""  # of the mails; it decides nothing else

    @property
    def site(self) -> str:
        """The registered domain, for limits and the blocklist."""
        return registered_domain(host_of(self.uri))

    def options(self) -> dict[str, Any]:
        """Everything that decides what is recovered."""
        return {
            "uri": self.uri,
            "scope": self.extent.value,
            "archives": sorted(self.archives),
            "at": _iso(self.dates.at),
            "from": _iso(self.dates.start),
            "to": _iso(self.dates.end),
            "windows_names": self.windows_names,
            "scripts": self.scripts,
            **({"own_files": True} if self.own_files else {}),
        }

    @property
    def fingerprint(self) -> str:
        """The same for all who ask for the same: spellings of one URI included."""
        asked = {**self.options(), "uri": visit_key(self.uri)}
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Job:
    """A recovery as the store has it."""

    id: str
    state: State
    uri: str
    site: str
    options: Mapping[str, Any]
    fingerprint: str
    created: float
    updated: float
    place: float
    fence: int
    crashes: int
    progress: float
    status: Mapping[str, Any]
    result: Mapping[str, Any]
    reason: str = ""
    pinned: str | None = None
    resume_at: float | None = None
    held: bool = False
    lease_until: float | None = None
    worker: str | None = None
    estimate: float | None = None
    source: str | None = None
    log: str = ""
    started: float | None = None
    ready_at: float | None = None
    expires_at: float | None = None
    relist_at: float | None = None
    continues: str | None = None
    """The job whose result this one completes, when an archive that did not answer is back."""
    retry_at: float | None = None
    tries: int = 0
    review: Mapping[str, Any] = field(default_factory=dict)


def job_of(row: Mapping[str, Any]) -> Job:
    """The job of a row."""
    values = dict(row)
    values["state"] = State(values["state"])
    values["options"] = json.loads(values.pop("wish"))
    values["status"] = json.loads(values["status"])
    values["result"] = json.loads(values["result"])
    values["review"] = json.loads(values["review"])
    values["held"] = bool(values["held"])
    return Job(**values)


def recovery_options(options: Mapping[str, Any], *, limit: int | None = None) -> Options:
    """The options of `recover` for a job: those of `recollect recover` without flags, except for what was chosen."""
    dates = DatePreference(parse_or_none(options["at"]), parse_or_none(options["from"]), parse_or_none(options["to"]))
    scope = Scope((options["uri"],), "page" if options["scope"] == Extent.PAGE else "prefix")
    return Options(scope=scope, dates=dates, limit=limit)


# From what was sent to a submission ----------------------------------------------------------------------------------


def parse_submission(fields: Mapping[str, Any], known_archives: Sequence[str]) -> Submission:
    """A submission from the fields of the API or the form; raises Refused with the field and a sentence about it."""
    known = {"uri", "email", "name", "scope", "archives", "at", "from", "to", "windows_names", "scripts", "language",
             "own_files"}  # fmt: skip
    for name in fields:
        if name not in known:
            raise Refused("unknown field", where=str(name)[:50], hint=f"known are {', '.join(sorted(known))}")
    at, start, end = (_date(fields, name) for name in ("at", "from", "to"))
    if at is not None and (start or end):
        raise Refused("either one date or a range", where="at", hint="leave out `at`, or `from` and `to`")
    if start is not None and end is not None and start > end:
        raise Refused("the range ends before it begins", where="to")
    return Submission(
        uri=clean_uri(_text(fields, "uri")),
        email=clean_email(_text(fields, "email")),
        name=clean_name(_text(fields, "name")),
        extent=_extent(fields),
        archives=_archives(fields, known_archives),
        dates=DatePreference(at, start, end),
        windows_names=_switch(fields, "windows_names"),
        scripts=_switch(fields, "scripts"),
        own_files=_switch(fields, "own_files"),
        language=_text(fields, "language")[:20] or current().language,
    )


def clean_uri(text: str) -> str:
    """The URI as it is sent to archives: http(s), a public host name, nothing else of the authority but a port."""
    uri = text.strip()
    if not uri:
        raise Refused("the address of the lost site is missing", where="uri", hint="for example http://lost.example/")
    if len(uri) > MAX_URI or re.search(r"[\x00-\x20\x7f\\<>\"]", uri):
        raise Refused("this is not an address", where="uri", why="it is too long or has characters no address has")
    if not _SCHEME.match(uri):
        if _OTHER_SCHEME.match(uri) or uri.startswith("/"):
            raise Refused("only http and https addresses can be recovered", where="uri")
        uri = f"http://{uri}"
    scheme, _, rest = uri.partition("://")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in authority:
        raise Refused("an address with a user name or password is not taken", where="uri")
    if authority.startswith("["):
        raise Refused("an IP address is not taken", where="uri", hint="give the name the site had")
    host, colon, port = authority.partition(":")
    if colon and not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536):
        raise Refused("the port is not a number from 1 to 65535", where="uri")
    _check_public(host)
    path = rest[len(authority) :].partition("#")[0]
    uri = f"{scheme.lower()}://{host}{colon}{port}{'' if path.startswith('/') else '/'}{path}"
    try:
        visit_key(uri)
    except BadURI as error:
        raise Refused("this is not an address", where="uri", why=error.why) from error
    return uri


def _check_public(host: str) -> None:
    """Raise Refused for what is not a name on the public web."""
    name = _ascii_host(host)
    if _NUMBERS.fullmatch(name):
        raise Refused("an IP address is not taken", where="uri", hint="give the name the site had")
    if name in _LOCAL or name.rpartition(".")[2] in _LOCAL or ("." not in name and name):
        raise Refused("a local name is not taken", where="uri", hint="give the full name the site had on the web")
    if not _HOST.fullmatch(name) or len(name) > 253:
        raise Refused("this is not the name of a site", where="uri", hint="for example http://lost.example/")
    last = name.rpartition(".")[2]
    if _NUMBERS.fullmatch(last):
        raise Refused("an IP address is not taken", where="uri", hint="give the name the site had")


def _ascii_host(host: str) -> str:
    """One form for all spellings of a host name: IDNA, lower case, no dot at its end."""
    try:
        return host.rstrip(".\u3002\uff0e\uff61").encode("idna").decode("ascii").lower()
    except UnicodeError as error:
        raise Refused("this is not the name of a site", where="uri", why=str(error)) from error


def host_of(uri: str) -> str:
    """The host name of a clean URI, the same for all its spellings."""
    return _ascii_host(re.split(r"[/?#:]", uri.partition("://")[2], maxsplit=1)[0])


def host_name(text: str) -> str:
    """The host name in what an operator types: a name, a name with a port, `*.name`, or an address. Raises Refused."""
    rest = _SCHEME.sub("", text.strip(), count=1)
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
    name = _ascii_host(authority.partition(":")[0].lstrip("*."))
    if not name or not re.fullmatch(r"[a-z0-9_.-]+", name):
        raise Refused("this is not the name of a site", where="pattern", hint="for example lost.example")
    return name


def clean_name(text: str) -> str:
    """A person's name as it stands in a mail: one line, and nothing that a mail program would make a link of."""
    name = re.sub(r"[^\w\s.,'\u2019()-]", " ", text)  # letters of any script, digits; no slash, colon or @
    name = re.sub(r"\.(?=\S)", ". ", re.sub(r"[\s_]+", " ", name))
    return " ".join(name.split())[:100]


def clean_email(text: str) -> str:
    """Exactly one plain address: no display name, no list, nothing that could become another header."""
    email = text.strip()
    if not email:
        raise Refused("the e-mail address is missing", where="email", hint="the result is announced there")
    if len(email) > 254 or not _EMAIL.fullmatch(email) or ".." in email:
        raise Refused("this is not one e-mail address", where="email", hint="for example anna@mail.example")
    return email


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > 10_000:
        raise Refused("expected a text", where=name)
    return value


def _switch(fields: Mapping[str, Any], name: str) -> bool:
    value = fields.get(name)
    if value in (None, False, "", "no", "false", "off", "0"):
        return False
    if value in (True, "yes", "true", "on", "1"):
        return True
    raise Refused("expected true or false", where=name)


def _extent(fields: Mapping[str, Any]) -> Extent:
    value = fields.get("scope") or Extent.SITE.value
    if value not in (Extent.SITE.value, Extent.PAGE.value):
        raise Refused("expected `site` or `page`", where="scope")
    return Extent(value)


def _archives(fields: Mapping[str, Any], known: Sequence[str]) -> tuple[str, ...]:
    value = fields.get("archives")
    if value in (None, "", []):
        return ()
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",")]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise Refused("expected a list of archives", where="archives")
    for item in value:
        if item not in known:
            raise Refused("unknown archive", where="archives", why=item[:100], hint=f"known are {', '.join(known)}")
    chosen = tuple(item for item in known if item in value)
    return () if len(chosen) == len(known) else chosen


def _date(fields: Mapping[str, Any], name: str) -> datetime | None:
    text = _text(fields, name).strip()
    if not text:
        return None
    from recollect.desk.addresses import read_date

    try:
        return parse_asked(read_date(text) or text, end=name == "to")
    except UsageError as error:
        raise Refused("this is not a date", where=name, hint="write it as 2009, 2009-06 or 2009-06-01") from error


def _iso(moment: datetime | None) -> str | None:
    return format_iso(moment) if moment is not None else None
