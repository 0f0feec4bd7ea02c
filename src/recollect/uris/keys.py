"""URI keys: the normal form of a SURT, and the tree they form.

`uri_key` is the one rule by which every index line becomes a key of a map. In order, on the bytes of a SURT:

1. Drop a leading `scheme://` (letter, then letters, digits, `+`, `-`, `.`), then one leading `(`.
2. Find the first of `)`, `/`, `?`, `#` (a `#` in front of everything does not count). It must be `)`; what stands
   before it is the host, not empty and without `(`; what stands after it must be empty or begin with `/`, `?`, `#`.
   Else it is not a web key (`dns:`, `warcinfo:`, ...).
3. Host: drop all commas at its end. Then
   - a `[` in front, or two or more colons: an IPv6 address, in brackets or not, with `:port` only if in brackets;
     brackets are added where they are missing (`::1` is `[::1]`); an address is hex digits, `.`, `,` and two or more
     `:`, perhaps `%` and a zone (any bytes but `]`); else no key;
   - one colon: digits and nothing else must follow it, a name must stand before it (all commas at its end are
     dropped), else no key;
   - four decimal fields of 1 to 3 digits up to 255 with dots (`1.2.3.4`) are turned around (`4,3,2,1`), as `surt` does.
4. Path: cut at the first `?` or `#`, cut all `/` at the end; if nothing is left it is `/`.
5. Write host, `)`, path with ASCII letters in lower case; bytes up to 0x20, from 0x7f, and `*` as `%` and two
   lower-case hex digits; so also a first byte that is `!`, `@`, `"`, `#` or `{`.

So a key is visible ASCII without `*`, and `uri_key` of a key is that key. Segments: host names left to right, the port
(`:80`) as the child of its host, then path segments (an empty one inside counts). An IP address is one segment, also
where names follow it (`4,3,2,1,www`). Every segment is a slice of the key, and the host of a wildcard is a prefix of
the keys it covers.
"""

from __future__ import annotations

import re

from recollect.errors import BadURI

# A key that is normal already, as nearly all in an index are: no dots or brackets in the host, no trailing slash.
_NORMAL = re.compile(rb"[a-z0-9_,-]*[a-z0-9_-](?::[0-9]+)?\)/(?:[!\"$-)+->@\[-~]*[!\"$-)+-.0->@\[-~])?").fullmatch
_SCHEME = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://")
_HOST_END = re.compile(rb"[)/?#]")
_PATH_END = re.compile(rb"[?#]")
_QUOTED = re.compile(rb"[\x00-\x20\x7f-\xff*]")
_DIGITS = re.compile(rb"[0-9]+")
_ADDRESS = rb"[0-9a-fA-F.,]*:[0-9a-fA-F.,]*:[0-9a-fA-F:.,]*(?:%[^\]]*)?"
_IPV6 = re.compile(rb"(%b)|\[(%b)\](:[0-9]+)?" % (_ADDRESS, _ADDRESS))
_BYTE = rb"(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]?[0-9])"
_DOTTED = re.compile(rb"%b(?:\.%b){3}" % (_BYTE, _BYTE))
_REVERSED = re.compile(rb"(%b(?:,%b){3})(?:,(.*))?" % (_BYTE, _BYTE), re.DOTALL)
_LEADING = b'!@"#{'


def uri_key(surt: bytes) -> bytes:
    """The normal key of a SURT; raises `BadURI` for what is not a web key."""
    key = surt[:cut] if (cut := surt.find(b"?")) > 0 else surt
    if _NORMAL(key):
        return key
    host, rest = _split_surt(surt)
    path = rest[: end.start()] if (end := _PATH_END.search(rest)) else rest
    return _encode(_normal_host(host, surt) + b")" + (path.rstrip(b"/") or b"/"))


def is_surt(text: str) -> bool:
    """Whether a text is a SURT (`com,example)/a`) rather than a URI."""
    if ")" not in text:
        return False  # as most URIs, and an exception would take longer
    try:
        uri_key(text.encode("utf-8", "surrogateescape"))
    except (BadURI, UnicodeEncodeError):
        return False
    return True


def _split_surt(surt: bytes) -> tuple[bytes, bytes]:
    """Host and the rest after `)`."""
    scheme = _SCHEME.match(surt)
    start = scheme.end() if scheme else 0
    start += surt.startswith(b"(", start)
    end = _HOST_END.search(surt, start + surt.startswith(b"#", start))
    if end is None or surt[end.start()] != 0x29:
        raise _no_key(surt, "no ) after a host")
    host, rest = surt[start : end.start()], surt[end.end() :]
    if not host or b"(" in host or (rest and rest[:1] not in b"/?#"):
        raise _no_key(surt, "no host" if not host else "not a host and a path")
    return host, rest


def _normal_host(host: bytes, surt: bytes) -> bytes:
    host = host.rstrip(b",")
    if b"\0" in host:  # a hole in a file, as a crash leaves it, would make another key of what follows it
        raise _no_key(surt, "NUL bytes in a host")
    if host.startswith(b"[") or host.count(b":") > 1:
        ipv6 = _IPV6.fullmatch(host)
        if ipv6 is None:
            raise _no_key(surt, "not an IPv6 address")
        bare, bracketed, port = ipv6.groups()
        return b"[%b]%b" % (bare or bracketed, port or b"")
    name, colon, port = host.partition(b":")
    name = name.rstrip(b",")
    if not name or (colon and not _DIGITS.fullmatch(port)):
        raise _no_key(surt, "no number after the colon in the host" if name else "no host")
    if _DOTTED.fullmatch(name):
        name = b",".join(reversed(name.split(b".")))
    return name + colon + port


def _no_key(surt: bytes, why: str) -> BadURI:
    return BadURI("no web key", where=repr(surt[:80].decode("utf-8", "replace")), why=why)


def _encode(key: bytes) -> bytes:
    key = _QUOTED.sub(_quote, key.lower())
    if key[0] in _LEADING:
        return b"%%%02x" % key[0] + key[1:]
    return key


def _quote(match: re.Match[bytes]) -> bytes:
    return b"%%%02x" % match[0][0]


def encode_query(surt: bytes) -> bytes:
    """The query of a SURT from its `?` on, with the same bytes encoded as in a key; empty if there is none."""
    query = surt[1:].partition(b"#")[0].partition(b"?")[2]
    return b"?" + _QUOTED.sub(_quote, query.lower()) if query else b""


def segments(key: bytes) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """Host segments and path segments; the `*` of a wildcard is the last of either."""
    host, closed, path = key.partition(b")")
    if not closed and host.endswith(b",*"):
        return (*_host_segments(host[:-2]), b"*"), ()
    if path in (b"", b"/"):
        return _host_segments(host), ()
    return _host_segments(host), tuple(path[1:].split(b"/"))


def _host_segments(host: bytes) -> tuple[bytes, ...]:
    if host.startswith(b"["):
        address, _, port = host.rpartition(b"]")
        return (address + b"]", port) if port else (host,)
    name, colon, port = host.partition(b":")
    names = tuple(name.split(b","))
    if len(names) > 3 and (first := _REVERSED.fullmatch(name)):
        names = (first[1], *names[4:])
    return (*names, colon + port) if colon else names


def join_host(hosts: tuple[bytes, ...]) -> bytes:
    if hosts[-1].startswith(b":") and len(hosts) > 1:
        return b",".join(hosts[:-1]) + hosts[-1]
    return b",".join(hosts)


def lookup_keys(key: bytes) -> list[bytes]:
    """The keys that cover a normal key, the most specific first: itself, `/*` upwards, `,*` upwards, `*`."""
    hosts, path = segments(key)
    host = join_host(hosts)
    keys = [key]
    keys += [b"%b)/%b/*" % (host, b"/".join(path[:depth])) for depth in range(len(path), 0, -1)]
    keys.append(host + b")/*")
    keys += [join_host(hosts[:depth]) + b",*" for depth in range(len(hosts), 0, -1)]
    keys.append(b"*")
    return keys


def parent(key: bytes) -> bytes | None:
    """The wildcard next above a key or a wildcard; None above `*`.

    `com,x)/a` → `com,x)/a/*` → `com,x)/*` → `com,x,*` → `com,*` → `*`
    """
    if key == b"*":
        return None
    if not key.endswith(b"*"):
        return lookup_keys(key)[1]
    hosts, path = segments(key)
    if len(path) > 1:
        return b"/".join((join_host(hosts) + b")", *path[:-2], b"*"))
    if path:
        return join_host(hosts) + b",*"
    above = hosts[:-2]
    return join_host(above) + b",*" if above else b"*"


def ancestors(key: bytes) -> list[bytes]:
    """The wildcards above a key or a wildcard, the nearest first."""
    above = []
    while (up := parent(key)) is not None:
        above.append(up)
        key = up
    return above


def covers(wild_key: bytes, key: bytes) -> bool:
    """Whether a key or wildcard covers a key or another wildcard (for itself too)."""
    return wild_key == key or wild_key in ancestors(key)
