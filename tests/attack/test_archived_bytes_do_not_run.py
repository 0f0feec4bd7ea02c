"""Archived bytes never run on a new host: PHP and includes, on Apache, nginx and Caddy as hosters set them up.

The sites hold PHP programs and includes under names that reach a handler: `page.php.html`, `pic.php.png`, `a.shtml`.
What a server answers has to hold the program's own text, never what it would print.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import needs
from recollect.recovery.filenames import file_names
from recollect.recovery.outputs import Outputs, write_outputs
from stores import fill
from web_servers import MODULES, _running, find, free_port, get

PHP = b"<?php echo 'ran-' . (41 + 1); ?>"
PROGRAM = b"<!DOCTYPE html><title>t</title>" + PHP + b'<!--#echo var="DATE_GMT" --><!--#exec cmd="echo ran-42" -->'
SITE = [
    ("http://lost.example/", "text/html", PROGRAM),
    ("http://lost.example/page.php", "text/html", PROGRAM),
    ("http://lost.example/page.php.html", "text/html", PROGRAM),
    ("http://lost.example/q.php?id=1", "text/html", PROGRAM),
    ("http://lost.example/q.php?f=x.php.html", "text/html", PROGRAM),
    ("http://lost.example/pic.php.png", "image/png", b"\x89PNG" + PHP),
    ("http://lost.example/pic.php", "image/gif", b"GIF89a" + PHP),
    ("http://lost.example/pic.phtml.GIF", "image/gif", b"GIF89a" + PHP),
    ("http://lost.example/a.shtml", "text/html", PROGRAM),
    ("http://lost.example/b.shtml.html", "text/html", PROGRAM),
    ("http://lost.example/c.stm", "text/html", PROGRAM),
    ("http://lost.example/run.cgi.txt", "text/plain", b"#!/bin/sh\necho ran-42\n"),
    ("http://lost.example/up.php/in.png", "image/png", b"\x89PNG" + PHP),
    ("http://lost.example/x.php%00.png", "image/png", b"\x89PNG" + PHP),
    ("http://lost.example/x.php%2E", "text/html", PROGRAM),
    ("http://lost.example/x.pHp.fr", "text/html", PROGRAM),
]


@pytest.fixture(scope="module")
def kit() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="rehost-"))
    folder.chmod(0o755)
    with fill(folder / "site", SITE, start="http://lost.example/") as store:
        write_outputs(store, Outputs(warc=False, wacz=False), lambda _p: None)
    yield folder / "site" / "rehost"
    shutil.rmtree(folder)


@pytest.fixture
def work() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="server-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def _check(port: int, kit: Path) -> None:
    public = kit / "public"
    targets = [f"/{path.relative_to(public).as_posix()}" for path in public.rglob("*") if path.is_file()]
    old = [uri.removeprefix("http://lost.example") for uri, _, _ in SITE]
    answered = 0
    for target in [*targets, *old]:
        if "/.ht" in target:
            continue
        status, _, body, _ = get(port, target.replace(" ", "%20").replace("@", "%40"))
        assert b"ran-42" not in body.replace(b"echo ran-42", b""), f"{target} ran"
        assert b"GMT" not in body.replace(b"DATE_GMT", b""), f"{target}: includes ran"
        answered += status == 200 and (b"<?php" in body or b"#!/bin/sh" in body)
    assert answered >= len(SITE), "the files themselves are served"


def _control(port: int, target: str) -> None:
    """The server does run such files where nothing keeps it from it; else the test shows nothing."""
    assert b"ran-42" in get(port, target)[2]


@contextlib.contextmanager
def _apache(public: Path, work: Path, extra: str) -> Iterator[int]:
    port = free_port()
    modules = ("mpm_prefork", "authz_core", "mime", "dir", "rewrite", "headers", "include", "cgi", "alias")
    loaded = "".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so\n" for name in modules)
    php = next(MODULES.glob("libphp*.so"), None)
    if php is None:
        raise needs.lacking("PHP in Apache", "Debian: apt-get install libapache2-mod-php")
    loaded += f"LoadModule php_module {php}\n"
    user = "User www-data\nGroup www-data\n" if os.geteuid() == 0 else ""
    control = work / "control"
    control.mkdir(exist_ok=True)
    control.chmod(0o755)
    for name in ("page.php.html", "x.php"):
        (control / name).write_bytes(PHP)
    (control / "a.shtml").write_bytes(b'<!--#exec cmd="echo ran-42" -->')
    (work / "apache.conf").write_text(
        f"ServerRoot {work}\nServerName localhost\nListen 127.0.0.1:{port}\nPidFile {work}/apache.pid\n{loaded}{user}"
        f"ErrorLog {work}/error.log\nTypesConfig /etc/mime.types\nDocumentRoot {public}\nDefaultRuntimeDir {work}\n"
        f"DirectoryIndex index.html\nAlias /control {control}\n"
        f"<Directory />\nAllowOverride All\nRequire all granted\nOptions All\n</Directory>\n{extra}"
    )
    program = find("apache2") or find("httpd")
    assert program is not None
    with _running([program, "-f", str(work / "apache.conf"), "-DFOREGROUND"], port, work / "apache.log") as found:
        yield found


# As hosters have configured PHP and includes over the years.
APACHE = {
    "by every ending": "AddHandler application/x-httpd-php .php .phtml .php5\nAddHandler cgi-script .cgi .pl\n"
    "AddType text/html .shtml\nAddHandler server-parsed .shtml .stm\n",
    "by type": "AddType application/x-httpd-php .php .phtml\nAddOutputFilter INCLUDES .shtml .stm\n",
    "by an unanchored expression": '<FilesMatch "\\.(php|phtml)">\nSetHandler application/x-httpd-php\n</FilesMatch>\n'
    "AddOutputFilter INCLUDES .shtml\n",
    "of HTML too": "AddHandler application/x-httpd-php .php .html\nAddOutputFilter INCLUDES .html .shtml\n",
}


@pytest.mark.parametrize("way", sorted(APACHE))
def test_apache_runs_nothing_of_a_kit(kit: Path, work: Path, way: str) -> None:
    needs.program("Apache")
    with _apache(kit / "public", work, APACHE[way]) as port:
        _control(port, "/control/x.php" if way == "by type" else "/control/page.php.html")
        _control(port, "/control/a.shtml")
        _check(port, kit)


@contextlib.contextmanager
def _php_fpm(work: Path) -> Iterator[str]:
    program = needs.program("PHP-FPM")
    port = free_port()
    user = "user = www-data\ngroup = www-data\n" if os.geteuid() == 0 else ""
    (work / "fpm.conf").write_text(
        f"[global]\npid = {work}/fpm.pid\nerror_log = {work}/fpm.log\ndaemonize = no\n[www]\n{user}"
        f"listen = 127.0.0.1:{port}\npm = static\npm.max_children = 2\nsecurity.limit_extensions =\n"
    )
    with _running(
        [program, "-F", "-y", str(work / "fpm.conf"), *(["-R"] if os.geteuid() == 0 else [])], port, work / "out"
    ):
        yield f"127.0.0.1:{port}"


def test_nginx_with_php_runs_nothing_of_a_kit(kit: Path, work: Path) -> None:
    program = needs.program("nginx")
    public = kit / "public"
    (work / "control").mkdir()
    (work / "control/x.php").write_bytes(PHP)
    with _php_fpm(work) as php:
        port = free_port()
        rules = (kit / "nginx.conf").read_text().replace("listen 80;", f"listen 127.0.0.1:{port};")
        rules = "\n".join(f"    root {public};" if "    root /" in line else line for line in rules.splitlines())
        # The location that every guide to PHP has, without a check that the file exists.
        located = f"location ~ \\.(php|phtml)(/|$) {{ fastcgi_pass {php}; fastcgi_split_path_info ^(.+?\\.php)(/.*)$; "
        located += (
            "fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; include /etc/nginx/fastcgi_params; }"
        )
        inside = f"{located}\n    location /control/ {{ root {work}; {located} }}\n"
        (work / "site.conf").write_text(rules.replace("    location / {", f"    {inside}    location / {{", 1))
        temporary = "".join(
            f"{n}_temp_path {work}/t-{n};\n" for n in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        user = "user root;\n" if os.geteuid() == 0 else ""
        (work / "nginx.conf").write_text(
            f"daemon off;\n{user}worker_processes 1;\npid {work}/nginx.pid;\nerror_log {work}/error.log;\n"
            f"events {{}}\nhttp {{\naccess_log off;\n{temporary}include {work}/site.conf;\n}}\n"
        )
        with _running([program, "-c", str(work / "nginx.conf"), "-p", str(work)], port, work / "nginx.log") as found:
            for name in sorted(path.relative_to(public).as_posix() for path in public.rglob("*") if path.is_file()):
                if not name.startswith(".ht"):
                    body = get(found, f"/{name}".replace(" ", "%20"))[2]
                    assert b"ran-42" not in body.replace(b"echo ran-42", b""), f"{name} ran"


def test_caddy_with_php_runs_nothing_of_a_kit(kit: Path, work: Path) -> None:
    program = needs.program("Caddy")
    public = kit / "public"
    with _php_fpm(work) as php:
        port = free_port()
        (work / "Caddyfile").write_text(
            f"{{\n\tadmin off\n}}\n"
            f"http://127.0.0.1:{port} {{\n\troot * {public}\n\tphp_fastcgi {php}\n\tfile_server\n}}\n"
        )
        command = [program, "run", "--adapter", "caddyfile", "--config", str(work / "Caddyfile")]
        with _running(command, port, work / "caddy.log", HOME=str(work), XDG_DATA_HOME=str(work)) as found:
            for name in sorted(path.relative_to(public).as_posix() for path in public.rglob("*") if path.is_file()):
                body = get(found, f"/{name}".replace(" ", "%20"))[2]
                assert b"ran-42" not in body.replace(b"echo ran-42", b""), f"{name} ran"


def test_no_name_has_an_ending_that_a_server_runs() -> None:
    names = list(file_names((uri, kind) for uri, kind, _ in SITE).values())
    assert "lost.example/a.html" in names, "an includes page is a page"
    for name in names:
        endings = {part.lower() for part in name.rpartition("/")[2].split(".")[1:]}
        assert not endings & {"php", "phtml", "shtml", "stm", "cgi", "pl", "asp"}, name
