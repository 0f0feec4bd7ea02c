"""The budget half of `recollect compact`: its options, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.console import talk
from recollect.cli.forms import say_notes
from recollect.cli.types import SHARE, SIZE
from recollect.errors import UsageError

if TYPE_CHECKING:
    from recollect.profiles.compaction.budget import Budget

BUDGET_OPTIONS: tuple[Callable[..., Any], ...] = (
    click.option("--max-cost", type=SHARE, metavar="1%", help="At most so many keys per URI-R."),
    click.option("--max-keys", type=click.IntRange(1), metavar="N", help="At most so many keys."),
    click.option(
        "--max-bytes", type=SIZE, metavar="10MB", help="At most so many bytes on disk, compressed if FILE is."
    ),
    click.option(
        "--min-accuracy", type=SHARE, metavar="90%", help="As few keys as answer so many of the lookups right."
    ),
    click.option(
        "--lookups",
        multiple=True,
        metavar="LOG",
        help="What people ask for: URLs, SURTs, access or MemGator logs; repeatable.  [default: a built-in guess]",
    ),
)
SETS_OPTION = click.option(
    "--sets", is_flag=True, help="Let wildcards carry hashed sets of what lies below: more right answers per byte."
)
BUDGET_NAMES = ("max_cost", "max_keys", "max_bytes", "min_accuracy", "lookups")


def budget_of(options: dict[str, Any]) -> Budget:
    """The one budget that is given."""
    from recollect.profiles.compaction.budget import Budget

    limits = {name: options[name] for name in BUDGET_NAMES[:-1]}
    given = [name for name, limit in limits.items() if limit is not None]
    if len(given) != 1:
        raise UsageError(
            "lookups need a budget" if not given else "more than one budget",
            why="" if not given else " and ".join(f"--{name.replace('_', '-')}" for name in given),
            hint="give one of --max-cost 1%, --max-keys N, --max-bytes 10MB, --min-accuracy 90%",
        )
    return Budget(**limits, rollup_tlds=options["rollup_tlds"], sets=options["sets"])


def summarise_budget(report: dict[str, Any]) -> None:
    """What a compaction by budget did, for people."""
    talk(
        f"{report['cost']:.3%} of {report['uri_rs']:,} URI-Rs; "
        f"wildcards among the keys: {report['wildcards']:,}, voids: {report['voids']:,}"
        + (f", hashed sets: {report['sets']:,}" if report["sets"] else "")
    )
    if report["lookups"]:
        talk(
            f"expected to answer {1 - report['expected_wrong']:.2%} of lookups like these right "
            f"(of the {report['lookups']:,} in the log itself {1 - report['wrong_in_log']:.2%})"
        )
    say_notes(report["notes"])
    if report["unusable_lookups"]:
        talk(f"{report['unusable_lookups']:,} lookups are no URIs of the web and were left out")
    if report["rolled_up"]:
        what = "top-level domains roll up" if report["rolled_up"] == "tlds" else "everything may become one `*`"
        why = "the log shows that it pays" if report["rolled_up_by_log"] else "the budget cannot be met otherwise"
        talk(f"note: {what}, as {why}")
