"""A recovery's store filled by hand, for tests of everything that is made from it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from recollect.recovery.canonical import visit_key
from recollect.recovery.records import Missing, Recovered
from recollect.recovery.store import Store


def fill(
    out_dir: Path,
    resources: Sequence[tuple[str, str, bytes]],
    *,
    redirects: Sequence[tuple[str, str]] = (),
    missing: Sequence[str] = (),
    charset: str | None = "utf-8",
    start: str = "http://x.com/",
) -> Store:
    """A store open for writing with (URI, media type, body) resources and (URI, target) redirects."""
    store = Store.create(out_dir)
    store.set_meta("start", [start])
    for number, (uri, media_type, body) in enumerate(resources):
        _add(store, uri, media_type, body, number, charset=charset)
    for number, (uri, target) in enumerate(redirects, len(resources)):
        _add(store, uri, "text/html", b"", number, redirect_to=target)
    for uri in missing:
        store.add_missing(Missing(visit_key(uri, store.rules), uri, "never-archived", "no archive lists it"))
    store.db.commit()
    return store


def _add(
    store: Store,
    uri: str,
    media_type: str,
    body: bytes,
    number: int,
    *,
    charset: str | None = None,
    redirect_to: str | None = None,
) -> None:
    moment = datetime(2015, 1, 1, 0, number // 60, number % 60, tzinfo=UTC)
    with store.incoming() as incoming:
        incoming.write(body)
        payload = incoming.keep()
    headers = [("Content-Type", media_type)] + ([("Location", redirect_to)] if redirect_to else [])
    store.add_recovered(
        Recovered(
            key=visit_key(uri, store.rules),
            uri=uri,
            captured_at=moment,
            archive="one",
            uri_m=f"http://archive.example/web/2015010100{number // 60:02d}{number % 60:02d}id_/{uri}",
            status=301 if redirect_to else 200,
            headers=tuple(headers),
            media_type=media_type,
            charset=charset,
            content_encoding="",
            digest=payload.sha1,
            length=payload.length,
            payload_path=payload.path,
            fetched_at=datetime(2026, 1, 1, tzinfo=UTC),
            redirect_to=redirect_to,
        ),
        payload.sha256,
    )
