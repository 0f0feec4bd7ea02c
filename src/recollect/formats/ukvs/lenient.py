"""JSON as people write it in map headers and blocks: keys without quotes, single quotes, a comma too many.

Hides: turning such text into strict JSON, token by token. Everything strict JSON allows is read as strict JSON;
`NaN`, `Infinity` and bare words as values are refused, as is what other programs could not write back.
"""

from __future__ import annotations

import json
import re
from typing import Any

from recollect.errors import FormatError

_TOKEN = re.compile(
    r"""(?P<space>\s++)
    |(?P<string>"(?:[^"\\]|\\.)*+")
    |(?P<single>'(?:[^'\\]|\\.)*+')
    |(?P<mark>[{}\[\],:])
    |(?P<word>[^\s{}\[\],:"']+)""",
    re.VERBOSE | re.DOTALL,
)

_COLON = re.compile(r"\s*+:")
_SURROGATE = re.compile("[\ud800-\udfff]")


def loads(text: str | bytes) -> Any:
    """The value of a lenient JSON text; raises FormatError."""
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise FormatError("bad JSON", why=f"not UTF-8 ({error.reason} at byte {error.start})") from error
    try:
        return _strict(text)
    except RecursionError as error:
        raise FormatError("bad JSON", why="nested too deeply") from error
    except ValueError:
        pass
    try:
        # Joined with spaces, as words that stood apart must not become one.
        return _strict(" ".join(_rewritten(text)))
    except RecursionError as error:
        raise FormatError("bad JSON", why="nested too deeply") from error
    except ValueError as error:
        raise FormatError("bad JSON", why=str(error)) from error


def dumps(value: Any) -> str:
    """Strict JSON on one line, which UTF-8 can hold: half of a surrogate pair stays an escape."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text if not _SURROGATE.search(text) else json.dumps(value, allow_nan=False)


def _strict(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse, parse_float=_finite)


def _finite(word: str) -> float:
    """A number that can be written back; `1e400` is none."""
    value = float(word)
    return value if abs(value) < float("inf") else _refuse(word)


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _rewritten(text: str) -> list[str]:
    """The tokens as strict JSON."""
    out: list[str] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError(f"a quote that is not closed, at character {position + 1}")
        position = match.end()
        if match.lastgroup == "single":
            out.append(json.dumps(_unquoted(match[0][1:-1])))
        elif match.lastgroup == "word" and _COLON.match(text, position):
            out.append(json.dumps(match[0]))
        elif match[0] in ("}", "]") and out[-1:] == [","] and out[-2:-1] not in (["{"], ["["], [","]):
            out[-1] = match[0]
        elif match.lastgroup != "space":
            out.append(match[0])
    return out


def _unquoted(inside: str) -> str:
    """The text of a string in single quotes: JSON's escapes, and `\\'`."""
    body = re.sub(r"\\.|\"", lambda found: {"\\'": "'", '"': '\\"'}.get(found[0], found[0]), inside, flags=re.DOTALL)
    return str(json.loads(f'"{body}"'))
