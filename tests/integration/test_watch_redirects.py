"""Rules that lead links to lost pages elsewhere, asked of real servers; which target a page gets."""

from __future__ import annotations

import http.client
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests import needs, web_servers

from recollect.watch.pageloss import Redirect, Target, lost_pages, redirects_of
from recollect.watch.records import Resource
from recollect.watch.redirects import apache_redirects, netlify_redirects, nginx_redirects
from recollect.watch.states import Held, Live

T0 = datetime(2026, 1, 1, tzinfo=UTC)
SITE = "http://club.example/"
COPY = "http://archive.example/web/20251201000000/http://club.example/"
RULES = (
    Redirect(f"{SITE}old.html", f"{SITE}new.html", Target.MOVED),
    Redirect(f"{SITE}Old.html", f"{SITE}other.html", Target.MOVED),
    Redirect(f"{SITE}page.php?id=2&x=%20y", f"{COPY}page.php?id=2&x=%20y", Target.COPY),
    Redirect(f"{SITE}a%20b/c+d(1).html", f"{COPY}a%20b/c+d(1).html", Target.COPY),
    Redirect(f"{SITE}$money\"'{{1}}", f"{COPY}$money", Target.COPY),
    Redirect(f"{SITE}öl", f"{COPY}öl", Target.COPY),
)
ASKED = {
    "/old.html": (301, f"{SITE}new.html"),
    "/Old.html": (301, f"{SITE}other.html"),
    "/page.php?id=2&x=%20y": (302, f"{COPY}page.php?id=2&x=%20y"),
    "/a%20b/c+d(1).html": (302, f"{COPY}a%20b/c+d(1).html"),
    "/%24money%22'%7B1%7D": (302, f"{COPY}%24money"),
    "/%C3%B6l": (302, f"{COPY}%C3%B6l"),
    "/index.html": (200, None),
    "/older.html": (404, None),
    "/page.php?id=3": (404, None),
}


def nginx(folder: Path, work: Path) -> AbstractContextManager[int]:
    maps, _, lines = nginx_redirects(RULES).partition("# In the server block")
    inside = "".join(line.removeprefix("# ") + "\n" for line in lines.splitlines()[1:])
    listen = "listen 80;\n    root /;\n"
    (folder.parent / "nginx.conf").write_text(f"{maps}server {{\n    {listen}{inside}}}\n")
    return web_servers.nginx(folder, work)


def apache(folder: Path, work: Path) -> AbstractContextManager[int]:
    (folder / ".htaccess").write_text(apache_redirects(RULES))
    return web_servers.apache(folder, work)


@pytest.mark.parametrize(("name", "server"), [("nginx", nginx), ("Apache", apache)])
def test_links_to_lost_pages_lead_where_the_rules_say(
    tmp_path: Path, name: str, server: Callable[[Path, Path], AbstractContextManager[int]]
) -> None:
    needs.program(name)
    public, work = tmp_path / "site" / "public", tmp_path / "work"
    for folder in (public, work):
        folder.mkdir(parents=True)
    (public / "index.html").write_text("<p>Home")
    for folder in (tmp_path, *tmp_path.parents):  # the server's user reads it
        if os.geteuid() == 0 and folder.is_relative_to("/tmp") and folder != Path("/tmp"):
            folder.chmod(0o755)
    with server(public, work) as port:
        for path, (status, target) in ASKED.items():
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", path)
            answer = connection.getresponse()
            assert (path, answer.status, answer.getheader("Location")) == (path, status, target)
            connection.close()


def test_rules_for_static_hosts_leave_out_addresses_with_a_query() -> None:
    lines = netlify_redirects(RULES).splitlines()
    assert lines[0] == f"/old.html {SITE}new.html 301" and len(lines) == len(RULES) - 1


def test_a_lost_page_leads_to_its_new_address_or_to_its_copy() -> None:
    def page(path: str, live: Live, digest: str, copy: str = "") -> Resource:
        made = Resource(SITE, SITE + path, "text/html", live, T0 + timedelta(days=2), Held.HELD, T0, digest=digest)
        return replace(made, copy=copy, gone_since=T0 if live is Live.GONE else None)

    resources = [
        page("a.html", Live.GONE, "d1", "http://archive.example/a"),
        page("moved/a.html", Live.LIVE, "d1"),
        page("2019/summer-races.html", Live.GONE, "d2"),
        page("archive/summer-races/", Live.LIVE, "d9"),
        page("index.html", Live.GONE, "d3", "http://archive.example/i"),
        page("de/index.html", Live.LIVE, "d4"),
        page("twice.html", Live.GONE, "d5", "http://archive.example/t"),
        page("x1.html", Live.LIVE, "d5"),
        page("x2.html", Live.LIVE, "d5"),
        page("nowhere.html", Live.GONE, "d6"),
    ]
    lost = lost_pages(resources)
    assert len(lost) == 5
    found = {one.uri.removeprefix(SITE): (one.kind.value, one.target) for one in redirects_of(lost, resources)}
    assert found == {
        "a.html": ("moved", f"{SITE}moved/a.html"),
        "2019/summer-races.html": ("moved", f"{SITE}archive/summer-races/"),
        "index.html": ("copy", "http://archive.example/i"),
        "twice.html": ("copy", "http://archive.example/t"),
    }
