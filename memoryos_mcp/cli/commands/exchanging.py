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

from memoryos_mcp.cli.commands.common import has_memory, is_there, opened_store, progress_on_stderr
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
from memoryos_mcp.transfer import own
from memoryos_mcp.transfer.found import Reader
from memoryos_mcp.transfer.importers import READERS, recognise
from memoryos_mcp.transfer.taking_in import TakingIn
from memoryos_mcp.transfer.tally import Tally

STDOUT = "-"
_BYTES_PER_MB = 1_000_000
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)")
# Extensions of other formats: a program for one of them could not read an export.
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


class SkippedThings(BaseModel, frozen=True):
    """Things that were left out for one reason; ``places`` are those of the first ones."""

    reason: str
    count: int
    places: list[str]


class ImportReport(BaseModel, frozen=True):
    """What became of a file.

    Attributes:
        found: Things that can be imported, by kind.
        new: Those of them that the memory did not contain, by kind; a dry run counts only new pages.
        redacted: Secrets removed from what can be imported, by kind.
        pages_waiting: Pages in the memory that are not organised yet.
        archived_facts: Facts beyond ``long_term_knowledge_capacity``.
    """

    format: str
    is_dry_run: bool
    found: dict[str, int]
    new: dict[str, int]
    skipped: list[SkippedThings]
    redacted: dict[str, int]
    pages_waiting: int
    archived_facts: int


async def export_memory(settings: Settings, target: str, *, as_json: bool = False) -> None:
    """Write the configured user's memory to a file, with progress on stderr.

    Args:
        settings: Select the user.
        target: The file, or ``-`` for stdout. A name that ends in ``.gz`` has it compressed. An existing export is
            replaced once the new one is complete.
        as_json: Print the counts as one JSON object; not with stdout.
    """
    if as_json and target == STDOUT:
        raise ArgumentError(argument="--json", problem="and the memory cannot both go to stdout; name a file")
    if not await is_there(settings):
        raise click.Abort
    async with opened_store(settings) as store:
        pages = (await store.counts()).pages
        with progress_on_stderr() as show, _target(target) as put:
            tell = _stoppable(lambda done: show("exporting", done, pages))
            contents = await store.user_data.export_records(lambda records: own.write(_told(records, tell), put))
        damaged = await store.damaged_pages()
    if as_json:
        print_report({"file": target, "counts": contents.counts, "damaged_pages": list(damaged)}, [], as_json=True)
    else:
        listed = ", ".join(amount(count, _KINDS[kind]) for kind, count in contents.counts.items())
        note(f"exported {listed or 'an empty memory'}")
    if damaged:
        msg = f"{damage_message(damaged)}, whose text is marked in the export; {DAMAGE_FIX}"
        raise StorageError(msg)


async def import_memory(settings: Settings, path: Path, *, name: str | None, is_dry_run: bool, as_json: bool) -> None:
    """Import a file or folder into the configured user's memory, with progress on stderr, and print a report.

    ``name`` is the format; None means to recognise it. A dry run only reads and counts.
    """
    reader = await to_thread.run_sync(_chosen, path, name)
    size = max(1, await to_thread.run_sync(_size, path) // _BYTES_PER_MB)
    with progress_on_stderr("MB") as show:
        tell = _stoppable(lambda told, done: show(told, done // _BYTES_PER_MB, size))

        def prepare(turn: Turn) -> Redaction:
            return redact_turn(turn, settings.secret_policy)

        waiting = 0

        @asynccontextmanager
        async def opening() -> AsyncIterator[Store | None]:
            nonlocal waiting
            if is_dry_run and not await has_memory(settings):
                yield None
                return
            async with opened_store(settings, short_term_capacity=settings.short_term_capacity) as store:
                yield store
                waiting = (await store.counts()).backlog

        taking = TakingIn(opening, path, prepare=prepare, show=tell, is_dry_run=is_dry_run)
        try:
            if reader is None:
                await taking.own()
            else:
                await taking.found(reader, max_page_chars=settings.max_page_chars, zone=settings.zone, now=utc_now())
        except (StorageError, asyncio.CancelledError):
            if taking.tally.new and not is_dry_run:
                pages = amount(taking.tally.new["page"], "page")
                note(f"{pages} imported before that; run the same command again to continue")
            raise
    report = _report(reader, taking.tally, waiting, is_dry_run=is_dry_run)
    print_report(report, _lines(report), as_json=as_json)


def _chosen(path: Path, name: str | None) -> Reader | None:
    """Return the importer for a file; None for our own format."""
    names = [own.NAME, *(reader.NAME for reader in READERS)]
    if name is not None and name not in names:
        close = nearest_name(name, names)
        meant = f"; did you mean {close}?" if close else ""
        raise ArgumentError(argument="--format", problem=f"is not one of {', '.join(names)}{meant}")
    if not path.exists():
        if address := _ADDRESS.match(str(path)):  # `Path` removes one of the slashes
            msg = f"{address[1]}://{address[2]} is an address; download the file, and import that"
        else:
            msg = f"{path} does not exist"
        raise ImportFormatError(msg)
    if path.is_file() and path.stat().st_size == 0:
        msg = f"{path} is empty"
        raise ImportFormatError(msg)
    if name is not None:
        return next((reader for reader in READERS if name == reader.NAME), None)
    if own.recognises(path):
        return None
    reader = recognise(path)
    if reader is None:
        known = ", ".join(names)
        fix = "Name its format with --format; `memoryos-mcp restore` restores a backup"
        msg = f"{path} is not in a known format ({known}). {fix}"
        raise ImportFormatError(msg)
    return reader


def _size(path: Path) -> int:
    """Return the size in bytes of a file, or of all files in a folder."""
    if path.is_dir():
        return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
    return path.stat().st_size


def _told(records: Iterator[Record], tell: Callable[[int], None]) -> Iterator[Record]:
    """Yield records, and report the number of pages among them."""
    passed = 0
    for record in records:
        passed += isinstance(record, PageRecord)
        tell(passed)
        yield record


def _stoppable(tell: Callable[P, None]) -> Callable[P, None]:
    """Return a progress function that ends a thread's work once the task that waits for it is cancelled."""
    task = asyncio.current_task()

    def stopping(*args: P.args, **kwargs: P.kwargs) -> None:
        if task is not None and task.cancelling():
            msg = "stopped"
            raise StorageError(msg)
        tell(*args, **kwargs)

    return stopping


def _check_target(path: Path, target: str) -> None:
    if path.is_dir():
        raise ArgumentError(argument=target, problem="is a folder; name a file in it")
    if not path.parent.is_dir():
        raise ArgumentError(argument=target, problem="the folder does not exist; create it or name another file")
    if path.is_file() and path.stat().st_size and not own.recognises(path):
        raise ArgumentError(argument=target, problem="is not an export that could be replaced; name a new file")
    if path.suffix.lower() in _OTHER_FORMATS:
        problem = f"would contain JSON lines, not {path.suffix}; end its name in .jsonl, or .jsonl.gz to compress it"
        raise ArgumentError(argument=target, problem=problem)


@contextmanager
def _target(target: str) -> Iterator[Callable[[bytes], object]]:
    """Yield a function that writes to stdout, or to a file that is moved into place once it is complete."""
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
    """Attribute errors of the system to the target of the export; the store would take them for its own."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        name = "stdout" if target == STDOUT else target
        msg = f"{name} cannot be written: {reason}. Free space or name another file, and export again"
        raise StorageError(msg) from error


def _report(reader: Reader | None, tally: Tally, waiting: int, *, is_dry_run: bool) -> ImportReport:
    return ImportReport(
        format=own.NAME if reader is None else reader.NAME,
        is_dry_run=is_dry_run,
        found=dict(tally.found),
        new={kind: tally.new[kind] for kind in tally.found if kind == "page" or not is_dry_run},
        skipped=[
            SkippedThings(reason=reason, count=count, places=tally.places[reason])
            for reason, count in tally.skipped.most_common()
        ],
        redacted=dict(tally.redacted.most_common()),
        pages_waiting=waiting,
        archived_facts=tally.new[ARCHIVED],
    )


def _lines(report: ImportReport) -> Iterator[str]:
    yield f"Format: {report.format}"
    for kind, found in report.found.items():
        told = f", {report.new[kind]:,} new, {found - report.new[kind]:,} known already" if kind in report.new else ""
        yield f"{_KINDS[kind].capitalize()}s: {found:,} found{told}"
    for skipped in report.skipped:
        more = "; ..." if skipped.count > len(skipped.places) else ""
        places = one_line("; ".join(skipped.places))
        yield f"Left out: {skipped.count:,} x {one_line(skipped.reason)} ({places}{more})"
    if report.redacted:
        kinds = ", ".join(f"{count:,} x {kind}" for kind, count in report.redacted.items())
        yield f"Secrets left out: {kinds}"
    if report.archived_facts:
        beyond = f"{amount(report.archived_facts, 'fact')} beyond long_term_knowledge_capacity"
        yield f"Archived: {beyond}, those not heard of for the longest time; questions still find them."
    if report.new.get("fact"):
        yield "New facts are found by their words, and by their meaning once a server has run for a moment."
    if report.is_dry_run:
        yield "Nothing was changed: this was a dry run."
    elif report.pages_waiting:
        pages = amount(report.pages_waiting, "page")
        yield f"To be organised: {pages}; a running server does that in the background."
