"""A file name for every recovered URI: safe on Linux, macOS and Windows, readable, and never shared by two URIs.

Hides: reserved names, forbidden characters, case and Unicode collisions, length limits, a name wanted both as file
and folder. Invariants: names depend only on the set of URIs and their types, not on their order; every name is
relative, below its host's folder, and made of parts that are no `.` or `..`; two URIs never get names that any of the
three systems takes for one.

The plain rule is Warrick's (host/path, a folder's page is `index.html`), with these turns: the query stays in the name
after `@` (`page.php?id=2` is `page.php@id=2.html`); HTML, styles, scripts and whatever else a browser refuses under a
wrong type get the ending of their type when they have another or none (`style.php` is `style.php.css`), so that a page
opens by a double click and any web server names the right type. No name is that of a program or a setting of a web
server (`image.php` is `image_php.png`, `.htaccess` is `_.htaccess`): archived bytes must not run on a new host. A
download such as `setup.exe` keeps its name below `_downloads/`, a folder in which no server runs anything. What
the plain rule would give to two URIs, or what is too long, gets `~` and some hex digits of the URI's hash.
"""

from __future__ import annotations

import hashlib
import mimetypes
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes, urlsplit

MAX_PART = 80  # characters and, for macOS and Linux, at most 240 bytes
MAX_PATH = 180  # leaves characters for the user's own folders below Windows' 260


@dataclass(frozen=True, slots=True)
class NameRules:
    """How far names go beyond what all three systems accept."""

    max_part: int = MAX_PART
    max_path: int = MAX_PATH
    ascii_only: bool = False


ANY_SYSTEM = NameRules()
WINDOWS = NameRules(max_part=50, max_path=110, ascii_only=True)
"""For Windows programs: old ones, and the one that unpacks zips, damage letters outside ASCII, and most refuse paths
of more than 260 characters, the folders above included."""


# What a file system refuses, and braces, which web servers take for variables.
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f-\x9f<>:"/\\|?*{}\u2028\u2029\ud800-\udfff]')
_RESERVED = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$"] + [f"{d}{n}" for d in ("com", "lpt") for n in "123456789¹²³"]
)
# Files that change what a web server or static host does, and the folder of the re-hosting kit.
_SETTINGS = frozenset(
    [
        *("_headers", "_redirects", "_routes.json", "_worker.js", "_recollect", ".user.ini", "php.ini", "web.config"),
        *("global.asax", "netlify.toml", "vercel.json", "_downloads"),
    ]
)
# Endings of files that a web server may run. Apache asks every ending of a name (`a.php.png`).
PROGRAMS = (
    r"php\w*|pht(?:ml?)?|phar|s(?:html?|tm)|asp\w?|as(?:hx|mx|a|ax|is)|axd|cer|cshtml|vbhtml|jspx?|jspf|jsf|f?cgi"
    r"|p[lmy]|w?sgi|rb|erb|rhtml|cfml?|cfc|lua|sh|exe|dll|bat|cmd|var"
)
_PROGRAM = re.compile(rf"\.(?:{PROGRAMS})$", re.I)
_PROGRAM_DOT = re.compile(rf"\.(?=(?:{PROGRAMS})(?:[./]|$))", re.I)
_INCLUDES = re.compile(r"\.(?:shtml?|stm)$", re.I)  # pages with instructions for the server, which it has followed
# Programs that people download, and that a web server runs only where its settings say so: they keep their names, in a
# folder whose settings forbid running anything. Programs of the server itself (PHP, ASP, JSP, CGI) never do.
DOWNLOADS = "_downloads"
_DOWNLOAD = re.compile(r"\.(?:exe|dll|sh|py|pl|pm|rb|lua)$", re.I)
_DOWNLOAD_TYPE = re.compile(
    r"application/(?:octet-stream|(?:x-|vnd\.microsoft\.)?(?:msdownload|msdos-program|executable|dosexec|portable-executable)"
    r"|x-(?:sh|shellscript|python|perl|ruby))\b",
    re.I,
)
_BY_TYPE = mimetypes.MimeTypes(filenames=())
_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,8}$")
_HTML_ENDINGS = (".html", ".htm", ".xhtml")
_HTML_TYPES = frozenset(["text/html", "application/xhtml+xml"])
_SCRIPT_ENDINGS = (".js", ".mjs", ".cjs")
# Types that browsers take strictly, and the endings that servers and file managers know them by, the first to be added.
_ENDINGS: dict[str, tuple[str, ...]] = {
    "text/html": _HTML_ENDINGS,
    "application/xhtml+xml": _HTML_ENDINGS,
    "text/css": (".css",),
    "text/javascript": _SCRIPT_ENDINGS,
    "application/javascript": _SCRIPT_ENDINGS,
    "application/x-javascript": _SCRIPT_ENDINGS,
    "image/svg+xml": (".svg",),
    "application/pdf": (".pdf",),
    "application/wasm": (".wasm",),
    "application/manifest+json": (".webmanifest", ".json"),
}


def file_names(
    resources: Iterable[tuple[str, str]],
    folder: Callable[[str], str] | None = None,
    rules: NameRules = ANY_SYSTEM,
) -> dict[str, str]:
    """URI -> relative name with `/` between its parts, for (URI, media type) pairs. `folder` is where the files of a
    URI's host go: by default a folder of the host's name."""
    kinds = dict(resources)
    place = folder or (lambda uri: host_folder(uri, rules))
    wanted = {uri: f"{place(uri)}/{plain_path(uri, kinds[uri], rules)}" for uri in sorted(kinds)}
    folders: set[str] = set()
    for name in wanted.values():
        parts = name.split("/")
        folders.update(_fold("/".join(parts[:i])) for i in range(1, len(parts)))
    claims: dict[str, list[str]] = defaultdict(list)
    for uri, name in wanted.items():
        claims[_fold(name)].append(uri)
    names: dict[str, str] = {}
    taken: set[str] = set(folders)
    # One keeps the plain name, unless other URIs need that name as a folder: a folder's own page, so that servers
    # answer the folder with it, then the one that is spelled so, then the first in byte order.
    for folded, uris in claims.items():
        first = min(uris, key=lambda uri: (not urlsplit(uri).path.endswith(("/", "/index.html")), uri))
        if folded not in folders and len(wanted[first]) <= rules.max_path:
            names[first] = wanted[first]
            taken.add(folded)
    for uri in sorted(wanted.keys() - names.keys()):
        # Eight digits are enough except for URIs made to collide; those get more.
        for digits in (8, 16, 32, 64):
            name = _distinct(wanted[uri], uri, digits, rules)
            if _fold(name) not in taken:
                break
        names[uri] = name
        taken.add(_fold(name))
    return dict(sorted(names.items()))


def plain_name(uri: str, media_type: str) -> str:
    """The name a URI gets when nothing stands in its way."""
    return f"{host_folder(uri)}/{plain_path(uri, media_type)}"


def host_folder(uri: str, rules: NameRules = ANY_SYSTEM) -> str:
    """The folder of a URI's host."""
    split = urlsplit(uri)
    host = safe_part((split.hostname or "host").lower(), rules)
    return host if split.port in (None, 80, 443) else f"{host}_{split.port}"


def plain_path(uri: str, media_type: str, rules: NameRules = ANY_SYSTEM) -> str:
    """The name below the folder of the host."""
    split = urlsplit(uri)
    path = [segment for segment in split.path.split("/") if segment]
    if not split.path or split.path.endswith("/"):
        path.append("index.html")
    last = path[-1]
    if split.query:
        stem = last
        last = f"{stem}@{split.query}"
        extension = _EXTENSION.search(stem)
        if extension and not _is_html(media_type) and extension.group().lower() not in _HTML_ENDINGS:
            last += _harmless_ending(media_type) if _PROGRAM.search(stem) else extension.group()
    if _is_html(media_type):
        last = _INCLUDES.sub(".html", last)
    endings = _ENDINGS.get(media_type.partition(";")[0].strip().lower(), ())
    if endings and not last.lower().endswith(endings):
        last += endings[0]
    name = safe_part(last, rules)
    folders = [safe_part(segment, rules) for segment in path[:-1]]
    if _DOWNLOAD.search(name) and not split.query and _DOWNLOAD_TYPE.match(media_type):
        stem, _, ending = name.rpartition(".")
        return _PROGRAM_DOT.sub("_", "/".join([DOWNLOADS, *folders, stem])) + f".{ending}"
    if _PROGRAM.search(name):
        name = safe_part(last + _harmless_ending(media_type), rules)
    return _PROGRAM_DOT.sub("_", "/".join([*folders, name]))


def _harmless_ending(media_type: str) -> str:
    """The ending of a media type, whatever this machine thinks it is; `.bin` for one of which none is known."""
    ending = _BY_TYPE.guess_extension(media_type.partition(";")[0].strip().lower()) or ""
    return ending if ending and not _PROGRAM.search(ending) else ".bin"


def _is_html(media_type: str) -> bool:
    return media_type.partition(";")[0].strip().lower() in _HTML_TYPES


def safe_part(segment: str, rules: NameRules = ANY_SYSTEM) -> str:
    """One path segment as a file name for all three systems."""
    raw = unquote_to_bytes(segment)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = segment.replace("%", "_")  # keep the escapes readable where they are not UTF-8
    text = _to_ascii(text) if rules.ascii_only else unicodedata.normalize("NFC", text)
    text = _FORBIDDEN.sub("_", text).rstrip(". ").lstrip(" ")
    if not text or not text.strip("."):
        text = "_"
    plain = text.lower()
    if plain.split(".")[0].rstrip(" ") in _RESERVED or plain in _SETTINGS or plain.startswith(".ht"):
        text = "_" + text
    if len(text) > rules.max_part or len(text.encode("utf-8")) > 240:
        text = _shorten(text, segment, rules)
    return text


def _to_ascii(text: str) -> str:
    """Letters without their accents; `_` for every other character outside ASCII."""
    plain = "".join(ch for ch in unicodedata.normalize("NFKD", text) if not unicodedata.combining(ch))
    return re.sub(r"[^\x20-\x7e]", "_", plain)


def _shorten(text: str, original: str, rules: NameRules) -> str:
    extension = _EXTENSION.search(text)
    ending = extension.group() if extension else ""
    mark = "~" + _hash(original)
    stem = text[: rules.max_part - len(mark) - len(ending)]
    while len(stem.encode("utf-8")) > 240 - len(mark) - len(ending):
        stem = stem[:-1]
    return stem.rstrip(". ") + mark + ending


def _distinct(name: str, uri: str, digits: int, rules: NameRules) -> str:
    """A name with the hash of its URI before the ending; a long path is folded to its host."""
    mark = "~" + _hash(uri, digits)
    folder, _, last = name.rpartition("/")
    extension = _EXTENSION.search(last)
    ending = extension.group() if extension else ""
    stem = last[: len(last) - len(ending)][: max(rules.max_part - len(mark) - len(ending), 1)].rstrip(". ")
    if len(name) + len(mark) > rules.max_path:
        folder = folder.split("/")[0] + "/_long"
    return f"{folder}/{stem}{mark}{ending}"


def _hash(text: str, digits: int = 8) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def _fold(name: str) -> str:
    """What Windows and macOS compare: no case, one Unicode form."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def relative_link(source: str, target: str) -> str:
    """The URL reference from one name to another: relative, percent-encoded, never mistaken for a scheme."""
    here = source.split("/")[:-1]
    there = target.split("/")
    shared = 0
    while shared < min(len(here), len(there) - 1) and here[shared] == there[shared]:
        shared += 1
    parts = [".."] * (len(here) - shared) + there[shared:]
    link = "/".join(quote(part, safe="!$&'()*+,;=@~") for part in parts)
    return f"./{link}" if ":" in parts[0] else link
