"""What the commands of protection say: tables, warnings, a plot, JSON."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.console import emit_table, talk
from recollect.errors import ResourceError, UsageError
from recollect.protection import odds
from recollect.protection.chunks import is_chunks_class
from recollect.protection.code import MARGIN, available
from recollect.protection.keys import fingerprint
from recollect.protection.secrets import REFUSED, Found, Secret, scan_stream
from recollect.quantities import counted, format_size

if TYPE_CHECKING:
    from recollect.protection.collect import Standing
    from recollect.protection.pack import Packing
    from recollect.protection.sealing import Sealed
    from recollect.protection.site import Applied, Checked, PageWeights
    from recollect.recovery.coverage import SiteCoverage

_SHOWN = 20  # lines of a list before the rest is only counted
_LISTED = 500  # the same of files that are published: who publishes them wants to see them
_ASSUMED = (0.3, 0.5, 0.7, 0.9)  # shares of captured pages, while nothing is known


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything `plan` found out."""

    packings: Sequence[Packing]
    sizes: Sequence[int]
    pages: int
    vault: int
    need: int  # recommended; 0 when no number is safe
    seen: odds.Coverage | None
    coverage: SiteCoverage | None
    table: Sequence[odds.Choice]
    secrets: Sequence[Found]
    forecast: Sequence[odds.Forecast]
    every: float
    weights: PageWeights | None


def find_secrets(packings: Sequence[Packing]) -> list[Found]:
    """Secrets in files, and folders of version control."""
    found = [Found(name, Secret.VERSION_CONTROL) for packing in packings for name in packing.version_control]
    for packing in packings:
        for member in packing.files:
            with member.path.open("rb") as stream:
                found += scan_stream(member.name, stream)
    return found


def refuse_secrets(found: Sequence[Found], *, allowed: bool) -> None:
    """Raise UsageError where something would be published that is a secret by its name or shape."""
    refused = [one for one in found if one.kind in REFUSED]
    if not refused or allowed:
        return
    click.secho("These would be public permanently, in pages that archives keep:", fg="red", bold=True, err=True)
    _show_list([f"  {one}" for one in refused])
    raise UsageError(
        "secrets would be published",
        where=refused[0].file,
        why=counted(len({one.file for one in refused}), "file or folder", "files and folders"),
        hint="leave them out (--exclude-files PATTERN, or a line in .recollectignore), encrypt (--recipient age1…, "
        "--passphrase-file FILE), or publish them with --include-secrets",
    )


def show_packings(packings: Sequence[Packing], *, encrypted: bool) -> None:
    """The list of what goes into the pages, before the first of them is written."""
    for packing in packings:
        state = "encrypted" if encrypted else "public"
        talk(f"{packing.name}: {counted(len(packing.files), 'file')}, {format_size(packing.size)}, {state}:")
        _show_list([f"  {member.name} ({format_size(member.size)})" for member in packing.files], most=_LISTED)


def confirm_publication(packings: Sequence[Packing], target: Path) -> None:
    """Ask once before programs are published unencrypted; without a terminal, say so."""
    programs = [packing.name for packing in packings if packing.name == "code" or _has_programs(packing)]
    if not programs or _is_protected(target):
        return
    if not sys.stdin.isatty():
        talk(f"The programs in {', '.join(programs)} are not encrypted: they become public, permanently.")
        talk("hint: encrypt with --recipient age1… or --passphrase-file FILE; --yes says that they may be public")
        return
    question = (
        f"The programs in {', '.join(programs)} are not encrypted: they become public, permanently. Publish them?"
    )
    if not click.confirm(question, err=True):
        hint = "encrypt them with --recipient age1… or --passphrase-file FILE"
        raise ResourceError("nothing was written", why="the programs are not to be public", hint=hint)


_PROGRAMS = frozenset(
    {".py", ".php", ".rb", ".pl", ".js", ".ts", ".go", ".rs", ".java", ".cs", ".c", ".cpp", ".jsp", ".asp", ".aspx"}
)


def _has_programs(packing: Packing) -> bool:
    return any(Path(member.name).suffix.lower() in _PROGRAMS for member in packing.files)


def _is_protected(target: Path) -> bool:
    """Whether the pages carry blocks already, so that the question was answered before."""
    from recollect.protection.site import carries_blocks

    return target.is_file() or (target.is_dir() and carries_blocks(target))


def warn_of_secrets(found: Sequence[Found]) -> None:
    """A warning on stderr: what is in the pages is public, permanently."""
    if not found:
        return
    click.secho(
        "WARNING: these files would be published UNENCRYPTED, in pages that archives keep permanently:",
        fg="red",
        bold=True,
        err=True,
    )
    for one in found[:_SHOWN]:
        talk(f"  {one}")
    if len(found) > _SHOWN:
        talk(f"  … and {len(found) - _SHOWN:,} more")
    talk("hint: encrypt with --recipient age1… or --passphrase-file FILE, or leave these files out")


def show_plan(plan: Plan) -> None:
    total = sum(plan.sizes)
    emit_table(
        ["class", "files", "bytes", "sealed"],
        [
            [packing.name, f"{len(packing.files):,}", format_size(packing.size), format_size(size)]
            for packing, size in zip(plan.packings, plan.sizes, strict=True)
        ],
        right=(1, 2, 3),
    )
    extra = f" and {plan.vault:,} vault pages" if plan.vault else ""
    click.echo(f"\n{counted(plan.pages, 'page')}{extra} to carry {format_size(total)}")
    if plan.coverage is not None:
        _show_coverage(plan.coverage)
    _show_table(plan)
    if plan.need:
        _show_plot(plan)
        chosen = next(choice for choice in plan.table if choice.need == plan.need)
        click.echo(
            f"\nrecommended: --need {plan.need}{_every_option(plan)} "
            f"(any {plan.need + MARGIN:,} of {counted(chosen.pages, 'page')}; "
            f"each page grows by {format_size(chosen.growth)})"
        )
        if plan.weights is not None:
            before, after = format_size(plan.weights.before), format_size(plan.weights.after)
            click.echo(f"a page weighs {before} gzipped, and {after} with its blocks")
        _show_forecast(plan)
    else:
        click.echo("\ntoo few pages are captured to promise anything: have the site archived first, or use vault pages")
    warn_of_secrets(plan.secrets)


def _every_option(plan: Plan) -> str:
    """The lifetime of versions, where it was measured how long archives need."""
    return f" --every {plan.every / 86400:g}d" if plan.coverage is not None and plan.every else ""


def _show_forecast(plan: Plan) -> None:
    """The chance that the newest files come back, by how often they change."""
    known = (
        "measured"
        if plan.coverage is not None
        else f"assuming that {odds.ASSUMED_SHARE:.0%} of the pages are captured in 30 days"
    )
    click.echo(f"\nchance to restore everything ({known}):")
    click.echo(f"  a new version for each change: {_by_change({one.changes: one.alone for one in plan.forecast})}")
    if plan.every:
        living = {one.changes: one.living for one in plan.forecast}
        click.echo(f"  --every {plan.every / 86400:g}d: {_by_change(living)}")


def _by_change(chances: dict[str, float]) -> str:
    daily, weekly, monthly = (_whole_percent(chances[name]) for name in ("daily", "weekly", "monthly"))
    return f"with daily changes {daily}, monthly {monthly} (weekly {weekly})"


def _whole_percent(value: float) -> str:
    """A chance without decimals, that is 100% or 0% only where it is."""
    if 0 < value < 1 and round(value, 2) in (0, 1):
        return "under 1%" if value < 0.5 else "over 99%"
    return f"{value:.0%}"


def _show_coverage(found: SiteCoverage) -> None:
    click.echo(
        f"{found.captured:,} of {counted(found.pages, 'page')} are captured by at least one archive",
    )
    if found.median_age_days is not None:
        click.echo(
            f"half of the newest captures are at most {found.median_age_days:,.0f} days old; "
            f"{counted(found.fresh, 'page')} were captured in the last 90 days"
        )
    if not found.fresh:
        click.echo("no page was captured in the last 90 days: have the site archived, or new versions do not come back")
    for archive, why in found.failed:
        click.echo(f"unknown, not counted as absent: {archive}: {why}")


def _show_table(plan: Plan) -> None:
    headers = ["need", "pages needed", "of all", "growth a page"]
    if plan.seen is not None:
        headers.append("probability")
    else:
        headers += [f"if {share:.0%} captured" for share in _ASSUMED]
    rows = []
    for choice in plan.table:
        enough = choice.need + MARGIN
        row = [f"{choice.need:,}", f"{enough:,}", f"{choice.share:.0%}", format_size(choice.growth)]
        if choice.chance is not None:
            row.append(_percent(choice.chance))
        else:
            row += [_percent(odds.chance_at_share(choice.pages, enough, share)) for share in _ASSUMED]
        rows.append([*row, "recommended" if choice.need == plan.need else ""])
    emit_table([*headers, ""], rows, right=tuple(range(len(headers))))


def _percent(value: float) -> str:
    if 0.999 <= value < 1:
        return f"{min(value, 0.999999):.4%}".rstrip("0")
    return f"{value:.1%}"


def _show_plot(plan: Plan) -> None:
    """P(recover) over the share of pages captured, in text."""
    pages, enough = plan.table[0].pages, plan.need + MARGIN
    click.echo("\nprobability that everything comes back, by the share of pages that are captured")
    for tenth in range(21):
        share = tenth / 20
        chance = odds.chance_at_share(pages, enough, share)
        mark = (
            " ← captured now"
            if plan.seen and plan.seen.asked and abs(plan.seen.captured / plan.seen.asked - share) <= 0.025
            else ""
        )
        click.echo(f"{share:>5.0%} {'█' * round(chance * 50):<50} {chance:>6.1%}{mark}")


def write_plot(path: Path, pages: int, need: int, seen: odds.Coverage | None) -> None:
    """The same as a picture."""
    from recollect.formats.containers import atomic_output
    from recollect.profiles.statistics.charts import Axis, Series, curves, percent

    enough = need + MARGIN
    points = [(share / 200, odds.chance_at_share(pages, enough, share / 200)) for share in range(201)]
    series = [Series(f"any {enough} of {pages} pages", points)]
    if seen is not None and seen.asked:
        at = seen.captured / seen.asked
        series.append(Series("captured now", [(at, odds.chance_at_share(pages, enough, at))], marks=True))
    title = "Probability that everything comes back"
    svg = curves(
        series, Axis("share of pages captured", 0, 1, words=percent), Axis("P", 0, 1, words=percent), title=title
    )
    svg = svg[: svg.index("</svg>") + 6]  # the legend is HTML; the picture has its titles
    svg = svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(
        "</title>", f"</title>{_STYLE}", 1
    )
    with atomic_output(str(path)) as out:
        out.write(svg.encode())


_STYLE = (
    "<style>text{font:12px sans-serif;fill:#555}.grid{stroke:#ddd}.axis{stroke:#888}.line{fill:none;stroke:#2166ac;"
    "stroke-width:2}.dot{fill:#b2182b}@media(prefers-color-scheme:dark){text{fill:#bbb}.grid{stroke:#444}"
    ".line{stroke:#74add1}}</style>"
)


def plan_json(plan: Plan) -> dict[str, Any]:
    return {
        "pages": plan.pages,
        "vault_pages": plan.vault,
        "classes": [
            {"class": packing.name, "files": len(packing.files), "bytes": packing.size, "sealed": size}
            for packing, size in zip(plan.packings, plan.sizes, strict=True)
        ],
        "need": plan.need,
        "coverage": plan.coverage.to_json() if plan.coverage is not None else None,
        "table": [
            {
                "need": choice.need,
                "pages_needed": choice.need + MARGIN,
                "share": round(choice.share, 4),
                "growth": choice.growth,
                "probability": choice.chance,
                "probability_if": {
                    f"{share:.0%}": odds.chance_at_share(choice.pages, choice.need + MARGIN, share)
                    for share in _ASSUMED
                },
            }
            for choice in plan.table
        ],
        "forecast": [
            {"changes": one.changes, "new_version_each": one.alone, "with_every": one.living} for one in plan.forecast
        ],
        "every": plan.every,
        "page_gzipped": {"before": plan.weights.before, "after": plan.weights.after}
        if plan.weights is not None
        else None,
        "secrets": [str(one) for one in plan.secrets],
    }


def show_applied(done: Applied, where: Path) -> None:
    for one in done.classes:
        talk(_class_line(one))
    vault = f", {done.spread.vault:,} of them vault pages" if done.spread.vault else ""
    need = max(one.version.need for one in done.classes)
    talk(
        f"{done.spread.pages:,} {'page carries' if done.spread.pages == 1 else 'pages carry'} a block{vault}; "
        f"any {min(need + MARGIN, done.spread.pages):,} of them bring everything back; "
        f"each grows by {format_size(done.growth)}"
    )
    talk(f"{counted(done.changed, 'file')} changed in {where}")
    if done.changed:
        talk("hint: update lastmod in your sitemap, so that archives come again")
    _show_list([f"not copied: {name}: {why}" for name, why in done.not_copied])
    _show_list([f"no blocks in: {name}: archives do not capture it" for name in done.never_captured])
    for name, why in done.unfit[:_SHOWN]:
        talk(f"no blocks in: {name}: {why}")
    if len(done.unfit) > _SHOWN:
        talk(f"… and {len(done.unfit) - _SHOWN:,} more pages without blocks")


def _class_line(one: Sealed) -> str:
    """What became of a class. A version that lives on has other files than there are now: only its changes are new."""
    version = one.version
    sealed = f"sealed {format_size(version.size)}{', encrypted' if one.encrypted else ''}"
    if is_chunks_class(version.name):
        return f"{version.name}: {sealed}: shows what changes, without the identity"
    if one.is_changes:
        state = "unchanged" if one.kept else "new"
        return f"{version.name}: what changed since then, {sealed}; version {version.at} ({state})"
    if one.held:
        return f"{version.name}: version {version.at} lives on, {sealed}"
    files = f"{counted(len(one.packing.files), 'file')}, {format_size(one.packing.size)}"
    return f"{version.name}: {files}, {sealed}; version {version.at} ({'unchanged' if one.kept else 'new'})"


def applied_json(done: Applied) -> dict[str, Any]:
    return {
        "pages": done.spread.pages,
        "vault_pages": done.spread.vault,
        "growth": done.growth,
        "changed": done.changed,
        "classes": [
            {
                "class": one.version.name,
                "version": one.version.at,
                "kept": one.kept,
                "lives_on": one.held,
                "files": len(one.packing.files),
                "bytes": one.packing.size,
                "sealed": one.version.size,
                "encrypted": one.encrypted,
                "code": one.version.code,
                "need": one.version.need,
            }
            for one in done.classes
        ],
        "unfit": [{"page": name, "reason": str(why)} for name, why in done.unfit],
        "never_captured": list(done.never_captured),
        "not_copied": [{"file": name, "reason": why} for name, why in done.not_copied],
    }


def standing_rows(standings: Sequence[Standing], complete: Sequence[Any]) -> list[list[str]]:
    """Rows of the table of versions: class, version, blocks found of how many, needed, what is missing."""
    rows = []
    for one in standings:
        version = one.version
        if version in complete:
            state = "complete"
        elif one.missing:
            state = f"{one.missing:,} more needed"
        elif not available(version.code):
            state = "its code is not installed"
        else:
            state = "1 or 2 more needed"
        rows.append(
            [
                version.name,
                version.at,
                f"{one.found:,} of {one.pages:,}",
                f"{version.need:,}",
                version.code.value,
                state,
            ]
        )
    return rows


STANDING_HEADERS = ["class", "version", "blocks found", "needed", "code", "state"]


def show_checked(found: Checked) -> None:
    if not found.standings:
        talk(f"no blocks in {counted(found.pages, 'page')}")
    else:
        newest: dict[str, Any] = {}
        for one in found.standings:
            newest.setdefault(one.version.name, one.version)
        complete = [version for name, version in newest.items() if name in found.restored]
        emit_table(STANDING_HEADERS, standing_rows(found.standings, complete), right=(2, 3))
        talk(f"{found.carrying:,} of {counted(found.pages, 'page')} carry blocks")
    for key in found.keys:
        talk(f"signed by {fingerprint(key)}")
    if len(found.keys) > 1:
        talk("blocks are signed by several keys; name yours with --trust site.pub")
    _show_list([f"no block: {name}" for name in found.bare])
    _show_list([f"mixed versions: {page}: its block of {name} is of an older version" for page, name in found.outdated])
    _show_list([f"refused: {page}: {why}" for page, why in found.refused])


def show_live(found: Checked, failed: Sequence[tuple[str, str]], *, is_live: bool) -> None:
    """What a live site's answers say about what lies between it and its visitors."""
    _show_list([f"not fetched: {url}: {why}" for url, why in failed])
    if not is_live or not found.pages:
        return
    if found.carrying == 0:
        talk("no page carries blocks: they were never put there, or a CDN or minifier removes them")
    elif found.bare:
        talk(
            f"{counted(len(found.bare), 'page')} of {found.pages:,} without blocks: a cache may have older pages, "
            "or a minifier removes blocks"
        )
    if found.refusals:
        talk(
            "blocks were changed on their way: a minifier or a filter rewrites them; try --carrier comment, or exclude "
            "script elements of unknown types from it"
        )


def _show_list(lines: Sequence[str], most: int = _SHOWN) -> None:
    for line in lines[:most]:
        talk(line)
    if len(lines) > most:
        talk(f"… and {len(lines) - most:,} more")


def checked_json(found: Checked) -> dict[str, Any]:
    return {
        "sound": found.is_sound,
        "pages": found.pages,
        "carrying": found.carrying,
        "versions": standings_json(found.standings),
        "restored": list(found.restored),
        "bare": list(found.bare),
        "outdated": [{"page": page, "class": name} for page, name in found.outdated],
        "refused": [{"page": page, "reason": why} for page, why in found.refused],
        "refusals": {str(kind): count for kind, count in found.refusals.items()},
        "keys": [fingerprint(key) for key in found.keys],
    }


def standings_json(standings: Sequence[Standing]) -> list[dict[str, Any]]:
    return [
        {
            "class": one.version.name,
            "version": one.version.at,
            "object": one.version.object,
            "code": one.version.code,
            "found": one.found,
            "pages": one.pages,
            "need": one.version.need,
            "missing": one.missing,
            "key": fingerprint(one.version.key),
        }
        for one in standings
    ]
