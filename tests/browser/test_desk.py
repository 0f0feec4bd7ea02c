"""The desk in a real browser: the whole way by clicking, the operator's pages, accessibility, and a hostile site."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import socket
import sqlite3
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from desk_world import RunningDesk, running_desk, until
from pywb_archive import Capture, pywb_archives
from recollect.desk.pictures import chromium, thumbnails
from recollect.desk.states import State
from recollect.recovery.sentences import WORDS, Headline
from recollect.ui.messages import using
from websites import website, write_warc

pytestmark = pytest.mark.xdist_group("desk-browser")
BACK = str(WORDS[Headline.AS_SAVED])  # one page of the generated site is linked and was never saved

EVIL = """<!doctype html><title>"><script>document.title='owned'</script></title>
<script>
  document.title = 'owned';
  fetch('DESK/api/jobs').then(() => fetch('DESK/stolen?' + document.cookie));
  new Image().src = 'DESK/stolen.png';
</script>
<form id=f method=post action="DESK/takedown"><input name=uri value="http://a.example/"></form>
<script>document.getElementById('f').submit()</script>
<img src="DESK/stolen-by-picture.png" onerror="document.title='owned'"><p>The evil site.</p>
"""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDesk]:
    folder = tmp_path_factory.mktemp("desk-browser")
    site = website(seed=2, pages=6)
    warc = folder / "site.warc.gz"
    write_warc(warc, site.crawl([site.end]))
    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        port, preview = one.getsockname()[1], two.getsockname()[1]
    evil = EVIL.replace("DESK", f"http://127.0.0.1:{port}").encode()
    captures = [Capture("http://evil.example/", "20150101000000", evil)]
    holdings = [(folder / "good", (), [warc]), (folder / "bad", captures, ())]
    with pywb_archives(holdings) as running:
        entries = [{"id": f"p{n}", "timemap": a.timemap, "cdx": a.cdx, "raw": a.raw} for n, a in enumerate(running)]
        (folder / "archives.json").write_text(json.dumps(entries))
        flags = ["--preview-url", f"http://127.0.0.1:{preview}", "--preview-port", str(preview)]
        environment = {"RECOLLECT_DESK_HEARTBEAT": "0.3", "RECOLLECT_DESK_PICTURES": "1"}
        with running_desk(folder / "desk", folder / "archives.json", *flags, port=port, **environment) as started:
            yield started


def in_language(language: str, text: str) -> str:
    with using(language) as texts:
        return texts.gettext(text)


def test_the_whole_way_by_clicking(desk: RunningDesk, page: Any, tmp_path: Path) -> None:
    page.goto(desk.base)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.get_by_label("Address of the lost site").fill("lost.example")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="What the archives have").wait_for(timeout=60_000)
    page.get_by_label("Your e-mail address").fill("anna@mail.example")
    page.get_by_role("button", name="Get it back").click()
    page.get_by_role("heading", name="Look into your mail").wait_for()
    [link] = re.findall(r"https?://\S+", desk.mail("anna@mail.example", "confirm").get_content())
    page.goto(link)
    page.get_by_role("button").click()
    page.get_by_role("heading", name=BACK, exact=True).wait_for(timeout=90_000)  # the script reloads it
    with page.expect_download() as download:
        page.get_by_role("link", name="Download", exact=True).click()
    path = tmp_path / "x.zip"
    download.value.save_as(path)
    assert download.value.suggested_filename == "lost.example.zip"
    assert "lost.example/index.html" in zipfile.ZipFile(path).namelist()
    picture = page.locator(".shot img").first
    until(lambda: picture.evaluate("image => image.complete && image.naturalWidth > 100"), 10)
    page.get_by_role("button", name="Tell me if more turns up").click()
    page.get_by_text("You get a mail if more").wait_for()
    page.get_by_label("Around this date").fill("2012-06-01")
    page.get_by_role("button", name="Try again").click()
    page.get_by_role("heading", name=BACK, exact=True).wait_for(timeout=90_000)
    assert not desk.mails()[-1]["Subject"].startswith("Please confirm"), "no second confirmation"


def test_the_page_of_a_job_works_without_script(desk: RunningDesk, browser: Any) -> None:
    job = desk.submit("http://still.example/", "still@mail.example")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{desk.base}/jobs/{job.id}?token={job.token}")
    assert "Please press the button" in page.content()
    assert page.locator('noscript meta[http-equiv="refresh"]').count() or 'http-equiv="refresh"' in page.content()
    page.get_by_role("button", name="Cancel this recovery").click()
    assert page.get_by_role("heading", name="Cancelled").is_visible()
    context.close()


def test_the_operator_logs_in_and_works(desk: RunningDesk, browser: Any) -> None:
    context = browser.new_context(bypass_csp=True)  # for axe
    page = context.new_page()
    page.goto(f"{desk.base}/admin")
    assert page.url.endswith("/admin/login")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    assert "wrong password" in page.content()
    _log_in(page, desk)
    [cookie] = context.cookies()
    assert cookie["name"] == "__Host-recollect" and cookie["httpOnly"] and cookie["secure"]
    assert cookie["sameSite"] == "Strict"
    job = desk.submit("http://paused.example/", "paused@mail.example")
    page.goto(f"{desk.base}/admin")
    page.locator("tr", has_text="paused.example").get_by_role("button", name="Cancel").click()
    assert desk.show(job)["state"] == "cancelled"
    page.goto(f"{desk.base}/admin/archives")
    page.get_by_role("button", name="Rest").first.click()
    assert desk.operator("GET", "/api/archives").json["archives"][0]["resting"]
    page.get_by_role("button", name="Wake").first.click()
    page.goto(f"{desk.base}/takedown")
    page.get_by_label("Address of the site").fill("http://mine.example/")
    page.get_by_label("Your e-mail address").fill("owner@mail.example")
    page.get_by_label("Why should it").fill("It is mine.")
    page.get_by_role("button", name="Send").click()
    page.goto(f"{desk.base}/admin/takedowns")
    page.get_by_role("button", name="Block the site").click()
    refused = desk.ask("POST", "/api/jobs", {"uri": "http://www.mine.example/", "email": "a@mail.example"})
    assert refused.status == 400 and "its owner asked us" in refused.text
    page.goto(f"{desk.base}/admin/workers")
    page.get_by_label("Name of the machine").fill("second")
    page.get_by_role("button", name="Make a token").click()
    token = page.locator("pre").first.inner_text().strip()
    claimed = desk.ask("POST", "/api/worker/claim", {"worker": "second"}, Authorization=f"Bearer {token}")
    assert claimed.status in (200, 204)
    forged = "fetch('/admin/archives/p0/rest', {method: 'POST', body: new URLSearchParams({csrf: 'x'})})"
    assert page.evaluate(f"{forged}.then((answer) => answer.status)") == 403, "a form without the session's token"
    axe = _axe()
    pages = ["", "/workers", "/archives", "/mails", "/statistics", "/blocklist", "/takedowns", f"/jobs/{job.id}"]
    found = {path: _violations(page, f"{desk.base}/admin{path}", axe) for path in pages}
    assert {path: rules for path, rules in found.items() if rules} == {}
    context.close()


def _log_in(page: Any, desk: RunningDesk) -> None:
    page.goto(f"{desk.base}/admin/login")
    page.get_by_label("Password").fill((desk.folder / "admin.password").read_text().strip())
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("heading", name="Jobs").wait_for()


def test_logins_are_throttled(desk: RunningDesk) -> None:
    answers = [desk.ask("POST", "/admin/login", form={"password": f"x{n}"}).status for n in range(8)]
    assert answers[0] == 403 and answers[-1] == 429


@pytest.fixture(scope="module")
def all_states(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningDesk, dict[str, str]]]:
    """A desk without workers, and the page of a job in every state, as a worker would have reported it."""
    folder = tmp_path_factory.mktemp("desk-states")
    archives = folder / "archives.json"
    archives.write_text(json.dumps([{"id": "one", "timemap": "http://127.0.0.1:9/"}]))
    settings = {"RECOLLECT_DESK_MAX_CRASHES": "1", "RECOLLECT_DESK_LEASE": "600", "RECOLLECT_DESK_PENDING_FOR": "600"}
    with running_desk(folder / "desk", archives, "--workers", "0", **settings) as running:
        yield running, _in_every_state(running)


def _in_every_state(desk: RunningDesk) -> dict[str, str]:
    token = (desk.folder / "worker.token").read_text().strip()
    pages: dict[str, str] = {}

    def report(path: str, body: dict[str, Any], method: str = "POST", **headers: str) -> Any:
        answer = desk.ask(method, f"/api/worker{path}", body, Authorization=f"Bearer {token}", **headers)
        assert answer.status == 200, answer.text
        return answer.json

    def claimed(state: str) -> tuple[str, dict[str, Any]]:
        job = desk.queue(f"http://{state}.example/")
        pages[state] = f"/jobs/{job.id}?token={job.token}"
        fence = report("/claim", {"worker": "w"})["fence"]
        lease = {"worker": "w", "fence": fence}
        counts = {"recovered": {"page": 9, "asset": 3}, "queued": {"page": 5}, "missing": {"asset": 1}}
        waiting = [{"archive": "one", "until": 4e9, "reason": "the archive asked us to wait"}]
        report(f"/jobs/{job.id}/beat", {**lease, "status": {**counts, "waiting_for": waiting}, "progress": 0.7})
        return f"/jobs/{job.id}", lease

    pending = desk.submit("http://pending.example/")
    pages["pending"] = f"/jobs/{pending.id}?token={pending.token}"
    cancelled = desk.submit("http://cancelled.example/")
    pages["cancelled"] = f"/jobs/{cancelled.id}?token={cancelled.token}"
    desk.ask("POST", f"/api/jobs/{cancelled.id}/cancel?token={cancelled.token}", {})
    claimed("running")
    path, lease = claimed("waiting")
    report(f"{path}/wait", {**lease, "seconds": 500, "reason": "one: the archive asked us to wait"})
    path, lease = claimed("packing")
    report(f"{path}/pack", lease)
    path, lease = claimed("nothing-found")
    report(f"{path}/nothing", {**lease, "summary": {"requests": {"one": 1}}})
    path, lease = claimed("failed")
    report(f"{path}/fail", {**lease, "reason": "no space left"})
    for state in ("ready", "expired"):
        path, lease = claimed(state)
        report(f"{path}/pack", lease)
        files = []
        for name in ("result.zip", "result.tar.gz", "result.wacz", "report.html"):
            digest = hashlib.sha256(b'{"x": 1}').hexdigest()
            where = f"{path}/files/{name}?fence={lease['fence']}&worker=w"
            report(where, {"x": 1}, "PUT", X_Checksum_Sha256=digest)
            files.append({"name": name, "size": 8, "sha256": digest})
        summary = {"recovered": 12, "pages": 9, "missing": 1, "discovered": 13, "last": "2010-01-01T00:00:00Z"}
        summary |= {"missing_by_reason": {"never-archived": 1}, "missing_examples": [{"uri": "http://a.example/"}]}
        report(f"{path}/deliver", {**lease, "files": files, "summary": summary})
    with sqlite3.connect(desk.folder / "desk.sqlite", timeout=30) as database:
        database.execute("UPDATE job SET expires_at = 1 WHERE uri LIKE '%expired%'")
    queued = desk.queue("http://queued.example/")
    pages["queued"] = f"/jobs/{queued.id}?token={queued.token}"
    until(lambda: "These files were removed" in desk.ask("GET", pages["expired"]).text, 10)
    return pages


@pytest.mark.parametrize(("scheme", "width"), [("light", 360), ("dark", 1200)])
def test_axe_finds_nothing_in_any_state_on_any_screen(
    all_states: tuple[RunningDesk, dict[str, str]], browser: Any, scheme: str, width: int
) -> None:
    desk, jobs = all_states
    axe = _axe()
    assert set(jobs) == {state.value for state in State} - {"picked-up"}
    pages = [*jobs.values(), "/", "/?uri=x&when=at", "/survey?uri=http://127.0.0.1/", "/takedown", "/sent?uri=x"]
    pages += ["/nowhere", "/confirm/wrong", "/admin/login"]
    # The content policy allows no script but ours; axe is one.
    context = browser.new_context(bypass_csp=True, color_scheme=scheme, viewport={"width": width, "height": 800})
    page = context.new_page()
    found = {path: _violations(page, desk.base + path, axe) for path in pages}
    _log_in(page, desk)
    ready = jobs["ready"].partition("?")[0].removeprefix("/jobs")
    admin = ["", "/workers", "/archives", "/mails", "/statistics", "/blocklist", "/takedowns", f"/jobs{ready}"]
    found |= {path: _violations(page, f"{desk.base}/admin{path}", axe) for path in admin}
    if folder := os.environ.get("RECOLLECT_SCREENSHOTS"):  # to look at
        for name, path in {**jobs, "form": "/", "admin": "/admin", "statistics": "/admin/statistics"}.items():
            page.goto(desk.base + path)
            page.screenshot(path=f"{folder}/{name}-{scheme}-{width}.png", full_page=True)
    assert {path: rules for path, rules in found.items() if rules} == {}
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_surveys_and_results(desk: RunningDesk, browser: Any, scheme: str) -> None:
    axe = _axe()
    ready = desk.queue("http://lost.example/")  # for the second time: the recovery of the first test
    desk.wait(ready, "ready", "picked-up")
    job = desk.submit(f"http://axe-{scheme}.example/", "axe@mail.example")
    [link] = re.findall(r"https?://\S+", desk.mail("axe@mail.example", f"axe-{scheme}").get_content())
    pages = [link.removeprefix(desk.base), f"/jobs/{ready.id}?token={ready.token}", "/survey?uri=lost.example"]
    pages += [f"/jobs/{job.id}?token={job.token}", f"/survey?uri=axe-{scheme}.example"]
    context = browser.new_context(bypass_csp=True, color_scheme=scheme, viewport={"width": 360, "height": 700})
    page = context.new_page()
    found = {path: _violations(page, desk.base + path, axe) for path in pages}
    if folder := os.environ.get("RECOLLECT_SCREENSHOTS"):
        for name, path in zip(("confirm", "result", "survey", "sent", "nothing"), pages, strict=True):
            page.goto(desk.base + path)
            page.screenshot(path=f"{folder}/real-{name}-{scheme}.png", full_page=True)
    assert {path: rules for path, rules in found.items() if rules} == {}
    context.close()


def _axe() -> str:
    package = pytest.importorskip("axe_playwright_python")
    return (Path(package.__file__).parent / "axe.min.js").read_text()


def _violations(opened: Any, address: str, axe: str) -> list[str]:
    # In a tab of its own: a page that reloads itself would abort the way to the next one.
    page = opened.context.new_page()
    page.goto(address)
    page.evaluate(axe + "\n;0")
    found = page.evaluate("axe.run()")["violations"]
    wide = page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    page.close()
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found] + ["wider than the screen"] * wide


def test_a_hostile_recovered_page_reaches_nothing(desk: RunningDesk, browser: Any) -> None:
    job = desk.queue("http://evil.example/", archives=["p1"])
    reply = desk.wait(job, "ready")
    zipped = desk.ask("GET", reply["result"]["zip"])
    assert "attachment" in zipped.headers["Content-Disposition"]
    names = zipfile.ZipFile(io.BytesIO(zipped.body)).namelist()
    assert not any(name.startswith("/") or ".." in name for name in names)
    context = browser.new_context()
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(reply["result"]["report"])
    assert "owned" not in page.title() and asked == [reply["result"]["report"]]
    page.goto(f"{desk.base}/jobs/{job.id}?token={job.token}")
    assert "owned" not in page.title() and not any("stolen" in url for url in asked)
    preview = page.get_by_role("link", name="Look at it").get_attribute("href")
    assert not preview.startswith(desk.base), "another origin"
    asked.clear()
    page.goto(preview)
    assert "The evil site" in page.content() and page.title() != "owned"
    assert [url for url in asked if url.startswith(desk.base) and "stolen" not in url] == []
    assert page.evaluate("document.readyState") == "complete"
    stolen = desk.ask("GET", "/metrics").text
    assert "/stolen" not in stolen
    forged = desk.ask("POST", "/takedown", form={"uri": "http://a.example/", "email": "a@b.example"}, Origin="null")
    assert forged.status == 403
    assert desk.ask("GET", preview.replace(preview.rpartition("-")[2][:8], "00000000")).status == 404
    context.close()


def test_a_picture_of_a_hostile_page_asks_no_server_of_this_machine(tmp_path: Path) -> None:
    """A page as it was captured: without what a restored page has against it."""
    if chromium() is None:
        pytest.skip("Chromium is not installed")
    (tmp_path / "secret.txt").write_text("secret")
    host = tmp_path / "evil.example"
    host.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        place = f"http://127.0.0.1:{listener.getsockname()[1]}"
        page = (
            f"<p>evil<img src='{place}/a.png'><link rel=stylesheet href='{place}/b.css'>"
            f"<iframe src='{place}/c'></iframe><script>fetch('{place}/d')</script>"
            f"<meta http-equiv=refresh content='0;{place}/e'>"
        )
        (host / "index.html").write_text(page)
        [picture] = thumbnails(tmp_path, "evil.example/index.html", tmp_path, 1)
        assert picture.read_bytes()[:4] == b"\x89PNG"
        with pytest.raises(TimeoutError):
            listener.accept()


@pytest.mark.parametrize(("locale", "width"), [("de-DE", 1300), ("es-ES", 400)])
def test_the_whole_way_by_keyboard_in_the_language_of_the_browser(
    desk: RunningDesk, browser: Any, locale: str, width: int
) -> None:
    """A person who lost a site, with a keyboard only: form, survey, mail, result; axe finds nothing on the way."""
    words = {
        "de-DE": (
            "Eine verlorene Website zurückholen", "Was die Archive haben", "Sehen Sie in Ihre E-Mails",
            in_language("de", BACK), "bestätigen",
        ),
        "es-ES": (
            "Recupere un sitio web perdido", "Lo que tienen los archivos", "Mire su correo",
            in_language("es", BACK), "Confirme",
        ),
    }[locale]  # fmt: skip
    axe, address = _axe(), f"{locale}@mail.example"
    context = browser.new_context(bypass_csp=True, locale=locale, viewport={"width": width, "height": 800})
    page = context.new_page()

    def look(heading: str) -> None:
        page.get_by_role("heading", name=heading, exact=True, level=1).wait_for(timeout=90_000)
        assert page.evaluate("document.documentElement.lang") == locale[:2]
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        page.evaluate(axe + "\n;0")
        found = page.evaluate("axe.run()")["violations"]
        assert [one["id"] for one in found] == []

    def tab_to(name: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.id || document.activeElement.type") == name:
                return
        raise AssertionError(f"the keyboard does not reach {name}")

    page.goto(desk.base)
    look(words[0])
    tab_to("uri")
    page.keyboard.type("lost.example")
    page.keyboard.press("Enter")
    look(words[1])
    tab_to("email")
    page.keyboard.type(address)
    page.keyboard.press("Enter")
    look(words[2])
    mail = desk.mail(address, words[4])
    [link] = re.findall(r"https?://\S+", mail.get_content())
    page.goto(link)
    tab_to("submit")
    page.keyboard.press("Enter")
    look(words[3])
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.textContent.trim()"))
    assert {"de-DE": {"Ansehen", "Herunterladen", "Ins Netz stellen"}, "es-ES": {"Verlo", "Descargar", "Publicarlo"}}[
        locale
    ] <= reached
    page.get_by_role("link", name="English").click()
    page.get_by_role("heading", name=BACK, exact=True).wait_for()
    context.close()
