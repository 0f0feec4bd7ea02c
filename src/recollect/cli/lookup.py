"""`recollect lookup`: look up URIs in maps."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.console import emit_json_line, emit_table, json_option, lines_of, talk
from recollect.errors import BadURI, FormatError, UsageError
from recollect.model import Answer, Problem

if TYPE_CHECKING:
    from recollect.formats.ukvs.periods import Period
    from recollect.maps.lookup import Holdings, Lookup
    from recollect.maps.scope import Query

LOOKUP_EPILOG = """\b
Examples:
  recollect lookup map.ukvs http://example.com/a/b
  recollect lookup maps/*.ukvs http://example.com/               which archives to ask
  recollect lookup map.ukvs --from urls.txt > answers.tsv        URI, answer, deciding key, frequency
  recollect lookup map.ukvs --from - --json < surts.txt
  recollect lookup by-year.ukvs http://example.com/ --datetime 2014
  recollect lookup by-type.ukvs http://example.pt/ --language pt --media-type 'image/*'
  recollect lookup map.ukvs 'com,example)/2009/*' 'pt,roda,*'    does anything lie below a partial key?

\b
MAP is a map (plain, or compressed by recollect: .gz, .zst), a folder of parts, or a filter. Arguments that are files or
folders are maps, the others are URIs (or SURTs); put -- between them if a URI is also the name of a file.
Answers: yes, no, unknown. A map says no only within its scope: a map of text/html does not answer for logo.png, a map
up to 2024 not for 2025; the answer is then unknown, with the reason. So it is for a map of voids without a key for the
URI, and for a frequency of /.
"""


@click.command(epilog=LOOKUP_EPILOG)
@click.argument("arguments", nargs=-1, required=True, metavar="MAP... [URI...]")
@click.option(
    "--from",
    "sources",
    multiple=True,
    metavar="FILE",
    help="Look up the URIs of a list, table or log, or the keys of a map; - is a list on stdin. Repeatable.",
)
@click.option(
    "--datetime",
    "moment",
    metavar="TIME",
    help="Count only captures of this period, in maps with times: 2014, 2014-06:2016.",
)
@click.option(
    "--status",
    default="",
    metavar="STATUS",
    help="Look for captures with this status (404, 3xx, any), in maps of captures with others: unknown.",
)
@click.option(
    "--language",
    default="",
    metavar="LANGUAGE",
    help="Count only captures in this language (pt), in maps divided by language; in others: unknown.",
)
@click.option(
    "--media-type",
    default="",
    metavar="TYPE",
    help="Count only captures of this media type (image/*), in maps divided by it; in others: unknown.",
)
@json_option
@click.option("-q", "--quiet", is_flag=True, help="No summary.")
def lookup(
    arguments: tuple[str, ...],
    sources: tuple[str, ...],
    moment: str | None,
    status: str,
    language: str,
    media_type: str,
    as_json: bool,
    quiet: bool,
) -> int:
    """Look up URIs in maps: the deciding key, its frequency, and the answer yes, no or unknown."""
    from recollect.formats.mapfiles import expect_map
    from recollect.maps.lookup import open_map
    from recollect.maps.scope import ANY

    paths, uris = _sorted_out(arguments)
    if "-" in uris:
        uris, sources = [uri for uri in uris if uri != "-"], (*sources, "-")
    if not uris and not sources:
        raise UsageError("no URI to look up", hint="recollect lookup MAP URI, or --from FILE")
    for path in paths:
        expect_map(path)
        if Path(path).is_file() and not Path(path).stat().st_size:
            raise UsageError(
                "not a map", where=path, why="it is empty", hint="the archive holds nothing, or writing failed"
            )
    query = _query(moment, status, language, media_type)
    maps = {name: open_map(path) for name, path in _named(paths).items()}
    tally = AnswerCounts()
    in_turn: list[str | None] = [*sources] or [None]
    for source in in_turn:
        given = uris if source == in_turn[0] else []
        if source is not None and _is_map(source):
            _answer(maps, _chained(given, _keys_of(source)), query, tally, as_json=as_json, people=False)
            continue
        columns = source is not None and _is_table(source)
        plain = source is not None and not given and not as_json and not columns and query == ANY
        if source is not None and plain and _in_bulk(maps, source, tally):
            continue
        lines = iter(()) if source is None else _urls(source, tally) if columns else lines_of(source)
        wanted = [*given] if source is None else _chained(given, lines)
        _answer(maps, wanted, query, tally, as_json=as_json, people=source is None)
    if not quiet and sources:
        talk(f"{tally.total:,} looked up: {tally.summary()}")
    for line, why in tally.bad[:5]:
        talk(f"not a URI: {line!r}: {why}")
    if len(tally.bad) > 5:
        talk(f"... and {len(tally.bad) - 5:,} more that are not URIs")
    if tally.bad and len(tally.bad) == tally.total:
        return 1
    return 3 if tally.bad else 0


def _query(moment: str | None, status: str, language: str, media_type: str) -> Query:
    from recollect.maps.scope import Query

    wanted = status.strip().lower()
    if wanted not in ("", "any") and not re.fullmatch(r"[1-9](?:\d\d|\dx|xx)", wanted):
        raise UsageError("not a status", where="--status", why=repr(status), hint="404, 3xx, or any")
    return Query(
        at=_period(moment) if moment else None,
        status="" if wanted == "any" else wanted,
        any_status=wanted == "any",
        media_type="" if "*" in media_type else media_type.strip().lower(),
        conditions=tuple(
            (name, value.strip())
            for name, value in (("language", language), ("media_type", media_type), ("status", wanted))
            if value.strip() and value != "any"
        ),
    )


def _period(moment: str) -> Period:
    from recollect.maps.lookup import period_of

    try:
        return period_of(moment)
    except (FormatError, UsageError) as error:
        raise UsageError("not a period", where="--datetime", why=str(error), hint="2014, 2014-06, 2014:2016") from None


class AnswerCounts:
    """What was answered, for the last line and the exit code."""

    def __init__(self) -> None:
        self.total = 0
        self.answers: Counter[str] = Counter()
        self.bad: list[tuple[str, str]] = []

    def summary(self) -> str:
        return ", ".join(f"{count:,} {answer}" for answer, count in self.answers.most_common())


# A URI has a scheme, a SURT a parenthesis; no host has such a name.
_MAP_NAME = re.compile(r"[^:)]+\.(?:ukvs|filter)(?:\.(?:gz|bgz|zst|zstd|bz2))?")


def _sorted_out(arguments: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Maps first: every argument up to the last that is there on disk; what follows are URIs, unless they are named
    like maps."""
    count = 1
    while count < len(arguments) and Path(arguments[count]).exists():
        count += 1
    missing = [name for name in arguments[count:] if _MAP_NAME.fullmatch(name)]
    if not Path(arguments[0]).exists():
        missing = [arguments[0]]
    if missing:
        raise UsageError("no such map", where=missing[0], hint="recollect lookup MAP... URI...")
    return list(arguments[:count]), list(arguments[count:])


def _named(paths: list[str]) -> dict[str, str]:
    """Short names for maps: the file's name without endings, longer where that is not unique."""
    short = {path: Path(path).name.split(".")[0] or Path(path).name for path in paths}
    counts = Counter(short.values())
    return {(name if counts[name] == 1 else path): path for path, name in short.items()}


def _chained(uris: Iterable[str], lines: Iterator[str]) -> Iterator[str]:
    yield from uris
    for line in lines:
        yield line.strip()


# In a list of URIs and SURTs few lines have these; what a line is then, all of them decide.
_APART = re.compile(rb'[ \t;|{"]|^[^)\n]*,[^)\n]*$', re.MULTILINE)
_HEAD = 1 << 16


def _is_map(source: str) -> bool:
    """Whether a file of `--from` is a map, of which the keys are looked up; its whole lines are not URIs."""
    if not Path(source).is_file():
        return False
    from recollect.formats.containers import open_input

    with open_input(source, lambda _damage: None) as stream:
        head = stream.preview(_HEAD)
    if not _APART.search(head):
        return False
    from recollect.formats.detect import Kind, kind_of_text

    return kind_of_text(head)[0] is Kind.MAP


def _keys_of(source: str) -> Iterator[str]:
    talk(f"{source} is a map: its keys are looked up")
    for line in lines_of(source):
        if not line.startswith("!"):
            yield line.split(None, 1)[0]


def _is_table(source: str) -> bool:
    """Whether a file is a table or log, of which only the URLs are looked up; its whole lines would never be held."""
    if not Path(source).is_file():
        return False  # the lines of a pipe are answered as they come
    from recollect.formats.containers import open_input

    with open_input(source, lambda _damage: None) as stream:
        if not _APART.search(stream.preview(_HEAD)):
            return False
        from recollect.formats.forms import Style
        from recollect.formats.logs import form_of

        form = form_of(stream)
    return form is not None and form.style is not Style.LIST


def _urls(source: str, tally: AnswerCounts) -> Iterator[str]:
    """The URLs of a table or log; what it was read as is reported, and lines that cannot be read are counted."""
    from recollect.formats.logs import read_lookups

    def unreadable(problem: Problem) -> None:
        tally.total += 1
        tally.answers[Answer.UNKNOWN] += 1
        tally.bad.append((problem.excerpt, problem.reason))

    lookups = read_lookups(source, unreadable)
    for entry in lookups:
        yield entry.uri
    for form in lookups.forms.values():
        talk(f"read as {form}")


def _in_bulk(maps: dict[str, Holdings], source: str, tally: AnswerCounts) -> bool:
    """The fast path for one plain map: text to text. False if it does not apply."""
    from recollect.formats.containers import open_input, whole_lines
    from recollect.maps.bulk import PIECE, bulk_lookup, can_answer
    from recollect.maps.lookup import MementoMap

    (opened, *others) = maps.values()
    if others or not can_answer(opened):
        return False
    assert isinstance(opened, MementoMap)
    with open_input(source) as stream:
        for answers in bulk_lookup(opened, whole_lines(stream, size=PIECE)):
            sys.stdout.buffer.write(answers.text)
            tally.answers.update({Answer.YES: answers.yes, Answer.NO: answers.no, Answer.UNKNOWN: answers.unknown})
            tally.total += answers.yes + answers.no + answers.unknown
            tally.bad += answers.bad
    sys.stdout.buffer.flush()
    return True


def _answer(
    maps: dict[str, Holdings],
    uris: Iterable[str],
    query: Query,
    tally: AnswerCounts,
    *,
    as_json: bool,
    people: bool,
) -> None:
    """Answer one by one: JSON lines, a table for people, or lines of tabs."""
    rows: list[list[str]] = []
    several = len(maps) > 1
    for uri, found in _verdicts(maps, uris, query, tally):
        if as_json:
            emit_json_line(_document(uri, found, maps))
        elif people:
            rows.append(_row(uri, found, maps) if several else _fields(uri, found, maps, people=people))
        else:
            click.echo("\t".join(_fields(uri, found, maps, people=people)))
    if people and not as_json:
        _show(["URI", *maps, "ask"] if several else ["URI", "answer", "key", "frequency"], rows)


def _show(columns: list[str], rows: list[list[str]]) -> None:
    """A table, with a column of reasons if a row has one."""
    if any(len(row) > len(columns) for row in rows):
        columns = [*columns, "reason"]
        rows = [[*row, *[""] * (len(columns) - len(row))] for row in rows]
    emit_table(columns, rows)


def _verdicts(
    maps: dict[str, Holdings], uris: Iterable[str], query: Query, tally: AnswerCounts
) -> Iterator[tuple[str, dict[str, Lookup] | str]]:
    """The answers of all maps for each URI, or why it is not a URI."""
    for uri in uris:
        tally.total += 1
        try:
            found = {name: opened.lookup(uri, query) for name, opened in maps.items()}
        except BadURI as error:
            why = error.why or str(error)
            tally.bad.append((uri, why))
            tally.answers[Answer.UNKNOWN] += 1
            yield uri, why
            continue
        tally.answers[_overall(found)] += 1
        yield uri, found


def _overall(found: dict[str, Lookup]) -> str:
    answers = {one.answer for one in found.values()}
    return next(answer for answer in (Answer.YES, Answer.UNKNOWN, Answer.NO) if answer in answers)


def _document(uri: str, found: dict[str, Lookup] | str, maps: dict[str, Holdings]) -> dict[str, Any]:
    if isinstance(found, str):
        return {"uri": uri, "answer": Answer.UNKNOWN, "key": None, "frequency": None, "error": found}
    if len(found) == 1:
        ((name, only),) = found.items()
        return {"uri": uri, **_said(only, maps[name])}
    return {
        "uri": uri,
        "answer": _overall(found),
        "ask": [name for name, one in found.items() if one.answer != Answer.NO],
        "maps": {name: _said(one, maps[name]) for name, one in found.items()},
    }


def _said(one: Lookup, opened: Holdings) -> dict[str, Any]:
    said = {
        "answer": one.answer,
        "key": None if one.key is None else one.key.decode("utf-8", "replace"),
        "frequency": None if one.frequency is None else str(one.frequency),
    }
    reason = one.reason(opened.scope)
    said |= {"reason": reason} if reason else {}
    return said | ({"code": one.limit.kind.value} if one.limit else {})


def _cells(one: Lookup) -> list[str]:
    key = "-" if one.key is None else one.key.decode("utf-8", "replace")
    return [one.answer, key, "-" if one.frequency is None else str(one.frequency)]


def _row(uri: str, found: dict[str, Lookup] | str, maps: dict[str, Holdings]) -> list[str]:
    """One column per map: its answer, frequency and, if it is not the URI's own, the deciding key."""
    if isinstance(found, str):
        return [uri, *(Answer.UNKNOWN for _ in maps), "", found]
    cells = []
    for one in found.values():
        answer, key, frequency = _cells(one)
        cells.append(f"{answer} {frequency} {key}" if key.endswith("*") else f"{answer} {frequency}".removesuffix(" -"))
    ask = [name for name, one in found.items() if one.answer != Answer.NO]
    reasons = [f"{name}: {why}" for name, one in found.items() if (why := one.reason(maps[name].scope))]
    return [uri, *cells, ", ".join(ask) or "none", *(["; ".join(reasons)] if reasons else [])]


def _fields(uri: str, found: dict[str, Lookup] | str, maps: dict[str, Holdings], *, people: bool) -> list[str]:
    """`URI answer key frequency` for one map, and why if the answer is unknown for its scope; for several `URI answer`
    and the maps to ask, then one answer per map."""
    if isinstance(found, str):
        return [uri, Answer.UNKNOWN, "-", "-"]
    if len(found) == 1:
        ((name, only),) = found.items()
        reason = only.reason(maps[name].scope) if people or only.limit else ""
        return [uri, *_cells(only), *([reason] if reason else [])]
    ask = ",".join(name for name, one in found.items() if one.answer != Answer.NO)
    return [uri, _overall(found), ask or "-", *(f"{name}={one.answer}" for name, one in found.items())]
