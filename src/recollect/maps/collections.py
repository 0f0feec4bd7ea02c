"""Several maps on one host: one for each collection, and a list of them at the well-known address.

Hides: the files of a collection and the list. Below the root of the site:

    mementomap/NAME/map.ukvs.gz, .zst      the map of a collection, which has an `!id`: the address of the collection
    mementomap/NAME/index.json             its id, name, date, number of keys and links
    .well-known/mementomap[.gz|.zst]       the list: a map without lines, with `maps` in its `!meta`
    mementomap/index.json, link.txt        what there is; the Link header, with one relation and anchor per collection

The list says `"scope": "voids"`, so that a reader that does not know lists finds nothing in it and no "no" either.
"""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import recollect
from recollect.errors import UsageError
from recollect.formats.containers import atomic_output
from recollect.formats.outputs import refuse_inputs
from recollect.formats.ukvs.header import MEDIA_TYPE, Header
from recollect.formats.ukvs.reader import MapFile
from recollect.maps.publish import (
    FOLDER,
    WELL_KNOWN,
    Published,
    begun,
    file_entries,
    refuse_other_kind,
    survey_map,
    tidy_texts,
    write_file,
)

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
_SUFFIXES = (".gz", ".zst")


def publish_collection(
    path: str, folder: Path, collection: str, *, updated_at: str, base_uri: str = "", identity: str = ""
) -> Published:
    """Write the map of one collection below `folder`, and the list of all collections there. `identity` is the address
    of the collection, if the map does not say it."""
    check_name(collection)
    place = folder / FOLDER / collection
    refuse_inputs(path, [place] if place.is_dir() else [])
    refuse_other_kind(folder, collections=True)
    survey = survey_map(path)
    uri = identity or str(survey.header.id.get("uri") or "")
    if not uri or not urlsplit(uri).netloc:
        why = "on a host with several collections a map without an address belongs to none of them"
        raise UsageError("the map has no !id", where=path, why=why, hint="--id https://archive.example/NAME/")
    header = Header(**{**_fields(survey.header), "id": {**survey.header.id, "uri": uri}})
    place.mkdir(parents=True, exist_ok=True)
    names = [f"{FOLDER}/{collection}/map.ukvs{suffix}" for suffix in _SUFFIXES]
    with ExitStack() as stack, MapFile(path) as source:
        outs = [begun(stack, folder / name, header) for name in names]
        for text in tidy_texts(source):
            for out in outs:
                out.write(text)
    entry = {
        "type": "MementoMap",
        "id": dict(header.id),
        "name": header.meta.get("name", ""),
        "updated_at": header.meta.get("updated_at", updated_at),
        "keys": sum(page.keys for page in survey.pages),
        "policy": header.policy,
        "href": f"/{FOLDER}/{collection}/map.ukvs.zst",
        "files": file_entries(folder, names, {}),
    }
    write_file(place / "index.json", _json(entry))
    return write_list(folder, base_uri)


def check_name(collection: str) -> None:
    """Raise UsageError for a name that is not one of a collection."""
    if not _NAME.fullmatch(collection) or collection in ("index.json", "link.txt"):
        raise UsageError("not a name for a collection", where=repr(collection), hint="letters, digits, - _ and .")


def _fields(header: Header) -> dict[str, Any]:
    return {name: getattr(header, name) for name in Header.__dataclass_fields__}


def write_list(folder: Path, base_uri: str) -> Published:
    """Write the list of the collections that are published below `folder`."""
    found = [json.loads(one.read_text(encoding="utf-8")) for one in sorted((folder / FOLDER).glob("*/index.json"))]
    base = base_uri.rstrip("/")
    maps = [{"id": one["id"]["uri"], "href": f"{base}{one['href']}", "name": one["name"]} for one in found]
    meta = {
        "type": "MementoMap",
        "scope": "voids",
        "generator": f"recollect {recollect.__version__}",
        "maps": maps,
    }
    header = Header(meta=meta)
    (folder / WELL_KNOWN).parent.mkdir(parents=True, exist_ok=True)
    names = [f"{WELL_KNOWN}{suffix}" for suffix in ("", *_SUFFIXES)]
    for name in names:
        with atomic_output(folder / name) as out:
            out.write(header.encode())
    links = [f'<{one["href"]}>; rel="mementomap"; type="{MEDIA_TYPE}"; anchor="{one["id"]}"' for one in maps]
    link = ", ".join(links)
    index = {
        "type": "MementoMap",
        "maps": maps,
        "updated_at": max((str(one["updated_at"]) for one in found), default=""),
        "keys": sum(int(one["keys"]) for one in found),
        "link": link,
        "well_known": f"/{WELL_KNOWN}",
        "pages": [],
        "files": [*file_entries(folder, names, {}), *(entry for one in found for entry in one["files"])],
    }
    write_file(folder / FOLDER / "link.txt", f"Link: {link}\n".encode())
    write_file(folder / FOLDER / "index.json", _json(index))
    return Published(index, link)


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"
