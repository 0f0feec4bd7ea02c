"""Languages of captures: by header, by detection, by Common Crawl's column, and as parts of a map."""

from __future__ import annotations

import gzip
import importlib.util
import json
from io import BytesIO
from pathlib import Path

import duckdb
import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from recollect.cli.main import run
from recollect.errors import UsageError
from recollect.formats.languages import detector_of, header_language, page_text
from recollect.formats.ukvs import MapFile
from recollect.profiles.indexes.options import ProfileOptions

GERMAN = "Die Katze sitzt auf der Mauer und schaut den Vögeln zu, die am Morgen im Garten singen."
PORTUGUESE = "O gato está sentado no muro e observa os pássaros que cantam de manhã no jardim da casa."
PAGES: dict[str, tuple[dict[str, str], bytes]] = {
    "http://a.example/de": ({"Content-Language": "de-AT, en"}, GERMAN.encode()),
    "http://a.example/pt": ({}, f"<script>var the = 'and of to in is';</script><p>{PORTUGUESE}".encode()),
    "http://b.example/gz": ({"Content-Encoding": "gzip"}, gzip.compress(f"<p>{GERMAN}".encode())),
    "http://b.example/latin": ({"Content-Type": "text/html; charset=iso-8859-1"}, PORTUGUESE.encode("latin-1")),
    "http://b.example/short": ({}, b"<p>ok"),
    "http://b.example/image": ({"Content-Type": "image/png"}, GERMAN.encode()),
}


def warc(path: Path, *, chunked: bool = False) -> str:
    out = BytesIO()
    writer = WARCWriter(out, gzip=False)
    for uri, (fields, body) in PAGES.items():
        headers = list({"Content-Type": "text/html; charset=utf-8", **fields}.items())
        if chunked:
            half = len(body) // 2
            body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:half], body[half:], b"") if part)
            body += b"0\r\n\r\n"
            headers.append(("Transfer-Encoding", "chunked"))
        http = StatusAndHeaders("200 OK", headers, protocol="HTTP/1.1")
        record = writer.create_warc_record(uri, "response", payload=BytesIO(body), http_headers=http)
        writer.write_record(record)
    path.write_bytes(out.getvalue())
    return str(path)


def languages(path: Path) -> dict[str, str]:
    """By key its language, of a map by language where each key has one capture."""
    with MapFile(path) as file:
        blocks = {record.key.decode(): json.loads(record.json)["language"] for record in file.records()}
    return {key: "".join(parts) for key, parts in blocks.items()}


@pytest.mark.parametrize(
    ("value", "expected"),
    [("de-AT, en", "de"), ("PT_br", "pt"), ("en;q=0.5", "en"), ("*", ""), ("", ""), ("??, fil", "fil"), ("x-y", "")],
)
def test_the_first_language_of_a_header_counts(value: str, expected: str) -> None:
    assert header_language(value) == expected


def test_languages_come_from_the_headers_of_a_warc(tmp_path: Path) -> None:
    assert run(["profile", warc(tmp_path / "a.warc"), "--by", "language", "-o", str(tmp_path / "m.ukvs"), "-q"]) == 0
    found = languages(tmp_path / "m.ukvs")
    assert found.pop("example,a)/de") == "de"
    assert set(found.values()) == {"-"}


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("detector", ["py3langid", "lingua"])
def test_languages_are_detected_where_headers_tell_none(tmp_path: Path, detector: str, chunked: bool) -> None:
    if importlib.util.find_spec(detector) is None:
        pytest.skip(f"{detector} is not installed")
    source, output = warc(tmp_path / "a.warc", chunked=chunked), tmp_path / "m.ukvs"
    options = ["--by", "language", "--detect-language", detector, "--by-columns"]
    assert run(["profile", source, *options, "-o", str(output), "-q"]) == 0
    with MapFile(output) as file:
        rows = {
            record.key.decode(): record.more_keys[0].decode()
            for record in file.records()
            if record.more_keys[0] != b"-"
        }
    assert rows == {
        "example,a)/de": "de",
        "example,a)/pt": "pt",
        "example,b)/gz": "de",
        "example,b)/image": "?",
        "example,b)/latin": "pt",
        "example,b)/short": "?",
    }


def test_common_crawls_column_is_read(tmp_path: Path) -> None:
    table = tmp_path / "cc.parquet"
    duckdb.sql(
        "COPY (SELECT 'com,example)/' || i AS url_surtkey, 'http://example.com/' || i AS url, "
        "TIMESTAMP '2024-05-01 00:00:00' AS fetch_time, 200 AS fetch_status, 'text/html' AS content_mime_type, "
        f"['eng,fra', 'por', NULL][i] AS content_languages FROM range(1, 4) t(i)) TO '{table}' (FORMAT parquet)"
    )
    assert run(["profile", str(table), "--by", "language", "-o", str(tmp_path / "m.ukvs"), "-q"]) == 0
    assert languages(tmp_path / "m.ukvs") == {"com,example)/1": "eng", "com,example)/2": "por", "com,example)/3": "-"}


def test_a_detector_without_its_use_and_an_unknown_one_are_refused() -> None:
    with pytest.raises(UsageError, match="not used"):
        ProfileOptions(detect_language="py3langid")
    with pytest.raises(UsageError, match="no such detector"):
        ProfileOptions(by=("language",), detect_language="guess")
    with pytest.raises(UsageError, match="unknown detector"):
        detector_of("guess")


@pytest.mark.parametrize(
    "body",
    [b"", b"\x1f\x8b\x00broken", b"zz\r\nnot chunked", b"<script>never closed", "<p>\u00e9".encode("utf-16")],
)
def test_any_bytes_are_text_or_nothing(body: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\ncharset=utf-99\r\n\r\n"
    assert isinstance(page_text(head + body), str)
