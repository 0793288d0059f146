"""The command ``memoryos-mcp``: settings at the door, logs to stderr, exit codes.

Exit codes: 0 done, 1 failed, 2 a command line or setting that cannot be used.
"""

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import click

from memoryos_mcp import __version__
from memoryos_mcp.config import Settings
from memoryos_mcp.config.sources import check_data_folder, load_settings
from memoryos_mcp.errors import ArgumentError, ConfigError, MemoryOSError
from memoryos_mcp.logs import log_to_stderr
from memoryos_mcp.token_commands import token
from memoryos_mcp.traces import open_tracing

EXIT_FAILED, EXIT_USAGE = 1, 2
# A key on a command line stands in every list of processes.
NOT_AS_FLAGS = frozenset({"openai_api_key", "embedding_api_key"})
# A thread that computes must hand the interpreter over within this time, or replies would wait for it.
SWITCH_INTERVAL_S = 0.0001


def settings_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command ``--config`` and a flag for every setting but the secret ones."""
    for name, field in reversed(Settings.model_fields.items()):
        if name not in NOT_AS_FLAGS:
            flag = f"--{name.replace('_', '-')}"
            command = click.option(flag, name, metavar="VALUE", help=field.description)(command)
    return click.option(
        "--config", "config_file", type=click.Path(path_type=Path), metavar="FILE", help="A config.json."
    )(command)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="memoryos-mcp")
def cli() -> None:
    """Give AI assistants a long-term memory of their user, over MCP."""


@cli.command()
@settings_options
def serve(config_file: Path | None, **flags: str | None) -> None:
    """Serve the memory to MCP clients: over stdin and stdout, or with --transport over HTTP.

    Settings come from the config file, then MEMORYOS_* environment variables, then flags; later ones win.
    """
    # Until the server runs there is nothing to close.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(0))
    settings = _settings(config_file, flags)
    log_to_stderr(settings.log_level, settings.log_format)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    # NumPy reads it when it is imported. Its products here are small: several threads spend longer on meeting, and they
    # keep the cores from other queries for milliseconds after each.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    tracing = open_tracing(os.environ)
    try:
        if settings.transport == "stdio":
            from memoryos_mcp.stdio import serve_stdio

            anyio.run(serve_stdio, settings, tracing)
        else:
            from memoryos_mcp.http.serving import serve_http

            anyio.run(serve_http, settings, tracing.tracer if tracing is not None else None)
    finally:
        if tracing is not None:
            tracing.close()


@cli.command()
def demo() -> None:
    """Hold a short conversation with a real server, restart it, and show what was remembered."""
    from memoryos_mcp.demo import run_demo

    anyio.run(run_demo)


@cli.command("llm-log")
@click.option("--last", type=click.IntRange(min=1), default=20, show_default=True, help="How many calls to list.")
@click.option("--show", "number", type=click.IntRange(min=1), metavar="NUMBER", help="Print this call in full.")
@click.option("--json", "as_json", is_flag=True, help="Print the lines of the log as they are.")
@settings_options
def llm_log(config_file: Path | None, last: int, number: int | None, as_json: bool, **flags: str | None) -> None:
    """Show what was sent to the LLM for the configured user, and what came back."""
    settings = _settings(config_file, flags)
    log_to_stderr(settings.log_level)
    from memoryos_mcp.llm_log import show_llm_log

    show_llm_log(settings, last=last, number=number, as_json=as_json)


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@settings_options
def doctor(config_file: Path | None, as_json: bool, **flags: str | None) -> None:
    """Check the settings, the data folder, the embedding model and, by one tiny call, the LLM; say what to change."""
    log_to_stderr("WARNING")  # what goes on is told by the checks
    from memoryos_mcp.doctor import run_doctor

    if not anyio.run(partial(run_doctor, partial(load_settings, config_file, flags), as_json=as_json)):
        sys.exit(EXIT_FAILED)


@cli.command()
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Only say how much that is: no call, no change.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@settings_options
def reconsolidate(config_file: Path | None, is_dry_run: bool, as_json: bool, **flags: str | None) -> None:
    """Have the LLM do again what was organised or learned without it for the configured user."""
    settings = _settings(config_file, flags)
    # Beside the progress on stderr only what goes wrong, unless more is asked for.
    log_to_stderr(settings.log_level if "log_level" in settings.model_fields_set else "WARNING")
    from memoryos_mcp import reconsolidation

    command = reconsolidation.forecast if is_dry_run else reconsolidation.reconsolidate
    anyio.run(partial(command, settings, as_json=as_json))


@cli.command()
@click.option("--status", "is_status", is_flag=True, help="Only say how far it is: loads no model, changes nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@settings_options
def reembed(config_file: Path | None, is_status: bool, as_json: bool, **flags: str | None) -> None:
    """Give the configured user's pages vectors of the configured embedding model now, or say how far that is."""
    settings = _settings(config_file, flags)
    log_to_stderr(settings.log_level if "log_level" in settings.model_fields_set else "WARNING")
    from memoryos_mcp import reembedding

    anyio.run(partial(reembedding.show_status if is_status else reembedding.reembed, settings, as_json=as_json))


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@settings_options
def warmup(config_file: Path | None, as_json: bool, **flags: str | None) -> None:
    """Fetch the configured embedding model if need be and load it, so that the server need not."""
    settings = _settings(config_file, flags)
    log_to_stderr(settings.log_level if "log_level" in settings.model_fields_set else "WARNING")
    from memoryos_mcp import reembedding

    anyio.run(partial(reembedding.warm_up, settings, as_json=as_json))


@cli.command("export")
@click.argument("target", metavar="[FILE]", default="-")
@settings_options
def export_(config_file: Path | None, target: str, **flags: str | None) -> None:
    """Write the configured user's whole memory to FILE (packed if it ends in .gz), or to stdout."""
    settings = _settings(config_file, flags)
    log_to_stderr(settings.log_level if "log_level" in settings.model_fields_set else "WARNING")
    from memoryos_mcp import exchanging

    anyio.run(exchanging.export_memory, settings, target)


@cli.command("import")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--format", "name", metavar="NAME", help="What the file is, if it is not recognised: chatgpt, mem0, ...")
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Only say what there is and what is new: no change.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@settings_options
def import_(
    config_file: Path | None, path: Path, name: str | None, is_dry_run: bool, as_json: bool, **flags: str | None
) -> None:
    """Take FILE, an export or another system's memory, into the configured user's; what is there already is left."""
    settings = _settings(config_file, flags)
    log_to_stderr(settings.log_level if "log_level" in settings.model_fields_set else "WARNING")
    from memoryos_mcp import exchanging

    run = partial(exchanging.import_memory, name=name, is_dry_run=is_dry_run, as_json=as_json)
    anyio.run(run, settings, path)


@cli.command()
@click.argument("target", metavar="FILE_OR_FOLDER", type=click.Path(path_type=Path))
@click.option("--all-users", "is_of_all", is_flag=True, help="Copy every user's memory into the folder.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@settings_options
def backup(config_file: Path | None, target: Path, is_of_all: bool, as_json: bool, **flags: str | None) -> None:
    """Copy the configured user's memory to a new file, also while servers run, and check the copy."""
    settings = _settings(config_file, flags)
    log_to_stderr(settings.log_level if "log_level" in settings.model_fields_set else "WARNING")
    from memoryos_mcp import backups

    backups.back_up(settings, target, is_of_all=is_of_all, as_json=as_json)


@cli.command()
@click.argument("copy", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--yes", "is_confirmed", is_flag=True, help="Do it; without this the command only says what it would do.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@settings_options
def restore(config_file: Path | None, copy: Path, is_confirmed: bool, as_json: bool, **flags: str | None) -> None:
    """Put a backup in the place of the configured user's memory, which is kept beside it, while no server runs."""
    settings = _settings(config_file, flags)
    log_to_stderr(settings.log_level if "log_level" in settings.model_fields_set else "WARNING")
    from memoryos_mcp import backups

    backups.restore(settings, copy, is_confirmed=is_confirmed, as_json=as_json)


@cli.command("forget")
@click.option("--id", "ids", multiple=True, metavar="ID", help="A page, s1, c1, k1 or trait:NAME; may be repeated.")
@click.option("--query", default="", metavar="TEXT", help="Pages that are about this.")
@click.option("--max-results", type=click.IntRange(1, 100), default=10, show_default=True, help="Of --query, at most.")
@click.option("--after", metavar="TIME", help="Pages said then or later, ISO 8601.")
@click.option("--before", metavar="TIME", help="Pages said before this, ISO 8601.")
@click.option("--everything", is_flag=True, help="All there is.")
@click.option("--receipts", "only_receipts", is_flag=True, help="Only show the receipts of what was forgotten.")
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; without --yes it is the dry run.")
@settings_options
def forget_command(config_file: Path | None, only_receipts: bool, is_sure: bool, as_json: bool, **given: Any) -> None:
    """Forget pages, facts or traits of the configured user for good, once they are shown and agreed to."""
    selected = {name: given.pop(name) for name in ("ids", "query", "max_results", "after", "before", "everything")}
    settings = _settings(config_file, given)
    log_to_stderr(settings.log_level if "log_level" in settings.model_fields_set else "WARNING")
    from memoryos_mcp import forget_command as command
    from memoryos_mcp.forgetting import Selection

    if only_receipts:
        anyio.run(partial(command.show_receipts, settings, as_json=as_json))
    else:
        anyio.run(partial(command.forget, settings, Selection(**selected), is_sure=is_sure, as_json=as_json))


cli.add_command(token)


def main() -> None:
    """Run the command line."""
    try:
        cli(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            _fail("interrupted", EXIT_FAILED)
        sys.exit(EXIT_FAILED)  # the command has said why
    except (ConfigError, ArgumentError) as error:
        _fail(str(error), EXIT_USAGE)
    except MemoryOSError as error:
        _fail(str(error), EXIT_FAILED)


def _settings(config_file: Path | None, flags: dict[str, Any]) -> Settings:
    given = {name: value for name, value in flags.items() if value is not None}
    settings = load_settings(config_file, given)
    check_data_folder(settings)
    return settings


def _fail(message: str, code: int) -> None:
    click.echo(f"memoryos-mcp: {message}", err=True)
    sys.exit(code)
