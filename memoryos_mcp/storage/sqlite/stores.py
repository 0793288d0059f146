"""The SQLite files of a deployment, one for each user.

Modules that take long to import are imported where they are used, because commands for tokens do not need them.
"""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from memoryos_mcp.storage.sqlite.checks import Checks
from memoryos_mcp.storage.sqlite.threads import StoreThreads
from memoryos_mcp.storage.sqlite.tokens import TokenStore, token_file

if TYPE_CHECKING:
    from memoryos_mcp.storage.capabilities import MemorySummary
    from memoryos_mcp.storage.sqlite.backup import SqliteBackups
    from memoryos_mcp.storage.sqlite.store import SqliteStore
    from memoryos_mcp.storage.values import StoreOptions


class SqliteStores:
    """The users' files in one data folder. Implements `Stores`."""

    def __init__(self, data_folder: Path, clock: Callable[[], datetime], *, threads: int) -> None:
        self._data_folder = data_folder
        self._clock = clock
        self._threads = StoreThreads(threads)
        self._checks = Checks()
        self.tokens = TokenStore(token_file(data_folder), clock=clock)
        self.engine = f"SQLite {apsw.sqlite_lib_version()}"

    @property
    def backups(self) -> "SqliteBackups":
        from memoryos_mcp.storage.sqlite.backup import SqliteBackups

        return SqliteBackups(self._data_folder, self._clock)

    async def open(self, user_id: str, options: "StoreOptions", *, only_reads: bool = False) -> "SqliteStore":
        store_class = await self._threads.run(_store_class)
        return await store_class.open(
            self._data_folder,
            user_id,
            options,
            threads=self._threads,
            clock=self._clock,
            checks=self._checks,
            only_reads=only_reads,
        )

    def users_with_work(self, model: str | None) -> list[str]:
        from memoryos_mcp.storage.sqlite.pending import users_with_work

        return list(users_with_work(self._data_folder, model))

    def examine(self, user_id: str) -> "MemorySummary | None":
        from memoryos_mcp.storage.sqlite.file_check import examine

        return examine(self._data_folder, user_id)

    def close(self) -> None:
        self.tokens.close()
        self._threads.close()


def _store_class() -> "type[SqliteStore]":
    from memoryos_mcp.storage.sqlite.store import SqliteStore

    return SqliteStore
