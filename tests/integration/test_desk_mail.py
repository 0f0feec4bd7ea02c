"""Mails over a real SMTP server (aiosmtpd): delivered, refused temporarily, refused permanently, no server."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from desk_world import running_desk, until
from recollect.desk.outbox import Never, NotNow, SmtpTransport, compose
from recollect.desk.settings import DeskSettings
from smtp_server import answering

SETTINGS = DeskSettings(from_address="desk@desk.example")
MESSAGE = compose(SETTINGS, "<1@desk.example>", "anna@mail.example", "Grüße", "Ein Link:\n\nhttp://x.example/ä\n", 0.0)


@pytest.mark.parametrize(
    ("answer", "at", "error"),
    [
        ("451 later", "RCPT", NotNow),
        ("550 unknown", "RCPT", Never),
        ("421 busy", "DATA", NotNow),
        ("554 spam", "DATA", Never),
    ],
)
def test_4xx_and_5xx_differ(answer: str, at: str, error: type[Exception]) -> None:
    with answering(answer, at) as (port, _), pytest.raises(error):
        SmtpTransport("127.0.0.1", port, timeout=5).send(MESSAGE)


def test_one_recipient_and_every_header_arrive() -> None:
    with answering("250 OK") as (port, got):
        SmtpTransport("127.0.0.1", port, timeout=5).send(MESSAGE)
    [envelope] = got
    assert envelope.rcpt_tos == ["anna@mail.example"] and envelope.mail_from == "desk@desk.example"
    for header in (b"Message-ID: <1@desk.example>", b"Auto-Submitted: auto-generated"):
        assert header in envelope.content


def test_no_one_there_is_not_now() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(NotNow) as error:
        SmtpTransport("127.0.0.1", port, timeout=2).send(MESSAGE)
    assert error.value.where, "the others are not tried in this round"


def test_a_desk_sends_what_waited_when_the_server_is_there(tmp_path: Path) -> None:
    archives = tmp_path / "archives.json"
    archives.write_text('[{"id": "one", "timemap": "http://127.0.0.1:9/"}]')
    with answering("250 OK") as (port, _):
        pass  # the port is free again: the server is down
    flags = ["--smtp", f"127.0.0.1:{port}", "--from-address", "desk@desk.example", "--workers", "0"]
    with running_desk(tmp_path / "desk", archives, *flags) as desk:
        desk.submit("http://lost.example/")
        until(lambda: any(m["error"] for m in desk.operator("GET", "/api/mails").json["mails"]), 20)
        with answering("250 OK", port=port) as (_, got):
            [mail] = desk.operator("GET", "/api/mails").json["mails"]
            assert mail["state"] == "waiting"
            assert desk.operator("POST", f"/api/mails/{mail['number']}/send").status == 200
            until(lambda: len(got) == 1, 20)
            time.sleep(1.5)
            assert len(got) == 1 and mail["message_id"].encode() in got[0].content
        assert "anna@mail.example" not in "".join(desk.said)
