"""Settings of the server: one frozen `Settings`, merged once from a TOML file, then the environment, then flags.

Hides: the source of a value (`load_settings` returns it), and how text becomes a value (`10m`, `256 MB`, `yes`).
Unknown keys, in the file or in the environment (`RECOLLECT_*`), are errors: a misspelt setting must not be a setting
that does nothing. Every setting is listed in docs/aggregator.md.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

from recollect.desk.settings import DeskSettings
from recollect.errors import RecollectError, UsageError
from recollect.quantities import parse_duration, parse_share, parse_size

_PREFIX = "RECOLLECT_"
_DESK_PREFIX = "RECOLLECT_DESK_"
_WORDS = {"yes": True, "true": True, "on": True, "1": True, "no": False, "false": False, "off": False, "0": False}
# Variables of the environment that are not settings.
_HINT = "`recollect config show` lists all settings"
_OTHER_VARIABLES = frozenset({"RECOLLECT_CONFIG", "RECOLLECT_JOBS_DESK"})


def _setting(default: Any, kind: str, meaning: str, *, secret: bool = False) -> Any:
    return field(default=default, metadata={"kind": kind, "help": meaning, "secret": secret})


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything an operator can set. Durations are seconds, sizes bytes."""

    archives: str | None = _setting(
        None, "text", "list of archives (TOML or JSON); the built-in list of public archives if unset"
    )
    maps: str | None = _setting(None, "text", "folder with one map or filter per archive, named by its id")
    host: str = _setting("127.0.0.1", "text", "address to listen on")
    port: int = _setting(1208, "port", "port to listen on; 0 lets the system choose")
    base_url: str = _setting("", "text", "public address, if it differs from the address that clients call")
    workers: int = _setting(1, "count", "number of server processes")
    deadline: float = _setting(
        30.0, "duration", "time limit for a response; archives that are late are reported as missing"
    )
    connect_timeout: float = _setting(5.0, "duration", "time to connect to an archive")
    concurrency: int = _setting(100, "count", "concurrent requests to an archive without a limit in the list")
    in_flight: int | None = _setting(
        None, "count", "concurrent requests to all archives together, beyond an equal share for each; no limit if unset"
    )
    patience: float = _setting(
        3.0, "duration", "how long a request waits for its turn at an archive (rate and concurrency limits)"
    )
    top_k: int | None = _setting(None, "count", "ask at most N archives, the most probable first")
    budget: int | None = _setting(
        None, "count", "at most N requests per lookup: the most probable archives first, then pages"
    )
    max_pages: int = _setting(100, "count", "requests per archive and lookup: a TimeMap and its pages")
    max_answer: int = _setting(64 * 10**6, "size", "largest response read from an archive")
    page_size: int = _setting(1000, "count", "mementos per page of a TimeMap")
    cache: str = _setting("memory", "text", "`memory`, `none`, a file, or redis://host:port/db")
    cache_size: int = _setting(256 * 10**6, "size", "size limit of the cache in memory, and of the cache file")
    fresh: float = _setting(86400.0, "duration", "how long an archive's mementos are served from the cache")
    stale: float = _setting(7 * 86400.0, "duration", "stale-while-revalidate window")
    negative: float = _setting(600.0, "duration", "how long an archive's `none` is served from the cache")
    learn: bool = _setting(True, "switch", "learn from outcomes what archives without a map hold")
    explore: float = _setting(0.05, "share", "share of lookups that ask an archive although the learned model says no")
    target_recall: float | None = _setting(
        None,
        "share",
        "ask archives by probability until this share of the holdings is expected to be found; if unset, ask all"
        " but those that the learned model makes unlikely (recall of each archive at least 95%)",
    )
    floor: float = _setting(
        0.3,
        "share",
        "with target_recall: the least share of what each archive holds that is asked for, where its chance is highest"
        " and at random",
    )
    max_stale_loss: float = _setting(
        0.01,
        "share",
        "ask an archive although its map says no, if the chance that it holds the URI since the map was made is larger"
        " (with target_recall: larger than 1 − target_recall)",
    )
    any_status: bool = _setting(
        False, "switch", "ask archives also for captures that the status filter of their map leaves out"
    )
    near: float | None = _setting(
        None, "duration", "a TimeGate skips archives whose maps show captures only further away than this, like 2y"
    )
    state: str | None = _setting(None, "text", "folder that keeps the cache and the learned model over a restart")
    user_agent: str = _setting("", "text", "User-Agent header for archives")
    contact: str = _setting("", "text", "mail or web address added to the user agent")
    access_log: str | None = _setting(None, "text", "file for the access log (JSON lines); - is standard output")
    trusted_proxies: str = _setting(
        "", "text", "addresses of proxies (a,b) whose X-Forwarded-For names the client in the access log"
    )
    monitor: bool = _setting(True, "switch", "serve /monitor, events of every lookup")
    admin_token: str = _setting("", "text", "token for the operator's endpoints", secret=True)
    admin_port: int | None = _setting(
        None, "port", "separate port for the operator's endpoints, on the loopback interface"
    )
    drain: float = _setting(10.0, "duration", "time for running requests to finish when the server stops")
    refresh: float = _setting(0.0, "duration", "interval to look for changed maps and archives; 0: only on SIGHUP")
    discover: float = _setting(
        0.0, "duration", "interval to fetch the maps that archives publish into `maps`; 0: never"
    )
    desk: str = _setting("", "text", "address of a recovery desk, for the links to get a site back")
    publish: str | None = _setting(None, "text", "folder of published maps to serve at /.well-known/mementomap")


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and the source of each value."""

    settings: Settings
    sources: Mapping[str, str]


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    config: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Loaded:
    """Merge file, environment and flags. Flags that are None were not given."""
    env = os.environ if environment is None else environment
    own = {name: text for name, text in env.items() if not name.startswith(_DESK_PREFIX)}
    values, sources = _merged(Settings, _PREFIX, flags, _config_file(config, env), own)
    settings = Settings(**values)
    if settings.discover and not settings.maps:
        raise UsageError("missing --maps DIR", why="discovered maps are stored there", hint="add --maps DIR")
    return Loaded(settings, sources)


@dataclass(frozen=True, slots=True)
class LoadedDesk:
    """Settings of the desk, and the source of each value."""

    settings: DeskSettings
    sources: Mapping[str, str]


def load_desk_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    config: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> LoadedDesk:
    """The same for the recovery desk: its file is only ever named, its variables begin with RECOLLECT_DESK_."""
    env = os.environ if environment is None else environment
    file = Path(config) if config else None
    values, sources = _merged(DeskSettings, _DESK_PREFIX, flags, file, env)
    return LoadedDesk(DeskSettings(**values), sources)


def is_desk_file(path: str | Path | None) -> bool:
    """Whether a file holds settings of the desk: at least one that only the desk has."""
    if not path:
        return False
    try:
        names = set(_read(Path(path)))
    except (RecollectError, OSError):
        return False
    return bool(names & ({one.name for one in fields(DeskSettings)} - {one.name for one in fields(Settings)}))


def _merged(
    kind: type[Settings] | type[DeskSettings],
    prefix: str,
    flags: Mapping[str, Any] | None,
    file: Path | None,
    env: Mapping[str, str],
) -> tuple[dict[str, Any], dict[str, str]]:
    known = {one.name: one for one in fields(kind)}
    values: dict[str, Any] = {}
    sources = dict.fromkeys(known, "default")
    if file is not None:
        for name, value in _read(file).items():
            if name not in known:
                raise UsageError("unknown setting", where=f"{file}: {name}", hint=_HINT)
            values[name] = _value(known[name], value, f"{file}: {name}")
            sources[name] = str(file)
    for variable, text in env.items():
        if not variable.startswith(prefix) or variable in _OTHER_VARIABLES:
            continue
        name = variable.removeprefix(prefix).lower()
        if name not in known:
            raise UsageError("unknown setting", where=f"environment: {variable}", hint=_HINT)
        values[name] = _value(known[name], text, variable)
        sources[name] = variable
    for name, value in (flags or {}).items():
        if value is not None:
            values[name] = _value(known[name], value, f"--{name.replace('_', '-')}")
            sources[name] = f"--{name.replace('_', '-')}"
    return values, sources


def _config_file(config: str | Path | None, env: Mapping[str, str]) -> Path | None:
    named = config or env.get("RECOLLECT_CONFIG")
    if named:
        return Path(named)
    home = env.get("XDG_CONFIG_HOME") or (f"{env['HOME']}/.config" if env.get("HOME") else "")
    usual = Path(home) / "recollect" / "config.toml" if home else None
    return usual if usual is not None and usual.is_file() else None


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError("cannot read the settings", where=str(file), why=error.strerror or str(error)) from error
    except ValueError as error:
        raise UsageError("not TOML", where=str(file), why=str(error)) from error


def _value(setting: Any, value: Any, where: str) -> Any:
    kind = setting.metadata["kind"]
    try:
        return _KINDS[kind](value)
    except UsageError as error:
        raise UsageError("bad setting", where=where, why=str(error), hint=error.hint) from error
    except (ValueError, TypeError) as error:
        raise UsageError("bad setting", where=where, why=f"{error}, found {value!r}") from error


def _text(value: Any) -> str:
    if isinstance(value, str | Path):
        return str(value)
    raise ValueError("expected text")


def _count(value: Any) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"0*[1-9][0-9]{0,11}", str(value)):
        raise ValueError("expected a whole number, at least 1")
    return int(value)


def _amount(value: Any) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,12}", str(value)):
        raise ValueError("expected a whole number, at least 0")
    return int(value)


def _port(value: Any) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,5}", str(value)) or int(value) > 65535:
        raise ValueError("expected a port, 0 to 65535")
    return int(value)


def _switch(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = _WORDS.get(str(value).strip().lower())
    if word is None:
        raise ValueError("expected yes or no")
    return word


_KINDS: dict[str, Any] = {
    "text": _text,
    "count": _count,
    "amount": _amount,
    "port": _port,
    "duration": parse_duration,
    "size": partial(parse_size, least=0),
    "share": partial(parse_share, zero=True),
    "switch": _switch,
}
