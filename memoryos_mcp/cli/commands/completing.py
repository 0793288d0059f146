"""The command ``memoryos-mcp completion``: print the script that enables completion in a shell."""

import os
import sys
from collections.abc import Mapping
from pathlib import PurePath

import click
from click.shell_completion import get_completion_class

from memoryos_mcp.cli.command_line import PROGRAM

SHELLS = ("bash", "zsh", "fish")
# The variable that click derives from the program's name.
VARIABLE = f"_{PROGRAM.upper().replace('-', '_')}_COMPLETE"
WHERE: Mapping[str, str] = {
    "bash": f"{PROGRAM} completion bash > ~/.local/share/bash-completion/completions/{PROGRAM}\n"
    "(bash 4.4 or later with the package bash-completion; without that package, add to ~/.bashrc:\n"
    f'eval "$({PROGRAM} completion bash)")',
    "zsh": f"mkdir -p ~/.zfunc && {PROGRAM} completion zsh > ~/.zfunc/_{PROGRAM}\n"
    "(and, if they are missing, these lines in ~/.zshrc:\n"
    "fpath+=~/.zfunc; autoload -Uz compinit && compinit)",
    "fish": f"{PROGRAM} completion fish > ~/.config/fish/completions/{PROGRAM}.fish",
}


def print_script(commands: click.Command, shell: str | None) -> None:
    """Print the completion script for a shell. On a terminal, also print how to install the script.

    ``shell`` is one of `SHELLS`. None means the shell in the environment variable ``SHELL``.
    """
    chosen = shell or PurePath(os.environ.get("SHELL", "")).name
    completes = get_completion_class(chosen) if chosen in SHELLS else None
    if completes is None:
        msg = f"The environment variable SHELL is not set to a supported shell. Pass one of {', '.join(SHELLS)}."
        raise click.UsageError(msg)
    click.echo(completes(commands, {}, PROGRAM, VARIABLE).source(), nl=False)
    if sys.stdout is not None and sys.stdout.isatty():
        click.echo(f"\nTo install the script for new shells:\n{WHERE[chosen]}", err=True)
