"""The SQLite files of a deployment, one for each user.

Modules that are slow to import are imported where they are used, because the commands for tokens do not need them.
"""

import asyncio
import random
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from memoryos_mcp.errors import StorageError
from memoryos_mcp.storage.sqlite.checks import Checks
from memoryos_mcp.storage.sqlite.paths import database_file
from memoryos_mcp.storage.sqlite.tokens import TokenStore, token_file
from memoryos_mcp.storage.threads import StoreThreads

if TYPE_CHECKING:
    from memoryos_mcp.storage.capabilities import Footprint, MemorySummary
    from memoryos_mcp.storage.sqlite.backup import SqliteBackups
    from memoryos_mcp.storage.sqlite.store import SqliteStore
    from memoryos_mcp.storage.values import StoreOptions


# Short transactions spend as much time in Python as in SQLite, so more threads would only compete for Python's global
# lock: with 8, a busy server answers a fifth fewer calls. If there were fewer threads, all of them could be blocked by
# files that other processes have locked, each for up to 30 s.
MOST_THREADS = 4


class SqliteStores:
    """The users' files in one data folder. Implements `Stores`."""

    is_shared = False
    rates = None
    sign_ins = None

    def __init__(self, data_folder: Path, clock: Callable[[], datetime], *, threads: int) -> None:
        self._data_folder = data_folder
        self._clock = clock
        self._threads = StoreThreads(min(threads, MOST_THREADS))
        self._checking = StoreThreads(1)
        self._checks = Checks()
        self._store_class: type[SqliteStore] | None = None  # imported when the first memory is opened
        self.tokens = TokenStore(token_file(data_folder), clock=clock)
        self.engine = f"SQLite {apsw.sqlite_lib_version()}"

    @property
    def backups(self) -> "SqliteBackups":
        from memoryos_mcp.storage.sqlite.backup import SqliteBackups

        return SqliteBackups(self._data_folder, self._clock)

    async def open(self, user_id: str, options: "StoreOptions", *, only_reads: bool = False) -> "SqliteStore":
        if self._store_class is None:
            self._store_class = await self._threads.run(_imported_store_class)
        return await self._store_class.open(
            self._data_folder,
            user_id,
            options,
            threads=self._threads,
            checking=self._checking,
            clock=self._clock,
            checks=self._checks,
            only_reads=only_reads,
        )

    def is_made(self) -> bool:
        return self._data_folder.is_dir()

    def users(self) -> list[str]:
        from memoryos_mcp.storage.sqlite.pending import users

        return list(users(self._data_folder))

    def users_with_work(self, model: str | None) -> list[str]:
        from memoryos_mcp.storage.sqlite.pending import users_with_work

        found = list(users_with_work(self._data_folder, model))
        random.shuffle(found)
        return found

    async def wait_for_work(self, timeout_s: float) -> bool:
        await asyncio.sleep(timeout_s)
        return False

    def prepare_vector_index(self) -> None: ...

    def footprint(self, user_id: str) -> "Footprint | None":
        from memoryos_mcp.storage.capabilities import Footprint

        file = database_file(self._data_folder, user_id)
        try:
            size = file.stat().st_size
            journal = file.with_name(f"{file.name}-wal")
            return Footprint(str(file), size + (journal.stat().st_size if journal.exists() else 0))
        except FileNotFoundError:
            return None
        except OSError as error:
            msg = f"{file} cannot be read ({error.strerror}); make its folder readable by this account"
            raise StorageError(msg) from error

    def examine(self, user_id: str) -> "MemorySummary | None":
        from memoryos_mcp.storage.sqlite.file_check import examine

        return examine(self._data_folder, user_id)

    def close(self) -> None:
        self.tokens.close()
        self._threads.close()
        self._checking.close()


def _imported_store_class() -> "type[SqliteStore]":
    from memoryos_mcp.storage.sqlite.store import SqliteStore

    return SqliteStore
