"""Word search over pages with SQLite's FTS5, at a cost that does not grow with the commonest word."""

import threading
from collections.abc import Mapping, Sequence

import apsw

from memoryos_mcp.names import addressed
from memoryos_mcp.storage import Lexicon, WordHit
from memoryos_mcp.terms import index_text, is_unspaced

# Postings read per query, rarest words first; ranking them costs about half a microsecond each.
POSTING_BUDGET = 10_000
WORDS_AT_MOST = 64
# Words that are all over the budget: how many of them are looked for together, and in how many of their postings.
COMMON_WORDS = 4
COMMON_BUDGET = 200_000
# A count takes 30 ns a posting; what is counted once is counted on from there.
REMEMBERED_FROM = 1_000
REMEMBERED_WORDS = 10_000
# A name is what is used as one: in so many pages at least, in such a share of the pages that hold the word.
ADDRESSED_AT_LEAST = 3
ADDRESSED_SHARE = 0.5
# Whose name it is shows in who says it so much more often.
ONE_SIDED = 2

_TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2", "categories", "L* N* Co Mn Mc"])


def index_page(connection: apsw.Connection, seq: int, user_input: str, agent_response: str) -> None:
    """Add a page to the word index, inside the caller's transaction."""
    connection.execute(
        "INSERT INTO page_words (rowid, user_input, agent_response) VALUES (?, ?, ?)",
        (seq, index_text(user_input), index_text(agent_response)),
    )
    index_names(connection, user_input, agent_response)


def index_names(connection: apsw.Connection, user_input: str, agent_response: str) -> None:
    """Count whom the sides of a page address, inside the caller's transaction."""
    by_user, by_agent = addressed(user_input), addressed(agent_response)
    connection.executemany(
        "INSERT INTO names VALUES (?1, 1, ?2, ?3) ON CONFLICT DO UPDATE SET pages = pages + 1, "
        "called_by_user = called_by_user + ?2, called_by_agent = called_by_agent + ?3",
        [(name, name in by_user, name in by_agent) for name in sorted(by_user | by_agent)],
    )


class WordCounts:
    """In how many pages words occur. Remembers common ones, whose counting takes long, and counts on from there.

    Safe to share between threads; every answer is of the state that its connection reads.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, int]] = {}
        self._lock = threading.Lock()

    def count(self, connection: apsw.Connection, word: str, newest: int) -> int:
        """Return in how many pages a word occurs, at most; the rarest of its tokens decides.

        Args:
            connection: Reads the pages.
            word: Lower-cased, or a piece of unspaced script.
            newest: The last page that the connection sees.
        """
        with self._lock:
            known = self._known.get(word)
        if known is None or known[1] > newest:
            count = _posting_count(connection, word)
        else:
            sql = "SELECT count(*) FROM page_words WHERE page_words MATCH ? AND rowid > ?"
            count = known[0] + int(connection.execute(sql, (_phrase(word), known[1])).get)
        if count >= REMEMBERED_FROM and word.isalnum() and not _is_prefix(word):
            with self._lock:
                if len(self._known) >= REMEMBERED_WORDS:
                    self._known.clear()
                self._known[word] = (count, newest)
        return count


def lexicon(connection: apsw.Connection, words: Sequence[str], names: Sequence[str], counts: WordCounts) -> Lexicon:
    """Return what the word index knows of a query's words, and which of ``names`` the sides call each other by."""
    newest = int(connection.execute("SELECT coalesce(max(seq), 0) FROM pages").get)
    called_user, called_agent = set(), set()
    for name in names[:WORDS_AT_MOST]:
        row = connection.execute("SELECT pages, called_by_user, called_by_agent FROM names WHERE name = ?", (name,))
        pages, by_user, by_agent = row.get or (0, 0, 0)
        if pages < ADDRESSED_AT_LEAST or pages < ADDRESSED_SHARE * counts.count(connection, name, newest):
            continue
        if by_agent >= ONE_SIDED * by_user:
            called_user.add(name)
        if by_user >= ONE_SIDED * by_agent:
            called_agent.add(name)
        if not {name} & (called_user | called_agent):
            called_user.add(name)
            called_agent.add(name)
    found = {word: counts.count(connection, word, newest) for word in words[:WORDS_AT_MOST]}
    return Lexicon(newest, found, frozenset(called_user), frozenset(called_agent))


def search(connection: apsw.Connection, counts: Mapping[str, int], limit: int) -> list[WordHit]:
    """Return at most ``limit`` pages that hold any of the words, best first.

    Args:
        connection: Reads the pages.
        counts: In how many pages each word occurs.
        limit: How many at most.
    """
    rarest_first = sorted((count, word) for word, count in counts.items() if count)
    expression = match_expression(rarest_first)
    if expression is None:
        return _search_common(connection, rarest_first, limit)
    rows = connection.execute(
        "SELECT rowid, bm25(page_words, 1.0, 1.0) AS badness FROM page_words WHERE page_words MATCH ? "
        "ORDER BY badness, rowid DESC LIMIT ?",
        (expression, limit),
    )
    return [WordHit(seq=seq, score=-badness) for seq, badness in rows]


def match_expression(rarest_first: Sequence[tuple[int, str]]) -> str | None:
    """Return the FTS5 query for any of the words that fit the posting budget; None if none does."""
    chosen: list[str] = []
    left = POSTING_BUDGET
    for count, word in rarest_first:
        left -= count
        if left < 0:
            break
        chosen.append(_phrase(word))
    return " OR ".join(chosen) or None


def _search_common(connection: apsw.Connection, rarest_first: Sequence[tuple[int, str]], limit: int) -> list[WordHit]:
    """Return the newest pages that hold as many as possible of words that are all common; the more, the better.

    BM25 would count every posting of every word for it, which takes tens of milliseconds in a large memory.
    """
    words = [word for _, word in rarest_first[:COMMON_WORDS]]
    newest = int(connection.execute("SELECT coalesce(max(seq), 0) FROM pages").get)
    found: dict[int, float] = {}
    for held in range(len(words), 0, -1):
        cost = rarest_first[0][0] * held
        oldest = int(newest * (1 - min(1.0, COMMON_BUDGET / cost)))
        rows = connection.execute(
            "SELECT rowid FROM page_words WHERE page_words MATCH ? AND rowid > ? ORDER BY rowid DESC LIMIT ?",
            (" AND ".join(map(_phrase, words[:held])), oldest, limit),
        )
        for (seq,) in rows:
            found.setdefault(seq, float(held))
        if len(found) >= limit:
            break
    return [WordHit(seq, score) for seq, score in found.items()][:limit]


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
