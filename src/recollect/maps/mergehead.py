"""One header of several: what maps must agree on to be merged, and what a merged map says of itself.

Rules. Key columns, other value columns and the policy must be the same; so must `!id`, unless the caller names one.
Of `!meta`: `counts` add up where this is exact, `span` and `sources` join, entries that all maps share stay,
entries that differ go into `merged`, one object per map. URI-Rs, and so `gamma`, are known where no URI-R is in two
maps: the caller says so (`disjoint`), or no key is in two maps and none is a wildcard. What spoke of one file only
(`page`, `pages`, `links`) is dropped. The scopes join (`scope.joined`): filters that differ stand side by side in
`scopes`, `scope: voids` stays only if all maps list voids, and `updated_at` is the oldest of all unless the caller
gives one. A single map keeps its header; pages of one map (`mapinputs`) are one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import recollect
from recollect.errors import UsageError
from recollect.formats.ukvs import Header
from recollect.maps.scope import Scope, joined
from recollect.uris import policy_name

# Entries that are joined by rules of their own, or speak of one file.
_OWN_RULES = frozenset(
    (
        *("all_schemes", "counts", "filters", "gamma", "generator", "links", "merged", "page", "pages", "scope"),
        *("scopes", "sources", "span", "updated_at"),
    )
)
_OF_A_PAGE = frozenset(("links", "page", "pages"))


@dataclass(frozen=True, slots=True)
class Part:
    """A map that is merged: its name, its size in bytes and its header."""

    name: str
    size: int | None
    header: Header


def merged_header(
    parts: Sequence[Part], *, archive: str = "", updated_at: str = "", disjoint: bool = False, style: str = ""
) -> Header:
    """The header of the merged map; raises UsageError if the maps do not belong together."""
    first = parts[0].header
    for part in parts[1:]:
        _check(parts[0], part)
    style = style or ("cdxj" if all(part.header.style == "cdxj" for part in parts) else "ukvs")
    if style == "cdxj":
        values: tuple[str, ...] = ()
    else:
        values = next((part.header.values for part in parts if part.header.values), ("frequency",))
    contexts = (item for part in parts if part.header.style == style for item in part.header.context)
    context = tuple({str(item): item for item in contexts}.values())
    meta = _meta(parts, disjoint) if len(parts) > 1 else dict(first.meta)
    meta = {name: value for name, value in meta.items() if name not in _OF_A_PAGE}
    if style == "ukvs" and str(meta.get("type", "")).startswith("urikey#"):
        meta |= {"type": "MementoMap", "policy": first.policy}
    if updated_at:
        meta["updated_at"] = updated_at
    other = {name: value for part in reversed(parts) for name, value in part.header.other.items()}
    kept = Header(style=style).context if style == "ukvs" else ()
    return Header(first.keys, values, context or kept, _id(parts, archive), meta, other, style)


def _check(first: Part, other: Part) -> None:
    def differ(what: str, mine: object, yours: object) -> UsageError:
        return UsageError(
            "maps that do not belong together",
            where=f"{first.name} and {other.name}",
            why=f"{what}: {mine} and {yours}",
            hint="merge maps of one kind only; see `recollect profile --help` for how to make them alike",
        )

    if first.header.keys != other.header.keys:
        raise differ("key columns differ", ", ".join(first.header.keys), ", ".join(other.header.keys))
    if policy_name(first.header.policy) != policy_name(other.header.policy):
        raise differ(
            "policies differ; convert one: recollect convert MAP --policy HxPx -o OUT",
            first.header.policy,
            other.header.policy,
        )
    mine, yours = (_other_values(part.header) for part in (first, other))
    if mine != yours:
        raise differ("value columns differ", ", ".join(mine) or "none", ", ".join(yours) or "none")


def _other_values(header: Header) -> list[str]:
    return [name for name in header.values if name != "frequency"]


def _id(parts: Sequence[Part], archive: str) -> Mapping[str, Any]:
    if archive:
        return {"uri": archive}
    ids = [part for part in parts if part.header.id]
    for part in ids[1:]:
        if part.header.id != ids[0].header.id:
            raise UsageError(
                "maps of different archives",
                where=f"{ids[0].name} and {part.name}",
                why=f"{_shown(ids[0].header.id)} and {_shown(part.header.id)}",
                hint="say whose map it shall be: --id URI",
            )
    return ids[0].header.id if ids else {}


def _shown(identity: Mapping[str, Any]) -> str:
    return str(identity.get("uri") or dict(identity))


def _meta(parts: Sequence[Part], disjoint: bool) -> dict[str, Any]:
    metas = [part.header.meta for part in parts]
    names = list(dict.fromkeys(name for meta in metas for name in meta if name not in _OWN_RULES))
    same = [name for name in names if all(name in meta and meta[name] == metas[0].get(name) for meta in metas)]
    merged: dict[str, Any] = {name: metas[0][name] for name in same}
    differ = [name for name in names if name not in same]
    # The first map is the one that is brought up to date; its name and kind stay.
    merged |= {name: metas[0][name] for name in ("name", "type", "policy") if name in metas[0]}
    merged["generator"] = f"recollect {recollect.__version__}"
    merged["sources"] = _sources(parts)
    if counts := _counts(metas, disjoint):
        merged["counts"] = counts
        if counts.get("uri_rs"):
            merged["gamma"] = round(counts["captures"] / counts["uri_rs"], 4)
    if all(isinstance(meta.get("span"), dict) for meta in metas):
        spans = [meta["span"] for meta in metas]
        merged["span"] = {
            "from": min(str(span.get("from", "")) for span in spans),
            "to": max(str(span.get("to", "")) for span in spans),
        }
    if differ:
        merged["merged"] = [said for part in parts for said in _said(part, differ)]
    return merged | joined([Scope.of(part.header) for part in parts]).as_meta()


def _said(part: Part, names: Sequence[str]) -> list[Any]:
    """What a map says that others do not; of a map that was merged already, what its parts said."""
    meta = part.header.meta
    own = {name: meta[name] for name in names if name in meta}
    earlier = meta.get("merged")
    return [*(earlier if isinstance(earlier, list) else []), *([own] if own else [])]


def _sources(parts: Sequence[Part]) -> list[Any]:
    found: list[Any] = []
    for part in parts:
        listed = part.header.meta.get("sources")
        own = listed if isinstance(listed, list) else [{"name": part.name, "bytes": part.size}]
        found += [source for source in own if source not in found]
    return found


def _counts(metas: Sequence[Mapping[str, Any]], disjoint: bool) -> dict[str, int]:
    counts = [meta.get("counts") for meta in metas]
    names = ("captures", "uri_rs") if disjoint else ("captures",)  # `keys` are known when all are written
    total: dict[str, int] = {}
    for name in names:
        values = [count.get(name) for count in counts if isinstance(count, dict)]
        numbers = [value for value in values if isinstance(value, int)]
        if len(numbers) == len(metas):
            total[name] = sum(numbers)
    return total


def with_keys(header: Header, keys: int, uri_rs: int | None = None) -> Header:
    """The header when all keys are written, and their number is known, and that of URI-Rs if no key was in two maps;
    one that counts nothing stays as it is."""
    counts = header.meta.get("counts")
    if not isinstance(counts, dict):
        return header
    known = {"uri_rs": uri_rs} if uri_rs is not None and "uri_rs" not in counts else {}
    meta = {**header.meta, "counts": {**counts, **known, "keys": keys}}
    if known and uri_rs and "captures" in counts:
        meta["gamma"] = round(counts["captures"] / uri_rs, 4)
    return replace(header, meta=meta)


def uri_rs_of_all(parts: Sequence[Part]) -> int | None:
    """The sum of the URI-Rs of maps by one key column; None if one does not say them."""
    if any(len(part.header.keys) > 1 for part in parts):
        return None  # a key may be in two maps, in other columns
    return _counts([part.header.meta for part in parts], True).get("uri_rs")
