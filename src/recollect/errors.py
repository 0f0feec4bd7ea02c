"""The one tree of errors.

Every error that a caller may want to handle descends from `RecollectError`. A message says
what, where and why; `hint` names the next step, usually a command. The command line prints
"what: where: why" and the hint, and exits with `exit_code`.
"""

from __future__ import annotations


class RecollectError(Exception):
    """An error with a message for users; the base of all others."""

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
    """The caller gave arguments that make no sense."""

    exit_code = 2


class BadURI(RecollectError):
    """A string that is not a URI, or that has no key."""


class FormatError(RecollectError):
    """Bytes that break their format, with file and line where known."""


class NotSorted(FormatError):
    """A file that must be sorted by bytes is not."""


class ResourceError(RecollectError):
    """The machine lacks resources: disk space, memory, file handles."""


class ArchiveError(RecollectError):
    """An archive failed to answer. Absence is not a failure and never raises this."""

    kind = "error"


class ArchiveTimeout(ArchiveError):
    """The archive did not answer before the deadline."""

    kind = "timeout"


class ArchiveUnreachable(ArchiveError):
    """No connection: the name does not resolve, the port is closed, TLS fails, or the connection broke early."""

    kind = "unreachable"


class ArchiveThrottled(ArchiveError):
    """The archive asked for a pause (429, Retry-After) that lasts longer than the caller can wait."""

    kind = "throttled"


class AnswerTooBig(ArchiveError):
    """The response is larger than the caller allows."""

    kind = "too big"


class BadAnswer(ArchiveError):
    """Not a valid HTTP response, or a body that is cut short."""

    kind = "bad answer"


class AnswerCutShort(BadAnswer):
    """The body ended before its announced length or last chunk; another attempt may get all of it."""


class RequestRefused(ArchiveError):
    """The request was not sent: the URL is not on a host of the archive, or cannot be sent safely."""

    kind = "refused"
