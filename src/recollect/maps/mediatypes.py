"""Media types by the address of a resource, before it is fetched.

Hides: the table of extensions. `media_types_of` gives all media types that servers send for an extension; none if the
extension is not known. An address without an extension, or with one of a program that makes pages, is a page.
"""

from __future__ import annotations

import re

PAGE = ("text/html", "application/xhtml+xml")
_SCRIPT = ("text/javascript", "application/javascript", "application/x-javascript", "text/ecmascript")
_XML = ("text/xml", "application/xml", "application/rss+xml", "application/atom+xml", "application/rdf+xml")

_PAGES = (
    *("html", "htm", "xhtml", "xht", "shtml", "shtm", "stm", "mhtml", "dhtml", "jhtml", "php", "php3", "php4", "php5"),
    *("php7", "phtml", "asp", "aspx", "ashx", "jsp", "jspx", "jspa", "jsf", "do", "action", "cfm", "cfml", "cgi", "pl"),
    *("py", "rb", "dll", "nsf", "xsp", "faces"),
)
_OTHERS = {
    "png": ("image/png", "image/x-png"),
    "jpg jpeg jpe jfif pjpeg": ("image/jpeg", "image/jpg", "image/pjpeg"),
    "gif": ("image/gif",),
    "webp": ("image/webp",),
    "avif": ("image/avif",),
    "bmp": ("image/bmp", "image/x-ms-bmp"),
    "tif tiff": ("image/tiff",),
    "ico": ("image/x-icon", "image/vnd.microsoft.icon", "image/ico"),
    "svg svgz": ("image/svg+xml",),
    "css": ("text/css",),
    "js mjs cjs": _SCRIPT,
    "json": ("application/json", "text/json"),
    "map": ("application/json", "application/octet-stream"),
    "xml rss atom rdf xsl xslt": _XML,
    "txt": ("text/plain",),
    "md": ("text/markdown", "text/plain"),
    "csv": ("text/csv", "text/plain", "application/csv"),
    "pdf": ("application/pdf", "application/x-pdf"),
    "ps eps": ("application/postscript",),
    "doc dot": ("application/msword",),
    "xls": ("application/vnd.ms-excel",),
    "ppt pps": ("application/vnd.ms-powerpoint",),
    "docx": ("application/vnd.openxmlformats-officedocument.wordprocessingml.document",),
    "xlsx": ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",),
    "pptx": ("application/vnd.openxmlformats-officedocument.presentationml.presentation",),
    "odt": ("application/vnd.oasis.opendocument.text",),
    "rtf": ("application/rtf", "text/rtf"),
    "zip": ("application/zip", "application/x-zip-compressed", "application/octet-stream"),
    "gz tgz": ("application/gzip", "application/x-gzip", "application/octet-stream"),
    "rar": ("application/x-rar-compressed", "application/vnd.rar", "application/octet-stream"),
    "7z tar jar war dmg iso msi apk deb rpm bin": ("application/octet-stream",),
    "mp3": ("audio/mpeg", "audio/mp3"),
    "ogg oga": ("audio/ogg", "application/ogg"),
    "wav": ("audio/wav", "audio/x-wav"),
    "m4a": ("audio/mp4", "audio/x-m4a"),
    "mp4 m4v": ("video/mp4", "video/x-m4v"),
    "webm": ("video/webm",),
    "avi": ("video/x-msvideo", "video/avi"),
    "mov qt": ("video/quicktime",),
    "mpg mpeg": ("video/mpeg",),
    "wmv": ("video/x-ms-wmv",),
    "flv": ("video/x-flv",),
    "swf": ("application/x-shockwave-flash",),
    "woff": ("font/woff", "application/font-woff", "application/x-font-woff"),
    "woff2": ("font/woff2", "application/font-woff2"),
    "ttf": ("font/ttf", "application/x-font-ttf", "font/sfnt"),
    "otf": ("font/otf", "application/x-font-otf"),
    "eot": ("application/vnd.ms-fontobject",),
    "webmanifest": ("application/manifest+json",),
    "wasm": ("application/wasm",),
    "ics": ("text/calendar",),
    "vcf": ("text/vcard", "text/x-vcard"),
}
_TABLE: dict[str, tuple[str, ...]] = dict.fromkeys(_PAGES, PAGE)
_TABLE |= {name: types for names, types in _OTHERS.items() for name in names.split()}
# An extension has letters, and few characters; the end of `/v1.2` or `/article.2009` is not one.
_EXTENSION = re.compile(r"\.([a-z][a-z0-9]{0,10}|[a-z0-9]{1,4}(?<=[a-z]))")


def media_types_of(uri: str) -> tuple[str, ...]:
    """The media types that a URI, a SURT or a key may have by its address; empty if its extension is not known."""
    rest = uri.partition("#")[0].partition("?")[0].partition(";jsessionid")[0].lower()
    _, parenthesis, path = rest.partition(")/")
    if not parenthesis:
        _, _, after = rest.partition("//")
        path = (after or rest).partition("/")[2]
    name = path.rpartition("/")[2]
    extension = _EXTENSION.fullmatch(name[name.rfind(".") :]) if "." in name else None
    return PAGE if extension is None else _TABLE.get(extension[1], ())
