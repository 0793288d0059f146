"""The commands ``memoryos-mcp export`` and ``memoryos-mcp import``."""

import asyncio
import gzip
import os
import re
import secrets
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import ParamSpec

import click
from anyio import to_thread
from pydantic import BaseModel

from memoryos_mcp.cli.commands.common import has_memory, has_memory_or_note, open_store, progress_on_stderr
from memoryos_mcp.cli.terminal import note, one_line, print_report
from memoryos_mcp.config import Settings
from memoryos_mcp.config.problems import nearest_name
from memoryos_mcp.errors import ArgumentError, ImportFormatError, StorageError
from memoryos_mcp.model.pages import Turn, utc_now
from memoryos_mcp.model.records import PageRecord, Record
from memoryos_mcp.model.redaction import Redaction, redact_turn
from memoryos_mcp.storage.damage import DAMAGE_FIX, damage_message
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.values import ARCHIVED
from memoryos_mcp.text.amounts import amount
from memoryos_mcp.transfer import export_format
from memoryos_mcp.transfer.importers import READERS, recognise
from memoryos_mcp.transfer.importing import Import
from memoryos_mcp.transfer.interface import Reader
from memoryos_mcp.transfer.tally import Tally

STDOUT = "-"
_BYTES_PER_MB = 1_000_000
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)")
# Extensions of other formats. Programs for these formats could not read an export.
_OTHER_FORMATS = frozenset(
    {".csv", ".tsv", ".xlsx", ".xml", ".yaml", ".yml", ".md", ".txt", ".html", ".pdf", ".db", ".sqlite", ".zip"}
)
P = ParamSpec("P")
_KINDS = {
    "page": "page",
    "chain": "chain",
    "segment": "topic",
    "fact": "fact",
    "trait": "trait",
    "past_trait": "former trait",
    "note": "note",
    "refused": "correction",
}


class SkippedItems(BaseModel, frozen=True):
    """Items that were skipped for the same reason.

    ``places`` contains the positions of the first few of these items in the file.
    """

    reason: str
    count: int
    places: list[str]


class ImportReport(BaseModel, frozen=True):
    """The result of an import.

    ``found`` maps each kind of item to the number of items in the file. ``new`` maps each kind to the number of items
    that were not in the memory before the import. In a dry run, ``new`` contains only pages. ``archived_facts`` is the
    number of facts that were archived because the memory contained more facts than ``long_term_knowledge_capacity``.
    """

    format: str
    is_dry_run: bool
    found: dict[str, int]
    new: dict[str, int]
    skipped: list[SkippedItems]
    redacted: dict[str, int]
    pages_waiting: int
    archived_facts: int


async def export_memory(settings: Settings, target: str, *, as_json: bool = False) -> None:
    """Export the configured user's memory to a file, and show the progress on stderr.

    ``target`` is a path, or ``-`` for stdout. The file is compressed if its name ends in ``.gz``. An existing export is
    replaced only when the new one is complete.
    """
    if as_json and target == STDOUT:
        raise ArgumentError(
            argument="--json", problem="cannot be used when the memory is written to stdout; choose a file"
        )
    if not await has_memory_or_note(settings):
        raise click.Abort
    async with open_store(settings) as store:
        pages = (await store.counts()).pages
        with progress_on_stderr() as show, _target(target) as write:
            report = _cancellable(lambda done: show("exporting", done, pages))
            contents = await store.user_data.export_records(
                lambda records: export_format.write(_counted(records, report), write)
            )
        damaged = await store.damaged_pages()
    if as_json:
        print_report({"file": target, "counts": contents.counts, "damaged_pages": list(damaged)}, [], as_json=True)
    else:
        listed = ", ".join(amount(count, _KINDS[kind]) for kind, count in contents.counts.items())
        note(f"exported {listed or 'an empty memory'}")
    if damaged:
        msg = f"{damage_message(damaged)}, and marked in the export; {DAMAGE_FIX}"
        raise StorageError(msg)


async def import_memory(settings: Settings, path: Path, *, name: str | None, is_dry_run: bool, as_json: bool) -> None:
    """Import a file or folder into the configured user's memory, and print a report.

    The progress is shown on stderr. ``name`` is the name of the format. None means that the format is recognised from
    the content. A dry run reads the file and counts its items, but changes nothing.
    """
    reader = await to_thread.run_sync(_chosen, path, name)
    size = max(1, await to_thread.run_sync(_size, path) // _BYTES_PER_MB)
    with progress_on_stderr("MB") as show:
        report_progress = _cancellable(lambda step, done: show(step, done // _BYTES_PER_MB, size))

        def prepare(turn: Turn) -> Redaction:
            return redact_turn(turn, settings.secret_policy)

        waiting = 0

        @asynccontextmanager
        async def opening() -> AsyncIterator[Store | None]:
            nonlocal waiting
            if is_dry_run and not await has_memory(settings):
                yield None
                return
            async with open_store(settings, short_term_capacity=settings.short_term_capacity) as store:
                yield store
                waiting = (await store.counts()).backlog

        taking = Import(opening, path, prepare=prepare, show=report_progress, is_dry_run=is_dry_run)
        try:
            if reader is None:
                await taking.import_own()
            else:
                limit, zone = settings.max_page_chars, settings.zone
                await taking.import_foreign(reader, max_page_chars=limit, zone=zone, now=utc_now())
        except (StorageError, asyncio.CancelledError):
            if taking.tally.new and not is_dry_run:
                pages = amount(taking.tally.new["page"], "page")
                note(f"the import stopped after {pages}; run the same command again to continue")
            raise
    report = _report(reader, taking.tally, waiting, is_dry_run=is_dry_run)
    print_report(report, _lines(report), as_json=as_json)


def _chosen(path: Path, name: str | None) -> Reader | None:
    """Return the importer for a file; None if the file has this program's own export format.

    ``name`` is the format that the user chose. If it is None, the format is recognised from the file.

    Raises:
        ArgumentError: ``name`` is not the name of a format.
        ImportFormatError: The file does not exist, is empty, or has no known format.
    """
    names = [export_format.NAME, *(reader.NAME for reader in READERS)]
    if name is not None and name not in names:
        close = nearest_name(name, names)
        hint = f"; did you mean {close}?" if close else ""
        raise ArgumentError(argument="--format", problem=f"is not one of {', '.join(names)}{hint}")
    if not path.exists():
        if address := _ADDRESS.match(str(path)):  # `Path` removes one slash of ``//``
            msg = f"{address[1]}://{address[2]} is a URL; download the file, then import it"
        else:
            msg = f"{path} does not exist; choose another file"
        raise ImportFormatError(msg)
    if path.is_file() and path.stat().st_size == 0:
        msg = f"{path} is empty; choose another file"
        raise ImportFormatError(msg)
    if name is not None:
        return next((reader for reader in READERS if name == reader.NAME), None)
    if export_format.recognises(path):
        return None
    reader = recognise(path)
    if reader is None:
        fix = "choose the format with --format, or use memoryos-mcp restore if the file is a backup"
        msg = f"{path} is not in a known format ({', '.join(names)}); {fix}"
        raise ImportFormatError(msg)
    return reader


def _size(path: Path) -> int:
    """Return the size in bytes of a file, or of all files in a folder."""
    if path.is_dir():
        return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
    return path.stat().st_size


def _counted(records: Iterator[Record], report: Callable[[int], None]) -> Iterator[Record]:
    """Yield the records unchanged. Before each record, call ``report`` with the number of pages so far."""
    pages = 0
    for record in records:
        pages += isinstance(record, PageRecord)
        report(pages)
        yield record


def _cancellable(report: Callable[P, None]) -> Callable[P, None]:
    """Return a function that calls ``report``, or raises `StorageError` if the command has been stopped.

    The error ends the work of the thread that calls the function.
    """
    task = asyncio.current_task()

    def checking(*args: P.args, **kwargs: P.kwargs) -> None:
        if task is not None and task.cancelling():
            msg = "the command was stopped"
            raise StorageError(msg)
        report(*args, **kwargs)

    return checking


def _check_target(path: Path, target: str) -> None:
    if path.is_dir():
        raise ArgumentError(argument=target, problem="is a folder; choose a file in this folder")
    if not path.parent.is_dir():
        raise ArgumentError(
            argument=target, problem="is in a folder that does not exist; create the folder or choose another file"
        )
    if path.is_file() and path.stat().st_size and not export_format.recognises(path):
        raise ArgumentError(argument=target, problem="exists and is not an export; choose another name")
    if path.suffix.lower() in _OTHER_FORMATS:
        problem = (
            f"an export is in the format JSON Lines, not {path.suffix}; use a name that ends in .jsonl or .jsonl.gz"
        )
        raise ArgumentError(argument=target, problem=problem)


@contextmanager
def _target(target: str) -> Iterator[Callable[[bytes], object]]:
    """Open the target of an export, and yield a function that writes bytes to the target.

    The target is stdout or a file. A file has a temporary name until it is complete. After an error, the incomplete
    file is removed, and an existing file is not changed.
    """
    if target == STDOUT:
        with _writing(target):
            yield _writing(target)(sys.stdout.buffer.write)
            sys.stdout.buffer.flush()
        return
    path = Path(target)
    _check_target(path, target)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    with _writing(target):
        try:
            with open(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:  # noqa: PTH123
                if path.suffix == ".gz":
                    with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
                        yield _writing(target)(packed.write)
                else:
                    yield _writing(target)(file.write)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)


@contextmanager
def _writing(target: str) -> Iterator[None]:
    """Convert an `OSError` in the block to a `StorageError` that names the export's target.

    Without this conversion, the store would report the error as a problem with the store's own file.
    """
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        name = "stdout" if target == STDOUT else target
        msg = f"{name} cannot be written ({reason}); free some space or choose another file, then export again"
        raise StorageError(msg) from error


def _report(reader: Reader | None, tally: Tally, waiting: int, *, is_dry_run: bool) -> ImportReport:
    return ImportReport(
        format=export_format.NAME if reader is None else reader.NAME,
        is_dry_run=is_dry_run,
        found=dict(tally.found),
        new={kind: tally.new[kind] for kind in tally.found if kind == "page" or not is_dry_run},
        skipped=[
            SkippedItems(reason=reason, count=count, places=tally.places[reason])
            for reason, count in tally.skipped.most_common()
        ],
        redacted=dict(tally.redacted.most_common()),
        pages_waiting=waiting,
        archived_facts=tally.new[ARCHIVED],
    )


def _lines(report: ImportReport) -> Iterator[str]:
    yield f"Format: {report.format}"
    for kind, found in report.found.items():
        new = (
            f", {report.new[kind]:,} new, {found - report.new[kind]:,} already in the memory"
            if kind in report.new
            else ""
        )
        yield f"{_KINDS[kind].capitalize()}s: {found:,} found{new}"
    for skipped in report.skipped:
        more = "; ..." if skipped.count > len(skipped.places) else ""
        places = one_line("; ".join(skipped.places))
        yield f"Skipped: {skipped.count:,} x {one_line(skipped.reason)} ({places}{more})"
    if report.redacted:
        kinds = ", ".join(f"{count:,} x {kind}" for kind, count in report.redacted.items())
        yield f"Secrets removed: {kinds}"
    if report.archived_facts:
        facts = amount(report.archived_facts, "fact")
        yield f"Archived: {facts}, because the memory reached long_term_knowledge_capacity. Searches still find them."
    if report.new.get("fact"):
        yield "Search finds new facts by keywords now, and by meaning after a server has embedded them."
    if report.is_dry_run:
        yield "This was a dry run; nothing was changed."
    elif report.pages_waiting:
        pages = amount(report.pages_waiting, "page")
        yield f"To be organised: {pages}; a running server organises them in the background."
