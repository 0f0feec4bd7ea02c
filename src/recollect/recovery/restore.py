"""From the store of a recovery to a website on disk that works from any folder, offline.

Hides: which resource a link means (aliases, redirects), what has to be rewritten, and what replaces what did not
come back. Layout below the output folder: one folder per host (`lost.example/index.html`), as Warrick and wget have it;
the re-hosting kit has the same site laid out for a web server (`Layout`).

Invariants: nothing is written outside the output folder; files of an earlier run that are no longer part of the site
are deleted, files of the user stay (`ownfiles`); the bytes of what is neither HTML, CSS nor SVG are as
archived (with the content encoding taken off). A restored page loads nothing from the live web: what it embeds and did
not come back is replaced by something neutral, and a Content-Security-Policy keeps its scripts offline.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlsplit

from recollect.model import Progress, ProgressCallback
from recollect.recovery.active import clean_xml, quiet_pdf
from recollect.recovery.filenames import ANY_SYSTEM, NameRules, file_names, relative_link
from recollect.recovery.links import effective_type
from recollect.recovery.noscript import is_program, without_scripts
from recollect.recovery.options import Options
from recollect.recovery.ownfiles import OwnFiles
from recollect.recovery.records import REASONS, Recovered
from recollect.recovery.rewrite import (
    NEUTRAL,
    Missing,
    OutsideAttributes,
    Rewriter,
    Use,
    rewrite_css,
    rewrite_html,
)
from recollect.recovery.store import Store
from recollect.ui.messages import current
from recollect.ui.pages import INLINED, render

MissingLinks = Literal["neutral", "keep"]
OutsideLinks = Literal["robust", "archive", "keep"]
NOT_RECOVERED = "not-recovered.html"
# Everything may come from beside the page, from the page itself, and from nowhere else. A page opened from the disk has
# no origin that 'self' could name, hence file:.
# A worker that is a file of its own would not be bound by this policy on a server without headers.
POLICY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob: file:; base-uri 'self' file:; "
    "form-action 'self' file:; worker-src blob: data:; webrtc 'block'"
)
# No policy forbids a script to leave the page. So the first script of a page refuses navigations that no person clicked
# for (Navigation API), links that a script clicks or sends an event to (in the page, in a shadow tree, outside of the
# document), windows that open by themselves, and takes away connections that older browsers leave out of the policy.
# Names of hosts in links are not looked up ahead. A script that takes fresh functions from a frame passes it by.
_QUIET = '<meta http-equiv="x-dns-prefetch-control" content="off" />'
GUARD = (
    "<script>(function(w){function out(u){try{var t=new URL(u,location.href),p=t.protocol;return p!='about:'&&"
    "p!='blob:'&&p!='data:'&&p!='javascript:'&&(p!=location.protocol||t.host!=location.host)}catch(e){return true}}"
    "function idle(){var a=navigator.userActivation;return !a||!a.isActive}var o=w.open;"
    "w.navigation&&w.navigation.addEventListener('navigate',function(e){if(e.cancelable&&!e.userInitiated"
    "&&out(e.destination.url)){e.preventDefault()}},true);w.open=function(){return idle()?null:o.apply(w,arguments)};"
    "function far(n){n=n&&n.closest&&n.closest('a,area');return !!n&&out(n.href.baseVal||n.href)&&idle()}"
    "var h=w.HTMLElement.prototype,c=h.click,t=w.EventTarget.prototype,d=t.dispatchEvent,p=w.Document.prototype,"
    "q=p.open;h.click=function(){if(!far(this)){c.call(this)}};t.dispatchEvent=function(e){"
    "return e&&e.type=='click'&&far(this)?false:d.apply(this,arguments)};"
    "p.open=function(){return arguments.length>2&&idle()?null:q.apply(this,arguments)};"
    "try{delete w.RTCPeerConnection;delete w.webkitRTCPeerConnection}catch(e){}})(window)"
    "</script>"
)
WITHOUT_SCRIPTS = (
    "default-src 'self' 'unsafe-inline' data: file:; script-src 'none'; worker-src 'none'; connect-src 'none'; "
    "base-uri 'self' file:; form-action 'self' file:; webrtc 'block'"
)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything lies: URI -> file, and the page that links to missing pages lead to."""

    names: Mapping[str, str]
    not_recovered: str = NOT_RECOVERED


@dataclass(frozen=True, slots=True)
class Restored:
    """What was written: URI -> file name, how many links could not be made local, and what embeds were replaced."""

    names: dict[str, str]
    links_local: int
    links_original: int
    neutral: dict[str, str] = field(default_factory=dict)  # URI -> a page that embeds it
    kept: dict[str, str] = field(default_factory=dict)  # a person's file -> the new version beside it


def restore(
    store: Store,
    out_dir: Path,
    *,
    files: OwnFiles | None = None,
    layout: Layout | None = None,
    missing: MissingLinks = "neutral",
    outside: OutsideLinks = "keep",
    names: NameRules = ANY_SYSTEM,
    scripts: bool = True,
    progress: ProgressCallback = lambda _p: None,
) -> Restored:
    """Write the site; without `scripts` nothing of it runs in a browser, and files that are scripts are left out.
    Without `files` this is all that is written: what else an earlier run wrote is taken away."""
    own = files or OwnFiles(store, out_dir)
    resources = list(store.recovered(redirects=False))
    if layout is None:
        layout = Layout(file_names(((resource.uri, resource.media_type) for resource in resources), rules=names))
    if not scripts:
        resources = [one for one in resources if not is_program(one.media_type, layout.names[one.uri])]
        layout = replace(layout, names={one.uri: layout.names[one.uri] for one in resources})
    links = Links(store, layout, missing, outside)
    for done, resource in enumerate(resources):
        progress(Progress("restoring files", done, len(resources), "files"))
        name = layout.names[resource.uri]
        own.write(name, content_of(store, resource, links.of(name, resource), name=name, scripts=scripts))
    if links.not_recovered:
        own.write(layout.not_recovered, not_recovered_page(store, links.not_recovered).encode())
    progress(Progress("restoring files", len(resources), len(resources), "files"))
    if files is None:
        own.finish()
    return Restored(dict(layout.names), links.local, links.original, links.neutral, dict(own.kept))


@dataclass(frozen=True, slots=True)
class PageLinks:
    """The answers for the links of one file."""

    rewriter: Rewriter
    missing: Missing
    outside: OutsideAttributes | None = None


class Links:
    """Answers where a link leads; remembers, because a site repeats its links on every page."""

    def __init__(self, store: Store, layout: Layout, missing: MissingLinks, outside: OutsideLinks = "robust") -> None:
        self._store = store
        self._layout = layout
        self._keep = missing == "keep"
        self._outside = outside
        self._in_site = site_test(store)
        self._known: dict[str, str | None] = {}
        self.local = 0
        self.original = 0
        self.neutral: dict[str, str] = {}
        self.not_recovered: set[str] = set()

    def of(self, source: str, page: Recovered | None = None) -> PageLinks:
        def rewrite(uri: str) -> str | None:
            target = self._target(uri)
            if target is None:
                self.original += 1
                return None
            self.local += 1
            return relative_link(source, target)

        def stand_in(uri: str, use: Use) -> str | None:
            if use in (Use.PAGE, Use.FORM) and (self._keep or not self._in_site(uri)):
                archived = self._outside == "archive" and use == Use.PAGE and not self._in_site(uri)
                return version_of(uri, page) if archived and page is not None else None
            if use not in (Use.PAGE, Use.FORM):
                self.neutral.setdefault(uri, source)
            if use in (Use.PAGE, Use.FORM, Use.REFRESH) or (use == Use.FRAME and self._in_site(uri)):
                self.not_recovered.add(uri)
                return f"{relative_link(source, self._layout.not_recovered)}#{quote(uri, safe='')}"
            return NEUTRAL[use]

        def robust(uri: str) -> tuple[tuple[str, str], ...]:
            """Robust Links (robustlinks.mementoweb.org): a way on when the other site is gone."""
            if page is None or self._in_site(uri):
                return ()
            version = version_of(uri, page)
            known = (("data-originalurl", uri), ("data-versiondate", f"{page.captured_at:%Y-%m-%d}"))
            return (*known, ("data-versionurl", version)) if version is not None else known

        return PageLinks(rewrite, stand_in, robust if self._outside == "robust" else None)

    def _target(self, uri: str) -> str | None:
        if uri not in self._known:
            found = self._store.resolve(uri)
            self._known[uri] = self._layout.names.get(found.uri) if found is not None else None
        return self._known[uri]


_VERSION = re.compile(r"(https?://.+?/)(\d{14})(?:[a-z]{2}_)?/https?:/")


def version_of(uri: str, page: Recovered) -> str | None:
    """Where the archive of a page has another address near the page's date; None if its URI-Ms do not show that."""
    match = _VERSION.match(page.uri_m)
    return f"{match[1]}{match[2]}/{uri}" if match else None


def site_test(store: Store) -> Callable[[str], bool]:
    """Does a URI belong to the site that was lost?"""
    options = store.meta("options")
    if options is not None:
        return Options.from_json(options).scope.holds
    hosts = {urlsplit(uri).netloc.removeprefix("www.") for uri in store.start}
    return lambda uri: urlsplit(uri).netloc.removeprefix("www.") in hosts


def content_of(
    store: Store, resource: Recovered, links: PageLinks, policy: str = POLICY, *, name: str = "", scripts: bool = True
) -> bytes:
    """The content of a resource with its links repointed, as the file `name` will be read: by its ending, which is all
    that a disk and a plain server know; without `name`, by its media type."""
    body = store.content(resource)
    kind = effective_type(resource.media_type, resource.uri, body[:1024])
    if name:
        kind = type_of_file(name, kind, body[:1024])
    content_type = kind + (f"; charset={resource.charset}" if resource.charset else "")
    uri, rewriter, missing = resource.uri, links.rewriter, links.missing
    is_xml_file = name.lower().endswith((".xhtml", ".xht", ".xhtm"))
    if kind in ("text/html", "application/xhtml+xml") and not is_xml_file:
        policy = policy if scripts or not policy else WITHOUT_SCRIPTS
        head = _QUIET + (GUARD if scripts else "")
        page = rewrite_html(body, uri, content_type, rewriter, missing, policy, links.outside, head=head)
        return page if scripts else without_scripts(page, content_type)
    if kind == "text/css":
        return rewrite_css(body, uri, content_type, rewriter, missing)
    if kind == "application/pdf":
        return quiet_pdf(body)
    if kind.endswith(("/xml", "+xml")):
        return clean_xml(body, uri, content_type, rewriter, missing, packed=name.lower().endswith(".svgz"))
    return body


# How browsers and plain servers read a file, by the end of its name.
_BY_ENDING = {
    **dict.fromkeys(("html", "htm", "shtml", "shtm", "ehtml"), "text/html"),
    **dict.fromkeys(("xhtml", "xht", "xhtm"), "application/xhtml+xml"),
    **dict.fromkeys(("svg", "svgz"), "image/svg+xml"),
    **dict.fromkeys(
        ("xml", "xsl", "xslt", "rss", "atom", "rdf", "mml", "mathml", "xbl", "wsdl", "xsd", "opml"), "text/xml"
    ),
    **dict.fromkeys(("kml", "gpx", "xul", "dtd", "ent", "smil", "smi", "xspf", "vml", "dae", "x3d"), "text/xml"),
    "css": "text/css",
    "pdf": "application/pdf",
}
_OTHER_ENDINGS = frozenset(
    [
        "js",
        "mjs",
        "cjs",
        "json",
        "map",
        "webmanifest",
        "txt",
        "png",
        "gif",
        "jpg",
        "jpeg",
        "jpe",
        "webp",
        "avif",
        "bmp",
        "ico",
        "woff",
        "woff2",
        "ttf",
        "otf",
        "eot",
        "wasm",
        "swf",
        "mp3",
        "m4a",
        "ogg",
        "oga",
        "ogv",
        "wav",
        "mid",
        "mp4",
        "m4v",
        "webm",
        "mov",
        "avi",
        "zip",
        "gz",
        "tgz",
        "bz2",
        "xz",
        "7z",
        "rar",
        "doc",
        "docx",
        "xls",
        "xlsx",
        "ppt",
        "pptx",
        "csv",
        "md",
    ]
)
_LOOKS_LIKE_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?+[\t\n\f\r ]*+<(?:!--|(?:!doctype|html|head|script|iframe|h1|div|font|table|a|style|title|b"
    rb"|body|br|p|meta|link)(?=[\s>/]|$))",
    re.IGNORECASE,
)
_LOOKS_LIKE_XML = re.compile(rb"(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?+[\s\0]*+<\0?\?\0?x", re.IGNORECASE)


def type_of_file(name: str, kind: str, head: bytes) -> str:
    """The media type that a browser gives a file: by its ending; where that says nothing, by its first bytes."""
    ending = name.rpartition("/")[2].rpartition(".")[2].lower() if "." in name.rpartition("/")[2] else ""
    if ending in _BY_ENDING:
        return _BY_ENDING[ending]
    if ending in _OTHER_ENDINGS:
        return "" if kind in _ACTIVE_TYPES or kind.endswith("xml") else kind
    if _LOOKS_LIKE_XML.match(head):
        return "text/xml"
    return "text/html" if _LOOKS_LIKE_HTML.match(head) else kind


_ACTIVE_TYPES = frozenset(["text/html", "application/xhtml+xml", "text/css", "application/pdf"])


def not_recovered_page(store: Store, uris: set[str]) -> str:
    """A page that names every linked page that did not come back; the fragment of a link marks one of them."""
    reasons = {missing.uri: REASONS[missing.reason] for missing in store.missing()}
    _ = current().gettext
    left_out = _("a script: this copy has none; the archived one is in recovered.warc.gz")
    pages = [(uri, _(reasons.get(uri, "")) or (left_out if store.resolve(uri) else "")) for uri in sorted(uris)]
    return render("recovery/not_recovered.html", INLINED, pages=pages)
