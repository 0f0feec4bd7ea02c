"""The tables of the desk, as numbered steps that are only ever added to.

Hides: what SQLite and PostgreSQL call the same thing. Each step is a function from the dialect to statements; a step
that was released is never changed. Moments are seconds since 1970, texts of several values are JSON.

    job        one recovery: state, place in the queue, lease and fence, progress, result
    recipient  one person who wants it: address, confirmation, pick-up
    token      hash of a link's secret -> recipient and purpose
    event      the history; rows are only ever added (a trigger refuses the rest)
    outbox     mails, each a row before it is sent
    removed    hash of the secret of a link to a job that is gone -> the words that answer it
    budget     requests used, pauses and rests by archive, kind of request and egress address
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

Dialect = Literal["sqlite", "postgresql"]


def _first(dialect: Dialect) -> Sequence[str]:
    serial = "INTEGER PRIMARY KEY AUTOINCREMENT" if dialect == "sqlite" else "BIGSERIAL PRIMARY KEY"
    moment = "REAL" if dialect == "sqlite" else "DOUBLE PRECISION"
    return (
        f"""CREATE TABLE job (
          id TEXT PRIMARY KEY, state TEXT NOT NULL, uri TEXT NOT NULL, site TEXT NOT NULL, wish TEXT NOT NULL,
          fingerprint TEXT NOT NULL, created {moment} NOT NULL, updated {moment} NOT NULL, place {moment} NOT NULL,
          pinned TEXT, resume_at {moment}, held INTEGER NOT NULL DEFAULT 0, fence INTEGER NOT NULL DEFAULT 0,
          lease_until {moment}, worker TEXT, crashes INTEGER NOT NULL DEFAULT 0, progress {moment} NOT NULL DEFAULT 0,
          status TEXT NOT NULL DEFAULT '{{}}', estimate {moment}, reason TEXT NOT NULL DEFAULT '',
          result TEXT NOT NULL DEFAULT '{{}}', source TEXT, log TEXT NOT NULL DEFAULT '', started {moment},
          ready_at {moment}, expires_at {moment}, relist_at {moment},
          CHECK (state NOT IN ('running', 'packing') OR lease_until IS NOT NULL))""",
        "CREATE INDEX job_queue ON job (state, place)",
        "CREATE INDEX job_fingerprint ON job (fingerprint)",
        f"""CREATE TABLE recipient (
          id TEXT PRIMARY KEY, job TEXT NOT NULL REFERENCES job (id) ON DELETE CASCADE, email TEXT, name TEXT,
          network TEXT, created {moment} NOT NULL, confirmed_at {moment}, picked_up_at {moment}, left_at {moment},
          reminders INTEGER NOT NULL DEFAULT 0, tell_more INTEGER NOT NULL DEFAULT 0)""",
        "CREATE INDEX recipient_job ON recipient (job)",
        "CREATE INDEX recipient_created ON recipient (created)",
        f"""CREATE TABLE token (
          hash TEXT PRIMARY KEY, recipient TEXT NOT NULL REFERENCES recipient (id) ON DELETE CASCADE,
          purpose TEXT NOT NULL, created {moment} NOT NULL)""",
        f"""CREATE TABLE event (
          number {serial}, at {moment} NOT NULL, job TEXT NOT NULL, action TEXT NOT NULL, before TEXT,
          after TEXT NOT NULL, actor TEXT NOT NULL, detail TEXT NOT NULL)""",
        "CREATE INDEX event_job ON event (job, number)",
        *_append_only(dialect),
        f"""CREATE TABLE outbox (
          number {serial}, kind TEXT NOT NULL, recipient TEXT, job TEXT, facts TEXT NOT NULL,
          once TEXT NOT NULL UNIQUE, message_id TEXT NOT NULL UNIQUE, state TEXT NOT NULL, created {moment} NOT NULL,
          next_at {moment} NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, sent_at {moment},
          error TEXT NOT NULL DEFAULT '')""",
        "CREATE INDEX outbox_due ON outbox (state, next_at)",
        f"""CREATE TABLE budget (
          archive TEXT NOT NULL, kind TEXT NOT NULL, egress TEXT NOT NULL, period_began {moment} NOT NULL DEFAULT 0,
          used INTEGER NOT NULL DEFAULT 0, total INTEGER NOT NULL DEFAULT 0, paused_until {moment} NOT NULL DEFAULT 0,
          PRIMARY KEY (archive, kind, egress))""",
        f"CREATE TABLE rest (archive TEXT PRIMARY KEY, since {moment} NOT NULL, reason TEXT NOT NULL)",
        f"""CREATE TABLE worker (
          name TEXT PRIMARY KEY, host TEXT NOT NULL, egress TEXT NOT NULL, state TEXT NOT NULL,
          first_seen {moment} NOT NULL, last_seen {moment} NOT NULL)""",
        f"""CREATE TABLE credential (
          name TEXT PRIMARY KEY, role TEXT NOT NULL, hash TEXT NOT NULL, created {moment} NOT NULL)""",
        f"CREATE TABLE session (hash TEXT PRIMARY KEY, csrf TEXT NOT NULL, expires {moment} NOT NULL)",
        f"""CREATE TABLE idempotency (
          key TEXT PRIMARY KEY, body TEXT NOT NULL, answer TEXT NOT NULL, created {moment} NOT NULL)""",
        f"CREATE TABLE attempt (bucket TEXT NOT NULL, at {moment} NOT NULL)",
        "CREATE INDEX attempt_bucket ON attempt (bucket, at)",
        f"""CREATE TABLE block (
          number {serial}, kind TEXT NOT NULL, pattern TEXT NOT NULL, reason TEXT NOT NULL,
          created {moment} NOT NULL)""",
        f"""CREATE TABLE takedown (
          number {serial}, uri TEXT NOT NULL, email TEXT, reason TEXT NOT NULL, state TEXT NOT NULL,
          created {moment} NOT NULL)""",
        f"""CREATE TABLE listing (
          key TEXT PRIMARY KEY, state TEXT NOT NULL, survey TEXT NOT NULL, error TEXT NOT NULL,
          created {moment} NOT NULL)""",
    )


def _append_only(dialect: Dialect) -> Sequence[str]:
    if dialect == "sqlite":
        refuse = "BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END"
        return tuple(f"CREATE TRIGGER event_no_{verb} BEFORE {verb} ON event {refuse}" for verb in ("update", "delete"))
    return (
        """CREATE FUNCTION event_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
           BEGIN RAISE EXCEPTION 'the history is append-only'; END $$""",
        """CREATE TRIGGER event_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON event
           EXECUTE FUNCTION event_refuse()""",
    )


def _languages(_dialect: Dialect) -> Sequence[str]:
    return ("ALTER TABLE recipient ADD COLUMN language TEXT",)


def _outages(dialect: Dialect) -> Sequence[str]:
    """A job that completes the result of another (`continues`), when one is tried again and how often, and the answers
    of a person about doubtful pages."""
    moment = "REAL" if dialect == "sqlite" else "DOUBLE PRECISION"
    return (
        "ALTER TABLE job ADD COLUMN continues TEXT",
        f"ALTER TABLE job ADD COLUMN retry_at {moment}",
        "ALTER TABLE job ADD COLUMN tries INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE job ADD COLUMN review TEXT NOT NULL DEFAULT '{}'",
    )


def _removed(dialect: Dialect) -> Sequence[str]:
    """Links to jobs that an operator removed: they are answered with words."""
    moment = "REAL" if dialect == "sqlite" else "DOUBLE PRECISION"
    return (f"CREATE TABLE removed (hash TEXT PRIMARY KEY, words TEXT NOT NULL, at {moment} NOT NULL)",)


MIGRATIONS: tuple[Callable[[Dialect], Sequence[str]], ...] = (_first, _languages, _outages, _removed)
