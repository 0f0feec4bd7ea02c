"""Pictures of recovered pages, made by Chromium where there is one.

Hides: finding Chromium and keeping a foreign page harmless: no script runs, no name is resolved, no other file is
read into the picture, time and number are bounded. Without Chromium, or when it fails, there are no pictures.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from html import escape
from pathlib import Path

_SECONDS = 20.0
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> str | None:
    """The path of Chromium, if it is installed."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


def thumbnails(folder: Path, front: str | None, target: Path, most: int) -> list[Path]:
    """Pictures of the front page and some others, as thumb-N.png in `target`."""
    program = chromium() if most else None
    if program is None:
        return []
    made = []
    for number, page in enumerate(_pages(folder, front)[:most]):
        picture = target / f"thumb-{number}.png"
        if _draw(program, page, picture):
            made.append(picture)
    return made


def _pages(folder: Path, front: str | None) -> list[Path]:
    """The front page, then the shortest names: those near the root."""
    hosts = [path for path in sorted(folder.iterdir()) if path.is_dir() and not path.name.startswith(".")]
    found = [path for host in hosts if host.name != "rehost" for path in host.rglob("*.htm*") if path.is_file()]
    found.sort(key=lambda path: (len(path.relative_to(folder).parts), path.as_posix()))
    first = [folder / front] if front else []
    return list(dict.fromkeys([*first, *found]))


def _draw(program: str, page: Path, picture: Path) -> bool:
    with tempfile.TemporaryDirectory(prefix="recollect-picture-") as profile:
        # A sandbox without permissions: no script of the page runs, and its origin is opaque.
        frame = Path(profile) / "frame.html"
        style = "border:0;width:1024px;height:768px;background:#fff"
        place = escape(page.resolve().as_uri())
        frame.write_text(f'<body style="margin:0"><iframe sandbox src="{place}" style="{style}"></iframe>')
        command = [
            program, "--headless", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--mute-audio",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--proxy-server=http://127.0.0.1:9", f"--user-data-dir={profile}", "--window-size=1024,768",
            f"--screenshot={picture}", frame.as_uri(),
        ]  # fmt: skip
        if os.geteuid() == 0:
            command.insert(1, "--no-sandbox")
        # In the process group of the recovery, which a worker kills as a whole.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )  # fmt: skip
        with suppress(subprocess.TimeoutExpired):
            process.wait(_SECONDS)
        process.kill()  # its own subprocesses end when it does
        process.wait()
    return picture.is_file() and picture.stat().st_size > 0
