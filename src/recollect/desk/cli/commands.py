"""Commands of the recovery desk: `desk`, `desk backup`, `worker`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from recollect.cli.console import talk
from recollect.cli.logs import log_option, start_logging
from recollect.desk.cli.jobs import jobs
from recollect.errors import UsageError
from recollect.quantities import counted

_DESK_EPILOG = """\b
Examples:
  recollect desk --data desk/                                 form, queue, mails in desk/outbox, one worker
  recollect desk --data desk/ --archives archives.toml --port 8080
  recollect desk --data /var/lib/desk --database postgresql://desk@db/desk --smtp mail.example:587 \\
      --from-address desk@example.org --base-url https://desk.example.org --workers 0
  recollect desk backup --data desk/ -o backup.tar.gz          while the desk runs
  recollect desk restore backup.tar.gz --data desk2/           a desk from a backup

\b
Every flag is also a setting: in a TOML file (--config) or in the environment (RECOLLECT_DESK_PORT=8080).
In the folder: desk.sqlite, results/, listings/, outbox/, worker.token, operator.token, admin.password.
SIGTERM stops the desk; workers return their jobs to the queue. The tutorial is docs/tutorials/desk.md.
"""

_BACKUP_EPILOG = """\b
Examples:
  recollect desk backup --data desk/ -o backup.tar.gz          while the desk runs
  recollect desk backup --data desk/ -o jobs.tar.gz --no-results
"""
_RESTORE_EPILOG = """\b
Examples:
  recollect desk restore backup.tar.gz --data desk2/
  recollect desk restore backup.tar.gz --data desk2/ --database postgresql://desk@db/desk
"""


@click.group("desk", invoke_without_command=True, epilog=_DESK_EPILOG)
@click.option("--data", help="Folder of the desk.  [desk]")
@click.option("--config", type=click.Path(dir_okay=False), help="File of settings (TOML).")
@click.option("--archives", help="List of archives: MemGator's archives.json, or TOML.  [the public archives]")
@click.option("--host", help="Address to listen on.  [127.0.0.1]")
@click.option("--port", type=int, help="Port to listen on, 0 for a free one.  [1209]")
@click.option("--base-url", help="Public address of the desk, for links in mails.")
@click.option("--database", help="postgresql://… instead of SQLite in the folder.")
@click.option("--workers", type=int, help="Concurrent recoveries on this machine; 0 leaves all to other workers.  [1]")
@click.option("--smtp", metavar="HOST:PORT", help="Mail server; without one, mails are files in the folder outbox.")
@click.option("--from-address", help="Sender of the mails.")
@click.option("--operator-address", help="Where mails about failures and takedowns go.")
@click.option("--preview-url", help="Address of a separate origin for browsable previews.")
@click.option("--preview-port", type=int, help="Port that serves them.")
@click.option("--contact", help="Your mail or web address, for the archives (User-Agent).")
@log_option
@click.option("-v", "--verbose", is_flag=True, help="Print more messages on stderr.")
@click.pass_context
def desk(context: click.Context, /, verbose: bool, config: str | None, **given: Any) -> int | None:
    """Run a recovery service for people who do not use a terminal."""
    context.obj = (config, given)
    if context.invoked_subcommand is not None:
        return None
    import asyncio

    from recollect.desk.cli.jobs import remember
    from recollect.desk.http.server import serve
    from recollect.settings import load_desk_settings

    settings = load_desk_settings(given, config=config).settings
    start_logging(verbose)

    def on_ready(address: str, running: Any) -> None:
        for known in {address, running.base_url}:
            remember(known, str(Path(settings.data).resolve()), "desks.json")
        talk(f"Recollect desk listens on {address}/")
        talk(f"Operator: {running.base_url}/admin, password in {Path(settings.data) / 'admin.password'}")
        talk(f"Workers: recollect desk worker --desk {address} --token-file {Path(settings.data) / 'worker.token'}")
        if not sys.stdout.isatty():
            # For the program that started us.
            click.echo(f"Recollect desk listens on {address}/")
            sys.stdout.flush()

    asyncio.run(serve(settings, on_ready))
    return 0


@desk.command("backup", epilog=_BACKUP_EPILOG)
@click.option("--data", help="Folder of the desk.  [desk]")
@click.option("--config", type=click.Path(dir_okay=False), help="File of settings (TOML).")
@click.option("--database", help="postgresql://… of the desk, if it does not use SQLite.")
@click.option("--no-results", is_flag=True, help="Leave out the results that users can still download.")
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), help="File to write (tar.gz).")
@click.pass_context
def backup(
    context: click.Context,
    output: str,
    no_results: bool,
    data: str | None,
    database: str | None,
    config: str | None,
) -> int:
    """Back up a running desk; from PostgreSQL, all tables as JSON."""
    from recollect.desk.backup import write_backup
    from recollect.settings import load_desk_settings

    outer_config, outer = context.obj
    given = {**outer, "data": data or outer.get("data"), "database": database or outer.get("database")}
    settings = load_desk_settings(given, config=config or outer_config).settings
    count = write_backup(settings, Path(output), results=not no_results)
    talk(f"{output}: {counted(count, 'file')}")
    return 0


@desk.command("restore", epilog=_RESTORE_EPILOG)
@click.argument("backup_file", metavar="BACKUP", type=click.Path(exists=True, dir_okay=False))
@click.option("--data", help="Folder of the new desk; empty, or created.  [desk]")
@click.option("--database", help="Empty PostgreSQL database to fill instead of SQLite in the folder.")
@click.option("--config", type=click.Path(dir_okay=False), help="File of settings (TOML).")
@click.pass_context
def restore(
    context: click.Context, backup_file: str, data: str | None, database: str | None, config: str | None
) -> int:
    """Make a desk from a backup, in an empty folder; a backup of SQLite can go into PostgreSQL and the reverse."""
    from recollect.desk.backup import restore_backup
    from recollect.settings import load_desk_settings

    outer_config, outer = context.obj
    given = {**outer, "data": data or outer.get("data"), "database": database or outer.get("database")}
    settings = load_desk_settings(given, config=config or outer_config).settings
    count = restore_backup(settings, Path(backup_file))
    talk(f"{settings.data}: {counted(count, 'file')} restored; start it with: recollect desk --data {settings.data}")
    return 0


_WORKER_EPILOG = """\b
Examples:
  recollect desk worker --desk https://desk.example.org --token-file worker.token
  RECOLLECT_WORKER_TOKEN=… recollect desk worker --desk https://desk.example.org     on another machine
  recollect desk worker --desk http://127.0.0.1:1209 --token-file desk/worker.token --work /var/tmp/recoveries

\b
The operator makes tokens on the admin page "Workers". A worker uses only HTTP to the desk; SIGTERM returns its job
to the queue. Workers that share one public address should share one --egress name: archives count requests by address.
"""


@desk.command("worker", epilog=_WORKER_EPILOG)
@click.option("--desk", "address", required=True, metavar="URL", help="Address of the desk.")
@click.option("--token-file", type=click.Path(exists=True, dir_okay=False), help="File with the token.")
@click.option("--token", envvar="RECOLLECT_WORKER_TOKEN", help="The token itself; better in RECOLLECT_WORKER_TOKEN.")
@click.option("--work", type=click.Path(file_okay=False), default="work", show_default=True, help="Working folder.")
@click.option("--name", help="Name of this worker.  [that of its token, or the host, and the process id]")
@click.option("--egress", default="", help="Name of the public address that archives see.")
@click.option("--once", is_flag=True, help="End after one job.")
@click.option("--with-parent", is_flag=True, hidden=True, help="End when standard input ends.")
@log_option
@click.option("-v", "--verbose", is_flag=True, help="Print more messages on stderr.")
def worker(
    address: str,
    token_file: str | None,
    token: str | None,
    work: str,
    name: str | None,
    egress: str,
    once: bool,
    with_parent: bool,
    verbose: bool,
) -> int:
    """Run recoveries for a desk on this machine."""
    import asyncio
    import os
    import signal
    import socket
    import threading

    from recollect.desk.processes import private_process
    from recollect.desk.worker import NotAllowed, Worker, WorkerOptions, owner_of

    start_logging(verbose)
    private_process()
    if token_file:
        token = Path(token_file).read_text().strip()
    if not token:
        raise UsageError("a worker needs a token", where=token_file or "", hint="--token-file FILE")
    if not address.startswith(("http://", "https://")):
        raise UsageError("not the address of a desk", where=address, hint="--desk https://desk.example.org")
    secret = token

    async def main() -> int:
        try:
            owner = "" if name else await owner_of(address, secret)
        except NotAllowed as error:
            talk(f"recollect: {error}")
            return 1
        chosen = name or f"{owner or socket.gethostname()}-{os.getpid()}"
        running = Worker(WorkerOptions(address, secret, Path(work), chosen, egress, once))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, running.stop)
        if with_parent:
            threading.Thread(target=_end_with_stdin, daemon=True).start()
        try:
            await running.run(lambda: None if with_parent else talk(f"Worker {chosen} waits for jobs of {address}"))
        except NotAllowed as error:
            talk(f"recollect: {error}")
            return 1
        return 0

    return asyncio.run(main())


def _end_with_stdin() -> None:
    """The desk that started this worker is gone, however it ended."""
    import os

    while os.read(0, 4096):
        pass
    os._exit(1)


desk.add_command(jobs)
