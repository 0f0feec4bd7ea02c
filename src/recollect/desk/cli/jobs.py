"""`recollect desk jobs`: a desk from the terminal."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import parse_qs, quote, urlencode, urlsplit
from urllib.request import Request, urlopen

import click

from recollect.cli.console import emit_json, emit_json_line, emit_table, json_option, talk
from recollect.cli.types import Joined
from recollect.errors import RecollectError, UsageError
from recollect.formats.temporaries import replacing
from recollect.quantities import format_duration, format_size

_ABOUT_DESK = """\b
The desk is --desk URL, or RECOLLECT_JOBS_DESK, or http://127.0.0.1:1209. This machine keeps the tokens of the jobs that
you submit in ~/.local/state/recollect/jobs.json; a status link works in place of an ID. The operator's commands need
--token-file desk/operator.token or --data desk/, unless you started that desk on this machine.
"""
_EPILOG = f"""\b
Examples:
  recollect desk jobs submit http://lost.example/ --email anna@mail.example --desk https://desk.example.org
  recollect desk jobs watch ID                                     until it is ready
  recollect desk jobs fetch ID -o lost.zip
  recollect desk jobs list --data desk/                            for the operator: the token is in the desk's folder
  recollect desk jobs move ID 1 --data desk/

{_ABOUT_DESK}"""


def _example(*commands: str) -> str:
    lines = "\n".join(f"  recollect desk jobs {command}" for command in commands)
    return f"\b\nExamples:\n{lines}\n\n{_ABOUT_DESK}"


_FINAL = frozenset(("ready", "picked-up", "expired", "failed", "cancelled", "nothing-found"))


class DeskRefused(RecollectError):
    """The desk answered with an error."""


class _Client:
    """The desk over HTTP."""

    def __init__(self, base: str, token: str) -> None:
        self.base = base.rstrip("/")
        self.token = token

    def call(self, method: str, path: str, body: Any = None, timeout: float = 60.0) -> Any:
        with self.open(method, path, body, timeout) as answer:
            data = answer.read()
            return json.loads(data) if data.strip() else None

    @contextmanager
    def open(self, method: str, path: str, body: Any = None, timeout: float = 60.0, **headers: str) -> Iterator[Any]:
        fields = {"Accept": "application/json", **headers}
        if self.token:
            fields["Authorization"] = f"Bearer {self.token}"
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            fields["Content-Type"] = "application/json"
        request = Request(f"{self.base}{path}", data, fields, method=method)
        try:
            with urlopen(request, timeout=timeout) as answer:
                yield answer
        except HTTPError as error:
            raise _refused(error) from error
        except (URLError, OSError) as error:
            why = str(getattr(error, "reason", error))
            raise DeskRefused("the desk does not answer", where=self.base, why=why, hint="--desk URL") from error


def _refused(error: HTTPError) -> RecollectError:
    try:
        reply = json.loads(error.read())["error"]
        what = ": ".join(part for part in (reply["message"], reply.get("field"), reply.get("why")) if part)
        return DeskRefused(what, hint=reply.get("hint", ""))
    except (ValueError, KeyError, TypeError):
        return DeskRefused("the desk answered with an error", why=f"status {error.code}")


def _desk_options(command: Callable[..., Any]) -> Callable[..., Any]:
    options = [
        click.option("--desk", metavar="URL", help="Address of the desk.  [http://127.0.0.1:1209]"),
        click.option(
            "--token-file", type=click.Path(exists=True, dir_okay=False), help="File with the operator's token."
        ),
        click.option(
            "--data", type=click.Path(exists=True, file_okay=False), help="Folder of the desk, for its operator."
        ),
        json_option,
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _client(desk: str | None, token_file: str | None, data: str | None, *, known: bool = True) -> _Client:
    """The desk, with the operator's token if one is named, or (`known`) if the desk was started by this user."""
    base = desk or os.environ.get("RECOLLECT_JOBS_DESK")
    place = Path(token_file) if token_file else Path(data) / "operator.token" if data else None
    if base is None and data is not None and (Path(data) / "desk.url").is_file():
        base = (Path(data) / "desk.url").read_text().strip()
    base = (base or "http://127.0.0.1:1209").rstrip("/")
    if place is None and known and (folder := _remembered("desks.json").get(base)):
        place = Path(folder) / "operator.token"
    try:
        token = place.read_text().strip() if place is not None else ""
    except OSError:
        token = ""
    return _Client(base, token)


# What is remembered between commands: tokens of jobs that were submitted here, folders of desks that were started here.


def _memory(name: str) -> Path:
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "recollect" / name


def _remembered(name: str = "jobs.json") -> dict[str, str]:
    try:
        value = json.loads(_memory(name).read_text())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def remember(key: str, value: str, name: str = "jobs.json") -> None:
    path = _memory(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with replacing(path, mode=0o600) as file:
            file.write(json.dumps({**_remembered(name), key: value}, indent=1).encode())
    except OSError as error:
        talk(f"not kept for later commands: {error}")


def _job(client: _Client, name: str) -> str:
    """The path of a job's API; its token comes from a status link, from memory, or is the operator's."""
    link = name if "://" in name else _remembered().get(name, "")
    if link:
        parts = urlsplit(link)
        client.token = parse_qs(parts.query).get("token", [""])[0]
        if "://" in name:
            client.base = f"{parts.scheme}://{parts.netloc}"
            name = parts.path.rpartition("/")[2]
    return f"/api/jobs/{quote(name)}"


# Commands ------------------------------------------------------------------------------------------------------------


@click.group("jobs", epilog=_EPILOG)
def jobs() -> None:
    """Submit recoveries to a desk, follow and download them; for its operator: queue, workers, history."""


@jobs.command(
    "submit",
    epilog=_example(
        "submit http://lost.example/ --email anna@mail.example --desk https://desk.example.org",
        "submit http://lost.example/ --email anna@mail.example --at 2009-06-01 --use ia,arquivo",
    ),
)
@click.argument("uri")
@click.option("--email", required=True, help="Your e-mail address.")
@click.option("--name", default="", help="Your name.")
@click.option(
    "--scope",
    type=click.Choice(["site", "page"]),
    default="site",
    show_default=True,
    help="The whole site, or one page.",
)
@click.option("--use", "archives", cls=Joined, metavar="IDS", help="Only these archives (ia,arquivo).")
@click.option("--at", metavar="DATE", help="Captures nearest to this date.")
@click.option("--since", metavar="DATE", help="No captures before this date.")
@click.option("--until", metavar="DATE", help="No captures after this date.")
@click.option("--windows-names", is_flag=True, help="Short file names without accents, for older Windows programs.")
@click.option("--scripts/--no-scripts", help="Whether the pages keep their scripts.  [default: no-scripts]")
@_desk_options
def submit(
    uri: str,
    email: str,
    name: str,
    scope: str,
    archives: str,
    at: str | None,
    since: str | None,
    until: str | None,
    windows_names: bool,
    scripts: bool,
    desk: str | None,
    token_file: str | None,
    data: str | None,
    as_json: bool,
) -> int:
    """Submit a recovery. It starts when the user confirms the link in the mail; an operator's job starts at once."""
    client = _client(desk, token_file, data, known=False)
    wanted = [part.strip() for part in archives.split(",") if part.strip()]
    body = {
        "uri": uri,
        "email": email,
        "name": name,
        "scope": scope,
        "archives": wanted,
        "windows_names": windows_names,
        "scripts": scripts,
    }
    body |= {key: value for key, value in (("at", at), ("from", since), ("to", until)) if value}
    reply = client.call("POST", "/api/jobs", body)
    remember(reply["id"], reply["status_url"])
    if as_json:
        emit_json(reply)
    else:
        click.echo(reply["id"])
        talk(f"{reply['state']}; status: {reply['status_url']}")
        if reply["state"] == "pending":
            talk(f"confirm it by the link in the mail to {email}")
    return 0


@jobs.command("list", epilog=_example("list --data desk/", "list --data desk/ --state failed --json"))
@click.option("--state", default="", help="Only jobs in this state.")
@click.option("--limit", default=200, show_default=True, help="At most N jobs.")
@_desk_options
def list_jobs(state: str, limit: int, desk: str | None, token_file: str | None, data: str | None, as_json: bool) -> int:
    """List all jobs of the desk (operator)."""
    reply = _client(desk, token_file, data).call("GET", f"/api/jobs?{urlencode({'state': state, 'limit': limit})}")
    if as_json:
        emit_json(reply)
        return 0
    rows = [
        (
            j["id"],
            j["state"],
            j["rank"] or "",
            f"{j['progress']:.0%}",
            format_duration(j["age"]),
            j["worker"] or "",
            j["uri"],
            j["reason"],
        )
        for j in reply["jobs"]
    ]
    emit_table(("job", "state", "rank", "progress", "age", "worker", "site", "reason"), rows, right=(2, 3))
    return 0


@jobs.command("show", epilog=_example("show ID", "show ID --json"))
@click.argument("job")
@_desk_options
def show(job: str, desk: str | None, token_file: str | None, data: str | None, as_json: bool) -> int:
    """Show the state of one job."""
    client = _client(desk, token_file, data)
    reply = client.call("GET", _job(client, job))
    if as_json:
        emit_json(reply)
    else:
        _show(reply)
    return 0


def _show(reply: dict[str, Any]) -> None:
    counts = {name: sum(reply["counts"][name].values()) for name in ("recovered", "queued", "missing")}
    rows: list[tuple[str, Any]] = [("job", reply["id"]), ("site", reply["uri"]), ("state", reply["state"])]
    rows += [(name, reply[name]) for name in ("rank", "reason") if reply.get(name)]
    rows += [("progress", f"{reply['progress']:.0%}"), *counts.items()]
    if estimate := reply.get("estimate"):
        waiting, working = format_duration(estimate["waiting"]), format_duration(estimate["working"])
        rows.append(("estimate", f"waiting {waiting}, working {working}"))
    rows += [("waits for", one["archive"]) for one in reply.get("waiting_for", [])]
    rows += [(name, url) for name, url in reply.get("result", {}).items() if isinstance(url, str)]
    emit_table(("", ""), rows)


@jobs.command("watch", epilog=_example("watch ID", "watch ID --json"))
@click.argument("job")
@_desk_options
def watch(job: str, desk: str | None, token_file: str | None, data: str | None, as_json: bool) -> int:
    """Follow a job until it ends. Exit code: 0 ready, 1 not."""
    client = _client(desk, token_file, data)
    path = _job(client, job)
    last: dict[str, Any] = {}
    for reply in _events(client, path):
        last = reply
        if as_json:
            emit_json_line(reply)
            sys.stdout.flush()
        else:
            counts = {name: sum(reply["counts"][name].values()) for name in ("recovered", "queued", "missing")}
            words = ", ".join(f"{number:,} {name}" for name, number in counts.items() if number)
            rank = f", rank {reply['rank']}" if reply.get("rank") else ""
            talk(f"{reply['state']}{rank}: {reply['progress']:.0%}{' of what is known, ' + words if words else ''}")
    return 0 if last.get("state") in ("ready", "picked-up") else 1


def _events(client: _Client, path: str) -> Iterator[dict[str, Any]]:
    """Statuses as they come; a line that breaks is taken up again."""
    while True:
        try:
            with client.open("GET", f"{path}/events", timeout=60) as stream:
                for reply in _sse(stream):
                    yield reply
                    if reply["state"] in _FINAL:
                        return
        except (TimeoutError, ConnectionError):
            pass
        time.sleep(1.0)


def _sse(stream: IO[bytes]) -> Iterator[dict[str, Any]]:
    for line in stream:
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


@jobs.command("fetch", epilog=_example("fetch ID -o lost.zip", "fetch ID -o lost.wacz"))
@click.argument("job")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    help="File to write; ends in .zip, .tar.gz, .wacz or .html.  [the site's name and .zip]",
)
@_desk_options
def fetch(
    job: str, output: str | None, desk: str | None, token_file: str | None, data: str | None, as_json: bool
) -> int:
    """Download a result; an interrupted download continues where it stopped. Its checksum is checked."""
    client = _client(desk, token_file, data)
    path = _job(client, job)
    output = output or f"{urlsplit(client.call('GET', path)['uri']).hostname or 'site'}.zip"
    kinds = {".zip": "result.zip", ".tar.gz": "result.tar.gz", ".wacz": "result.wacz", ".html": "report.html"}
    name = next((file for ending, file in kinds.items() if output.endswith(ending)), None)
    if name is None:
        raise UsageError("the name must end in .zip, .tar.gz, .wacz or .html", where=output)
    target = Path(output)
    part = _part(target, f"{path}/{name}")
    digest = _download(client, f"{path}/{name}", part)
    if digest:
        part.unlink()
        raise DeskRefused("the file is incomplete", where=output, why=digest, hint="fetch it again")
    part.replace(target)
    size = target.stat().st_size
    emit_json({"file": str(target), "bytes": size}) if as_json else talk(f"{target}: {format_size(size)}")
    return 0


def _part(target: Path, source: str) -> Path:
    """Where a download waits for its end: the name says whose it is, so that no other file is continued or replaced."""
    mark = hashlib.sha256(source.encode()).hexdigest()[:16]
    return target.with_name(f".{target.name[:48]}.{mark}.recollect.part")


def _download(client: _Client, path: str, part: Path) -> str:
    have = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={have}-"} if have else {}
    with client.open("GET", path, timeout=300, **headers) as answer:
        expected = answer.headers.get("X-Checksum-Sha256", "")
        with part.open("ab" if answer.status == 206 else "wb") as file:
            while piece := answer.read(1 << 20):
                file.write(piece)
    digest = hashlib.sha256()
    with part.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return "" if digest.hexdigest() == expected else f"expected {expected}, found {digest.hexdigest()}"


def _change(action: str, help_text: str) -> None:
    @jobs.command(action, help=help_text, epilog=_example(f"{action} ID", f"{action} ID --data desk/"))
    @click.argument("job")
    @_desk_options
    def change(job: str, desk: str | None, token_file: str | None, data: str | None, as_json: bool) -> int:
        client = _client(desk, token_file, data)
        path = f"/api/jobs/{quote(job)}" if action == "retry" else _job(client, job)
        reply = client.call("POST", f"{path}/{action}", {})
        emit_json(reply) if as_json else talk(f"{reply['id']}: {reply['state']}")
        return 0


_change("cancel", "Cancel a job; a job that other users also requested continues for them.")
_change("retry", "Queue a job again that failed, was cancelled or found nothing (operator).")


@jobs.command("move", epilog=_example("move ID 1 --data desk/"))
@click.argument("job")
@click.argument("rank", type=click.IntRange(1))
@_desk_options
def move(job: str, rank: int, desk: str | None, token_file: str | None, data: str | None, as_json: bool) -> int:
    """Change the rank of a queued job; 1 is next (operator)."""
    client = _client(desk, token_file, data)
    reply = client.call("POST", f"/api/jobs/{quote(job)}/move", {"rank": rank})
    emit_json(reply) if as_json else talk(f"{reply['id']}: rank {reply['rank']}")
    return 0


@jobs.command("workers", epilog=_example("workers --data desk/"))
@_desk_options
def workers(desk: str | None, token_file: str | None, data: str | None, as_json: bool) -> int:
    """List the workers of the desk (operator)."""
    reply = _client(desk, token_file, data).call("GET", "/api/workers")
    if as_json:
        emit_json(reply)
        return 0
    rows = [
        (w["name"], w["host"], w["egress"], w["state"], format_duration(w["silent_seconds"]), w["job"] or "")
        for w in reply["workers"]
    ]
    emit_table(("worker", "host", "egress", "state", "last seen", "job"), rows)
    return 0


@jobs.command("history", epilog=_example("history --data desk/", "history --data desk/ --job ID --format csv"))
@click.option("--job", default="", help="Only of this job.")
@click.option(
    "--format", "kind", type=click.Choice(["table", "csv", "xml", "json"]), default="table", help="Output format."
)
@_desk_options
def history(job: str, kind: str, desk: str | None, token_file: str | None, data: str | None, as_json: bool) -> int:
    """Show the history of jobs (operator)."""
    client = _client(desk, token_file, data)
    query = f"?{urlencode({'job': job})}" if job else ""
    if kind in ("csv", "xml"):
        with client.open("GET", f"/api/history.{kind}{query}") as answer:
            click.echo(answer.read().decode(), nl=False)
        return 0
    reply = client.call("GET", f"/api/history{query}")
    if as_json or kind == "json":
        emit_json(reply)
        return 0
    rows = [(e["at"], e["job"], e["action"], e["before"] or "", e["after"], e["actor"]) for e in reply["events"]]
    emit_table(("when", "job", "action", "before", "after", "who"), rows)
    return 0
