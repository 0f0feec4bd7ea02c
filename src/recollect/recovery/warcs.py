"""A recovered site as WARC and as WACZ, with where each piece came from.

Hides: record headers, the index, and the package layout. WARC 1.1, one gzip member a record; WARC-Date is when the
archive captured the resource, `WARC-Source-URI` the memento it was taken from, `WARC-Creation-Date` when it was
fetched, and `Memento-Datetime` repeats the capture's datetime as the archive says it. WACZ 1.1.1: the WARC stored
uncompressed in the ZIP, a sorted CDXJ, the pages, and a data package with the SHA-256 of every part.

Invariant: the same store gives the same bytes (record ids are made from the memento's URI).
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import uuid
import zipfile
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from recollect import __version__
from recollect.datetimes import format_http_date, format_iso, format_timestamp
from recollect.formats.temporaries import replacing
from recollect.recovery.journal import Journal
from recollect.recovery.measure import extract_text
from recollect.recovery.records import Recovered, Version
from recollect.recovery.store import Store
from recollect.uris import surt

_NAMESPACE = uuid.UUID("6f0b5a4e-3b62-5d2c-9f3e-6d1a5f6f7a10")
# Hop-by-hop fields, and those that describe a transfer the payload is no longer in.
_DROPPED = frozenset(["transfer-encoding", "connection", "keep-alive", "content-length"])
_REASONS = {200: "OK", 301: "Moved Permanently", 302: "Found", 303: "See Other", 307: "Temporary Redirect"}


def write_warc(store: Store, path: Path) -> list[str]:
    """Write every recovered resource into a WARC; returns the sorted CDXJ lines of the file."""
    with replacing(path) as out:
        return stream_warc(store, out, path.name)


def write_wacz(store: Store, path: Path, *, title: str = "") -> None:
    """Write the site as one WACZ that replayweb.page and pywb open."""
    with replacing(path) as out:
        stream_wacz(store, out, title=title)


def stream_warc(store: Store, out: IO[bytes], name: str) -> list[str]:
    """Write every recovered resource as a response record; returns the sorted CDXJ lines of the file `name`."""
    from warcio.warcwriter import WARCWriter

    lines: list[str] = []
    writer = WARCWriter(out, gzip=True, warc_version="1.1")
    writer.write_record(_warcinfo(writer, store, name))
    for resource in store.recovered():
        offset = out.tell()
        writer.write_record(_response(writer, resource))
        lines.append(_cdxj(resource, name, offset, out.tell() - offset))
    for version in Journal(store).versions():
        offset = out.tell()
        writer.write_record(_revisit(writer, version) if version.repeats else _response(writer, version.resource))
        lines.append(_cdxj(version.resource, name, offset, out.tell() - offset, repeats=version.repeats is not None))
    return sorted(lines)


def stream_wacz(store: Store, out: IO[bytes], *, title: str = "") -> None:
    """Write the site as one WACZ that replayweb.page and pywb open."""
    with (
        tempfile.TemporaryFile(dir=store.folder / "tmp") as warc,
        zipfile.ZipFile(out, "w", zipfile.ZIP_STORED, allowZip64=True) as package,
    ):
        lines = stream_warc(store, warc, "data.warc.gz")
        parts = [_add_file(package, "archive/data.warc.gz", warc)]
        parts.append(_add(package, "indexes/index.cdx", "".join(f"{line}\n" for line in lines).encode()))
        parts.append(_add(package, "pages/pages.jsonl", _pages(store, title)))
        described = _datapackage(store, title, parts)
        _add(package, "datapackage.json", described)
        digest = {"path": "datapackage.json", "hash": "sha256:" + hashlib.sha256(described).hexdigest()}
        _add(package, "datapackage-digest.json", json.dumps(digest, indent=2).encode())


def _warcinfo(writer: Any, store: Store, name: str) -> Any:
    info = {
        "software": f"recollect {__version__}",
        "format": "WARC File Format 1.1",
        "description": "a lost website recovered from web archives",
        "isPartOf": " ".join(store.start),
    }
    record = writer.create_warcinfo_record(name, info)
    record.rec_headers.replace_header("WARC-Record-ID", _record_id("warcinfo", *store.start))
    record.rec_headers.replace_header("WARC-Date", format_iso(_latest(store)))
    return record


def _latest(store: Store) -> datetime:
    """When the last piece was fetched: the file's own date, so that the same store gives the same bytes."""
    return max((r.fetched_at for r in store.recovered()), default=datetime(1970, 1, 1, tzinfo=UTC))


def _response(writer: Any, resource: Recovered) -> Any:
    from warcio.statusandheaders import StatusAndHeaders

    body = resource.payload_path.read_bytes() if resource.payload_path.is_file() else b""
    headers = [(name, value) for name, value in resource.headers if name.lower() not in _DROPPED]
    headers.append(("Content-Length", str(len(body))))
    status = f"{resource.status} {_REASONS.get(resource.status, 'Archived')}"
    return writer.create_warc_record(
        resource.uri,
        "response",
        payload=BytesIO(body),
        http_headers=StatusAndHeaders(status, headers, protocol="HTTP/1.1"),
        warc_headers_dict=_provenance(resource),
    )


def _revisit(writer: Any, version: Version) -> Any:
    """A capture with the bytes of another one of the same resource, which is in the file."""
    from warcio.statusandheaders import StatusAndHeaders

    resource = version.resource
    assert version.repeats is not None
    headers = [(name, value) for name, value in resource.headers if name.lower() not in _DROPPED]
    status = f"{resource.status} {_REASONS.get(resource.status, 'Archived')}"
    record = writer.create_revisit_record(
        resource.uri,
        digest=resource.digest,
        refers_to_uri=resource.uri,
        refers_to_date=format_iso(version.repeats),
        http_headers=StatusAndHeaders(status, headers, protocol="HTTP/1.1"),
        warc_headers_dict=_provenance(resource),
    )
    record.rec_headers.replace_header("WARC-Payload-Digest", resource.digest)
    return record


def _provenance(resource: Recovered) -> dict[str, str]:
    return {
        "WARC-Record-ID": _record_id(resource.uri_m, resource.uri),
        "WARC-Date": format_iso(resource.captured_at),
        "WARC-Source-URI": resource.uri_m,
        "WARC-Creation-Date": format_iso(resource.fetched_at),
        "Memento-Datetime": format_http_date(resource.captured_at),
    }


def _record_id(*names: str) -> str:
    return f"<urn:uuid:{uuid.uuid5(_NAMESPACE, ' '.join(names))}>"


def _cdxj(resource: Recovered, filename: str, offset: int, length: int, *, repeats: bool = False) -> str:
    fields = {
        "url": resource.uri,
        "mime": "warc/revisit" if repeats else resource.media_type.partition(";")[0] or "unk",
        "status": str(resource.status),
        "digest": resource.digest,
        "length": str(length),
        "offset": str(offset),
        "filename": filename,
    }
    return f"{surt(resource.uri)} {format_timestamp(resource.captured_at)} {json.dumps(fields, ensure_ascii=False)}"


def _add_file(package: zipfile.ZipFile, name: str, source: IO[bytes]) -> dict[str, Any]:
    source.seek(0)
    digest = hashlib.file_digest(source, "sha256").hexdigest()  # type: ignore[arg-type]
    size = source.tell()
    source.seek(0)
    with package.open(_entry(name), "w", force_zip64=True) as out:
        shutil.copyfileobj(source, out, 1 << 20)
    return _part(name, digest, size)


def _add(package: zipfile.ZipFile, name: str, body: bytes) -> dict[str, Any]:
    package.writestr(_entry(name), body)
    return _part(name, hashlib.sha256(body).hexdigest(), len(body))


def _entry(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))


def _part(name: str, digest: str, size: int) -> dict[str, Any]:
    return {"name": name.rpartition("/")[2], "path": name, "hash": f"sha256:{digest}", "bytes": size}


def _pages(store: Store, title: str) -> bytes:
    lines = [{"format": "json-pages-1.0", "id": "pages", "title": title or "Pages"}]
    versions = (one.resource for one in Journal(store).versions() if one.repeats is None)
    for resource in (*store.recovered(redirects=False), *versions):
        if resource.status == 200 and resource.media_type.lower().startswith(("text/html", "application/xhtml")):
            page_id = uuid.uuid5(_NAMESPACE, f"{resource.uri} {resource.uri_m}").hex
            page = {"id": page_id, "url": resource.uri, "ts": format_iso(resource.captured_at)}
            found = page_title(store.content(resource), resource.charset)
            lines.append(page | ({"title": found} if found else {}))
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()


def page_title(body: bytes, charset: str | None) -> str:
    """The words of a page's title element, at most 200 characters."""
    start = body[:65536].lower().find(b"<title")
    end = body[:65536].lower().find(b"</title", start)
    if start < 0 or end < 0:
        return ""
    content_type = f"text/html; charset={charset}" if charset else "text/html; charset=utf-8"
    text = extract_text(body[start:end] + b"</title>", content_type) or ""
    return " ".join(text.split())[:200]


def _datapackage(store: Store, title: str, parts: list[dict[str, Any]]) -> bytes:
    start = store.start[0] if store.start else ""
    package = {
        "profile": "data-package",
        "wacz_version": "1.1.1",
        "title": title or start,
        "software": f"recollect {__version__}",
        "created": format_iso(_latest(store)),
        "modified": format_iso(_latest(store)),
        "mainPageUrl": start,
        "resources": parts,
    }
    return json.dumps(package, indent=2, ensure_ascii=False).encode()
