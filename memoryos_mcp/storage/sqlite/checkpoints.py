"""Checkpoints: they write a journal that has grown to its file."""

from contextlib import suppress
from pathlib import Path

import apsw

from memoryos_mcp.storage.sqlite.journals import checkpointed

# How many SQLite pages are added to a journal between two checkpoints.
CHECKPOINT_PAGES = 1_000


class Checkpoints:
    """The checkpoints of a file's writing connection."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._journal_pages = 0
        self._checkpointed_pages = 0

    def watch(self, writer: apsw.Connection) -> None:
        """Count the pages that a connection writes to the journal."""
        writer.set_wal_hook(self._count_journal)

    def write_if_due(self, writer: apsw.Connection) -> None:
        """Write a journal that has grown to its file; after a failure, try again once it has grown further."""
        if self._journal_pages < self._checkpointed_pages:  # SQLite has started the journal again
            self._checkpointed_pages = 0
        if self._journal_pages - self._checkpointed_pages >= CHECKPOINT_PAGES:
            with suppress(apsw.Error, OSError), checkpointed(self._path, waits=False):
                writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            self._checkpointed_pages = self._journal_pages

    def _count_journal(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._journal_pages = pages
        return apsw.SQLITE_OK
