"""A website as a set of resources, whatever it is kept in: a recovery's folder, any folder, WARCs, WACZ, a live server.

Hides: where the bytes are, and how names of files and URIs of archives are brought to one identity. Two snapshots are
compared by address below their own main host (`/a/b?c=1`), so that a folder, a copy served on loopback and the
recovered site can be compared; resources of other hosts keep theirs (`//cdn.example/lib.js`).

Invariants: an index page and its folder are one resource (as `canonical` has it); of several captures of a URI in a
WARC the newest good one stands; the bytes of a recovery are those of the archives, not those of the rewritten files.
"""

from __future__ import annotations

import errno
import hashlib
import mimetypes
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from recollect.errors import FormatError, UsageError
from recollect.recovery.canonical import visit_key
from recollect.recovery.decoding import decoded, effective_encoding
from recollect.recovery.measure import Resource
from recollect.recovery.records import Recovered
from recollect.recovery.report import known_not_fetched
from recollect.recovery.store import FOLDER, Store

_ANY_HOST = "site.invalid"  # the host of a folder that names none
_Found = tuple[str, str, Callable[[], bytes]]  # URI, media type, content


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A site's resources, each with its identity as `uri`; what a recovery knows of its own work comes along."""

    resources: tuple[Resource, ...]
    recoverable: tuple[str, ...] = ()
    requests: int | None = None


def open_snapshot(source: str) -> Snapshot:
    """The snapshot of a folder, a WARC, a WACZ, or a site on loopback."""
    if source.lower().startswith(("http://", "https://")):
        from recollect.recovery.mirror import mirror

        return _named(mirror(source), main=urlsplit(source).netloc)
    path = Path(source)
    if (path / FOLDER / "journal.db").is_file():
        return _of_store(path)
    if path.is_dir():
        return _of_folder(path)
    if not path.is_file():
        raise UsageError("no such site", where=source, hint="give a folder, a WARC, a WACZ, or a URL on loopback")
    if zipfile.is_zipfile(path):
        return _of_wacz(path)
    return _named(_of_warc(path))


def _of_store(path: Path) -> Snapshot:
    with Store.open(path) as store:
        main = urlsplit(store.start[0]).netloc if store.start else ""
        found = [(r.uri, r.media_type, _payload(r)) for r in store.recovered(redirects=False)]
        known = [uri for _, uri, _ in store.queued()]
        known += [m.uri for m in store.missing() if m.reason in ("out-of-quota", "failed", "blocked")]
        known += known_not_fetched(store)  # archived, and left out by the policy (McCown 2007, section VII.2.2)
        requests = store.meta("requests")
    recoverable = tuple(sorted({_identity(uri, _host_key(main)) for uri in known}))
    return Snapshot(_named(found, main).resources, recoverable, requests if isinstance(requests, int) else None)


def _payload(resource: Recovered) -> Callable[[], bytes]:
    return lambda: decoded(resource.payload_path.read_bytes(), resource.content_encoding)


def _of_folder(path: Path) -> Snapshot:
    """Files as they are; when every file lies below folders named like hosts, those are the hosts."""
    tops = [p for p in path.iterdir() if not p.name.startswith(".")]
    folders = [p for p in tops if p.is_dir()]
    by_host = bool(folders) and all("." in p.name for p in folders) and not any(_is_page(p) for p in tops)
    main = max(folders, key=lambda p: sum(1 for _ in p.rglob("*"))).name if by_host else ""
    found: list[_Found] = []
    for file in sorted(path.rglob("*")):
        parts = file.relative_to(path).parts
        if not file.is_file() or any(part.startswith(".") for part in parts) or (by_host and len(parts) < 2):
            continue
        host, below = (parts[0], parts[1:]) if by_host else (_ANY_HOST, parts)
        uri = f"http://{host}/" + quote("/".join(below), safe="/?=&;@:+$,!~*'()")
        media_type = mimetypes.guess_type(below[-1].partition("?")[0])[0] or "application/octet-stream"
        found.append((uri, media_type, file.read_bytes))
    return _named(found, main or _ANY_HOST)


def _is_page(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() in (".html", ".htm") and path.stem.lower() in ("index", "default")


def _of_wacz(path: Path) -> Snapshot:
    found: list[_Found] = []
    try:
        with zipfile.ZipFile(path) as package, tempfile.TemporaryDirectory() as folder:
            for name in package.namelist():
                if name.startswith("archive/") and not name.endswith("/"):
                    found += _of_warc(Path(package.extract(name, folder)))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        # RuntimeError is an encrypted member, NotImplementedError an unknown compression.
        raise FormatError("cannot read the WACZ", where=str(path), why=str(error) or type(error).__name__) from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # an offset outside of the file
            raise
        raise FormatError("cannot read the WACZ", where=str(path), why="an offset outside of the file") from error
    return _named(found)


def _of_warc(path: Path) -> list[_Found]:
    """(URI, media type, content) of every good response, the newest capture of each URI."""
    from warcio.archiveiterator import ArchiveIterator
    from warcio.exceptions import ArchiveLoadFailed

    newest: dict[str, tuple[str, str, bytes]] = {}
    try:
        with path.open("rb") as handle:
            for record in ArchiveIterator(handle):
                if record.rec_type not in ("response", "resource"):
                    continue
                uri = record.rec_headers.get_header("WARC-Target-URI") or ""
                at = record.rec_headers.get_header("WARC-Date") or ""
                status = record.http_headers.get_statuscode() if record.http_headers else "200"
                if not uri.startswith("http") or status != "200" or newest.get(uri, ("",))[0] > at:
                    continue
                headers = record.http_headers or record.rec_headers
                body = record.raw_stream.read()
                coding = effective_encoding(headers.get_header("Content-Encoding") or "", body)
                newest[uri] = (at, headers.get_header("Content-Type") or "", decoded(body, coding))
    except (ArchiveLoadFailed, zlib.error, EOFError, ValueError, AttributeError, LookupError) as error:
        # warcio raises the last two where a field that it needs is missing.
        raise FormatError("not a WARC, or a damaged one", where=str(path), why=str(error)) from error
    return [(uri, media_type, _held(body)) for uri, (_, media_type, body) in newest.items()]


def _held(body: bytes) -> Callable[[], bytes]:
    return lambda: body


def _named(found: Iterable[_Found], main: str = "") -> Snapshot:
    """Give what was found its identities below the main host (the one with most resources, unless named)."""
    everything = list(found)
    hosts = Counter(_host_key(urlsplit(uri).netloc) for uri, _, _ in everything)
    host = _host_key(main) if main else (hosts.most_common(1)[0][0] if hosts else "")
    resources = {}
    for uri, media_type, read in everything:
        identity = _identity(uri, host)
        resources[identity] = Resource(identity, media_type, hashlib.sha256(read()).hexdigest(), read)
    return Snapshot(tuple(resources.values()))


def _host_key(netloc: str) -> str:
    return visit_key(f"http://{netloc}/").split("//", 1)[1].rstrip("/") if netloc else ""


def _identity(uri: str, main: str) -> str:
    rest = visit_key(uri).split("//", 1)[1]
    host, slash, path = rest.partition("/")
    here = slash + path or "/"
    return here if host in (main, _ANY_HOST) else f"//{host}{here}"
