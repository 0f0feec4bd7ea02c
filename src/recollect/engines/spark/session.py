"""Starting Spark, and saying in plain words why it does not start.

Hides: the settings that a quiet local run needs, and Java. A session that is there already (a notebook's, or that of
`spark-submit`) is used and left alone.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recollect.errors import RecollectError, UsageError
from recollect.installation import install_command
from recollect.model import Progress, ProgressCallback

JAVA = 17
_OURS = re.compile(r"^recollect\.errors\.\w+: (.+)$", re.MULTILINE)
_ANOTHER = "During handling of the above exception, another exception occurred:"
# The line that ends a Python traceback, and Java's innermost reason.
_PYTHON = re.compile(r"^(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)\b.*$", re.MULTILINE)
_JAVA_REASON = re.compile(r"^Caused by: (.+)$", re.MULTILINE)
# Words in a reason, and what to do about it.
_REMEDIES = (
    ("No space left on device", "set spark.local.dir on workers to a larger disk; see docs/scale.md"),
    ("No module named", "workers need recollect: an image or a packed environment, see docs/scale.md"),
    ("No such file or directory", "a path without a scheme must be on every worker; see docs/scale.md"),
    ("Permission denied", "the user that workers run as needs the right to read or write it"),
    ("MemoryError", "--conf spark.executor.memoryOverhead=4g gives Python more memory"),
)
_QUIET = {
    "spark.app.name": "recollect",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    # A copy of Spark's state per session, which is not used here.
    "spark.sql.artifact.isolation.enabled": "false",
}
_LOOKING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # In local mode a task is tried once; a worker process that dies would end the job.
    "spark.task.maxFailures": "4",
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where to run: `master` as Spark spells it (`local[2]`, `yarn`, `spark://host:7077`; empty: what Spark is
    configured for, else all cores here) and further settings."""

    master: str = ""
    conf: Mapping[str, str] = field(default_factory=dict)


def parse_conf(settings: tuple[str, ...]) -> dict[str, str]:
    """`k=v` settings as a table."""
    table = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise UsageError("not a Spark setting", where=repr(setting), hint="like --conf spark.executor.memory=4g")
        table[name.strip()] = value.strip()
    return table


@contextmanager
def session(cluster: Cluster) -> Iterator[Any]:
    """A Spark session; stopped at the end if it was started here."""
    builder = _builder()
    running = builder.getActiveSession()
    if running is not None:
        with _plain_words():
            yield running
        return
    spark = _start(builder, cluster)
    try:
        with _plain_words():
            yield spark
    finally:
        spark.stop()


@contextmanager
def _plain_words() -> Iterator[None]:
    """Errors of tasks, which come wrapped in Java's and Python's traces, as the errors they are."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        # What was raised while another error was dealt with is what ended the task.
        found = _OURS.findall(str(error).rpartition(_ANOTHER)[2])
        if found:
            raise RecollectError(found[-1]) from error
        why, more = _reason(str(error)), "--conf spark.log.level=WARN says more"
        hint = next((remedy for words, remedy in _REMEDIES if words in why), more)
        raise RecollectError("Spark failed", why=why[:400], hint=hint) from error


def _reason(text: str) -> str:
    """Why a job failed: the last line of the task's traceback, Java's innermost reason, or how the message begins."""
    _, traced, trace = text.rpartition("Traceback (most recent call last):")
    if traced and (found := _PYTHON.findall(trace)):
        return str(found[0])
    if found := _JAVA_REASON.findall(text):
        return str(found[-1]).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith(("\t", " "))]
    return " ".join(lines[:2])


def _builder() -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise RecollectError(
            "Spark is not installed",
            why=str(error),
            hint=f"{install_command('spark')}, and Java 17 or newer (apt install openjdk-17-jre-headless)",
        ) from error
    return SparkSession


def _start(builder: Any, cluster: Cluster) -> Any:
    _check_java()
    # Workers run this very Python unless configured otherwise, so that they find this package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = cluster.master or cluster.conf.get("spark.master", "") or os.environ.get("MASTER", "")
    local = not master or master.startswith("local")
    settings = {**_QUIET, **(_LOCAL if local else {}), **cluster.conf}
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        # The number after the comma is how often a task may fail, which a plain local master sets to one.
        found = master or "local[*]"
        master = "local[1,4]" if found == "local" else found.replace("]", ",4]") if "," not in found else found
    builder = builder.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        spark = builder.getOrCreate()
        if _LOOKING not in cluster.conf:
            # Tasks that look up many files; Spark would start one for each file.
            spark.conf.set(_LOOKING, str(max(8, 4 * spark.sparkContext.defaultParallelism)))
        # Spark reads this setting in spark-submit only, and otherwise the environment.
        spark.sparkContext.pythonExec = spark.conf.get("spark.pyspark.python", "") or os.environ["PYSPARK_PYTHON"]
        return spark
    except Exception as error:  # py4j, the launcher and Spark each have errors of their own
        raise RecollectError(
            "Spark does not start",
            where=master,
            why=_reason(str(error))[:300] if str(error).strip() else type(error).__name__,
            hint="try --master 'local[2]'; for a cluster see docs/scale.md",
        ) from error


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").is_file():
        return
    if shutil.which("java") is None:
        raise RecollectError(
            "Java is not installed",
            why="Spark runs on it" + (f"; JAVA_HOME is {home}, which has no bin/java" if home else ""),
            hint=f"install Java {JAVA} or newer (apt install openjdk-{JAVA}-jre-headless), or use --engine embedded",
        )


@contextmanager
def progress_of(spark: Any, stage: str, progress: ProgressCallback | None) -> Iterator[None]:
    """Tell how many tasks are done while a job runs in the body. Its jobs and stages are called by the stage in Spark's
    own pages."""
    context = spark.sparkContext
    before = context.getLocalProperty("spark.job.description")
    context.setJobDescription(f"recollect: {stage}")
    try:
        with _watched(context, stage, progress):
            yield
    finally:
        context.setLocalProperty("spark.job.description", before)


@contextmanager
def _watched(context: Any, stage: str, progress: ProgressCallback | None) -> Iterator[None]:
    if progress is None:
        yield
        return
    tracker, done = context.statusTracker(), threading.Event()

    def watch() -> None:
        while not done.wait(0.3):
            found = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
            stages = [info for info in found if info is not None]
            if stages:
                total = sum(info.numTasks for info in stages)
                progress(Progress(stage, sum(info.numCompletedTasks for info in stages), total, "tasks"))

    thread = threading.Thread(target=watch, name="recollect-spark-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
