"""References in a style sheet, by the tokens of CSS (CSS Syntax 3), with their places in the text.

Hides: comments, escapes (`u\\72l(`, `@\\69mport`), strings and URLs that the end of the text closes, strings that are
URLs only inside some functions (`image-set`, `src`). Linear time on any input: every token is read once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_ESCAPE = r"\\(?:[0-9a-fA-F]{1,6}+(?:\r\n|[ \t\n\r\f])?+|[^\n\r\f0-9a-fA-F])"
_TOKEN = re.compile(
    r"/\*(?:[^*]++|\*(?!/))*+(?:\*/)?+"
    r'|"(?P<dq>(?:[^"\\\n\r\f]++|\\(?:\r\n|.))*+)"?+'
    r"|'(?P<sq>(?:[^'\\\n\r\f]++|\\(?:\r\n|.))*+)'?+"
    rf"|(?P<name>@?+(?:[A-Za-z0-9_\x80-\U0010ffff-]++|{_ESCAPE})++)(?P<open>\(?+)"
    r"|(?P<sign>[^\s\"'\\])",
    re.DOTALL,
)
_URL_BODY = re.compile(
    r"\s*+(?:"
    r'"(?P<dq>(?:[^"\\\n\r\f]++|\\(?:\r\n|.))*+)(?:"|\Z)'
    r"|'(?P<sq>(?:[^'\\\n\r\f]++|\\(?:\r\n|.))*+)(?:'|\Z)"
    rf"|(?P<raw>(?:[^\s\"'()\\]++|{_ESCAPE})*+)"
    r")\s*+(?:\)|\Z)",
    re.DOTALL,
)
_UNESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6}+)(?:\r\n|[ \t\n\r\f])?+|(\r\n|.))", re.DOTALL)
# Functions in which a string is a URL.
_OF_URLS = frozenset(["url", "src", "image", "image-set", "-webkit-image-set"])
_CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Reference:
    """A URL in a style sheet: what names it is text[start:end]."""

    url: str
    start: int
    end: int
    is_import: bool = False
    is_string: bool = False  # a string inside a function: to be replaced by a string


def references(text: str, *, strings: bool = False) -> Iterator[Reference]:
    """Every reference, in order; with `strings` also strings that a variable could carry into a function of URLs."""
    stack: list[str] = []  # names of open functions, and closing signs of open brackets
    importing = False
    at = 0
    while (token := _TOKEN.search(text, at)) is not None:
        at = token.end()
        was_importing, importing = importing, importing and token[0].startswith("/*")
        if (string := _first(token, "dq", "sq")) is not None:
            inside = bool(stack) and stack[-1] in _OF_URLS
            if was_importing or inside or (strings and _looks_remote(string)):
                yield Reference(unescape(string), token.start(), at, was_importing, not was_importing)
        elif token["name"] is not None:
            name = unescape(token["name"]).lower()
            if token["open"] and name == "url" and (body := _URL_BODY.match(text, at)) is not None:
                at = body.end()
                url = unescape(_first(body, "dq", "sq", "raw") or "")
                yield Reference(url, token.start(), at, was_importing)
            elif token["open"]:
                stack.append(name if name in _OF_URLS else ")")
            importing = name == "@import"
        elif (sign := token["sign"]) is not None:
            if sign in _CLOSING:
                stack.append(_CLOSING[sign])
            elif stack and sign in ")]}" and (sign == stack[-1] or (sign == ")" and stack[-1] in _OF_URLS)):
                stack.pop()


def _first(match: re.Match[str], *groups: str) -> str | None:
    return next((match[group] for group in groups if match[group] is not None), None)


def _looks_remote(string: str) -> bool:
    text = unescape(string).strip().lower()
    return text.startswith(("http:", "https:", "//", "\\\\", "/\\", "\\/"))


def unescape(value: str) -> str:
    """The text that escapes stand for."""

    def one(match: re.Match[str]) -> str:
        if match[1]:
            code = int(match[1], 16)
            return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
        return "" if match[2] in ("\n", "\r\n", "\r", "\f") else match[2]

    return _UNESCAPE.sub(one, value) if "\\" in value else value


def escape(url: str) -> str:
    """A URL as it can stand in `url(...)` and in a string."""
    for char in "()'\" \\":
        url = url.replace(char, f"%{ord(char):02X}")
    return url
