"""A lost website back from three real archives (pywb), by the command line: whole, resumable, measured."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pywb_archive import PywbArchive, pywb_archives
from recollect.recovery.journal import Journal
from recollect.recovery.store import Store
from websites import Website, website, write_warc


@dataclass
class World:
    site: Website
    archives: Path  # the list of archives
    lost: Path  # a WARC of the site as it was at the end
    running: list[PywbArchive]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    site = website(seed=3, pages=40)
    holdings = []
    for number, shots in enumerate(site.scattered(3, seed=5)):
        warc = folder / f"{number}.warc.gz"
        write_warc(warc, shots)
        holdings.append((folder / f"archive-{number}", (), [warc]))
    lost = folder / "lost.warc.gz"
    write_warc(lost, [shot for shot in site.crawl([site.end]) if shot.version.status.startswith("200")])
    with pywb_archives(holdings) as running:
        path = folder / "archives.json"
        path.write_text(json.dumps([_entry(f"p{n}", archive) for n, archive in enumerate(running)]))
        yield World(site, path, lost, running)


def _entry(name: str, archive: PywbArchive, **fields: Any) -> dict[str, Any]:
    return {"id": name, "timemap": archive.timemap, "cdx": archive.cdx, "raw": archive.raw, **fields}


def recollect(*args: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "recollect", *args],
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )
    assert code is None or done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def requests_of(folder: Path) -> int:
    with Store.open(folder) as store:
        return sum(usage.requests for usage in Journal(store).usages().values())


def test_the_whole_site_comes_back_and_a_second_run_asks_for_nothing_that_is_there(
    world: World, tmp_path: Path
) -> None:
    out = tmp_path / "site"
    done = recollect("recover", world.site.start, "-o", str(out), "--archives", str(world.archives), "--json")
    report = json.loads(done.stdout)
    final = world.site.final()
    assert report["complete"] and report["totals"]["recovered"] == len(final)
    assert {m["uri"]: m["reason"] for m in report["missing"]} == {
        "http://lost.example/never-archived.html": "never-archived"
    }
    assert {r["archive"] for r in report["resources"]} == {"p0", "p1", "p2"}
    assert report["totals"]["requests"] <= 1.3 * len(final)
    measured = json.loads(recollect("measure", str(world.lost), str(out), "--json").stdout)
    assert measured["success"]["s4"] == 0 and measured["success"]["s1"] == 0
    before = requests_of(out)
    again = json.loads(
        recollect("recover", world.site.start, "-o", str(out), "--archives", str(world.archives), "--json").stdout
    )
    assert again["totals"]["recovered"] == len(final)
    assert requests_of(out) - before == 3  # one listing each


def test_killed_at_any_moment_it_goes_on_where_it_was(world: World, tmp_path: Path) -> None:
    out = tmp_path / "site"
    slow = json.loads(world.archives.read_text())
    for entry in slow:
        entry["rates"] = 12
    registry = tmp_path / "slow.json"
    registry.write_text(json.dumps(slow))
    command = [
        sys.executable,
        "-m",
        "recollect",
        "recover",
        world.site.start,
        "-o",
        str(out),
        "--archives",
        str(registry),
    ]
    kills = 0
    for enough in (8, 25, 60):
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )
        give_up = time.monotonic() + 60
        while process.poll() is None and _recovered(out) < enough and time.monotonic() < give_up:
            time.sleep(0.02)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.wait(10)
        command = [sys.executable, "-m", "recollect", "recover", "--resume", str(out)]
    assert kills == 3
    recollect("recover", "--resume", str(out))
    with Store.open(out) as store:
        fetched = sum(usage.fetched for usage in Journal(store).usages().values())
        listed = sum(usage.listed for usage in Journal(store).usages().values())
        content = {r.uri: store.content(r) for r in store.recovered(redirects=False)}
    final = world.site.final()
    assert set(content) == set(final)
    # What was on its way when it was killed is asked for again, nothing else: 24 connections, three kills.
    assert fetched <= len(final) + 10 + 3 * 24 and listed <= 6
    assert list((out / ".recollect" / "tmp").iterdir()) == []


def _recovered(out: Path) -> int:
    if not (out / ".recollect" / "journal.db").exists():
        return 0
    try:
        with Store.open(out) as store:
            return sum(count for (state, _), count in store.counts().items() if state == "recovered")
    except Exception:  # the tables may not be there yet
        return 0


def test_an_older_state_on_request(world: World, tmp_path: Path) -> None:
    out = tmp_path / "site"
    args = ("recover", world.site.start, "-o", str(out), "--archives", str(world.archives), "--until", "2009", "--json")
    report = json.loads(recollect(*args, code=None).stdout)
    assert report["resources"]
    for resource in report["resources"]:
        assert resource["captured_at"] < "2010"
        body = world.site.at(resource["uri"], resource["captured_at"].translate(str.maketrans("", "", "-T:Z")))
        assert body is not None
    assert {m["reason"] for m in report["missing"]} <= {"out-of-range", "never-archived", "rejected"}


def test_policies_differ_in_what_they_ask_and_find(world: World, tmp_path: Path) -> None:
    totals = {}
    for policy in ("naive", "knowledgeable", "exhaustive"):
        out = tmp_path / policy
        args = ("recover", world.site.start, "-o", str(out), "--archives", str(world.archives), "--policy", policy)
        totals[policy] = json.loads(recollect(*args, "--json", "--exclude", "/articles/").stdout)["totals"]
    found = [totals[policy]["recovered"] for policy in ("naive", "knowledgeable", "exhaustive")]
    assert found == sorted(found) and found[0] >= 30
    assert totals["naive"]["efficiency"] < totals["knowledgeable"]["efficiency"]
    assert totals["knowledgeable"]["known_not_fetched"] >= totals["exhaustive"]["known_not_fetched"] == 0


def test_one_archive_less_is_a_reason_not_a_crash(world: World, tmp_path: Path) -> None:
    entries = json.loads(world.archives.read_text())
    gone = {
        **entries[0],
        "id": "gone",
        "cdx": "http://127.0.0.1:9/cdx",
        "raw": "http://127.0.0.1:9/{timestamp}id_/{uri}",
    }
    registry = tmp_path / "archives.json"
    registry.write_text(json.dumps([gone, *entries[1:]]))
    out = tmp_path / "site"
    done = recollect(
        "recover", world.site.start, "-o", str(out), "--archives", str(registry), "--limit", "20", "--json", code=3
    )
    report = json.loads(done.stdout)
    assert report["totals"]["recovered"] == 20 and "failed" in report["listings"]["gone"]


def test_survey_shows_what_there_is_and_what_it_costs(world: World) -> None:
    found = json.loads(recollect("survey", "lost.example", "--archives", str(world.archives), "--json").stdout)
    assert [archive["state"] for archive in found["archives"]] == ["complete"] * 3
    assert found["resources"] >= len(world.site.final())
    assert found["first"][:4] == "2008" and found["last"][:4] == "2015"
    assert found["last_good"] < "2015"  # in 2015 the domain was parked
    assert sum(found["per_year"].values()) == found["captures"] == sum(found["per_type"].values())
    assert found["estimate"]["requests"] > 0 and found["estimate"]["bytes"] > 0
    shown = recollect("survey", world.site.start, "--archives", str(world.archives))
    assert re.search(r"2008 2009 2010 2011 2012", shown.stdout) and "last good" in shown.stdout
    nothing = recollect("survey", "http://unknown.example/", "--archives", str(world.archives))
    assert "No archive lists any capture" in nothing.stdout


def test_maps_keep_archives_without_the_site_from_being_asked(world: World, tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    maps.mkdir()
    lines = ["com,other)/page 3/3", "com,other)/x 1/1"]
    (maps / "p0.ukvs").write_text("\n".join(['!context ["https://oduwsdl.github.io/contexts/ukvs"]', *lines]) + "\n")
    args = ("--archives", str(world.archives), "--maps", str(maps), "--json")
    found = json.loads(recollect("survey", world.site.start, *args).stdout)
    assert [archive["state"] for archive in found["archives"]] == ["not asked", "complete", "complete"]


def test_a_long_run_needs_consent(world: World, tmp_path: Path) -> None:
    entries = [{**entry, "rates": "2/min"} for entry in json.loads(world.archives.read_text())]
    registry = tmp_path / "archives.json"
    registry.write_text(json.dumps(entries))
    done = recollect("recover", world.site.start, "-o", str(tmp_path / "site"), "--archives", str(registry), code=2)
    assert "--yes" in done.stderr and "requests" in done.stderr


def test_usage_errors_name_the_next_step(tmp_path: Path) -> None:
    assert "-o" in recollect("recover", "http://a.example/", code=2).stderr
    assert "hint" in recollect("recover", code=2).stderr
    assert "no recovery here" in recollect("recover", "--resume", str(tmp_path), code=2).stderr
    assert "date" in recollect("survey", "http://a.example/", "--at", "someday", code=2).stderr
