"""The re-hosting kit on real web servers: the old addresses work again, by rules and without."""

from __future__ import annotations

import random
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urljoin, urlsplit

import pytest

from recollect.recovery.canonical import visit_key
from recollect.recovery.outputs import Outputs, write_outputs
from stores import fill
from web_servers import SERVERS, get, present

HOME = b"""<!DOCTYPE html><title>Home</title><link rel=stylesheet href="/style.css;v%3D1">
<link rel=stylesheet href="//cdn.net/lib/s.css"><script type=module src="/app.mjs"></script>
<script src="/js.php?x=1"></script>
<a href="/About">About</a><a href="/about">about</a><a href="/list.php?p=2">2</a><a href="/list.php?p=2&amp;s=a">2a</a>
<a href="/list">list</a><a href="/list/item">item</a><a href="/old">old</a><a href="/d/%E9t%C3%A9.html">e</a>
<a href="/caf%C3%A9%20noir">c</a><a href="/a$b.html">d</a><a href="/q%22uote">q</a><a href="/never">n</a>
<a href="/~joe/">joe</a><a href="/deep/DEEP/page">deep</a><img src="http://cdn.net/i.png">""".replace(
    b"DEEP", b"x" * 200
)
DEEP = "/deep/" + "x" * 200 + "/page"
SITE = [
    ("http://lost.example/", "text/html", HOME),
    ("http://lost.example/style.css;v%3D1", "text/css", b"a{b:url(/i.png)}"),
    ("http://lost.example/i.png", "image/png", b"\x89PNG main"),
    ("http://lost.example/app.mjs", "text/javascript", b"import './other.mjs'"),
    ("http://lost.example/other.mjs", "text/javascript", b"1"),
    ("http://lost.example/js.php?x=1", "application/javascript", b"2"),
    ("http://lost.example/About", "text/html", b"<title>Big About</title>"),
    ("http://lost.example/about", "text/html", b"<title>small about</title>"),
    # Twins of which one lies in its own place, or is a redirect; and what servers decode to the same path.
    ("http://lost.example/Img/a.png", "image/png", b"\x89PNG upper"),
    ("http://lost.example/img/a.png", "image/png", b"\x89PNG lower"),
    ("http://lost.example/case", "text/html", b"<title>case</title>"),
    ("http://lost.example/case.php?p=a", "text/html", b"<title>case a</title>"),
    ("http://lost.example/x/y.html", "text/html", b"<title>slash</title>"),
    ("http://lost.example/x%2Fy.html", "text/html", b"<title>encoded slash</title>"),
    ("http://lost.example/site.webmanifest", "application/manifest+json", b"{}"),
    ("http://lost.example/list.php?p=2", "text/html", b"<title>second</title><a href='/'>home</a>"),
    ("http://lost.example/list.php?p=2&s=a", "text/html", b"<title>sorted</title>"),
    ("http://lost.example/list.php", "text/html", b"<title>first</title>"),
    ("http://lost.example/list", "text/html", b"<title>list</title><a href='/list/item'>i</a>"),
    ("http://lost.example/list/item", "text/html", b"<title>item</title><a href='/'>home</a>"),
    ("http://lost.example/d/%E9t%C3%A9.html", "text/html", b"<title>two charsets</title>"),
    ("http://lost.example/caf%C3%A9%20noir", "text/html", "<title>café</title>".encode()),
    ("http://lost.example/a$b.html", "text/html", b"<title>dollar</title>"),
    ("http://lost.example/q%22uote", "text/html", b"<title>quote</title>"),
    ("http://lost.example/~joe/", "text/html", b"<title>Joe</title><a href='/'>home</a>"),
    ("http://lost.example" + DEEP, "text/html", b"<title>deep</title><a href='/about'>a</a>"),
    ("http://cdn.net/lib/s.css", "text/css", b"c{d:url(../i.png)}"),
    ("http://cdn.net/i.png", "image/png", b"\x89PNG cdn"),
]
REDIRECTS = [
    ("http://lost.example/old", "http://lost.example/about"),
    ("http://lost.example/OLD", "http://lost.example/old"),
    ("http://lost.example/CASE", "http://lost.example/list"),
    ("http://lost.example/case.php?p=A", "http://lost.example/list"),
    ("http://lost.example/go.php?to=1", "http://elsewhere.net/x?y=1"),
]


@pytest.fixture(scope="module")
def kit() -> Iterator[Path]:
    """A recovered folder that any user of the machine can read, as a web server needs it."""
    folder = Path(tempfile.mkdtemp(prefix="rehost-"))
    folder.chmod(0o755)
    with fill(
        folder / "site", SITE, redirects=REDIRECTS, missing=["http://lost.example/never"], start="http://lost.example/"
    ) as s:
        write_outputs(s, Outputs(warc=False, wacz=False), lambda _p: None)
    yield folder / "site" / "rehost"
    shutil.rmtree(folder)


@pytest.fixture(params=sorted(SERVERS))
def server(request: pytest.FixtureRequest, kit: Path) -> Iterator[tuple[str, int]]:
    if not present(request.param):
        pytest.skip(f"{request.param} is not installed: the kit was not tried on it")
    work = Path(tempfile.mkdtemp(prefix="server-"))
    work.chmod(0o755)
    try:
        with SERVERS[request.param](kit / "public", work) as port:
            yield request.param, port
    finally:
        shutil.rmtree(work)


def references(body: bytes) -> list[str]:
    text = body.decode("utf-8", "replace")
    found = re.findall(r"""(?:href|src)=["']([^"'#]*)|url\(([^)#]*)""", text)
    return [one or two for one, two in found if not (one or two).startswith(("data:", "about:", "http"))]


def test_the_folder_is_the_whole_site_and_every_link_in_it_works(server: tuple[str, int]) -> None:
    """On every server, and on one without any rule."""
    name, port = server
    waiting, seen = ["/index.html" if name == "plain" else "/"], set[str]()
    titles = set()
    while waiting:
        target = waiting.pop()
        if target in seen:
            continue
        seen.add(target)
        status, kind, body, _ = get(port, target)
        assert status == 200, target
        titles.update(re.findall(rb"<title>(.*?)</title>", body))
        if name != "plain" and ".mjs" in target:
            assert kind == "text/javascript", target
        if ".css" in target:
            assert kind == "text/css", target
        if kind in ("text/html", "text/css"):
            for reference in references(body):
                waiting.append(
                    urlsplit(urljoin(f"http://h{target}", reference.replace("&amp;", "&")))
                    ._replace(scheme="", netloc="", fragment="")
                    .geturl()
                )
    assert {b"Big About", b"small about", b"second", b"sorted", b"list", b"item", b"deep", b"Joe", b"dollar"} <= titles
    assert "café".encode() in titles and b"two charsets" in titles and b"quote" in titles
    assert any("cdn.net" in target for target in seen), "assets of other hosts are inside"


OLD = {
    "/": b"Home",
    "/?fbclid=1": b"Home",
    "/About": b"Big About",
    "/about": b"small about",
    "/about?utm_source=x": b"small about",
    "/case": b"case",
    "/case.php?p=a": b"case a",
    "/x/y.html": b"slash",
    "/list.php?p=2": b"second",
    "/list.php?p=2&s=a": b"sorted",
    "/list.php?p=2&utm_source=x": b"second",
    "/list.php?utm_source=x&p=2&s=a": b"sorted",
    "/list.php": b"first",
    "/list.php?unknown=1": b"first",
    "/list.php?p=22": b"first",
    "/list": b"list",
    "/list/item": b"item",
    "/d/%E9t%C3%A9.html": b"two charsets",
    "/caf%C3%A9%20noir": "café".encode(),
    "/a$b.html": b"dollar",
    "/a%24b.html": b"dollar",
    "/q%22uote": b"quote",
    "/~joe/": b"Joe",
    "/%7Ejoe/": b"Joe",
    DEEP: b"deep",
}


def test_old_addresses_are_answered_with_their_pages(server: tuple[str, int]) -> None:
    name, port = server
    if name == "plain":
        return
    for target, title in OLD.items():
        status, kind, body, location = get(port, target)
        if status in (301, 302):  # a page whose file lies elsewhere
            assert target == DEEP, (target, location)
            status, kind, body, _ = get(port, urlsplit(urljoin(f"http://h{target}", location)).path)
        assert status == 200 and b"<title>" + title + b"</title>" in body, (target, status, body[:200])
        assert kind == "text/html", target
    for target, kind, start in (
        ("/style.css;v%3D1", "text/css", b"a{"),
        ("/style.css;v=1", "text/css", b"a{"),
        ("/style.css;v%3D1?x=1", "text/css", b"a{"),
        ("/i.png?v=3", "image/png", b"\x89PNG main"),
        ("/app.mjs?h=1", "text/javascript", b"import"),
        ("/js.php?x=1", "text/javascript", b"2"),
        ("/Img/a.png", "image/png", b"\x89PNG upper"),
        ("/img/a.png", "image/png", b"\x89PNG lower"),
        ("/site.webmanifest", "application/manifest+json", b"{}"),
    ):
        status, found, body, _ = get(port, target)
        assert (status, found) == (200, kind) and body.startswith(start), target
    assert get(port, "/never")[0] == 404 and get(port, "/.htaccess")[0] in (403, 404)


def test_old_redirects_lead_on(server: tuple[str, int]) -> None:
    name, port = server
    if name == "plain":
        return
    for target, wanted in (
        ("/old", "/about"),
        ("/OLD", "/old"),
        ("/CASE", "/list"),
        ("/case.php?p=A", "/list"),
        ("/go.php?to=1", "http://elsewhere.net/x?y=1"),
    ):
        status, _, _, location = get(port, target)
        assert status == 301 and location.removeprefix(f"http://127.0.0.1:{port}") == wanted, (target, location)


def test_archived_files_are_neither_rules_nor_programs_of_the_new_host() -> None:
    """They have other names, and their old addresses still lead to them."""
    pages = [
        ("http://lost.example/", "text/html", b"<p>home"),
        ("http://lost.example/_redirects", "text/plain", b"/* http://evil.example/ 301"),
        ("http://lost.example/sub/.htaccess", "text/plain", b"Redirect / http://evil.example/"),
        ("http://lost.example/thumb.php?id=1", "image/png", b"<?php system($_GET['c']);"),
        ("http://lost.example/_recollect/not-recovered.html", "text/html", b"<p>theirs"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        with fill(Path(folder, "site"), pages, start="http://lost.example/") as store:
            write_outputs(store, Outputs(tree=False, warc=False, wacz=False), lambda _p: None)
        public = Path(folder, "site/rehost/public")
        files = {str(path.relative_to(public)): path.read_bytes() for path in public.rglob("*") if path.is_file()}
    assert "evil" not in (files["_redirects"] + files[".htaccess"]).decode() and "sub/.htaccess" not in files
    assert not [name for name in files if name.endswith(".php")]
    assert b"/thumb.php id=1 /thumb.php@id=1.png 200" in files["_redirects"]
    assert b"theirs" not in files["_recollect/not-recovered.html"]


def test_static_hosts_get_their_rules(kit: Path) -> None:
    lines = (kit / "public" / "_redirects").read_text().splitlines()
    assert "/old /about 301" in lines and "/list.php p=2 /list.php@p=2.html 200" in lines
    assert lines.index("/list.php p=2 s=a /list.php@p=2&s=a.html 200") < lines.index(
        "/list.php p=2 /list.php@p=2.html 200"
    )
    assert "Content-Security-Policy" in (kit / "public" / "_headers").read_text()
    rows = [line.split("\t") for line in (kit / "redirects.tsv").read_text().splitlines()]
    assert ["file", "http://lost.example/list.php?p=2", "public/list.php@p=2.html"] in rows
    assert ["redirect", "http://lost.example/old", "http://lost.example/about"] in rows


def strange_addresses(seed: int, count: int) -> list[str]:
    """Addresses of all kinds of characters, sent as browsers do and encoded to the last letter."""
    draw = random.Random(seed)
    letters = "aAbB0-_.~!$&'()*+,;=:@ \"#?%{}[]|^`<>\\éÉßж日\t"

    def word() -> str:
        return "".join(draw.choice(letters) for _ in range(draw.randint(1, 6))) + "x"

    found: dict[str, str] = {}
    while len(found) < count:
        safe = draw.choice(["!$&'()*+,;=:@~", ""])
        path = "/".join(quote(word(), safe=safe) for _ in range(draw.randint(1, 3))) + draw.choice(["", "", "/"])
        query = "&".join(f"{draw.choice('abAB')}={quote(word(), safe='')}" for _ in range(draw.choice([0, 0, 1, 2])))
        uri = f"http://lost.example/{path}" + (f"?{query}" if query else "")
        found.setdefault(visit_key(uri), uri)
    return list(found.values())


@pytest.mark.parametrize("name", ["nginx", "apache", "caddy"])
def test_any_address_is_answered_with_its_own_page(name: str) -> None:
    if not present(name):
        pytest.skip(f"{name} is not installed: the kit was not tried on it")
    addresses = strange_addresses(seed=7, count=80)
    pages = [(uri, "text/html", f"<title>{number}</title>".encode()) for number, uri in enumerate(addresses)]
    folder, work = (Path(tempfile.mkdtemp(prefix="rehost-")) for _ in range(2))
    try:
        folder.chmod(0o755)
        work.chmod(0o755)
        with fill(folder / "site", pages, start="http://lost.example/") as store:
            write_outputs(store, Outputs(tree=False, warc=False, wacz=False), lambda _p: None)
        with SERVERS[name](folder / "site" / "rehost" / "public", work) as port:
            for uri, _, body in pages:
                target = uri.removeprefix("http://lost.example")
                status, _, found, location = get(port, target)
                if status == 301:  # its file lies in another folder than its address
                    status, _, found, _ = get(port, urlsplit(urljoin(f"http://h{target}", location)).path)
                assert status == 200 and body in found, uri
    finally:
        shutil.rmtree(folder)
        shutil.rmtree(work)


ODD = [
    ("http://odd.example/index.html", "text/html", b"<title>front</title>"),
    ("http://odd.example/INDEX.HTML", "text/html", b"<title>old front</title>"),
    ("http://odd.example/news/INDEX.HTM", "text/html", b"<title>old news</title>"),
    ("http://odd.example/news/index.htm", "text/html", b"<title>news</title>"),
    (f"http://odd.example/forum/viewtopic.php?t=3&sid={'ab' * 16}", "text/html", b"<title>topic 3</title>"),
    ("http://odd.example/get/setup.exe", "application/octet-stream", b"MZ program"),
]


@pytest.mark.parametrize("name", ["nginx", "apache", "caddy"])
def test_folders_sessions_and_downloads_are_answered(name: str) -> None:
    if not present(name):
        pytest.skip(f"{name} is not installed: the kit was not tried on it")
    folder, work = (Path(tempfile.mkdtemp(prefix="rehost-")) for _ in range(2))
    try:
        folder.chmod(0o755)
        work.chmod(0o755)
        with fill(folder / "site", ODD, start="http://odd.example/") as store:
            write_outputs(store, Outputs(tree=False, warc=False, wacz=False), lambda _p: None)
        public = folder / "site" / "rehost" / "public"
        assert (public / "_downloads/get/setup.exe").read_bytes() == b"MZ program"
        with SERVERS[name](public, work) as port:
            for target, title in (
                ("/", b"front"),
                ("/index.html", b"front"),
                ("/INDEX.HTML", b"old front"),
                ("/news/", b"news"),
                ("/forum/viewtopic.php?t=3", b"topic 3"),
                (
                    f"/forum/viewtopic.php?sid={'cd' * 16}&t=3" if name != "caddy" else "/forum/viewtopic.php?t=3",
                    b"topic 3",
                ),
            ):
                status, _, found, location = get(port, target)
                if status in (301, 302):
                    status, _, found, _ = get(port, urlsplit(urljoin(f"http://h{target}", location)).path)
                assert status == 200 and b"<title>" + title + b"</title>" in found, (target, status, found[:200])
            status, _, found, location = get(port, "/get/setup.exe")
            if status in (301, 302):
                status, _, found, _ = get(port, urlsplit(urljoin("http://h/get/setup.exe", location)).path)
            assert status == 200 and found == b"MZ program"
    finally:
        shutil.rmtree(folder)
        shutil.rmtree(work)
