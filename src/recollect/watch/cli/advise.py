"""`watch advise`: how archives keep a site, and what would bring more of it back."""

from __future__ import annotations

from typing import Any

import click

from recollect.cli.console import emit_json, emit_table, json_option, talk
from recollect.errors import UsageError
from recollect.watch.cli.tools import data_option, example, open_store, shown, site_uri


@click.command(
    "advise",
    epilog=example("advise http://site.example/ --data watch/", "advise http://site.example/ --data watch/ --json"),
)
@click.argument("uri")
@data_option
@json_option
def advise_command(uri: str, folder: str, as_json: bool) -> int:
    """Show how archives keep the site URI (t_a, TTL_c, P_r), and what would bring more of it back."""
    from recollect.watch.advice import MISSING_HEADERS, advise, missing_pages, missing_row
    from recollect.watch.board import share_of
    from recollect.watch.measures import measure
    from recollect.watch.records import counts_of, percent_of

    with open_store(folder, read_only=True) as store:
        site = store.site(site_uri(uri))
        if site is None:
            raise UsageError("this site is not watched", where=uri, hint="recollect watch status --data DIR")
        resources, keeping = store.resources(site.uri), measure(store.observations(site.uri), site.sample)
    advice = advise(site, resources, keeping)
    counts = counts_of(resources)
    if as_json:
        report: dict[str, Any] = {
            "site": site.uri,
            "recoverable": share_of(counts),
            "resources": {state.value: count for state, count in counts.items()},
            "archives": [one.to_json() for one in keeping],
            "advice": [one.to_json() for one in advice],
            "missing": [one.to_json() for one in missing_pages(resources)],
        }
        emit_json(report)
        return 0
    known = ", ".join(f"{count:,} {state.value}" for state, count in counts.items())
    talk(f"{site.uri}: {percent_of(counts)} would come back ({known})")
    rows = [
        (
            *(one.archive, f"{one.held:,} of {one.resources:,}", _days(one.t_a), _days(one.ttl_c), _share(one.p_r)),
            *(_days(one.endangered), f"{one.endangered_now:,}", f"{one.vulnerable_now:,}"),
        )
        for one in keeping
    ]
    names = ["archive", "held", "t_a, days", "TTL_c, days", "P_r", "endangered, days", "endangered", "vulnerable"]
    emit_table(names, rows, right=range(1, 8))
    for one in advice:
        talk(f"\n{one.text}")
        for page in one.pages:
            talk(f"  {shown(page)}")
    missing = missing_pages(resources)
    if missing:
        talk("\nWhat leads to the resources that no archive holds:")
        cells = [[shown(cell) for cell in missing_row(one)] for one in missing[:_MOST_ROWS]]
        emit_table([*MISSING_HEADERS], cells, right=[2, 3, 4])
        if len(missing) > _MOST_ROWS:
            talk(f"and {len(missing) - _MOST_ROWS:,} more (--json lists all)")
    if not advice:
        talk("\nArchives hold all that is known of the site.")
    return 0


_MOST_ROWS = 50


def _days(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1f}"


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"
