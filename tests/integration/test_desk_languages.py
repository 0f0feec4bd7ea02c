"""A result has the language of who asked for it: START-HERE, the report, other pages of the zip, and the mails."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from zipfile import ZipFile

import pytest

from desk_world import running_desk
from fake_archive import served, site

pytestmark = pytest.mark.xdist_group("desk-languages")
ENGLISH = re.compile(r"\b(?:the|of|and|were|which|with|from)\b", re.IGNORECASE)


@pytest.mark.parametrize(
    ("language", "start", "missing", "back"),
    [
        ("de", "Wieder ins Netz stellen", "Was fehlt", "zurück"),
        ("es", "Publicarlo de nuevo", "Qué falta", "vuelto"),
        ("pt", "Publicá-lo de novo", "O que falta", "voltou"),
    ],
)
def test_pages_of_a_result_have_the_language_of_its_owner(
    tmp_path: Path, language: str, start: str, missing: str, back: str
) -> None:
    fake = site("/a.html", "/gone.html")
    fake.add("/a.html", "<title>Not found</title><p>404: page not found.</p>")
    with served(fake) as archive:
        path = tmp_path / "archives.json"
        path.write_text(json.dumps([{"id": "one", "cdx": archive.cdx, "raw": archive.raw}]))
        with running_desk(tmp_path / "desk", path, RECOLLECT_DESK_PICTURES="0") as desk:
            job = desk.queue("http://lost.example/", language=language)
            reply = desk.wait(job, "ready")
            assert back in desk.mail("op@mail.example", "lost.example").get_content()
            report = desk.ask("GET", reply["result"]["report"]).text
            with ZipFile(io.BytesIO(desk.ask("GET", reply["result"]["zip"]).body)) as packed:
                names = [one for one in packed.namelist() if one.endswith(".html") and not one.startswith("rehost")]
                pages = {name: packed.read(name).decode() for name in names}
                sentences = json.loads(packed.read("report.json"))["sentences"]
    assert start in pages["START-HERE.html"] and missing in pages["report.html"] and missing in report
    assert ENGLISH.search(" ".join(sentences)), "JSON is for programs"
    for page in (pages["START-HERE.html"], pages["report.html"], report):
        assert f'<html lang="{language}">' in page
        words = re.sub(r"<(style|code|td)\b.*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
        assert ENGLISH.findall(words) == [], words
