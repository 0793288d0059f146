"""The program ``memoryos-mcp``: all commands with their arguments.

A command imports its implementation when it runs, so that help and shell completion are fast.
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
from pydantic import BaseModel

from memoryos_mcp import __version__
from memoryos_mcp.cli.command_line import (
    EXIT_FAILED,
    PROGRAM,
    Choice,
    Group,
    chosen_settings,
    config_option,
    json_option,
    run,
    setting_option,
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

# Seconds after which a thread that is computing must release the interpreter, so that replies are not delayed. With a
# tenth of it, waiting threads wake so often that a busy server answers a fifth fewer calls.
SWITCH_INTERVAL_S = 0.001


def _tune_for_serving() -> None:
    """Configure the interpreter for a process that answers calls. NumPy and MCP must not have been imported yet."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    # NumPy reads this variable at import. Matrix products are small here, so several threads would only be slower, and
    # would take the cores from other queries for milliseconds.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # MCP's library defines hundreds of models, of which a server uses few. Each is built when it is first used.
    BaseModel.model_config["defer_build"] = True


@click.group(PROGRAM, cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name=PROGRAM)
def cli() -> None:
    """Give AI assistants a long-term memory of their users, over MCP."""


# Get started ----------------------------------------------------------------------------------------------------------


@cli.command(
    shown_settings=("transport", "host", "port"),
    examples=[
        ("memoryos-mcp serve", "over stdin and stdout, for a client that starts the server"),
        ("memoryos-mcp serve --transport http --port 8000", "over HTTP, for clients that connect to the server"),
    ],
)
@settings_options
def serve(config_file: Path | None, **flags: str | None) -> None:
    """Serve the memory to MCP clients.

    The server uses stdin and stdout, or HTTP with --transport http. Settings come from the config file, from MEMORYOS_*
    environment variables and from options. Environment variables override the file, and options override both.
    """
    # Until the server runs, there is nothing to close.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(0))
    settings = chosen_settings(config_file, flags, is_server=True)
    _tune_for_serving()
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


@cli.command(
    examples=[
        ("memoryos-mcp ui", "open the memory in the browser"),
        ("memoryos-mcp ui --read-only --no-browser", "only print a link, and change nothing"),
    ]
)
@click.option(
    "--port", "own_port", default=0, type=click.IntRange(0, 65_535), help="Port on this machine. Default: a free port."
)
@click.option("--no-browser", "is_quiet", is_flag=True, help="Print the link without opening the browser.")
@click.option("--read-only", "only_reads", is_flag=True, help="Do not change the memory.")
@takes_settings(without="port")
async def ui(settings: Settings, own_port: int, is_quiet: bool, only_reads: bool) -> None:
    """Look at the memory in the browser, and correct it.

    The command prints a link, and opens it in the browser. The link works only once, and only on this machine. MCP
    servers may use the memory at the same time. Press Ctrl-C to end the command.
    """
    from memoryos_mcp.cli.commands.installing import client_states
    from memoryos_mcp.server.http.page_server import serve_pages

    def opened(link: str) -> None:
        click.echo(link)
        if not is_quiet:
            click.launch(link)

    await serve_pages(settings, own_port, only_reads=only_reads, opened=opened, clients=client_states)


@cli.command()
def demo() -> None:
    """Run a half-minute demo with a real server."""
    from memoryos_mcp.cli.commands.demo import run_demo

    anyio.run(run_demo)


@cli.command(examples=[("memoryos-mcp doctor --config config.json", "check the settings of a file")])
@json_option
@settings_options
def doctor(config_file: Path | None, as_json: bool, **flags: str | None) -> None:
    """Check whether everything works, and show what to change.

    The command checks Python, the settings, the memory, MCP clients and the embedding model. It also sends one small
    request to the LLM.
    """
    log_to_stderr("WARNING")  # only the results of the checks are printed
    from memoryos_mcp.cli.commands.doctor import run_doctor

    if not anyio.run(partial(run_doctor, partial(load_settings, config_file, flags), as_json=as_json)):
        sys.exit(EXIT_FAILED)


@cli.command(
    "hook",
    context_settings={"ignore_unknown_options": True},
    examples=[("memoryos-mcp hook prompt --client claude-code", "what Claude Code runs; install --hooks writes it")],
)
@click.argument("event", type=Choice(["session-start", "prompt", "stop"]))
@click.option("--client", default="claude-code", show_default=True, help="Client that runs the hook.")
@click.option(
    "--wait", type=float, default=1.0, show_default=True, help="Maximum time to wait for memories, in seconds."
)
@config_option
@setting_option("user_id")
@setting_option("data_storage_path")
@setting_option("database_url")
def hook_command(**_: Any) -> None:
    """Store or recall memories at an event of an MCP client.

    The command reads the event as JSON from stdin. If an error occurs, the command prints nothing and ends with exit
    code 0, so that the client continues.
    """


@cli.command()
@click.option(
    "--idle",
    "idle_s",
    type=float,
    default=1800.0,
    show_default=True,
    help="Idle time after which the daemon ends, in seconds.",
)
@config_option
@setting_option("user_id")
@setting_option("data_storage_path")
@setting_option("database_url")
def daemon(config_file: Path | None, idle_s: float, **flags: str | None) -> None:
    """Store and recall memories for hooks, in the background.

    Hooks start the daemon when they need it. The daemon ends when no hook has used it for a while.
    """
    from memoryos_mcp.server.hooks.daemon import run_daemon

    settings = chosen_settings(config_file, flags)
    _tune_for_serving()
    given = {"config": config_file, **flags}
    line = [text for name, value in given.items() if value for text in (f"--{name.replace('_', '-')}", str(value))]
    anyio.run(run_daemon, settings, line, idle_s)


# Use a memory ---------------------------------------------------------------------------------------------------------


@cli.command(
    examples=[
        ("memoryos-mcp stats", "the memory of the configured user"),
        ("memoryos-mcp stats --user-id ada --all", "the memory of another user, with all topics, traits and facts"),
    ]
)
@click.option("--all", "is_whole", is_flag=True, help="Show all topics, traits and facts, not only the first few.")
@json_option
@takes_settings(makes_folder=False)
async def stats(settings: Settings, **given: Any) -> None:
    """Show what a memory contains, and which work is pending.

    The memory is not changed. Running servers need not be stopped.
    """
    from memoryos_mcp.cli.commands.stats import show_stats

    await show_stats(settings, **given)


@cli.command(
    examples=[
        ('memoryos-mcp search "what did I say about the trip to Lisbon"', "find pages and facts, best first"),
        ('memoryos-mcp search "my sister" --explain', "also show why each page was found"),
    ]
)
@click.argument("query")
@click.option(
    "--max-results",
    type=click.IntRange(1, 100),
    help="Maximum number of pages, in addition to those in short-term memory. Default: the setting "
    "retrieval_queue_capacity.",
)
@click.option("--project", metavar="NAME", help="Project whose pages come first in the results.")
@click.option("--full", "is_full", is_flag=True, help="Show the full text of each page, not only one line.")
@click.option(
    "--explain", "is_explained", is_flag=True, help="Show how the query was interpreted, and the score of each page."
)
@json_option
@takes_settings(makes_folder=False)
async def search(settings: Settings, **given: Any) -> None:
    """Search a memory as an assistant would.

    The command prints the result of the tool retrieve_memory for QUERY. The memory is not changed, and the search does
    not increase the heat of topics. Running servers need not be stopped.
    """
    from memoryos_mcp.cli.commands.search import search_memory

    await search_memory(settings, **given)


@cli.command(
    "add",
    examples=[
        ('memoryos-mcp add "I am allergic to walnuts."', "store what the user said"),
        ('memoryos-mcp add "Which tea?" --response "Oolong." --time 2026-01-08T10:00', "also the answer, at this time"),
    ],
)
@click.argument("user_input", metavar="TEXT")
@click.option("--response", "agent_response", default="", metavar="TEXT", help="What the assistant answered.")
@click.option("--time", "timestamp", default="", metavar="TIME", help="Time of the page (ISO 8601). Default: now.")
@json_option
@takes_settings()
async def add_command(settings: Settings, as_json: bool, **given: Any) -> None:
    """Store one exchange of a dialogue as a page.

    TEXT is what the user said. If TEXT is a hyphen, it is read from stdin. A running server organises the page.
    Without a server, run the command organise.
    """
    from memoryos_mcp.cli.commands.adding import add

    await add(settings, given, as_json=as_json)


@cli.command(
    "list",
    examples=[
        ("memoryos-mcp list", "the newest pages"),
        ("memoryos-mcp list facts --state superseded", "facts that are no longer valid"),
    ],
)
@click.argument("tier", metavar="[KIND]", type=Choice(["pages", "topics", "facts", "traits"]), default="pages")
@click.option(
    "--topic",
    metavar="ID_OR_WORD",
    help="Only entries of one topic: pass its id, or a part of one of its keywords.",
)
@click.option(
    "--state",
    type=Choice(["current", "superseded", "archived"]),
    help="Only facts or topics in this state. Default: current.",
)
@click.option("--project", metavar="NAME", help="Only pages of this project, and entries that were made from them.")
@click.option("--after", metavar="TIME", help="Only entries from this time (ISO 8601) or later.")
@click.option("--before", metavar="TIME", help="Only entries before this time (ISO 8601).")
@click.option("--limit", type=click.IntRange(1, 100), default=20, show_default=True, help="Maximum number of entries.")
@click.option("--cursor", metavar="TEXT", help="Continue a list with the cursor at the end of the previous output.")
@json_option
@takes_settings(makes_folder=False)
async def list_command(settings: Settings, as_json: bool, **given: Any) -> None:
    """List pages, topics, facts or traits, newest first.

    KIND is pages, topics, facts or traits; without it, pages are listed. The memory is not changed.
    """
    from memoryos_mcp.cli.commands.listing import show_list

    if given["state"] == "superseded" and given["tier"] != "facts":
        msg = "'--state superseded' applies only to facts. Use: memoryos-mcp list facts --state superseded"
        raise click.UsageError(msg)
    if given["state"] == "archived" and given["tier"] not in {"facts", "topics"}:
        msg = "'--state archived' applies only to facts and topics. Omit --state, or list facts or topics."
        raise click.UsageError(msg)
    await show_list(settings, given, as_json=as_json)


@cli.command(
    examples=[
        ("memoryos-mcp show k12", "a fact, with its evidence and its history"),
        ("memoryos-mcp show s3 c1 'trait:Openness'", "a topic, a chain of pages, a trait"),
    ]
)
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@json_option
@takes_settings(makes_folder=False)
async def show(settings: Settings, **given: Any) -> None:
    """Show pages, topics, facts or traits in full, by their ids.

    To find ids, use the commands stats, list and search, or the MCP tools. Examples of ids: p_... (page), s1 (topic),
    c1 (chain), k1 (fact), trait:NAME (trait). The memory is not changed.
    """
    from memoryos_mcp.cli.commands.show import show_memories

    await show_memories(settings, **given)


# Export, restore, correct and forget ----------------------------------------------------------------------------------


@cli.command(
    "export",
    examples=[
        ("memoryos-mcp export memory.jsonl.gz", "compressed, because the name ends in .gz"),
        ("memoryos-mcp export notes --format markdown", "a folder for reading, which Obsidian opens"),
    ],
)
@click.argument("target", metavar="[FILE]", default="-", type=click.Path(allow_dash=True))
@click.option("--project", metavar="NAME", help="Export only the pages of this project, with their topics and facts.")
@click.option(
    "--format",
    "form",
    type=Choice(["jsonl", "markdown"]),
    default="jsonl",
    show_default=True,
    help="markdown is for reading and cannot be imported again. FILE is a new folder, unless its name ends in .md.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print how many items of each kind were exported, as one JSON object. This option requires FILE.",
)
@takes_settings()
async def export_(settings: Settings, form: str, **given: Any) -> None:
    """Export a whole memory to a file.

    FILE is compressed if its name ends in .gz. Without FILE, the memory is written to stdout.
    """
    from memoryos_mcp.cli.commands.exchanging import export_markdown, export_memory

    await (export_markdown if form == "markdown" else export_memory)(settings, **given)


@cli.command(
    "import",
    examples=[
        ("memoryos-mcp import memory.jsonl --dry-run", "show what would be imported"),
        ("memoryos-mcp import conversations.json --format chatgpt", "choose the format if it is not recognised"),
    ],
)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "name",
    metavar="NAME",
    help="Format of FILE, such as chatgpt or mem0. By default, the format is detected from the content.",
)
@click.option("--project", metavar="NAME", help="Project to set for imported pages without a project.")
@click.option(
    "--all-speakers", "of_all", is_flag=True, help="Do not ask for confirmation if several people speak in FILE."
)
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Only show what would be imported.")
@json_option
@takes_settings()
async def import_(settings: Settings, **given: Any) -> None:
    """Import an export, or the data of another program.

    Items that are already in the memory are skipped.
    """
    from memoryos_mcp.cli.commands.exchanging import import_memory

    await import_memory(settings, **given)


@cli.command(examples=[("memoryos-mcp backup backups --all-users", "one file per user, in the folder backups")])
@click.argument("target", metavar="FILE_OR_FOLDER", type=click.Path(path_type=Path))
@click.option("--all-users", "is_of_all", is_flag=True, help="Back up the memories of all users to a folder.")
@json_option
@takes_settings()
def backup(settings: Settings, **given: Any) -> None:
    """Back up a memory to a new file.

    Running servers need not be stopped.
    """
    from memoryos_mcp.cli.commands import backups

    backups.back_up(settings, **given)


@cli.command(examples=[("memoryos-mcp restore memory.db --yes", "restore; without --yes, only show what would change")])
@click.argument("copy", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--yes", "is_confirmed", is_flag=True, help="Replace the memory. Without this option, only show what would change."
)
@json_option
@takes_settings()
def restore(settings: Settings, **given: Any) -> None:
    """Replace a memory with a backup.

    The command keeps a backup copy of the replaced memory.
    """
    from memoryos_mcp.cli.commands import backups

    backups.restore(settings, **given)


@cli.command(
    "move",
    examples=[
        ("memoryos-mcp move --to postgresql://memory@db.example.com/memory --dry-run", "show what would be moved"),
        ("memoryos-mcp move --to ~/memories --database-url postgresql://memory@db.example.com/memory", "back to files"),
    ],
)
@click.option(
    "--to",
    "target",
    required=True,
    metavar="URL_OR_FOLDER",
    help="Address of a PostgreSQL database, or a folder. It must not contain other memories of the same users.",
)
@click.option(
    "--user-id", "user_ids", multiple=True, metavar="ID", help="Move only this user's memory. May be repeated."
)
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Only show what would be moved.")
@json_option
@takes_settings(makes_folder=False, without="user_id")
async def move_command(settings: Settings, **given: Any) -> None:
    """Copy all memories to PostgreSQL, or back to files.

    Each copy is compared with the original. The originals are not deleted. Stop the servers first. After an
    interruption, run the same command again.
    """
    from memoryos_mcp.cli.commands.moving import move

    await move(settings, **given)


@cli.command(
    "forget",
    examples=[
        (
            'memoryos-mcp forget --query "the trip to Lisbon"',
            "show the pages about it, then ask whether to forget them",
        ),
        ("memoryos-mcp forget --id k12 --yes", "forget one fact without confirmation"),
    ],
)
@click.option(
    "--id",
    "ids",
    multiple=True,
    metavar="ID",
    help="Select a page, topic, chain, fact or trait by its id, such as k1. May be repeated.",
)
@click.option(
    "--query",
    default="",
    metavar="TEXT",
    help="Select pages that contain a word of this text, or have a similar meaning.",
)
@click.option(
    "--max-results",
    type=click.IntRange(1, 100),
    default=10,
    show_default=True,
    help="Maximum number of pages that --query selects.",
)
@click.option("--after", metavar="TIME", help="Select pages from this time (ISO 8601) or later.")
@click.option("--before", metavar="TIME", help="Select pages from before this time (ISO 8601).")
@click.option("--project", metavar="NAME", help="Select pages of this project.")
@click.option("--everything", is_flag=True, help="Select the whole memory.")
@click.option(
    "--receipts", "only_receipts", is_flag=True, help="Only show the receipts for what was forgotten earlier."
)
@click.option("--yes", "is_sure", is_flag=True, help="Forget without confirmation.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the result as one JSON object. Without --yes, nothing is forgotten.",
)
@takes_settings()
async def forget_command(
    settings: Settings, only_receipts: bool, is_sure: bool, as_json: bool, **selected: Any
) -> None:
    """Forget parts of a memory permanently.

    The command shows the parts and asks for confirmation.
    """
    from memoryos_mcp.cli.commands.forget import forget, show_receipts
    from memoryos_mcp.consolidation.forgetting import Selection

    if only_receipts:
        await show_receipts(settings, as_json=as_json)
        return
    _check_one_way(selected)
    await forget(settings, Selection(**selected), is_sure=is_sure, as_json=as_json)


def _check_one_way(selected: Mapping[str, Any]) -> None:
    """Raise `click.UsageError` if no option selects anything, or if the options cannot be combined.

    The library makes the same check, but the library's messages do not contain the names of the options.
    """
    has_pages = any(selected[name] for name in ("query", "after", "before", "project"))
    ways = sum(map(bool, (selected["ids"], has_pages, selected["everything"])))
    if ways == 0:
        msg = "Nothing is selected. Use --id, --query, --after, --before, --project or --everything."
        raise click.UsageError(msg)
    if ways > 1:
        msg = (
            "These options cannot be combined. Use --id, --everything, or some of --query, --after, --before and "
            "--project."
        )
        raise click.UsageError(msg)


@cli.command(
    "correct",
    examples=[
        ('memoryos-mcp correct k12 --text "I live in London."', "replace the text of a fact"),
        ("memoryos-mcp correct k12 --wrong --dry-run", "show what would change"),
        ("memoryos-mcp correct k12 --restore", "undo the last correction"),
    ],
)
@click.argument("id", metavar="ID")
@click.option("--text", metavar="TEXT", help="New text of a fact, as one sentence.")
@click.option("--level", type=Choice(["Low", "Medium", "High"], case_sensitive=False), help="New level of a trait.")
@click.option("--reason", metavar="TEXT", help="New reason for a trait's level, as one sentence.")
@click.option("--wrong", is_flag=True, help="Mark the fact or trait as wrong, without a replacement.")
@click.option("--restore", is_flag=True, help="Undo the last correction of ID.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@json_option
@takes_settings()
async def correct_command(settings: Settings, as_json: bool, **given: Any) -> None:
    """Correct a fact or trait.

    A correction can be undone. ID is the id of a fact, such as k1, or trait:NAME. The command prints the previous and
    the new text.
    """
    from memoryos_mcp.cli.commands.correct import correct

    chosen = {name: value for name, value in given.items() if value is not None}
    await correct(settings, chosen, as_json=as_json)


# Models ---------------------------------------------------------------------------------------------------------------


@cli.command(examples=[("memoryos-mcp organise", "do what waits, for instance after an import")])
@json_option
@takes_settings()
async def organise(settings: Settings, **given: Any) -> None:
    """Embed and organise the waiting pages, and learn from them.

    A running server does this work in the background. The command does the work at once, and then ends.
    """
    from memoryos_mcp.cli.commands import organising

    await organising.organise(settings, **given)


@cli.command()
@json_option
@takes_settings()
async def warmup(settings: Settings, **given: Any) -> None:
    """Download and load the embedding model."""
    from memoryos_mcp.cli.commands.reembedding import warm_up

    await warm_up(settings, **given)


@cli.command(examples=[("memoryos-mcp reembed --status", "only show the progress")])
@click.option(
    "--status", "is_status", is_flag=True, help="Only show the progress. No model is loaded and nothing is changed."
)
@json_option
@takes_settings()
async def reembed(settings: Settings, is_status: bool, **given: Any) -> None:
    """Embed all pages with the configured model.

    A running server does this work in the background. The command does the work at once.
    """
    from memoryos_mcp.cli.commands import reembedding

    await (reembedding.show_status if is_status else reembedding.reembed)(settings, **given)


@cli.command(examples=[("memoryos-mcp reconsolidate --dry-run", "only estimate the work")])
@click.option(
    "--dry-run", "is_dry_run", is_flag=True, help="Only estimate the work. No LLM is called and nothing is changed."
)
@json_option
@takes_settings()
async def reconsolidate(settings: Settings, is_dry_run: bool, **given: Any) -> None:
    """Let the LLM redo the work that was done without it."""
    from memoryos_mcp.cli.commands import reconsolidation

    await (reconsolidation.forecast if is_dry_run else reconsolidation.reconsolidate)(settings, **given)


@cli.command("llm-log", examples=[("memoryos-mcp llm-log --show 3", "show the third call in full")])
@click.option("--last", type=click.IntRange(min=1), default=20, show_default=True, help="Number of calls to list.")
@click.option(
    "--show", "number", type=click.IntRange(min=1), metavar="NUMBER", help="Print the call with this number in full."
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the lines of the log unchanged. Each line is one JSON object."
)
@takes_settings()
def llm_log(settings: Settings, **given: Any) -> None:
    """Show the requests to the LLM and its replies."""
    from memoryos_mcp.cli.commands.llm_log import show_llm_log

    show_llm_log(settings, **given)


# Connect and set up ---------------------------------------------------------------------------------------------------

cli.add_command(install)
cli.add_command(uninstall)
cli.add_command(token)


@cli.command(
    "bundle", examples=[("memoryos-mcp bundle memoryos.mcpb", "Claude Desktop installs the file when you open it")]
)
@click.argument("target", metavar="[FILE_OR_FOLDER]", default=".", type=click.Path(path_type=Path))
@click.option("--force", "is_forced", is_flag=True, help="Replace an existing file.")
@json_option
def bundle_command(target: Path, is_forced: bool, as_json: bool) -> None:
    """Pack the server into a bundle (.mcpb) for desktop clients."""
    from memoryos_mcp.cli.commands.bundle import write_bundle

    write_bundle(target, is_forced=is_forced, as_json=as_json)


@cli.command(
    examples=[
        ("memoryos-mcp completion bash > ~/.local/share/bash-completion/completions/memoryos-mcp", "for bash"),
        ("memoryos-mcp completion zsh > ~/.zfunc/_memoryos-mcp", "for zsh, with ~/.zfunc in fpath"),
        ("memoryos-mcp completion fish > ~/.config/fish/completions/memoryos-mcp.fish", "for fish"),
    ]
)
@click.argument("shell", type=Choice(SHELLS), required=False)
def completion(shell: str | None) -> None:
    """Print the completion script for bash, zsh or fish.

    Without SHELL, the command prints the script for your shell. On a terminal, it also shows where to put the script.
    """
    from memoryos_mcp.cli.commands.completing import print_script

    print_script(cli, shell)


def main() -> None:
    """Run the command line."""
    run(cli)


def serve_by_default() -> None:
    """Run the command line. If no command is passed, run ``serve``."""
    run(cli, sys.argv[1:] or ["serve"])
