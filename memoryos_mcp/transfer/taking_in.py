"""Import of an export, or of another system's file, into a memory, in transactions of a few hundred pages.

The whole file is read and checked before anything is stored. If a transaction fails, the previous ones stay. A second
import of the same file continues from there, because pages are identified by their ids and keys.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from datetime import datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import TypeVar

from anyio import to_thread

from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.model.pages import Turn
from memoryos_mcp.model.records import ChainRecord, LongTermRecord, PageRecord, Record, SegmentRecord
from memoryos_mcp.model.redaction import Redaction
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.values import LongTerm, PageBatch
from memoryos_mcp.transfer import own
from memoryos_mcp.transfer.found import Reader, Skipped
from memoryos_mcp.transfer.spool import Spool
from memoryos_mcp.transfer.tally import Tally

# Size of one transaction: other writers wait for it, and each one costs a disk sync.
PAGES_PER_WRITE = 300
CHARS_PER_WRITE = 3_000_000
FACTS_PER_WRITE = 1_000

T = TypeVar("T")
# Shows the current step and the number of bytes done.
Show = Callable[[str, int], None]
Prepare = Callable[[Turn], Redaction]
Opening = Callable[[], AbstractAsyncContextManager[Store | None]]


class TakingIn:
    """Imports one file into a memory.

    Args:
        opening: Opens the memory after the file is read, so that an unusable file creates none. It yields None if a
            dry run finds no memory; everything then counts as new.
        path: The file or folder.
        prepare: Redacts a turn before it is stored; raises `ArgumentError` if it may not be stored.
        show: Shows progress.
        is_dry_run: Whether nothing is stored.
    """

    def __init__(self, opening: Opening, path: Path, *, prepare: Prepare, show: Show, is_dry_run: bool) -> None:
        self.tally = Tally()
        self._opening = opening
        self._path = path
        self._prepare = prepare
        self._show = show
        self._is_dry_run = is_dry_run

    async def own(self) -> None:
        """Import an export of this package.

        Raises:
            ImportFormatError: The file cannot be used; nothing was stored.
            StorageError: A transaction failed; the previous ones stay.
        """
        contents = await to_thread.run_sync(own.check, self._path, partial(self._show, "checking"))
        steps = self._steps(own.read(self._path, partial(self._show, "storing")), contents.sha256)
        other_names: dict[str, str] = {}
        async with self._opening() as store:
            while (step := await to_thread.run_sync(next, steps, None)) is not None:
                if isinstance(step, PageBatch):
                    known = await self._take_in_pages(store, step)
                    other_names |= {name: there for name, there in known.items() if name != there}
                elif store is not None and not self._is_dry_run:
                    long_term = LongTerm(contents.sha256, step, other_names)
                    self.tally.new += await store.user_data.import_long_term(long_term)

    async def found(self, reader: Reader, *, max_page_chars: int, zone: tzinfo | None, now: datetime) -> None:
        """Import the results of an importer.

        Args:
            reader: The importer for the file or folder.
            max_page_chars: Maximum length of both sides of a page together.
            zone: The user's zone; None means this machine's.
            now: The current time, with a zone.

        Raises:
            ImportFormatError: The file cannot be used; nothing was stored.
            StorageError: A transaction failed; the previous ones stay.
        """
        spool = Spool(self._prepare, max_page_chars=max_page_chars, zone=zone, now=now, tally=self.tally)
        try:
            await to_thread.run_sync(spool.fill, reader.read(self._path, partial(self._show, "reading")))
            batches = _batches(spool.turns(), _chars)
            async with self._opening() as store:
                while turns := await to_thread.run_sync(next, batches, None):
                    await self._add_turns(store, turns)
                if store is not None and not self._is_dry_run:
                    for first in range(0, len(spool.facts), FACTS_PER_WRITE):
                        facts = spool.facts[first : first + FACTS_PER_WRITE]
                        self.tally.new += await store.user_data.import_facts(facts, f"import:{reader.NAME}")
        finally:
            spool.close()

    async def _take_in_pages(self, store: Store | None, batch: PageBatch) -> dict[str, str]:
        if store is None or self._is_dry_run:
            names = [(page.page_id, page.idempotency_key) for page in batch.pages]
            known = 0 if store is None else await store.user_data.count_existing_pages(names)
            self.tally.new["page"] += len(batch.pages) - known
            return {}
        there = await store.user_data.import_pages(batch)
        self.tally.new["page"] += len(batch.pages) - len(there)
        return there

    async def _add_turns(self, store: Store | None, turns: list[Turn]) -> None:
        if store is None or self._is_dry_run:
            names = [(None, turn.idempotency_key) for turn in turns]
            known = 0 if store is None else await store.user_data.count_existing_pages(names)
            self.tally.new["page"] += len(turns) - known
        else:
            receipts = await store.add_pages(turns)
            self.tally.new["page"] += sum(receipt.is_new for receipt in receipts)

    def _steps(self, records: Iterator[Record], file: str) -> Iterator[PageBatch | list[LongTermRecord]]:
        """Yield the pages in batches with their chains and segments, then everything else."""
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

        for batch in _batches(pages(), _chars):
            yield PageBatch(
                file,
                batch,
                {page.chain: chains[page.chain] for page in batch if page.chain is not None},
                {page.segment: segments[page.segment] for page in batch if page.segment is not None},
            )
        yield long_term

    def _prepared(self, page: PageRecord) -> Iterator[PageRecord]:
        """Yield the redacted page; nothing if it may not be stored."""
        try:
            redaction = self._prepare(page.turn)
        except ArgumentError as error:
            self.tally.skip(Skipped(reason=str(error), where=page.page_id))
            return
        self.tally.redacted.update(redaction.kinds)
        self.tally.found["page"] += 1
        yield page.with_turn(redaction.turn)


def _batches(items: Iterator[T], chars: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield batches that fit one transaction each, by number and by length."""
    batch: list[T] = []
    length = 0
    for item in items:
        if batch and (len(batch) == PAGES_PER_WRITE or length + chars(item) > CHARS_PER_WRITE):
            yield batch
            batch, length = [], 0
        batch.append(item)
        length += chars(item)
    if batch:
        yield batch


def _chars(page: Turn | PageRecord) -> int:
    return len(page.user_input) + len(page.agent_response)
