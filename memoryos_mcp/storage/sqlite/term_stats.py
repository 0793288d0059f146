"""Term statistics: in how many pages each word occurs, and what the user and the assistant call each other."""

import threading
from collections.abc import Sequence
from typing import Any, Literal

import apsw

from memoryos_mcp.storage.sqlite.mapping import newest_seq
from memoryos_mcp.storage.values import TermStats
from memoryos_mcp.text.addressees import addressed, is_called
from memoryos_mcp.text.terms import index_forms, is_unspaced

WORDS_AT_MOST = 64
# Counts from this number of pages upwards are cached; counting takes 30 ns for each page.
REMEMBERED_FROM = 1_000
REMEMBERED_WORDS = 10_000
# A word is a name if at least this many pages use it to address the user or the assistant, and at least this share of
# the pages that contain the word.
ADDRESSED_AT_LEAST = 3
ADDRESSED_SHARE = 0.5
# A name belongs to only one side if the other side uses the name at least this many times as often.
ONE_SIDED = 2
# A name is shown for a side if at least this share of all pages use it. In addition, at least CALLS_AT_LEAST of the
# newest CALLS_READ pages with the word must clearly use it as a name, because other words occur in the same positions.
CALLED_SHARE = 0.03
CALLS_READ = 20
CALLS_AT_LEAST = 2
NAMES_TRIED = 5
# Two queries for each side: the names that it calls the other side, most used first, and its newest texts with a word.
_SAID_BY = {
    "user": (
        "SELECT name, pages FROM names WHERE called_by_user >= ?1 AND called_by_user > ?2 * called_by_agent "
        "ORDER BY called_by_user DESC LIMIT ?3",
        "SELECT user_input FROM pages WHERE seq IN "
        "(SELECT rowid FROM page_words WHERE page_words MATCH ? ORDER BY rowid DESC LIMIT ?)",
    ),
    "agent": (
        "SELECT name, pages FROM names WHERE called_by_agent >= ?1 AND called_by_agent > ?2 * called_by_user "
        "ORDER BY called_by_agent DESC LIMIT ?3",
        "SELECT agent_response FROM pages WHERE seq IN "
        "(SELECT rowid FROM page_words WHERE page_words MATCH ? ORDER BY rowid DESC LIMIT ?)",
    ),
}

_TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2", "categories", "L* N* Co Mn Mc"])


def index_names(connection: apsw.Connection, user_input: str, agent_response: str) -> None:
    """Count the names that user and assistant call each other in a new page. The caller opens the transaction."""
    by_user, by_agent = addressed(user_input), addressed(agent_response)
    connection.executemany(
        "INSERT INTO names VALUES (?1, 1, ?2, ?3) ON CONFLICT DO UPDATE SET pages = pages + 1, "
        "called_by_user = called_by_user + ?2, called_by_agent = called_by_agent + ?3",
        [(name, name in by_user, name in by_agent) for name in sorted(by_user | by_agent)],
    )


def unindex_names(connection: apsw.Connection, user_input: str, agent_response: str) -> None:
    """Undo the effect of `index_names` for a page. The caller opens the transaction.

    A name whose count becomes 0 is not deleted.
    """
    by_user, by_agent = addressed(user_input), addressed(agent_response)
    connection.executemany(
        "UPDATE names SET pages = pages - 1, called_by_user = called_by_user - ?2, "
        "called_by_agent = called_by_agent - ?3 WHERE name = ?1",
        [(name, name in by_user, name in by_agent) for name in sorted(by_user | by_agent)],
    )


def has_word(connection: apsw.Connection, word: str) -> bool:
    """Return whether any form of a word occurs in any page."""
    sql = "SELECT EXISTS (SELECT 1 FROM page_words WHERE page_words MATCH ?)"
    return bool(connection.execute(sql, (phrase(word),)).get)


class WordCounts:
    """Counts the pages that contain a word, and caches the counts of common words. Safe to share between threads."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, int]] = {}
        self._called: tuple[int, str | None, str | None] | None = None
        self._forget_epoch = 0
        self._lock = threading.Lock()

    def keep_if(self, forget_epoch: int) -> None:
        """Clear the cache if the forget epoch has changed, because the counts may include forgotten pages."""
        with self._lock:
            if forget_epoch != self._forget_epoch:
                self._known, self._called, self._forget_epoch = {}, None, forget_epoch

    def count(self, connection: apsw.Connection, word: str, newest: int) -> int:
        """Return an upper limit on the number of pages that contain a word.

        ``word`` must be in the form that `text.terms.words` returns. ``newest`` is the ``seq`` of the newest page that
        the connection can read.
        """
        with self._lock:
            known = self._known.get(word)
        if known is None or known[1] > newest:
            count = _posting_count(connection, word)
        elif known[1] == newest:
            return known[0]
        else:
            sql = "SELECT count(*) FROM page_words WHERE page_words MATCH ? AND rowid > ?"
            count = known[0] + int(connection.execute(sql, (phrase(word), known[1])).get)
        if count >= REMEMBERED_FROM and word.isalnum() and not _is_prefix(word):
            with self._lock:
                if len(self._known) >= REMEMBERED_WORDS:
                    self._known.clear()
                self._known[word] = (count, newest)
        return count

    def called(self, connection: apsw.Connection, newest: int) -> tuple[str | None, str | None]:
        """Return the most common name of the user and the most common name of the assistant.

        Each name begins with a capital letter. An unknown name is None.
        """
        with self._lock:
            known = self._called
        if known is None or known[0] != newest:
            known = (newest, _called(connection, self, newest, "agent"), _called(connection, self, newest, "user"))
            with self._lock:
                self._called = known
        return known[1], known[2]


def term_stats(
    connection: apsw.Connection, words: Sequence[str], names: Sequence[str], counts: WordCounts
) -> TermStats:
    """Return statistics about ``words``, and which of ``names`` are names of the user or the assistant.

    `Index.search_words` describes the arguments.
    """
    newest = newest_seq(connection)
    counts.keep_if(int(connection.execute("SELECT count(*) FROM forget_receipts").get))
    called_user, called_agent = set(), set()
    for name in names[:WORDS_AT_MOST]:
        row = connection.execute("SELECT pages, called_by_user, called_by_agent FROM names WHERE name = ?", (name,))
        pages, by_user, by_agent = row.get or (0, 0, 0)
        if pages >= ADDRESSED_AT_LEAST and pages >= ADDRESSED_SHARE * counts.count(connection, name, newest):
            # A name that one side uses belongs to the other side; a name that both use may belong to either.
            if by_user < ONE_SIDED * by_agent:
                called_user.add(name)
            if by_agent < ONE_SIDED * by_user:
                called_agent.add(name)
    found = {word: counts.count(connection, word, newest) for word in words[:WORDS_AT_MOST]}
    return TermStats(newest, found, frozenset(called_user), frozenset(called_agent), *counts.called(connection, newest))


def _called(connection: apsw.Connection, counts: WordCounts, newest: int, by: Literal["user", "agent"]) -> str | None:
    """Return the name that one side most often calls the other side; None if no name is known.

    ``by`` is the side that uses the name. The name begins with a capital letter.
    """
    candidates_sql, texts_sql = _SAID_BY[by]
    least = max(ADDRESSED_AT_LEAST, CALLED_SHARE * newest)
    candidates: list[tuple[Any, ...]] = connection.execute(candidates_sql, (least, ONE_SIDED, NAMES_TRIED)).fetchall()
    for name, pages in candidates:
        if pages < ADDRESSED_SHARE * counts.count(connection, name, newest):
            continue
        written = str(name).capitalize()
        texts = connection.execute(texts_sql, (phrase(name), CALLS_READ))
        if sum(is_called(str(text), written) for (text,) in texts) >= CALLS_AT_LEAST:
            return written
    return None


def phrase(word: str) -> str:
    """Return the FTS5 query for pages that contain any indexed form of a word."""
    quoted = ['"{}"'.format(form.replace('"', '""')) for form in index_forms(word)]
    if _is_prefix(word):
        return f"{quoted[0]} *"
    return quoted[0] if len(quoted) == 1 else f"({' OR '.join(quoted)})"


def _is_prefix(word: str) -> bool:
    """Return whether a word is a single character of a script without spaces.

    Such scripts are indexed as pairs of characters. A single character matches all pairs that begin with it.
    """
    return len(word) == 1 and is_unspaced(word)


def _posting_count(connection: apsw.Connection, word: str) -> int:
    """Return an upper limit on the number of pages that contain a word.

    The index may contain several forms of a word, and the tokenizer may split a form into several tokens. For each
    form, the pages that contain its rarest token are counted. The limit is the sum of these counts.
    """
    if _is_prefix(word):
        upper = chr(ord(word) + 1)
        sql = "SELECT coalesce(sum(doc), 0) FROM page_vocabulary WHERE term >= ? AND term < ?"
        return int(connection.execute(sql, (word, upper)).get)
    name, options = _TOKENIZER
    tokenize = connection.fts5_tokenizer(name, options)
    count = 0
    for form in index_forms(word):
        tokens = tokenize(form.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False)
        sql = "SELECT doc FROM page_vocabulary WHERE term = ?"
        count += min((connection.execute(sql, (token,)).get or 0 for token in tokens), default=0)
    return count
