"""`recollect measure`: how much of a lost website came back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from recollect.cli.console import emit_json, emit_table, json_option, talk
from recollect.errors import UsageError

if TYPE_CHECKING:
    from recollect.recovery.measure import Measurement, Penalties

EPILOG = """\b
Examples:
  recollect measure backup/ site/                      compare a backup with the recovered site
  recollect measure crawl.warc.gz site/ --json
  recollect measure http://127.0.0.1:8000/ site/ --diagram site.svg
  recollect measure --many sites/* -o tables/          tables over many sites; each has `lost` and its recoveries
  recollect measure backup/ site/ --penalty application/pdf=0.5,1,0 --penalty '/papers/*=1,1,0'

\b
0 is best at every level (McCown 2007, Table 15):
  s1  changed, missing and added resources count
  s2  changed and missing resources count
  s3  as s2, but text that shares 75% of its shingles with the lost page is not changed
  s4  only missing resources count
  s5  as s4, but a resource that is known to be archived is not missing
"""


@click.command(epilog=EPILOG)
@click.argument("sites", nargs=-1, required=True, metavar="LOST RECOVERED | --many FOLDER...")
@click.option(
    "--many",
    is_flag=True,
    help="Tables over many sites: each FOLDER has `lost` and its recoveries in it, or is a recovery itself.",
)
@click.option("-o", "--output", type=click.Path(file_okay=False), help="With --many: write the tables (TSV) here.")
@click.option("--diagram", type=click.Path(dir_okay=False), help="Write the reconstruction diagram (SVG) here.")
@click.option("--list", "listed", is_flag=True, help="List every changed, missing and added resource.")
@click.option(
    "--penalty",
    "penalty",
    multiple=True,
    metavar="WHAT=C,M,A",
    help="Penalties from 0 to 1 for changed, missing and added resources of a type (html, images, other, image/*) or "
    "an address ('/papers/*').",
)
@json_option
def measure(
    sites: tuple[str, ...],
    many: bool,
    output: str | None,
    diagram: str | None,
    listed: bool,
    penalty: tuple[str, ...],
    as_json: bool,
) -> int:
    """Compare a LOST website with its RECOVERED version.

    Each is a folder (a recovery's own, or any copy), a WARC, a WACZ, or the URL of a site on loopback.
    """
    if many:
        return _many(sites, output, as_json)
    if len(sites) != 2:
        hint = "recollect measure LOST RECOVERED, or recollect measure --many FOLDER..."
        raise UsageError("two sites are compared", why=f"{len(sites)} given", hint=hint)
    lost, recovered = sites
    from recollect.formats.containers import atomic_output
    from recollect.formats.outputs import refuse_inputs
    from recollect.recovery.diagram import diagram_svg
    from recollect.recovery.measure import measure as compare
    from recollect.recovery.snapshots import open_snapshot

    refuse_inputs(diagram, [lost, recovered])
    _penalties(penalty)  # before anything is read
    before, after = open_snapshot(lost), open_snapshot(recovered)
    result = compare(
        before.resources,
        after.resources,
        recoverable=after.recoverable,
        requests=after.requests,
        penalties=_penalties(penalty),
    )
    if diagram:
        with atomic_output(diagram) as out:
            out.write(diagram_svg(result.difference, title=recovered).encode())
        talk(f"diagram: {diagram}")
    if as_json:
        emit_json(_as_dict(result))
    else:
        _show(result, listed)
    return 0


def _many(folders: tuple[str, ...], output: str | None, as_json: bool) -> int:
    from pathlib import Path

    from recollect.recovery.manysites import measure_site, tables
    from recollect.recovery.significance import AVAILABLE

    found = tables([one for folder in folders for one in measure_site(folder)])
    if not AVAILABLE:
        talk("no tests: they need SciPy (pip install 'recollect-web[stats]')")
    if output:
        place = Path(output)
        place.mkdir(parents=True, exist_ok=True)
        for table in found:
            (place / f"{table.name}.tsv").write_text(table.to_tsv(), encoding="utf-8")
        talk(f"{len(found)} tables: {place}")
    if as_json:
        emit_json({t.name: [dict(zip(t.columns, row, strict=True)) for row in t.rows] for t in found})
    elif not output:
        for table in found:
            emit_table(list(table.columns), list(table.rows), title=table.title)
    return 0


def _penalties(texts: tuple[str, ...]) -> Penalties | None:
    from recollect.recovery.measure import Penalties

    patterns = []
    for text in texts:
        pattern, mark, numbers = text.rpartition("=")
        try:
            changed, missing, added = (float(number) for number in numbers.split(","))
        except ValueError:
            changed = missing = added = -1.0
        if not mark or not pattern or not all(0 <= value <= 1 for value in (changed, missing, added)):
            raise UsageError("not a penalty", where=text, hint="write it as html=0.5,1,0, or '/papers/*=1,1,0'")
        patterns.append((pattern, (changed, missing, added)))
    return Penalties(tuple(patterns)) if patterns else None


def _as_dict(result: Measurement) -> dict[str, Any]:
    return {
        "lost": result.lost,
        "recovered": result.recovered,
        "identical": len(result.identical),
        "changed": list(result.changed),
        "similar": list(result.similar),
        "missing": list(result.missing),
        "added": list(result.added),
        "recoverable": list(result.recoverable),
        "difference": {
            "changed": result.difference.changed,
            "missing": result.difference.missing,
            "added": result.difference.added,
        },
        "success": result.success,
        "penalized": (
            {
                "changed": result.penalized.changed,
                "missing": result.penalized.missing,
                "added": result.penalized.added,
                "success": result.penalized.success(),
            }
            if result.penalized is not None
            else None
        ),
        "by_type": {kind: {"lost": total, "recovered": back} for kind, (total, back) in result.by_type.items()},
        "requests": result.requests,
        "efficiency": result.efficiency,
        "efficiency_without_added": result.efficiency_without_added,
    }


def _show(result: Measurement, listed: bool) -> None:
    rows = [
        ("identical", len(result.identical), ""),
        ("changed", len(result.changed), f"{len(result.similar)} of them similar text" if result.similar else ""),
        (
            "missing",
            len(result.missing),
            f"{len(result.recoverable)} known to be archived" if result.recoverable else "",
        ),
        ("added", len(result.added), "not in the lost site" if result.added else ""),
    ]
    emit_table(
        ["of the site", "resources", ""], rows, right=[1], title=f"{result.lost} lost, {result.recovered} recovered"
    )
    d = result.difference
    levels = "  ".join(f"{level} {value:.3f}" for level, value in result.success.items())
    click.echo(f"\ndifference ({d.changed:.3f}, {d.missing:.3f}, {d.added:.3f})   {levels}   (0 is best)")
    if (own := result.penalized) is not None:
        vector = f"({own.changed:.3f}, {own.missing:.3f}, {own.added:.3f})"
        click.echo(f"with your penalties {vector}   success {own.success():.3f}   (0 is best)")
    for kind, (total, back) in result.by_type.items():
        click.echo(f"  {kind}: {back} of {total} back")
    if result.efficiency is not None:
        click.echo(f"efficiency {result.efficiency:.2f} resources a request ({result.requests} requests)")
    if listed:
        for kind in ("changed", "missing", "added"):
            for uri in getattr(result, kind):
                click.echo(f"{kind}\t{uri}")
