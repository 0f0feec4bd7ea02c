"""`measure` says what is wrong with a damaged WACZ or WARC, whichever byte is damaged."""

from __future__ import annotations

import io
import random
import zipfile
from pathlib import Path

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from recollect.errors import RecollectError
from recollect.recovery.snapshots import open_snapshot


def warc() -> bytes:
    out = io.BytesIO()
    writer = WARCWriter(out, gzip=True)
    for number in range(3):
        headers = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
        body = io.BytesIO(b"<p>%d" % number * 200)
        writer.write_record(
            writer.create_warc_record(f"http://a.example/{number}", "response", payload=body, http_headers=headers)
        )
    return out.getvalue()


def wacz() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("archive/data.warc.gz", warc())
        package.writestr("datapackage.json", "{}")
    return out.getvalue()


@pytest.mark.parametrize("kind", ["wacz", "warc.gz"])
def test_damage_is_reported_as_ours(kind: str, tmp_path: Path) -> None:
    whole = wacz() if kind == "wacz" else warc()
    file = tmp_path / f"site.{kind}"
    file.write_bytes(whole)
    assert len(open_snapshot(str(file)).resources) == 3
    chance = random.Random(4)
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 1, 3, 20))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        file.write_bytes(bytes(data[: chance.choice((len(data), len(data), chance.randrange(1, len(data))))]))
        try:
            open_snapshot(str(file))
        except RecollectError as error:
            assert str(file) in str(error) or "data.warc" in str(error)
