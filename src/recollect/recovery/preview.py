"""A recovered site under its own addresses: what a request for one of them is answered with.

Hides: which resource an address names, and how links stay inside. `/page.php?id=2` is answered as the lost server did,
with its type and its redirects, so that modules, `fetch` and SVG sprites work. Other hosts are below
`/_recollect/hosts/HOST/`; a request with an absolute address (a browser that uses this server as its proxy) or for one
of the recovered hosts by name gets that resource as it was archived. Pure except for reading the store.

Invariant: no page loads anything from elsewhere: what did not come back is replaced by something neutral, and a
Content-Security-Policy forbids the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from recollect.errors import BadURI
from recollect.recovery.canonical import visit_key
from recollect.recovery.records import Recovered
from recollect.recovery.restore import PageLinks, content_of, not_recovered_page, site_test
from recollect.recovery.rewrite import NEUTRAL, Use
from recollect.recovery.store import Store

_HOSTS = "/_recollect/hosts/"
POLICY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; base-uri 'self'; form-action 'self'; webrtc 'block'"
)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


def reply(store: Store, target: str, host: str = "") -> Reply:
    """The answer to a request: `target` as on the request line, `host` as in the Host header."""
    if target.lower().startswith(("http://", "https://")):
        return _answer(store, target, as_archived=True)
    if not target.startswith("/") or not store.start:
        return _not_found(store, target)
    if target.startswith(_HOSTS):
        name, _, rest = target.removeprefix(_HOSTS).partition("/")
        return _answer(store, f"http://{name}/{rest}")
    own = urlsplit(store.start[0])
    if host and host != own.netloc and _is_recovered(store, host):
        return _answer(store, f"http://{host}{target}", as_archived=True)
    return _answer(store, f"{own.scheme}://{own.netloc}{target}")


def _is_recovered(store: Store, host: str) -> bool:
    return store.find(f"http://{host}/") is not None


def _answer(store: Store, uri: str, *, as_archived: bool = False) -> Reply:
    found = store.find(uri)
    if found is None:
        bare, mark, _ = uri.partition("?")
        found = store.find(bare) if mark else None  # an unknown parameter changes nothing on a static site
    if found is None:
        return _not_found(store, uri)
    if found.redirect_to is not None:
        target = found.redirect_to if as_archived else _local(store, found.redirect_to) or found.redirect_to
        return Reply(found.status, (("Location", target), ("Content-Length", "0")), b"")
    body = store.content(found) if as_archived else rewritten(store, found)
    kind = found.media_type + (f"; charset={found.charset}" if found.charset else "")
    headers = [("Content-Type", kind), ("Content-Length", str(len(body))), ("Cache-Control", "no-store")]
    if not as_archived:
        headers.append(("Content-Security-Policy", POLICY))
    return Reply(found.status, tuple(headers), body)


def rewritten(store: Store, resource: Recovered) -> bytes:
    """The content of a resource with links to the addresses of this server."""
    return content_of(store, resource, _links(store), policy="")


def _links(store: Store) -> PageLinks:
    in_site = site_test(store)

    def rewrite(uri: str) -> str | None:
        return _local(store, uri) if store.find(uri) is not None else None

    def stand_in(uri: str, use: Use) -> str | None:
        if use in (Use.PAGE, Use.FORM, Use.REFRESH, Use.FRAME):
            if in_site(uri):
                return _local(store, uri)  # answered with a page that says so
            return None if use in (Use.PAGE, Use.FORM) else "about:blank"
        return NEUTRAL[use]

    return PageLinks(rewrite, stand_in)


def _local(store: Store, uri: str) -> str | None:
    """The address of a URI on this server."""
    try:
        key, own = visit_key(uri, store.rules), visit_key(store.start[0], store.rules)
    except BadURI:
        return None
    split = urlsplit(uri)
    address = (split.path or "/") + (f"?{split.query}" if split.query else "")
    return address if _host(key) == _host(own) else f"{_HOSTS}{split.netloc}{address}"


def _host(key: str) -> str:
    return key.partition("://")[2].partition("/")[0]


def _not_found(store: Store, uri: str) -> Reply:
    body = not_recovered_page(store, {uri}).encode()
    headers = (("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(body))))
    return Reply(404, headers, body)


def front(store: Store) -> Recovered | None:
    """The page to begin with."""
    return next((found for uri in store.start if (found := store.resolve(uri)) is not None), None)
