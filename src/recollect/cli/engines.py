"""Where a command runs: here, or on Spark. The options are the same for every command that can do both."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from recollect.errors import UsageError

if TYPE_CHECKING:
    from recollect.spark.session import Cluster

_OPTIONS = (
    click.option(
        "--engine",
        type=click.Choice(["embedded", "spark"]),
        default="embedded",
        show_default=True,
        help="Run on this machine, or on Spark; what comes out is the same.",
    ),
    click.option(
        "--master", metavar="URL", help="Spark's master: local[2], yarn, spark://host:7077.  [default: local[*]]"
    ),
    click.option("--conf", multiple=True, metavar="K=V", help="A setting for Spark. Repeatable."),
)
_PARTS = click.option(
    "--parts",
    is_flag=True,
    help="With Spark, write a folder of ordered parts and a manifest; so does -o with a slash at its end.",
)


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--engine, --master, --conf and --parts, for a command that writes a map."""
    return where_options(_PARTS(command))


def where_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--engine, --master and --conf."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def taken_engine(options: dict[str, Any], output: str = "") -> tuple[Cluster | None, bool]:
    """Take the engine out of a command's options: the cluster, None for this machine, and whether to write parts."""
    engine, master, conf = options.pop("engine"), options.pop("master"), options.pop("conf")
    parts = options.pop("parts", False)
    if engine == "spark":
        from recollect.spark.session import Cluster, parse_conf

        return Cluster(master or "", parse_conf(conf)), parts
    for given, name in ((master, "--master"), (conf, "--conf"), (parts, "--parts")):
        if given:
            raise UsageError(f"{name} is for Spark", hint="add --engine spark")
    if output.endswith("/"):
        raise UsageError("a folder where a file is expected", where=output, hint="parts are written by --engine spark")
    return None, False
