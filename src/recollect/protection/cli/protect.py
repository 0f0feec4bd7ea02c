"""`recollect protect plan|keygen|apply|verify|remove`: a server's files, carried by its pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click
from click.core import ParameterSource

from recollect.cli.console import emit_json, json_option, progress_bar, talk
from recollect.cli.types import DURATION, SIZE, Joined, archives_option, contact_option
from recollect.errors import UsageError
from recollect.formats.outputs import refuse_inputs
from recollect.model import Progress, ProgressCallback
from recollect.protection.cli.reclaim import reclaim
from recollect.quantities import counted, parse_share

if TYPE_CHECKING:
    from recollect.protection.age import Lock
    from recollect.protection.pack import Packing
    from recollect.protection.sealing import Options
    from recollect.recovery.coverage import SiteCoverage

EPILOG = """\b
Examples:
  recollect protect plan site/ --files app/ --files dump.sql       cost and probability of restoring
  recollect protect keygen -o site.key                             once; keep a copy of both files elsewhere
  recollect protect apply site/ --files app/ --key site.key        put the blocks into the pages
  recollect protect verify site/
  recollect protect reclaim http://site.example/ -o app/                   after a loss

\b
Archives keep pages, but not the programs and data that made them. These commands put the files, coded, into
the pages. A sufficient part of the pages restores all files. See docs/protect.md.
"""
PLAN_EPILOG = """\b
Examples:
  recollect protect plan site/ --files app/ --files dump.sql
  recollect protect plan site/ --files code=app/ --files data=dump.sql --growth 16KB
  recollect protect plan site/ --files app/ --coverage http://site.example/ --plot odds.svg
"""
KEYGEN_EPILOG = """\b
Examples:
  recollect protect keygen -o site.key        writes site.key (secret) and site.pub (for --trust)
"""
APPLY_EPILOG = """\b
Examples:
  recollect protect apply site/ --files app/ --files dump.sql --key site.key
  recollect protect apply site/ --files code=app/ --files data=dump.sql --key site.key -o public/
  recollect protect apply site/ --files app/ --key site.key --recipient age1... --need 30%
  recollect protect apply paths.txt --files app/ --key site.key -o site.blocks      for the middleware

\b
A folder with a slash at its end (app/) gives its contents, without (app) the folder itself. Files in different
classes (code=, data=) are coded separately, so that a change of one leaves the blocks of the other unchanged.
Run it again after every change: unchanged files keep their blocks.
Exit code: 0 done, 1 failed, 2 wrong usage, 3 some pages cannot carry blocks.
"""
VERIFY_EPILOG = """\b
Examples:
  recollect protect verify site/
  recollect protect verify site/ --trust site.pub --json
  recollect protect verify http://site.example/                      did a CDN or minifier remove blocks?
  recollect protect verify site.blocks
  recollect protect verify paths.txt --base-url http://site.example/

\b
Exit code: 0 everything can be restored, 3 something is missing, outdated or refused, 1 no blocks, 2 wrong usage.
"""
REMOVE_EPILOG = """\b
Examples:
  recollect protect remove site/        the pages as they were, byte for byte
"""

_SITE = click.Path(exists=True, file_okay=False, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(epilog=EPILOG)
def protect() -> None:
    """Put a server's files into its pages as coded blocks, before the site is lost."""


def _packing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    decorators = [
        click.option(
            "--files",
            "sources",
            multiple=True,
            required=True,
            metavar="[CLASS=]PATH",
            help="A file or folder to protect; repeatable. CLASS names what changes together (code, data).",
        ),
        click.option(
            "--growth", type=SIZE, metavar="SIZE", help="Largest growth of a page; vault pages are added if needed."
        ),
        click.option(
            "--recipient",
            "recipients",
            multiple=True,
            metavar="AGE1…",
            envvar="RECOLLECT_PROTECT_RECIPIENT",
            show_envvar=True,
            help="Encrypt for this age recipient; repeatable.",
        ),
        click.option(
            "--passphrase-file",
            type=_FILE,
            envvar="RECOLLECT_PROTECT_PASSPHRASE_FILE",
            show_envvar=True,
            help="Encrypt with the passphrase in this file.",
        ),
        click.option(
            "--compression",
            type=click.Choice(["xz", "zstd"]),
            default="xz",
            show_default=True,
            help="xz is smaller, zstd quicker to unpack.",
        ),
        click.option(
            "--level", type=click.IntRange(0, 22), metavar="N", help="Compression level.  [default: 6, zstd 19]"
        ),
        click.option(
            "--code",
            type=click.Choice(["raptorq", "gf256"]),
            help="Erasure code.  [default: raptorq if it is installed]",
        ),
        click.option(
            "--every",
            type=DURATION,
            default="30d",
            show_default=True,
            metavar="PERIOD",
            help="A version lives at least this long, so that archives capture enough; changes are carried apart.",
        ),
        click.option("--exclude", multiple=True, metavar="PATTERN", help="Pages without blocks ('drafts/*')."),
        click.option(
            "--exclude-files",
            multiple=True,
            metavar="PATTERN",
            help="Files that are not packed, as in .gitignore ('*.log'); repeatable. See also .recollectignore.",
        ),
        click.option(
            "--include-secrets",
            is_flag=True,
            help="Publish private keys, credentials and version control although nothing is encrypted.",
        ),
    ]
    for decorator in reversed(decorators):
        command = decorator(command)
    return command


@protect.command(epilog=PLAN_EPILOG)
@click.argument("site", type=click.Path(exists=True, path_type=Path))
@_packing_options
@click.option("--coverage", metavar="URL", help="Ask archives how many pages of this site they captured.")
@archives_option
@contact_option
@click.option("--use", cls=Joined, metavar="IDS", help="Only these archives (ia,arquivo), or all but some (!ia).")
@click.option(
    "--plot", type=click.Path(dir_okay=False, path_type=Path), help="Plot the probability into this SVG file."
)
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
@json_option
def plan(site: Path, coverage: str | None, plot: Path | None, quiet: bool, as_json: bool, **given: Any) -> int:
    """Show the cost of protection and the probability of restoring the files of SITE, a folder or a list of paths;
    writes nothing."""
    from recollect.protection import bundle, keys, odds
    from recollect.protection.cli import tables as protecttalk
    from recollect.protection.sealing import room_beside, spread
    from recollect.protection.site import fit_pages, page_weights, sizes_now

    refuse_inputs(plot, [site, *_paths(given["sources"])])
    options = _options(keys.new_key(), given, need=None)
    packings = _gathered(given, site)
    pages = fit_pages(site, given["exclude"])[0] if site.is_dir() else bundle.read_paths(site)
    found = None
    with progress_bar(quiet=quiet or as_json) as progress:
        sizes = sizes_now(packings, options, progress)
        if coverage is not None:
            from recollect.recovery.coverage import site_coverage

            def on_page(archive: str, captures: int) -> None:
                progress(Progress(f"asking {archive}", captures, None, "captures"))

            references = [quote(name) for name in pages] if site.is_dir() else pages
            found = site_coverage(_archives(given), coverage, references, datetime.now(UTC), on_page)
    share = spread(sizes, len(pages), options.need, given["growth"], room_beside(options))
    seen = odds.Coverage(found.pages, found.captured) if found is not None else None
    need = share.need
    if seen is not None and not share.vault:
        safe = odds.need_for_coverage(len(pages), seen)
        need = safe if given["growth"] is None else max(safe, share.need)
    table = odds.choices(sizes, share.pages, seen, [need] if need else [])
    secret = [] if not options.lock.is_open else protecttalk.find_secrets(packings)
    if plot is not None:
        protecttalk.write_plot(plot, share.pages, need or share.need, seen)
    every = given["every"]
    if found is not None and _is_default("every"):  # as long as archives need, by what they captured lately
        every = 86400 * odds.lifetime_for(share.pages, need or share.need, *_capture_share(found))
    forecast = odds.forecasts(share.pages, need or share.need, *_capture_share(found), every / 86400)
    weights = page_weights(site, pages, odds.growth(sizes, need or share.need)) if site.is_dir() else None
    result = protecttalk.Plan(
        packings, sizes, len(pages), share.vault, need, seen, found, table, secret, forecast, every, weights
    )
    if as_json:
        emit_json(protecttalk.plan_json(result))
    else:
        protecttalk.show_plan(result)
    return 0


@protect.command(epilog=KEYGEN_EPILOG)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), required=True, help="The secret file.")
@json_option
def keygen(output: Path, as_json: bool) -> int:
    """Make a signing key: a secret file, and a public one beside it."""
    from recollect.protection import keys

    key = keys.new_key()
    public = keys.write_pair(key, output)
    if as_json:
        emit_json({"secret": str(output), "public": str(public), "fingerprint": keys.fingerprint(key.public)})
        return 0
    talk(f"secret key: {output} (readable by you only)")
    talk(f"public key: {public}, fingerprint {keys.fingerprint(key.public)}")
    talk("keep copies of both away from this server: only the public key distinguishes your blocks from forged ones")
    return 0


@protect.command(epilog=APPLY_EPILOG)
@click.argument("site", type=click.Path(exists=True, path_type=Path))
@_packing_options
@click.option("--key", "key_file", type=_FILE, required=True, help="The secret key that signs (protect keygen).")
@click.option(
    "--need",
    metavar="N|N%",
    help="How many pages, or what share, are enough to restore all files.  [default: 95% sure if half are captured]",
)
@click.option(
    "--rotate",
    type=DURATION,
    metavar="PERIOD",
    help="Use new block numbers each period (90d), so that later captures add blocks.",
)
@click.option(
    "--carrier",
    type=click.Choice(["script", "comment"]),
    default="script",
    show_default=True,
    help="Element that carries blocks; minifiers drop comments.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write a copy here instead.  [default: in place]")
@click.option("--yes", "-y", is_flag=True, help="Publish programs unencrypted without a question.")
@click.option("--quiet", "-q", is_flag=True, help="Only errors and warnings.")
@json_option
def apply(site: Path, key_file: Path, output: Path | None, quiet: bool, as_json: bool, **given: Any) -> int:
    """Put the files, coded, into the pages of SITE: a folder, or a list of paths of a dynamic site."""
    from recollect.protection import bundle, keys
    from recollect.protection.cli import tables as protecttalk
    from recollect.protection.site import apply as apply_blocks

    key = keys.read_secret(key_file)
    options = _options(key, given, need=_need(given["need"]) if given["need"] else None)
    packings = _gathered(given, site, output, key_file)
    if options.lock.is_open:
        secrets = protecttalk.find_secrets(packings)
        protecttalk.refuse_secrets(secrets, allowed=given["include_secrets"])
        protecttalk.warn_of_secrets(secrets)
    if not quiet:
        protecttalk.show_packings(packings, encrypted=not options.lock.is_open)
    if options.lock.is_open and not given["yes"]:
        protecttalk.confirm_publication(packings, output or site)
    with progress_bar(quiet=quiet or as_json) as progress:
        if site.is_dir():
            done = apply_blocks(site, packings, options, out=output, progress=progress)
        elif output is None:
            raise UsageError("missing -o FILE", hint=f"recollect protect apply {site} … -o site.blocks")
        else:
            refuse_inputs(output, [site, key_file, *filter(Path.is_file, _paths(given["sources"]))])
            done = bundle.write(output, bundle.read_paths(site), packings, options, progress=progress)
    if as_json:
        emit_json(protecttalk.applied_json(done))
    elif not quiet:
        protecttalk.show_applied(done, output or site)
    return 3 if done.unfit else 0


@protect.command(epilog=VERIFY_EPILOG)
@click.argument("site", metavar="SITE|URL")
@click.option("--base-url", metavar="URL", help="Where the paths of a list are served: SITE is a list of paths.")
@click.option("--pages", default=30, show_default=True, type=click.IntRange(min=1), help="Live pages to fetch at most.")
@click.option("--allow-private", is_flag=True, help="The live site may be on this machine or in a private network.")
@contact_option
@click.option("--trust", metavar="PUB", multiple=True, help="Only blocks signed by this key (site.pub).")
@json_option
def verify(site: str, trust: tuple[str, ...], as_json: bool, **given: Any) -> int:
    """Read the pages of SITE (a folder, a file of blocks, a list of paths, or a live site) and restore everything in
    memory, as reclaim would."""
    from recollect.protection import bundle, keys
    from recollect.protection.cli import tables as protecttalk
    from recollect.protection.site import verify as verify_folder
    from recollect.protection.site import verify_pages

    trusted = [keys.read_public(one) for one in trust]
    failed: list[tuple[str, str]] = []
    path = Path(site)
    is_url = re.match(r"https?://", site, re.IGNORECASE) is not None
    is_live = is_url or bool(given["base_url"])
    if is_url:
        pages, failed = _live(site, [], given)
        found = verify_pages(pages, trusted)
    elif path.is_dir():
        found = verify_folder(path, trusted)
    elif not path.is_file():
        raise UsageError("no such site", where=site, hint="a folder, a file of blocks, a list of paths, or a URL")
    elif bundle.is_bundle(path):
        found = verify_pages(bundle.texts(path), trusted)
    elif not given["base_url"]:
        raise UsageError("where are these paths?", where=site, hint="--base-url http://site.example/, or site.blocks")
    else:
        pages, failed = _live(given["base_url"], bundle.read_paths(path), given)
        found = verify_pages(pages, trusted)
    if as_json:
        emit_json({**protecttalk.checked_json(found), "failed": [{"page": u, "reason": why} for u, why in failed]})
    else:
        protecttalk.show_checked(found)
        protecttalk.show_live(found, failed, is_live=is_live)
    if not found.standings:
        return 1
    removed = is_live and found.bare
    return 0 if found.is_sound and not failed and not removed else 3


def _live(start: str, paths: list[str], given: dict[str, Any]) -> tuple[list[tuple[str, bytes]], list[tuple[str, str]]]:
    """The pages of a live site, and those that did not come, with the reason."""
    import asyncio

    from recollect.protection.live import live_pages

    async def fetch(progress: ProgressCallback) -> None:
        async for page in live_pages(start, paths, most=given["pages"], allow_private=given["allow_private"]):
            if page.failure:
                failed.append((page.url, page.failure))
            else:
                pages.append((page.url, page.content))
            progress(Progress("fetching", len(pages) + len(failed), None, "pages"))

    pages: list[tuple[str, bytes]] = []
    failed: list[tuple[str, str]] = []
    with progress_bar() as progress:
        asyncio.run(fetch(progress))
    return pages, failed


@protect.command(epilog=REMOVE_EPILOG)
@click.argument("site", type=_SITE)
@json_option
def remove(site: Path, as_json: bool) -> int:
    """Take all blocks out of the pages of SITE, and delete its vault pages."""
    from recollect.protection.site import remove as remove_blocks

    changed, vault = remove_blocks(site)
    if as_json:
        emit_json({"pages": changed, "vault_pages": vault})
    else:
        talk(f"{counted(changed, 'page')} are as they were; {vault:,} vault pages deleted")
    return 0


# From flags to values ------------------------------------------------------------------------------------------------


def _paths(sources: tuple[str, ...]) -> list[Path]:
    """The paths of `--files`, without their classes."""
    return [Path(text) for source in sources for text in {source, source.split("=", 1)[-1]}]


def _gathered(
    given: dict[str, Any], site: Path, output: Path | None = None, key_file: Path | None = None
) -> list[Packing]:
    from recollect.protection.pack import gather
    from recollect.protection.selection import Selection

    never = [(site, "the site itself"), (output, "the output"), (key_file, "the signing key")]
    encrypted = bool(given["recipients"] or given["passphrase_file"])
    selection = Selection(
        exclude=tuple(given["exclude_files"]),
        leave_out=tuple((path, why) for path, why in never if path is not None),
        version_control=encrypted or given["include_secrets"],
    )
    packings = gather(given["sources"], selection)
    for packing in packings:
        for name, why in packing.skipped:
            talk(f"not packed: {name}: {why}")
    return packings


def _options(key: Any, given: dict[str, Any], need: int | float | None) -> Options:
    from recollect.protection.code import Code, best_code
    from recollect.protection.markup import Style
    from recollect.protection.pack import Compression
    from recollect.protection.sealing import Options

    compression = Compression(given["compression"])
    if compression is Compression.XZ and (given["level"] or 0) > 9:
        raise UsageError("no such level of xz", where=str(given["level"]), hint="0 to 9")
    return Options(
        key=key,
        now=datetime.now(UTC),
        lock=_lock(given),
        need=need,
        growth=given["growth"],
        code=Code(given["code"]) if given["code"] else best_code(),
        compression=compression,
        level=given["level"],
        style=Style(given.get("carrier", "script")),
        rotate=given.get("rotate"),
        every=given.get("every"),
        exclude=tuple(given["exclude"]),
    )


def _lock(given: dict[str, Any]) -> Lock:
    from recollect.protection.age import Lock

    if given["recipients"] and given["passphrase_file"]:
        raise UsageError("either recipients or a passphrase", hint="age does not mix the two")
    passphrase = read_passphrase(given["passphrase_file"]) if given["passphrase_file"] else None
    return Lock(tuple(given["recipients"]), passphrase)


def read_passphrase(path: Path) -> str:
    """The first line of a file."""
    try:
        text = path.read_text(encoding="utf-8").split("\n", 1)[0].rstrip("\r")
    except UnicodeDecodeError as error:
        raise UsageError("no passphrase", where=str(path), why="its text is not UTF-8") from error
    if not text:
        raise UsageError("no passphrase", where=str(path), why="its first line is empty")
    return text


def _is_default(name: str) -> bool:
    """Whether an option was not given."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.DEFAULT


def _capture_share(found: SiteCoverage | None) -> tuple[float, float]:
    """Which share of the pages is captured in how many days: measured, or assumed."""
    from recollect.protection import odds

    if found is None or not found.pages:
        return odds.ASSUMED_SHARE, odds.DAYS["monthly"]
    return found.fresh / found.pages, odds.MEASURED_DAYS


def _need(text: str) -> int | float:
    if re.fullmatch(r"[1-9]\d*", text):
        return int(text)
    share = parse_share(text)
    if share > 0.9:
        raise UsageError("too large a share", where=text, why="some pages are never captured", hint="90% at most")
    return share


def _archives(given: dict[str, Any]) -> list[Any]:
    from recollect.archives.registry import choose, load_archives

    return list(choose(load_archives(given["registry"]), given["use"] or ""))


protect.add_command(reclaim)
