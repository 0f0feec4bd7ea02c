"""`recollect surt`: URIs to the keys under which archives' indexes and maps hold them."""

from __future__ import annotations

from collections.abc import Iterator

import click

from recollect.cli.console import emit_json_line, emit_line, json_option, numbered_lines, talk
from recollect.errors import BadURI, UsageError
from recollect.quantities import counted
from recollect.uris import is_surt, parse_policy, policy_key, surt, uri_key

EPILOG = """\b
Examples:
  recollect surt https://www.Example.com/A?b=2         com,example)/a?b=2
  recollect surt --key https://www.Example.com/A?b=2   com,example)/a
  recollect surt --policy HxP1 http://example.com/a/b  com,example)/a
  recollect surt --from urls.txt > surts.txt           one per line; .gz, .bz2, .zst are fine
  tail -f urls.txt | recollect surt --json -           line by line
"""


@click.command("surt", epilog=EPILOG)
@click.argument("uris", nargs=-1, metavar="[URI]...")
@click.option(
    "--from", "sources", multiple=True, metavar="FILE", help="Read URIs from a file, one per line; - is stdin."
)
@click.option("--key", "as_key", is_flag=True, help="Print URI keys: SURTs in normal form without query.")
@click.option("--policy", metavar="NAME", help="Print keys of a policy: HmPn, DDom, DSub, DPth, DQry, DIni or URIR.")
@json_option
def surt_command(
    uris: tuple[str, ...], sources: tuple[str, ...], as_key: bool, policy: str | None, as_json: bool
) -> int:
    """Print the SURT of each URI: the sort-friendly form in the indexes of archives.

    With --key or --policy SURTs are taken as well as URIs. A URI without a key is reported with its reason on stderr,
    and the others are still printed. With --json every URI gives one line, the bad ones with "error".

    Exit code: 0 every URI has a SURT, 3 some URIs have none, 1 no URI has one.
    """
    if not uris and not sources:
        raise UsageError("no URI given", hint="recollect surt URI..., or recollect surt --from FILE (- for stdin)")
    if as_key and policy:
        raise UsageError("--key and --policy exclude each other", hint="--key is --policy HxPx")
    rule = "HxPx" if as_key else parse_policy(policy).name if policy else None
    done = bad = 0
    for place, uri in _inputs(uris, sources):
        try:
            line = _json_of(uri, rule) if as_json else surt(uri) if rule is None else _key(uri, rule)
        except BadURI as error:
            bad += 1
            hint = "it is a SURT already; --key gives its key" if is_surt(uri) else error.hint
            talk(f"recollect: {place}{error}" + (f"\nhint: {hint}" if hint and not place else ""))
            if as_json:
                emit_json_line({"uri": uri, "error": error.why})
            continue
        done += 1
        emit_line(line) if isinstance(line, str) else emit_json_line(line)
    if bad and done + bad > 1:
        talk(f"recollect: {bad:,} of {counted(done + bad, 'URI')} have no {'key' if rule else 'SURT'}")
    return 0 if not bad else 3 if done else 1


def _inputs(uris: tuple[str, ...], sources: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Where each URI stands (for complaints) and the URI."""
    for uri in uris:
        if uri != "-":
            yield "", uri
    for source in (*sources, *(uri for uri in uris if uri == "-")):
        name = "<stdin>" if source == "-" else source
        for number, line in numbered_lines(source):
            yield f"{name}:{number}: ", line


def _surt(text: str) -> str:
    return text if is_surt(text) else surt(text)


def _key(text: str, rule: str) -> str:
    """The key of a URI or a SURT under a policy."""
    made = _surt(text)
    try:
        return policy_key(made.encode("utf-8", "surrogateescape"), rule).decode("ascii")
    except BadURI as error:
        raise BadURI("no key", where=repr(text[:80]), why="it has no host", hint=error.hint) from error


def _json_of(text: str, rule: str | None) -> dict[str, str | None]:
    if rule is not None:
        return {"uri": text, "surt": _surt(text), "policy": rule, "key": _key(text, rule)}
    made = surt(text)
    return {"uri": text, "surt": made, "key": uri_key(made.encode()).decode("ascii") if is_surt(made) else None}
