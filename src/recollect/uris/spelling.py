"""The keys under which a map may hold one URI.

A map made here holds normal keys, but they come from indexes, and an index may spell a key otherwise than `surt` does
(empty segments or escapes kept, `www` kept, an IDN not in punycode); and maps of other makers may be out of normal form
(trailing slash, raw UTF-8, upper case). A lookup tries the normal key first, then the others: law 1.
"""

from __future__ import annotations

import re

from recollect.uris.canonical import key_of_uri, split_uri
from recollect.uris.hosts import host_key
from recollect.uris.keys import is_surt, uri_key

_SLASHES = re.compile(rb"//+")
_HIGH = re.compile(rb"(?:%[89a-f][0-9a-f])+")
_IPV4 = re.compile(rb"(\d+),(\d+),(\d+),(\d+)((?::\d+)?\).*)", re.DOTALL)
_IPV6 = re.compile(rb"\[([^\]]*)\]((?::\d+)?\).*)", re.DOTALL)
_QUERY = re.compile(rb"[?#].*", re.DOTALL)


def spellings(text: str) -> list[bytes]:
    """The keys to try for a URI or a SURT: the normal one first, then others only as far as they differ."""
    written = _of_surt(text) if is_surt(text) else _of_uri(text)
    normal = [uri_key(key) for key in written]
    normal += [_SLASHES.sub(b"/", key) for key in normal]
    normal += [other for key in normal for other in _other_addresses(key)]
    foreign = [_QUERY.sub(b"", key) for key in written] + [_raw_utf8(key) for key in normal]
    slashed = [key + b"/" for key in dict.fromkeys(normal + foreign) if not key.endswith(b"/")]
    return list(dict.fromkeys(normal + foreign + slashed))


def _of_surt(text: str) -> list[bytes]:
    return [text.encode("utf-8", "surrogateescape")]


def _of_uri(uri: str) -> list[bytes]:
    """SURTs an index may have for a URI: host and path each as `surt` writes them and as they were typed."""
    key = key_of_uri(uri)
    scheme, authority, typed_path, _ = split_uri(uri)
    host, _, path = key.partition(b")")
    hosts = [host, host_key(scheme, authority, keep_www=True).encode()]
    hosts += [unicode_host for one in hosts if (unicode_host := _without_punycode(one)) != one]
    hosts += [host.replace(b"[", b"").replace(b"]", b"")]  # `surt` writes IPv6 with a port so, and indexes have it
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
    return _HIGH.sub(lambda match: bytes.fromhex(match[0].replace(b"%", b"").decode()), key)
