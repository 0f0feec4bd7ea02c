"""The one tree of errors.

Hides nothing; every error a caller may want to answer descends from `RecollectError`. A message says
what, where and why; `hint` names the next step, usually a command. The command line prints
"what: where: why" and the hint, and exits with `exit_code`.
"""

from __future__ import annotations


class RecollectError(Exception):
    """Something a caller can be told about in plain words."""

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", why: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.why = why
        self.hint = hint

    def __str__(self) -> str:
        return ": ".join(part for part in (self.what, self.where, self.why) if part)

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions with keyword-only fields do not survive pickling between processes by themselves.
        return (_rebuild, (type(self), self.what, self.where, self.why, self.hint))


def _rebuild(kind: type[RecollectError], what: str, where: str, why: str, hint: str) -> RecollectError:
    return kind(what, where=where, why=why, hint=hint)


class UsageError(RecollectError):
    """The caller asked for something that cannot be meant."""

    exit_code = 2


class BadURI(RecollectError):
    """A string that is no URI, or of which no key can be made."""


class FormatError(RecollectError):
    """Bytes that break their format, with file and line where known."""


class NotSorted(FormatError):
    """A file that must be sorted by bytes is not."""


class ResourceError(RecollectError):
    """The machine lacks room: disk, memory, file handles."""


class ArchiveError(RecollectError):
    """A remote archive failed to answer (absence is not a failure, and never raises this)."""

    kind = "error"


class ArchiveTimeout(ArchiveError):
    """The archive did not answer before the deadline."""

    kind = "timeout"


class ArchiveUnreachable(ArchiveError):
    """No connection: the name does not resolve, nobody listens, TLS fails, or the line broke before an answer."""

    kind = "unreachable"


class ArchiveThrottled(ArchiveError):
    """The archive asked for a pause (429, Retry-After) that lasts longer than the caller can wait."""

    kind = "throttled"


class AnswerTooBig(ArchiveError):
    """The answer is larger than the caller allows."""

    kind = "too big"


class BadAnswer(ArchiveError):
    """Bytes that are no HTTP answer, or a body cut short."""

    kind = "bad answer"


class AnswerCutShort(BadAnswer):
    """The body ended before the length or the last chunk that was announced; another try may get all of it."""


class RequestRefused(ArchiveError):
    """We did not ask: the URL is not one of the archive's own hosts, or cannot be sent safely."""

    kind = "refused"
