"""Word search over pages with SQLite's FTS5, at a cost that does not grow with the commonest word."""

from collections.abc import Sequence

import apsw

from memoryos_mcp.storage import WordHit
from memoryos_mcp.terms import index_text, is_unspaced

# Postings read per query, rarest words first; ranking them costs about half a microsecond each.
POSTING_BUDGET = 10_000
WORDS_AT_MOST = 64

_TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2", "categories", "L* N* Co Mn Mc"])


def index_page(connection: apsw.Connection, seq: int, user_input: str, agent_response: str) -> None:
    """Add a page to the word index, inside the caller's transaction."""
    connection.execute(
        "INSERT INTO page_words (rowid, user_input, agent_response) VALUES (?, ?, ?)",
        (seq, index_text(user_input), index_text(agent_response)),
    )


def search(connection: apsw.Connection, words: Sequence[str], limit: int) -> list[WordHit]:
    """Return at most ``limit`` pages that hold any of the words, best BM25 first."""
    expression = match_expression(connection, words)
    if expression is None:
        return []
    rows = connection.execute(
        "SELECT rowid, bm25(page_words, 1.0, 1.0) AS badness FROM page_words WHERE page_words MATCH ? "
        "ORDER BY badness, rowid DESC LIMIT ?",
        (expression, limit),
    )
    return [WordHit(seq=seq, score=-badness) for seq, badness in rows]


def match_expression(connection: apsw.Connection, words: Sequence[str]) -> str | None:
    """Return the FTS5 query for any of the words that fit the posting budget, rarest first; None if none occurs."""
    costs = sorted((_posting_count(connection, word), word) for word in words[:WORDS_AT_MOST])
    chosen: list[str] = []
    spent = 0
    for cost, word in costs:
        if cost == 0:
            continue
        if chosen and spent + cost > POSTING_BUDGET:
            break
        chosen.append(_phrase(word))
        spent += cost
    return " OR ".join(chosen) or None


def _is_prefix(word: str) -> bool:
    """Whether a word is a single character of an unspaced script, which stands at the start of every pair it is in."""
    return len(word) == 1 and is_unspaced(word)


def _phrase(word: str) -> str:
    quoted = '"{}"'.format(word.replace('"', '""'))
    return f"{quoted} *" if _is_prefix(word) else quoted


def _posting_count(connection: apsw.Connection, word: str) -> int:
    """Return in how many pages a word occurs, at most; the rarest of its tokens decides."""
    if _is_prefix(word):
        upper = chr(ord(word) + 1)
        sql = "SELECT coalesce(sum(doc), 0) FROM page_vocabulary WHERE term >= ? AND term < ?"
        return int(connection.execute(sql, (word, upper)).get)
    name, options = _TOKENIZER
    tokenize = connection.fts5_tokenizer(name, options)
    tokens = tokenize(word.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False)
    if not tokens:
        return 0
    counts = [
        connection.execute("SELECT doc FROM page_vocabulary WHERE term = ?", (token,)).get or 0 for token in tokens
    ]
    return min(counts)
