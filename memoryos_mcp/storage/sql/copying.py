"""Copying a whole memory from one SQL database to another, row by row.

Rows keep their numbers, so that ids, evidence and vectors stay valid. The word index is not copied: it is built from
the pages. All rows are read and written in batches, so that a large memory is never in RAM as a whole.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from memoryos_mcp.errors import StorageError
from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.mapping import TURN_COLUMNS
from memoryos_mcp.storage.values import Fingerprint

BATCH_ROWS = 200
_HASH_BYTES = 32

Tell = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Table:
    """A table that is copied.

    Attributes:
        key: The columns that identify a row.
        others: The remaining columns.
        later: Columns that refer to rows of the same table. They are filled after all rows have been copied.
        where: The SQL condition for the rows to copy; empty for all rows.
    """

    name: str
    key: tuple[str, ...]
    others: tuple[str, ...]
    later: tuple[str, ...] = ()
    where: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are copied, the key first."""
        return self.key + self.others


def _table(name: str, key: str, others: str, *, later: str = "", where: str = "") -> Table:
    return Table(name, tuple(key.split()), tuple(others.split()), tuple(later.split()), where)


# The key of a note that only copies have. The note is the hash of the memory that was copied.
ORIGIN_KEY = "copied_from"
# A table comes after the tables that it refers to.
TABLES = (
    _table("meta", "key", "value", where=f"key NOT IN ('user_id', '{ORIGIN_KEY}')"),
    _table("chains", "chain", "summary"),
    _table(
        "segments",
        "segment",
        "n_visit l_interaction last_visit_us page_count unanalysed_count is_archived summariser keywords summary "
        "is_due attempts",
    ),
    _table(
        "pages",
        "seq",
        "session tier chain segment is_analysed added_us organised_by learned_by is_degraded attempts read_by "
        + " ".join(TURN_COLUMNS),
    ),
    _table("names", "name", "pages called_by_user called_by_agent"),
    _table("spaces", "space", "identity model next_seq used_us"),
    _table("page_vectors", "space seq part", "start_char end_char vector"),
    _table("page_tokens", "place", "counts codes"),
    _table("traits", "dimension", "level reason updated_us learned_by"),
    _table("trait_evidence", "dimension seq", ""),
    _table("trait_history", "rowid", "dimension level reason held_from_us held_until_us ended_by learned_by evidence"),
    _table(
        "facts",
        "fact",
        "about assistant_id slot valid_from_us valid_until_us stated_until_us utc_offset_s superseded_by confirmed_us "
        "is_archived folded text learned_by ended_by ended_seq kind said_since said_until",
        later="superseded_by",
    ),
    _table("fact_evidence", "fact seq", "is_confirming"),
    _table("fact_vectors", "fact space", "vector"),
    _table("segment_vectors", "segment space", "vector"),
    _table("changes", "change", "kind row"),
    _table("llm_usage", "day purpose", "calls failed_calls prompt_tokens completion_tokens"),
    _table("refused", "digest", "until_seq"),
    _table("forget_receipts", "receipt", "at_us counts is_scrubbed"),
    _table("imports", "file kind number", "row"),
    _table("failures", "work", "attempts error at_us"),
    _table("retention", "slot", "looked_us waits_since_us"),
)
# Not copied: leases and plans of dry runs are short-lived, and the word index is built from the pages.
NOT_COPIED = frozenset(
    "lease forget_plans going page_words page_vocabulary postings new_postings indexed_postings counters".split()
)
# A memory is empty if these tables have no rows. Other tables may have rows: a server that opens a memory writes to
# them.
_CONTENT = tuple("pages chains segments facts traits trait_history refused forget_receipts llm_usage imports".split())
_PAGES = next(table for table in TABLES if table.name == "pages")
_SEQ, _USER_INPUT, _AGENT_RESPONSE = map(_PAGES.columns.index, ("seq", "user_input", "agent_response"))


class SourceError(Exception):
    """The memory that is being copied cannot be read. ``__cause__`` is the original database error.

    The copy runs inside a transaction of the target. Without this class, the error would be reported as an error of the
    target.
    """


class ChangedError(Exception):
    """Another process has changed the memory that is being copied."""


class Source:
    """The memory that is being copied. Each method raises `SourceError` if the memory cannot be read."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Run a statement and return all its rows."""
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except Exception as error:
            raise SourceError from error

    def last_numbers(self) -> dict[str, int]:
        """Return the highest number used so far for each kind of numbered row; see `Connection.last_numbers`."""
        try:
            return self._connection.last_numbers()
        except Exception as error:
            raise SourceError from error


def is_empty(memory: Source) -> bool:
    """Return whether a memory contains nothing that a user or an assistant stored."""
    return not any(memory.rows(f"SELECT 1 FROM {name} LIMIT 1") for name in _CONTENT)  # noqa: S608 - constant


def state(memory: Source) -> tuple[int, ...]:
    """Return numbers that describe the state of a memory. Every change visible to a user changes one of these."""
    sql = (
        "SELECT (SELECT coalesce(max(change), 0) FROM changes), (SELECT count(*) FROM forget_receipts), "
        "(SELECT coalesce(max(seq), 0) FROM pages), (SELECT count(*) FROM page_vectors), "
        "(SELECT count(*) FROM trait_history), (SELECT count(*) FROM refused)"
    )
    return memory.rows(sql)[0]


def fingerprint(memory: Source, tell: Tell) -> Fingerprint:
    """Return the number of rows in each table and a hash of all rows; see `Store.fingerprint`."""
    sums = _Sums(tell, total_rows(memory))
    for table in TABLES:
        for rows in _batches(memory, table):
            sums.add(table, rows)
    return sums.fingerprint(memory)


def total_rows(memory: Source) -> int:
    """Return the number of rows in all tables that are copied."""
    return sum(int(memory.rows(f"SELECT count(*) FROM {table.name}")[0][0]) for table in TABLES)  # noqa: S608


def copy(source: Source, target: Connection, tell: Tell) -> Fingerprint:
    """Copy a memory into an empty memory, and check the copy. The caller must begin a transaction on both databases.

    Returns:
        The fingerprint that both memories have now.

    Raises:
        StorageError: The copy is not the same as the source.
    """
    for table in reversed(TABLES):  # rows that a server wrote when it opened the memory
        condition = f" WHERE {table.where}" if table.where else ""
        target.execute(f"DELETE FROM {table.name}{condition}")  # noqa: S608 - constant
    total = total_rows(source)
    copied = _Sums(lambda done, _: tell(done, 2 * total), total)
    for table in TABLES:
        for rows in _batches(source, table):
            _insert(target, table, rows)
            copied.add(table, rows)
        for rows in _batches(source, table) if table.later else ():
            _fill(target, table, rows)
    target.set_last_numbers(source.last_numbers())
    # A server that opened the empty memory must not continue its background work.
    target.execute("UPDATE lease SET epoch = epoch + 1, holder = '', expires_us = 0")
    target.words.optimise()
    wanted = copied.fingerprint(source)
    target.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (ORIGIN_KEY, wanted.sha256),
    )
    if fingerprint(Source(target), lambda done, _: tell(total + done, 2 * total)) != wanted:
        msg = "the copy differs from the memory that was copied; nothing was stored. Check the disks, and try again"
        raise StorageError(msg)
    return wanted


class _Sums:
    """The counts and hashes of the rows of each table.

    The hash of a table is the sum of the hashes of its rows. It must not depend on the order of the rows, because
    databases sort texts differently.
    """

    def __init__(self, tell: Tell, total: int) -> None:
        self._tell = tell
        self._total = total
        self._counts = dict.fromkeys((table.name for table in TABLES), 0)
        self._hashes = dict.fromkeys(self._counts, 0)

    def add(self, table: Table, rows: Sequence[Sequence[Any]]) -> None:
        self._counts[table.name] += len(rows)
        self._hashes[table.name] += sum(map(_hash, rows))
        self._tell(sum(self._counts.values()), self._total)

    def fingerprint(self, memory: Source) -> Fingerprint:
        whole = hashlib.sha256()
        for name, count in self._counts.items():
            table_hash = self._hashes[name] % (1 << 8 * _HASH_BYTES)
            whole.update(f"{name} {count} ".encode() + table_hash.to_bytes(_HASH_BYTES))
        whole.update(repr(sorted(memory.last_numbers().items())).encode())
        is_empty = not any(self._counts[name] for name in _CONTENT)
        origin = memory.rows("SELECT value FROM meta WHERE key = ?", ORIGIN_KEY)
        return Fingerprint(
            dict(self._counts), whole.hexdigest(), is_empty=is_empty, copied_from=origin[0][0] if origin else None
        )


def _hash(row: Sequence[Any]) -> int:
    digest = hashlib.sha256()
    for value in row:
        kind = type(value).__name__
        data = value if isinstance(value, bytes) else str(value).encode()
        digest.update(f"{kind} {len(data)} ".encode())
        digest.update(data)
    return int.from_bytes(digest.digest())


def _batches(memory: Source, table: Table) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of a table in batches, in the order of the key."""
    key, columns = ", ".join(table.key), ", ".join(table.columns)
    places = ", ".join("?" for _ in table.key)
    last: Sequence[Any] | None = None
    while True:
        conditions = [table.where] if table.where else []
        conditions += [f"({key}) > ({places})"] if last is not None else []
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        sql = f"SELECT {columns} FROM {table.name}{where} ORDER BY {key} LIMIT ?"  # noqa: S608 - constants
        rows = memory.rows(sql, *(last or ()), BATCH_ROWS)
        if rows:
            yield rows
        if len(rows) < BATCH_ROWS:
            return
        last = rows[-1][: len(table.key)]


def _insert(target: Connection, table: Table, rows: Sequence[Sequence[Any]]) -> None:
    columns = [name for name in table.columns if name not in table.later]
    kept = [table.columns.index(name) for name in columns]
    places = ", ".join("?" for _ in columns)
    sql = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608 - constants
    target.executemany(sql, [tuple(row[index] for index in kept) for row in rows])
    if table is _PAGES:
        target.words.add_many([(row[_SEQ], row[_USER_INPUT], row[_AGENT_RESPONSE]) for row in rows])
    # Wait until the batch is finished. PostgreSQL would otherwise receive further batches before that.
    target.execute("SELECT 1").fetchone()


def _fill(target: Connection, table: Table, rows: Sequence[Sequence[Any]]) -> None:
    """Fill the columns that refer to rows of the same table."""
    later = [table.columns.index(name) for name in table.later]
    changes = ", ".join(f"{name} = ?" for name in table.later)
    where = " AND ".join(f"{name} = ?" for name in table.key)
    filled = [row for row in rows if any(row[index] is not None for index in later)]
    values = [(*(row[index] for index in later), *row[: len(table.key)]) for row in filled]
    target.executemany(f"UPDATE {table.name} SET {changes} WHERE {where}", values)  # noqa: S608 - constants
    target.execute("SELECT 1").fetchone()
