"""Finds pages by their words without opening the memory, for a process that must answer within milliseconds.

Only the word index is used. Nothing is written. NumPy, `typing` and other slow modules are not
imported.
"""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime

import apsw

from memoryos_mcp.errors import StorageError
from memoryos_mcp.storage.sql.moments import from_us
from memoryos_mcp.storage.sqlite.words import FtsWords
from memoryos_mcp.text.terms import rarity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Pages that must not be shown without a remark are left out: texts from other sources, instructions to an assistant,
# and statements that the user has corrected since.
_PAGE = (
    "SELECT page_id, occurred_us, utc_offset_s, user_input, agent_response, meta_data FROM pages WHERE seq = ? "
    "AND source = 'conversation' AND gives_orders = 0 AND NOT EXISTS "
    "(SELECT 1 FROM fact_evidence JOIN facts USING (fact) WHERE fact_evidence.seq = pages.seq AND ended_by IS NOT NULL)"
)


def pages_by_words(
    file: str, words: Sequence[str], least_share: float, limit: int
) -> list[tuple[str, datetime, str, str, str | None]]:
    """Return at most ``limit`` pages that contain many of the ``words``, best first.

    Each item contains the page's id, its time, the texts of the user and of the assistant, and the caller's data as
    JSON text.

    The weight of a word is its rarity. The words on a page must have at least ``least_share`` of the weight of all
    words. Of two pages with the same weight, the newer one comes first.

    Raises:
        StorageError: The file could not be read.
    """
    try:
        with closing(apsw.Connection(file, flags=apsw.SQLITE_OPEN_READONLY)) as connection, connection:
            rows = _rows(connection, words, least_share, limit)
    except apsw.Error as error:
        raise StorageError(type(error).__name__) from error
    return [(page_id, from_us(us, offset_s), user, agent, data) for page_id, us, offset_s, user, agent, data in rows]


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
    return [row for _, seq in best[: 2 * limit] for row in connection.execute(_PAGE, (-seq,))][:limit]
