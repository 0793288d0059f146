"""The implementation of `UserData` on SQLite."""

from anyio import to_thread

from memoryos_mcp.errors import StorageError
from memoryos_mcp.storage.sql.user_data import SqlUserData
from memoryos_mcp.storage.sqlite.database import SqliteDatabase
from memoryos_mcp.storage.sqlite.paths import kept_copies, remove_kept_copies


class SqliteUserData(SqlUserData):
    """Inspects, corrects, exports, imports and forgets the memory in one SQLite file. Implements `UserData`."""

    _database: SqliteDatabase

    async def kept_copies(self) -> list[str]:
        return [path.name for path in await to_thread.run_sync(kept_copies, self._database.path)]

    async def remove_kept_copies(self) -> None:
        path = self._database.path
        try:
            await to_thread.run_sync(remove_kept_copies, path)
        except OSError as error:
            msg = (
                f"a backup copy of this memory in {path.parent} cannot be removed ({error.strerror}); nothing was "
                "forgotten. Close any program that has the copy open, check the folder's permissions, and try again"
            )
            raise StorageError(msg) from error
