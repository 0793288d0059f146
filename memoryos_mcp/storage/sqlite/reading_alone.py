"""Finds pages by their words without opening the memory, for a process that must answer within milliseconds.

Only the word index is used. The file is not changed. To start quickly, this module and its imports do not import NumPy
or `typing`.
"""

import os
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from urllib.parse import quote

import apsw

from memoryos_mcp.errors import StorageError
from memoryos_mcp.storage.sql import checksums
from memoryos_mcp.storage.sql.moments import from_us
from memoryos_mcp.storage.sqlite.words import FtsWords
from memoryos_mcp.text.terms import rarity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Pages that must not be shown without a remark are left out: texts from other sources, instructions to an assistant,
# and statements that the user has corrected since.
_PAGE = (
    f"SELECT checksum, {checksums.COLUMNS} FROM pages WHERE seq = ? "  # noqa: S608 - constants
    "AND source = 'conversation' AND gives_orders = 0 AND NOT EXISTS "
    "(SELECT 1 FROM fact_evidence JOIN facts USING (fact) WHERE fact_evidence.seq = pages.seq AND ended_by IS NOT NULL)"
)


def pages_by_words(
    file: str, words: Sequence[str], least_share: float, limit: int
) -> list[tuple[str, datetime, str, str, str | None]]:
    """Return at most ``limit`` pages that contain many of the ``words``, best first.

    Each item contains the page's id and time, the texts of the user and of the assistant, and the page's ``meta_data``
    as JSON text.

    Rare words have a higher weight. A page is found if the words in it have at least ``least_share`` of the total
    weight of ``words``. Of two pages with the same weight, the newer one comes first. Damaged pages are left out.

    Raises:
        StorageError: The file could not be read.
    """
    try:
        with closing(_opened(file)) as connection, connection:
            rows = _rows(connection, words, least_share, 2 * limit)
    except apsw.Error as error:
        raise StorageError(type(error).__name__) from error
    whole = [row for stored, *row in rows if stored == checksums.checksum(*row)]
    return [
        (name.decode(), from_us(us, offset_s), user.decode(), agent.decode(), None if data is None else data.decode())
        for name, us, offset_s, _, data, user, agent in whole[:limit]
    ]


def _opened(file: str) -> apsw.Connection:
    # Without a journal nobody writes to the file. If it were opened as usual, SQLite would create a journal.
    how = "mode=ro" if os.path.exists(f"{file}-wal") else "mode=ro&immutable=1"  # noqa: PTH110 - pathlib is slow to import
    uri = f"file:{quote(file)}?{how}"
    connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0)
    return connection


def _rows(connection: apsw.Connection, words: Sequence[str], least_share: float, limit: int) -> "list[tuple[Any, ...]]":
    index = FtsWords(connection)
    total = int(connection.execute("SELECT count(*) FROM pages").get)
    found = {word: index.newest_with([word], 0, total) for word in words}
    weights = {word: rarity(len(seqs), total) for word, seqs in found.items()}
    scores: defaultdict[int, float] = defaultdict(float)
    for word, seqs in found.items():
        for seq in seqs:
            scores[seq] += weights[word]
    least = least_share * sum(weights.values())
    best = sorted((-score, -seq) for seq, score in scores.items() if score >= least)
    return [row for _, seq in best[:limit] for row in connection.execute(_PAGE, (-seq,))]
