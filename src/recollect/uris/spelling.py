"""The keys under which a map may hold one URI.

A map made here holds normal keys, but they come from indexes, and an index may spell a key otherwise than `surt` does
(empty segments or escapes kept, `www` kept, an IDN not in punycode); and maps of other makers may be out of normal form
(trailing slash, raw UTF-8, upper case). A lookup tries the normal key first, then the others: law 1.
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from itertools import product

from recollect.uris.canonical import key_of_uri, split_uri
from recollect.uris.hosts import host_key
from recollect.uris.keys import is_surt, uri_key

# Groups: host and path of a URI as most are: nothing in it that makers of indexes write in several ways, but `www`.
_PLAIN = re.compile(
    r"https?://((?!.*xn--)[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.[a-z]+)((?:/[A-Za-z0-9._~-]+)*)/?(?:[?#].*)?", re.DOTALL
).fullmatch
_SLASHES = re.compile(rb"//+")
_HIGH = re.compile(rb"(?:%[89a-f][0-9a-f])+")
_IPV4 = re.compile(rb"(\d+),(\d+),(\d+),(\d+)((?::\d+)?\).*)", re.DOTALL)
_IPV6 = re.compile(rb"\[([^\]]*)\]((?::\d+)?\).*)", re.DOTALL)
_IPV6_AND_PORT = re.compile(rb"(?:https?://)?\(?([0-9a-fA-F]*:[0-9a-fA-F:]*):(\d{1,5}),?\)")
_IPV6_IN_BRACKETS = re.compile(rb"(?:https?://)?\(?\[([0-9a-fA-F:]+)\]:(\d{1,5}),?\)")
_QUERY = re.compile(rb"[?#].*", re.DOTALL)


def spellings(text: str) -> list[bytes]:
    """The keys to try for a URI or a SURT: the normal one first, then others only if they differ.

    Keys with a trailing slash (but the root's) come last, and each is the key of another spelling with a slash at its
    end.
    """
    if plain := _PLAIN(text):
        keys = _of_plain(text, *plain.groups())
    else:
        written = _of_surt(text) if is_surt(text) else _of_uri(text)
        normal = [uri_key(key) for key in written]
        normal += [_SLASHES.sub(b"/", key) for key in normal]
        normal += [other for key in normal for other in _other_addresses(key)]
        foreign = [_without_end(key) for key in written] + [_raw_utf8(key) for key in normal]
        keys = list(dict.fromkeys(normal + foreign))
    return keys + [key + b"/" for key in keys if not key.endswith(b"/")]


def _of_plain(uri: str, host: str, path: str) -> list[bytes]:
    """What the long way finds for a plain URI: its key, and if they differ (`www`, dots, capitals) what was typed."""
    key = key_of_uri(uri)
    typed_host = ",".join(reversed(host.split("."))).encode()
    key_host, _, key_path = key.partition(b")")
    typed_path = path.encode() or b"/"
    keys = [b"%b)%b" % pair for pair in product((key_host, typed_host), (key_path, typed_path.lower(), typed_path))]
    return list(dict.fromkeys(keys))


def _without_end(a_surt: bytes) -> bytes:
    """A SURT as it was written, except for its query and trailing slashes."""
    kept = _QUERY.sub(b"", a_surt).rstrip(b"/")
    return kept + b"/" if kept.find(b")") == len(kept) - 1 else kept


def _of_surt(text: str) -> list[bytes]:
    """A SURT as it is; `2001:db8::1:8080)/` may also be the address 2001:db8::1 with a port, as `surt` writes that, and
    `[2001:db8::1]:8080)/` be held by that name."""
    written = text.encode("utf-8", "surrogateescape")
    if bracketed := _IPV6_IN_BRACKETS.match(written):
        return [written, b"%b:%b%b" % (bracketed[1], bracketed[2], written[bracketed.end() - 1 :])]
    if (ported := _IPV6_AND_PORT.match(written)) and _is_ipv6(ported[1]):
        return [written, b"[%b]:%b%b" % (ported[1], ported[2], written[ported.end() - 1 :])]
    return [written]


def _is_ipv6(text: bytes) -> bool:
    try:
        IPv6Address(text.decode("ascii"))
    except ValueError:
        return False
    return True


def _of_uri(uri: str) -> list[bytes]:
    """SURTs an index may have for a URI: host and path each as `surt` writes them and as they were typed."""
    key = key_of_uri(uri)
    scheme, authority, typed_path, _ = split_uri(uri)
    host, _, path = key.partition(b")")
    hosts = [host, host_key(scheme, authority, keep_www=True).encode()]
    hosts += [unicode_host for one in hosts if (unicode_host := _without_punycode(one)) != one]
    if host.startswith(b"["):
        hosts.append(host[1:].replace(b"]", b""))  # `surt` writes IPv6 with a port so, and indexes have it
    paths = [path, typed_path.encode("latin-1")]
    return list(dict.fromkeys(one_host + b")" + one_path for one_host in hosts for one_path in paths))


def _without_punycode(host: bytes) -> bytes:
    """`de,xn--bcher-kva` as `de,bücher` in UTF-8."""
    if b"xn--" not in host:
        return host
    name, colon, port = host.partition(b":")
    try:
        return b",".join(label.decode("idna").encode() for label in name.split(b",")) + colon + port
    except UnicodeError:
        return host


def _other_addresses(key: bytes) -> list[bytes]:
    """`1.2.3.4` for `4,3,2,1`, and IPv6 as `surt` writes it, without brackets."""
    if ipv4 := _IPV4.fullmatch(key):
        return [b"%b.%b.%b.%b%b" % (ipv4[4], ipv4[3], ipv4[2], ipv4[1], ipv4[5])]
    if ipv6 := _IPV6.fullmatch(key):
        return [ipv6[1] + ipv6[2]]
    return []


def _raw_utf8(key: bytes) -> bytes:
    if b"%" not in key:
        return key
    return _HIGH.sub(lambda match: bytes.fromhex(match[0].replace(b"%", b"").decode()), key)
