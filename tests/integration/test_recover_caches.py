"""What real browsers and real tools left of a site that is gone: recovered with the bytes that were served."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import needs
from browsers import Answer, Site, chromium_context, served, visit_with_chromium, visit_with_firefox
from pywb_archive import Capture, pywb_archive
from recollect.recovery.store import Store
from sources_world import page, recollect, report

LATER = (("Cache-Control", "max-age=31536000"),)
PICTURE = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7") + bytes(70_000)
URL = "http://lost.example"
ANSWERS = {
    f"{URL}/": Answer(
        page("Frogs", "/toads", "/list.php?id=1", "/newts/").replace(
            b"<body>", b'<link rel="stylesheet" href="/style.css"><body><img src="/frog.gif">'
        ),
        headers=(*LATER, ("Set-Cookie", "session=secret-of-the-person")),
    ),
    f"{URL}/toads": Answer(page("Toads", "/"), headers=LATER, zipped=True),
    f"{URL}/list.php?id=1": Answer(page("List", "/"), "text/html; charset=iso-8859-1", headers=LATER),
    f"{URL}/newts/": Answer(page("Newts", "../toads"), headers=LATER),
    f"{URL}/style.css": Answer(b"body { color: green }", "text/css", headers=LATER),
    f"{URL}/frog.gif": Answer(PICTURE, "image/gif", headers=LATER),
    "http://bank.example/account": Answer(page("My account"), headers=LATER),
}
PAGES = [f"{URL}/", f"{URL}/toads", f"{URL}/list.php?id=1", f"{URL}/newts/"]
OURS = {url for url in ANSWERS if url.startswith(URL)}
VISITS = [*PAGES, "http://bank.example/account"]
BLOCKS = "--enable-features=DiskCacheBackendExperiment:backend/blockfile"


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with served(ANSWERS) as running:
        yield running


def payloads(folder: Path) -> dict[str, bytes]:
    with Store.open(folder) as store:
        return {one.uri: one.payload_path.read_bytes() for one in store.recovered(redirects=False)}


def recovered(tmp_path: Path, source: Path, *more: str) -> dict[str, bytes]:
    recollect("recover", f"{URL}/", "--only", source, "-o", tmp_path / "site", *more)
    return payloads(tmp_path / "site")


def make_cache(browser: str, folder: Path, site: Site) -> Path:
    if browser == "firefox":
        visit_with_firefox(folder, site, VISITS)
        return folder
    visit_with_chromium(folder, site, VISITS, *([BLOCKS] if browser == "block files" else []))
    cache = folder / "Default/Cache/Cache_Data"
    if browser == "block files" and not (cache / "data_1").exists():
        pytest.skip("this Chromium does not write block files")
    return folder


@pytest.mark.parametrize("browser", ["simple cache", "block files", "firefox"])
def test_a_browsers_cache_alone_brings_back_the_bytes_that_were_served(
    tmp_path: Path, site: Site, browser: str
) -> None:
    profile = make_cache(browser, tmp_path / "profile", site)
    moved = (tmp_path / "profile").rename(tmp_path / "copied profile")  # of another machine
    found = recovered(tmp_path, moved)
    assert profile != moved
    assert found == {url: ANSWERS[url].sent for url in OURS}
    told = json.loads((tmp_path / "site/report.json").read_text())
    (source,) = told["sources"]
    assert source["entries_looked_at"] > source["entries_of_the_site"] >= source["entries_taken"] == len(OURS)
    for path in (tmp_path / "site").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert b"secret-of-the-person" not in content and b"bank.example" not in content, path
    assert "entries looked at" in (tmp_path / "site/report.html").read_text()


def test_a_cache_without_an_address_is_refused(tmp_path: Path, site: Site) -> None:
    visit_with_chromium(tmp_path / "profile", site, PAGES[:1])
    done = recollect("recover", "--only", tmp_path / "profile", "-o", tmp_path / "site", code=2)
    assert "a browser's cache needs an address" in done.stderr


def test_of_cache_and_archive_the_newer_capture_wins(tmp_path: Path, site: Site) -> None:
    visit_with_chromium(tmp_path / "profile", site, PAGES)
    old = [Capture(url, "20150101000000", page("Old")) for url in (f"{URL}/toads", f"{URL}/newts/")]
    newest = Capture(f"{URL}/list.php?id=1", "20990101000000", page("Newest", "/"))
    with pywb_archive(tmp_path / "pywb", [*old, newest]) as archive:
        entry = {"id": "pywb", "timemap": archive.timemap, "cdx": archive.cdx, "raw": archive.raw}
        (tmp_path / "archives.json").write_text(json.dumps([entry]))
        given = (f"{URL}/", "--archives", tmp_path / "archives.json", "--also", tmp_path / "profile")
        recollect("recover", *given, "-o", tmp_path / "site", "--keep-suspects")
    found = report(tmp_path / "site")
    assert {url for url, one in found.items() if one["archive"] == "pywb"} == {newest.uri}
    assert payloads(tmp_path / "site")[f"{URL}/toads"] == ANSWERS[f"{URL}/toads"].sent


def har_of(context: object, urls: list[str]) -> dict[str, object]:
    """A HAR of visits, from Chromium's own network events."""
    view = context.new_page()  # type: ignore[attr-defined]
    cdp = context.new_cdp_session(view)  # type: ignore[attr-defined]
    cdp.send("Network.enable")
    responses: dict[str, dict[str, object]] = {}
    cdp.on("Network.responseReceived", lambda event: responses.__setitem__(event["requestId"], event["response"]))
    entries = []
    for url in urls:
        responses.clear()
        view.goto(url, wait_until="networkidle")
        for number, response in list(responses.items()):
            body = cdp.send("Network.getResponseBody", {"requestId": number})
            content = {"mimeType": response["mimeType"], "text": body["body"]}
            content |= {"encoding": "base64"} if body["base64Encoded"] else {}
            headers = [{"name": name, "value": value} for name, value in response["headers"].items()]  # type: ignore[attr-defined]
            entries.append(
                {
                    "startedDateTime": "2026-01-02T03:04:05.678Z",
                    "request": {"method": "GET", "url": response["url"], "headers": [{"name": "Cookie", "value": "x"}]},
                    "response": {"status": response["status"], "headers": headers, "content": content},
                }
            )
    return {"log": {"version": "1.2", "creator": {"name": "test", "version": "1"}, "entries": entries}}


def test_a_har_of_chromium_brings_the_site_back(tmp_path: Path, site: Site) -> None:
    with chromium_context(tmp_path / "profile", site) as context:
        (tmp_path / "session.har").write_text(json.dumps(har_of(context, PAGES), indent=1))
    found = recovered(tmp_path, tmp_path / "session.har")
    assert found == {url: ANSWERS[url].body for url in OURS}
    assert "secret-of-the-person" not in (tmp_path / "site/recovered.warc.gz").read_bytes().decode("latin-1")


def test_an_mhtml_of_chromium_brings_a_page_back_with_its_images(tmp_path: Path, site: Site) -> None:
    with chromium_context(tmp_path / "profile", site) as context:
        view = context.new_page()
        view.goto(f"{URL}/", wait_until="networkidle")
        snapshot = context.new_cdp_session(view).send("Page.captureSnapshot", {"format": "mhtml"})
    (tmp_path / "frogs.mhtml").write_bytes(snapshot["data"].encode())
    done = recollect("recover", "--only", tmp_path / "frogs.mhtml", "-o", tmp_path / "site")
    assert f"address: {URL}/" in done.stderr
    found = payloads(tmp_path / "site")
    assert found[f"{URL}/frog.gif"] == PICTURE
    assert b"Frogs" in found[f"{URL}/"]
    assert (
        report(tmp_path / "site")[f"{URL}/"]["altered"] and not report(tmp_path / "site")[f"{URL}/frog.gif"]["altered"]
    )


@pytest.mark.parametrize("flags", [(), ("-E",), ("-k", "-E"), ("-k", "-K"), ("-k", "--restrict-file-names=windows")])
def test_a_mirror_by_wget_brings_the_site_back(tmp_path: Path, site: Site, flags: tuple[str, ...]) -> None:
    command = [needs.program("wget"), "-q", "-r", "-l", "3", "-P", str(tmp_path / "mirror"), *flags, f"{URL}/"]
    subprocess.run(command, env={**os.environ, "http_proxy": site.proxy}, timeout=60, check=False)
    found = recovered(tmp_path, tmp_path / "mirror")
    converted = "-k" in flags and "-K" not in flags
    # With -k and -E no link says that /toads had no extension: its page goes by the name of the file.
    toads = f"{URL}/toads.html" if flags == ("-k", "-E") and f"{URL}/toads.html" in found else f"{URL}/toads"
    assert set(found) == (OURS - {f"{URL}/toads"}) | {toads}
    assert found[f"{URL}/frog.gif"] == PICTURE
    if not converted:
        assert found == {url: ANSWERS[url].sent for url in OURS}
    told = json.loads((tmp_path / "site/report.json").read_text())
    assert told["totals"]["missing"] == 0
    assert all("time of the file" in one["note"] for one in told["resources"])


@pytest.mark.parametrize("cached", [True, False])
def test_a_mirror_by_httrack_brings_the_site_back(tmp_path: Path, site: Site, cached: bool) -> None:
    mirror = tmp_path / "mirror"
    command = [needs.program("HTTrack"), f"{URL}/", "-O", str(mirror), "-P", f"127.0.0.1:{site.port}", "-q", "-r4"]
    subprocess.run(
        [*command, "-s0", "--disable-security-limits", "-c8", "-A0"], capture_output=True, timeout=90, check=True
    )
    if not cached:
        for name in ("new.zip", "old.zip"):
            (mirror / "hts-cache" / name).unlink(missing_ok=True)
    found = recovered(tmp_path, mirror)
    assert found[f"{URL}/frog.gif"] == PICTURE
    if cached:
        assert found == {url: ANSWERS[url].body for url in OURS}
    else:
        assert {f"{URL}/", f"{URL}/newts/"} <= set(found)
        assert json.loads((tmp_path / "site/report.json").read_text())["totals"]["missing"] == 0
