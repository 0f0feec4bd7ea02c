"""One voice: help, pages and source use no word that the glossary (docs/concepts.md) lists as "not"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from recollect.cli.main import COMMANDS, cli

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "concepts.md"
PAGES = sorted(
    page for page in (*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md") if page != GLOSSARY
)
PACKAGE = ROOT / "src" / "recollect"
SOURCES = sorted(
    path for suffix in ("py", "pyi", "pyx", "pxd", "html", "js", "css", "toml") for path in PACKAGE.rglob(f"*.{suffix}")
)
# What has yet to be rewritten. This list only becomes shorter.
NOT_YET = frozenset(
    """
    docs/aggregator.md
    docs/compaction.md
    docs/design.md
    docs/evaluate.md
    docs/filters.md
    docs/formats.md
    docs/library.md
    docs/memgator.md
    docs/profile.md
    docs/protect.md
    docs/publish.md
    docs/recover.md
    docs/reference/cli.md
    docs/reference/errors.md
    docs/reference/settings.md
    docs/routing.md
    docs/scale.md
    docs/stats.md
    docs/tutorials/aggregator.md
    docs/tutorials/profile.md
    docs/tutorials/protect.md
    docs/tutorials/recover.md
    docs/ukvs.md
    docs/uris.md
    docs/watch.md
    src/recollect/aggregator/cache.py
    src/recollect/aggregator/explain.py
    src/recollect/aggregator/maps.py
    src/recollect/aggregator/outcomes.py
    src/recollect/aggregator/replay.py
    src/recollect/aggregator/routing.py
    src/recollect/aggregator/service.py
    src/recollect/aggregator/stores.py
    src/recollect/aggregator/world.py
    src/recollect/archives/client.py
    src/recollect/archives/discovery.py
    src/recollect/archives/gate.py
    src/recollect/archives/http1.py
    src/recollect/archives/listing.py
    src/recollect/archives/registry.py
    src/recollect/archives/transport.py
    src/recollect/cli/archives.py
    src/recollect/cli/budget.py
    src/recollect/cli/compact.py
    src/recollect/cli/console.py
    src/recollect/cli/derived.py
    src/recollect/cli/evaluate.py
    src/recollect/cli/forms.py
    src/recollect/cli/lookup.py
    src/recollect/cli/main.py
    src/recollect/cli/maps.py
    src/recollect/cli/memento.py
    src/recollect/cli/profile.py
    src/recollect/cli/protect.py
    src/recollect/cli/publish.py
    src/recollect/cli/recover.py
    src/recollect/cli/serve.py
    src/recollect/cli/stats.py
    src/recollect/cli/tradeoff.py
    src/recollect/config.py
    src/recollect/errors.py
    src/recollect/formats/captures.py
    src/recollect/formats/cdx.py
    src/recollect/formats/containers.py
    src/recollect/formats/detect.py
    src/recollect/formats/forms.py
    src/recollect/formats/frequency.py
    src/recollect/formats/lists.py
    src/recollect/formats/logs.py
    src/recollect/formats/strangers.py
    src/recollect/formats/timemap/found.py
    src/recollect/formats/timemap/links.py
    src/recollect/formats/timemap/model.py
    src/recollect/formats/timemap/read.py
    src/recollect/formats/timemap/structured.py
    src/recollect/formats/ukvs/faults.py
    src/recollect/formats/ukvs/header.py
    src/recollect/formats/ukvs/lenient.py
    src/recollect/formats/ukvs/reader.py
    src/recollect/formats/ukvs/records.py
    src/recollect/formats/warc.py
    src/recollect/formats/zipnum.py
    src/recollect/kernels/branches.pyx
    src/recollect/kernels/records.pyx
    src/recollect/kernels/search.pyx
    src/recollect/kernels/sets.pyx
    src/recollect/kernels/statistics.pyx
    src/recollect/kernels/walk.pxd
    src/recollect/model.py
    src/recollect/profiles/compaction/branches.py
    src/recollect/profiles/compaction/budget.py
    src/recollect/profiles/compaction/budgetlines.py
    src/recollect/profiles/compaction/demand.py
    src/recollect/profiles/compaction/forecast.py
    src/recollect/profiles/compaction/keytable.py
    src/recollect/profiles/compaction/optimum.py
    src/recollect/profiles/compaction/prior.py
    src/recollect/profiles/compaction/tradeoff.py
    src/recollect/profiles/compaction/tradeoffplot.py
    src/recollect/profiles/compaction/voids.py
    src/recollect/profiles/indexes/batch.py
    src/recollect/profiles/indexes/policykeys.py
    src/recollect/profiles/indexes/profile.py
    src/recollect/profiles/indexes/runs.py
    src/recollect/profiles/indexes/scan.py
    src/recollect/profiles/indexes/sinks.py
    src/recollect/profiles/maps/bulk.py
    src/recollect/profiles/maps/lookup.py
    src/recollect/profiles/maps/mapinputs.py
    src/recollect/profiles/maps/maptext.py
    src/recollect/profiles/maps/plainmap.py
    src/recollect/profiles/maps/publish.py
    src/recollect/profiles/maps/sets.py
    src/recollect/profiles/maps/windows.py
    src/recollect/profiles/statistics/charts.py
    src/recollect/profiles/statistics/distribution.py
    src/recollect/profiles/statistics/evaluate.py
    src/recollect/profiles/statistics/overlap.py
    src/recollect/profiles/statistics/policycosts.py
    src/recollect/profiles/statistics/report.py
    src/recollect/profiles/statistics/reportsections.py
    src/recollect/profiles/statistics/stats.py
    src/recollect/profiles/statistics/treestats.py
    src/recollect/profiles/statistics/verify.py
    src/recollect/profiles/upkeep/stock.py
    src/recollect/protection/age.py
    src/recollect/protection/bundle.py
    src/recollect/protection/code.py
    src/recollect/protection/inject.py
    src/recollect/protection/keys.py
    src/recollect/protection/middleware.py
    src/recollect/protection/odds.py
    src/recollect/protection/place.py
    src/recollect/protection/sealing.py
    src/recollect/recovery/acquire.py
    src/recollect/recovery/canonical.py
    src/recollect/recovery/crawl.py
    src/recollect/recovery/decoding.py
    src/recollect/recovery/filenames.py
    src/recollect/recovery/hosting.py
    src/recollect/recovery/journal.py
    src/recollect/recovery/judge.py
    src/recollect/recovery/knowledge.py
    src/recollect/recovery/meter.py
    src/recollect/recovery/options.py
    src/recollect/recovery/ownfiles.py
    src/recollect/recovery/plan.py
    src/recollect/recovery/report.py
    src/recollect/recovery/restore.py
    src/recollect/recovery/rewrite.py
    src/recollect/recovery/scope.py
    src/recollect/recovery/scriptlinks.py
    src/recollect/recovery/store.py
    src/recollect/recovery/survey.py
    src/recollect/sampling/search.py
    src/recollect/service/child.py
    src/recollect/service/letters.py
    src/recollect/service/queue.py
    src/recollect/service/settings.py
    src/recollect/service/worker.py
    src/recollect/spark/exchange.py
    src/recollect/spark/inputs.py
    src/recollect/spark/maps.py
    src/recollect/spark/merge.py
    src/recollect/spark/session.py
    src/recollect/spark/stats.py
    src/recollect/uris/canonical.py
    src/recollect/uris/hosts.py
    src/recollect/uris/keys.py
    src/recollect/uris/policies.py
    src/recollect/watch/evaluate.py
    src/recollect/watch/identity.py
    src/recollect/watch/labelled.py
    src/recollect/watch/lives.py
    src/recollect/watch/run.py
    src/recollect/watch/states.py
    src/recollect/watch/visit.py
    src/recollect/web/app.py
    src/recollect/web/desk/admin.py
    src/recollect/web/desk/context.py
    src/recollect/web/desk/pages.py
    src/recollect/web/desk/server.py
    src/recollect/web/look.py
    src/recollect/web/lookups.py
    src/recollect/web/monitor.py
    src/recollect/web/operator.py
    src/recollect/web/pages.py
    src/recollect/web/people.py
    src/recollect/web/protocol.py
    src/recollect/web/replay.py
    src/recollect/web/replies.py
    src/recollect/web/serve.py
    src/recollect/web/target.py
    src/recollect/web/worker.py
    src/recollect/wsgi.py
    """.split()
)
# After "is no": comparisons, and words that are no nouns.
_NO_NOUN = r"(?!longer|more|less|fewer|later|earlier|other|one|better|worse|larger|smaller|slower|faster|doubt\b)[a-z]"


def forbidden() -> dict[str, re.Pattern[str]]:
    """Every word of a column "not" -> what finds it, over line breaks and comment signs too."""
    patterns = {}
    column = -1
    for line in GLOSSARY.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if "not" in cells:
            column = cells.index("not")
        elif cells and column >= 0:
            for word in re.findall(r"`([^`]+)`", cells[column]):
                patterns[word] = _pattern(word)
        else:
            column = -1 if not cells else column
    return patterns


def _pattern(phrase: str) -> re.Pattern[str]:
    gap = r"\s+(?:#:?\s+)?"
    body = gap.join(_NO_NOUN if word == "<noun>" else re.escape(word) for word in phrase.split())
    before = r"(?<!there )(?<![\w'])" if "<noun>" in phrase else r"(?<![\w'-])"
    return re.compile(before + body + (r"" if phrase.endswith((">", "?")) else r"(?![\w-])"), re.IGNORECASE)


PATTERNS = forbidden()


def faults(text: str) -> Iterator[str]:
    text = re.sub(r"^\| before \|.*?\n\n", "", text, flags=re.DOTALL | re.MULTILINE)  # examples of how not to write
    for phrase, pattern in PATTERNS.items():
        for found in pattern.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield f"line {line}: {phrase!r} in {text[max(0, found.start() - 30) : found.end() + 30]!r}"


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_glossary_lists_words_and_the_search_finds_them() -> None:
    assert {"nobody", "so many", "is no <noun>", "which site?"} <= PATTERNS.keys()
    assert list(faults("That is no\n    # map, and so\nmany know it.")) != []
    assert len(list(faults("Nobody asks; where to?"))) == 2
    assert list(faults("There is no map, there are no keys, it is no longer than that.")) == []


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_uses_the_words_of_the_glossary(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    wrong = list(faults(COMMANDS[name][2]))
    for one in (command, *(command.commands.values() if isinstance(command, click.Group) else ())):
        helps = [parameter.help for parameter in one.params if isinstance(parameter, click.Option)]
        wrong += [fault for text in (one.help, one.short_help, one.epilog, *helps) for fault in faults(text or "")]
    assert wrong == [] or "docs/reference/cli.md" in NOT_YET


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_pages_use_the_words_of_the_glossary(page: Path) -> None:
    assert _name(page) in NOT_YET or list(faults(page.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("room", sorted({path.relative_to(PACKAGE).parts[0] for path in SOURCES}))
def test_source_uses_the_words_of_the_glossary(room: str) -> None:
    """Messages, pages, docstrings and comments."""
    files = [path for path in SOURCES if path.relative_to(PACKAGE).parts[0] == room and _name(path) not in NOT_YET]
    assert [f"{_name(path)}, {fault}" for path in files for fault in faults(path.read_text(encoding="utf-8"))] == []


def test_every_page_links_the_glossary() -> None:
    assert [
        _name(page)
        for page in PAGES
        if not re.search(r"\]\((?:docs/|\.\./)?concepts\.md[)#]", page.read_text(encoding="utf-8"))
    ] == []
