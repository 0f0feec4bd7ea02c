"""Settings: file, then environment, then flags; and where each came from."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from recollect.cli.main import run
from recollect.errors import UsageError
from recollect.settings import Settings, load_settings

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


def test_flags_beat_the_environment_which_beats_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('port = 1\nhost = "a"\ndeadline = "2m"\ncache_size = "10 MB"\nlearn = false\n')
    loaded = load_settings(
        {"port": 3, "host": None},
        config=file,
        environment={"RECOLLECT_PORT": "2", "RECOLLECT_TOP_K": "5", "HOME": "/x"},
    )
    settings = loaded.settings
    assert (settings.port, settings.host, settings.top_k) == (3, "a", 5)
    assert (settings.deadline, settings.cache_size, settings.learn) == (120.0, 10**7, False)
    assert loaded.sources["port"] == "--port"
    assert loaded.sources["top_k"] == "RECOLLECT_TOP_K"
    assert loaded.sources["host"] == str(file)
    assert loaded.sources["workers"] == "default"


def test_the_usual_file_is_found(tmp_path: Path) -> None:
    place = tmp_path / "recollect" / "config.toml"
    place.parent.mkdir()
    place.write_text("port = 7\n")
    assert load_settings(environment={"XDG_CONFIG_HOME": str(tmp_path)}).settings.port == 7
    assert load_settings(environment={}).settings.port == 1208
    other = tmp_path / "other.toml"
    other.write_text("port = 8\n")
    assert load_settings(environment={"RECOLLECT_CONFIG": str(other)}).settings.port == 8


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prot = 1", "prot"),
        ("port = 'x'", "expected a port"),
        ("port = true", "expected a port"),
        ("port = 65536", "expected a port"),
        ("workers = 'x'", "expected a whole number"),
        ("workers = 0", "at least 1"),
        ("page_size = 0", "at least 1"),
        ("top_k = true", "expected a whole number"),
        ("deadline = 'soon'", "not a duration"),
        ("explore = 1.5", "not a share"),
        ("learn = 'perhaps'", "expected yes or no"),
        ("host = 1", "expected text"),
        ("port = [", "not TOML"),
    ],
)
def test_a_misspelt_setting_is_an_error_that_names_it(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=re.escape(words)):
        load_settings(config=file, environment={})


def test_an_unknown_variable_is_an_error() -> None:
    with pytest.raises(UsageError, match="RECOLLECT_PROT"):
        load_settings(environment={"RECOLLECT_PROT": "1"})


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(5, 5.0), ("1.5", 1.5), ("500ms", 0.5), ("10 m", 600.0), ("24h", 86400.0), ("30d", 2592000.0)],
)
def test_durations(value: object, seconds: float) -> None:
    assert load_settings({"fresh": value}, environment={}).settings.fresh == seconds


def test_every_setting_is_documented() -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert [one.name for one in fields(Settings) if f"`{one.name}`" not in text] == []


def test_config_show_tells_sources_and_hides_secrets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("RECOLLECT_ADMIN_TOKEN", "s3cret")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert run(["config", "show"]) == 0
    out = capsys.readouterr().out
    assert "s3cret" not in out
    assert "RECOLLECT_ADMIN_TOKEN" in out
    assert run(["config", "show", "--json"]) == 0
    assert '"from": "default"' in capsys.readouterr().out
