"""The page for people: type a URI, see its captures on a timeline across archives, and who was asked.

Hides: HTML. Pages work without script; what script there is adds tooltips. They are sent in pieces, so that a reader
sees who answered while others are still being waited for. Everything that came from outside is escaped, links lead to
http(s) only, and the content policy allows only the style sheet and script of this server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from html import escape
from urllib.parse import urlencode, urlsplit

from recollect import __version__
from recollect.aggregator.explain import reason_words
from recollect.aggregator.http.timeline import COLOURS, MONTHS, day, in_order, timeline
from recollect.aggregator.outcomes import Outcome, OutcomeKind
from recollect.aggregator.service import LARGE, Aggregator, LookupRequest, LookupResult
from recollect.archives.registry import Archive
from recollect.errors import RecollectError
from recollect.formats.timemap import MEDIA_TYPES, Mementos, Place
from recollect.quantities import counted
from recollect.routing.choice import Decision

LISTED_PER_YEAR = 60
"""Captures listed under one year; the TimeMap has them all."""
UNFOLDED = 20
"""Captures up to which all years are open."""
_WRITTEN = 1 << 16


def home_page(archives: Sequence[Archive], root: str = "") -> str:
    """Where one types a URI. `root` is the path under which this server lies, without a slash at the end."""
    asked = [archive for archive in archives if not archive.ignore]
    names = "".join(f"<li>{escape(archive.name)}</li>" for archive in asked)
    return (
        _head("Recollect", root)
        + '<main class="intro"><h1>See what a page used to be.</h1>'
        + "<p>Type the address of a page, also of one that is long gone. Recollect asks the web archives that may hold "
        "it, and shows all captures on one timeline.</p>"
        + _form("", root)
        + f'<p class="note">{counted(len(asked), "archive")} can be asked:</p><ul>{names}</ul></main>'
        + _foot(root)
    )


def problem_page(what: str, why: str, uri: str = "", root: str = "") -> str:
    """A sentence about what went wrong, and the form to try again."""
    return _head(what, root, _form(uri, root)) + _problem(what, why) + _foot(root)


def _problem(what: str, why: str) -> str:
    return f'<section class="card problem"><h2>{escape(what)}</h2><p>{escape(why)}</p></section>'


def onward_page(address: str, root: str = "") -> str:
    """A page that redirects at once."""
    place = escape(address)
    go = f'<meta http-equiv="refresh" content="0;url={place}">'
    return _head("Going to the capture", root, extra=go) + f'<p><a href="{place}">To the capture</a></p>' + _foot(root)


async def captures_page(
    aggregator: Aggregator, lookup: LookupRequest, place: Place, desk: str = ""
) -> AsyncIterator[str]:
    """The page of one resource, in pieces: the form, the archives as they answer, then everything.

    `desk` is the address of a recovery desk, if there is one.
    """
    names = {archive.id: archive.name for archive in aggregator.archive_set.archives}
    arrived: asyncio.Queue[Outcome] = asyncio.Queue()
    root = escape(urlsplit(place.base).path)
    yield _head(f"Captures of {lookup.uri_r}", root, _form(lookup.uri_r, root))
    count = sum(decision.ask for decision in aggregator.route(lookup.uri_r, lookup.chosen))
    asked = f"Asking {counted(count, 'archive')} about <b>{escape(lookup.uri_r)}</b>"
    yield f'<section class="card asking" role="status"><h2>{asked}</h2><ul>'
    asking = asyncio.ensure_future(aggregator.timemaps(replace(lookup, on_outcome=arrived.put_nowait)))
    try:
        while not asking.done() or not arrived.empty():
            next_one = asyncio.ensure_future(arrived.get())
            await asyncio.wait({asking, next_one}, return_when=asyncio.FIRST_COMPLETED)
            if next_one.done():
                yield f"<li>{_answered(next_one.result(), names)}</li>"
            else:
                next_one.cancel()
        answer = await asking
    except RecollectError as error:
        yield f'</ul></section><main class="result">{_problem("This did not work", str(error))}</main>{_foot(root)}'
        return
    finally:
        asking.cancel()
    yield "</ul></section>"
    result = _result(answer, place, names, desk)
    # Of many captures the timeline and the list are made in a thread, so that other clients do not wait.
    for piece in result if len(answer.mementos) < LARGE else await asyncio.to_thread(_joined, result):
        yield piece
    yield _foot(root)


def _joined(pieces: Iterator[str]) -> list[str]:
    """The same text in fewer pieces: each of them is one write."""
    joined: list[str] = []
    waiting: list[str] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= _WRITTEN:
            joined.append("".join(waiting))
            waiting, size = [], 0
    return [*joined, "".join(waiting)]


def _answered(outcome: Outcome, names: dict[str, str]) -> str:
    said = counted(outcome.count, "capture") if outcome.kind is OutcomeKind.MEMENTOS else outcome.error or "none"
    return f"<b>{escape(names.get(outcome.archive, outcome.archive))}</b> {escape(said)}"


def _result(answer: LookupResult, place: Place, names: dict[str, str], desk: str) -> Iterator[str]:
    mementos = answer.mementos
    yield '<main class="result">'
    yield _summary(answer, place)
    if desk and mementos.rows:
        address = f"{desk.rstrip('/')}/survey?{urlencode({'uri': answer.uri_r})}"
        yield (
            '<section class="card"><p>Is it your lost site? '
            f'<a href="{escape(address)}" rel="noreferrer">Get this site back</a></p></section>'
        )
    if mementos.rows:
        yield f'<section class="card wide"><div class="scroll">{timeline(mementos, names)}</div></section>'
        yield _go_to(answer.uri_r, mementos, escape(urlsplit(place.base).path))
    yield _archives(answer, names)
    if mementos.rows:
        yield from _list(mementos, place, names)
    yield "</main>"


def _summary(answer: LookupResult, place: Place) -> str:
    mementos = answer.mementos
    shown = f'<b class="uri">{escape(answer.uri_r)}</b>'
    if not mementos.rows:
        missing = "" if not answer.failed and not answer.unheard else " But not every archive answered, see below."
        return f'<section class="card summary"><h2>No captures found</h2><p>of {shown}.{missing}</p></section>'
    first, last = mementos[0], mementos[-1]
    holders = len({archive for _, archive, _ in mementos.rows})
    formats = " · ".join(f'<a href="{escape(_local(place, kind))}">{kind}</a>' for kind in MEDIA_TYPES)
    warning = ""
    if answer.failed or answer.unheard:
        count = len({o.archive for o in answer.failed} | {d.archive for d in answer.unheard})
        warning = f'<p class="warning">This may not be all: {counted(count, "archive")} did not answer.</p>'
    return (
        '<section class="card summary">'
        f"<h2>{counted(len(mementos), 'capture')} in {counted(holders, 'archive')}</h2>"
        f"<p>of {shown}</p>"
        f'<p>from <a href="{escape(first.uri)}" rel="noreferrer">{day(first.captured_at)}</a> '
        f'to <a href="{escape(last.uri)}" rel="noreferrer">{day(last.captured_at)}</a></p>'
        f'{warning}<p class="formats">TimeMap: {formats}</p></section>'
    )


def _local(place: Place, kind: str) -> str:
    """The address of a TimeMap on this server, without its host: the reader's way here is the right one."""
    return place.timemap(kind).removeprefix(place.base.removesuffix(urlsplit(place.base).path))


def _go_to(uri_r: str, mementos: Mementos, root: str) -> str:
    first, last = (f"{mementos[i].captured_at:%Y-%m-%d}" for i in (0, -1))
    return (
        f'<form class="card go" method="get" action="{root}/"><label>Go to the capture nearest to '
        f'<input type="date" name="at" required min="{first}" max="{last}" value="{last}"></label>'
        f'<input type="hidden" name="uri" value="{escape(uri_r)}"><button>Go</button></form>'
    )


def _archives(answer: LookupResult, names: dict[str, str]) -> str:
    """Who was asked, skipped and failed, and why: a routing decision is never silent."""
    outcomes = {outcome.archive: outcome for outcome in answer.outcomes}
    rows = []
    for decision in answer.decisions:
        outcome = outcomes.get(decision.archive)
        state, said, time = _state(decision, outcome)
        why = "<br>".join(part for part in (_reason(decision), _trouble(outcome)) if part)
        rows.append(
            f'<tr class="{state}"><td>{escape(names.get(decision.archive, decision.archive))}</td>'
            f'<td><span class="state">{state}</span></td><td class="number">{escape(said)}</td>'
            f'<td class="number">{time}</td><td class="why">{why}</td></tr>'
        )
    asked = sum(decision.ask for decision in answer.decisions)
    title = f"{counted(asked, 'archive')} asked, {len(answer.decisions) - asked} skipped"
    cached = "" if answer.cache == "miss" else f' <span class="note">from the cache ({escape(answer.cache)})</span>'
    return (
        f'<section class="card"><h3>{title}{cached}</h3><div class="scroll"><table class="archives"><thead><tr>'
        "<th>archive</th><th></th><th>captures</th><th>time</th><th>why</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div></section>"
    )


def _state(decision: Decision, outcome: Outcome | None) -> tuple[str, str, str]:
    """(what happened, captures, time)"""
    if not decision.ask:
        return "skipped", "", ""
    if outcome is None:
        return "asked", "", ""
    time = f"{outcome.elapsed:.2f} s" if outcome.elapsed else ""
    if outcome.kind is OutcomeKind.ERROR:
        return "failed", "", time
    if outcome.partial:
        return "partial", f"{outcome.count:,}", time
    return ("found", f"{outcome.count:,}", time) if outcome.count else ("none", "0", time)


def _reason(decision: Decision) -> str:
    """Why it was asked or not: the source and its answer, its deciding key and count, and what follows."""
    answered = f"{decision.source} {decision.answer}" if decision.source and decision.answer else decision.source
    key = f"<code>{escape(decision.key)}</code>" if decision.key else ""
    said = " ".join(part for part in (key, escape(decision.frequency)) if part)
    return ": ".join(part for part in (escape(answered), said, escape(reason_words(decision))) if part)


def _trouble(outcome: Outcome | None) -> str:
    """What went wrong with an archive that was asked."""
    if outcome is None:
        return ""
    return escape(": ".join(part for part in (outcome.error, outcome.why, outcome.partial) if part))


def _list(mementos: Mementos, place: Place, names: dict[str, str]) -> Iterator[str]:
    """Captures by year, folded unless they are few; the newest year is open."""
    colours = {archive: number % COLOURS for number, archive in enumerate(in_order(mementos))}
    years: dict[str, list[int]] = {}
    for number, (moment, *_) in enumerate(mementos.rows):
        years.setdefault(moment[:4], []).append(number)
    yield '<section class="card list"><h3>Captures by year</h3>'
    for index, (year, numbers) in enumerate(reversed(years.items())):
        state = " open" if index == 0 or len(mementos) <= UNFOLDED else ""
        yield f'<details id="y{year}"{state}><summary>{year} <span class="note">{len(numbers):,}</span></summary><ol>'
        for number in numbers[:LISTED_PER_YEAR]:
            memento = mementos[number]
            name = names.get(memento.archive, memento.archive)
            when = f"{memento.captured_at.day} {MONTHS[memento.captured_at.month - 1]}, {memento.captured_at:%H:%M:%S}"
            yield (
                f'<li><a href="{escape(memento.uri)}" rel="noreferrer">{when}</a> '
                f'<span class="chip c{colours[memento.archive]}">{escape(name)}</span></li>'
            )
        yield "</ol>"
        if len(numbers) > LISTED_PER_YEAR:
            more = len(numbers) - LISTED_PER_YEAR
            yield f'<p class="note">and {more:,} more in the <a href="{escape(_local(place, "link"))}">TimeMap</a></p>'
        yield "</details>"
    yield "</section>"


def _head(title: str, root: str, form: str = "", extra: str = "") -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title>{extra}"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><link rel="icon" href="{root}/_/icon.svg">'
        f'<link rel="stylesheet" href="{root}/_/look.css"><link rel="stylesheet" href="{root}/_/page.css">'
        f'<script src="{root}/_/page.js" defer></script></head><body>'
        f'<header><a class="name" href="{root}/">Recollect</a>{form}</header>'
    )


def _form(uri: str, root: str) -> str:
    focus = "" if uri else " autofocus"
    return (
        f'<form method="get" action="{root}/" role="search"><label class="hidden" for="uri">Address of a page</label>'
        f'<input id="uri" name="uri" inputmode="url" placeholder="http://example.com/" value="{escape(uri)}" '
        f'autocapitalize="off" autocomplete="url" spellcheck="false" required{focus}>'
        "<button>Find captures</button></form>"
    )


def _foot(root: str) -> str:
    links = f'<a href="{root}/archives">archives</a> · <a href="{root}/about">about</a>'
    return f"<footer>Recollect {escape(__version__)} · {links}</footer></body></html>\n"
