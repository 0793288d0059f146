"""Static access tokens for HTTP, stored in the database."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from memoryos_mcp.errors import DamagedStoreError, StorageError
from memoryos_mcp.storage.postgres.database import Deployment
from memoryos_mcp.storage.postgres.dialect import translate, values
from memoryos_mcp.storage.postgres.errors import translated
from memoryos_mcp.storage.sql.tokens import SqlTokens


class PostgresTokens(SqlTokens):
    """The tokens of one database. Implements `Tokens`.

    Args:
        deployment: A function that returns the connections to the database.
        clock: Returns the current time, with a time zone.
    """

    def __init__(self, deployment: Callable[[], Deployment], clock: Callable[[], datetime]) -> None:
        super().__init__(clock)
        self._deployment = deployment

    def is_needed(self) -> bool:
        return bool(self._read("SELECT 1 FROM tokens LIMIT 1"))

    def close(self) -> None:
        """Do nothing: the connections belong to the stores."""

    def _read(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        deployment = self._deployment()
        text, keys = translate(sql)
        return deployment.retried(lambda raw: raw.execute(text, values(keys, parameters), binary=True).fetchall())

    def _write(self, sql: str, *parameters: Any) -> int:
        deployment = self._deployment()
        text, keys = translate(sql)
        with translated(deployment.where), deployment.pool.connection() as raw:
            return raw.execute(text, values(keys, parameters)).rowcount

    def _invalid(self, what: str) -> StorageError:
        return DamagedStoreError(f"the table of tokens is damaged ({what}); revoke the token, or restore a backup")
