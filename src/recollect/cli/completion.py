"""`recollect completion`: the script with which a shell completes commands and options."""

from __future__ import annotations

import click

EPILOG = """\b
Examples:
  eval "$(recollect completion bash)"                    now, in this shell
  recollect completion bash >> ~/.bashrc                 in every bash from now on
  recollect completion zsh  >> ~/.zshrc
  recollect completion fish > ~/.config/fish/completions/recollect.fish
"""


@click.command(epilog=EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that completes commands, options and file names in SHELL."""
    from click.shell_completion import get_completion_class

    from recollect.cli.main import cli

    script = get_completion_class(shell)
    assert script is not None  # click knows all three
    click.echo(script(cli, {}, "recollect", "_RECOLLECT_COMPLETE").source())
