"""Commands about maps as files: validate."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from recollect.cli.console import emit_json, json_option, talk
from recollect.formats.ukvs import Fault
from recollect.formats.ukvs import validate as faults_of

VALIDATE_EPILOG = """\b
Examples:
  recollect validate map.ukvs
  recollect validate maps/*.ukvs.gz --limit 0      every fault of every map
  zcat map.ukvs.gz | recollect validate -
  recollect validate map.ukvs --json | jq .files[].counts

\b
Errors break the format, or hide records from readers and searches; notes harm nobody.
Exit code: 0 no errors, 1 errors (or a file that cannot be read), 2 wrong usage.
"""


@click.command(epilog=VALIDATE_EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--limit", default=100, show_default=True, help="Print at most so many faults per file; 0 prints all.")
@click.option("--strict", is_flag=True, help="Stop at the first error.")
@json_option
def validate(files: tuple[str, ...], limit: int, strict: bool, as_json: bool) -> int:
    """Name every fault of maps (UKVS files, plain or compressed; - is stdin) with its line and reason."""
    reports = []
    for file in files:
        report = _report(file, limit, strict, quiet=as_json)
        reports.append(report)
        if strict and report["errors"]:
            break
    if as_json:
        emit_json({"clean": not any(report["errors"] for report in reports), "files": reports})
    return 1 if any(report["errors"] for report in reports) else 0


def _report(file: str, limit: int, strict: bool, *, quiet: bool) -> dict[str, Any]:
    """Go through one file, printing faults as they are found unless `quiet`."""
    counts: Counter[tuple[str, str]] = Counter()
    kept: list[dict[str, Any]] = []
    for fault in _faults(file):
        counts[fault.level, fault.code] += 1
        if not limit or counts.total() <= limit:
            if quiet:
                kept.append(fault._asdict())
            else:
                click.echo(_sentence(file, fault))
        if strict and fault.level == "error":
            break
    errors = sum(count for (level, _), count in counts.items() if level == "error")
    report = {
        "file": file,
        "errors": errors,
        "notes": counts.total() - errors,
        "counts": {code: count for (_, code), count in sorted(counts.items())},
        "faults": kept,
    }
    if not quiet:
        _summarise(report, counts.total() - limit if limit else 0)
    return report


def _faults(file: str) -> Any:
    try:
        yield from faults_of(file)
    except OSError as error:
        yield Fault(None, "error", "unreadable", f"cannot be read: {error.strerror or error}")


def _sentence(file: str, fault: Fault) -> str:
    place = file if fault.line is None else f"{file}:{fault.line}"
    return f"{place}: {fault.level}: {fault.reason}" + (f": {fault.excerpt}" if fault.excerpt else "")


def _summarise(report: dict[str, Any], unprinted: int) -> None:
    if unprinted > 0:
        talk(f"{report['file']}: {unprinted:,} more faults are not printed; see them with --limit 0")
    if not report["counts"]:
        talk(f"{report['file']}: clean")
        return
    kinds = ", ".join(f"{count:,} {code}" for code, count in report["counts"].items())
    verdict = "not clean" if report["errors"] else "clean, with notes"
    talk(f"{report['file']}: {verdict}: {report['errors']:,} errors, {report['notes']:,} notes ({kinds})")
