"""Keys of one policy as keys and wildcards of another: up into the tree of HxPx keys, and down to a shorter policy.

What always holds: a URI whose key under the source's policy is listed is covered by the keys given here. Where the
source's keys are prefixes of the tree (`H3P0`: `uk,co,bbc)/` → `uk,co,bbc,*`; `HxP1`: `com,x)/a` → `com,x)/a/*`) they
cover nothing else. Otherwise something is lost, always towards "yes" or "unknown":

- HmPn with m and n above 0: `uk,co,bbc)/` stands for that page and for all longer hosts, so `uk,co,bbc,*` also covers
  the other pages of the host.
- HxPn, a key with fewer than n path segments: the page itself, and pages that go on with empty segments (`/a//b`); the
  latter are listed as unknown (`com,x)/a//* /`).
- DSub, DPth, DQry, DIni: their counts of segments have no place in the tree, so the whole domain stands for them.
- DDom and the like, of a public suffix itself (`uk,co)/`): the host, and `uk,co,*` as unknown, for its other ports.
- URIR: queries go. Captures and URI-Rs of one page add up.

A void (`0`) says no about its own key only. It stays where the new key covers nothing else, and is dropped otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

from recollect.errors import UsageError
from recollect.uris.keys import join_host, segments
from recollect.uris.policies import KeyPolicy, parse_policy, policy_key, registered_depth

_QUERIES = ("URIR", "DQry", "DIni")
ALL = b"*"


@dataclass(frozen=True, slots=True)
class Converted:
    """What a key becomes."""

    key: bytes
    keeps_void: bool = True
    """Whether a void of the old key may stand at the new one."""
    unknown: bytes | None = None
    """A wildcard over what the old key may have stood for besides."""
    part_of: bytes | None = None
    """A wildcard whose total includes this key, if the map has it."""


def check_conversion(source: str, target: str, where: str) -> None:
    """Raise if keys of `source` cannot become keys of `target`."""
    old, new = parse_policy(source).name, parse_policy(target).name
    if new in _QUERIES and old not in ("URIR", new):
        raise UsageError(
            "no such conversion",
            where=where,
            why=f"{new} needs queries, which keys of {old} do not have",
            hint=f"profile the indexes: recollect profile INDEX... --policy {new}",
        )


def tree_key(key: bytes, policy: str) -> Converted:
    """A key or wildcard of a map of `policy` as a key or wildcard of the tree (HxPx)."""
    rule = parse_policy(policy)
    if rule.name == "HxPx" or key == ALL:
        return Converted(key)
    if rule.name == "URIR":
        return _without_query(key)
    if rule.parts is not None:
        return _of_domain(key, rule.parts)
    return _of_segments(key, rule)


def _without_query(key: bytes) -> Converted:
    host, closed, path = key.partition(b")")
    if b"?" in path:
        return Converted(host + closed + (path.partition(b"?")[0].rstrip(b"/") or b"/"), keeps_void=False)
    # `com,x)/a` and `com,x)/a/*` do not cover `com,x)/a?b`; only wildcards of hosts do.
    return Converted(key, keeps_void=key.endswith((b")/*", b",*")))


def _of_domain(key: bytes, parts: int) -> Converted:
    host = key.partition(b")")[0]
    if b")" not in key:
        return Converted(key)
    hosts, _ = segments(host + b")/")
    if _is_suffix(hosts):
        # Names alone do not tell the suffix from a domain below it, nor its ports.
        return Converted(host + b")/*", parts == 0, unknown=host + b",*")
    return Converted(host + b",*", parts == 0 or key.endswith(b")/*"))


def _is_suffix(hosts: tuple[bytes, ...]) -> bool:
    """Whether a host is a public suffix, below which there are other domains."""
    if b"," in hosts[0] or b":" in hosts[0]:
        return False  # an IP address
    below = (*hosts, b"a")
    return registered_depth(below) == len(below)


def _of_segments(key: bytes, rule: KeyPolicy) -> Converted:
    hosts, path = segments(key)
    wild = key.endswith(b"*")
    at_limit = rule.hosts is not None and len(hosts) >= rule.hosts
    if b")" not in key:
        return Converted(key)  # a wildcard of hosts covers the same under any policy
    host = join_host(hosts)
    if wild:
        # The host's own key also stands for longer hosts.
        return Converted(host + b",*", keeps_void=False) if at_limit and path == (b"*",) else Converted(key)
    if at_limit and not path:
        return Converted(host + b",*", keeps_void=rule.paths == 0)
    part_of = host + b",*" if at_limit else None
    if rule.paths is None:
        return Converted(key, part_of=part_of)
    if len(path) >= rule.paths:
        return Converted(key.rstrip(b"/") + b"/*", part_of=part_of)
    short = rule.paths - len(path)
    beyond = b"%b)/%b/*" % (host, b"/".join((*path, *([b""] * short))))
    return Converted(key, unknown=beyond, part_of=part_of)


def converted_key(key: bytes, source: str, target: str) -> Converted:
    """A key or wildcard of a map of one policy as one of another; `check_conversion` says what is possible."""
    old, new = parse_policy(source), parse_policy(target)
    if old.name == new.name:
        return Converted(key)
    if old.name == "URIR" and new.parts is not None and not key.endswith(b"*"):
        return Converted(policy_key(key, new.name), keeps_void=False)
    up = tree_key(key, old.name)
    if new.name == "HxPx":
        return up
    down = shorter_key(up.key, new.name)
    unknown = None if up.unknown is None else shorter_key(up.unknown, new.name).key
    part_of = None if up.part_of is None else shorter_key(up.part_of, new.name).key
    if new.parts and not down.key.endswith(b"*"):
        part_of = down.key.partition(b")")[0] + b")/*"  # other keys may become the wildcard of the domain
    return Converted(
        down.key,
        up.keeps_void and down.keeps_void,
        unknown if unknown != down.key else None,
        part_of if part_of != down.key else None,
    )


def shorter_key(key: bytes, policy: str) -> Converted:
    """A key or wildcard of the tree, or of the same policy, as one of a map of `policy`."""
    rule = parse_policy(policy)
    if rule.name == "HxPx" or key == ALL:
        return Converted(key)
    if not key.endswith(b"*"):
        return Converted(policy_key(key, policy), keeps_void=False)
    hosts, path = segments(key)
    names = hosts if path else hosts[:-1]
    if rule.parts is not None:
        return _domain_wildcard(key, names, rule.parts)
    if path:
        deeper = rule.hosts is not None and len(names) > rule.hosts
        reaches = rule.paths is not None and len(path) - 1 >= rule.paths
        exact = key[:-2] if len(path) > 1 else key[:-1]
        if deeper or reaches:
            return Converted(policy_key(exact, policy), keeps_void=False)
        return Converted(key, keeps_void=rule.hosts is None or len(names) < rule.hosts)
    if rule.hosts is not None and len(names) >= rule.hosts and (len(names) > rule.hosts or rule.paths == 0):
        return Converted(policy_key(key[:-2] + b")/", policy), keeps_void=False)
    return Converted(key)


def _domain_wildcard(key: bytes, names: tuple[bytes, ...], parts: int) -> Converted:
    plain = names[:-1] if names[-1].startswith(b":") and len(names) > 1 else names
    depth = registered_depth(plain)
    wider = depth == len(plain) and key.endswith(b",*") and plain == names
    if wider and (_is_suffix(plain) or len(plain) == 1):
        return Converted(key)  # over several domains
    return Converted(b",".join(plain[:depth]) + (b")/*" if parts else b")/"), keeps_void=wider)
