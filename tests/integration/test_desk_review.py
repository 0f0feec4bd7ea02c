"""Doubtful pages on the page of a job: a person answers, and the result is built again from the answers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from zipfile import ZipFile

import pytest

from desk_world import running_desk, until
from fake_archive import served, site

pytestmark = pytest.mark.xdist_group("desk-review")


def test_the_answers_of_a_person_build_the_result_again(tmp_path: Path) -> None:
    fake = site("/memoir", "/lost", "/good")
    fake.add("/memoir", "<title>Not found</title><p>A memoir.")
    fake.add("/lost", "<title>Page not found</title><p>404: the page was not found.")
    fake.add("/good", "<title>Good</title><p>good")
    with served(fake) as archive:
        path = tmp_path / "archives.json"
        path.write_text(json.dumps([{"id": "one", "cdx": archive.cdx, "raw": archive.raw}]))
        with running_desk(tmp_path / "desk", path, RECOLLECT_DESK_PICTURES="0") as desk:
            job = desk.submit("http://lost.example/", "owner@mail.example")
            place = desk.confirm(job)
            reply = desk.wait(job, "ready")
            asked = [one["uri"] for one in reply["doubtful"]]
            assert "http://lost.example/memoir" in asked
            page = desk.ask("GET", place).text
            assert "Are these pages yours?" in page and "/memoir" in page
            numbers = {uri: number for number, uri in re.findall(r'name="page-(\d+)" value="([^"]+)"', page)}
            other = desk.submit("http://lost.example/", "other@mail.example")
            desk.confirm(other)
            decisions = {"decisions": {asked[0]: "mine"}}
            assert desk.ask("POST", f"/api/jobs/{job.id}/review?token={other.token}", decisions).status == 403
            wrong = {"decisions": {"http://lost.example/": "mine"}}
            assert desk.ask("POST", f"/api/jobs/{job.id}/review?token={job.token}", wrong).status == 400
            form = {}
            for uri, number in numbers.items():
                form |= {f"page-{number}": uri, f"answer-{number}": "mine" if uri.endswith("memoir") else "not-mine"}
            assert desk.ask("POST", place.replace("?", "/review?"), form=form).status == 303
            until(lambda: not desk.show(job)["doubtful"] and not desk.show(job)["rebuilding"], 60)
            reply = desk.show(job)
            assert reply["state"] == "ready"
            (tmp_path / "result.zip").write_bytes(desk.ask("GET", reply["result"]["zip"]).body)
            with ZipFile(tmp_path / "result.zip") as packed:
                names = [name for name in packed.namelist() if name.startswith("lost.example/")]
            assert any("memoir" in name for name in names) and not any("lost.example/lost" in name for name in names)
