"""The commands ``memoryos-mcp export`` and ``memoryos-mcp import``."""

import asyncio
import gzip
import os
import re
import secrets
import shutil
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import click
from anyio import to_thread

from memoryos_mcp.cli.commands.common import has_memory, has_memory_or_note, open_store, progress_on_stderr
from memoryos_mcp.cli.terminal import confirmed, note, one_line, print_report
from memoryos_mcp.config import Settings
from memoryos_mcp.errors import ArgumentError, ImportFormatError, StorageError
from memoryos_mcp.model.pages import Turn, project_name, utc_now
from memoryos_mcp.model.records import PageRecord, Record
from memoryos_mcp.model.redaction import Redaction, redact_turn
from memoryos_mcp.storage.damage import DAMAGE_FIX, damage_message
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.text.amounts import amount
from memoryos_mcp.transfer import export_format, markdown
from memoryos_mcp.transfer.choosing import check_format, chosen
from memoryos_mcp.transfer.importers import speakers
from memoryos_mcp.transfer.importing import Import
from memoryos_mcp.transfer.interface import Reader
from memoryos_mcp.transfer.reports import counted, report_lines
from memoryos_mcp.transfer.stopping import cancellable
from memoryos_mcp.transfer.writing import writing

STDOUT = "-"
_BYTES_PER_MB = 1_000_000
_NAMES_SHOWN = 6
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)")
# Extensions of other formats. Programs for these formats could not read an export.
_OTHER_FORMATS = frozenset(
    {".csv", ".tsv", ".xlsx", ".xml", ".yaml", ".yml", ".md", ".txt", ".html", ".pdf", ".db", ".sqlite", ".zip"}
)


async def export_memory(settings: Settings, target: str, *, project: str | None = None, as_json: bool = False) -> None:
    """Export the configured user's memory, or only ``project``, to a file, and show the progress on stderr.

    ``target`` is a path, or ``-`` for stdout. The file is compressed if its name ends in ``.gz``. An existing export is
    replaced only when the new one is complete.
    """
    if as_json and target == STDOUT:
        raise ArgumentError(
            argument="--json", problem="this option cannot be used when the memory is written to stdout; choose a file"
        )
    if not await has_memory_or_note(settings):
        raise click.Abort
    async with open_store(settings) as store:
        pages = (await store.counts()).pages
        with progress_on_stderr() as show, _target(target) as write:
            report = cancellable(lambda done: show("exporting", done, pages))
            contents = await store.user_data.export_records(
                lambda records: export_format.write(_counted(records, report), write), project_name(project)
            )
        damaged = await store.damaged_pages()
    if as_json:
        print_report({"file": target, "counts": contents.counts, "damaged_pages": list(damaged)}, [], as_json=True)
    else:
        note(f"exported {counted(contents.counts) or 'an empty memory'}")
    if damaged:
        msg = f"{damage_message(damaged)}; damaged pages are marked in the export. To repair the memory, {DAMAGE_FIX}"
        raise StorageError(msg)


async def export_markdown(
    settings: Settings, target: str, *, project: str | None = None, as_json: bool = False
) -> None:
    """Write the configured user's memory as Markdown for people to read, and show the progress on stderr.

    ``target`` is ``-`` for stdout, the path of a file that ends in ``.md``, or the path of a new folder.
    """
    if as_json and target == STDOUT:
        raise ArgumentError(
            argument="--json", problem="this option cannot be used when the memory is written to stdout; choose a file"
        )
    if not await has_memory_or_note(settings):
        raise click.Abort
    is_file = target == STDOUT or target.lower().endswith(".md")
    if not is_file and Path(target).suffix:
        problem = "this file name does not end in .md; use a name that ends in .md, or the name of a new folder"
        raise ArgumentError(argument=target, problem=problem)
    async with open_store(settings) as store:
        pages = (await store.counts()).pages
        with progress_on_stderr() as show:
            report = cancellable(lambda done: show("exporting", done, pages))
            if is_file:
                with _target(target, is_markdown=True) as write:
                    counts = await store.user_data.export_records(
                        lambda records: markdown.write_file(_counted(records, report), write, settings.zone),
                        project_name(project),
                    )
            else:
                with _new_folder(Path(target)) as folder:

                    def write_all(records: Iterator[Record]) -> Counter[str]:
                        with writing(target):
                            return markdown.write_folder(_counted(records, report), folder, settings.zone)

                    counts = await store.user_data.export_records(write_all, project_name(project))
        damaged = await store.damaged_pages()
    if as_json:
        print_report({"file": target, "counts": dict(counts), "damaged_pages": list(damaged)}, [], as_json=True)
    else:
        note(f"exported for reading: {counted(counts) or 'an empty memory'}; this copy cannot be imported again")
    if damaged:
        msg = f"{damage_message(damaged)}; {DAMAGE_FIX}"
        raise StorageError(msg)


@contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder. It is renamed to ``path`` when the ``with`` block ends, or removed after an error."""
    if path.exists():
        raise ArgumentError(argument=str(path), problem="this path already exists; choose the name of a new folder")
    if not path.absolute().parent.is_dir():
        problem = "the parent folder does not exist; create the parent folder or choose another path"
        raise ArgumentError(argument=str(path), problem=problem)
    unfinished = path.absolute().with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    with writing(str(path)):
        unfinished.mkdir(mode=0o700)
    try:
        yield unfinished
        with writing(str(path)):
            unfinished.rename(path)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


async def import_memory(
    settings: Settings,
    path: Path,
    *,
    name: str | None,
    of_all: bool,
    project: str | None = None,
    is_dry_run: bool,
    as_json: bool,
) -> None:
    """Import a file or folder into the configured user's memory, and print a report.

    The progress is shown on stderr. ``name`` is the name of the format. None means that the format is recognised from
    the content. Pages without a project are assigned to ``project``. A dry run reads the file and counts its items,
    but changes nothing. If several people speak in the file, the user is asked for confirmation, unless ``of_all`` is
    true.
    """
    project = project_name(project)
    reader = await to_thread.run_sync(_chosen, path, name)
    people = await to_thread.run_sync(speakers, reader, path)
    if len(people) > 1 and not of_all:
        _confirm_people(people, settings.user_id, is_dry_run=is_dry_run)
    size = max(1, await to_thread.run_sync(_size, path) // _BYTES_PER_MB)
    with progress_on_stderr("MB") as show:
        report_progress = cancellable(lambda step, done: show(step, done // _BYTES_PER_MB, size))

        def prepare(turn: Turn) -> Redaction:
            return redact_turn(replace(turn, project=turn.project or project), settings.secret_policy)

        @asynccontextmanager
        async def opening() -> AsyncIterator[Store | None]:
            if is_dry_run and not await has_memory(settings):
                yield None
                return
            async with open_store(settings, short_term_capacity=settings.short_term_capacity) as store:
                yield store

        taking = Import(opening, path, prepare=prepare, show=report_progress, is_dry_run=is_dry_run)
        try:
            report = await taking.run(reader, settings, now=utc_now())
        except (StorageError, asyncio.CancelledError):
            if taking.tally.new and not is_dry_run:
                pages = amount(taking.tally.new["page"], "page")
                note(f"the import stopped after {pages}; run the same command again to continue")
            raise
    print_report(report, report_lines(report), as_json=as_json)


def _confirm_people(people: Sequence[str], user_id: str, *, is_dry_run: bool) -> None:
    """Ask whether to import the words of several people into one memory. A dry run only prints a note.

    Raises:
        click.UsageError: The question cannot be asked, because stdin is not a terminal.
        click.Abort: The user does not agree.
    """
    names = ", ".join(one_line(name) for name in people[:_NAMES_SHOWN]) + (
        ", ..." if len(people) > _NAMES_SHOWN else ""
    )
    found = f"{len(people):,} people speak in this file: {names}"
    effect = (
        "Everything would be imported into one memory, and the first speaker of each conversation would be the user"
    )
    if is_dry_run:
        note(f"{found}. {effect}; to import the file, use --all-speakers")
    elif not sys.stdin.isatty():
        msg = f"{found}. {effect}. To import the file nevertheless, use --all-speakers."
        raise click.UsageError(msg)
    else:
        note(f"{found}. {effect}.")
        if not confirmed(f"Import the file into the memory of {one_line(user_id)}?"):
            raise click.Abort


def _chosen(path: Path, name: str | None) -> Reader | None:
    """Return the importer for a file; None if the file has this program's own export format.

    ``name`` is the format that the user chose. If it is None, the format is recognised from the file.

    Raises:
        ArgumentError: ``name`` is not the name of a format.
        ImportFormatError: The file does not exist, is empty, or has no known format.
    """
    check_format(name, argument="--format")
    if not path.exists():
        if address := _ADDRESS.match(str(path)):  # `Path` removes one slash of ``//``
            msg = f"{address[1]}://{address[2]} is a URL; download the file, then import it"
        else:
            msg = f"{path} does not exist; choose another file"
        raise ImportFormatError(msg)
    fix = "choose the format with --format, or use memoryos-mcp restore if the file is a backup"
    return chosen(path, name, argument="--format", if_unknown=fix)


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


def _check_target(path: Path, target: str, *, is_markdown: bool) -> None:
    if path.is_dir():
        raise ArgumentError(argument=target, problem="this path is a folder; choose a file in this folder")
    if not path.parent.is_dir():
        raise ArgumentError(argument=target, problem="the folder does not exist; create it or choose another path")
    recognises = markdown.recognises if is_markdown else export_format.recognises
    if path.is_file() and path.stat().st_size and not recognises(path):
        raise ArgumentError(argument=target, problem="this file exists and is not an export; choose another name")
    if not is_markdown and path.suffix.lower() in _OTHER_FORMATS:
        problem = (
            f"an export is in the format JSON Lines, not {path.suffix}; use a name that ends in .jsonl or .jsonl.gz, "
            "or --format markdown"
        )
        raise ArgumentError(argument=target, problem=problem)


@contextmanager
def _target(target: str, *, is_markdown: bool = False) -> Iterator[Callable[[bytes], object]]:
    """Open the target of an export, and yield a function that writes bytes to the target.

    The target is stdout or a file. A file has a temporary name until it is complete. After an error, the incomplete
    file is removed, and an existing file is not changed.
    """
    if target == STDOUT:
        with writing(_name(target)):
            yield writing(_name(target))(sys.stdout.buffer.write)
            sys.stdout.buffer.flush()
        return
    path = Path(target)
    _check_target(path, target, is_markdown=is_markdown)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    with writing(_name(target)):
        try:
            with open(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:  # noqa: PTH123
                if path.suffix == ".gz":
                    with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
                        yield writing(_name(target))(packed.write)
                else:
                    yield writing(_name(target))(file.write)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)


def _name(target: str) -> str:
    return "stdout" if target == STDOUT else target
