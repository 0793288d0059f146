"""The command ``memoryos-mcp forget``: shows what would go, asks, forgets, and says whether it is scrubbed."""

import json
import sys
from dataclasses import asdict

import click

from memoryos_mcp.commands import is_there
from memoryos_mcp.config import Settings
from memoryos_mcp.engine import MemoryEngine
from memoryos_mcp.forgetting import DryRun, Selection
from memoryos_mcp.service import MemoryService
from memoryos_mcp.storage.forget_plans import ForgetCounts, ForgetReceipt
from memoryos_mcp.terminal import prepare_stdout

# A terminal obeys control characters.
_SHOWN = dict.fromkeys([*range(32), *range(127, 160)], " ")


async def forget(settings: Settings, selection: Selection, *, is_sure: bool, as_json: bool) -> None:
    """Forget what is selected of the configured user's memory, once it was shown and agreed to.

    Args:
        settings: Say whose memory it is.
        selection: What to forget.
        is_sure: Forget without asking.
        as_json: Print one JSON object: the receipt, or without ``is_sure`` the dry run.

    Raises:
        ArgumentError: The selection cannot be used.
        click.Abort: The person does not agree, or cannot be asked.
        StorageError: The memory cannot be read or written.
    """
    prepare_stdout()
    if not await is_there(settings):
        return
    async with MemoryService(settings) as service, service.user(settings.user_id) as engine:
        dry_run = await engine.plan_forgetting(selection)
        if as_json and not is_sure:
            click.echo(_dry_run_json(dry_run))
            return
        if not as_json:
            _show_dry_run(dry_run)
        if not dry_run.counts:
            return
        if not is_sure and not _agrees():
            raise click.Abort
        receipt = await engine.forget(dry_run.handle)
        click.echo(json.dumps(_receipt(receipt)) if as_json else _told(receipt))


async def show_receipts(settings: Settings, *, as_json: bool) -> None:
    """Print the receipts of all that was forgotten, the oldest first.

    Raises:
        StorageError: The memory cannot be read.
    """
    prepare_stdout()
    receipts: list[ForgetReceipt] = []
    if await is_there(settings):
        async with MemoryService(settings) as service, service.user(settings.user_id) as engine:
            receipts = await _receipts(engine)
    if as_json:
        click.echo(json.dumps([_receipt(receipt) for receipt in receipts]))
        return
    for receipt in receipts:
        click.echo(f"{receipt.at.astimezone(settings.zone):%Y-%m-%d %H:%M}  {_told(receipt)}")


async def _receipts(engine: MemoryEngine) -> list[ForgetReceipt]:
    return await engine.forget_receipts()


def _agrees() -> bool:
    if not sys.stdin.isatty():
        click.echo("memoryos-mcp: nothing was forgotten; give --yes where nobody can be asked", err=True)
        return False
    return click.confirm("Forget this for good?", err=True)


def _show_dry_run(dry_run: DryRun) -> None:
    for sample in dry_run.samples:
        click.echo(f"{sample.at:%Y-%m-%d %H:%M}  {sample.id}  {sample.text.translate(_SHOWN)}")
    if not dry_run.counts:
        click.echo("There is nothing to forget.")
        return
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
    return json.dumps({**asdict(dry_run.counts), "samples": samples})


def _receipt(receipt: ForgetReceipt) -> dict[str, object]:
    return {
        "receipt": receipt.receipt,
        "at": receipt.at.isoformat(),
        **asdict(receipt.counts),
        "scrubbed": receipt.is_scrubbed,
    }
