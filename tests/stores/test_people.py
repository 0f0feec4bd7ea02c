"""Submitting, confirming, sharing one recovery, limits, the blocklist and secrets, over both databases."""

from __future__ import annotations

from typing import Any

import pytest

from recollect.desk import people, queue
from recollect.desk.database import Database
from recollect.desk.jobs import Refused, Submission, parse_submission
from recollect.desk.people import BadToken, Conflict, Purpose, Submitted, TooMany
from recollect.desk.queue import Lease
from recollect.desk.settings import DAY, DeskSettings
from recollect.desk.states import State

SETTINGS = DeskSettings()


def asked(email: str = "anna@mail.example", uri: str = "http://lost.example/", **fields: Any) -> Submission:
    return parse_submission({"uri": uri, "email": email, **fields}, ["ia"])


def submit(run: Any, now: float = 0.0, email: str = "anna@mail.example", **named: Any) -> Submitted:
    given = {name: named.pop(name) for name in ("network", "key") if name in named}
    result: Submitted = run(people.submit, asked(email, **named), now, SETTINGS, **given)
    return result


def confirm(run: Any, one: Submitted, now: float = 1.0) -> State:
    state: State = run(people.confirm, one.recipient, now, SETTINGS).state
    return state


def done(database: Database, run: Any, now: float = 5.0) -> None:
    job = database.transact(lambda c: queue.claim(c, "w", now, SETTINGS, database.skip_locked))
    assert job is not None
    lease = Lease(job.id, job.fence, "w")
    run(queue.pack, lease, now, SETTINGS)
    run(lambda c: people.announce(c, queue.deliver(c, lease, now, SETTINGS, {"files": {}}), now, SETTINGS))


def test_confirming_again_changes_nothing(run: Any) -> None:
    one = submit(run)
    assert run(queue.get, one.job).state == State.PENDING
    assert [confirm(run, one, now) for now in (1.0, 2.0, 3.0)] == [State.QUEUED] * 3
    assert [row["action"] for row in run(queue.history)] == ["submit", "confirm"]


def test_the_same_submission_is_one_recovery_with_two_recipients(database: Database, run: Any) -> None:
    anna, otto = submit(run), submit(run, email="otto@mail.example")
    other = submit(run, email="otto@mail.example", at="2009")
    assert anna.job == otto.job != other.job
    assert confirm(run, anna) == State.QUEUED
    person = run(people.by_token, otto.token, Purpose.STATUS)
    assert run(lambda c: people.view(c, queue.get(c, otto.job), person, 2.0))["state"] == "pending", (
        "otto did not confirm"
    )
    confirm(run, otto)
    done(database, run)
    ready = run(lambda c: c.rows("SELECT recipient FROM outbox WHERE kind = 'ready'"))
    assert {row["recipient"] for row in ready} == {anna.recipient, otto.recipient}


def test_who_confirms_after_the_result_is_there_gets_the_mail_at_once(database: Database, run: Any) -> None:
    anna = submit(run)
    confirm(run, anna)
    done(database, run)
    otto = submit(run, 6.0, "otto@mail.example")
    assert otto.job == anna.job
    assert confirm(run, otto, 7.0) == State.READY
    assert len(run(lambda c: c.rows("SELECT 1 AS x FROM outbox WHERE kind = 'ready'"))) == 2


def test_a_job_ends_when_the_last_recipient_leaves(run: Any) -> None:
    anna, otto = submit(run), submit(run, email="otto@mail.example")
    confirm(run, anna)
    first = run(people.by_token, anna.token, Purpose.STATUS)
    assert run(people.leave, first, 2.0).state == State.QUEUED
    second = run(people.by_token, otto.token, Purpose.STATUS)
    assert run(people.leave, second, 3.0).state == State.CANCELLED
    assert run(lambda c: c.rows("SELECT email FROM recipient WHERE email IS NOT NULL")) == []


def test_an_idempotency_key_gives_the_same_job_and_one_mail(run: Any) -> None:
    one, two = (submit(run, now, key="k1") for now in (0.0, 1.0))
    assert one.job == two.job and one.recipient != two.recipient
    for each in (one, two):
        assert run(people.by_token, each.token, Purpose.STATUS).id == each.recipient, "no token of another request"
    assert len(run(lambda c: c.rows("SELECT 1 AS x FROM outbox"))) == 1
    with pytest.raises(Conflict):
        submit(run, 2.0, key="k1", uri="http://other.example/")


def test_secrets_are_stored_hashed_and_serve_one_purpose(run: Any) -> None:
    one = submit(run)
    link = run(people.issue, one.recipient, Purpose.CONFIRM, 0.0)
    assert run(people.by_token, link, Purpose.CONFIRM).id == one.recipient
    for token, purpose in ((link, Purpose.STATUS), (one.token, Purpose.CONFIRM), ("", Purpose.STATUS)):
        with pytest.raises(BadToken):
            run(people.by_token, token, purpose)
    tables = ("token", "job", "recipient", "event", "outbox")
    dump = str([run(lambda c, t=t: c.rows(f"SELECT * FROM {t}")) for t in tables])
    assert link not in dump and one.token not in dump
    assert "anna" not in str([run(lambda c, t=t: c.rows(f"SELECT * FROM {t}")) for t in ("event", "outbox", "attempt")])


def test_limits_by_address_site_and_network(run: Any) -> None:
    settings = DeskSettings(per_address=2, per_site=3, per_network=4)

    def one(email: str, uri: str, network: str = "", now: float = 0.0) -> None:
        run(people.submit, asked(email, uri), now, settings, network=network)

    one("a@x.example", "http://s1.example/")
    one("A@x.example", "http://s2.example/")
    with pytest.raises(TooMany, match="address"):
        one("a@x.example", "http://s3.example/")
    for name in "bc":
        one(f"{name}@x.example", "http://www.s1.example/b")
    with pytest.raises(TooMany, match="site"):
        one("d@x.example", "http://s1.example/c")
    for number in range(4):
        one(f"n{number}@x.example", f"http://t{number}.example/", people.network_of(f"192.0.2.{number}"))
    with pytest.raises(TooMany, match="network"):
        one("n9@x.example", "http://t9.example/", people.network_of("::ffff:192.0.2.77"))
    one("a@x.example", "http://s3.example/", now=DAY + 1)


def test_networks_of_addresses() -> None:
    assert people.network_of("192.0.2.77") == "192.0.2.0/24"
    assert people.network_of("2001:db8:1:2::3") == "2001:db8:1::/48"
    assert people.network_of("unknown") == "unknown"


def test_the_blocklist_names_its_reason(run: Any) -> None:
    for kind, pattern in (("site", "lost.example"), ("address", "@spam.example")):
        values = (kind, pattern, "the owner asked us")
        sql = "INSERT INTO block (kind, pattern, reason, created) VALUES (?, ?, ?, 0)"
        run(lambda c, values=values, sql=sql: c.change(sql, *values))
    for email, uri in (("a@x.example", "http://sub.lost.example/"), ("a@spam.example", "http://fine.example/")):
        with pytest.raises(Refused, match="the owner asked us"):
            run(people.submit, asked(email, uri), 0.0, SETTINGS)
    run(people.submit, asked("a@x.example", "http://notlost.example/"), 0.0, SETTINGS)


def test_a_full_queue_refuses(run: Any) -> None:
    settings = DeskSettings(max_queue=1)
    run(people.submit, asked(), 0.0, settings)
    with pytest.raises(TooMany, match="full"):
        run(people.submit, asked(uri="http://b.example/"), 0.0, settings)


def test_asking_again_and_again_sends_one_mail_an_hour(run: Any) -> None:
    for now in (0.0, 10.0, 1000.0, 3700.0):
        submit(run, now)
    assert len(run(lambda c: c.rows("SELECT 1 AS x FROM outbox WHERE kind = 'confirm'"))) == 2


@pytest.mark.parametrize(
    "typed", ["Lost.Example.", "http://LOST.example:8080/x", "*.lost.example", "user@lost.example"]
)
@pytest.mark.parametrize(
    "uri",
    ["http://lost.example/", "https://WWW.LOST.EXAMPLE.:443/", "lost.example:8080/a", "http://lost\u3002example/"],
)
def test_a_blocked_site_is_blocked_in_every_spelling(typed: str, uri: str, run: Any) -> None:
    run(people.block, "site", typed, "the reason", 0.0)
    with pytest.raises(Refused, match="not recovered here") as refused:
        run(people.check_blocked, asked(uri=uri))
    assert refused.value.why == "the reason"
    run(people.check_blocked, asked(uri="http://notlost.example/"))


@pytest.mark.parametrize("typed", ["b\u00fccher.example", "XN--BCHER-KVA.example", "https://B\u00dcCHER.example/"])
@pytest.mark.parametrize("uri", ["http://b\u00fccher.example/", "http://shop.xn--bcher-kva.example/"])
def test_a_blocked_site_of_another_script_has_two_spellings(typed: str, uri: str, run: Any) -> None:
    run(people.block, "site", typed, "no", 0.0)
    with pytest.raises(Refused):
        run(people.check_blocked, asked(uri=uri))


@pytest.mark.parametrize("typed", ["@Mail.example", "mail.example", "ANNA@mail.example", "@mail.example."])
def test_a_blocked_address_or_domain(typed: str, run: Any) -> None:
    run(people.block, "address", typed, "no", 0.0)
    with pytest.raises(Refused):
        run(people.check_blocked, asked("Anna@MAIL.example"))
    run(people.check_blocked, asked("anna@othermail.example"))


@pytest.mark.parametrize(
    ("kind", "typed"), [("site", ""), ("site", "a b"), ("site", "//"), ("address", "@"), ("address", "a b@c")]
)
def test_a_pattern_that_blocks_nothing_is_refused(kind: str, typed: str, run: Any) -> None:
    with pytest.raises(Refused):
        run(people.block, kind, typed, "no", 0.0)
