"""Keyword search over pages with FTS5. The cost of a search is limited even for common words."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import apsw
import numpy as np

from memoryos_mcp.storage.sqlite.mapping import newest_seq
from memoryos_mcp.storage.sqlite.term_stats import index_names, phrase
from memoryos_mcp.storage.values import WordHit, WordMatches
from memoryos_mcp.text.terms import index_text

# The maximum number of postings (pairs of a word and a page) that are read for a query, starting with the rarest words.
# Reading a posting takes half a microsecond.
POSTING_BUDGET = 10_000
# If even the rarest word exceeds the budget: how many words are searched, and how many of their postings are read.
COMMON_WORDS = 4
COMMON_BUDGET = 200_000


def index_page(connection: apsw.Connection, seq: int, user_input: str, agent_response: str) -> None:
    """Add a page's words to the word index, and count the names in the page. The caller opens the transaction."""
    connection.execute(
        "INSERT INTO page_words (rowid, user_input, agent_response) VALUES (?, ?, ?)",
        (seq, index_text(user_input), index_text(agent_response)),
    )
    index_names(connection, user_input, agent_response)


def search(connection: apsw.Connection, counts: Mapping[str, int], limit: int) -> list[WordHit]:
    """Return at most ``limit`` pages that contain at least one of the words, best first; see `Index.search_words`.

    The words are the keys of ``counts``. The values are the numbers of pages that contain each word.
    """
    words = within_budget(counts)
    if not words:
        return _search_common(connection, counts, limit)
    rows = connection.execute(
        "SELECT rowid, bm25(page_words, 1.0, 1.0) AS badness FROM page_words WHERE page_words MATCH ? "
        "ORDER BY badness, rowid DESC LIMIT ?",
        (any_of(words), limit),
    )
    return [WordHit(seq=seq, score=-badness) for seq, badness in rows]


def matches(connection: apsw.Connection, counts: Mapping[str, int], seqs: Sequence[int]) -> WordMatches:
    """Return which words each of the given pages contains; see `Index.word_matches`.

    The user's and the assistant's text are examined separately. Only the words that `within_budget` chooses are used.
    """
    words = within_budget(counts)
    places = {seq: place for place, seq in enumerate(seqs)}
    found = np.zeros((2, len(seqs), len(words)), dtype=np.bool_)
    for side, column in enumerate(("user_input", "agent_response")):
        for number, word in enumerate(words):
            expression = f"{{{column}}} : {phrase(word)}"
            for (seq,) in connection.execute("SELECT rowid FROM page_words WHERE page_words MATCH ?", (expression,)):
                if (place := places.get(seq)) is not None:
                    found[side, place, number] = True
    return WordMatches(words, user=found[0], agent=found[1])


def optimise(connection: apsw.Connection) -> None:
    """Merge the FTS5 segments of the word index. This removes the words of deleted pages."""
    connection.execute("INSERT INTO page_words (page_words) VALUES ('optimize')")


def within_budget(counts: Mapping[str, int]) -> list[str]:
    """Return the rarest words that together have at most `POSTING_BUDGET` postings.

    A word has one posting for each page that contains it. Words that no page contains are left out.
    """
    chosen: list[str] = []
    left = POSTING_BUDGET
    for count, word in sorted((count, word) for word, count in counts.items() if count):
        left -= count
        if left < 0:
            break
        chosen.append(word)
    return chosen


def any_of(words: Sequence[str]) -> str:
    """Return the FTS5 query for pages that contain any of the words; ``words`` must not be empty."""
    return " OR ".join(map(phrase, words))


def _search_common(connection: apsw.Connection, counts: Mapping[str, int], limit: int) -> list[WordHit]:
    """Return at most ``limit`` pages that contain any of the `COMMON_WORDS` rarest words.

    Pages that contain more of these words come first. Of the pages that contain the same words, newer ones come first.
    If the words are very common, only the newest pages are searched.

    This function is used if all words are common. A search with BM25 would read the index entries of all pages that
    contain these words, which takes tens of milliseconds.
    """
    words = [word for _, word in sorted((count, word) for word, count in counts.items() if count)[:COMMON_WORDS]]
    newest = newest_seq(connection)
    found: dict[int, float] = {}
    for held in range(len(words), 0, -1):
        for together in combinations(words, held):
            share = COMMON_BUDGET / sum(counts[word] for word in together)
            rows = connection.execute(
                "SELECT rowid FROM page_words WHERE page_words MATCH ? AND rowid > ? ORDER BY rowid DESC LIMIT ?",
                (" AND ".join(map(phrase, together)), int(newest * (1 - min(1.0, share))), limit),
            )
            for (seq,) in rows:
                found.setdefault(seq, float(held))
        if len(found) >= limit:
            break
    return [WordHit(seq, score) for seq, score in found.items()][:limit]
