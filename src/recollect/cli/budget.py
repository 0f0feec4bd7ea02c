"""The options of `recollect compact` by budget, and its summary."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.console import talk
from recollect.cli.forms import say_notes
from recollect.cli.types import SHARE, SIZE
from recollect.errors import UsageError
from recollect.quantities import counted

if TYPE_CHECKING:
    from recollect.profiles.compaction.budget import Budget

BUDGET_OPTIONS: tuple[Callable[..., Any], ...] = (
    click.option("--max-cost", type=SHARE, metavar="1%", help="At most this many keys per URI-R, as a share."),
    click.option("--max-keys", type=click.IntRange(1), metavar="N", help="At most N keys."),
    click.option("--max-bytes", type=SIZE, metavar="10MB", help="At most this size on disk, compressed if FILE is."),
    click.option(
        "--min-accuracy", type=SHARE, metavar="90%", help="The fewest keys that answer this share of lookups correctly."
    ),
    click.option(
        "--lookups",
        multiple=True,
        metavar="LOG",
        help="Log of lookups: URLs, SURTs, access or MemGator logs. Repeatable.  [default: a built-in prior]",
    ),
)
SETS_OPTION = click.option("--sets", is_flag=True, help="Add hashed sets to wildcards: more correct answers per byte.")
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
    if report.get("folded"):
        talk(f"folded first: the map by {', '.join(report['folded'])} became one line a key, as a budget counts keys")
    talk(
        f"{report['cost']:.3%} of {counted(report['uri_rs'], 'URI-R')}; "
        f"wildcards among the keys: {report['wildcards']:,}, voids: {report['voids']:,}"
        + (f", hashed sets: {report['sets']:,}" if report["sets"] else "")
    )
    if report["lookups"]:
        talk(
            f"expected to answer {1 - report['expected_wrong']:.2%} of similar lookups correctly "
            f"({1 - report['wrong_in_log']:.2%} of the {counted(report['lookups'], 'lookup')} in the log)"
        )
        low, high = report["expected_wrong_interval"]
        talk(
            f"± {(high - low) * 50:.2f} points: with 95% confidence {1 - high:.2%} to {1 - low:.2%} of similar lookups"
        )
    else:
        talk(
            f"expected by the built-in prior, not measured: {report['expected_wrong']:.2%} of lookups of absent URIs "
            "answered wrongly; --lookups LOG gives a measured forecast"
        )
    if report["input_wildcards"]:
        before = counted(report["input_wildcards"], "wildcard")
        talk(f"note: the input has {before}; what is absent below them is unknown, so lookups there count as right")
    say_notes(report["notes"])
    if report["unusable_lookups"]:
        talk(f"ignored {counted(report['unusable_lookups'], 'lookup')} that are not web URIs")
    if report["rolled_up"]:
        what = "top-level domains are rolled up" if report["rolled_up"] == "tlds" else "everything may become one `*`"
        why = (
            "the log shows that this is better" if report["rolled_up_by_log"] else "the budget cannot be met otherwise"
        )
        talk(f"note: {what}, because {why}")
