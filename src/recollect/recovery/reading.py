"""The links of a resource as the crawl follows them: those of the reader, and those that only the rewriter sees.

Two programs look at a page: `links` reads a tree, `rewrite` scans the text. Broken and old markup has links that are
in the text and not in the tree (a second `<body background>`, `<noframes>`): the rewriter would mark them as missing
though they were never asked for. Here what the rewriter sees is followed, too. Invariant: whatever the rewriter
replaces, the crawl has asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from recollect.recovery.collector import Collector, Document, encode_uri
from recollect.recovery.links import read_document
from recollect.recovery.rewrite import Use, rewrite_html, rewrite_svg

_XML_STYLESHEET = re.compile(r"""<\?xml-stylesheet\b[^>]{0,500}?\bhref\s*=\s*["']([^"'<>]{1,1000})["']""")
_PROLOGUE = 4096


def read_links(content: bytes, uri: str, media_type: str, charset: str | None = None) -> Document | None:
    """`read_document`, with the links that only the rewriter sees after its own; None for what has no links."""
    document = read_document(content, uri, media_type, charset)
    if document is None or document.form not in ("html", "svg"):
        return document
    collector = Collector(uri, charset or "utf-8")
    for link in document.links:
        collector.add(link.uri, link.kind, embedded=link.embedded, guess=link.guess)
    known = {link.uri for link in document.links}

    def see(target: str, use: Use) -> str | None:
        address = encode_uri(target.partition("#")[0], charset or "utf-8")
        if address not in known:
            is_page = use in (Use.PAGE, Use.FORM, Use.FRAME, Use.REFRESH)
            embedded = use not in (Use.PAGE, Use.FORM, Use.REFRESH)
            collector.add(address, "page" if is_page else "asset", embedded=embedded, guess=use == Use.FORM)
        return None

    rewrite = rewrite_html if document.form == "html" else rewrite_svg
    content_type = f"{media_type}; charset={charset}" if charset else media_type
    rewrite(content, uri, content_type, lambda _uri: None, see)
    for inner in _noframes(content) if document.form == "html" else ():
        plain = read_document(inner, uri, "text/html", charset)
        for link in plain.links if plain is not None else ():
            collector.add(link.uri, link.kind, embedded=link.embedded, guess=link.guess)
    for match in _XML_STYLESHEET.finditer(content[:_PROLOGUE].decode("latin-1")):
        collector.add(match[1], "asset", embedded=True)
    return replace(document, links=collector.links())


def _noframes(content: bytes) -> Iterator[bytes]:
    """The markup inside `<noframes>`, which browsers with frames take for text: archived crawlers and people without
    frames followed its links."""
    lower = content.lower()
    at = lower.find(b"<noframes")
    while at >= 0:
        end = lower.find(b"</noframes", at)
        yield content[at + len(b"<noframes>") : end if end >= 0 else len(content)]
        at = lower.find(b"<noframes", end) if end >= 0 else -1
