"""Ended from outside, a command cleans up as at Ctrl-C."""

import signal
import subprocess
import sys
import time
from pathlib import Path


def test_a_terminated_command_leaves_nothing_half_written(tmp_path: Path):
    command = [sys.executable, "-m", "recollect", "merge", "-", "-o", str(tmp_path / "out.ukvs")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"com,a)/ 1\n" + b"".join(b"com,b)/%06d 1\n" % n for n in range(300_000)))
        process.stdin.flush()
        give_up = time.monotonic() + 5
        while not list(tmp_path.iterdir()) and time.monotonic() < give_up and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        process.stdin.close()
        assert process.wait(timeout=30) == 143
    assert list(tmp_path.iterdir()) == []
