"""SQLite files of all users of a deployment, one per user in the data folder."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from memoryos_mcp.storage.sqlite.database import Checks
from memoryos_mcp.storage.sqlite.pending import users_waiting
from memoryos_mcp.storage.sqlite.store import SqliteStore
from memoryos_mcp.storage.sqlite.threads import StoreThreads
from memoryos_mcp.storage.values import StoreOptions


class SqliteStores:
    """The users' files in one data folder. Implements `Stores`."""

    def __init__(self, data_folder: Path, clock: Callable[[], datetime], *, threads: int) -> None:
        self._data_folder = data_folder
        self._clock = clock
        self._threads = StoreThreads(threads)
        self._checks = Checks()

    async def open(self, user_id: str, options: StoreOptions, *, only_reads: bool = False) -> SqliteStore:
        """Open a user's file, created if missing; see `Stores.open`."""
        return await SqliteStore.open(
            self._data_folder,
            user_id,
            options,
            threads=self._threads,
            clock=self._clock,
            checks=self._checks,
            only_reads=only_reads,
        )

    def users_with_work(self, model: str | None) -> list[str]:
        """Read every user's file; see `Stores.users_with_work`."""
        return list(users_waiting(self._data_folder, model))

    def close(self) -> None:
        """End the threads."""
        self._threads.close()
