"""Media types and languages that a TimeMap states of its mementos, beyond what a lookup needs.

Hides: where makers put them: parameters of links (`type`, `hreflang`, `lang`), members of JSON and CDXJ objects
(`mime`, `mimetype`, `languages`), or columns of a CDX server's rows. What is not stated is left out.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from recollect.formats.cdx import clean_media_type
from recollect.formats.timemap.links import parse_links

_MEDIA_TYPES = ("mime", "mimetype", "media_type", "mime-detected", "type", "content_type")
_LANGUAGES = ("language", "languages", "hreflang", "lang")
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z0-9]{1,8})*", re.IGNORECASE)
_MEDIA_TYPE = re.compile(r"[a-z0-9.+-]{1,64}/[a-z0-9.+-]{1,64}")
_OBJECT = re.compile(r"\{[^{}]*\}")
_MEMENTO = ("uri", "url", "timestamp", "datetime")


def described(body: bytes, kind: str) -> dict[str, dict[str, int]]:
    """Of the mementos of a TimeMap of some `kind` (`TimeMap.kind`): how many have each media type and language."""
    counts: dict[str, Counter[str]] = {"media_type": Counter(), "language": Counter()}
    text = body.decode("utf-8", "replace")
    for stated in _from_links(text) if kind == "link" else _from_objects(text):
        media_type = next((str(stated[name]) for name in _MEDIA_TYPES if stated.get(name)), "")
        languages = next((stated[name] for name in _LANGUAGES if stated.get(name)), "")
        count_description(counts, media_type, languages)
    return {name: dict(found) for name, found in counts.items() if found}


def count_description(counts: dict[str, Counter[str]], media_type: str, languages: object) -> None:
    """Count one capture's media type and languages, in the spelling of maps; what cannot be read is left out."""
    media_type = (clean_media_type(media_type.partition(";")[0].strip()) or "").lower()
    if _MEDIA_TYPE.fullmatch(media_type):
        counts["media_type"][media_type] += 1
    several = languages if isinstance(languages, list) else re.split(r"[\s,;]+", str(languages))
    for language in dict.fromkeys(str(one).strip().lower() for one in several):
        if _LANGUAGE.fullmatch(language):
            counts["language"][language] += 1


def _from_links(text: str) -> Iterator[dict[str, Any]]:
    for link in parse_links(text):
        if any(rel == "memento" or rel.endswith("memento") for rel in link.rels):
            yield dict(link.params)


def _from_objects(text: str) -> Iterator[dict[str, Any]]:
    with contextlib.suppress(ValueError, RecursionError):
        rows = json.loads(text)
        if isinstance(rows, list) and rows and all(isinstance(row, list) for row in rows):
            names = [str(name) for name in rows[0]]
            yield from (dict(zip(names, row, strict=False)) for row in rows[1:])
            return
    for match in _OBJECT.finditer(text):
        with contextlib.suppress(ValueError, RecursionError):
            stated = json.loads(match[0])
            if any(name in stated for name in _MEMENTO):
                yield stated
