"""The access log: one JSON object a line (docs/aggregator.md, section Access log).

Hides: buffering, and reopening after rotation. Lines are whole: several workers may write to one file, because each
write is one system call in append mode. A log that cannot be written (a full disk) loses lines and says so, once; it
never fails a request.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from recollect.aggregator.http.target import without_user
from recollect.aggregator.outcomes import OutcomeKind
from recollect.aggregator.service import LookupResult

log = logging.getLogger("recollect.web")

_FLUSH_BYTES = 32 * 1024
_LONGEST = 500


def caller_of(request: web.BaseRequest, trusted_proxies: str) -> dict[str, str]:
    """Who asked, and for when: `client`, `agent`, `referer` and `datetime` (Accept-Datetime), those that are known. The
    address is that of the connection, or, if this is a trusted proxy, the last one in X-Forwarded-For that is not."""
    address = request.remote or ""
    trusted = {one.strip() for one in trusted_proxies.split(",") if one.strip()}
    forwarded = ",".join(request.headers.getall("X-Forwarded-For", ())).split(",")
    while address in trusted and forwarded:
        address = forwarded.pop().strip() or address
    said = {
        "client": address,
        "agent": request.headers.get("User-Agent", ""),
        "referer": without_user(request.headers.get("Referer", "")[:_LONGEST]),
        "datetime": request.headers.get("Accept-Datetime", ""),
    }
    return {name: value[:_LONGEST] for name, value in said.items() if value}


class AccessLog:
    """Lines for lookups, written in batches; `flush` is called every second and at the end."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lines: list[str] = []
        self._size = 0
        self._failed = False
        self._fd = self._open()

    def _open(self) -> int:
        if self._path == "-":
            return sys.stdout.fileno()
        return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def lookup(
        self,
        endpoint: str,
        uri_r: str,
        status: int,
        seconds: float,
        answer: LookupResult | None,
        caller: Mapping[str, str] | None = None,
    ) -> None:
        record: dict[str, Any] = {
            "at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "uri": uri_r,
            "status": status,
            "endpoint": endpoint,
            "ms": round(seconds * 1000, 1),
            **(caller or {}),
        }
        if answer is not None:
            record["cache"] = answer.cache
            record["archives"] = {o.archive: o.count for o in answer.outcomes if o.kind is not OutcomeKind.ERROR}
            record["times"] = {o.archive: round(o.elapsed * 1000) for o in answer.outcomes}
            failed = {o.archive: o.error or "partial" for o in answer.failed}
            if failed:
                record["failed"] = failed
            record["skipped"] = [decision.archive for decision in answer.skipped]
        line = json.dumps(record, separators=(",", ":")) + "\n"
        self._lines.append(line)
        self._size += len(line)
        if self._size > _FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        if not self._lines:
            return
        data, lines = "".join(self._lines).encode(), len(self._lines)
        self._lines, self._size = [], 0
        try:
            while data:
                data = data[os.write(self._fd, data) :]
            self._failed = False
        except OSError as error:
            if not self._failed:
                log.error("the access log loses lines (%d so far): %s: %s", lines, self._path, error.strerror)
            self._failed = True

    def reopen(self) -> None:
        """After the file was moved away (log rotation)."""
        self.flush()
        if self._path != "-":
            os.close(self._fd)
            self._fd = self._open()

    def close(self) -> None:
        self.flush()
        if self._path != "-":
            os.close(self._fd)
