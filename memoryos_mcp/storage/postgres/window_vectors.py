"""The vector index ``pgvector``: the vectors of pages in a table that uses the extension ``vector``.

The table is created when it is first needed. A page and its vectors are deleted in one transaction. Small memories are
searched exactly. Each large memory has its own HNSW index, which only the owner of the tables can create.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import anyio.to_thread
import numpy as np
import psycopg

from memoryos_mcp.errors import StorageError
from memoryos_mcp.model.segments import Vector
from memoryos_mcp.storage.postgres.connection import PostgresConnection
from memoryos_mcp.storage.postgres.database import SET_USER, PostgresDatabase, Raw
from memoryos_mcp.storage.postgres.errors import translated
from memoryos_mcp.storage.postgres.schema import APP_ROLE, LOCK_KEY, SCHEMA, USER, secured
from memoryos_mcp.storage.values import PageVectors, WindowHits
from memoryos_mcp.storage.vector_index import parts_of

logger = logging.getLogger(__name__)

# The first version of the extension in which an index search continues until enough rows are found.
NEEDED_VERSION = (0, 8)
# Largest number of windows that are searched without an index. On two busy cores, the exact search of 10,000 vectors of
# length 384 took 36 ms, and of 200,000 vectors 230 ms. A search with an index took 30 ms for 200,000 vectors.
EXACT_WINDOWS = 20_000
# Maximum number of dimensions of an HNSW index.
INDEXED_DIMENSIONS = 4_000
# Candidates per search. With 200, the search finds 99.7% of the 60 nearest of 200,000 vectors; with 100, only 85%.
EF_SEARCH = 200
# RAM of the database server that may be used to build an index.
BUILD_MEMORY = "512MB"

_OWN = f"user_no integer NOT NULL DEFAULT {USER}, space bigint NOT NULL"


class WindowVectors:
    """The vectors of one user's pages in one vector space. Implements `VectorIndex`.

    Args:
        database: The rows of the user.
        space: The number of the vector space.
        dimension: Length of every vector.
    """

    def __init__(self, database: PostgresDatabase, space: int, dimension: int) -> None:
        self._database = database
        self._space = space
        self._dimension = dimension
        # The schema of the extension; None until the table is known to exist.
        self._extension: str | None = None
        self._size = 0
        self._has_index = False
        self._may_index = dimension <= INDEXED_DIMENSIONS

    @property
    def is_settled(self) -> bool:
        """Whether the index needs no maintenance at present; see `VectorIndex.is_settled`."""
        return self._has_index or not self._may_index or self._size <= EXACT_WINDOWS

    async def replace(self, pages: Sequence[int], vectors: PageVectors) -> None:
        """Replace all vectors of the given pages; see `VectorIndex.replace`."""
        seqs = vectors.seqs.tolist()
        parts = parts_of(vectors.seqs).tolist()
        texts = await anyio.to_thread.run_sync(lambda: [_text(each) for each in vectors.vectors])
        type_ = await self._ready()
        delete = (
            "DELETE FROM window_vectors WHERE space = $1 AND seq = ANY($2) AND NOT EXISTS (SELECT 1 FROM "
            "unnest(CAST($3 AS bigint[]), CAST($4 AS bigint[])) AS given (seq, part) "
            "WHERE given.seq = window_vectors.seq AND given.part = window_vectors.part)"
        )
        insert = (
            "INSERT INTO window_vectors (space, seq, part, vector) "  # noqa: S608 - the name of a schema
            f"SELECT $1, given.seq, given.part, CAST(given.vector AS {type_}.halfvec) "
            "FROM unnest(CAST($2 AS bigint[]), CAST($3 AS bigint[]), CAST($4 AS text[])) AS given (seq, part, vector) "
            "JOIN page_vectors USING (seq, part) WHERE page_vectors.space = $1 "
            "ON CONFLICT ON CONSTRAINT window_vectors_pkey DO UPDATE SET vector = excluded.vector "
            f"WHERE window_vectors.vector OPERATOR({type_}.<>) excluded.vector"
        )

        def change(connection: PostgresConnection) -> None:
            connection.native(delete, self._space, list(pages), seqs, parts)
            if seqs:
                connection.native(insert, self._space, seqs, parts, texts)

        await self._database.write(change)

    async def clear(self) -> None:
        """Remove all vectors, and the text that `set_mark` stored; see `VectorIndex.clear`."""
        await self._ready()

        def change(connection: PostgresConnection) -> None:
            for table in ("window_marks", "window_vectors"):
                connection.native(f"DELETE FROM {table} WHERE space = $1", self._space)  # noqa: S608 - a literal

        await self._database.write(change)

    async def search(self, query: Vector, k: int) -> WindowHits:
        """Return the ``k`` windows (page sections) nearest to a query, nearest first; see `VectorIndex.search`."""
        type_ = await self._ready()
        is_exact = self._size <= EXACT_WINDOWS or not self._has_index
        # The search continues until it has found enough windows. It finds more of the nearest windows in the relaxed
        # order than in the strict order.
        options = (
            "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), "
            f"set_config('hnsw.ef_search', '{EF_SEARCH}', true)"
        )

        def find(connection: PostgresConnection) -> list[Any]:
            if not is_exact:
                connection.native(options)
            return connection.native(sql, self._space, _text(query), k).fetchall()

        sql = self._search_sql(type_, is_exact=is_exact)
        rows = sorted(await self._database.read(find), key=lambda row: row[2])
        places = np.array([row[:2] for row in rows], dtype=np.int64).reshape(len(rows), 2)
        return WindowHits(places[:, 0], places[:, 1], -np.array([row[2] for row in rows], dtype=np.float32))

    def _search_sql(self, type_: str, *, is_exact: bool) -> str:
        # The index is used only for a search with this cast and these constants. A search without them is exact.
        cast = "" if is_exact else f"({self._dimension})"
        stored = "vector" if is_exact else f"CAST(vector AS {type_}.halfvec{cast})"
        own = "space = $1" if is_exact else f"$1 = space AND {_owned(self._database.user_no, self._space)}"
        return (
            f"SELECT seq, part, {stored} OPERATOR({type_}.<#>) CAST($2 AS {type_}.halfvec{cast}) AS distance "  # noqa: S608
            f"FROM window_vectors WHERE {own} ORDER BY distance LIMIT $3"
        )

    async def cosines(self, query: Vector, pages: Sequence[int]) -> None:
        """Return None, because this index does not support the method; see `VectorIndex.cosines`."""

    async def size(self) -> int:
        """Return the number of vectors in the index."""
        await self._ready()
        sql = (
            "SELECT count(*), coalesce((SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($2)), false) "
            "FROM window_vectors WHERE space = $1"
        )
        (row,) = await self._database.read(
            lambda connection: connection.native(
                sql, self._space, f"{SCHEMA}.{_index_name(self._database.user_no, self._space)}"
            ).fetchall()
        )
        self._size, self._has_index = row
        return self._size

    async def settle(self) -> None:
        """Create the HNSW index of the memory if the memory is large and the account may create an index."""
        if not self.is_settled:
            type_ = await self._ready()
            self._has_index = self._may_index = await anyio.to_thread.run_sync(self._create_index, type_)

    async def mark(self) -> str | None:
        """Return the text that `set_mark` stored last; see `VectorIndex.mark`."""
        await self._ready()
        sql = "SELECT mark, (SELECT count(*) FROM window_vectors WHERE space = $1) FROM window_marks WHERE space = $1"
        rows = await self._database.read(lambda connection: connection.native(sql, self._space).fetchall())
        if not rows:
            return None
        head, slash, count = rows[0][0].rpartition("/")
        # The mark ends with the number of windows. Some of them may since have been deleted together with their pages.
        return f"{head}{slash}{min(int(count), rows[0][1])}"

    async def set_mark(self, mark: str) -> None:
        """Store a short text that describes the state of the index; see `VectorIndex.set_mark`."""
        await self._ready()
        sql = (
            "INSERT INTO window_marks (space, mark) VALUES ($1, $2) "
            "ON CONFLICT ON CONSTRAINT window_marks_pkey DO UPDATE SET mark = excluded.mark"
        )
        await self._database.write(lambda connection: connection.native(sql, self._space, mark))

    async def _ready(self) -> str:
        """Return the schema of the extension ``vector``. The first call creates the tables if they are missing."""
        if self._extension is None:
            self._extension = await anyio.to_thread.run_sync(self._prepared)
        return self._extension

    def _prepared(self) -> str:
        with self._database.connect() as raw:
            return prepare(raw, self._database.where)

    def _create_index(self, type_: str) -> bool:
        with self._database.connect() as raw:
            memory = LargeMemory(self._database.user_no, self._space, self._dimension)
            return create_index(raw, self._database.where, type_, memory)


@dataclass(frozen=True, slots=True)
class LargeMemory:
    """A memory large enough for an HNSW index: one user's vectors in one vector space."""

    user_no: int
    space: int
    dimension: int


def create_index(raw: Raw, where: str, type_: str, memory: LargeMemory) -> bool:
    """Create the HNSW index of a memory if it is missing, without blocking other users.

    The index contains only this memory. In one index for all users, a search would also read other users' vectors.

    Args:
        raw: A connection that is not used for anything else.
        where: The host and the name of the database.
        type_: Name of the database schema that contains the extension ``vector``.
        memory: The memory to index.

    Returns:
        False if the account may not create an index; True otherwise.
    """
    name = _index_name(memory.user_no, memory.space)
    with translated(where):
        raw.execute(f"SET search_path TO {SCHEMA}")
        raw.execute(f"SET maintenance_work_mem TO '{BUILD_MEMORY}'")
        raw.execute(f"SELECT pg_advisory_lock({LOCK_KEY + 1})")  # until the connection is closed
        valid = raw.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)", (name,)).fetchone()
        if valid == (True,):
            return True
        try:
            if valid is not None:  # its creation was interrupted
                raw.execute(f"DROP INDEX {name}")
            raw.execute(
                f"CREATE INDEX CONCURRENTLY {name} ON window_vectors USING hnsw "
                f"(CAST(vector AS {type_}.halfvec({memory.dimension})) {type_}.halfvec_ip_ops) "
                f"WHERE {_owned(memory.user_no, memory.space)}"
            )
        except psycopg.errors.InsufficientPrivilege:
            logger.info(
                "the database account may not create an index, so searches of large memories are slower; run "
                "`memoryos-mcp doctor` with the account that owns the tables"
            )
            return False
    return True


def large_memories(raw: Raw, type_: str) -> list[LargeMemory]:
    """Return the memories that are large enough for an HNSW index."""
    found = []
    for (user_no,) in raw.execute(f"SELECT user_no FROM {SCHEMA}.users").fetchall():  # noqa: S608 - constant
        with raw.transaction():
            raw.execute(SET_USER, (str(user_no),))
            sql = (
                f"SELECT space, max({type_}.vector_dims(vector)), count(*) FROM {SCHEMA}.window_vectors "  # noqa: S608
                "GROUP BY space"
            )
            for space, dimension, windows in raw.execute(sql).fetchall():
                if windows > EXACT_WINDOWS and dimension <= INDEXED_DIMENSIONS:
                    found.append(LargeMemory(user_no, space, dimension))
    return found


def _index_name(user_no: int, space: int) -> str:
    return f"window_vectors_hnsw_{user_no}_{space}"


def _owned(user_no: int, space: int) -> str:
    return f"user_no = {user_no} AND space = {space}"


def prepare(raw: Raw, where: str) -> str:
    """Create the table of vectors if it is missing. Return the schema of the extension ``vector``.

    Raises:
        StorageError: The extension is missing or too old, or the account may not create the table.
    """
    with translated(where), raw.transaction():
        raw.execute(f"SELECT pg_advisory_xact_lock({LOCK_KEY})")
        found = _extension(raw) or _create_extension(raw, where)
        schema, version = found
        if tuple(map(int, version.split(".")[:2])) < NEEDED_VERSION:
            needed = ".".join(map(str, NEEDED_VERSION))
            msg = (
                f"the database {where} has version {version} of the extension vector; install {needed} or later on its "
                "server and run `ALTER EXTENSION vector UPDATE`, or set vector_index to faiss"
            )
            raise StorageError(msg)
        if raw.execute(f"SELECT to_regclass('{SCHEMA}.window_marks')").fetchone() == (None,):
            _create_tables(raw, schema)
    return schema


def _extension(raw: Raw) -> tuple[str, str] | None:
    """Return the schema and the version of the extension ``vector``; None if the database does not have it."""
    row = raw.execute(
        "SELECT CAST(CAST(extnamespace AS regnamespace) AS text), extversion FROM pg_extension WHERE extname = 'vector'"
    ).fetchone()
    return None if row is None else (row[0], row[1])


def _create_extension(raw: Raw, where: str) -> tuple[str, str]:
    if raw.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").fetchone() is None:
        msg = (
            f"the server of the database {where} does not have the extension vector (pgvector); install it there, or "
            "set vector_index to faiss"
        )
        raise StorageError(msg)
    try:
        raw.execute("CREATE EXTENSION vector")
    except psycopg.errors.InsufficientPrivilege:
        msg = (
            f"the database {where} does not have the extension vector; let a superuser run `CREATE EXTENSION vector` "
            "in it, or set vector_index to faiss"
        )
        raise StorageError(msg) from None
    found = _extension(raw)
    assert found is not None  # noqa: S101 - just created
    return found


def _create_tables(raw: Raw, schema: str) -> None:
    raw.execute(f"SET LOCAL search_path TO {SCHEMA}")
    of_space = "FOREIGN KEY (user_no, space) REFERENCES spaces (user_no, space) ON DELETE CASCADE"
    raw.execute(
        f"CREATE TABLE window_vectors ({_OWN}, seq bigint NOT NULL, part integer NOT NULL, "
        f"vector {schema}.halfvec NOT NULL, PRIMARY KEY (user_no, space, seq, part), {of_space}, "
        "FOREIGN KEY (user_no, seq) REFERENCES pages (user_no, seq) ON DELETE CASCADE)"
    )
    raw.execute("CREATE INDEX window_vectors_pages ON window_vectors (user_no, seq)")  # for the second foreign key
    raw.execute(f"CREATE TABLE window_marks ({_OWN}, mark text NOT NULL, PRIMARY KEY (user_no, space), {of_space})")
    has_role = raw.execute("SELECT 1 FROM pg_roles WHERE rolname = $1", (APP_ROLE,)).fetchone() is not None
    for table in ("window_vectors", "window_marks"):
        for statement in secured(table):
            raw.execute(statement)
        if has_role:
            raw.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {APP_ROLE}")


def _text(vector: Vector) -> str:
    return f"[{','.join(map(str, vector.astype(np.float16).tolist()))}]"
