"""Three real minifiers, from npm, at their strongest, leave blocks alone; comments they drop."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from protected_sites import KEY, contents, protect, write_app
from recollect.protection.collect import Collector
from recollect.protection.markup import Style, strip
from recollect.protection.pack import unpack

pytestmark = pytest.mark.xdist_group("minifiers")  # installed once
MINIFIERS = {"html-minifier-terser": "7", "htmlnano": "2", "@minify-html/node": "0.15"}
SCRIPT = Path(__file__).with_name("minifiers.mjs")
PAGE = """<!DOCTYPE html>
<html lang="en">
  <head><title>Page {n}</title><style> p {{ color: red; }} </style></head>
  <body>
    <!-- a comment -->
    <h1 class="">Page {n}</h1>
    <p>   Some    text </p>
    <script> var unused = 1 ; console.log( "page {n}" ) </script>
  </body>
</html>
"""


@pytest.fixture(scope="module")
def minify(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("npm and node are not installed (Debian: apt-get install npm)")
    folder = tmp_path_factory.mktemp("minifiers")
    (folder / "package.json").write_text(json.dumps({"private": True, "dependencies": MINIFIERS}))
    command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
    try:
        installed = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        pytest.skip("npm does not install the minifiers within two minutes (no network?)")
    if installed.returncode != 0:
        pytest.skip(f"npm cannot install the minifiers: {(installed.stderr or installed.stdout).strip()[-200:]}")

    def run(name: str, page: bytes) -> bytes:
        done = subprocess.run([node, str(SCRIPT), name], cwd=folder, input=page, capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    return run


@pytest.mark.parametrize("name", MINIFIERS)
def test_minified_pages_still_carry_everything(minify, name: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    site, app = tmp_path / "site", write_app(tmp_path / "app", 4_000)
    site.mkdir()
    for n in range(5):
        (site / f"{n}.html").write_text(PAGE.format(n=n))
    protect(site, [f"{app}/"], need=3)
    collector = Collector([KEY.public])
    for page_name, page in contents(site).items():
        minified = minify(name, page)
        assert len(minified) < len(page) and b"a comment" not in minified, "the minifier was at work"
        collector.add(page_name, minified)
        assert b"recollect" not in strip(minified)
    assert collector.carrying == 5 and not collector.refusals
    found = collector.restore("files")
    assert found is not None
    unpack(found.sealed, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(app)


@pytest.mark.parametrize("name", MINIFIERS)
def test_comments_do_not_survive_which_is_why_scripts_carry(minify, name: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    site, app = tmp_path / "site", write_app(tmp_path / "app", 100)
    site.mkdir()
    (site / "index.html").write_text(PAGE.format(n=0))
    protect(site, [f"{app}/"], need=1, style=Style.COMMENT)
    page = (site / "index.html").read_bytes()
    collector = Collector()
    collector.add("as it is", page)
    assert collector.carrying == 1
    collector.add("minified", minify(name, page))
    assert collector.carrying == 1
