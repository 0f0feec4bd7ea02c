"""A page over the maps of several archives: an aggregator without a server (Kelly 2024).

index.html, maps.json, _/      the page (`lookuppage`)
maps/ID.ukvs.gz                the maps, compressed so that a browser searches them where they are
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from recollect.errors import UsageError
from recollect.formats.outputs import refuse_inputs
from recollect.formats.ukvs.reader import MapFile
from recollect.maps.lookuppage import PublishedMap, marks_of, write_lookup_page
from recollect.maps.publish import begun, survey_map, tidy_texts

_ENDINGS = (".ukvs", ".ukvs.gz", ".ukvs.zst", ".ukvs.bz2")


def publish_directory(
    source: Path, folder: Path, *, names: Mapping[str, str], replays: Mapping[str, str]
) -> list[PublishedMap]:
    """Write the maps of `source`, each named by the id of its archive, and a page over all of them."""
    if not source.is_dir():
        raise UsageError(
            "not a folder of maps", where=str(source), hint="recollect publish maps/ --directory --to public/"
        )
    found = {
        path.name.removesuffix(ending): path
        for ending in _ENDINGS
        for path in sorted(source.glob(f"*{ending}"))
        if path.is_file()
    }
    if not found:
        raise UsageError("no map in this folder", where=str(source), hint="maps are named by archive: arquivo.ukvs")
    place = folder / "maps"
    refuse_inputs(str(source), [place] if place.is_dir() else [])
    place.mkdir(parents=True, exist_ok=True)
    entries = [
        _written(path, place, name, names.get(name, ""), replays.get(name, "")) for name, path in sorted(found.items())
    ]
    for old in place.glob("*.ukvs.gz"):
        if old.name.removesuffix(".ukvs.gz") not in found:
            old.unlink()
    write_lookup_page(folder, entries, "Web archives")
    return entries


def _written(path: Path, place: Path, name: str, title: str, replay: str) -> PublishedMap:
    survey = survey_map(str(path))
    target = place / f"{name}.ukvs.gz"
    with ExitStack() as stack:
        out = begun(stack, target, survey.header)
        for text in tidy_texts(stack.enter_context(MapFile(str(path)))):
            out.write(text)
    meta = survey.header.meta
    keys = sum(page.keys for page in survey.pages)
    title = title or str(meta.get("name", "")) or name
    moment = str(meta.get("updated_at", ""))
    uri = str(survey.header.id.get("uri") or "")
    return PublishedMap(f"maps/{target.name}", title, uri, moment, keys, replay, marks_of(target))
