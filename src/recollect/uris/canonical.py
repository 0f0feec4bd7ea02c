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
from recollect.uris.hosts import host_key
from recollect.uris.sessions import without_path_session, without_query_session

# Groups: scheme and authority, path, query. No `%`, no white space, nothing but visible ASCII before a `#`.
_CLEAN = re.compile(r"(https?://[A-Za-z0-9._:-]+)(/[!\"$&->@-~]*)?(?:\?([!\"$&-~]*))?(?:#.*)?", re.DOTALL).fullmatch
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_SCHEMES_IN_A_ROW = re.compile(r"(?:https?://)*(?=https?://)", re.IGNORECASE)
_AFTER_SCHEME = re.compile(r"(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?", re.DOTALL)
_BLANKS = " \t\n\r\x0b\x0c"
_LINE_BLANKS = str.maketrans("", "", "\n\r\t")
_WEB_KEY = re.compile(r"[^/?#(),]*:\d+\)")

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
    if path is None:
        path = "/"
    elif path != "/":
        if "//" in path or "/." in path or "/(" in path:
            return _careful(uri)
        path = path.lower()
        if path[-1] == "/":
            path = path[:-1]
    host = _hosts.get(origin) or _host_of_origin(origin)
    if query:
        query = _query(query.lower())
        if query:
            return f"{host}{path}?{query}"
    return host + path


def _host_of_origin(origin: str) -> str:
    """The SURT host of `http://host:port` with its `)`, remembered."""
    scheme, _, authority = origin.partition("://")
    host = host_key(scheme, authority) + ")"
    if len(origin) <= _LONGEST_HOST:
        if len(_hosts) >= _MOST_HOSTS:
            _hosts.clear()
        _hosts[origin] = host
    return host


def _query(query: str) -> str:
    """A lower-case query without session id, its parameters in order of name, then value."""
    if "id" in query:
        query = without_query_session(query)
    if "&" in query and len(query) > 1:
        query = "&".join(sorted(query.split("&"), key=_by_name))
    return query


def _careful(uri: str) -> str:
    if uri.startswith("filedesc:"):
        return uri  # the first record of an ARC file; indexes have it as it is
    scheme, authority, path, query = split_uri(uri)
    if authority is None:
        return _without_host(uri, scheme, path, query)
    path = escape(_without_dots(unescape(path))).lower() if path else "/"
    path = without_path_session(path)
    if len(path) > 1 and path[-1] == "/":
        path = path[:-1]
    query = _query(escape(unescape(query)).lower())
    return f"{host_key(scheme, authority)}){path}" + (f"?{query}" if query else "")


def split_uri(uri: str) -> tuple[str, str | None, str, str]:
    """Scheme, authority (None if there is none), path and query as byte text, otherwise as written."""
    text = to_byte_text(uri)
    if text is None:
        raise BadURI("bad URI", where=ascii(uri[:80]), why="a lone surrogate is no character")
    text = text.strip(_BLANKS).translate(_LINE_BLANKS)
    if not text:
        raise BadURI("bad URI", where=repr(uri[:80]), why="it is empty")
    if _SCHEME.match(text) is None:
        text = "http://" + text
    repeated = _SCHEMES_IN_A_ROW.match(text)
    scheme, _, text = (text[repeated.end() :] if repeated else text).partition(":")
    rest = _AFTER_SCHEME.match(text)
    assert rest is not None  # every part of the pattern is optional
    authority, path, query = rest[1] or None, rest[2], rest[3] or ""
    if authority is None and scheme[:4].lower() == "http":
        # http:/host/path, http:////host/path and http:host/path are read as people mean them.
        authority, _, path = path.lstrip("/").partition("/")
        path = "/" + path
        if not authority:
            raise BadURI("bad URI", where=repr(text[:80]), why="no host", hint="write it as http://host/path")
    return scheme, authority, path, query


def _without_host(uri: str, scheme: str, path: str, query: str) -> str:
    """`mailto:a@b`, `dns:host`, `urn:...`: scheme and path, as indexes have them; no web key."""
    path = without_path_session(escape(unescape(path)).lower())
    if len(path) > 1 and path[-1] == "/":
        path = path[:-1]
    query = _query(escape(unescape(query)).lower())
    key = f"{scheme}:{path}" + (f"{'' if path else '/'}?{query}" if query else "")
    if _WEB_KEY.match(key):
        raise BadURI("bad URI", where=repr(uri[:80]), why=f"{key[:80]} would be the key of another URI")
    return key


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
