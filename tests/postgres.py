"""A real PostgreSQL server for tests: on a free port of loopback, run by an ordinary user, ended with the tests."""

import atexit
import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from pydantic import SecretStr

from benchmarks.postgres import PostgresServer
from memoryos_mcp.config import Settings
from memoryos_mcp.storage import stores
from memoryos_mcp.storage.postgres.database import SET_USER
from memoryos_mcp.storage.postgres.dialect import translate
from memoryos_mcp.storage.postgres.schema import SCHEMA

if TYPE_CHECKING:
    from memoryos_mcp.storage.interface import Stores

# Modules that hold the function which chooses a store.
CHOOSERS = (
    "memoryos_mcp.engine.wiring",
    "memoryos_mcp.engine.service",
    "memoryos_mcp.cli.commands.common",
    "tests.test_store_contract",
)


@cache
def server() -> PostgresServer:
    """Return the server of this test process. It ends with the process."""
    running = PostgresServer()
    atexit.register(running.close)
    return running


def database_of(folder: Path) -> str:
    """Return the address of the database that stands for a data folder. The same folder gives the same database."""
    return server().make("t" + hashlib.sha256(str(folder).encode()).hexdigest()[:20])


def use_postgres(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every store of this process, and of the servers that tests start, one on PostgreSQL."""
    original: Callable[..., Stores] = stores.make_stores

    def make_stores(settings: Settings, *args: object, **kwargs: object) -> "Stores":
        if settings.database_url is None:
            url = SecretStr(database_of(settings.data_storage_path))
            settings = settings.model_copy(update={"database_url": url})
        return original(settings, *args, **kwargs)

    monkeypatch.setenv("MEMORYOS_TEST_STORE", "postgres")
    for module in CHOOSERS:
        monkeypatch.setattr(f"{module}.make_stores", make_stores)


def rows_of(folder: Path, sql: str, user_id: str) -> list[tuple[Any, ...]]:
    """Return the rows of a statement in SQLite's SQL on a user's memory in the database of a data folder."""
    with psycopg.connect(database_of(folder), autocommit=False, cursor_factory=psycopg.RawCursor) as connection:
        connection.execute(f"SET LOCAL search_path TO {SCHEMA}")
        number = connection.execute("SELECT user_no FROM users WHERE user_id = $1", (user_id,)).fetchone()
        assert number is not None
        connection.execute(SET_USER, (str(number[0]),))
        cursor = connection.execute(translate(sql)[0])
        found = cursor.fetchall() if cursor.description else []
        return [row[:-1] if sql.startswith("SELECT *") else row for row in found]  # without the user
