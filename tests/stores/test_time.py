"""What time does, by a stepped clock: reminders, expiry, forgetting, and mails through a bad day of the mail server."""

from __future__ import annotations

from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from recollect.desk import outbox, people, queue
from recollect.desk.database import Database
from recollect.desk.jobs import parse_submission
from recollect.desk.letters import renderer
from recollect.desk.outbox import FolderTransport, Never, NotNow, send_due
from recollect.desk.queue import Lease
from recollect.desk.settings import DAY, DeskSettings
from recollect.desk.upkeep import tick

SETTINGS = DeskSettings(from_address="desk@desk.example", operator_address="op@desk.example")
RENDER = renderer(SETTINGS, "https://desk.example")


class Server:
    """A mail server that can be down, busy, or refuse."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.got: list[EmailMessage] = []

    def send(self, message: EmailMessage) -> None:
        if self.error is not None:
            raise self.error
        self.got.append(message)


def submit(run: Any, now: float = 0.0, email: str = "anna@mail.example", uri: str = "http://lost.example/") -> Any:
    return run(people.submit, parse_submission({"uri": uri, "email": email}, []), now, SETTINGS)


def ready(database: Database, run: Any, now: float = 0.0, **named: str) -> Any:
    one = submit(run, now, **named)
    run(people.confirm, one.recipient, now, SETTINGS)
    job = database.transact(lambda c: queue.claim(c, "w", now, SETTINGS, database.skip_locked))
    assert job is not None
    lease = Lease(job.id, job.fence, "w")
    run(queue.pack, lease, now, SETTINGS)
    result = {"files": {}, "summary": {"recovered": 12, "missing": 3}}
    run(lambda c: people.announce(c, queue.deliver(c, lease, now, SETTINGS, result), now, SETTINGS))
    return one


def days(database: Database, run: Any, server: Any, last: int, *, first: int = 0) -> list[tuple[int, str]]:
    """Step the clock by six hours: (day, subject) of each mail."""
    sent: list[tuple[int, str]] = []
    for step in range(first * 4, last * 4 + 1):
        now = step * DAY / 4
        run(tick, now, SETTINGS)
        send_due(database, server, RENDER, now, SETTINGS)
        sent += [(step // 4, message["Subject"]) for message in server.got]
        server.got.clear()
    return sent


def test_reminders_after_7_and_21_days_last_notice_and_removal_at_28(database: Database, run: Any) -> None:
    one = ready(database, run)
    sent = days(database, run, Server(), 40)
    assert all("lost.example" in words for _, words in sent), "each subject names the site"
    assert [(day, words.split(":")[0].split(" lost")[0]) for day, words in sent] == [
        (0, "Please confirm"), (0, "lost.example"), (7, "Your website"), (21, "Your website"), (27, "Last notice"),
    ]  # fmt: skip
    job = run(queue.get, one.job)
    assert job.state == "expired"
    assert run(queue.history, one.job)[-1]["at"] == 28 * DAY
    assert run(lambda c: c.rows("SELECT email, name FROM recipient")) == [{"email": None, "name": None}]


def test_who_picked_it_up_gets_no_reminder_and_is_forgotten_after_seven_days(database: Database, run: Any) -> None:
    one = ready(database, run)
    person = run(people.by_token, one.token, people.Purpose.STATUS)
    run(people.pick_up, person, DAY)
    run(people.pick_up, person, 2 * DAY)
    assert [day for day, _ in days(database, run, Server(), 7)] == [0, 0]
    assert run(lambda c: c.rows("SELECT email FROM recipient"))[0]["email"] == "anna@mail.example"
    assert days(database, run, Server(), 27, first=8) == []
    assert run(lambda c: c.rows("SELECT email FROM recipient"))[0]["email"] is None
    assert run(queue.get, one.job).state == "picked-up"


def test_a_desk_that_slept_sends_one_reminder_not_three(database: Database, run: Any) -> None:
    ready(database, run)
    server = Server()
    days(database, run, server, 1)
    run(tick, 27.5 * DAY, SETTINGS)
    send_due(database, server, RENDER, 27.5 * DAY, SETTINGS)
    assert [message["Subject"].split(":")[0] for message in server.got] == ["Last notice"]


def test_a_job_no_one_confirms_is_gone_after_ten_days(database: Database, run: Any) -> None:
    one = submit(run)
    run(tick, 9.9 * DAY, SETTINGS)
    assert run(queue.get, one.job).state == "pending"
    assert run(tick, 10 * DAY, SETTINGS).expired == (one.job,)
    assert run(people.confirm, one.recipient, 11 * DAY, SETTINGS).state == "expired"


def test_an_hour_without_mail_server_loses_and_doubles_nothing(database: Database, run: Any) -> None:
    submitted = [submit(run, 0.0, f"p{n}@mail.example", f"http://l{n}.example/") for n in range(20)]
    server = Server()
    server.error = NotNow("down", where="smtp")
    for minute in range(60):
        send_due(database, server, RENDER, minute * 60.0, SETTINGS)
    assert server.got == []
    ids = {row["message_id"] for row in run(outbox.mails)}
    server.error = None
    for minute in range(60, 200):
        send_due(database, server, RENDER, minute * 60.0, SETTINGS)
    assert sorted(message["To"] for message in server.got) == sorted(f"p{n}@mail.example" for n in range(20))
    assert {message["Message-ID"] for message in server.got} == ids
    assert len(submitted) == 20


@pytest.mark.parametrize(("error", "state"), [(Never("550"), "failed"), (NotNow("451"), "waiting")])
def test_permanent_and_temporary_refusals_differ(database: Database, run: Any, error: Exception, state: str) -> None:
    submit(run)
    server = Server()
    server.error = error
    send_due(database, server, RENDER, 0.0, SETTINGS)
    assert [row["state"] for row in run(outbox.mails)] == [state]
    server.error = None
    for hour in range(1, 5):
        send_due(database, server, RENDER, hour * 3600.0, SETTINGS)
    assert len(server.got) == (state == "waiting")
    if state == "failed":
        [row] = run(outbox.mails)
        assert run(outbox.send_again, row["number"], DAY)
        send_due(database, server, RENDER, DAY, SETTINGS)
        assert [message["Message-ID"] for message in server.got] == [row["message_id"]]


def test_a_mail_that_just_went_out_is_not_sent_again(database: Database, run: Any) -> None:
    submit(run)
    server = Server()
    send_due(database, server, RENDER, 0.0, SETTINGS)
    [row] = run(outbox.mails)
    assert not run(outbox.send_again, row["number"], 5.0), "it waited when the operator looked, or by a second click"
    send_due(database, server, RENDER, 6.0, SETTINGS)
    assert len(server.got) == 1
    assert run(outbox.send_again, row["number"], DAY), "by the operator's decision"


def test_a_mail_is_given_up_after_three_days(database: Database, run: Any) -> None:
    submit(run)
    server = Server()
    server.error = NotNow("451 later")
    for hour in range(71):
        send_due(database, server, RENDER, hour * 3600.0, SETTINGS)
    assert [row["state"] for row in run(outbox.mails)] == ["waiting"]
    for hour in range(71, 76):
        send_due(database, server, RENDER, hour * 3600.0, SETTINGS)
    [row] = run(outbox.mails)
    assert row["state"] == "failed" and "3 days" in row["error"]


def test_a_crash_while_sending_sends_again(database: Database, run: Any) -> None:
    submit(run)
    server = Server()
    server.error = RuntimeError("kill -9")
    with pytest.raises(RuntimeError):
        send_due(database, server, RENDER, 0.0, SETTINGS)
    server.error = None
    assert send_due(database, server, RENDER, 60.0, SETTINGS) == 0, "another process may still be sending it"
    assert send_due(database, server, RENDER, 400.0, SETTINGS) == 1


def test_the_confirmation_mail_has_one_link_one_recipient_and_no_other_address(
    database: Database, run: Any, tmp_path: Path
) -> None:
    one = submit(run)
    send_due(database, FolderTransport(tmp_path / "outbox"), RENDER, 0.0, SETTINGS)
    [file] = (tmp_path / "outbox").iterdir()
    import email
    import email.policy
    import re

    message = email.message_from_bytes(file.read_bytes(), policy=email.policy.default)
    assert message["To"] == "anna@mail.example" and message["Auto-Submitted"] == "auto-generated"
    body = message.get_content()
    [link] = re.findall(r"https?://\S+", body)
    assert re.fullmatch(r"https://desk\.example/confirm/[\w-]{20,}", link)
    assert run(people.by_token, link.rpartition("/")[2], people.Purpose.CONFIRM).id == one.recipient


def test_who_wants_to_know_of_more_is_remembered_beyond_expiry_and_for_a_year_at_most(
    database: Database, run: Any
) -> None:
    one, other = ready(database, run), submit(run, email="other@mail.example")
    run(people.confirm, other.recipient, 0.0, SETTINGS)
    person = run(people.by_token, one.token, people.Purpose.STATUS)
    run(people.tell_more, person, True)
    run(tick, 29 * DAY, SETTINGS)
    assert run(queue.get, one.job).state == "expired"
    assert run(people.by_token, one.token, people.Purpose.STATUS).email == "anna@mail.example"
    assert run(people.by_token, other.token, people.Purpose.STATUS).email is None
    assert run(tick, 31 * DAY, SETTINGS).relist == (one.job,)
    run(tick, 366 * DAY, SETTINGS)
    assert run(people.by_token, one.token, people.Purpose.STATUS).email is None
    assert run(tick, 367 * DAY, SETTINGS).relist == ()


@pytest.mark.parametrize(
    ("name", "uri"),
    [
        ("http://evil.example/ click", "http://lost.example/"),
        ("www.evil.example", "http://lost.example/"),
        ("Eve\r\nBcc: all@mail.example", "http://lost.example/?u=http://evil.example/"),
        ("Eve", "http://lost.example/http://evil.example/" + "x" * 1500),
        ("J\u2028R\x85", "http://b\u00fccher.example/"),
    ],
)
def test_what_a_user_types_adds_no_link_header_or_long_line_to_a_mail(
    name: str, uri: str, database: Database, run: Any
) -> None:
    import re

    server = Server()
    asked = parse_submission({"uri": uri, "email": "anna@mail.example", "name": name}, [])
    run(people.submit, asked, 0.0, SETTINGS)
    send_due(database, server, RENDER, 0.0, SETTINGS)
    [message] = server.got
    data = message.as_bytes().decode()
    assert re.findall(r"\w+://[^\s/]+", data) == ["https://desk.example"] and "www.evil" not in data
    assert "evil.example" not in data.partition("lost.example")[0] and message["Bcc"] is None
    assert max(len(line) for line in data.splitlines()) < 900
    assert [head.lower() for head in message.keys()].count("to") == 1  # noqa: SIM118 - not a dictionary


def test_a_mail_that_cannot_be_written_fails_and_keeps_no_other(database: Database, run: Any) -> None:
    one = submit(run)
    run(lambda c: c.change("UPDATE outbox SET facts = 'broken'"))
    submit(run, email="other@mail.example", uri="http://other.example/")
    server = Server()
    send_due(database, server, RENDER, 0.0, SETTINGS)
    assert [message["To"] for message in server.got] == ["other@mail.example"]
    failed = [row for row in run(outbox.mails) if row["state"] == "failed"]
    assert len(failed) == 1 and "cannot be written" in failed[0]["error"] and one.job


def test_what_the_server_says_of_an_address_is_kept_without_it(database: Database, run: Any) -> None:
    submit(run)
    server = Server()
    server.error = Never("the mail server answers 550", why="<Anna@mail.example> is unknown")
    send_due(database, server, RENDER, 0.0, SETTINGS)
    [row] = run(outbox.mails)
    assert row["state"] == "failed" and "(address)" in row["error"] and "anna@" not in row["error"].lower()


def test_an_outbox_folder_that_cannot_be_written_waits(database: Database, run: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    submit(run)
    assert send_due(database, FolderTransport(tmp_path / "file" / "outbox"), RENDER, 0.0, SETTINGS) == 0
    [row] = run(outbox.mails)
    assert row["state"] == "waiting" and "cannot write" in row["error"]
    assert send_due(database, FolderTransport(tmp_path / "outbox"), RENDER, 200.0, SETTINGS) == 1
