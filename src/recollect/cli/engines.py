"""The options --engine, --master, --conf and --parts, and the engine that they choose."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from recollect.engines.operations import Engine, LocalEngine
from recollect.errors import UsageError

# A function that click decorates; its arguments are the options of the command.
Command = TypeVar("Command", bound=Callable[..., Any])
_OPTIONS = (
    click.option(
        "--engine",
        type=click.Choice(["embedded", "spark"]),
        default="embedded",
        show_default=True,
        help="Run on this machine or on Spark; the results are equal.",
    ),
    click.option(
        "--master", metavar="URL", help="Spark's master: local[2], yarn, spark://host:7077.  [default: local[*]]"
    ),
    click.option("--conf", multiple=True, metavar="K=V", help="A Spark setting. Repeatable."),
)
_PARTS = click.option(
    "--parts",
    is_flag=True,
    help="With Spark, write a folder of ordered parts and a manifest; so does -o with a slash at its end.",
)


def engine_options(command: Command) -> Command:
    """--engine, --master, --conf and --parts, for a command that writes a map."""
    return where_options(_PARTS(command))


def where_options(command: Command) -> Command:
    """--engine, --master and --conf."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def refuse_urls(engine: Engine, names: Iterable[str]) -> None:
    """Raise if a file that is read on this machine, such as a map under evaluation, is at a URL of Spark's."""
    if isinstance(engine, LocalEngine):
        return
    from recollect.engines.spark.files import is_url

    for name in filter(is_url, names):
        raise UsageError("maps and logs are read on this machine", where=name, hint="copy it here, and give its path")


def taken_engine(options: dict[str, Any], output: str = "") -> Engine:
    """Take the engine out of a command's options."""
    engine, master, conf = options.pop("engine"), options.pop("master"), options.pop("conf")
    parts = options.pop("parts", False)
    if engine == "spark":
        from recollect.engines.spark.engine import SparkEngine
        from recollect.engines.spark.session import Cluster, parse_conf

        return SparkEngine(Cluster(master or "", parse_conf(conf)), parts)
    for given, name in ((master, "--master"), (conf, "--conf"), (parts, "--parts")):
        if given:
            raise UsageError(f"{name} is for Spark", hint="add --engine spark")
    if output.endswith("/"):
        raise UsageError("a folder where a file is expected", where=output, hint="parts are written by --engine spark")
    return LocalEngine()
