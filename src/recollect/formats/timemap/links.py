"""Web links (RFC 8288) as archives really send them, and as they must be written.

Hides: finding where a link, a target and a parameter end when separators, quotes or brackets are missing or wrong;
resolving relative targets; making any target safe to write. Reading never fails: what cannot be read is named in a
list of problems. A link is `<target>; name=value; name="value"`, links are separated by commas. Read as well:

- `;`, white space or nothing between links, commas between parameters, empty members, text between links;
- `>`, `"`, `,`, `;` and spaces inside a target (it ends at the first `>` that a separator follows);
- single quotes, no quotes (also around dates, which hold a comma), spaces around `=`, names in any case;
- a quote or a bracket that is never closed (cut-off bodies): the link is kept as far as it is certain.

Invariant: a target that leaves `resolve` is an absolute http(s) URI without white space, control characters, `<`,
`>`, `"` or bytes outside ASCII; those are percent-encoded, everything else is kept as it was sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

# A target ends at the first `>` after which a link can go on or end; `a>b` stays whole.
_TARGET = re.compile(r"<([^\n]*?)>(?=\s*(?:[;,<]|\Z)|\s+[\w*-]+\s*=)")
# Parameters as they should be, or with single quotes: read in one go, the rest one by one.
_PLAIN = re.compile(r"""(?:\s*;\s*[\w*-]+\s*=\s*(?:"[^"\\\n]*"|'[^'\n]*')(?=\s*(?:[;,<]|\Z)))+""")
_PAIR = re.compile(r"""(?<![\w*-])([\w*-]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)')""")
_NAME = re.compile(r"([\w!#$&+\-.^`|~*]+)\s*=\s*")
_FLAG = re.compile(r"[\w!#$&+\-.^`|~*]+(?=\s*(?:[;,<]|\Z))")
_QUOTED = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_APOSTROPHED = re.compile(r"'([^'\n]*)'")
_BARE = re.compile(r"[^;,<\s]*")
_BARE_DATE = re.compile(r"(?:[A-Za-z]{3,9}\s*,)?[^;,<\"\n]*")
_NEXT = re.compile(r"[<,;]")
_SWALLOWED = re.compile(r'([^;"]*);\s*[\w*-]+\s*=\s*')
_NEW_LINK = re.compile(r"[\s,;]<\s*(?=https?:|/)")
_DATES = frozenset({"datetime", "from", "until"})
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_UNSAFE = re.compile(r"[^!#-;=?-~]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_ORIGIN = re.compile(r"(https?):(//[^/?#]*)([^?#]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Link:
    """One link: its target as sent, its relation types in lower case, its parameters by lower-case name."""

    target: str
    rels: tuple[str, ...]
    params: dict[str, str] = field(default_factory=dict)
    cut: frozenset[str] = frozenset()
    """Names of parameters whose value had no closing quote, so that it may be cut off."""


class Problems:
    """Violations by kind, each with its count and its first example: a body can hold the same one 100,000 times."""

    def __init__(self) -> None:
        self._kinds: dict[str, tuple[int, str]] = {}
        self.missing = ""
        """The first violation that may have cost mementos; empty if everything was read."""

    def add(self, what: str, excerpt: str = "") -> None:
        count, example = self._kinds.get(what, (0, excerpt.strip()[:80]))
        self._kinds[what] = (count + 1, example)

    def lose(self, what: str, excerpt: str = "") -> None:
        """Add a violation that may have cost mementos."""
        self.missing = self.missing or what
        self.add(what, excerpt)

    def words(self) -> tuple[str, ...]:
        """Each kind in one line, in the order they were first met."""
        return tuple(
            what + (f" ({count} times)" if count > 1 else "") + (f": {example!r}" if example else "")
            for what, (count, example) in self._kinds.items()
        )


def parse_links(text: str, problems: Problems | None = None) -> Iterator[Link]:
    """The links of a link-format document or of a Link header's value, in order."""
    return _Reader(text, problems or Problems()).links()


def parse_link_header(values: Iterable[str], problems: Problems | None = None) -> list[Link]:
    """The links of all Link headers of one response."""
    return [link for value in values for link in parse_links(value, problems)]


class _Reader:
    """A position in a text that only moves forward, and never looks at a line twice: reading is linear in its size."""

    def __init__(self, text: str, problems: Problems) -> None:
        self.text = text
        self.at = 0
        self.problems = problems

    def links(self) -> Iterator[Link]:
        text = self.text
        while True:
            start = text.find("<", self.at)
            between = text[self.at : start if start >= 0 else len(text)]
            if between.strip(" \t\r\n,;\ufeff"):
                self._problem("text between links", between)
            if start < 0:
                return
            self.at = start
            target = self._target()
            if target is not None:
                yield self._link(target)

    def _target(self) -> str | None:
        match = _TARGET.match(self.text, self.at)
        if match is None:
            # No `>` ends a target on the rest of this line, so no other `<` here opens one either.
            line_end = self.text.find("\n", self.at)
            end = line_end if line_end >= 0 else len(self.text)
            self._problem("a target without closing '>'", self.text[self.at : end])
            self.at = end
            return None
        target = match[1]
        if "<" in target:
            *opened, target = _NEW_LINK.split(target)
            if opened:
                self._problem("a target without closing '>'", opened[0])
        self.at = match.end()
        return target.strip()

    def _link(self, target: str) -> Link:
        params: dict[str, str] = {}
        cut: set[str] = set()
        plain = _PLAIN.match(self.text, self.at)
        if plain is not None:
            self.at = plain.end()
            for name, double, single in _PAIR.findall(plain[0]):
                params.setdefault(name.lower(), double or single)
                if single:
                    self._problem("single quotes", "")
        while self._to_parameter():
            name_match = _NAME.match(self.text, self.at)
            if name_match is None:
                flag = _FLAG.match(self.text, self.at)
                if flag is not None:
                    params.setdefault(flag[0].lower(), "")
                    self.at = flag.end()
                    continue
                stop = _NEXT.search(self.text, self.at)
                end = stop.start() if stop else len(self.text)
                self._problem("text that is not a parameter", self.text[self.at : end])
                self.at = end
                continue
            self.at = name_match.end()
            name = name_match[1].lower()
            value, whole = self._value(name)
            if not whole and name not in params:
                cut.add(name)
            params.setdefault(name, value)
        return Link(target, tuple(params.get("rel", "").lower().split()), params, frozenset(cut))

    def _to_parameter(self) -> bool:
        """Move past separators to the next parameter of this link; False where the link ends."""
        text, size = self.text, len(self.text)
        separators = ""
        while self.at < size and (text[self.at] in " \t\r\n,;"):
            if text[self.at] in ",;":
                separators += text[self.at]
            self.at += 1
        if self.at >= size:
            return False
        if text[self.at] == "<":
            if "," not in separators:
                self._problem("a semicolon between links" if separators else "no comma between links", "")
            return False
        if not separators.startswith(";"):
            # Only a name with `=` can follow without a semicolon; anything else is not part of a link.
            if _NAME.match(text, self.at) is None:
                return not separators and self._junk()
            self._problem("a comma between parameters" if separators else "no semicolon between parameters", "")
        return True

    def _junk(self) -> bool:
        """Text after a parameter without separator: leave it out, and look for a parameter after it."""
        stop = _NEXT.search(self.text, self.at)
        end = stop.start() if stop else len(self.text)
        self._problem("text that is not a parameter", self.text[self.at : end])
        self.at = end
        return self._to_parameter()

    def _value(self, name: str) -> tuple[str, bool]:
        text = self.text
        if text.startswith('"', self.at):
            return self._quoted()
        if text.startswith("'", self.at):
            match = _APOSTROPHED.match(text, self.at)
            if match is not None:
                self._problem("single quotes", "")
                self.at = match.end()
                return match[1], True
        pattern = _BARE_DATE if name in _DATES else _BARE
        match = pattern.match(text, self.at)
        assert match is not None  # both patterns match nothing at all
        self.at = match.end()
        if name in _DATES:
            self._problem("a date without quotes", "")
        return match[0].strip(), not (name in _DATES and self.at == len(text))

    def _quoted(self) -> tuple[str, bool]:
        match = _QUOTED.match(self.text, self.at)
        if match is None:
            line_end = self.text.find("\n", self.at)
            end = len(self.text) if line_end < 0 else line_end
            value = self.text[self.at + 1 : end]
            self._problem("a quote that is never closed", value)
            stop = _NEXT.search(value)
            self.at += 1 + (stop.start() if stop else len(value))
            return value[: stop.start()] if stop else value, False
        swallowed = _SWALLOWED.fullmatch(match[1])
        if swallowed is not None:
            # rel="memento; datetime="Thu...: the first quote was not closed, the rest is the next parameter.
            self._problem("a quote that is never closed", match[1])
            self.at += 1 + swallowed.end(1)
            return swallowed[1].strip(), True
        self.at = match.end()
        value = match[1]
        return (_ESCAPED.sub(r"\1", value) if "\\" in value else value), True

    def _problem(self, what: str, excerpt: str) -> None:
        self.problems.add(what, excerpt)


def resolve(base: str, target: str) -> str | None:
    """The target as an absolute, safe http(s) URI; None for other schemes.

    RFC 3986 section 5 without its path clean-up: a URI-M holds a whole URI in its path, and `//` or `/../` there
    belong to the archived address.
    """
    scheme = _SCHEME.match(target)
    if scheme is not None:
        return safe_uri(target) if scheme[1].lower() in ("http", "https") else None
    parts = _ORIGIN.match(base)
    if parts is None:
        return None
    if target.startswith("//"):
        return safe_uri(f"{parts[1]}:{target}")
    if target.startswith("/"):
        return safe_uri(f"{parts[1]}:{parts[2]}{target}")
    if target.startswith("?"):
        return safe_uri(f"{parts[0]}{target}")
    folder = parts[3].rpartition("/")[0]
    while target.startswith(("./", "../")):
        if target.startswith("../"):
            folder = folder.rpartition("/")[0]
        target = target.partition("/")[2]
    return safe_uri(f"{parts[1]}:{parts[2]}{folder}/{target}")


def safe_uri(uri: str) -> str:
    """The URI with everything that could break out of a link, a header or a line percent-encoded, and nothing else."""
    return _UNSAFE.sub(_percent, uri)


def _percent(match: re.Match[str]) -> str:
    try:
        raw = match[0].encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a surrogate pair, from a JSON escape
        raw = "\ufffd".encode()
    return "".join(f"%{byte:02X}" for byte in raw)


def quote(value: str) -> str:
    """A quoted-string for a parameter (RFC 8288 section 3): control characters and non-ASCII have no place in it."""
    clean = "".join(c if " " <= c <= "~" else "?" for c in value)
    return '"' + clean.replace("\\", "\\\\").replace('"', '\\"') + '"'
