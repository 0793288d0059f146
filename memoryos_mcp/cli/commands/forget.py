"""The command ``memoryos-mcp forget``: shows a dry run, asks, forgets, and reports whether files are scrubbed."""

import json
import signal
import sys
from dataclasses import asdict

import click
from rich.text import Text

from memoryos_mcp.cli.commands.common import is_there
from memoryos_mcp.cli.commands.only_looking import opened_to_look
from memoryos_mcp.cli.terminal import make_console, one_line, prepare_stdout
from memoryos_mcp.config import Settings
from memoryos_mcp.consolidation.forgetting import DryRun, Selection
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.model.forgotten import ForgetCounts, ForgetReceipt

_COPIES = "copies that a restore kept beside the memory"


async def forget(settings: Settings, selection: Selection, *, is_sure: bool, as_json: bool) -> None:
    """Show the selected part of the configured user's memory, ask unless ``is_sure``, and forget it.

    The JSON output is the receipt, or the dry run without ``is_sure``.

    Raises:
        ArgumentError: The selection is not valid.
        click.Abort: The memory does not exist, or the user did not confirm.
        StorageError: The memory cannot be read or written.
    """
    prepare_stdout()
    if not await is_there(settings):
        raise click.Abort
    async with MemoryService(settings) as service, service.user(settings.user_id) as engine:
        dry_run = await engine.plan_forgetting(selection)
        if as_json and not is_sure:
            click.echo(_dry_run_json(dry_run))
            return
        if not as_json:
            _show_dry_run(dry_run)
        if not dry_run:
            return
        if not is_sure and not _agrees():
            raise click.Abort
        receipt = await engine.forget(dry_run.handle)
        copies = await engine.kept_copies()
        if as_json:
            click.echo(json.dumps({**_receipt(receipt), "kept_copies": copies}))
            return
        click.echo(_told(receipt))
        if copies:
            click.echo(f"What it said may still be in {_COPIES}: {', '.join(copies)}")
            if not is_sure and click.confirm("Remove these too?", err=True):
                await engine.remove_kept_copies()


async def show_receipts(settings: Settings, *, as_json: bool) -> None:
    """Print the receipts of everything that was forgotten, the oldest first.

    Raises:
        StorageError: The memory cannot be read.
    """
    prepare_stdout()
    receipts: list[ForgetReceipt] = []
    if await is_there(settings):
        async with opened_to_look(settings) as (_, engine):
            receipts = await _receipts(engine)
    if as_json:
        click.echo(json.dumps([_receipt(receipt) for receipt in receipts]))
        return
    if not receipts:
        click.echo("Nothing was ever forgotten.")
    for receipt in receipts:
        click.echo(f"{receipt.at.astimezone(settings.zone):%Y-%m-%d %H:%M}  {_told(receipt)}")


async def _receipts(engine: MemoryEngine) -> list[ForgetReceipt]:
    return await engine.forget_receipts()


def _agrees() -> bool:
    if not sys.stdin.isatty():
        click.echo("memoryos-mcp: nothing was forgotten; give --yes where nobody can be asked", err=True)
        return False
    # The event loop would only record Ctrl-C, and the prompt would stay.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return click.confirm("Forget this for good?", err=True)
    finally:
        signal.signal(signal.SIGINT, handler)


def _show_dry_run(dry_run: DryRun) -> None:
    console = make_console()
    for sample in dry_run.samples:
        line = Text(f"{sample.at:%Y-%m-%d %H:%M}  {one_line(sample.id)}  {one_line(sample.text)}")
        if console.is_terminal:  # which would wrap the rest
            line.truncate(console.width, overflow="ellipsis")
        click.echo(line.plain)
    if not dry_run:
        click.echo("There is nothing to forget.")
        return
    if dry_run.is_all and dry_run.kept_copies:
        click.echo(f"So would {_COPIES}: {', '.join(dry_run.kept_copies)}")
    counts = dry_run.counts
    is_part = counts.pages + counts.facts + counts.traits > len(dry_run.samples)
    click.echo(f"These{' and more' if is_part else ''} would go: {_amount(counts)}.")


def _told(receipt: ForgetReceipt) -> str:
    state = "scrubbed from the files" if receipt.is_scrubbed else "not scrubbed from the files yet; that is tried again"
    return f"Forgotten: {_amount(receipt.counts)}; {state}. Receipt {receipt.receipt}"


def _amount(counts: ForgetCounts) -> str:
    return (
        f"pages {counts.pages:,}, facts {counts.facts:,}, traits {counts.traits:,}; "
        f"affected topics {counts.segments:,}, other traits {counts.changed_traits:,}"
    )


def _dry_run_json(dry_run: DryRun) -> str:
    samples = [{**asdict(sample), "at": sample.at.isoformat()} for sample in dry_run.samples]
    return json.dumps({**asdict(dry_run.counts), "samples": samples, "kept_copies": list(dry_run.kept_copies)})


def _receipt(receipt: ForgetReceipt) -> dict[str, object]:
    return {
        "receipt": receipt.receipt,
        "at": receipt.at.isoformat(),
        **asdict(receipt.counts),
        "scrubbed": receipt.is_scrubbed,
    }
