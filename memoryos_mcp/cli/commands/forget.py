"""The command ``memoryos-mcp forget``: show the selected memories, ask for confirmation, and forget them."""

import sys
from collections.abc import Iterator
from dataclasses import asdict

import click
from rich.text import Text

from memoryos_mcp.cli.commands.common import has_memory_or_note, open_memory
from memoryos_mcp.cli.terminal import confirmed, make_console, note, one_line, print_report
from memoryos_mcp.config import Settings
from memoryos_mcp.consolidation.forgetting import DryRun, Selection
from memoryos_mcp.model.forgotten import ForgetCounts, ForgetReceipt

_COPIES = "backup copies made by restores"


async def forget(settings: Settings, selection: Selection, *, is_sure: bool, as_json: bool) -> None:
    """Show the selected part of the configured user's memory, ask for confirmation, and forget this part.

    With ``is_sure``, no confirmation is required. With ``as_json`` and without ``is_sure``, nothing is forgotten, and
    the command only prints what would be forgotten.
    """
    async with open_memory(settings) as (_, engine):
        dry_run = await engine.plan_forgetting(selection)
        if not (as_json and is_sure):
            print_report(_dry_run_json(dry_run), _dry_run_lines(dry_run), as_json=as_json)
            if as_json:
                return
        if not dry_run:
            return
        if not is_sure and not _agrees():
            raise click.Abort
        receipt = await engine.forget(dry_run.handle)
        copies = await engine.kept_copies()
        lines = [_summary(receipt)]
        if copies:
            lines.append(f"The forgotten texts may still be in these {_COPIES}: {', '.join(copies)}")
        print_report({**_receipt_json(receipt), "kept_copies": copies}, lines, as_json=as_json)
        if copies and not is_sure and click.confirm("Delete these copies too?", err=True):
            await engine.remove_kept_copies()


async def show_receipts(settings: Settings, *, as_json: bool) -> None:
    """Print one receipt for each time that memories were forgotten, oldest first."""
    receipts: list[ForgetReceipt] = []
    if await has_memory_or_note(settings):
        async with open_memory(settings, only_reads=True) as (_, engine):
            receipts = await engine.forget_receipts()
    lines = [f"{receipt.at.astimezone(settings.zone):%Y-%m-%d %H:%M}  {_summary(receipt)}" for receipt in receipts]
    print_report(list(map(_receipt_json, receipts)), lines or ["Nothing has been forgotten yet."], as_json=as_json)


def _agrees() -> bool:
    if not sys.stdin.isatty():
        note("nothing was forgotten, because stdin is not a terminal; use --yes to forget without confirmation")
        return False
    return confirmed("Forget this permanently?")


def _dry_run_lines(dry_run: DryRun) -> Iterator[str]:
    console = make_console()
    for sample in dry_run.samples:
        line = Text(f"{sample.at:%Y-%m-%d %H:%M}  {one_line(sample.id)}  {one_line(sample.text)}")
        if console.is_terminal:  # a pipe gets whole lines
            line.truncate(console.width, overflow="ellipsis")
        yield line.plain
    if not dry_run:
        yield "There is nothing to forget."
        return
    if dry_run.is_all and dry_run.kept_copies:
        yield f"These {_COPIES} would also be deleted: {', '.join(dry_run.kept_copies)}"
    counts = dry_run.counts
    is_part = counts.pages + counts.facts + counts.traits > len(dry_run.samples)
    yield f"{'These items and more' if is_part else 'These items'} would be forgotten: {_amount(counts)}."


def _summary(receipt: ForgetReceipt) -> str:
    state = (
        "overwritten in the files" if receipt.is_scrubbed else "not overwritten in the files yet; a server will retry"
    )
    return f"Forgotten: {_amount(receipt.counts)}; {state}. Receipt {receipt.receipt}"


def _amount(counts: ForgetCounts) -> str:
    return (
        f"pages {counts.pages:,}, facts {counts.facts:,}, traits {counts.traits:,}; "
        f"affected topics {counts.segments:,}, other traits {counts.changed_traits:,}"
    )


def _dry_run_json(dry_run: DryRun) -> dict[str, object]:
    samples = [{**asdict(sample), "at": sample.at.isoformat()} for sample in dry_run.samples]
    return {**asdict(dry_run.counts), "samples": samples, "kept_copies": list(dry_run.kept_copies)}


def _receipt_json(receipt: ForgetReceipt) -> dict[str, object]:
    counts = asdict(receipt.counts)
    return {"receipt": receipt.receipt, "at": receipt.at.isoformat(), **counts, "scrubbed": receipt.is_scrubbed}
