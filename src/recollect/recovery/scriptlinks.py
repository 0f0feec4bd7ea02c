"""Links in what programs read: scripts, JSON-LD, the lists of service workers, web app manifests.

Decides which strings are addresses. A string of a script may be an address; the list of a service worker, a field of
JSON-LD that names an address, and a manifest certainly have addresses.
"""

from __future__ import annotations

import json
import re

from recollect.recovery.collector import Collector, Document

_ASSET_ENDINGS = (
    r"gif|jpe?g|png|bmp|ico|svg|webp|avif|css|js|mjs|swf|flv|mp3|mp4|webm|ogg|wav|mid|pdf|woff2?|ttf|eot|otf|json|xml"
)
_STRING = re.compile(
    r"""["']([^"'<>\s\\]{1,300}?\.(?:""" + _ASSET_ENDINGS + r""")(?:\?[^"'<>\s\\]{0,200})?)["']""", re.I
)
_PAGE_STRING = re.compile(
    r"""(?:location(?:\.href)?\s*=|location\.replace\(|window\.open\()\s*["']([^"'<>\s\\]{1,500})["']""", re.I
)
_PAGE_ENDINGS = r"x?html?|shtml?|php[345]?|aspx?|jspx?|cfm|cgi|pl"
# Names of pages in the data of menus and search boxes ("annotated.html", "list.php?id=3#top").
_PAGE_NAME = re.compile(
    r"""["']([^"'<>\s\\?#]{1,300}\.(?:""" + _PAGE_ENDINGS + r""")(?:[?#][^"'<>\s\\]{0,200})?)["']""", re.I
)
_IS_PAGE_NAME = re.compile(r"[^\s<>\"'?#]{1,300}(?:/|\.(?:" + _PAGE_ENDINGS + r"))(?:[?#][^\s<>\"']{0,300})?$", re.I)


def is_page_name(text: str) -> bool:
    """May a text be the address of a page, because of its ending (`b.html`, `dir/`, `list.php?n=2`)?"""
    return _IS_PAGE_NAME.match(text.strip()) is not None or _is_address(text.strip())


# What JSON-LD calls addresses of pages, and of pictures and media (schema.org).
_LD_PAGES = frozenset({"url", "mainentityofpage", "item", "discussionurl", "relatedlink", "significantlink"})
_LD_ASSETS = frozenset(
    {"image", "logo", "thumbnail", "thumbnailurl", "contenturl", "photo", "screenshot", "associatedmedia"}
)


def json_links(text: str, collector: Collector) -> None:
    """The addresses in JSON-LD, and in import maps and speculation rules: by the names of their fields."""
    try:
        waiting: list[tuple[str, object]] = [("", json.loads(text))]
    except (ValueError, RecursionError):
        return
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            # An object under `image` has its address in `url`.
            inside = name if name in _LD_ASSETS else ""
            waiting += [
                (inside if inside and str(key).lower() == "url" else str(key).lower(), item)
                for key, item in reversed(list(value.items()))
            ]
        elif isinstance(value, list):
            waiting += [(name, item) for item in reversed(value)]
        elif isinstance(value, str) and (name in _LD_ASSETS or (name in _LD_PAGES and _is_address(value))):
            collector.add(value, "asset" if name in _LD_ASSETS else "page")
        elif isinstance(value, str) and name == "@id" and value.startswith("http"):
            collector.add(value, "page", guess=True)  # an identifier, and only perhaps an address


def _is_address(text: str) -> bool:
    return text.startswith(("http://", "https://", "/", "./", "../")) and " " not in text


# Lists of what a service worker is to keep: an array of strings, or of objects with `url`.
_WORKER = re.compile(r"\.addAll\s*\(|precache|__WB_MANIFEST|workbox|caches\.open", re.I)
_STRINGS = re.compile(r"""\[\s*+((?:["'`][^"'`\n\\]{0,500}+["'`]\s*+,?+\s*+)++)\]""")
_QUOTED = re.compile(r"""["'`]([^"'`\n\\]{1,500})["'`]""")
_REVISION = re.compile(r"""["']?\burl["']?\s*:\s*["'`]([^"'`\n\\]{1,500})["'`]""")
_ASSET_NAME = re.compile(r"\.(?:" + _ASSET_ENDINGS + r")(?:\?|$)", re.I)


def _worker_links(text: str, collector: Collector) -> None:
    """What a service worker keeps for offline use: the site's own list of its parts."""
    if not _WORKER.search(text):
        return
    found = [item for array in _STRINGS.finditer(text) for item in _QUOTED.findall(array[1])]
    found += _REVISION.findall(text)
    for item in found:
        if _ASSET_NAME.search(item):
            collector.add(item, "asset")
        elif _is_address(item):
            collector.add(item, "page")


def script_links(text: str, collector: Collector) -> None:
    """Strings in scripts that look like files or places to go: guesses, worth asking for only where they are listed."""
    _worker_links(text, collector)
    for match in _STRING.finditer(text):
        collector.add(match[1], "asset", embedded=True, guess=True)
    for match in (*_PAGE_STRING.finditer(text), *_PAGE_NAME.finditer(text)):
        collector.add(match[1], "page", guess=True)


def read_script(text: str, uri: str, charset: str) -> Document:
    collector = Collector(uri, charset)
    script_links(text[:1_000_000], collector)
    return Document("script", collector.links())


def read_manifest(text: str, uri: str, charset: str) -> Document:
    """A web app manifest: where the app starts, its shortcuts, its icons and screenshots, its worker."""
    collector = Collector(uri, charset)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return Document("manifest")
    if isinstance(value, dict):
        collector.add(_text(value.get("start_url")), "page")
        for item in [value, *_objects(value.get("shortcuts"))]:
            for picture in [*_objects(item.get("icons")), *_objects(item.get("screenshots"))]:
                collector.add(_text(picture.get("src")), "asset")
        for shortcut in _objects(value.get("shortcuts")):
            collector.add(_text(shortcut.get("url")), "page")
        for worker in _objects([value.get("serviceworker")]):
            collector.add(_text(worker.get("src")), "asset")
    return Document("manifest", collector.links())


def _objects(value: object) -> list[dict[str, object]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
