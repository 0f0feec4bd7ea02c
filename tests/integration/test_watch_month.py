"""A month of one watch over many sites, each with a fate of its own: every mail is right, and none is missing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from pathlib import Path

import pytest

from recollect.archives.live import LiveClient
from recollect.cli import main
from watch_sites import EXPIRED, MAINTENANCE, NGINX, PAGE, SUSPENDED, One, Web, sites

T0 = datetime(2026, 1, 1, tzinfo=UTC)
OTHER = "<title>Garden chairs</title><p>" + "Tables, chairs and umbrellas for terraces, delivered in days. " * 8
OTHER += "<a href=/tables>t</a><a href=/chairs>c</a><a href=/sale>s</a>"
PARKED = "<title>club</title><p>This domain is for sale. Buy this domain today.<a href=/offer>offer</a>"
DATABASE = "<title>Database Error</title><h1>Error establishing a database connection</h1>"
BLOCKED = "<title>Just a moment...</title><p>Checking your browser before accessing. DDoS protection by Someone."


def shows(body: str, status: int = 200):
    def change(site: One) -> None:
        site.pages = dict.fromkeys(("/", "/races", "/boats", "/oars"), body)
        site.status = status

    return change


def without_a_page(site: One) -> None:
    site.pages.pop("/boats", None)


def spam(site: One) -> None:
    hidden = '<p style="display:none"><a href="https://pills.example/">x</a>'
    site.pages = {path: body + hidden for path, body in site.pages.items()}


def session(site: One) -> None:
    """Links with another number on every visit, the old ones gone."""
    number = len(site.paths)
    site.pages["/"] = PAGE + f'<a href="/list?session={number}">l</a>'
    site.files = {f"/list?session={number}": ("text/html", PAGE)}


def restored(site: One) -> None:
    site.pages, site.status = One().pages, 200


DAYS = (0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 20, 21, 28, 32)
# By name: what happens on which day, the state at the end, the ends of the subjects of its mails in order.
FATES: dict[str, tuple[dict[int, object], str, list[str]]] = {
    "steady": ({}, "fine", []),
    "a day of failures": ({5: shows("", 503), 6: restored}, "fine", []),
    "database": ({5: shows(DATABASE, 200)}, "lost", ["is lost"]),
    "refuses": ({5: shows("", 403)}, "fine", []),
    "wall": ({5: shows(BLOCKED, 503)}, "fine", []),
    "lost": ({5: shows("", 500)}, "lost", ["is lost"]),
    "lost and back": ({5: shows("", 500), 20: restored}, "fine", ["is lost", "is back"]),
    "empty": ({5: shows("", 404)}, "lost", ["is lost"]),
    "parked": ({5: shows(PARKED)}, "taken-over", ["shows the content of someone else"]),
    "other": ({5: shows(OTHER)}, "taken-over", ["shows the content of someone else"]),
    "suspended": ({5: shows(SUSPENDED)}, "suspended", ["is suspended by its host"]),
    "suspended, then gone": ({5: shows(SUSPENDED), 9: shows("", 500)}, "lost", ["is suspended by its host", "is lost"]),
    "default": ({5: shows(NGINX)}, "default-page", ["shows the default page of a web server"]),
    "maintenance": ({5: shows(MAINTENANCE, 503)}, "maintenance", ["shows a maintenance page"]),
    "an hour of maintenance": ({5: shows(MAINTENANCE, 503), 6: restored}, "fine", []),
    "expired": ({5: shows(EXPIRED)}, "domain-expired", ["the registration of its domain has ended"]),
    "page": ({5: without_a_page}, "pages-lost", ["has lost pages"]),
    "page and back": ({5: without_a_page, 12: restored}, "fine", ["has lost pages", "all lost pages are there again"]),
    "page, then lost": ({5: without_a_page, 9: shows("", 500)}, "lost", ["has lost pages", "is lost"]),
    "spam": ({5: spam}, "fine", ["links to new domains from most pages"]),
    "sessions": (dict.fromkeys(range(33), session), "fine", []),
}


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    patched = {**(LiveClient.__init__.__kwdefaults__ or {}), "pace": 0.0}
    monkeypatch.setattr(LiveClient.__init__, "__kwdefaults__", patched)
    with sites() as made:
        yield made


def test_every_mail_of_a_month_is_right_and_none_is_missing(
    web: Web, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "watch"
    (tmp_path / "archives.json").write_text("[]")
    names = {web.uri(number): name for number, name in enumerate(FATES)}
    for uri in names:
        given = ["watch", "add", uri, "--data", str(data), "--allow-private", "--on-loss", "notify", "--sample", "8"]
        more = ["--archives", str(tmp_path / "archives.json"), "--email", "anna@mail.example"]
        assert main.run([*given, *more, "--now", T0.isoformat()]) == 0
    for day in DAYS:
        for number, (changes, _, _) in enumerate(FATES.values()):
            if day in changes:
                changes[day](web.at(number))  # type: ignore[operator]
        at = (T0 + timedelta(days=day)).isoformat()
        assert main.run(["watch", "run", "--data", str(data), "--now", at, "--json"]) == 0
    capsys.readouterr()
    main.run(["watch", "status", "--data", str(data), "--json"])
    states = {names[one["site"]]: one["state"] for one in json.loads(capsys.readouterr().out)}
    assert states == {name: state for name, (_, state, _) in FATES.items()}
    told: dict[str, list[str]] = {name: [] for name in FATES}
    mails = [message_from_bytes(file.read_bytes(), policy=policy.default) for file in (data / "outbox").glob("*.eml")]
    for mail in sorted(mails, key=lambda one: one["Date"].datetime):
        uri = next(uri for uri in names if mail["Subject"].startswith(uri))
        told[names[uri]].append(mail["Subject"].removeprefix(uri).strip(": "))
    assert told == {name: expected for name, (_, _, expected) in FATES.items()}
