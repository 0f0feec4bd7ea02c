"""TimeMaps: read tolerantly (link-format, JSON, CDXJ), merged across archives, written strictly.

The door of the format; see `links` (RFC 8288), `model` (mementos, merging, negotiation), `read`, `write`.
"""

from recollect.formats.timemap.links import Link, Problems, parse_link_header, parse_links, quote, resolve, safe_uri
from recollect.formats.timemap.model import Memento, Mementos, Negotiated, Page, TimeMap, merge
from recollect.formats.timemap.read import parse_timemap
from recollect.formats.timemap.write import (
    MEDIA_TYPES,
    Paging,
    Place,
    link_header,
    write_memento,
    write_timemap,
)

__all__ = [
    "MEDIA_TYPES",
    "Link",
    "Memento",
    "Mementos",
    "Negotiated",
    "Page",
    "Paging",
    "Place",
    "Problems",
    "TimeMap",
    "link_header",
    "merge",
    "parse_link_header",
    "parse_links",
    "parse_timemap",
    "quote",
    "resolve",
    "safe_uri",
    "write_memento",
    "write_timemap",
]
