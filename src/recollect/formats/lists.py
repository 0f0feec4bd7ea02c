"""Lists of URIs: a line is one URI, including its spaces.

The one rule for a URI that was written with raw spaces (`http://a.b/my file.pdf`): they belong to it, as in a
browser's address bar, unless a word after the first shows that the line is of another format.
"""

from __future__ import annotations

import re

from recollect.uris import is_surt

# What begins a URI with a path or query, in which alone a space can be; a sentence begins with no such word.
_BEGINS = re.compile(r"[a-z][a-z0-9+.-]*://[^/]|[^/?#.:]*+[.:][^/?#]*+[/?]|localhost[/?]", re.IGNORECASE)
# A time, a JSON object, a frequency or count that ends the line, another URI.
_OTHER_FORMAT = re.compile(r"\d{8,20}(?!\S)|\{|[/+~-]*+\d[\d/+~-]*+$|[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def uri_of_line(line: str) -> str | None:
    """The URI (or SURT) that a line of a list is, its spaces percent-encoded; None for a line that is none."""
    text = line.strip(" \r\n")
    if " " not in text:
        return text if text and "\t" not in text else None
    first, _, rest = text.partition(" ")
    rest = rest.lstrip(" ")
    if "\t" in text or not (_BEGINS.match(first) or is_surt(first)):
        return None
    if _OTHER_FORMAT.match(rest) or is_surt(rest.partition(" ")[0]):
        return None
    return text.replace(" ", "%20")
