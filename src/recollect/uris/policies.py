"""URI-Key policies of "Web Archive Profiling Through CDX Summarization" (Alam et al., 2015, section 3).

`HmPn`: at most m host and n path segments (`x`: all), no path unless the whole host is in. `DDom`, `DSub`, `DPth`,
`DQry`, `DIni`: the registered domain, then the number of subdomain, path and query segments and the initial of the
path. `URIR`: the whole SURT, query included. A policy's key depends on the SURT alone, so `www` is never a subdomain.

Hides: the Public Suffix List (the copy inside the package `publicsuffixlist`, no network).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from recollect.errors import UsageError
from recollect.uris.canonical import split_uri, surt
from recollect.uris.keys import encode_query, is_surt, join_host, segments, uri_key
from recollect.uris.spelling import spellings
from recollect.uris.suffixes import registered_name

# Table 1 of Alam et al. (2015) lists their cost; `x` is "any number".
POLICIES: tuple[str, ...] = (
    *("H1P0", "H2P0", "H2P1", "H2P2", "H3P0", "H3P1", "H3P2", "H3P3", "H4P0", "H5P0"),
    *("HxP0", "HxP1", "HxP2", "HxP3", "HxP4", "HxP5", "HxPx"),
    *("DDom", "DSub", "DPth", "DQry", "DIni"),
    "URIR",
)
_DLIM = ("DDom", "DSub", "DPth", "DQry", "DIni")
_HMPN = re.compile(r"h([1-9]\d*|x)p(\d+|x)", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class KeyPolicy:
    """`hosts` and `paths` are limits of an HmPn policy (None: all); `parts` is how many counts a D policy adds."""

    name: str
    hosts: int | None = None
    paths: int | None = None
    parts: int | None = None


@lru_cache(maxsize=64)
def parse_policy(name: str) -> KeyPolicy:
    """The policy of a name in any case; raises `UsageError`."""
    if match := _HMPN.fullmatch(name):
        hosts, paths = (None if text in "xX" else int(text) for text in match.groups())
        return KeyPolicy(f"H{'x' if hosts is None else hosts}P{'x' if paths is None else paths}", hosts, paths)
    for parts, known in enumerate(_DLIM):
        if name.lower() == known.lower():
            return KeyPolicy(known, parts=parts)
    if name.upper() == "URIR":
        return KeyPolicy("URIR")
    if (
        name.upper() == "TLD"
    ):  # the name of H1P0 before Alam et al. (2015): Sanderson et al. (2013), AlSum et al. (2014)
        return KeyPolicy("H1P0", 1, 0)
    raise UsageError(
        "no such policy", where=repr(name), hint=f"one of {', '.join(POLICIES)}, or any HmPn with numbers or x"
    )


def policy_name(name: str) -> str:
    """The usual name of a policy; of an unknown one, its name in lower case."""
    try:
        return parse_policy(name).name
    except UsageError:
        return name.lower()


def policy_key(a_surt: bytes, policy: str) -> bytes:
    """The key of a SURT under a policy; raises `BadURI` for what is not a web key."""
    rule = parse_policy(policy)
    key = uri_key(a_surt)
    if rule.name == "URIR":
        return key + encode_query(a_surt)
    if rule.parts is not None:
        return _limited(key, a_surt, rule.parts)
    if rule.hosts is None and rule.paths is None:
        return key
    hosts, path = segments(key)
    kept_path = path[: rule.paths] if rule.hosts is None or len(hosts) <= rule.hosts else ()
    tail = b"/".join(kept_path).rstrip(b"/")
    return join_host(hosts[: rule.hosts]) + b")/" + tail


def policy_spellings(text: str, policy: str) -> list[bytes]:
    """The keys to try for a URI or a SURT in a map made with a policy, the most probable first (see `spellings`)."""
    if parse_policy(policy).name == "HxPx":
        return spellings(text)
    if is_surt(text):
        queries = [encode_query(text.encode("utf-8", "surrogateescape"))]
    else:
        as_typed = split_uri(text)[3].encode("latin-1")
        queries = [encode_query(surt(text).encode()), encode_query(b")?" + as_typed)]
    keys = [policy_key(key + query, policy) for query in queries for key in spellings(text)]
    return list(dict.fromkeys(keys))


def _limited(key: bytes, a_surt: bytes, parts: int) -> bytes:
    """registered_domain)/#subdomain/#path/#query/initial, up to `parts` of the counts."""
    hosts, path = segments(key)
    names = hosts[:-1] if hosts[-1].startswith(b":") and len(hosts) > 1 else hosts
    depth = registered_depth(names)
    # Empty segments do not count: `surt` drops them from URIs, other makers of indexes do not.
    full = [segment for segment in path if segment]
    parameters = [one for one in encode_query(a_surt)[1:].split(b"&") if one]
    initial = full[0][:1] if full and full[0][:1].isalnum() else b"-"
    counts = (b"%d" % (len(names) - depth), b"%d" % len(full), b"%d" % len(parameters), initial)
    return b",".join(names[:depth]) + b")/" + b"/".join(counts[:parts])


@lru_cache(maxsize=65536)
def registered_depth(names: tuple[bytes, ...]) -> int:
    """How many host segments make the registered domain; all of them for an address or a bare suffix."""
    if len(names) < 2 or b":" in names[0]:
        return len(names)
    found = registered_name(b".".join(reversed(names)).decode("ascii"))
    return len(names) if found is None else found.count(".") + 1
