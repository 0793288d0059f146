"""Imports a file that this program or another system exported, in transactions of a few hundred pages.

The whole file is read and checked before anything is stored. If a transaction fails, the pages of previous transactions
stay stored. A second import of the same file then continues from there. It skips each page whose id or key is already
in the memory.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from datetime import datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import TypeVar

from anyio import to_thread

from memoryos_mcp.config import Settings
from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.model.pages import Turn
from memoryos_mcp.model.records import ChainRecord, LongTermRecord, PageRecord, Record, SegmentRecord
from memoryos_mcp.model.redaction import Redaction
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.values import LongTerm, PageBatch
from memoryos_mcp.transfer import export_format
from memoryos_mcp.transfer.interface import Reader, Skipped
from memoryos_mcp.transfer.reports import ImportReport, make_report
from memoryos_mcp.transfer.spool import Spool
from memoryos_mcp.transfer.tally import Tally

# Maximum size of one transaction. Other writers wait until it ends, and each transaction costs a disk sync.
PAGES_PER_WRITE = 300
CHARS_PER_WRITE = 3_000_000
FACTS_PER_WRITE = 1_000

T = TypeVar("T", Turn, PageRecord)
# Receives the name of the current step and the number of bytes that were processed in it.
Show = Callable[[str, int], None]
Prepare = Callable[[Turn], Redaction]
Opening = Callable[[], AbstractAsyncContextManager[Store | None]]


class Import:
    """Imports one file into a memory.

    Args:
        opening: Returns a context manager that opens the memory. It is called after the file was checked, so that an
            unusable file creates no memory. In a dry run, the context manager yields None if the memory does not
            exist. In this case, all items count as new.
        path: The file or folder.
        prepare: Removes the secrets from a turn. Raises `ArgumentError` if the turn must not be stored.
        show: Shows the progress. It receives the name of the current step and the number of bytes processed in it.
        is_dry_run: Whether items are only counted and not stored.

    Attributes:
        tally: The counts of imported and skipped items.
    """

    def __init__(self, opening: Opening, path: Path, *, prepare: Prepare, show: Show, is_dry_run: bool) -> None:
        self.tally = Tally()
        self._opening = opening
        self._path = path
        self._prepare = prepare
        self._show = show
        self._is_dry_run = is_dry_run
        self._pages_waiting = 0

    async def run(self, reader: Reader | None, settings: Settings, *, now: datetime) -> ImportReport:
        """Import the file, and return the report.

        Args:
            reader: The importer for the format of the file. None means that this program exported it.
            settings: The maximum length of a page, and the user's time zone.
            now: The current time, with a zone.

        Raises:
            ImportFormatError: The file cannot be used. Nothing was stored.
            StorageError: A transaction failed. The pages of previous transactions stay stored.
        """
        if reader is None:
            await self.import_own()
        else:
            limit, zone = settings.max_page_chars, settings.zone
            await self.import_foreign(reader, max_page_chars=limit, zone=zone, now=now)
        return make_report(reader, self.tally, self._pages_waiting, is_dry_run=self._is_dry_run)

    async def import_own(self) -> None:
        """Import a file that this program exported.

        Raises:
            ImportFormatError: The file cannot be used. Nothing was stored.
            StorageError: A transaction failed. The pages of previous transactions stay stored.
        """
        contents = await to_thread.run_sync(export_format.check, self._path, partial(self._show, "checking"))
        steps = self._steps(export_format.read(self._path, partial(self._show, "storing")), contents.sha256)
        other_names: dict[str, str] = {}
        async with self._opening() as store:
            while (step := await to_thread.run_sync(next, steps, None)) is not None:
                if isinstance(step, PageBatch):
                    ids = await self._import_pages(store, step)
                    other_names |= {name: stored for name, stored in ids.items() if name != stored}
                elif store is not None and not self._is_dry_run:
                    long_term = LongTerm(contents.sha256, step, other_names)
                    self.tally.new += await store.user_data.import_long_term(long_term)
            await self._count_waiting(store)

    async def import_foreign(self, reader: Reader, *, max_page_chars: int, zone: tzinfo | None, now: datetime) -> None:
        """Import a file or folder of another system.

        Args:
            reader: The importer for the format of the file.
            max_page_chars: Maximum number of characters in a page (both messages together). Longer pages are split.
            zone: The user's time zone. None means the time zone of this machine.
            now: The current time, with a zone.

        Raises:
            ImportFormatError: The file cannot be used. Nothing was stored.
            StorageError: A transaction failed. The pages of previous transactions stay stored.
        """
        spool = Spool(self._prepare, max_page_chars=max_page_chars, zone=zone, now=now, tally=self.tally)
        try:
            await to_thread.run_sync(spool.fill, reader.read(self._path, partial(self._show, "reading")))
            batches = _batches(spool.turns())
            async with self._opening() as store:
                while turns := await to_thread.run_sync(next, batches, None):
                    await self._add_turns(store, turns)
                if store is not None and not self._is_dry_run:
                    for first in range(0, len(spool.facts), FACTS_PER_WRITE):
                        facts = spool.facts[first : first + FACTS_PER_WRITE]
                        self.tally.new += await store.user_data.import_facts(facts, f"import:{reader.NAME}")
                await self._count_waiting(store)
        finally:
            spool.close()

    async def _import_pages(self, store: Store | None, batch: PageBatch) -> dict[str, str]:
        """Import a batch of pages, or only count them in a dry run.

        Return a mapping from the id in the file to the id in the memory, for the pages that were already in the memory.
        In a dry run, the mapping is empty.
        """
        if store is None or self._is_dry_run:
            await self._count_new(store, [(page.page_id, page.idempotency_key) for page in batch.pages])
            return {}
        known = await store.user_data.import_pages(batch)
        self.tally.new["page"] += len(batch.pages) - len(known)
        return known

    async def _add_turns(self, store: Store | None, turns: list[Turn]) -> None:
        if store is None or self._is_dry_run:
            await self._count_new(store, [(None, turn.idempotency_key) for turn in turns])
        else:
            receipts = await store.add_pages(turns)
            self.tally.new["page"] += sum(receipt.is_new for receipt in receipts)

    async def _count_new(self, store: Store | None, names: list[tuple[str | None, str | None]]) -> None:
        known = 0 if store is None else await store.user_data.count_existing_pages(names)
        self.tally.new["page"] += len(names) - known

    async def _count_waiting(self, store: Store | None) -> None:
        self._pages_waiting = 0 if store is None else (await store.counts()).backlog

    def _steps(self, records: Iterator[Record], file: str) -> Iterator[PageBatch | list[LongTermRecord]]:
        """Yield the pages in batches, with their chains and segments. Then yield a list of all long-term records."""
        chains: dict[int, ChainRecord] = {}
        segments: dict[int, SegmentRecord] = {}
        long_term: list[LongTermRecord] = []

        def pages() -> Iterator[PageRecord]:
            for record in records:
                match record:
                    case ChainRecord():
                        chains[record.chain] = record
                    case SegmentRecord():
                        segments[record.segment] = record
                    case PageRecord():
                        yield from self._prepared(record)
                    case _:
                        self.tally.found[record.kind] += 1
                        long_term.append(record)

        for batch in _batches(pages()):
            yield PageBatch(
                file,
                batch,
                {page.chain: chains[page.chain] for page in batch if page.chain is not None},
                {page.segment: segments[page.segment] for page in batch if page.segment is not None},
            )
        yield long_term

    def _prepared(self, page: PageRecord) -> Iterator[PageRecord]:
        """Yield the page without its secrets, or nothing if the page must not be stored."""
        try:
            redaction = self._prepare(page.turn)
        except ArgumentError as error:
            self.tally.skip(Skipped(reason=str(error), where=page.page_id))
            return
        self.tally.redacted.update(redaction.kinds)
        self.tally.found["page"] += 1
        yield page.with_turn(redaction.turn)


def _batches(pages: Iterator[T]) -> Iterator[list[T]]:
    """Yield batches of pages, each small enough for one transaction."""
    batch: list[T] = []
    length = 0
    for page in pages:
        chars = len(page.user_input) + len(page.agent_response)
        if batch and (len(batch) == PAGES_PER_WRITE or length + chars > CHARS_PER_WRITE):
            yield batch
            batch, length = [], 0
        batch.append(page)
        length += chars
    if batch:
        yield batch
