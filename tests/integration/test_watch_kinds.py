"""Trouble that is neither a loss nor a takeover, told in words of its own: simulated days, real servers."""

from __future__ import annotations

import ipaddress
import json
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import urlopen

import pytest

from desk_world import start
from pywb_archive import Capture, pywb_archive
from recollect.archives.live import LiveClient
from recollect.cli import main
from recollect.watch.store import Store
from watch_sites import EXPIRED, MAINTENANCE, NGINX, PAGE, SUSPENDED, TEXT, Web, sites

T0 = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    patched = {**(LiveClient.__init__.__kwdefaults__ or {}), "pace": 0.0}
    monkeypatch.setattr(LiveClient.__init__, "__kwdefaults__", patched)
    with sites() as made:
        yield made


def add(uri: str, data: Path, *options: str, archives: str = "[]") -> None:
    data.parent.mkdir(parents=True, exist_ok=True)
    listed = data.parent / "archives.json"
    listed.write_text(archives)
    given = ["watch", "add", uri, "--data", str(data), "--allow-private", "--archives", str(listed)]
    assert main.run([*given, "--email", "anna@mail.example", "--now", T0.isoformat(), *options]) == 0


def day(data: Path, number: float, *options: str) -> None:
    at = (T0 + timedelta(days=number)).isoformat()
    assert main.run(["watch", "run", "--data", str(data), "--now", at, "--json", *options]) in (0, 3)


def mails(data: Path) -> list[tuple[str, str]]:
    found = [message_from_bytes(file.read_bytes(), policy=policy.default) for file in (data / "outbox").glob("*.eml")]
    return sorted((mail["Subject"], mail.get_content()) for mail in found)


def state(data: Path, capsys: pytest.CaptureFixture[str]) -> dict:
    capsys.readouterr()
    main.run(["watch", "status", "--data", str(data), "--json"])
    return json.loads(capsys.readouterr().out)[0]


def everywhere(web: Web, body: str, status: int = 200) -> None:
    web.at(0).pages = dict.fromkeys(("/", "/races", "/boats", "/oars"), body)
    web.at(0).status = status


@pytest.mark.parametrize(
    ("body", "status", "expected", "words", "told_on"),
    [
        (SUSPENDED, 200, "suspended", "is suspended by its host", 1),
        (SUSPENDED, 403, "suspended", "is suspended by its host", 1),
        (EXPIRED, 200, "domain-expired", "the registration of its domain has ended", 1),
        (NGINX, 200, "default-page", "shows the default page of a web server", 2),
        (MAINTENANCE, 503, "maintenance", "shows a maintenance page", 2),
        (MAINTENANCE, 200, "maintenance", "shows a maintenance page", 2),
    ],
)
def test_a_page_of_the_host_is_told_in_its_own_words_and_its_end_too(
    web: Web,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    body: str,
    status: int,
    expected: str,
    words: str,
    told_on: int,
) -> None:
    data = tmp_path / "watch"
    add(web.uri(0), data, "--on-loss", "notify")
    day(data, 0)
    own = dict(web.at(0).pages)
    everywhere(web, body, status)
    for number in range(1, 20):
        day(data, number)
        assert bool(mails(data)) == (number >= told_on)
    assert state(data, capsys)["state"] == expected
    [(subject, text)] = mails(data)
    assert words in subject and "someone else" not in subject + text
    assert "Your files may still be there." in " ".join(text.split())
    assert main.run(["watch", "status", "--data", str(data), "--fail-on", "lost"]) == 1, "visitors do not see the site"
    web.at(0).pages, web.at(0).status = own, 200
    day(data, 20)
    assert state(data, capsys)["state"] == "back"
    assert sorted(subject.rpartition(" ")[2] for subject, _ in mails(data))[0] == "back"


def test_a_banner_about_maintenance_on_a_page_of_the_site_is_no_maintenance(
    web: Web, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "watch"
    add(web.uri(0), data, "--on-loss", "notify")
    day(data, 0)
    web.at(0).pages["/"] = (
        PAGE + "<p>Scheduled maintenance on Sunday. This account has been suspended, said the article."
    )
    for number in range(1, 9):
        day(data, number)
    assert state(data, capsys)["state"] == "fine" and mails(data) == []


# --- certificates


@contextmanager
def tls_sites(folder: Path, since: datetime, until: datetime) -> Iterator[Web]:
    """Sites behind a certificate of an authority of their own, `ca.pem`."""
    x509 = pytest.importorskip("cryptography.x509", reason="cryptography is not installed")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    folder.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Rowing Club")])
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.1.1"))])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(x509.random_serial_number()).not_valid_before(since).not_valid_after(until)
    signed = made.add_extension(names, critical=False).sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    content = signed.public_bytes(pem)
    (folder / "ca.pem").write_bytes(content)
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "site.pem").write_bytes(private + content)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "site.pem")
    with sites(context) as made_sites:
        yield made_sites


def test_a_certificate_is_told_before_it_expires_and_when_it_has(
    web: Web, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "watch"
    now = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    until = now + timedelta(days=30)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "tls" / "ca.pem"))
    with tls_sites(tmp_path / "tls", now - timedelta(days=60), until) as secure:
        add(secure.uri(0), data, "--on-loss", "notify")
        start = now - T0
        for number in (0, 10, 15):
            day(data, number + start / timedelta(days=1))
        assert mails(data) == []
        for number in (17, 18, 28, 29):
            day(data, number + start / timedelta(days=1))
        told = mails(data)
        assert [subject.partition(": ")[2] for subject, _ in told] == ["its certificate expires soon"] * 2
        assert all(f"expires on {until:%Y-%m-%d}" in text for _, text in told)
        assert state(data, capsys)["certificate_until"] == until.isoformat().replace("+00:00", "Z")
        for number in (31, 32, 40):
            day(data, number + start / timedelta(days=1))
    assert state(data, capsys)["state"] == "bad-certificate"
    [text] = [text for subject, text in mails(data) if "warning" in subject]
    expected = f"The certificate expired on {until:%Y-%m-%d}; visitors see a warning. Your files are still there."
    assert expected in text


@pytest.mark.parametrize("body", [PAGE, "<title>Garden chairs</title><p>" + "Tables, chairs, umbrellas for all. " * 20])
def test_behind_a_certificate_that_is_not_trusted_the_content_decides(
    web: Web, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    data = tmp_path / "watch"
    now = datetime.now(UTC)
    with tls_sites(tmp_path / "tls", now - timedelta(days=1), now + timedelta(days=300)) as secure:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "tls" / "ca.pem"))
        add(secure.uri(0), data, "--on-loss", "notify")
        day(data, 0)
        assert state(data, capsys)["state"] == "fine"
        monkeypatch.delenv("SSL_CERT_FILE")
        secure.at(0).pages["/"] = body
        for number in (1, 2, 3):
            day(data, number)
        assert state(data, capsys)["state"] == ("bad-certificate" if body is PAGE else "suspect")
        told = " ".join(text for _, text in mails(data))
        assert ("Your files are still there" in told) == (body is PAGE)


# --- search spam


def test_hidden_links_on_most_pages_at_once_are_noticed_and_can_be_accepted(
    web: Web, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "watch"
    add(web.uri(0), data, "--on-loss", "notify")
    site = web.at(0)
    site.pages = {path: body + '<a href="https://partner.example/">p</a>' for path, body in site.pages.items()}
    day(data, 0)
    clean = dict(site.pages)
    site.pages = {path: body + '<a href="https://mastodon.example/@club">m</a>' for path, body in clean.items()}
    day(data, 1)
    assert mails(data) == [], "one new link that readers see"
    spam = '<div style="position:absolute; left:-9999px"><a href="https://pills.example/buy">x</a></div>'
    site.pages = {path: body + spam for path, body in clean.items()}
    for number in (2, 3, 4):
        day(data, number)
    [(subject, text)] = mails(data)
    assert "links to new domains" in subject and "pills.example" in text and "partner.example" not in text
    assert state(data, capsys)["new_links"] == ["pills.example"]
    assert main.run(["watch", "status", "--data", str(data), "--fail-on", "new-links"]) == 1
    assert main.run(["watch", "accept", web.uri(0), "--data", str(data)]) == 0
    for number in (5, 6):
        day(data, number)
    assert state(data, capsys)["new_links"] == [] and len(mails(data)) == 1


# --- lost pages


def rows(number: int, base: str) -> dict[str, str]:
    """A site with pages that differ."""
    names = [f"/story-{one}.html" for one in range(number)]
    links = "".join(f'<a href="{name}">{name}</a>' for name in names)
    pages = {name: f"<title>Story {name} of the River Rowing Club</title><p>{name} {TEXT}{links}" for name in names}
    return {"/": f"<title>River Rowing Club</title><p>{TEXT}{links}", **pages}


def test_lost_pages_are_told_recovered_and_mended(web: Web, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "watch"
    site = web.at(0)
    site.pages = rows(8, web.uri(0))
    base = web.uri(0).rstrip("/")
    held = [
        Capture(base + path, "20251201000000", body.encode(), "text/html")
        for path, body in site.pages.items()
        if path != "/story-3.html"
    ]
    with pywb_archive(tmp_path / "pywb", held) as archive:
        listed = json.dumps([{"id": "mine", "timemap": archive.timemap, "cdx": archive.cdx, "raw": archive.raw}])
        add(web.uri(0), data, archives=listed)
        day(data, 0)
        kept = dict(site.pages)
        moved = site.pages.pop("/story-0.html")
        site.pages["/archive/story-0.html"] = moved
        site.pages["/"] += '<a href="/archive/story-0.html">moved</a>'
        for number in (1, 2, 3):
            del site.pages[f"/story-{number}.html"]
        site.redirects = {"/story-4.html": "/"}
        site.pages.pop("/story-4.html")
        day(data, 1)
        assert mails(data) == [], "gone on one visit only"
        assert state(data, capsys)["state"] == "fine"
        day(data, 2)
        told = state(data, capsys)
        assert told["state"] == "pages-lost"
        assert [one["uri"].rpartition("/")[2] for one in told["lost_pages"]] == [f"story-{n}.html" for n in range(5)]
        assert main.run(["watch", "status", "--data", str(data), "--fail-on", "pages-lost"]) == 1
        table = capsys.readouterr().out
        assert "lost pages" in table and "5" in table
        by_subject = dict(mails(data))
        text = by_subject[f"{web.uri(0)} has lost pages"]
        assert "5 pages lost, 4 with a copy in an archive" in text
        assert f"{base}/story-1.html" in text and "20251201000000" in text and "no copy in an archive" in text
        done = by_subject[f"{web.uri(0)}: lost pages are recovered"]
        assert "4 of 5 lost pages came back (80%)" in done and str(data.resolve()) in done
        folder = data / told["recovery"]
        uploaded = sorted(
            str(one.relative_to(folder / "upload")) for one in (folder / "upload").rglob("*") if one.is_file()
        )
        assert uploaded == ["story-0.html", "story-1.html", "story-2.html", "story-4.html"]
        for name in uploaded:
            assert (folder / "upload" / name).read_text() == kept[f"/{name}"], "as the live site had it"
        rules = (folder / "redirects" / "redirects.tsv").read_text()
        assert f"{base}/story-0.html\tmoved\t{base}/archive/story-0.html\n" in rules
        assert f"{base}/story-1.html\tcopy\t" in rules and "story-3" not in rules
        for number in (3, 4, 5):
            day(data, number)
        assert len(mails(data)) == 2, "told once"
        site.pages, site.redirects = {**kept, "/archive/story-0.html": moved}, {}
        day(data, 6)
        assert state(data, capsys)["state"] == "fine"
        assert f"{web.uri(0)}: all lost pages are there again" in dict(mails(data))


def test_a_page_that_never_was_live_or_fails_for_a_day_is_not_lost(
    web: Web, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "watch"
    site = web.at(0)
    site.pages["/"] += '<a href="/never">broken</a>'
    add(web.uri(0), data)
    kept = dict(site.pages)
    for number in range(12):
        site.pages = {path: body for path, body in kept.items() if path != "/boats"} if number == 5 else dict(kept)
        day(data, number)
        assert state(data, capsys)["state"] == "fine"
    assert mails(data) == []


def test_pages_removed_on_purpose_are_accepted(web: Web, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "watch"
    site = web.at(0)
    add(web.uri(0), data, "--on-loss", "notify")
    day(data, 0)
    del site.pages["/boats"]
    for number in (1, 2):
        day(data, number)
    assert state(data, capsys)["state"] == "pages-lost"
    at = (T0 + timedelta(days=2.1)).isoformat()
    assert main.run(["watch", "accept", web.uri(0), "--data", str(data), "--now", at]) == 0
    for number in range(3, 9):
        day(data, number)
    assert state(data, capsys)["state"] == "fine" and state(data, capsys)["lost_pages"] == []
    assert len(mails(data)) == 1


def test_a_relaunch_that_was_called_taken_over_is_accepted(
    web: Web, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "watch"
    add(web.uri(0), data, "--on-loss", "notify")
    day(data, 0)
    new = (
        "<title>Garden chairs</title><p>" + "Tables, chairs and umbrellas for terraces, delivered within days. " * 6
    ) + "<a href=/tables>t</a><a href=/chairs>c</a><a href=/sale>s</a>"
    web.at(0).pages = dict.fromkeys(("/", "/tables", "/chairs", "/sale"), new)
    for number in range(1, 6):
        day(data, number)
    assert state(data, capsys)["state"] == "taken-over"
    observations = len(Store(data).observations(web.uri(0)))
    at = (T0 + timedelta(days=5.5)).isoformat()
    assert main.run(["watch", "accept", web.uri(0), "--data", str(data), "--now", at]) == 0
    assert state(data, capsys)["state"] == "fine"
    for number in range(6, 15):
        day(data, number)
        assert state(data, capsys)["state"] == "fine"
    assert len(mails(data)) == 1
    assert len(Store(data).observations(web.uri(0))) > observations
    assert main.run(["watch", "accept", web.uri(0), "--data", str(data)]) == 2, "nothing to accept"


def test_a_page_with_little_on_it_is_a_loss_and_never_content_of_others_and_can_be_accepted(
    web: Web, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "watch"
    add(web.uri(0), data, "--on-loss", "notify")
    day(data, 0)
    web.at(0).pages = {"/": "<title>Soon</title><h1>Something new is on its way.</h1>"}
    for number in (1, 2, 5, 9):
        day(data, number)
    assert state(data, capsys)["state"] == "lost"
    [(subject, text)] = mails(data)
    assert subject.endswith("is lost") and "a page with little text" in text and "watch accept" in text
    assert main.run(["watch", "accept", web.uri(0), "--data", str(data)]) == 0
    for number in (10, 11, 12):
        day(data, number)
    assert state(data, capsys)["state"] == "fine" and len(mails(data)) == 1


def test_edit_changes_options_and_keeps_observations(
    web: Web, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "watch"
    add(web.uri(0), data, "--on-loss", "notify")
    day(data, 0)
    before = len(Store(data).observations(web.uri(0)))
    given = ["watch", "edit", web.uri(0), "--data", str(data)]
    options = ["--email", "berta@mail.example", "--every", "12h", "--canary", web.uri(1)]
    assert main.run([*given, *options]) == 0
    day(data, 0.5)
    [site] = Store(data).sites()
    assert (site.email, site.every, site.canary) == ("berta@mail.example", timedelta(hours=12), web.uri(1))
    assert site.last_visit == T0 + timedelta(hours=12)
    assert len(Store(data).observations(web.uri(0))) == 2 * before
    assert main.run(given) == 2, "nothing to change"
    assert main.run([*given, "--every", "1s"]) == 2
    assert main.run(["watch", "edit", "http://other.example/", "--email", "a@b.example", "--data", str(data)]) == 2


def test_sitemaps_are_read(web: Web, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "watch"
    site = web.at(0)
    base = web.uri(0).rstrip("/")
    site.robots = (200, f"User-agent: *\nDisallow: /secret\nSitemap: {base}/maps/index.xml\n")
    ns = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    site.files = {
        "/maps/index.xml": (
            "application/xml",
            f"<sitemapindex {ns}><sitemap><loc>{base}/maps/1.xml</loc></sitemap></sitemapindex>",
        ),
        "/maps/1.xml": (
            "text/xml",
            f"<urlset {ns}><url><loc>{base}/hidden-page</loc></url><url><loc>{base}/secret</loc></url></urlset>",
        ),
    }
    site.pages["/hidden-page"] = PAGE
    add(web.uri(0), data)
    day(data, 0)
    assert "/maps/1.xml" in site.paths and "/hidden-page" in site.paths
    assert "/secret" not in site.paths and "/sitemap.xml" not in site.paths
    [found] = [one for one in Store(data).resources(web.uri(0)) if one.uri.endswith("/hidden-page")]
    assert (found.facts.hops, found.facts.source) == (None, f"{base}/maps/1.xml")
    web.at(1).files = {
        "/sitemap.xml": ("application/xml", f"<urlset {ns}><url><loc>{web.uri(1)}alone</loc></url></urlset>")
    }
    web.at(1).pages["/alone"] = PAGE
    add(web.uri(1), tmp_path / "second")
    day(tmp_path / "second", 0)
    assert "/alone" in web.at(1).paths, "without a line in robots.txt"


def test_the_link_in_the_mail_asks_and_its_button_accepts_once(web: Web, tmp_path: Path) -> None:
    data = tmp_path / "watch"
    add(web.uri(0), data, "--on-loss", "notify")
    day(data, 0)
    process, said, line = start(["watch", "serve", "--data", str(data), "--port", "0"], "listens on")
    try:
        base = line.split()[-1]
        del web.at(0).pages["/boats"]
        for number in (1, 2):
            day(data, number, "--dashboard", base)
        [(_, text)] = mails(data)
        [link] = re.findall(rf"{re.escape(base)}accept\?\S+", text)
        with urlopen(link, timeout=30) as answer:
            shown = answer.read()
            assert b"Accept the present content" in shown and f"{web.uri(0)}boats".encode() in shown, "and what"
        [site] = Store(data).sites()
        assert site.status.state.value == "pages-lost", "opening the link changes nothing"
        fields = parse_qs(urlsplit(link).query)
        wrong = urlencode({"site": web.uri(0), "signed": "0" * 64}).encode()
        right = urlencode({name: values[0] for name, values in fields.items()}).encode()
        for content, expected in ((wrong, 403), (right, 200), (right, 403)):
            try:
                status = urlopen(f"{base}accept", content, timeout=30).status
            except HTTPError as error:
                status = error.code
            assert status == expected
        [site] = Store(data).sites()
        assert site.status.state.value == "fine"
        assert (data / "accept.key").stat().st_mode & 0o077 == 0
    finally:
        process.terminate()
        assert process.wait(30) == 0, said


def test_advice_and_measures_of_a_site_from_its_observations(
    web: Web, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "watch"
    site = web.at(0)
    base = web.uri(0).rstrip("/")
    site.pages["/private"] = '<meta name="robots" content="index, noarchive">' + PAGE
    site.pages["/"] += '<a href="/private">p</a>'
    held = [
        Capture(f"{base}{path}", "20251201000000", PAGE.encode(), "text/html") for path in ("/", "/races", "/boats")
    ]
    with pywb_archive(tmp_path / "pywb", held) as archive:
        listed = json.dumps([{"id": "mine", "timemap": archive.timemap, "cdx": archive.cdx, "raw": archive.raw}])
        add(web.uri(0), data, archives=listed)
        for number in (0, 8, 16):
            day(data, number)
    capsys.readouterr()
    assert main.run(["watch", "advise", web.uri(0), "--data", str(data), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    [one] = report["archives"]
    assert (one["archive"], one["held"], one["resources"], one["p_r"]) == ("mine", 3, 5, 1.0)
    assert (one["vulnerable_now"], one["ttl_c"], one["t_a"]) == (2, 16.0, None)
    given = {advice["gap"]: advice["pages"] for advice in report["advice"]}
    assert given["noarchive"] == [f"{base}/private"]
    assert sorted(given["submit"]) == [f"{base}/oars", f"{base}/private"]
    assert main.run(["watch", "advise", web.uri(0), "--data", str(data)]) == 0
    out = capsys.readouterr()
    assert "TTL_c" in out.out and "noarchive" in out.err
