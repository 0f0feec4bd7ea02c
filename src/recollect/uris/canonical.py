"""URI to SURT: the key under which archives' indexes (CDX, CDXJ) hold a URI, query included.

`http://www.Example.com:80/a/../B.html?y=2&x=1#top` is `com,example)/b.html?x=1&y=2`. The rules are those of the
`surt` package 0.3.1 (docs/uris.md lists them, and each place where we differ).

Hides: two ways to the same answer. Most URIs are clean (http, visible ASCII, no escapes, no dot segments) and pass one
regular expression and a cache of hosts; everything else is taken apart carefully. Invariants: the result is ASCII
without white space; both ways agree; a URI without a sound host never gets a web key.
"""

from __future__ import annotations

import re
from operator import methodcaller

from recollect.errors import BadURI
from recollect.uris.escapes import escape, to_byte_text, unescape
from recollect.uris.hosts import BadHost, host_key
from recollect.uris.keys import is_surt, uri_key
from recollect.uris.sessions import without_path_session, without_query_session

# Groups: scheme and authority, path, query; visible ASCII up to a `#`.
_CLEAN = re.compile(
    r"(https?://[A-Za-z0-9._:-]*[A-Za-z0-9._-])(/[!\"$->@-~]*)?(?:\?([!\"$-~]*))?(?:#.*)?", re.DOTALL
).fullmatch
# Groups: scheme, authority, path, query (RFC 3986, appendix B, with the scheme's own alphabet).
_URI = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?", re.DOTALL).match
_SCHEMES_IN_A_ROW = re.compile(r"(?:https?://)+(?=https?://)", re.IGNORECASE).match
_BLANKS = " \t\n\r\x0b\x0c"
_LINE_BLANKS = re.compile(r"[\n\r\t]")

_by_name = methodcaller("partition", "=")
_hosts: dict[str, str] = {}
_MOST_HOSTS = 50_000
_LONGEST_HOST = 120


def surt(uri: str) -> str:
    """The SURT of a URI; raises `BadURI` if it has none."""
    match = _CLEAN(uri)
    if match is None:
        return _careful(uri)
    origin, path, query = match.groups()
    host = _hosts.get(origin) or _host_of_origin(origin, uri)
    if not path or path == "/":
        path = "/"
    elif "%" in path or "//" in path or "/." in path or "/(" in path:
        path = _path(path)
    else:
        path = path.lower()
        if path[-1] == "/":
            path = path[:-1]
    if query:
        query = _query(query) if "%" in query else _sorted_query(query)
        if query:
            return f"{host}{path}?{query}"
    return host + path


def key_of_uri(uri: str) -> bytes:
    """The normal key of a URI; raises `BadURI` if it has none."""
    key = surt(uri).encode("utf-8", "surrogateescape")
    try:
        return uri_key(key)
    except BadURI:
        raise _bad(uri, "no host") from None


def _host_of_origin(origin: str, uri: str) -> str:
    """The SURT host of `http://host:port` with its `)`, remembered."""
    scheme, _, authority = origin.partition("://")
    try:
        host = host_key(scheme, authority) + ")"
    except BadHost as error:
        raise _bad(uri, str(error)) from None
    if len(origin) <= _LONGEST_HOST:
        if len(_hosts) >= _MOST_HOSTS:
            _hosts.clear()
        _hosts[origin] = host
    return host


def _bad(uri: str, why: str) -> BadURI:
    shown = ascii(uri[:80]) if any("\ud800" <= char <= "\udfff" for char in uri[:80]) else repr(uri[:80])
    hint = "write it as http://host/path" if why == "no host" else ""
    return BadURI("bad URI", where=shown, why=why, hint=hint)


def _careful(uri: str) -> str:
    scheme, authority, path, query = split_uri(uri)
    query = _query(query)
    if not authority:
        return _without_host(uri, scheme, path, query)
    origin = f"{scheme}://{authority}"
    host = _hosts.get(origin) or _host_of_origin(origin, uri)
    return host + _path(path or "/") + (f"?{query}" if query else "")


def _without_host(uri: str, scheme: str, path: str, query: str) -> str:
    """`mailto:a@b`, `dns:host`, `urn:...`: scheme and path, as indexes have them; no web key."""
    # The first record of an ARC file keeps its case, as a file name does.
    key = f"{scheme}:{escape(path) if scheme == 'filedesc' else _finish_path(unescape(path))}"
    if query:
        key += f"?{query}" if path else f"/?{query}"
    if is_surt(key):
        raise _bad(uri, f"{key[:80]} would be the key of another URI")
    return key


def _path(path: str) -> str:
    """The canonical form of a path in byte text."""
    path = unescape(path)
    if "//" in path or "/." in path:
        path = _without_dots(path)
    return _finish_path(path)


def _finish_path(path: str) -> str:
    path = escape(path).lower()
    if "/(" in path:
        path = without_path_session(path)
    return path[:-1] if len(path) > 1 and path[-1] == "/" else path


def _query(query: str) -> str:
    """The canonical form of a query in byte text."""
    return _sorted_query(escape(unescape(query)))


def _sorted_query(query: str) -> str:
    """In lower case, without session id, its parameters in order of name, then value."""
    query = query.lower()
    if "id" in query:
        query = without_query_session(query)
    return "&".join(sorted(query.split("&"), key=_by_name)) if "&" in query else query


def split_uri(uri: str) -> tuple[str, str, str, str]:
    """Scheme, authority, path and query as byte text, otherwise as written; empty where there is none."""
    text = to_byte_text(uri)
    if text is None:
        raise _bad(uri, "a lone surrogate is not a character")
    text = _LINE_BLANKS.sub("", text.strip(_BLANKS))
    if not text:
        raise _bad(uri, "it is empty")
    if text.startswith("filedesc:"):
        return "filedesc", "", text[9:], ""
    if repeated := _SCHEMES_IN_A_ROW(text):
        text = text[repeated.end() :]
    match = _URI(text) or _URI("http://" + text)
    assert match is not None  # with a scheme in front every text matches
    scheme, authority, path, query = match.groups(default="")
    if not authority and scheme[:4].lower() == "http":
        # http:/host/path, http:////host/path and http:host/path are read as people mean them.
        authority, _, path = path.lstrip("/").partition("/")
        path = "/" + path
        if not authority:
            raise _bad(uri, "no host")
    return scheme, authority, path, query


def _without_dots(path: str) -> str:
    """Resolve `.` and `..`, drop empty segments but the last (it keeps the trailing slash)."""
    kept: list[str] = []
    for segment in path.split("/")[1:]:
        if segment == "..":
            # `..` at the top is kept, and a second one takes it away again: that is how indexes have it.
            if kept:
                kept.pop()
            else:
                kept.append(segment)
        elif segment != ".":
            kept.append(segment)
    if not kept:
        return "/"
    last = kept.pop()
    return "/" + "".join(f"{segment}/" for segment in kept if segment) + last
