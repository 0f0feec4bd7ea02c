"""The page of the demo: everything it made, linked from one place, with the numbers that matter."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from demo_world import World


@dataclass
class Numbers:
    """What the demo measured."""

    captures: dict[str, int] = field(default_factory=dict)
    keys: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Archive -> keys of the full and of the small map."""
    bytes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Archive -> bytes of the index, the full and the small map."""
    lookups: int = 0
    requests: tuple[int, int] = (0, 0)
    found: tuple[int, int] = (0, 0)
    missed: int = 0
    measured: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def saved(self) -> float:
        return 1 - self.requests[1] / max(self.requests[0], 1)


STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --soft: #5b6875; --line: #d9dfe5; --card: #fff; --ground: #f5f7f9;
  --accent: #0b6e99; --bar: #0b6e99; --pale: #c7d3dc }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ee; --soft: #9aa7b3; --line: #303b46; --card: #1b242d;
  --ground: #12191f; --accent: #66c2e8; --bar: #3f9fc8; --pale: #3a4753 } }
* { box-sizing: border-box } body { margin: 0; font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--ground) }
main { max-width: 66rem; margin: 0 auto; padding: 2.5rem 1.2rem } h1 { margin: 0; font-size: 2.2rem; letter-spacing: -.02em }
h2 { margin: 0 0 .3rem; font-size: 1.25rem } p { margin: .4rem 0 } .lead { color: var(--soft); font-size: 1.1rem; max-width: 46rem }
section { margin: 1.6rem 0; padding: 1.4rem 1.6rem; background: var(--card); border: 1px solid var(--line); border-radius: 12px }
a { color: var(--accent) } table { border-collapse: collapse; width: 100%; margin: .8rem 0; font-variant-numeric: tabular-nums }
section, .pair > div { min-width: 0; overflow-x: auto } th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--line); text-align: right } th { color: var(--soft); font-weight: 600 }
th:first-child, td:first-child { text-align: left } .links { display: flex; flex-wrap: wrap; gap: .5rem; margin: .8rem 0 0; padding: 0 }
.links a { padding: .35rem .8rem; border: 1px solid var(--line); border-radius: 99px; text-decoration: none }
.links a:hover, .links a:focus-visible { border-color: var(--accent) } .big { font-size: 2.6rem; font-weight: 700; line-height: 1.1 }
.pair { display: grid; grid-template-columns: 1fr auto; gap: 1.5rem; align-items: center }
.bar { display: flex; gap: .6rem; align-items: center; margin: .4rem 0; font-size: .9rem } .bar span { flex: 0 0 6.5rem }
.bar i { height: 1.9rem; border-radius: 4px; background: var(--bar) } .bar.all i { background: var(--pale) }
pre { overflow: auto; max-height: 28rem; padding: 1rem; background: var(--ground); border-radius: 8px; font-size: .8rem }
iframe { margin-top: 1rem; width: 100%; height: 26rem; border: 1px solid var(--line); border-radius: 8px; background: #fff }
@media (max-width: 40rem) { .pair { grid-template-columns: 1fr } }
"""


def write_page(folder: Path, world: World, numbers: Numbers) -> Path:
    """Write index.html into the demo's folder."""
    parts = [_maps(world, numbers), _requests(numbers), _recovery(folder, world, numbers), _transcript(folder)]
    path = folder / "index.html"
    path.write_text(
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Recollect: the demo</title><style>{STYLE}</style></head><body><main><h1>Recollect</h1>"
        '<p class="lead">Know which web archive holds what, ask only those that can answer, and get lost websites back. '
        f"This page was made by <code>make demo</code> in {numbers.seconds:.0f} seconds, from three real archives on this "
        f"machine.</p>{''.join(parts)}</main></body></html>\n",
        encoding="utf-8",
    )
    return path


def _links(*links: tuple[str, str]) -> str:
    return '<p class="links">' + "".join(f'<a href="{escape(to)}">{escape(text)}</a>' for to, text in links) + "</p>"


def _maps(world: World, numbers: Numbers) -> str:
    rows = []
    for holder in world.archives:
        full, small = numbers.keys[holder.id]
        index, _, size = numbers.bytes[holder.id]
        rows.append(
            f"<tr><td>{escape(holder.name)}</td><td>{numbers.captures[holder.id]:,}</td><td>{full:,}</td>"
            f'<td><a href="full/{holder.id}.ukvs">full</a></td><td>{small:,}</td>'
            f'<td><a href="small/{holder.id}.ukvs">small</a></td><td>{index / 1000:,.0f} kB</td><td>{size / 1000:,.1f} kB</td></tr>'
        )
    reports = [(f"report-{holder.id}.html", f"Report: {holder.name}") for holder in world.archives]
    published = [(f"public/{holder.id}/mementomap/index.json", f"Published: {holder.id}") for holder in world.archives]
    return (
        "<section><h2>1 · What each archive holds</h2><p>Each index became a map, was proven against the index, made small, and "
        "published. A small map still finds everything that is held.</p><table><tr><th>archive</th><th>captures</th><th>keys</th>"
        "<th></th><th>keys, small</th><th></th><th>index</th><th>small map</th></tr>"
        + "".join(rows)
        + "</table>"
        + _links(*reports, ("tradeoff.html", "Cost against accuracy"), *published)
        + "</section>"
    )


def _requests(numbers: Numbers) -> str:
    most = max(*numbers.requests, 1)
    bars = "".join(
        f'<div class="bar {kind}"><span>{label}</span><i style="width:{55 * count / most:.1f}%"></i>{count} requests</div>'
        for label, kind, count in zip(("without maps", "with maps"), ("all", ""), numbers.requests, strict=True)
    )
    return (
        '<section class="pair"><div><h2>2 · Ask only those that can answer</h2>'
        f"<p>{numbers.lookups} lookups through the aggregator, first to every archive, then by the maps. Both found the same "
        f"{numbers.found[0]:,} mementos; {numbers.missed} lookups had another answer.</p>"
        f"{bars}"
        + _links(
            ("timeline.html", "Timeline of the lost site"),
            ("without.jsonl", "Log without maps"),
            ("with.jsonl", "Log with maps"),
        )
        + f'</div><div><div class="big">{numbers.saved:.0%}</div>of the requests saved</div></section>'
    )


def _recovery(folder: Path, world: World, numbers: Numbers) -> str:
    found = numbers.measured
    start = world.lost.start
    host = start.split("/")[2]
    diagram = (folder / "diagram.svg").read_text(encoding="utf-8")
    success = "".join(f"<td>{found['success'][level]:.3f}</td>" for level in ("s1", "s2", "s3", "s4", "s5"))
    return (
        '<section><div class="pair"><div><h2>3 · A lost website, back</h2>'
        f"<p><b>{escape(start)}</b> was lost. Of its {found['lost']} resources {found['identical']} came back byte for byte, "
        f"{len(found['changed'])} changed, {len(found['missing'])} missing, {len(found['added'])} added, with "
        f"{found['requests']} requests to three archives.</p><table><tr><th>0 is best</th><th>s1</th><th>s2</th><th>s3</th><th>s4</th>"
        f"<th>s5</th></tr><tr><td>success</td>{success}</tr></table>"
        + _links(
            (f"site/{host}/index.html", "The site"),
            ("site/report.html", "Recovery report"),
            ("site/recovered.wacz", "WACZ"),
            ("diagram.svg", "Diagram"),
        )
        + f'</div><div>{diagram}</div></div><iframe title="The recovered site" src="site/{escape(host)}/index.html"'
        "></iframe></section>"
    )


def _transcript(folder: Path) -> str:
    text = (folder / "transcript.txt").read_text(encoding="utf-8")
    return (
        "<section><h2>Every command</h2><p>What was typed and what came out, from the folder <code>demo</code>.</p>"
        f"<details><summary>Transcript</summary><pre>{escape(text)}</pre></details></section>"
    )
