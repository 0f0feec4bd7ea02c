"""Starting Spark: settings, and plain words for what is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import needs
from recollect.engines.spark.session import Cluster, parse_conf, session
from recollect.errors import RecollectError, UsageError


def test_settings_are_names_and_values() -> None:
    assert parse_conf(("spark.executor.memory=4g", "a = b=c")) == {"spark.executor.memory": "4g", "a": "b=c"}
    with pytest.raises(UsageError, match="not a Spark setting"):
        parse_conf(("memory",))


def test_without_java_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    needs.wheel("Spark")
    # Other tests of this process may have a session, which would be used.
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(RecollectError, match="Java is not installed") as raised, session(Cluster("local[1]")):
        pass
    assert "Java 17" in raised.value.hint


def test_without_pyspark_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(RecollectError, match="Spark is not installed") as raised, session(Cluster("local[1]")):
        pass
    assert "recollect-web[spark]" in raised.value.hint


def test_every_command_says_so_without_pyspark(tmp_path: Path) -> None:
    (tmp_path / "index.cdxj").write_text('com,a)/ 20100101000000 {"status": "200"}\n')
    (tmp_path / "map.ukvs").write_text("com,a)/ 1/1\n")
    (tmp_path / "log.txt").write_text("http://a.com/\n")
    program = """
import sys
from recollect.cli.main import run
sys.modules["pyspark"] = sys.modules["pyspark.sql"] = None
index, a_map, log, out = sys.argv[1:]
for command in (
    ["profile", index, "-o", out], ["stats", index], ["merge", a_map, "-o", out], ["compact", a_map, "-o", out],
    ["compact", a_map, "-o", out, "--max-keys", "9"], ["evaluate", a_map, "--holdings", index, "--lookups", log],
):
    assert run([*command, "--engine", "spark"]) == 1, command
"""
    files = [str(tmp_path / name) for name in ("index.cdxj", "map.ukvs", "log.txt", "out.ukvs")]
    done = subprocess.run([sys.executable, "-c", program, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Spark is not installed") == 6


def test_the_error_that_ended_a_task_is_reported_and_not_one_that_was_dealt_with() -> None:
    from py4j.protocol import Py4JError

    from recollect.engines.spark.session import _plain_words

    trace = "Traceback (most recent call last):\nrecollect.errors.FormatError: a bad line: x.cdxj\n"
    with pytest.raises(RecollectError, match="a bad line"), _plain_words():
        raise Py4JError(trace)
    lost = "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n  File x, line 3\n"
    lost += "OSError: [Errno 28] No space left on device: '/disk/x'\n\n\tat org.apache.spark.Java(X.java:3)\n"
    with pytest.raises(RecollectError, match="No space left on device") as full, _plain_words():
        raise Py4JError(f"Job aborted due to stage failure: Task 3 in stage 1.0 failed 4 times: {lost}")
    assert "spark.local.dir" in full.value.hint
    with pytest.raises(RecollectError, match="cannot reach the store"), _plain_words():
        raise Py4JError("Job aborted.\n\tat x\nCaused by: java.io.IOException: cannot reach the store\n\tat y\n")
    after = f"{trace}\nDuring handling of the above exception, another exception occurred:\n\nMemoryError: no room\n"
    with pytest.raises(RecollectError, match="Spark failed"), _plain_words():
        raise Py4JError(after)
