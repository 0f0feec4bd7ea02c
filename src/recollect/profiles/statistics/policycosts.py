"""How many keys the policies by registered domain (DDom, DSub, DPth, DQry, DIni) would have.

Hides when a domain is done. SURTs come in the order of bytes, in which the hosts of a domain are not contiguous
(`com,x`, `com,x-y`, `com,x:80`); a domain stays open while its name is the beginning of the current host and the byte
after it is no greater than `:`. So memory holds the keys of a few domains, not of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

from recollect.errors import BadURI
from recollect.uris import policy_key

NAMES = ("DDom", "DSub", "DPth", "DQry", "DIni")
Parts = tuple[int, int, int, bytes]


def keys_of_domain(keys: set[Parts]) -> Counter[str]:
    """How many keys of each policy a domain has whose SURTs have these parts."""
    numbered = enumerate(NAMES[1:], 1)
    return Counter({"DDom": 1, **{name: len({key[:number] for key in keys}) for number, name in numbered}})


class DomainPolicies:
    """Takes SURTs in the order of their keys; `counts` after `finish`. Domains named in `apart` are not counted:
    the parts of their SURTs are left in `parts`."""

    def __init__(self, apart: Container[bytes] = ()) -> None:
        self._open: dict[bytes, set[Parts]] = {}
        self._host = b""
        self._subdomains = 0
        self._keys: set[Parts] = set()
        self._apart = apart
        self.parts: dict[bytes, set[Parts]] = {}
        self.counts = Counter(dict.fromkeys(NAMES, 0))

    def add(self, key: bytes, query: bytes) -> None:
        """Take one SURT: its URI key, and its query without `?`."""
        host, _, path = key.partition(b")")
        if host != self._host:
            self._enter(host)
        segments = [segment for segment in path.split(b"/") if segment]
        initial = segments[0][:1] if segments and segments[0][:1].isalnum() else b"-"
        parameters = sum(1 for one in query.split(b"&") if one)
        self._keys.add((self._subdomains, len(segments), parameters, initial))

    def _enter(self, host: bytes) -> None:
        try:
            domain, _, subdomains = policy_key(host + b")/", "DSub").partition(b")/")
        except BadURI:  # `dns:example.com`, kept on demand, is in no domain
            domain, subdomains = host, b"0"
        self._host, self._subdomains = host, int(subdomains)
        for name in list(self._open):
            if not host.startswith(name) or host[len(name) : len(name) + 1] > b":":
                self._close(name)
        self._keys = self._open.setdefault(domain, set())

    def _close(self, domain: bytes) -> None:
        keys = self._open.pop(domain)
        if domain in self._apart:
            self.parts.setdefault(domain, set()).update(keys)
        else:
            self.counts.update(keys_of_domain(keys))

    def finish(self) -> None:
        """All SURTs have come."""
        for name in list(self._open):
            self._close(name)
