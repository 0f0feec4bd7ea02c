"""Habits of the command line: quick start, exit codes, plain errors, pipes, Ctrl-C, completion, NO_COLOR."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

import click
import pytest

from recollect import __version__
from recollect.cli import main as program
from recollect.cli.console import emit_json, emit_json_line, emit_table, lines_of, numbered_lines
from recollect.cli.main import COMMANDS, JOBS, MOVED, run
from recollect.errors import RecollectError, UsageError

HEAVY = ("numpy", "duckdb", "pyarrow", "aiohttp", "rich", "lxml", "publicsuffixlist", "zstandard", "warcio")
RECOLLECT = [sys.executable, "-m", "recollect"]


def start(*args: str, given: bytes | None = None, **environment: str) -> subprocess.CompletedProcess[bytes]:
    together = {**os.environ, **environment}
    return subprocess.run([*RECOLLECT, *args], input=given, capture_output=True, timeout=60, env=together)


def start_beside(*args: str, stdin: int | IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*RECOLLECT, *args], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_help_starts_in_less_than_300_ms() -> None:
    best = min(_cpu_seconds("--help") for _ in range(5))
    assert best < 0.3


def _cpu_seconds(*args: str) -> float:
    """Processor time of the command: a busy machine does not change it much."""
    before = os.times()
    start(*args)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["surt", "http://example.com/"], ["completion", "bash"]])
def test_light_commands_import_nothing_heavy(args: list[str]) -> None:
    code = f"import sys; from recollect.cli.main import run; run({args!r}); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert not set(HEAVY) & {name.partition(".")[0] for name in done.stderr.split()}


def test_version() -> None:
    done = start("--version")
    assert (done.returncode, done.stdout.decode()) == (0, f"recollect, version {__version__}\n")


def test_commands_are_listed_by_alphabet_with_what_they_do() -> None:
    assert list(COMMANDS) == sorted(COMMANDS)
    shown = start("--help").stdout.decode()
    for name, (_, _, what) in COMMANDS.items():
        assert name in shown
        assert what


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = program.cli.get_command(click.Context(program.cli), name)
    parts = list(command.commands) if isinstance(command, click.Group) else []
    for path in ([name], *([name, part] for part in parts)):
        assert run([*path, "--help"]) == 0
        shown = capsys.readouterr().out
        assert re.search(rf"(?m)^\s+Examples?:\n(\s*#.*\n)*\s+.*recollect {name}\b", shown), shown


def test_no_command_at_all_shows_the_most_used_commands_and_the_way_to_all() -> None:
    done = start()
    assert done.returncode == 2
    named = re.findall(r"^  recollect (\w+) ", done.stderr.decode(), re.MULTILINE)
    assert len(named) == 5 and set(named) <= set(COMMANDS)
    assert b"recollect --help" in done.stderr


def test_old_options_are_accepted_with_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = tmp_path / "index.cdxj"
    index.write_text("com,a)/ 20100101000000 {}\ncom,b)/ 20200101000000 {}\n")
    for old in (["--from", "2015"], ["--from=2015"]):
        assert run(["profile", str(index), "-q", *old]) == 0
        shown = capsys.readouterr()
        assert "com,b)/" in shown.out and "com,a)/" not in shown.out
        assert shown.err == "note: --from is now --since\n"


def test_renamed_options_exist_under_their_new_name_alone() -> None:
    for path, names in program.RENAMED.items():
        context = click.Context(program.cli)
        command: click.Command | None = program.cli
        for word in path.split():
            assert isinstance(command, click.Group)
            command = command.get_command(context, word)
        assert command is not None
        options = {name for parameter in command.params for name in parameter.opts}
        for old, new in names.items():
            assert new in options and old not in options, (path, old, new)


def test_help_lists_every_command_under_one_job() -> None:
    assert sorted(name for names in JOBS.values() for name in names) == sorted(COMMANDS)
    shown = start("--help").stdout.decode()
    assert [line[:-1] for line in shown.splitlines() if line.removesuffix(":") in JOBS] == list(JOBS)


@pytest.mark.parametrize("old", MOVED)
def test_old_names_are_accepted_with_a_note(old: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert old not in COMMANDS
    assert run([old, "--help"]) == 0
    before = capsys.readouterr()
    assert before.err == f"note: recollect {old} is now recollect {MOVED[old][2]}\n"
    assert run([*MOVED[old][2].split(), "--help"]) == 0
    now = capsys.readouterr()
    assert not now.err and now.out.splitlines()[2:] == before.out.splitlines()[2:]


def test_an_unknown_command_is_a_usage_error_that_names_the_nearest() -> None:
    done = start("srt")
    assert done.returncode == 2
    assert b"Did you mean surt" in done.stderr
    assert start("frobnicate").returncode == 2


def test_an_unknown_option_is_a_usage_error() -> None:
    assert start("surt", "--nonsense").returncode == 2


def probe(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> int:
    """Run a command that does `action` through the whole edge."""

    @click.command("probe")
    def command() -> object:
        return action()

    monkeypatch.setattr(sys.modules[__name__], "probe_command", command, raising=False)
    monkeypatch.setitem(COMMANDS, "probe", (__name__, "probe_command", "a test"))
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    monkeypatch.setattr(program, "import_module", lambda _name: sys.modules[__name__])
    return run(["probe"])


def raising(error: BaseException) -> Callable[[], object]:
    def action() -> object:
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (RecollectError("what", where="where", why="why", hint="do"), 1, "recollect: what: where: why\nhint: do\n"),
        (UsageError("what"), 2, "recollect: what\n"),
        (FileNotFoundError(2, "No such file or directory", "x.txt"), 2, "recollect: no such file: x.txt\nhint: check"),
        (PermissionError(13, "Permission denied", "x"), 1, "recollect: permission denied: x: Permission denied\nhint:"),
        (OSError(28, "No space left on device"), 1, "recollect: cannot continue: No space left on device\nhint: free"),
        (MemoryError(), 1, "recollect: out of memory\nhint:"),
        (KeyboardInterrupt(), 130, "recollect: interrupted\nhint: no incomplete"),
        (ZeroDivisionError("x"), 1, "recollect: unexpected ZeroDivisionError\nhint: this is a bug in recollect"),
    ],
)
def test_errors_become_words_and_exit_codes(
    error: BaseException, code: int, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "_abandon_stdout", lambda: None)  # it would close pytest's own
    assert probe(monkeypatch, raising(error)) == code
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.out == ""
    assert ("Traceback" in captured.err) == (type(error) is ZeroDivisionError)


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (0, 0), (1, 1), (3, 3)])
def test_a_command_returns_its_exit_code(returned: object, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert probe(monkeypatch, lambda: returned) == code


def test_when_the_reader_goes_away_we_stop_in_silence() -> None:
    endless = [sys.executable, "-c", "while True: print('http://example.com/')"]
    feed = subprocess.Popen(endless, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert feed.stdout
        ours = start_beside("surt", "--from", "-", stdin=feed.stdout)
        assert ours.stdout and ours.stderr
        feed.stdout.close()
        assert ours.stdout.readline() == b"com,example)/\n"
        ours.stdout.close()
        assert ours.wait(30) == 0
        assert ours.stderr.read() == b""
        ours.stderr.close()
    finally:
        feed.kill()
        feed.wait()


def test_a_full_disk_is_reported_and_fails() -> None:
    with Path("/dev/full").open("wb") as full:
        command = [*RECOLLECT, "surt", "http://example.com/"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith(b"recollect: cannot continue: No space left on device\nhint:")
    assert b"Exception ignored" not in done.stderr


def test_ctrl_c_ends_with_130_and_no_traceback() -> None:
    ours = start_beside("surt", "--from", "-", stdin=subprocess.PIPE)
    assert ours.stdin and ours.stdout
    ours.stdin.write(b"http://example.com/\n")
    ours.stdin.flush()
    assert ours.stdout.readline() == b"com,example)/\n"  # so it is running, and answers before its input ends
    ours.send_signal(signal.SIGINT)
    _, errors = ours.communicate(timeout=30)
    assert ours.returncode == 130
    assert errors.strip() == b"recollect: interrupted\nhint: no incomplete output was left"


def test_output_in_a_narrow_encoding_is_escaped_not_lost() -> None:
    done = start("surt", "--json", "http://example.com/ü日", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0
    assert b"\\u65e5" in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    done = start("completion", shell)
    assert done.returncode == 0
    assert b"_RECOLLECT_COMPLETE" in done.stdout


def completing(line: str) -> dict[str, str]:
    """What bash passes to a program when it asks for completions."""
    return {"_RECOLLECT_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}


def test_completion_of_commands_imports_none_of_them() -> None:
    code = "import sys, atexit; from recollect.cli.main import main; " + (
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); main()"
    )
    environment = {**os.environ, **completing("recollect su")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=environment)
    assert "plain,surt" in done.stdout.split()
    assert "recollect.cli.keys" not in done.stderr.split()


def test_completion_of_options() -> None:
    assert b"plain,--policy" in start(**completing("recollect surt --po")).stdout


def shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch, no_color: str) -> str:
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        emit_table(["name", "count"], [["a[b]c", 1]], right=[1], file=terminal)
    text = os.read(ours, 10_000).decode()
    os.close(ours)
    return text


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" in shown_on_a_terminal(monkeypatch, "")
    plain = shown_on_a_terminal(monkeypatch, "1")
    assert "\x1b[" not in plain
    assert "a[b]c" in plain  # the markup of the library is not interpreted


def test_tables_in_a_pipe_are_plain(capsys: pytest.CaptureFixture[str]) -> None:
    emit_table(["name"], [["x" * 100]], title="T")
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "x" * 100 in shown


def test_a_table_too_wide_for_a_terminal_becomes_several_and_numbers_stay_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        emit_table(["map", *"abcdef"], [["one.ukvs", *range(10_000_000, 10_000_006)]], right=range(1, 7), file=terminal)
        terminal.flush()
        shown = b""
        while shown.count(b"one.ukvs") < 3 or not shown.endswith(b"\n"):  # a terminal gives what it has, not all
            shown += os.read(ours, 10_000)
    lines = shown.decode().splitlines()
    os.close(ours)
    assert all(len(line.rstrip()) <= 40 for line in lines)
    assert sum("one.ukvs" in line for line in lines) == 3
    assert all(any(str(number) in line for line in lines) for number in range(10_000_000, 10_000_006))


def test_a_column_of_remarks_is_drawn_only_if_there_are_any(capsys: pytest.CaptureFixture[str]) -> None:
    emit_table(["name", "count", ""], [["a", 1, ""], ["b", 2, ""]], right=[1])
    without = capsys.readouterr().out
    assert [line.rstrip() for line in without.splitlines()][2:] == ["a    │     1", "b    │     2"]
    emit_table(["name", "count", ""], [["a", 1, ""], ["b", 2, "late"]], right=[1])
    assert "late" in capsys.readouterr().out


def test_json_keeps_text_and_escapes_what_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    emit_json_line({"a": "ü"})
    emit_json({"b": "\udcff"})
    assert capsys.readouterr().out == '{"a": "ü"}\n{\n  "b": "\\udcff"\n}\n'


def test_lines_keep_their_numbers_and_blank_ones_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_bytes(b"\xef\xbb\xbfone\r\n\n  \ntwo \xff\nthree")
    assert list(numbered_lines(str(file))) == [(1, "one"), (4, "two \udcff"), (5, "three")]
    assert list(lines_of(str(file))) == ["one", "two \udcff", "three"]


def test_lines_of_compressed_files_and_pipes(tmp_path: Path) -> None:
    import gzip

    file = tmp_path / "lines.txt.gz"
    file.write_bytes(gzip.compress(b"http://example.com/a\nhttp://example.com/b\n"))
    assert list(lines_of(str(file))) == ["http://example.com/a", "http://example.com/b"]
    done = start("surt", "--from", "-", given=file.read_bytes())
    assert done.stdout == b"com,example)/a\ncom,example)/b\n"


def test_closed_standard_streams_do_not_crash() -> None:
    command = f"{sys.executable} -m recollect surt"
    closed_in = subprocess.run(f"{command} --from - <&-", shell=True, capture_output=True, timeout=60)
    assert closed_in.returncode == 2
    assert closed_in.stderr == b"recollect: nothing to read: standard input: it is closed\n"
    closed_out = subprocess.run(f"{command} http://example.com/ >&-", shell=True, capture_output=True, timeout=60)
    assert closed_out.stderr == b""
