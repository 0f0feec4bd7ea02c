"""The store: what goes in comes out, in order; half payloads leave no trace."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recollect.errors import RecollectError, UsageError
from recollect.recovery.canonical import visit_key
from recollect.recovery.records import Missing, Recovered
from recollect.recovery.store import Store

NOON = datetime(2010, 5, 1, 12, tzinfo=UTC)


def put(store: Store, uri: str, body: bytes = b"hello", **fields: object) -> Recovered:
    with store.incoming() as incoming:
        incoming.write(body)
        payload = incoming.keep()
    values: dict[str, object] = {
        "key": visit_key(uri),
        "uri": uri,
        "captured_at": NOON,
        "archive": "one",
        "uri_m": f"http://one.example/20100501120000id_/{uri}",
        "status": 200,
        "headers": (("Content-Type", "text/html"),),
        "media_type": "text/html",
        "charset": None,
        "content_encoding": "",
        "digest": payload.sha1,
        "length": payload.length,
        "payload_path": payload.path,
        "fetched_at": NOON,
        **fields,
    }
    resource = Recovered(**values)  # type: ignore[arg-type]
    with store.db:
        store.add_recovered(resource, payload.sha256)
    return resource


def test_what_goes_in_comes_out_in_order_of_key(tmp_path: Path) -> None:
    with Store.create(tmp_path) as store:
        second = put(store, "http://a.example/b", other_archives=(("two", NOON),), headers=(("X", "ü"), ("X", "2")))
        first = put(store, "http://a.example/a", b"")
        with store.db:
            store.add_missing(Missing("http://a.example/c", "http://a.example/c", "rejected", "soft 404", "asset"))
    with Store.open(tmp_path) as store:
        assert list(store.recovered()) == [first, second]
        assert [m.reason for m in store.missing()] == ["rejected"]
        assert store.counts() == {("recovered", "page"): 2, ("missing", "asset"): 1}
        assert store.content(second) == b"hello"
        assert first.digest == "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"  # of nothing, as in every CDX


def test_a_payload_not_kept_leaves_no_file(tmp_path: Path) -> None:
    with Store.create(tmp_path) as store:
        with pytest.raises(RuntimeError), store.incoming() as incoming:
            incoming.write(b"half")
            raise RuntimeError
        assert [p for p in tmp_path.rglob("*") if p.is_file() and p.read_bytes() == b"half"] == []


def test_find_knows_spellings_and_aliases_and_resolve_follows_redirects(tmp_path: Path) -> None:
    with Store.create(tmp_path) as store:
        page = put(store, "http://a.example/")
        moved = put(store, "http://a.example/old", b"", status=301, redirect_to="https://www.a.example/index.html")
        loop = put(store, "http://a.example/loop", b"", status=302, redirect_to="http://a.example/loop")
        with store.db:
            store.add_alias("http://a.example/home.php", page.key, "index page")
        assert store.find("https://www.A.example:443/index.html#top") == page
        assert store.find("http://a.example/home.php") == page
        assert store.find("http://a.example/old") == moved
        assert store.resolve("http://a.example/old") == page
        assert store.resolve("http://a.example/loop") is None and store.find("http://a.example/loop") == loop
        assert store.find("mailto:x@y") is None
        assert [r.uri for r in store.recovered(redirects=False)] == ["http://a.example/"]


def test_content_takes_the_encoding_off(tmp_path: Path) -> None:
    with Store.create(tmp_path) as store:
        resource = put(store, "http://a.example/z", gzip.compress(b"plain"), content_encoding="gzip")
        assert store.content(resource) == b"plain"
        assert resource.payload_path.read_bytes() != b"plain"


def test_a_second_writer_is_refused_and_a_reader_is_not(tmp_path: Path) -> None:
    with Store.create(tmp_path), Store.open(tmp_path), pytest.raises(RecollectError, match="another recovery"):
        Store.create(tmp_path)
    with pytest.raises(UsageError, match="no recovery here"):
        Store.open(tmp_path / "elsewhere")
