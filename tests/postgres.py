"""A real PostgreSQL server for tests: on a free port of loopback, run by an ordinary user, ended with the tests."""

import atexit
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import pytest

from benchmarks.postgres import OWNER, PostgresServer
from memoryos_mcp.storage.postgres.database import SET_USER
from memoryos_mcp.storage.postgres.dialect import translate, values
from memoryos_mcp.storage.postgres.schema import SCHEMA, migrate, version
from memoryos_mcp.storage.postgres.stores import PostgresStores
from memoryos_mcp.storage.sqlite.words import tokenizer


@cache
def server() -> PostgresServer:
    """Return the server of this test process. It ends with the process."""
    running = PostgresServer()
    atexit.register(running.close)
    return running


@cache
def vector_server() -> PostgresServer:
    """Return a server of this test process on which the extension ``vector`` can be installed."""
    running = PostgresServer(has_vector=True)
    atexit.register(running.close)
    return running


def empty(database: str) -> None:
    """Delete all memories in a database, and end its connections."""
    with psycopg.connect(server().url(database, OWNER), autocommit=True) as connection:
        others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        connection.execute(f"SELECT pg_terminate_backend(pid, 10000) {others}")
        if version(connection):
            sql = "SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename <> 'schema_version'"
            names = ", ".join(f"{SCHEMA}.{name}" for (name,) in connection.execute(sql, (SCHEMA,)))
            connection.execute(f"TRUNCATE {names} RESTART IDENTITY CASCADE")


class Databases:
    """The databases of data folders. A new one takes a second, so those of earlier tests are used again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: dict[Path, str] = {}
        self._free: list[str] = []
        self._numbers = itertools.count()

    def of(self, folder: Path) -> str:
        """Return the address of the database of a data folder."""
        with self._lock:
            name = self._names.get(folder.absolute())
            if name is None:
                name = self._free.pop() if self._free else f"folder_{next(self._numbers)}"
                server().make(name)
                empty(name)
                self._names[folder.absolute()] = name
            return server().url(name)

    def release(self) -> None:
        """Let later tests use the databases of all folders."""
        with self._lock:
            self._free += self._names.values()
            self._names.clear()


_databases = Databases()


def database_of(folder: Path) -> str:
    """Return the address of the database that stands for a data folder in the running test."""
    return _databases.of(folder)


@contextmanager
def use_postgres() -> Iterator[None]:
    """Keep the memories of every data folder in a database of their own; see `tests.servers.serve_environment`."""

    def stores_of(folder: Path, clock: Callable[[], datetime], *, threads: int = 1) -> PostgresStores:
        return PostgresStores(database_of(folder), clock, threads=threads, tokenize=tokenizer())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.stores._engine", "postgres")
        patch.setattr("memoryos_mcp.storage.sqlite.stores.SqliteStores", stores_of)
        yield
    _databases.release()


def rows_of(folder: Path, sql: str, user_id: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Return the rows of a statement in SQLite's SQL on a user's memory in the database of a data folder."""
    with psycopg.connect(database_of(folder), autocommit=False, cursor_factory=psycopg.RawCursor) as connection:
        connection.execute(f"SET LOCAL search_path TO {SCHEMA}")
        number = connection.execute("SELECT user_no FROM users WHERE user_id = $1", (user_id,)).fetchone()
        assert number is not None
        connection.execute(SET_USER, (str(number[0]),))
        text, keys = translate(sql)
        cursor = connection.execute(text, values(keys, parameters))
        found = cursor.fetchall() if cursor.description else []
        return [row[:-1] if sql.startswith("SELECT *") else row for row in found]  # without the user


def is_stored_in(folder: Path, user_id: str) -> bool:
    """Return whether the database of a data folder contains a memory of a user."""
    with psycopg.connect(database_of(folder), autocommit=True) as connection:
        if not version(connection):
            return False
        sql = f"SELECT 1 FROM {SCHEMA}.users WHERE user_id = %s"  # noqa: S608 - constant
        return connection.execute(sql, (user_id,)).fetchone() is not None


@contextmanager
def new_user_locked(folder: Path, user_id: str) -> Iterator[None]:
    """Lock a new user, as another process that adds it would, so that opening it waits."""
    with psycopg.connect(database_of(folder), autocommit=True) as connection:
        migrate(connection)
        with connection.transaction(force_rollback=True):
            connection.execute(f"SET LOCAL search_path TO {SCHEMA}")
            connection.execute("INSERT INTO users (user_id) VALUES (%s)", (user_id,))
            yield
