"""What robots.txt allows (RFC 9309): the group of our agent, the longest rule that matches, `*` and `$`.

Hides: the grammar. Pure except for `ask`. A file that does not exist allows everything; one that cannot be fetched
because the server fails, refuses or asks to wait disallows everything, until it can be read. Only the first 512 KiB are
read, and matching takes time linear in the lengths of pattern and path: the file is written by others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, urljoin, urlsplit

from recollect.archives.live import LiveAnswer, LiveClient

AGENT = "recollect"
MOST_BYTES = 512 * 1024
MOST_RULES = 5000
MOST_SITEMAPS = 50
MOST_CHARACTERS = 1 << 20  # of all rules; percent-encoding triples a pattern
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_WAIT = frozenset((401, 403, 429))


@dataclass(frozen=True, slots=True)
class Rule:
    """One line: what it allows or not."""

    pattern: str
    allow: bool


@dataclass(frozen=True, slots=True)
class Robots:
    """The rules for our agent."""

    rules: tuple[Rule, ...] = ()
    sitemaps: tuple[str, ...] = ()
    """Addresses of sitemaps, which hold for all agents."""

    def allow(self, uri: str) -> bool:
        """Whether an address may be asked for. The longest pattern decides; of two, the one that allows."""
        split = urlsplit(uri)
        path = _normal(split.path or "/") + (f"?{_normal(split.query)}" if split.query else "")
        if path == "/robots.txt":
            return True
        found = [(len(rule.pattern), rule.allow) for rule in self.rules if matches(rule.pattern, path)]
        return max(found, default=(0, True))[1]


NOTHING = Robots((Rule("/", allow=False),))
EVERYTHING = Robots()


def matches(pattern: str, path: str) -> bool:
    """Whether a pattern covers the beginning of a path; `*` stands for any characters, `$` at the end for the end."""
    whole = pattern.endswith("$")
    first, *others = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    place = len(first)
    for number, part in enumerate(others, 1):
        if whole and number == len(others):  # the last part has to be the end
            return len(path) - len(part) >= place and path.endswith(part)
        found = path.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return not whole or place == len(path)


def parse_robots(content: bytes, agent: str = AGENT) -> Robots:
    """The rules of a robots.txt for an agent: those of its own groups, or else those for all agents (`*`).

    Only these two lists are kept, each of at most MOST_RULES rules of at most MOST_CHARACTERS, whatever the file says.
    """
    own, anyone = _Group(agent.lower()), _Group("*")
    in_rules = False
    sitemaps: dict[str, None] = {}
    for line in content[:MOST_BYTES].decode("utf-8-sig", "replace").splitlines():
        name, colon, value = line.partition("#")[0].partition(":")
        name, value = name.strip().lower(), value.strip()
        if not colon:
            continue
        if name == "sitemap":
            if value and len(sitemaps) < MOST_SITEMAPS:
                sitemaps[line.partition(":")[2].strip()] = None  # an address may have a `#`
        elif name == "user-agent":
            for group in (own, anyone):
                group.begin(value.lower(), fresh=in_rules)
            in_rules = False
        elif name in ("allow", "disallow"):
            in_rules = True
            if value and (own.is_open or anyone.is_open):
                rule = Rule(_normal(value), name == "allow")
                own.add(rule)
                anyone.add(rule)
    chosen = own if own.is_named else anyone
    return Robots(tuple(chosen.rules), tuple(sitemaps))


class _Group:
    """The rules for one agent, while a file is read."""

    def __init__(self, agent: str) -> None:
        self.rules: list[Rule] = []
        self.is_named = False
        self.is_open = False  # do the lines that come now belong to it?
        self._agent = agent
        self._left = MOST_CHARACTERS

    def begin(self, agent: str, *, fresh: bool) -> None:
        """A line `User-agent`: several in a row share what follows."""
        self.is_open = agent == self._agent or (self.is_open and not fresh)
        self.is_named = self.is_named or agent == self._agent

    def add(self, rule: Rule) -> None:
        if self.is_open and len(self.rules) < MOST_RULES and self._left >= len(rule.pattern):
            self.rules.append(rule)
            self._left -= len(rule.pattern)


def robots_of(answer: LiveAnswer) -> Robots:
    """The rules that an answer for /robots.txt means."""
    if answer.failure is not None:
        return NOTHING
    return robots_of_response(answer.status, answer.media_type, answer.body)


def robots_of_response(status: int, media_type: str, body: bytes) -> Robots:
    """The rules that an HTTP response for /robots.txt means."""
    if status in _WAIT or status >= 500:
        return NOTHING
    return parse_robots(body) if status == 200 and "html" not in media_type else EVERYTHING


async def ask_robots(client: LiveClient, site: str) -> Robots:
    """The rules of a site."""
    return robots_of(await client.get(urljoin(site, "/robots.txt")))


def _normal(text: str) -> str:
    """One spelling of percent-encoding (RFC 3986, section 6.2.2), so that a rule in another spelling matches."""
    return _ESCAPE.sub(_unreserved, quote(text, safe="/%?&=+$*!'(),;:@~-._[]"))


def _unreserved(found: re.Match[str]) -> str:
    character = chr(int(found[1], 16))
    plain = character.isascii() and (character.isalnum() or character in "-._~")
    return character if plain else found[0].upper()
