"""The command ``memoryos-mcp``: every command, its arguments, and the function that does its work.

A command imports what it needs when it runs, so that help and shell completion are fast.
"""

import os
import signal
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import click

from memoryos_mcp import __version__
from memoryos_mcp.cli.command_line import (
    EXIT_FAILED,
    PROGRAM,
    Choice,
    Group,
    chosen_settings,
    json_option,
    run,
    settings_options,
    takes_settings,
)
from memoryos_mcp.cli.commands.clients import install, uninstall
from memoryos_mcp.cli.commands.completing import SHELLS
from memoryos_mcp.cli.commands.tokens import token
from memoryos_mcp.config import Settings
from memoryos_mcp.config.logs import log_to_stderr
from memoryos_mcp.config.sources import load_settings
from memoryos_mcp.config.telemetry import open_tracing

# A computing thread must release the interpreter within this time, or replies would wait for it.
SWITCH_INTERVAL_S = 0.0001


@click.group(PROGRAM, cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name=PROGRAM)
def cli() -> None:
    """Give AI assistants a long-term memory of their user, over MCP."""


# Begin ----------------------------------------------------------------------------------------------------------------


@cli.command(
    shown_settings=("transport", "host", "port"),
    examples=[
        ("memoryos-mcp serve", "over stdin and stdout, as clients start it"),
        ("memoryos-mcp serve --transport http --port 8000", "over HTTP, for clients that connect to it"),
    ],
)
@settings_options
def serve(config_file: Path | None, **flags: str | None) -> None:
    """Serve the memory to MCP clients.

    It talks over stdin and stdout, or with --transport over HTTP. Settings come from the config file, then MEMORYOS_*
    environment variables, then flags; later ones win.
    """
    # There is nothing to close before the server runs.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(0))
    settings = chosen_settings(config_file, flags, is_server=True)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    # NumPy reads this at import. Matrix products are small here: several threads would spend longer on synchronising,
    # and each time keep cores from other queries for milliseconds.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    tracing = open_tracing(os.environ)
    try:
        if settings.transport == "stdio":
            from memoryos_mcp.server.stdio import serve_stdio

            anyio.run(serve_stdio, settings, tracing)
        else:
            from memoryos_mcp.server.http.serving import serve_http

            anyio.run(serve_http, settings, tracing.tracer if tracing is not None else None)
    finally:
        if tracing is not None:
            tracing.close()


@cli.command()
def demo() -> None:
    """Watch a real server remember, in half a minute."""
    from memoryos_mcp.cli.commands.demo import run_demo

    anyio.run(run_demo)


@cli.command(examples=[("memoryos-mcp doctor --config config.json", "try the settings of a file")])
@json_option
@settings_options
def doctor(config_file: Path | None, as_json: bool, **flags: str | None) -> None:
    """Check whether everything works; say what to change.

    Settings, memory, MCP clients, the embedding model and, by one tiny call, the LLM are checked.
    """
    log_to_stderr("WARNING")  # the checks report progress
    from memoryos_mcp.cli.commands.doctor import run_doctor

    if not anyio.run(partial(run_doctor, partial(load_settings, config_file, flags), as_json=as_json)):
        sys.exit(EXIT_FAILED)


# Look into a memory ---------------------------------------------------------------------------------------------------


@cli.command(
    examples=[
        ("memoryos-mcp stats", "the memory of the configured user"),
        ("memoryos-mcp stats --user-id ada --all", "of another one, with all facts, traits and topics"),
    ],
)
@click.option("--all", "is_whole", is_flag=True, help="Show all topics, traits and facts, not only the first ones.")
@json_option
@takes_settings(makes_folder=False)
async def stats(settings: Settings, **given: Any) -> None:
    """See how much is remembered, what is hot, what is pending.

    Nothing in the memory changes, and servers may run meanwhile.
    """
    from memoryos_mcp.cli.commands.stats import show_stats

    await show_stats(settings, **given)


@cli.command(
    examples=[
        ('memoryos-mcp search "what did I say about the trip to Lisbon"', "pages and facts, best first"),
        ('memoryos-mcp search "my sister" --explain', "and why each page was found"),
    ],
)
@click.argument("query")
@click.option("--max-results", type=click.IntRange(1, 100), help="Pages at most. Default: as the settings say.")
@click.option("--full", "is_full", is_flag=True, help="Show each page whole, not one line of it.")
@click.option("--explain", "is_explained", is_flag=True, help="Show why: how the query was read, and what counted.")
@json_option
@takes_settings(makes_folder=False)
async def search(settings: Settings, **given: Any) -> None:
    """Look something up, as an assistant would.

    Prints what the tool retrieve_memory finds for QUERY. No visit is counted, nothing in the memory changes, and
    servers may run meanwhile.
    """
    from memoryos_mcp.cli.commands.search import search_memory

    await search_memory(settings, **given)


@cli.command(
    examples=[
        ("memoryos-mcp show k12", "a fact, with the pages it rests on and what was before it"),
        ("memoryos-mcp show s3 c1 'trait:Openness'", "a topic, a chain of pages, a trait"),
    ],
)
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@json_option
@takes_settings(makes_folder=False)
async def show(settings: Settings, **given: Any) -> None:
    """See one memory whole, by its id.

    stats, search and the tools show ids: p_... is a page, s1 a topic, c1 a chain, k1 a fact, trait:NAME a trait.
    Nothing in the memory changes.
    """
    from memoryos_mcp.cli.commands.show import show_memories

    await show_memories(settings, **given)


# Take it along, put it back, correct, forget --------------------------------------------------------------------------


@cli.command("export", examples=[("memoryos-mcp export memory.jsonl.gz", "packed, since its name ends in .gz")])
@click.argument("target", metavar="[FILE]", default="-", type=click.Path(allow_dash=True))
@click.option("--json", "as_json", is_flag=True, help="Print what was written as one JSON object; with FILE only.")
@takes_settings()
async def export_(settings: Settings, **given: Any) -> None:
    """Write a whole memory to a file.

    FILE is packed if its name ends in .gz; without FILE the memory goes to stdout.
    """
    from memoryos_mcp.cli.commands.exchanging import export_memory

    await export_memory(settings, **given)


@cli.command(
    "import",
    examples=[
        ("memoryos-mcp import memory.jsonl --dry-run", "say first what is new"),
        ("memoryos-mcp import conversations.json --format chatgpt", "name the form if it is not recognised"),
    ],
)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--format", "name", metavar="NAME", help="What the file is, if it is not recognised: chatgpt, mem0, ...")
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Only say what there is and what is new: no change.")
@json_option
@takes_settings()
async def import_(settings: Settings, **given: Any) -> None:
    """Take in an export, or another system's memory.

    What the memory contains already is skipped.
    """
    from memoryos_mcp.cli.commands.exchanging import import_memory

    await import_memory(settings, **given)


@cli.command(examples=[("memoryos-mcp backup backups --all-users", "every user's, each a file in that folder")])
@click.argument("target", metavar="FILE_OR_FOLDER", type=click.Path(path_type=Path))
@click.option("--all-users", "is_of_all", is_flag=True, help="Copy every user's memory into the folder.")
@json_option
@takes_settings()
def backup(settings: Settings, **given: Any) -> None:
    """Copy a memory to a new file, also while servers run."""
    from memoryos_mcp.cli.commands import backups

    backups.back_up(settings, **given)


@cli.command(examples=[("memoryos-mcp restore memory.db --yes", "do it; without --yes it only says what it would do")])
@click.argument("copy", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--yes", "is_confirmed", is_flag=True, help="Do it; without this the command only says what it would do.")
@json_option
@takes_settings()
def restore(settings: Settings, **given: Any) -> None:
    """Put a backup in the place of a memory, which is kept too."""
    from memoryos_mcp.cli.commands import backups

    backups.restore(settings, **given)


@cli.command(
    "forget",
    examples=[
        ('memoryos-mcp forget --query "the trip to Lisbon"', "show what is about it, and ask"),
        ("memoryos-mcp forget --id k12 --yes", "one fact, without being asked"),
    ],
)
@click.option("--id", "ids", multiple=True, metavar="ID", help="A page, s1, c1, k1 or trait:NAME; may be repeated.")
@click.option("--query", default="", metavar="TEXT", help="Pages that are about this.")
@click.option("--max-results", type=click.IntRange(1, 100), default=10, show_default=True, help="Of --query, at most.")
@click.option("--after", metavar="TIME", help="Pages said then or later, ISO 8601.")
@click.option("--before", metavar="TIME", help="Pages said before this, ISO 8601.")
@click.option("--everything", is_flag=True, help="All there is.")
@click.option("--receipts", "only_receipts", is_flag=True, help="Only show the receipts of what was forgotten.")
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; without --yes it is the dry run.")
@takes_settings()
async def forget_command(
    settings: Settings, only_receipts: bool, is_sure: bool, as_json: bool, **selected: Any
) -> None:
    """Forget pages, facts or traits for good; asks first."""
    from memoryos_mcp.cli.commands.forget import forget, show_receipts
    from memoryos_mcp.consolidation.forgetting import Selection

    if only_receipts:
        await show_receipts(settings, as_json=as_json)
        return
    _check_one_way(selected)
    await forget(settings, Selection(**selected), is_sure=is_sure, as_json=as_json)


def _check_one_way(selected: Mapping[str, Any]) -> None:
    """Refuse what the library would refuse, with messages about the options."""
    has_pages = any(selected[name] for name in ("query", "after", "before"))
    ways = sum(map(bool, (selected["ids"], has_pages, selected["everything"])))
    if ways == 0:
        msg = "Say what to forget: --id, --query, --after and --before, or --everything."
        raise click.UsageError(msg)
    if ways > 1:
        msg = "Give --id alone, --everything alone, or --query with --after and --before."
        raise click.UsageError(msg)


@cli.command(
    "correct",
    examples=[
        ('memoryos-mcp correct k12 --text "I live in London."', "what is right instead of a fact"),
        ("memoryos-mcp correct k12 --wrong --dry-run", "show what would change"),
        ("memoryos-mcp correct k12 --restore", "take the last correction back"),
    ],
)
@click.argument("id", metavar="ID")
@click.option("--text", metavar="TEXT", help="Of a fact: what is right, one sentence.")
@click.option("--level", type=Choice(["Low", "Medium", "High"], case_sensitive=False), help="Of a trait.")
@click.option("--reason", metavar="TEXT", help="Of a trait: why, one sentence.")
@click.option("--wrong", is_flag=True, help="It is wrong and has no replacement.")
@click.option("--restore", is_flag=True, help="Take the last correction of ID back.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@json_option
@takes_settings()
async def correct_command(settings: Settings, as_json: bool, **given: Any) -> None:
    """Correct a fact or trait; the previous one can be restored.

    ID is k1 or trait:NAME. Shows the previous and the new text.
    """
    from memoryos_mcp.cli.commands.correct import correct

    chosen = {name: value for name, value in given.items() if value is not None}
    await correct(settings, chosen, as_json=as_json)


# Models ---------------------------------------------------------------------------------------------------------------


@cli.command()
@json_option
@takes_settings()
async def warmup(settings: Settings, **given: Any) -> None:
    """Fetch and load the embedding model before a server does."""
    from memoryos_mcp.cli.commands.reembedding import warm_up

    await warm_up(settings, **given)


@cli.command(examples=[("memoryos-mcp reembed --status", "only say how far it is")])
@click.option("--status", "is_status", is_flag=True, help="Only say how far it is: loads no model, changes nothing.")
@json_option
@takes_settings()
async def reembed(settings: Settings, is_status: bool, **given: Any) -> None:
    """Give all pages vectors of the embedding model.

    A running server does that in the background; this does it now.
    """
    from memoryos_mcp.cli.commands import reembedding

    await (reembedding.show_status if is_status else reembedding.reembed)(settings, **given)


@cli.command(examples=[("memoryos-mcp reconsolidate --dry-run", "only say how much that is")])
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Only say how much that is: no call, no change.")
@json_option
@takes_settings()
async def reconsolidate(settings: Settings, is_dry_run: bool, **given: Any) -> None:
    """Have the LLM redo what was done without it."""
    from memoryos_mcp.cli.commands import reconsolidation

    await (reconsolidation.forecast if is_dry_run else reconsolidation.reconsolidate)(settings, **given)


@cli.command("llm-log", examples=[("memoryos-mcp llm-log --show 3", "the third call in full")])
@click.option("--last", type=click.IntRange(min=1), default=20, show_default=True, help="How many calls to list.")
@click.option("--show", "number", type=click.IntRange(min=1), metavar="NUMBER", help="Print this call in full.")
@click.option("--json", "as_json", is_flag=True, help="Print the lines of the log as they are.")
@takes_settings()
def llm_log(settings: Settings, **given: Any) -> None:
    """See what was sent to the LLM, and what came back."""
    from memoryos_mcp.cli.commands.llm_log import show_llm_log

    show_llm_log(settings, **given)


# Connect and set up ---------------------------------------------------------------------------------------------------

cli.add_command(install)
cli.add_command(uninstall)
cli.add_command(token)


@cli.command(
    "bundle",
    examples=[("memoryos-mcp bundle memoryos.mcpb", "a file that Claude Desktop installs when it is opened")],
)
@click.argument("target", metavar="[FILE_OR_FOLDER]", default=".", type=click.Path(path_type=Path))
@click.option("--force", "is_forced", is_flag=True, help="Replace a file of that name.")
@json_option
def bundle_command(target: Path, is_forced: bool, as_json: bool) -> None:
    """Write the server as a bundle (.mcpb) for desktop clients."""
    from memoryos_mcp.cli.commands.bundle import write_bundle

    write_bundle(target, is_forced=is_forced, as_json=as_json)


@cli.command(
    examples=[
        ("memoryos-mcp completion bash > ~/.local/share/bash-completion/completions/memoryos-mcp", "for bash"),
        ("memoryos-mcp completion zsh > ~/.zfunc/_memoryos-mcp", "for zsh, with ~/.zfunc in fpath"),
        ("memoryos-mcp completion fish > ~/.config/fish/completions/memoryos-mcp.fish", "for fish"),
    ],
)
@click.argument("shell", type=Choice(SHELLS), required=False)
def completion(shell: str | None) -> None:
    """Print what completes commands in bash, zsh or fish.

    Without SHELL, it is the script for your shell. On a terminal it also says where to put it.
    """
    from memoryos_mcp.cli.commands.completing import print_script

    print_script(cli, shell)


def main() -> None:
    """Run the command line."""
    run(cli)


def serve_by_default() -> None:
    """Run the command line; the default command is ``serve``.

    Clients and `uvx` start a distribution by its name alone.
    """
    run(cli, sys.argv[1:] or ["serve"])
