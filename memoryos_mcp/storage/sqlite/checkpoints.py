"""Checkpoints: copying the content of a journal to the database file each time the journal has grown enough."""

from contextlib import suppress
from pathlib import Path

import apsw

from memoryos_mcp.storage.sqlite.journals import checkpointed

# Number of SQLite pages that are added to a journal between two checkpoints.
CHECKPOINT_PAGES = 1_000


class Checkpoints:
    """Makes the checkpoints of a file, through the connection that writes to the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._journal_pages = 0
        self._checkpointed_pages = 0

    def watch(self, writer: apsw.Connection) -> None:
        """Start to count the SQLite pages that a connection writes to the journal."""
        writer.set_wal_hook(self._count_journal)

    def write_if_due(self, writer: apsw.Connection) -> None:
        """Make a checkpoint if the journal has grown by `CHECKPOINT_PAGES` SQLite pages since the last attempt.

        A checkpoint copies the journal's content to the database file. If the checkpoint fails, no error is raised.
        """
        if self._journal_pages < self._checkpointed_pages:  # SQLite has restarted the journal
            self._checkpointed_pages = 0
        if self._journal_pages - self._checkpointed_pages >= CHECKPOINT_PAGES:
            with suppress(apsw.Error, OSError), checkpointed(self._path, waits=False):
                writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            self._checkpointed_pages = self._journal_pages

    def _count_journal(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._journal_pages = pages
        return apsw.SQLITE_OK
