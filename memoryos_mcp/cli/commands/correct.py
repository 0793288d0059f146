"""The command ``memoryos-mcp correct``: corrects or restores a fact or trait, and prints its previous and new text."""

import json
from collections.abc import Mapping

import click

from memoryos_mcp.cli.commands.common import is_there
from memoryos_mcp.cli.terminal import one_line, prepare_stdout
from memoryos_mcp.config import Settings
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.engine.tools.arguments import check
from memoryos_mcp.engine.tools.memory_arguments import CorrectMemoryArguments
from memoryos_mcp.engine.tools.memory_results import CorrectMemoryResult
from memoryos_mcp.engine.tools.memory_tools import correct_memory
from memoryos_mcp.errors import ArgumentError

_DONE = {
    "corrected": "Corrected. To take it back: memoryos-mcp correct {} --restore",
    "restored": "Restored: {} holds again.",
    "dry_run": "This is what would change; nothing was changed.",
}


async def correct(settings: Settings, given: Mapping[str, object], *, as_json: bool) -> None:
    """Correct or restore a fact or trait of the configured user's memory, and print what changed.

    ``given`` contains the arguments of the tool ``correct_memory``; the JSON output is that tool's result.

    Raises:
        ArgumentError: An argument is not valid; nothing was changed.
        click.Abort: The memory does not exist.
        StorageError: The memory cannot be read or written.
    """
    prepare_stdout()
    if not await is_there(settings):
        raise click.Abort
    try:
        arguments = check(CorrectMemoryArguments, dict(given))
        async with MemoryService(settings) as service:
            result = (await correct_memory(service, settings.user_id, arguments)).result
    except ArgumentError as error:
        argument = "ID" if error.argument == "id" else f"--{error.argument}"
        problem = str(error).removeprefix(f"{error.argument}: ").replace("wrong: true", "--wrong")
        raise ArgumentError(argument=argument, problem=problem) from error
    assert isinstance(result, CorrectMemoryResult)  # noqa: S101 - for the type checker: the tool's result
    if as_json:
        click.echo(json.dumps(result.model_dump(mode="json")))
        return
    now = f" ({one_line(result.holds_now)})" if result.holds_now else ""
    click.echo(one_line(result.corrected))
    click.echo(f"  before: {one_line(result.before) if result.before is not None else 'nothing held'}")
    click.echo(f"  after{now}: {one_line(result.after) if result.after is not None else 'nothing holds'}")
    click.echo(_DONE[result.status].format(one_line(result.corrected)))
