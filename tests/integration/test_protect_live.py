"""`protect verify` on live sites: what visitors get, with and without something in between that removes blocks."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

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
