"""The memories of all users in one PostgreSQL database."""

import logging
import random
import threading
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

import anyio.to_thread
import psycopg
from psycopg.types.numeric import Int8Dumper
from psycopg_pool import ConnectionPool

from memoryos_mcp.errors import StorageError
from memoryos_mcp.storage.capabilities import Footprint, MemorySummary
from memoryos_mcp.storage.postgres import schema, window_vectors
from memoryos_mcp.storage.postgres.connection import PostgresConnection
from memoryos_mcp.storage.postgres.database import SET_USER, Deployment, PostgresDatabase, Raw, is_read_only
from memoryos_mcp.storage.postgres.errors import bypasses_rows, newer, older_replica, place, translated
from memoryos_mcp.storage.postgres.rates import PostgresRates
from memoryos_mcp.storage.postgres.sign_ins import PostgresSignIns
from memoryos_mcp.storage.postgres.store import PostgresStore
from memoryos_mcp.storage.postgres.tokens import PostgresTokens
from memoryos_mcp.storage.postgres.watch import KEEPALIVE_SQL, SERVERS_SQL, Watch
from memoryos_mcp.storage.sql import checksums, retention
from memoryos_mcp.storage.sql.moments import from_us
from memoryos_mcp.storage.threads import StoreThreads
from memoryos_mcp.storage.values import StoreOptions
from memoryos_mcp.text.user_ids import user_folder_name

T = TypeVar("T")

CONNECT_TIMEOUT_S = 10
# A call waits at most this long for a connection of the pool.
POOL_TIMEOUT_S = 30.0
# While the database does not accept connections, the pool tries again at growing intervals. After this time, it begins
# again with short intervals. Otherwise, it would wait for minutes after a long outage.
RECONNECT_S = 2.0
USERS_PER_READ = 200
# Connections for work outside the stores' threads: checking tokens and sign-ins, counting requests, and looking for
# unfinished work.
SPARE_CONNECTIONS = 4
# Whether a user has work that no process is doing, and whether a process was lost while doing it. $2 is the list of
# running servers; see `storage.postgres.watch`.
_WORK = (
    "SELECT NOT EXISTS (SELECT 1 FROM lease WHERE holder <> '' "
    "AND expires_us > extract(epoch FROM clock_timestamp()) * 1000000 "
    "AND (strpos(holder, '.') = 0 OR split_part(holder, '.', 1) = ANY($2))) AND "
    "(EXISTS (SELECT 1 FROM pages WHERE tier = 'backlog') OR CAST($1 AS text) IS NOT NULL AND EXISTS (SELECT 1 "
    "FROM pages WHERE seq >= coalesce((SELECT max(next_seq) FROM spaces WHERE model = CAST($1 AS text)), 1))), "
    "EXISTS (SELECT 1 FROM lease WHERE holder <> '')"
)
# The approximate size of a memory in bytes: the total size of the largest tables and columns.
_SIZES = (
    "SELECT coalesce((SELECT sum(bytes + 200) FROM pages), 0) "
    "+ coalesce((SELECT sum(octet_length(vector) + 60) FROM page_vectors), 0) "
    "+ coalesce((SELECT sum(octet_length(codes) + 60) FROM page_tokens), 0) "
    "+ (SELECT count(*) * 90 FROM postings)"
)


class PostgresStores:
    """The users' memories in one PostgreSQL database. Implements `Stores`.

    Args:
        url: The address of the database, including the account and the password.
        clock: Returns the current time, with a time zone.
        threads: Number of threads that do the blocking work.
        tokenize: Splits a text into the tokens of the word index.
    """

    backups = None
    is_shared = True

    def __init__(
        self, url: str, clock: Callable[[], datetime], *, threads: int, tokenize: Callable[[str], list[str]]
    ) -> None:
        self._url = url
        self._where = place(url)
        self._clock = clock
        self._count = threads
        self._threads = StoreThreads(threads)
        self._tokenize = tokenize
        self._lock = threading.Lock()
        self._opened: Deployment | None = None
        self._is_closed = False
        self._version = 0
        self._watch = Watch(url, self._where)
        self.tokens = PostgresTokens(self._deployment, clock)
        self.rates = PostgresRates(self._deployment)
        self.sign_ins = PostgresSignIns(self._deployment)

    @property
    def engine(self) -> str:
        """The name and version of the database engine."""
        if not self._version:
            self._deployment()
        return f"PostgreSQL {self._version // 10_000}.{self._version % 10_000}"

    async def open(self, user_id: str, options: StoreOptions, *, only_reads: bool = False) -> PostgresStore:
        user_folder_name(user_id)  # raises ArgumentError if the user id is not valid
        deployment = await self._threads.run(self._deployment)
        can_write = await self._threads.run(deployment.look_again) is None and not only_reads
        user_no = await self._threads.run(lambda: self._user_no(user_id, creates=can_write))
        if user_no is None:
            msg = f"the database {self._where} contains no memory of this user; check the user id and database_url"
            raise StorageError(msg)
        database = PostgresDatabase(deployment, user_no, only_reads=only_reads)
        store = PostgresStore(database, options, self._clock, self._watch.number)
        if can_write:
            await store.limit_short_term()
        return store

    def is_made(self) -> bool:
        options: dict[str, Any] = {"autocommit": True, "connect_timeout": CONNECT_TIMEOUT_S}
        with translated(self._where), psycopg.connect(self._url, **options) as raw:
            found = schema.version(raw)
        if found > schema.CURRENT_VERSION:
            raise newer(self._where, found, schema.CURRENT_VERSION)
        return found > 0

    def users(self) -> list[str]:
        with translated(self._where), self._deployment().pool.connection() as raw:
            return [user_id for (user_id,) in raw.execute("SELECT user_id FROM users ORDER BY user_no")]

    def users_with_work(self, model: str | None) -> list[str]:
        def search(raw: Raw) -> list[str]:
            interrupted: list[str] = []
            others: list[str] = []
            users = raw.execute("SELECT user_no, user_id FROM users ORDER BY user_no").fetchall()
            servers = [str(number) for (number,) in raw.execute(SERVERS_SQL)]
            for first in range(0, len(users), USERS_PER_READ):
                part = users[first : first + USERS_PER_READ]
                with raw.pipeline(), raw.transaction():
                    answers = []
                    for user_no, _ in part:
                        raw.execute(SET_USER, (str(user_no),))
                        answers.append(raw.execute(_WORK, (model, servers)))
                for (_, user_id), answer in zip(part, answers, strict=True):
                    match answer.fetchone():
                        case (True, was_interrupted):
                            (interrupted if was_interrupted else others).append(user_id)
            random.shuffle(interrupted)
            random.shuffle(others)
            return interrupted + others

        return self._deployment().retried(search)

    async def wait_for_work(self, timeout_s: float) -> bool:
        return await anyio.to_thread.run_sync(self._watch.wait, timeout_s, abandon_on_cancel=True)

    def prepare_vector_index(self) -> None:
        with translated(self._where), self._deployment().connect() as raw:
            type_ = window_vectors.prepare(raw, self._where)
            for memory in window_vectors.large_memories(raw, type_):
                window_vectors.create_index(raw, self._where, type_, memory)

    def footprint(self, user_id: str) -> Footprint | None:
        size = self._read(user_id, lambda connection: int(connection.native(_SIZES).get))
        return None if size is None else Footprint(self._where, size)

    def examine(self, user_id: str) -> MemorySummary | None:
        def summary(connection: PostgresConnection) -> MemorySummary:
            pages, last_us = connection.execute("SELECT count(*), max(added_us) FROM pages").get
            return MemorySummary(
                self._where,
                user_id,
                pages,
                None if last_us is None else from_us(last_us),
                retention.waits_until(connection),
                checksums.damaged_pages(connection),
            )

        return self._read(user_id, summary)

    def close(self) -> None:
        self._watch.close()
        self._threads.close()
        with self._lock:
            self._is_closed = True
            if self._opened is not None:
                self._opened.pool.close()
                self._opened = None

    def _read(self, user_id: str, query: Callable[[PostgresConnection], T]) -> T | None:
        user_folder_name(user_id)
        user_no = self._user_no(user_id, creates=False)
        if user_no is None:
            return None

        def run(raw: Raw) -> T:
            with raw.transaction():
                raw.execute(SET_USER, (str(user_no),))
                return query(PostgresConnection(raw, self._tokenize))

        return self._deployment().retried(run)

    def _user_no(self, user_id: str, *, creates: bool) -> int | None:
        """Return the number of a user; None if there is no such user. With ``creates``, add a missing user."""

        def find(raw: Raw) -> int | None:
            with raw.transaction():
                sql = "SELECT (SELECT version FROM schema_version), (SELECT user_no FROM users WHERE user_id = $1)"
                found, number = raw.execute(sql, (user_id,)).fetchone() or (0, None)
                if found > schema.CURRENT_VERSION:  # another process has migrated the database since the start
                    raise newer(self._where, found, schema.CURRENT_VERSION)
                known = None if number is None else (number,)
                if known is None and creates:
                    sql = "INSERT INTO users (user_id) VALUES ($1) ON CONFLICT DO NOTHING"
                    raw.execute(sql, (user_id,))
                    known = raw.execute("SELECT user_no FROM users WHERE user_id = $1", (user_id,)).fetchone()
                    assert known is not None  # noqa: S101 - just added
                    raw.execute(SET_USER, (str(known[0]),))
                    for table in ("counters", "lease"):
                        raw.execute(f"INSERT INTO {table} DEFAULT VALUES ON CONFLICT DO NOTHING")  # noqa: S608 - a literal
                    sql = "INSERT INTO meta (key, value) VALUES ('user_id', $1) ON CONFLICT DO NOTHING"
                    raw.execute(sql, (user_id,))
            return None if known is None else int(known[0])

        return self._deployment().retried(find)

    def _deployment(self) -> Deployment:
        """Return the shared connections. The first call connects to the database, and migrates it if necessary."""
        with self._lock:
            if self._is_closed:
                msg = "the store is closed; open the store again"
                raise StorageError(msg)
            if self._opened is None:
                self._opened = self._connect()
            return self._opened

    def _connect(self) -> Deployment:
        options: dict[str, Any] = {"autocommit": True, "cursor_factory": psycopg.RawCursor}
        with translated(self._where), psycopg.connect(self._url, connect_timeout=CONNECT_TIMEOUT_S, **options) as raw:
            self._version = raw.info.server_version
            sql = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
            is_unrestricted, is_replica = raw.execute(sql).fetchone() == (True,), is_read_only(raw)
            found = schema.version(raw)
            if found > schema.CURRENT_VERSION:
                raise newer(self._where, found, schema.CURRENT_VERSION)
            if found < schema.CURRENT_VERSION:
                if is_replica:
                    raise older_replica(self._where)
                schema.migrate(raw)
            if is_unrestricted:
                _restrict(raw, self._where, may_grant=not is_replica)
        role = schema.APP_ROLE if is_unrestricted else None

        def configure(raw: Raw) -> None:
            raw.adapters.register_dumper(int, Int8Dumper)
            raw.execute(KEEPALIVE_SQL)
            raw.execute(f"SET search_path TO {schema.SCHEMA}")
            if role is not None:
                raw.execute(f"SET ROLE {role}")

        # The pool's own warnings are not needed, because each failed call raises an error.
        logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
        pool: ConnectionPool[Raw] = ConnectionPool(
            self._url,
            min_size=1,
            max_size=self._count + SPARE_CONNECTIONS,
            kwargs={**options, "connect_timeout": CONNECT_TIMEOUT_S},
            configure=configure,
            timeout=POOL_TIMEOUT_S,
            reconnect_timeout=RECONNECT_S,
            reconnect_failed=ConnectionPool.check,
            open=True,
            name="memoryos",
        )
        why = f"the database {self._where} is a read-only replica" if is_replica else None
        connect = partial(psycopg.connect, self._url, connect_timeout=CONNECT_TIMEOUT_S, **options)
        return Deployment(pool, self._where, self._threads, self._tokenize, why, connect)


def _restrict(raw: Raw, where: str, *, may_grant: bool) -> None:
    """Check that an unrestricted account can switch to `APP_ROLE`, which row-level security restricts.

    With ``may_grant``, the role and its rights are created if they are missing.

    Raises:
        StorageError: The account cannot switch to the role.
    """
    try:
        if may_grant:
            schema.grant_app_role(raw)
        raw.execute(f"SET ROLE {schema.APP_ROLE}")
    except psycopg.errors.InsufficientPrivilege:
        raise bypasses_rows(where) from None
