"""The recipes of docs/protect.md: the middleware as a package of its own, PHP and WordPress, nginx, pipelines."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import needs
import web_servers
from protected_sites import CODES, KEY, NOW, contents, write_app, write_site
from recollect.cli.main import run
from recollect.protection import bundle
from recollect.protection.collect import Collector
from recollect.protection.pack import gather
from recollect.protection.sealing import Options

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "deploy" / "wordpress" / "recollect-protect.php"
DOCS = ROOT / "docs" / "protect.md"


@pytest.fixture
def blocks(tmp_path: Path) -> Path:
    (tmp_path / "paths.txt").write_text("/\n" + "".join(f"/story/{n}?page=1\n" for n in range(9)))
    target = tmp_path / "site.blocks"
    options = Options(KEY, NOW, code=CODES[0], need=4)
    app = write_app(tmp_path / "app", 500)
    bundle.write(target, bundle.read_paths(tmp_path / "paths.txt"), gather([f"{app}/"]), options)
    return target


def test_the_middleware_installs_without_the_rest(blocks: Path, tmp_path: Path) -> None:
    made = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "middleware_wheel.py"), str(tmp_path / "dist")], capture_output=True
    )
    assert made.returncode == 0, made.stderr.decode()
    (wheel,) = (tmp_path / "dist").glob("recollect_middleware-*.whl")
    assert wheel.stat().st_size < 100_000
    venv.create(tmp_path / "env", with_pip=False)
    (packages,) = (tmp_path / "env" / "lib").glob("python3*/site-packages")
    shutil.unpack_archive(wheel, packages, "zip")
    installed = sum(path.stat().st_size for path in packages.rglob("*.py"))
    assert installed < 300_000
    program = """
import sys
from recollect_middleware import ProtectWSGI
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/html")])
    return [b"<html><body>page</body></html>"]
heads = []
body = b"".join(ProtectWSGI(app, sys.argv[1])({"REQUEST_METHOD": "GET", "PATH_INFO": "/"}, lambda *a: heads.append(a)))
assert not [name for name in sys.modules if name.split(".")[0] in ("recollect", "numpy", "aiohttp", "duckdb")]
sys.stdout.buffer.write(body)
"""
    python = tmp_path / "env" / "bin" / "python"
    ran = subprocess.run([python, "-I", "-c", program, str(blocks)], capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    assert len(Collector([KEY.public]).add("/", ran.stdout)) == 2  # a block and the manifest


def php(blocks: Path, tmp_path: Path, target: str, page: str, *, wordpress: bool) -> bytes:
    """What PHP sends for a request, as a plain site or with the hooks of WordPress."""
    program = needs.program("PHP")
    if "pdo_sqlite" not in subprocess.run([program, "-m"], capture_output=True, text=True).stdout:
        raise needs.lacking("PHP with SQLite", "Debian: apt-get install php-sqlite3")
    script = tmp_path / "page.php"
    hooks = "function add_action($hook, $call) { $GLOBALS['hooks'][$hook] = $call; }" if wordpress else ""
    load = f"{hooks} require '{PLUGIN}';" + ("$GLOBALS['hooks']['template_redirect']();" if wordpress else "")
    script.write_text(f"<?php {load} ?>{page}")
    environment = {**os.environ, "RECOLLECT_BLOCKS": str(blocks)}
    command = [program, "-d", "variables_order=EGPCS", "-r"]
    uri = json.dumps(target, ensure_ascii=False)
    start = f"$_SERVER['REQUEST_URI'] = {uri}; $_SERVER['REQUEST_METHOD'] = 'GET'; require '{script}';"
    ran = subprocess.run([*command, start], capture_output=True, env=environment, timeout=60, check=False)
    assert ran.returncode == 0 and not ran.stderr, ran.stderr.decode()
    return ran.stdout


@pytest.mark.parametrize("wordpress", [True, False])
@pytest.mark.parametrize("target", ["/", "/story/3?page=1", "/not/listed", "/ünlisted?q=ä b"])
def test_php_inserts_the_block_that_the_middleware_would(
    blocks: Path, tmp_path: Path, target: str, wordpress: bool
) -> None:
    from recollect.protection.blocksfile import Bundle, path_of

    page = "<html><body>a</BODY > <p>\n</body>\n</html>"
    sent = php(blocks, tmp_path, target, page, wordpress=wordpress)
    text = Bundle(blocks).text_for(path_of(target)).encode()
    assert sent == page.encode().replace(
        b"</body>\n", b'<script type="application/vnd.recollect">\n' + text + b"\n</script></body>\n"
    )
    assert Collector([KEY.public]).add(target, sent)


def test_php_sends_other_pages_as_they_are(blocks: Path, tmp_path: Path) -> None:
    assert php(blocks, tmp_path, "/", "no page", wordpress=False) == b"no page"
    assert php(tmp_path / "absent", tmp_path, "/", "<body>x</body>", wordpress=False) == b"<body>x</body>"
    error = "<?php http_response_code(404); ?><body>not found</body>"
    assert b"recollect" not in php(blocks, tmp_path, "/", error, wordpress=True)


def test_nginx_serves_a_protected_folder_with_its_blocks_and_not_its_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    needs.program("nginx")
    monkeypatch.chdir(tmp_path)
    write_site(tmp_path / "public", 12)
    write_app(tmp_path / "app", 500)
    run(["protect", "keygen", "-o", "site.key"])
    assert run(["protect", "apply", "public/", "--files", "code=app/", "--key", "site.key", "-o", "deploy"]) == 0
    (tmp_path / "work").mkdir()
    types = "types { text/html html; }"
    (tmp_path / "nginx.conf").write_text(f"{types}\nserver {{\n    listen 80;\n    root /srv/deploy;\n}}\n")
    with web_servers.nginx(tmp_path / "deploy", tmp_path / "work") as port:
        for name in ("/.recollect/protect.json", "/.deploy.protect.json", "/.recollect/"):
            assert web_servers.get(port, name)[0] in (403, 404)
        capsys.readouterr()
        assert run(["protect", "verify", f"http://127.0.0.1:{port}/", "--allow-private", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sound"] is True


@pytest.mark.parametrize("pipeline", ["GitHub", "GitLab"])
def test_the_steps_of_the_pipelines_run(pipeline: str, tmp_path: Path) -> None:
    """The commands of the documented steps, in a shell, with the key in a variable as pipelines have it."""
    section = DOCS.read_text(encoding="utf-8").partition(f"**{pipeline}.**")[2]
    block = re.search(r"```yaml\n(.*?)```", section, re.DOTALL)
    assert block is not None
    lines = [line.strip().removeprefix("- ") for line in block[1].splitlines()]
    commands = [line for line in lines if line.startswith(("printf ", "recollect "))]
    assert len(commands) >= 2
    write_site(tmp_path / "public", 12)
    write_app(tmp_path / "app", 500)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("[core]")
    run(["protect", "keygen", "-o", str(tmp_path.parent / f"{pipeline}.key")])
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "RECOLLECT_SITE_KEY": (tmp_path.parent / f"{pipeline}.key").read_text(),
        "RUNNER_TEMP": str(tmp_path.parent),
        "PYTHONPATH": str(ROOT / "src"),
    }
    ran = subprocess.run(
        ["sh", "-e", "-c", "\n".join(commands)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    (out,) = (folder for folder in (tmp_path / "deploy", tmp_path / "protected") if folder.is_dir())
    assert run(["reclaim", str(out), "-o", str(tmp_path / "back")]) == 0
    names = contents(tmp_path / "back")
    assert any(name.endswith("main.py") for name in names) and not any(name.startswith(".git") for name in names)
