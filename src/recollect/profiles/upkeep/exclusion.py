"""Keys that must not be in a map: embargoes and takedowns, as keys or as pywb's access lists.

Hides: two formats, and finding the excluded lines of a sorted map without looking at the others. A line of the file is

    com,example)/private             this key
    com,example)/private/*           this key and all below it; com,example,* a host and all its subdomains
    http://example.com/private       the same as its key; http://example.com/private/* as its wildcard
    com,example)/private - {"access": "exclude"}      a rule of pywb (.aclj): all keys that begin so; with ### this key

Of pywb's rules `exclude` and `block` exclude, as does a rule without `access`; `allow` and `allow_ignore_embargo`
include a part of an excluded range; the longest rule decides. Rules for one `user` do not concern the public and are
left out. Keys have no queries and no dates, so a rule for a query or a period excludes the whole key, and includes
nothing: more is excluded rather than less. For the same reason a line that cannot be read is an error.

Nothing excluded can be inferred: its lines are removed before anything is counted, totals in the header are those of
what is left, and no void is written in its place.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from recollect.errors import BadURI, FormatError
from recollect.formats.containers import atomic_output
from recollect.formats.frequency import Frequency
from recollect.formats.logs import LogEntry
from recollect.kernels.search import MapSearch
from recollect.maps.plainmap import PlainMap, open_plain
from recollect.uris import is_surt, key_of_uri, uri_key

_EXACT = b"###"
_DENY = ("exclude", "block")
_ALLOW = ("allow", "allow_ignore_embargo")
_DATES = ("before", "after", "newer", "older")
_SCHEME = re.compile(rb"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]*+://\(?")
_COMMENT = re.compile(rb"\s#.*")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Removed:
    """What was left out of a map."""

    keys: int = 0
    captures: int = 0


@dataclass(frozen=True, slots=True)
class Exclusions:
    """Rules by exact key and by prefix; True excludes. The longest rule decides, an exact one before all."""

    exact: dict[bytes, bool] = field(default_factory=dict)
    prefixes: dict[bytes, bool] = field(default_factory=dict)
    digest: str = ""

    def __bool__(self) -> bool:
        return bool(self.exact or self.prefixes)

    def excludes(self, key: bytes) -> bool:
        """Whether a key is excluded."""
        if (rule := self.exact.get(key)) is not None:
            return rule
        for length in range(len(key), -1, -1):
            if (rule := self.prefixes.get(key[:length])) is not None:
                return rule
        return False

    def allowed(self, lookups: Iterable[LogEntry]) -> Iterable[LogEntry]:
        """The lookups of keys that are not excluded: a void for another one would point at it."""
        return (entry for entry in lookups if not self._excludes_uri(entry.uri))

    def _excludes_uri(self, uri: str) -> bool:
        try:
            return self.excludes(_key_of(uri))
        except BadURI:
            return False


def read_exclusions(*paths: str | os.PathLike[str]) -> Exclusions:
    """The rules of files, all together: what one of them excludes by the same rule as another includes is excluded. A
    line that cannot be read is an error, as it may be the takedown that matters."""
    bodies = [Path(path).read_bytes() for path in paths]
    digests = [hashlib.sha256(body).hexdigest() for body in bodies]
    digest = digests[0] if len(digests) == 1 else hashlib.sha256(" ".join(digests).encode()).hexdigest()
    rules = Exclusions(digest=digest)
    for path, body in zip(paths, bodies, strict=True):
        for number, raw in enumerate(body.removeprefix(_BOM).splitlines(), 1):
            line = raw.strip()
            if not line or line.startswith(b"#"):
                continue
            try:
                _add(rules, line)
            except (ValueError, BadURI, FormatError) as error:
                hint = "one key per line, such as com,example)/private/*, or rules of pywb"
                place = f"{os.fspath(path)}:{number}"
                raise FormatError("not a rule", where=place, why=str(error), hint=hint) from error
    return rules


def _add(rules: Exclusions, line: bytes) -> None:
    start = line.find(b"{")
    if start > 0 and line[:start].strip():
        words = line[:start].split()
        _add_access_rule(rules, words[0], json.loads(line[start:]))
        return
    line = _COMMENT.sub(b"", line).strip()
    if len(line.split()) > 1 or b"\0" in line:
        raise ValueError("white space in a key; a comment begins with #")
    if line.endswith(b"*"):
        _add_wildcard(rules, line)
    else:
        rules.exact[_key_of(line.decode("utf-8", "surrogateescape"))] = True


def _key_of(text: str) -> bytes:
    return uri_key(text.encode("utf-8", "surrogateescape")) if is_surt(text) else key_of_uri(text)


def _add_wildcard(rules: Exclusions, wildcard: bytes) -> None:
    bare = _SCHEME.sub(b"", wildcard)
    if bare == b"*":
        rules.prefixes[b""] = True
    elif bare.endswith(b",*") and b")" not in bare and len(bare) > 2:
        host = _normal_prefix(bare[:-2])
        for after in (b")", b",", b":"):
            rules.prefixes[host + after] = True
    elif wildcard.endswith(b"/*"):
        key = _key_of(wildcard[:-1].decode("utf-8", "surrogateescape"))
        rules.exact[key] = True
        rules.prefixes[key if key.endswith(b"/") else key + b"/"] = True
    else:
        raise ValueError("a wildcard ends with /* or ,* after a host or a path")


def _normal_prefix(prefix: bytes) -> bytes:
    """The beginning of all normal keys whose SURTs begin so."""
    more = b"x" if b")" in prefix else b"x)/"  # a key does not end with a slash, and has a host
    return uri_key(prefix.removesuffix(b")") + b")/" + more if prefix.endswith(b")") else prefix + more)[: -len(more)]


def _add_access_rule(rules: Exclusions, key: bytes, rule: object) -> None:
    access = rule.get("access", "exclude") if isinstance(rule, dict) else None
    if not isinstance(rule, dict) or access not in (*_DENY, *_ALLOW):
        raise ValueError(f"access is one of {', '.join((*_DENY, *_ALLOW))}")
    deny = access in _DENY
    narrowed = b"?" in key or any(rule.get(name) for name in _DATES)
    if rule.get("user") or (narrowed and not deny):
        return
    bare, query, _ = key.partition(b"?")
    if key == b"*,":
        _set(rules.prefixes, b"", deny)
    elif query or bare.endswith(_EXACT):
        _set(rules.exact, uri_key(bare.removesuffix(_EXACT)), deny)
    else:
        prefix = _normal_prefix(bare)
        _set(rules.prefixes, prefix, deny)
        if deny and prefix.endswith(b"/") and not prefix.endswith(b")/"):
            _set(rules.exact, prefix.rstrip(b"/"), deny)  # a key has no slash at its end


def _set(rules: dict[bytes, bool], key: bytes, deny: bool) -> None:
    rules[key] = deny or rules.get(key, False)


def remove_excluded(source: str | os.PathLike[str], target: str | os.PathLike[str], rules: Exclusions) -> Removed:
    """Copy a sorted map without what is excluded, with totals of what is left and without names of its sources."""
    with open_plain(source) as plain:
        lines, removed = _excluded_lines(plain, rules)
        with atomic_output(target) as out:
            out.write(_header(plain, removed))
            at = plain.start
            for start, end in lines:
                out.write(plain.data[at:start])
                at = end
            out.write(plain.data[at:])
    return removed


def _header(plain: PlainMap, removed: Removed) -> bytes:
    meta = {name: value for name, value in plain.header.meta.items() if name not in ("sources", "gamma", "span")}
    counts = meta.pop("counts", None)
    if isinstance(counts, dict) and isinstance(counts.get("captures"), int):
        meta["counts"] = {"captures": counts["captures"] - removed.captures}
    return replace(plain.header, meta=meta).encode()


def _excluded_lines(plain: PlainMap, rules: Exclusions) -> tuple[list[tuple[int, int]], Removed]:
    """Where the excluded lines are, in order, and what they held."""
    found: list[tuple[int, int]] = []
    keys = captures = 0
    for start, end in _ranges(plain, rules):
        at = start
        while at < end:
            stop = _line_end(plain, at, end)
            line = plain.data[at:stop].tobytes()
            key, _, rest = line.partition(b" ")
            if rules.excludes(key):
                found.append((at, stop))
                keys += 1
                captures += Frequency.parse(rest.split()[0]).uri_m.value or 0
            at = stop
    return found, Removed(keys, captures)


def _ranges(plain: PlainMap, rules: Exclusions) -> list[tuple[int, int]]:
    """Ranges of the map that may hold excluded keys, in order and without overlap."""
    search = MapSearch(plain.data, plain.start)
    place: Callable[[bytes], int] = search.place
    size = len(plain.data)
    ranges = [(place(key), place(key + b"!")) for key, deny in rules.exact.items() if deny]
    for prefix, deny in rules.prefixes.items():
        if deny:
            after = prefix[:-1] + bytes((prefix[-1] + 1,)) if prefix else b""
            ranges.append((place(prefix), place(after)) if prefix else (plain.start, size))
    joined: list[tuple[int, int]] = []
    for start, end in sorted(range_ for range_ in ranges if range_[0] < range_[1]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _line_end(plain: PlainMap, at: int, end: int) -> int:
    while at < end:
        piece = plain.data[at : min(at + 4096, end)].tobytes()
        if (found := piece.find(b"\n")) >= 0:
            return at + found + 1
        at += len(piece)
    return end
