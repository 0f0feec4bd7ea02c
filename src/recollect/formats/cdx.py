"""Lines of capture indexes: CDX and CDXJ of every maker, SURT lists and URL lists. The careful parser.

Hides how the makers differ. A line becomes a `Capture`, or one of two exceptions says why it does not: `NotACapture`
for a valid line that is not a web capture (a header, `dns:`, a WARC's metadata), `FormatError` for one that
cannot be read. `kernels.scan` reads ordinary lines faster and must agree with this module.

CDX: fields separated by one delimiter, usually a space. The header ` CDX N b a m s k r M S V g` names them, its first
byte is the delimiter; without one the fields are N b a m s k r ... (9, 10, 11 or 14 of them). Letters used here: N, A,
or n key; b time; a URL; m media type; s status; k digest; S length; g file. The key may be a SURT or a canonical URL
without scheme.

    com,example)/a 20140103030321 http://example.com/a text/html 200 B2LTW... - - 1043 333 x.warc.gz

CDXJ: key, time, then one JSON object; pywb, OpenWayback, ipwb (`mime_type`, `status_code`, `locator`), OutbackCDX and
CDX servers (`original`, `mimetype`, `statuscode`, whole lines of JSON with `urlkey`) name the fields differently;
TimeMaps as CDXJ have `archive` and `urim`. Lines that start with `!` or `@` are headers. OpenWayback 3 has a WARC
record's type before the object, whole SURTs, times in ISO 8601, and names of three letters.

    com,example)/a 20140103030321 {"url": "http://example.com/a", "mime": "text/html", "status": "200", ...}
    (com,example,)/a 2014-01-03T03:03:21Z response {"uri": "http://example.com/a", "mct": "text/html", "hsc": "200"}

Invariants of a `Capture`: `surt` is as the index spells it (or made from the URL where the index has none), `timestamp`
is 14 digits or empty, `media_type` is lower case without parameters, and what is missing is None, never `-`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from recollect.datetimes import format_timestamp, parse_timestamp
from recollect.errors import BadURI, FormatError
from recollect.formats.lists import uri_of_line
from recollect.uris import is_surt, surt, uri_key

REVISIT = "warc/revisit"
# No URI is as long; noise that looks like one must not fill the memory.
MAX_KEY = 1 << 16
# Media types that only records about captures have, when they have no status.
METADATA_TYPES = frozenset({"text/anvl", "application/warc-fields"})
# Media types of records that are never captures, as indexers write them -> what they are.
OTHER_TYPES = {
    "text/dns": "dns",
    "warc/warcinfo": "warcinfo",
    "warc/request": "request",
    "warc/metadata": "metadata",
    "warc/conversion": "conversion",
}
_SCHEME = re.compile(r"([a-z][a-z0-9+-]*):", re.IGNORECASE)
_PORT = re.compile(r"\d+(?![^/?#])", re.ASCII)
_WEB_SCHEMES = frozenset({"http", "https", "ftp"})
# A bare word does not count as a URL, or every broken line would be one.
_LIKE_A_URL = re.compile(r"[a-z][a-z0-9+-]*://|localhost\b|[^/]*\.", re.IGNORECASE)
_PLAIN_URL = re.compile(r"https?://[!-'*-~]+")  # without parentheses it is not a SURT
_TIME = re.compile(r"\d{4}(?:\d\d){0,5}|\d{15,20}", re.ASCII)
_ISO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z", re.ASCII)
_STATUS = re.compile(r"[1-9]\d\d", re.ASCII)
# How makers write that there is no status.
_NO_STATUS = re.compile(r"-?|0+|None")
# The method of a request that was not a GET, which crawlers and replay tools put into the query of its key.
_METHOD = re.compile(r"(?:^|&)__wb_method=([a-z]{1,16})(?=&|$)", re.IGNORECASE)
# Names of the fields in JSON objects, by what they are.
FIELD_NAMES = {
    "surt": ("urlkey", "surt"),
    "timestamp": ("timestamp", "datetime"),
    "url": ("url", "original", "uri", "u"),
    "media_type": ("mime", "mimetype", "mime_type", "m", "content_type", "mct"),
    "status": ("status", "statuscode", "status_code", "s", "hsc"),
    "digest": ("digest", "sha1", "sha"),
    "length": ("length", "cle"),
    "filename": ("filename", "locator", "ref"),
    "language": ("languages", "language", "lang"),
}
_FIELDS = {name: field for field, names in FIELD_NAMES.items() for name in names}
_PAIR = r'\s*"([^"\\]*)"\s*:\s*"((?:[^"]*[^"\\])?)"'
_THREE_PAIRS = re.compile(rf"\{{{_PAIR}\s*,{_PAIR}\s*,{_PAIR}")
# Of all white space only these set words apart; others may be bytes of a key.
_BLANKS = " \t\r\n"
_CDXJ_LINE = re.compile(r"([^ \t]+)[ \t]+([^ \t]+)(?:[ \t]+([a-z]+))?[ \t]+(\{.*)", re.DOTALL)
# Types of WARC records that are not captures.
_OTHER_RECORDS = ("request", "metadata", "warcinfo", "conversion", "continuation")
_LETTERS = {
    "b": "timestamp",
    "a": "url",
    "m": "media_type",
    "s": "status",
    "k": "digest",
    "S": "length",
    "g": "filename",
    "l": "language",
}
_USUAL = {9: "NbamskrVg", 10: "NbamskrMVg", 11: "NbamskrMSVg", 14: "NbamskrMSVgxyz"}


@dataclass(frozen=True, slots=True)
class Capture:
    """One line of an index, or one record of a WARC."""

    surt: bytes
    timestamp: str = ""
    url: str | None = None
    status: int | None = None
    media_type: str | None = None
    digest: str | None = None
    length: int | None = None
    filename: str | None = None
    language: str | None = None
    count: int = 1
    flaw: str = ""
    """What of the line cannot be read, though the capture can be counted."""


class NotACapture(Exception):
    """A line or record that is valid but not a capture of a web resource; `kind` says what it is."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


HEADER = "header"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the fields of a CDX line are; `letters` is one letter per field."""

    letters: str = "NbamskrMSVg"
    delimiter: str = " "
    from_header: bool = False

    @property
    def key(self) -> int:
        """The field that holds the key."""
        return next((self.letters.find(letter) for letter in "NAn" if letter in self.letters), 0)

    def position(self, name: str) -> int:
        """Where a field is, or -1."""
        return next((self.letters.find(letter) for letter, field in _LETTERS.items() if field == name), -1)


def parse_layout(line: str) -> Layout | None:
    """The layout that a CDX header names; None if the line is not a header."""
    match = re.match(r"(\W)CDX\1", line) or re.match(r"()CDX ", line)
    if match is None:
        return None
    delimiter = match[1] or " "
    letters = [field for field in line[match.end() :].split(delimiter) if field]
    if not letters or any(len(letter) != 1 for letter in letters):
        return None
    return Layout("".join(letters), delimiter, True)


def usual_layout(fields: int, delimiter: str = " ") -> Layout | None:
    """The layout of a CDX line with this number of fields in a file without header."""
    return Layout(_USUAL[fields], delimiter) if fields in _USUAL else None


def parse_cdx(line: str, layout: Layout, *, all_schemes: bool = False) -> Capture:
    """The capture of one CDX line."""
    if parse_layout(line) is not None or not line.strip(_BLANKS):
        raise NotACapture(HEADER)
    fields = line.rstrip("\r\n").split(layout.delimiter)
    if len(fields) != len(layout.letters):
        other = None if layout.from_header else usual_layout(len(fields), layout.delimiter)
        if other is None:
            raise FormatError(f"{len(fields)} fields instead of {len(layout.letters)}")
        layout = other
    values: dict[str, Any] = {
        _LETTERS[letter]: value for letter, value in zip(layout.letters, fields, strict=True) if letter in _LETTERS
    }
    return _capture(fields[layout.key], values, all_schemes)


def parse_cdxj(line: str, *, all_schemes: bool = False) -> Capture:
    """The capture of one CDXJ line, or of a line that is all JSON."""
    stripped = line.strip(_BLANKS)
    if not stripped or stripped[0] in "!@#":
        raise NotACapture(HEADER)
    if stripped[0] == "{":
        values = _json(stripped)
        return _capture(str(values.get("surt") or ""), values, all_schemes)
    match = _CDXJ_LINE.fullmatch(stripped)
    if match is None:
        raise FormatError("no JSON object after key and time")
    key, moment, kind, block = match.groups()
    if kind in _OTHER_RECORDS:
        raise NotACapture(kind)
    values = _json(block)
    values["timestamp"] = moment
    if kind == "revisit":
        values["media_type"] = REVISIT
    return _capture(key, values, all_schemes)


def parse_surt(line: str, *, all_schemes: bool = False) -> Capture:
    """The SURT (or URL) of one line of a list, counted as one capture."""
    text = line.strip(_BLANKS)
    if not text or text[0] in "!@#":
        raise NotACapture(HEADER)
    if len(text) <= MAX_KEY and _PLAIN_URL.fullmatch(text) and (made := _made_surt(text)) is not None:
        if not all_schemes and (method := request_method(text)) is not None:
            raise NotACapture(method)
        return Capture(made)
    uri = uri_of_line(text)
    if uri is None:
        raise FormatError("more than a URI in a line of a list")
    return _capture(uri, {}, all_schemes)


def _json(text: str) -> dict[str, Any]:
    """The fields of a JSON object; of several names for one field the first in the line counts."""
    try:
        # Control characters inside strings are wrong but harmless.
        pairs = json.loads(text, strict=False, object_pairs_hook=list)
    except RecursionError as error:
        raise FormatError("broken JSON", why="nested too deeply") from error
    except ValueError as error:
        pairs = _first_three(text)
        if pairs is None:
            raise FormatError("broken JSON", why=str(error)) from error
    if not isinstance(pairs, list):
        raise FormatError("broken JSON", why="not an object")
    found: dict[str, Any] = dict.fromkeys(FIELD_NAMES)
    for name, value in pairs:
        field = _FIELDS.get(name)
        if field is not None and found[field] is None:
            found[field] = _plain(value)
    return found


def _first_three(text: str) -> list[tuple[str, Any]] | None:
    """What is needed of an object that is broken further on: URL, media type and status, if it begins with these."""
    match = _THREE_PAIRS.match(text)
    if match is None or not text.rstrip().endswith("}"):
        return None
    names, values = match.groups()[::2], match.groups()[1::2]
    if {_FIELDS.get(name) for name in names} != {"url", "media_type", "status"} or any(len(name) < 3 for name in names):
        return None
    return [(name, _unescaped(value)) for name, value in zip(names, values, strict=True)]


def _unescaped(value: str) -> str:
    try:
        return str(json.loads(f'"{value}"', strict=False))
    except ValueError:
        return value


def _plain(value: Any) -> Any:
    """Nested objects came as lists of pairs; no field that is read is one."""
    return None if isinstance(value, list) and value and isinstance(value[0], tuple) else value


def _capture(key: str, values: Mapping[str, Any], all_schemes: bool) -> Capture:
    timestamp = clean_timestamp(values.get("timestamp"))
    url = _text(values.get("url"))
    media_type = clean_media_type(values.get("media_type"))
    status = clean_status(values.get("status"))
    if not all_schemes:
        kind = what_it_is(key, url, media_type, status)
        if kind is not None:
            raise NotACapture(kind)
    return Capture(
        key_surt(key, url, all_schemes),
        timestamp,
        url,
        status,
        media_type,
        _text(values.get("digest")),
        _number(values.get("length")),
        _text(values.get("filename")),
        _text(values.get("language")),
        flaw=_flaw(values.get("status")) if status is None else "",
    )


def _flaw(status: Any) -> str:
    """What is wrong with the status of a capture that has none; empty if its maker wrote that there is none."""
    text = str(status)
    return "" if _NO_STATUS.fullmatch(text) else f"no status: {text[:40]!r} is not three digits; counted without it"


def what_it_is(key: str, url: str | None, media_type: str | None, status: int | None) -> str | None:
    """None for a capture of the web, else the kind of thing this is (`dns`, `warcinfo`, `urn`, `metadata`, `post` ...).

    The answer to a POST is not a capture of the page that has its URI: no replay tool shows it to a reader of the page.
    """
    scheme = _scheme(url) if url else _scheme(key) if not is_surt(key) else None
    if scheme is not None and scheme not in _WEB_SCHEMES:
        return scheme
    if media_type in OTHER_TYPES:
        return OTHER_TYPES[media_type]
    if status is None and media_type in METADATA_TYPES:
        return "metadata"
    return request_method(key) or (request_method(url) if url else None)


def request_method(uri: str) -> str | None:
    """The method of the request, in lower case, if it was not a GET: `__wb_method` in the query of a SURT or URL (IIPC
    draft cdx-non-get-requests)."""
    if "__" not in uri:
        return None
    match = _METHOD.search(uri.partition("?")[2])
    return match[1].lower() if match is not None and match[1].lower() != "get" else None


def _scheme(uri: str) -> str | None:
    """The scheme of a URI in lower case; None for one without (`example.com:8080/` has a port, not a scheme)."""
    match = _SCHEME.match(uri)
    if match is None:
        return None
    return None if _PORT.match(uri, match.end()) else match[1].lower()


def key_surt(key: str, url: str | None, all_schemes: bool = False) -> bytes:
    """The SURT of an index line: its key if that is a SURT, else made from its URL, else from the key read as a URL."""
    spelled = key.encode("utf-8", "surrogateescape")
    if len(spelled) > MAX_KEY:
        raise FormatError("a key that is too long", why=f"{len(spelled):,} bytes, at most {MAX_KEY:,} are read")
    try:
        uri_key(spelled)
        return spelled
    except BadURI as error:
        for text in (url, key if _LIKE_A_URL.match(key) else None):
            if text and (made := _made_surt(text)) is not None:
                return made
        if all_schemes and key and not key.isspace():
            return spelled
        raise FormatError("no key", why=error.why or str(error)) from error


# Neighbouring lines of an index whose keys are URLs mostly repeat one URL.
@lru_cache(maxsize=4096)
def _made_surt(uri: str) -> bytes | None:
    try:
        # By the rules of SURT `example.com:8080/` is a URI of the scheme `example.com`; in an index it is a host.
        made = surt(uri if _scheme(uri) else f"http://{uri}").encode("utf-8", "surrogateescape")
        uri_key(made)
    except (BadURI, UnicodeError):
        return None
    return made


def clean_timestamp(value: Any) -> str:
    """14 digits of a real moment out of 4 to 20 (fractions of a second are cut); empty without a value."""
    if value is None:
        return ""
    text = str(value)
    if _ISO_TIME.fullmatch(text):
        text = re.sub(r"\D", "", text)
    if not _TIME.fullmatch(text):
        raise FormatError("no timestamp", why=f"{text[:40]!r} is not 4 to 14 digits")
    return format_timestamp(parse_timestamp(text[:14]))


def clean_media_type(value: Any) -> str | None:
    """Lower case and without parameters; None for `-` and nothing."""
    if not isinstance(value, str):
        return None
    plain = value.partition(";")[0].strip().lower()
    return plain if plain not in ("", "-") else None


def clean_status(value: Any) -> int | None:
    """A number of three digits; None for `-`, nothing, or what is not a status."""
    text = str(value)
    return int(text) if _STATUS.fullmatch(text) else None


def _text(value: Any) -> str | None:
    if isinstance(value, list):
        value = ",".join(str(item) for item in value)
    return value if isinstance(value, str) and value not in ("", "-") else None


def _number(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() else None
