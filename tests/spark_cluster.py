"""A real Spark cluster for tests: a master and two workers from the pyspark package, in processes of their own.

    with spark_cluster(tmp_path, hidden=tmp_path / "driver") as cluster:
        session(Cluster(cluster.master, cluster.conf))

Each worker has its own work folder and, where Linux allows it (`unshare`), its own view of the file system: it sees an
empty folder in place of `hidden`, as if that were on another machine. All is on loopback, at ports the system chose.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import needs

START_SECONDS = 60.0
# What compiles slowly and well is for jobs that take longer.
_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m")
EXECUTOR_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@dataclass(frozen=True, slots=True)
class SparkCluster:
    """A running cluster: its address, the settings a session needs, and whether workers see the driver's files."""

    master: str
    conf: dict[str, str]
    separate: bool


@contextmanager
def spark_cluster(folder: Path, *, hidden: Path, workers: int = 2) -> Iterator[SparkCluster]:
    """Master and workers until the block ends; `hidden` is the folder that only the driver sees."""
    needs.wheel("Spark")
    java = needs.program("Java")
    import pyspark

    home = Path(pyspark.__file__).parent
    start = [java, *_JAVA, "-cp", f"{home}/jars/*"]
    hidden.mkdir(exist_ok=True)
    apart = _apart(hidden)
    with ExitStack() as stack:
        common = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        command = [*start, "org.apache.spark.deploy.master.Master", *common]
        log = stack.enter_context(_daemon(command, folder / "master", str(home)))
        address = _found(log, r"Starting Spark master at (spark://[\w.:]+)")
        logs = []
        for number in range(workers):
            place = folder / f"worker-{number}"
            command = [*start, "org.apache.spark.deploy.worker.Worker", *common, "-c", "1", "-m", "1g"]
            logs.append(stack.enter_context(_daemon([*apart, *command, "-d", str(place), address], place, str(home))))
        for log in logs:
            _found(log, r"Successfully registered with master (\S+)")
        conf = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.ui.enabled": "false",
            "spark.driver.extraJavaOptions": EXECUTOR_JAVA,
            "spark.executor.extraJavaOptions": EXECUTOR_JAVA,
            "spark.sql.codegen.wholeStage": "false",
        }
        yield SparkCluster(address, conf, bool(apart))


def _apart(hidden: Path) -> list[str]:
    """What a command begins with that sees an empty folder in place of `hidden`; nothing where that is not possible."""
    start = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    start += ["sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(hidden)]
    try:
        subprocess.run([*start, "true"], check=True, capture_output=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return []
    return start


@contextmanager
def _daemon(command: list[str], folder: Path, home: str) -> Iterator[Path]:
    folder.mkdir(parents=True)
    log = folder / "log"
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(folder / "local")}
    # As bin/load-spark-env.sh would set them.
    scala = next(Path(home, "jars").glob("spark-core_*.jar")).name.split("_")[1].split("-")[0]
    environment |= {"SPARK_HOME": home, "SPARK_SCALA_VERSION": scala}
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out, env=environment)
    try:
        yield log
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def _found(log: Path, pattern: str) -> str:
    give_up = time.monotonic() + START_SECONDS
    while time.monotonic() < give_up:
        if found := re.search(pattern, log.read_text(errors="replace")):
            return found[1]
        time.sleep(0.05)
    raise RuntimeError(f"Spark did not start within {START_SECONDS:.0f} s:\n{log.read_text(errors='replace')[-2000:]}")
