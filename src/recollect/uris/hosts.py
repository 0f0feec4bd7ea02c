"""The host part of a SURT: `www3.Example.COM:8080` under http is `com,example:8080`.

Hides: user info, ports, dots, IDN (IDNA 2003, as the indexes have it), numeric hosts, IPv6, `www`.
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address

from recollect.uris.escapes import escape, unescape

_WWW = re.compile(r"www\d*\.", re.ASCII)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_DECIMAL_IP = re.compile(r"[1-9]\d*(?:\.\d+){0,3}", re.ASCII)
_OCTAL_IP = re.compile(r"0[0-7]*(?:\.[0-7]+){0,3}", re.ASCII)
_ZONE = re.compile(r"[0-9A-Za-z_-]*")
# SURT's own punctuation; in a host it would make the key of some other URI.
_PUNCTUATION = re.compile(r"[(),/:?]")


class BadHost(ValueError):
    """Why an authority has no host; the caller knows the URI and reports it."""


def host_key(scheme: str, authority: str, *, keep_www: bool = False) -> str:
    """The SURT host, with its port unless it is the scheme's own, of a byte text between `//` and `/`.

    Raises `BadHost`.
    """
    host_port = authority.rstrip(":").rpartition("@")[2]
    if "[" in host_port:
        host, port = _split_ipv6(host_port)
        return f"[{host}]:{port}" if _keeps(scheme, port) else host
    name, _, port_text = host_port.partition(":")
    port = _port(port_text)
    host = _name(name)
    if not host:
        raise BadHost("no host")
    if scheme != "dns" and not keep_www and (www := _WWW.match(host)):
        host = host[www.end() :]
    host = ",".join(reversed(host.split(".")))
    return f"{host}:{port}" if _keeps(scheme, port) else host


def _keeps(scheme: str, port: int) -> bool:
    return port != 0 and port != _DEFAULT_PORTS.get(scheme.lower())


def _port(text: str) -> int:
    """0 stands for no port."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise BadHost("a port is a number")
    number = _number(text)
    if number > 65535:
        raise BadHost("the highest port is 65535")
    return number


def _number(digits: str) -> int:
    """Any number above 32 bits stands for all of them: Python refuses to read megabytes of digits."""
    significant = digits.lstrip("0") or "0"
    return int(significant) if len(significant) <= 10 else 1 << 33


def _name(raw: str) -> str:
    """A host name or IPv4 address in lower-case ASCII, dots still in place."""
    host = unescape(raw)
    if not host.isascii():
        host = _idna(host)
    host = host.replace("..", ".").strip(".")
    found = _PUNCTUATION.search(host)
    if found:
        raise BadHost(f"a host cannot hold {found[0]!r}")
    return _ipv4(host) or escape(host).lower()


def _idna(host: str) -> str:
    try:
        name = host.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        raise BadHost("the bytes of its host are not UTF-8") from None
    try:
        return name.encode("idna").decode("ascii")
    except UnicodeError:
        return host  # no IDN either: its bytes are percent-encoded


def _ipv4(host: str) -> str | None:
    """Four decimal fields for an address in any of the forms of inet_aton(3) without hex, else None."""
    if host.isdigit():
        number = _number(host)
        if number > 0xFFFFFFFF:
            raise BadHost("a number above 4294967295 is not an IPv4 address")
        return _dotted(number)
    if not (_DECIMAL_IP.fullmatch(host) or _OCTAL_IP.fullmatch(host)):
        return None
    *fields, last = host.split(".")
    try:
        numbers = [_field(field) for field in fields]
        tail = _field(last)
    except ValueError:
        return None
    if max(numbers, default=0) > 255 or tail >= 256 ** (4 - len(numbers)):
        return None
    address = tail
    for position, number in enumerate(numbers):
        address += number << (24 - 8 * position)
    return _dotted(address)


def _field(text: str) -> int:
    return int(text, 8) if text[0] == "0" else _number(text)


def _dotted(address: int) -> str:
    return ".".join(str(address >> shift & 255) for shift in (24, 16, 8, 0))


def _split_ipv6(host_port: str) -> tuple[str, int]:
    inside, bracket, rest = host_port[1:].partition("]")
    if host_port[0] != "[" or not bracket or (rest and rest[0] != ":"):
        raise BadHost("brackets belong around an IPv6 address")
    address, percent, zone = unescape(inside).partition("%")
    try:
        IPv6Address(address)
    except ValueError:
        raise BadHost("not an IPv6 address between the brackets") from None
    if not _ZONE.fullmatch(zone):
        raise BadHost("an invalid zone after an IPv6 address")
    # The dots of ::ffff:1.2.3.4 are turned around as in a name: that is how indexes have it.
    return ",".join(reversed(escape(address + percent + zone).lower().split("."))), _port(rest[1:])
