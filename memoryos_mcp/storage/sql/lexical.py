"""Keyword search over pages. The cost of a search is limited even for common words."""

from collections.abc import Mapping, Sequence
from itertools import combinations

from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.mapping import newest_seq
from memoryos_mcp.storage.values import WordHit, WordMatches

# The maximum number of postings (pairs of a word and a page) that are read for a query, starting with the rarest words.
# Reading a posting takes half a microsecond.
POSTING_BUDGET = 10_000
# Limits that apply if even the rarest word exceeds the budget: the number of words that are searched for, and the
# number of their postings that are read.
COMMON_WORDS = 4
COMMON_BUDGET = 200_000


def search(connection: Connection, counts: Mapping[str, int], limit: int) -> list[WordHit]:
    """Return at most ``limit`` pages that contain at least one of the words, best first; see `Index.search_words`.

    ``counts`` maps each word to the number of pages that contain the word.
    """
    words = within_budget(counts)
    if not words:
        return _search_common(connection, counts, limit)
    return [WordHit(seq, score) for seq, score in connection.words.best(words, limit)]


def matches(connection: Connection, counts: Mapping[str, int], seqs: Sequence[int]) -> WordMatches:
    """Return which words each of the given pages contains; see `Index.word_matches`.

    The user's and the assistant's text are examined separately. Only the words that `within_budget` chooses are used.
    """
    words = within_budget(counts)
    user, agent = connection.words.sides_with(words, seqs)
    return WordMatches(words, user=user, agent=agent)


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


def _search_common(connection: Connection, counts: Mapping[str, int], limit: int) -> list[WordHit]:
    """Return at most ``limit`` pages that contain any of the `COMMON_WORDS` rarest words in ``counts``.

    Pages that contain more of these words come first. Of the pages that contain the same words, newer ones come first.
    If the words are very common, only the newest pages are searched.

    This function is called if all words are common. A search with BM25 would then take tens of milliseconds, because it
    reads the index entries of all pages that contain the words.
    """
    words = [word for _, word in sorted((count, word) for word, count in counts.items() if count)[:COMMON_WORDS]]
    newest = newest_seq(connection)
    found: dict[int, float] = {}
    for held in range(len(words), 0, -1):
        for together in combinations(words, held):
            share = COMMON_BUDGET / sum(counts[word] for word in together)
            after_seq = int(newest * (1 - min(1.0, share)))
            for seq in connection.words.newest_with(together, after_seq, limit):
                found.setdefault(seq, float(held))
        if len(found) >= limit:
            break
    return [WordHit(seq, score) for seq, score in found.items()][:limit]
