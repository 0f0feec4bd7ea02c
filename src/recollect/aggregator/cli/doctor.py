"""`recollect doctor`: what would stop a server, a kept map or a desk from working, and what to do about it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.console import emit_json, emit_table, json_option, progress_bar, talk
from recollect.cli.types import contact_option
from recollect.errors import RecollectError
from recollect.quantities import counted, format_duration, format_size

if TYPE_CHECKING:
    from recollect.archives.registry import Archive
    from recollect.settings import Loaded

_EPILOG = """\b
Examples:
  recollect doctor                                          settings from the environment, port, archives, clock
  recollect doctor --config recollect.toml --ask            also ask the archives
  recollect doctor --config desk.toml                       a desk: its folder, mail server, permissions
  recollect doctor --public /srv/www --data /var/lib/recollect/keep
  recollect doctor --json | jq '.findings[] | select(.level != "ok")'

\b
Exit code: 0 no errors (there may be warnings), 1 errors, 2 wrong usage.
"""
_LEAST_FREE = 10**9
_LEAST_SHARE = 0.05
_OLD_MAP = timedelta(days=90)
_NAME_ENDS = re.compile(r"(\.voids)?\.(ukvs|mementomap|filter)(\.(gz|bgz|bz2|zst|zstd))?$", re.IGNORECASE)
_OLD_STATUS = timedelta(days=2)


class Level(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; `todo` is the next step where there is one."""

    level: Level
    subject: str
    words: str
    todo: str = ""


@click.command(epilog=_EPILOG)
@click.option("--config", type=click.Path(dir_okay=False), help="File of settings (TOML) of `serve` or `desk`.")
@click.option("--archives", "registry", metavar="FILE", help="List of archives.  [default: that of the settings]")
@click.option("--maps", metavar="DIR", help="Folder of maps.  [default: that of the settings]")
@click.option("--public", metavar="DIR", help="Folder of a published map.  [default: that of the settings]")
@click.option("--data", multiple=True, metavar="DIR", help="Other folders that must be writable. Repeatable.")
@click.option("--ask", is_flag=True, help="Ask each archive for one page.")
@contact_option
@json_option
def doctor(**options: Any) -> int:
    """Check settings, permissions, ports, archives, maps, disk and clock; suggest what to do."""
    with progress_bar(quiet=options["as_json"]):
        findings = list(_examine(options))
    failures = sum(finding.level is Level.FAILURE for finding in findings)
    warnings = sum(finding.level is Level.WARNING for finding in findings)
    if options["as_json"]:
        emit_json({"ok": not failures, "findings": [asdict(finding) for finding in findings]})
        return 1 if failures else 0
    rows = [(finding.level.value, finding.subject, finding.words) for finding in findings]
    emit_table(["", "what", "finding"], rows)
    for finding in findings:
        if finding.todo:
            talk(f"{finding.level}: {finding.subject}: {finding.todo}")
    talk(f"{counted(failures, 'failure')}, {counted(warnings, 'warning')}, {counted(len(findings), 'check')}")
    return 1 if failures else 0


def _examine(options: dict[str, Any]) -> Iterator[Finding]:
    from recollect.settings import is_desk_file, load_settings

    if is_desk_file(options["config"]):
        yield from _examine_desk(options)
        return
    flags = {"archives": options["registry"], "maps": options["maps"], "publish": options["public"]}
    try:
        loaded = load_settings(flags, config=options["config"])
    except (RecollectError, OSError) as error:
        hint = getattr(error, "hint", "") or "`recollect config show` lists all settings"
        yield Finding(Level.FAILURE, "settings", str(error), hint)
        return
    yield from _settings(loaded)
    settings = loaded.settings
    yield _port(settings.host, settings.port)
    archives = yield from _archives(settings.archives)
    for name, folder in (("state", settings.state), *(("data", folder) for folder in options["data"])):
        if folder:
            yield from _folder(name, Path(folder))
    if settings.maps:
        yield from _maps(Path(settings.maps), {archive.id for archive in archives})
    if settings.publish:
        yield from _published(Path(settings.publish))
    yield _clock()
    if options["ask"] and archives:
        yield from _asked(archives)


def _examine_desk(options: dict[str, Any]) -> Iterator[Finding]:
    """What would stop a desk from working, or its people from trusting it."""
    from recollect.settings import load_desk_settings

    try:
        loaded = load_desk_settings({"archives": options["registry"]}, config=options["config"])
    except (RecollectError, OSError) as error:
        yield Finding(Level.FAILURE, "settings", str(error), getattr(error, "hint", ""))
        return
    settings = loaded.settings
    given = [name for name, source in loaded.sources.items() if source != "default"]
    yield Finding(Level.OK, "settings", f"{len(given)} of {len(loaded.sources)} set: {', '.join(given) or 'none'}")
    yield from _secrets(loaded.sources, "password", "smtp_password", "admin_password", "database")
    if not settings.contact:
        todo = "set contact to a mail or web address, so that archives can reach you"
        yield Finding(Level.WARNING, "contact", "not set: archives do not know who sends the requests", todo)
    if settings.base_url and not settings.base_url.startswith("https://"):
        yield Finding(Level.WARNING, "base_url", "links in mails are not https", "put a web server with TLS in front")
    yield _port(settings.host, settings.port)
    archives = yield from _archives(settings.archives)
    yield from _folder("data", Path(settings.data))
    yield from _readable(Path(settings.data))
    yield _mail(settings.smtp, settings.from_address)
    yield _clock()
    if options["ask"] and archives:
        yield from _asked(archives)


def _secrets(sources: Mapping[str, str], kind: str, *names: str) -> Iterator[Finding]:
    """Files that secrets come from and that others may read; the source of others is a flag or a variable."""
    for path in sorted({sources[name] for name in names} - {"default"}):
        with suppress(OSError):
            if Path(path).stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
                words = f"{path} has a {kind} and others may read it"
                yield Finding(Level.WARNING, "secrets", words, f"chmod 600 {path}")


def _readable(folder: Path) -> Iterator[Finding]:
    """Files with addresses of people that others on this machine can read."""
    known = [folder / name for name in ("desk.sqlite", "worker.token", "operator.token", "admin.password", "outbox")]
    loose = [path.name for path in known if path.exists() and path.stat().st_mode & 0o077]
    if loose:
        yield Finding(Level.WARNING, "permissions", f"others may read {', '.join(loose)}", "start the desk once")


def _mail(smtp: str, sender: str) -> Finding:
    if not smtp:
        return Finding(Level.WARNING, "mail", "no mail server: mails are files in the folder outbox", "set smtp")
    if not sender:
        return Finding(Level.FAILURE, "mail", "mails need a sender", "set from_address")
    host, _, port = smtp.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]") or smtp, int(port) if host else 25), timeout=10) as line:
            greeting = line.recv(200).decode("latin-1").strip()
    except (OSError, ValueError) as error:
        return Finding(Level.FAILURE, "mail", f"{smtp} does not answer: {error}", "mails wait until it does")
    if not greeting.startswith("220"):
        return Finding(Level.FAILURE, "mail", f"{smtp} is not a mail server: {greeting[:60]}", "set smtp to host:port")
    return Finding(Level.OK, "mail", f"{smtp} answers")


def _settings(loaded: Loaded) -> Iterator[Finding]:
    given = [name for name, source in loaded.sources.items() if source != "default"]
    yield Finding(Level.OK, "settings", f"{len(given)} of {len(loaded.sources)} set: {', '.join(given) or 'none'}")
    yield from _secrets(loaded.sources, "token", "admin_token")
    if not loaded.settings.contact:
        todo = "set contact to a mail or web address, so that archives can reach you"
        yield Finding(Level.WARNING, "contact", "not set: archives do not know who sends the requests", todo)


def _port(host: str, port: int) -> Finding:
    subject = f"port {port}"
    if port == 0:
        return Finding(Level.OK, subject, "the system chooses one")
    try:
        kind = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
        return Finding(Level.OK, subject, f"free on {host}")
    except PermissionError:
        todo = "use a port from 1024 on behind a web server, or give the service CAP_NET_BIND_SERVICE"
        return Finding(Level.FAILURE, subject, f"no permission to use it on {host}", todo)
    except OSError as error:
        if _is_ours(host, port):
            return Finding(Level.OK, subject, f"recollect is running on {host}")
        words = f"cannot be used on {host}: {error.strerror or error}"
        return Finding(Level.FAILURE, subject, words, "end what listens there (ss -ltnp), or choose another port")


def _is_ours(host: str, port: int) -> bool:
    from http.client import HTTPConnection, HTTPException

    connection = HTTPConnection("127.0.0.1" if host in ("0.0.0.0", "") else host, port, timeout=3)
    try:
        connection.request("GET", "/health")
        answer = connection.getresponse()
        return answer.status == 200 and "recollect" in str(answer.headers).lower()
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _archives(registry: str | None) -> Generator[Finding, None, tuple[Archive, ...]]:
    """Findings, and at the end the archives."""
    from recollect.archives.registry import load_archives

    try:
        found = load_archives(registry)
    except (RecollectError, OSError) as error:
        yield Finding(Level.FAILURE, "archives", str(error), getattr(error, "hint", "") or "see docs/archives.md")
        return ()
    asked = [archive for archive in found if not archive.ignore]
    if not asked:
        yield Finding(Level.FAILURE, "archives", "none would be asked", "see docs/archives.md")
    else:
        yield Finding(Level.OK, "archives", f"{len(asked)} of {len(found)} are asked, from {registry or 'the package'}")
    return tuple(asked)


def _folder(name: str, folder: Path) -> Iterator[Finding]:
    subject = f"{name} {folder}"
    if not folder.is_dir():
        parent = next((above for above in folder.absolute().parents if above.is_dir()), Path("/"))
        if not os.access(parent, os.W_OK):
            yield Finding(Level.FAILURE, subject, "does not exist", f"mkdir -p {folder}, owned by the service's user")
            return
        yield Finding(Level.OK, subject, "does not exist yet and can be made")
        folder = parent
    elif not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield Finding(Level.FAILURE, subject, "cannot be read and written", f"chown it to {_user()}")
        return
    usage = shutil.disk_usage(folder)
    words = f"{format_size(usage.free)} free of {format_size(usage.total)}"
    if usage.free < min(_LEAST_FREE, _LEAST_SHARE * usage.total):
        yield Finding(Level.WARNING, subject, words, "free some space: outputs are written beside what they replace")
    else:
        yield Finding(Level.OK, subject, words)


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _maps(folder: Path, known: set[str]) -> Iterator[Finding]:
    from recollect.maps.growth import Depth, growth_of
    from recollect.maps.lookup import open_map
    from recollect.routing.maps import is_empty, owner_of

    yield from _folder("maps", folder)
    if not folder.is_dir():
        return
    names = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    if not names:
        yield Finding(Level.WARNING, "maps", "no map: every archive is asked for every lookup", "recollect discover")
    for path in names:
        subject = f"map {path.name}"
        try:
            opened = open_map(str(path))
            empty = is_empty(opened)
            opened.close()
        except (RecollectError, OSError) as error:
            yield Finding(Level.FAILURE, subject, str(error), f"recollect validate {path}")
            continue
        archive = owner_of(path.name, {name.lower(): name for name in known} | {name: name for name in known})
        if archive is None:
            words = f"no archive has the id {_NAME_ENDS.sub('', path.name)}"
            yield Finding(Level.WARNING, subject, words, "name the map by the id of its archive, or add the archive")
            continue
        if empty:
            words = f"it is empty: it says no to everything, so {archive} is never asked"
            yield Finding(Level.WARNING, subject, words, "fetch it again, or delete it")
            continue
        updated = opened.scope.complete_until
        age = None if updated is None else datetime.now(UTC) - updated
        if updated is None or age is None:
            yield Finding(Level.OK, subject, "can be read; it has no date, so its age is not known")
        elif age > _OLD_MAP:
            new = growth_of(opened.header.meta.get("growth")).share(Depth.KEY, age / timedelta(days=1))
            old = format_duration(age.total_seconds())
            words = f"of {updated:%Y-%m-%d}, {old} old: {new:.0%} of the archive's keys may be new"
            yield Finding(Level.WARNING, subject, words, "recollect discover, or --discover 24h")
        else:
            yield Finding(Level.OK, subject, f"of {updated:%Y-%m-%d}")


def _moment(text: object) -> datetime | None:
    from recollect.datetimes import parse_or_none

    return parse_or_none(text if isinstance(text, str) else None)


def _published(folder: Path) -> Iterator[Finding]:
    """Whether a published tree belongs together, and whether `recollect keep` still runs."""
    import hashlib

    subject = f"published {folder}"
    index = folder / "mementomap" / "index.json"
    try:
        said = json.loads(index.read_bytes())
        wrong = [
            entry["path"]
            for entry in said["files"]
            if hashlib.sha256((folder / entry["path"].lstrip("/")).read_bytes()).hexdigest() != entry["sha256"]
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        yield Finding(
            Level.FAILURE, f"published {folder}", f"not a published map: {error}", "recollect publish, or keep"
        )
        return
    if wrong:
        yield Finding(
            Level.FAILURE, f"published {folder}", f"{wrong[0]} is not what the index says", "publish it again"
        )
    else:
        yield Finding(Level.OK, subject, f"{counted(said.get('keys', 0), 'key')} of {said.get('updated_at')}")
    status = folder / "status.json"
    if not status.is_file():
        return
    with suppress(ValueError, OSError):
        kept = json.loads(status.read_bytes())
        checked = _moment(kept.get("checked_at"))
        if kept.get("error"):
            yield Finding(Level.FAILURE, "keep", str(kept["error"]), f"see {folder / 'status.html'}")
        elif checked is not None and datetime.now(UTC) - checked > _OLD_STATUS:
            yield Finding(
                Level.WARNING, "keep", f"last looked at {checked:%Y-%m-%d %H:%M}", "is recollect keep running?"
            )
        elif checked is not None:
            yield Finding(Level.OK, "keep", f"last looked at {checked:%Y-%m-%d %H:%M} UTC")


def _clock() -> Finding:
    """Certificates, Memento dates and leases need a clock that is right."""
    import recollect

    newest = Path(recollect.__file__).stat().st_mtime
    if time.time() < newest - 86_400:
        return Finding(Level.FAILURE, "clock", f"{datetime.now(UTC):%Y-%m-%d} is before this program", "set the clock")
    with suppress(OSError, subprocess.SubprocessError):
        command = ["timedatectl", "show", "--property", "NTPSynchronized", "--value"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
        if done.stdout.strip() == "no":
            return Finding(Level.WARNING, "clock", "not synchronized", "timedatectl set-ntp true")
    return Finding(Level.OK, "clock", f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC")


def _asked(archives: tuple[Archive, ...]) -> Iterator[Finding]:
    from recollect.aggregator.explain import outcome_words
    from recollect.aggregator.gather import gather_timemaps
    from recollect.archives.opening import ClientOptions, open_client

    async def ask() -> Any:
        async with open_client(ClientOptions(timeout=30.0)) as client:
            deadline = asyncio.get_running_loop().time() + 30.0
            return await gather_timemaps(client, archives, "http://example.com/", deadline=deadline)

    for outcome in asyncio.run(ask()):
        subject = f"archive {outcome.archive}"
        if outcome.kind == "error":
            todo = f"recollect archives check {outcome.archive}; set ignore = true if it stays away"
            yield Finding(Level.WARNING, subject, outcome_words(outcome), todo)
        else:
            yield Finding(Level.OK, subject, f"answers within {outcome.elapsed:.1f} s")
