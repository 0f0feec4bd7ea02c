"""A running desk for tests: the command, its API, and the mails it writes.

with running_desk(tmp_path, archives) as desk:
    job = desk.submit("http://lost.example/", "anna@mail.example")
    desk.confirm(job)
    desk.wait(job, "ready")
"""

from __future__ import annotations

import email
import email.policy
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

SECONDS = 90.0


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass
class Answer:
    status: int
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class Job:
    id: str
    token: str
    email: str
    state: str


@dataclass
class RunningDesk:
    """A desk process, and what tests do with it."""

    base: str
    folder: Path
    process: subprocess.Popen[str]
    said: list[str] = field(default_factory=list)
    mailbox: Callable[[], Sequence[EmailMessage]] | None = None

    def ask(
        self, method: str, path: str, body: Any = None, *, form: dict[str, str] | None = None, **headers: str
    ) -> Answer:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        data = None
        if form is not None:
            data = urlencode(form).encode()
        elif body is not None:
            data, fields["Content-Type"] = json.dumps(body).encode(), "application/json"
        request = Request(self.base + path if path.startswith("/") else path, data, fields, method=method)
        try:
            with build_opener(_Stay).open(request, timeout=60) as answer:
                return Answer(answer.status, answer.headers, answer.read())
        except HTTPError as error:
            return Answer(error.code, error.headers, error.read())

    def submit(self, uri: str, address: str = "anna@mail.example", **fields: Any) -> Job:
        answer = self.ask("POST", "/api/jobs", {"uri": uri, "email": address, **fields})
        assert answer.status == 201, answer.text
        reply = answer.json
        [token] = re.findall(r"token=([\w-]+)", reply["status_url"])
        return Job(reply["id"], token, address, reply["state"])

    def operator(self, method: str, path: str, body: Any = None) -> Answer:
        token = (self.folder / "operator.token").read_text().strip()
        return self.ask(method, path, body, Authorization=f"Bearer {token}")

    def queue(self, uri: str, address: str = "op@mail.example", **fields: Any) -> Job:
        """A job of the operator's own: queued without a mail."""
        answer = self.operator("POST", "/api/jobs", {"uri": uri, "email": address, **fields})
        assert answer.status == 201, answer.text
        return Job(answer.json["id"], answer.json["token"], address, answer.json["state"])

    def mails(self) -> list[EmailMessage]:
        if self.mailbox is not None:
            return list(self.mailbox())
        files = sorted((self.folder / "outbox").glob("*.eml"), key=lambda path: path.stat().st_mtime_ns)
        return [email.message_from_bytes(file.read_bytes(), policy=email.policy.default) for file in files]  # type: ignore[misc]

    def mail(self, address: str, words: str, seconds: float = 20.0) -> EmailMessage:
        """The newest mail to an address with these words in its subject."""
        found: list[EmailMessage] = []

        def look() -> bool:
            found[:] = [m for m in self.mails() if m["To"] == address and words.lower() in m["Subject"].lower()]
            return bool(found)

        until(look, seconds, lambda: f"mails: {[(m['To'], m['Subject']) for m in self.mails()]}")
        return found[-1]

    def confirm(self, job: Job) -> str:
        """Open the link of the mail and press the button; returns the address of the job's page."""
        body = self.mail(job.email, "confirm").get_content()
        [link] = re.findall(r"https?://\S+", body)
        path = link.removeprefix(self.base)
        assert self.ask("GET", path).text.count("<form") == 1
        answer = self.ask("POST", path, form={})
        assert answer.status == 303, answer.text
        return str(answer.headers["Location"])

    def show(self, job: Job) -> dict[str, Any]:
        answer = self.ask("GET", f"/api/jobs/{job.id}?token={job.token}")
        assert answer.status == 200, answer.text
        reply: dict[str, Any] = answer.json
        return reply

    def wait(self, job: Job, *states: str, seconds: float = SECONDS) -> dict[str, Any]:
        reply: dict[str, Any] = {}

        def look() -> bool:
            reply.update(self.show(job))
            return reply["state"] in states

        until(look, seconds, lambda: f"{reply}\n{''.join(self.said[-40:])}")
        return reply

    def history(self, job: Job) -> list[str]:
        return [event["action"] for event in self.operator("GET", f"/api/history?job={job.id}").json["events"]]

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)


def until(condition: Callable[[], bool], seconds: float, words: Callable[[], str] = str, step: float = 0.05) -> None:
    give_up = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > give_up:
            raise AssertionError(f"not within {seconds} s: {words()}")
        time.sleep(step)


def start(command: Sequence[str], ready: str = "", **environment: str) -> tuple[subprocess.Popen[str], list[str], str]:
    """A process of the command line, what it says, and the line that says it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-m", "recollect", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **environment},
    )
    said: list[str] = []

    def listen() -> None:
        assert process.stdout is not None
        said.extend(iter(process.stdout.readline, ""))

    def listen_on() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)

    threading.Thread(target=listen_on, daemon=True).start()
    if ready:
        until(lambda: process.poll() is not None or any(ready in line for line in said), 60, lambda: "".join(said))
        assert process.poll() is None, "".join(said)
    return process, said, next((line for line in said if ready and ready in line), "")


@contextmanager
def running_desk(
    folder: Path, archives: Path | None = None, *flags: str, port: int = 0, **environment: str
) -> Iterator[RunningDesk]:
    command = ["desk", "--data", str(folder), "--port", str(port), *flags]
    command += ["--archives", str(archives)] if archives else []
    environment.setdefault("XDG_STATE_HOME", str(folder.parent / "state"))
    process, said, line = start(command, "Recollect desk listens on", **environment)
    try:
        [base] = re.findall(r"(http://\S+)/", line)
        yield RunningDesk(base, folder, process, said)
    finally:
        end(process)


def end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


@contextmanager
def running_worker(desk: RunningDesk, folder: Path, *flags: str) -> Iterator[subprocess.Popen[str]]:
    token = str(desk.folder / "worker.token")
    command = ["desk", "worker", "--desk", desk.base, "--token-file", token, "--work", str(folder), *flags]
    process, _, _ = start(command, "waits for jobs")
    try:
        yield process
    finally:
        end(process)
