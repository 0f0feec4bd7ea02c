"""`protect verify` on live sites: what visitors get, with and without something in between that removes blocks."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import needs
import web_servers
from protected_sites import CODES, KEY, NOW, protect, write_app, write_site
from recollect.cli.main import run
from recollect.protection import bundle
from recollect.protection.pack import gather
from recollect.protection.sealing import Options


@contextmanager
def served(site: Path, between: Callable[[str, bytes], bytes]) -> Iterator[str]:
    """The folder on loopback, each page changed by what is between it and its visitors."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.lstrip("/") or "index.html"
            file = site / name
            body = between(name, file.read_bytes()) if file.is_file() else b"not here"
            self.send_response(200 if file.is_file() else 404)
            self.send_header("Content-Type", "text/html" if name.endswith("html") else "text/css")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = write_site(tmp_path / "site", 10)
    protect(folder, [f"{write_app(tmp_path / 'app', 500)}/"], need=4)
    return folder


def verified(url: str, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict[str, object]]:
    code = run(["protect", "verify", url, "--allow-private", "--json", *options])
    return code, json.loads(capsys.readouterr().out)


def test_an_unchanged_site_is_sound(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with served(site, lambda _name, page: page) as url:
        code, found = verified(url, capsys)
    assert (code, found["pages"], found["carrying"], found["sound"]) == (0, 10, 10, True)


def test_removed_blocks_are_reported(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def minified(_name: str, page: bytes) -> bytes:
        return re.sub(rb"<script[^>]*>.*?</script>", b"", page, flags=re.DOTALL)

    with served(site, minified) as url:
        assert verified(url, capsys)[0] == 1
        assert run(["protect", "verify", url, "--allow-private"]) == 1
    assert "minifier" in capsys.readouterr().err


def test_an_old_cache_is_reported(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with served(site, lambda name, page: b"<html><body>old</body></html>" if name.endswith("/3.html") else page) as url:
        assert run(["protect", "verify", url, "--allow-private"]) == 3
        err = capsys.readouterr().err
    assert "1 page of 10 without blocks" in err and "cache" in err


def test_rewritten_blocks_are_reported(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with served(site, lambda _name, page: page.replace(b" size=", b" size=1")) as url:
        code, found = verified(url, capsys)
    assert code in (1, 3) and found["refusals"]


def test_lists_of_paths_and_files_of_blocks_are_verified(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "paths.txt").write_text(
        "/\n/articles/1.html\n/articles/2.html\n/articles/3.html\n/articles/4.html\n/x\n"
    )
    with served(site, lambda _name, page: page) as url:
        code, found = verified(str(tmp_path / "paths.txt"), capsys, "--base-url", url)
    assert (code, found["carrying"], len(found["failed"])) == (3, 5, 1)  # type: ignore[arg-type]
    assert run(["protect", "verify", str(tmp_path / "paths.txt")]) == 2
    blocks = tmp_path / "site.blocks"
    options = Options(KEY, NOW, code=CODES[0], need=3)
    bundle.write(blocks, bundle.read_paths(tmp_path / "paths.txt"), gather([f"{tmp_path / 'app'}/"]), options)
    capsys.readouterr()
    assert run(["protect", "verify", str(blocks), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sound"] is True


def test_a_dead_site_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["protect", "verify", "http://127.0.0.1:9/", "--allow-private"]) == 1
    assert "does not answer" in capsys.readouterr().err


@contextmanager
def behind_nginx(site: Path, work: Path, front: str) -> Iterator[str]:
    """The folder behind two servers of nginx: one that has the files, and one in front of it with these directives."""
    needs.program("nginx")
    work.mkdir()
    origin = web_servers.free_port()
    (site.parent / "nginx.conf").write_text(
        "types { text/html html; }\n"
        f"proxy_cache_path {work}/cache keys_zone=pages:1m;\n"
        f"server {{\n    listen 127.0.0.1:{origin};\n    root /srv/site;\n}}\n"
        f"server {{\n    listen 80;\n    location / {{\n    proxy_pass http://127.0.0.1:{origin};\n{front}\n}}\n}}\n"
    )
    with web_servers.nginx(site, work) as port:
        yield f"http://127.0.0.1:{port}/"


def test_a_filter_of_nginx_that_cuts_blocks_is_reported(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cutting = "    sub_filter 'recollect-end' '';\n    sub_filter_once off;"
    with behind_nginx(site, tmp_path / "work", cutting) as url:
        assert run(["protect", "verify", url, "--allow-private"]) == 1
    assert "blocks were changed on their way" in capsys.readouterr().err


def test_a_filter_of_nginx_that_changes_only_the_element_does_no_harm(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    renaming = "    sub_filter '<script type=\"application/vnd.recollect\">' '<script type=text/plain>';"
    with behind_nginx(site, tmp_path / "work", renaming) as url:
        assert verified(url, capsys)[0] == 0


def test_a_cache_of_nginx_that_serves_pages_of_an_older_version_is_reported(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    caching = "    proxy_cache pages;\n    proxy_cache_valid 200 1h;"
    with behind_nginx(site, tmp_path / "work", caching) as url:
        assert verified(url, capsys)[0] == 0  # which fills the cache
        (tmp_path / "app" / "main.py").write_text("print('newer')\n")
        protect(site, [f"{tmp_path / 'app'}/"], need=4, now=NOW + timedelta(days=1))
        (site / "articles" / "new.html").write_bytes((site / "articles" / "9.html").read_bytes())
        names = ["new", *range(1, 9)]
        (tmp_path / "paths.txt").write_text("".join(f"/articles/{name}.html\n" for name in names))
        code, found = verified(str(tmp_path / "paths.txt"), capsys, "--base-url", url)
    assert code == 3 and len(found["outdated"]) == 8  # type: ignore[arg-type]
