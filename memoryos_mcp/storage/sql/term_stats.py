"""Term statistics: the number of pages that contain each word, and the names of the user and the assistant."""

import json
import threading
from collections.abc import Sequence
from typing import Literal

from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.forget_plans import FORGET_EPOCH
from memoryos_mcp.storage.sql.lexical import POSTING_BUDGET
from memoryos_mcp.storage.sql.mapping import NEWEST_SEQ, all_rows
from memoryos_mcp.storage.values import TermStats
from memoryos_mcp.text.addressees import is_called
from memoryos_mcp.text.terms import is_prefix

WORDS_AT_MOST = 64
# Counts of at least this many pages are cached, because counting takes 30 ns for each page.
REMEMBERED_FROM = 1_000
REMEMBERED_WORDS = 10_000
# A word is a name if at least this many pages use it to address the user or the assistant, and at least this share of
# the pages that contain the word.
ADDRESSED_AT_LEAST = 3
ADDRESSED_SHARE = 0.5
# A name is the name of only one side if the other side uses it at least this many times as often as this side does.
ONE_SIDED = 2
# A name is shown for a side if at least this share of all pages use it. In addition, at least CALLS_AT_LEAST of the
# newest CALLS_READ pages with the word must clearly use it as a name, because other words occur in the same positions.
CALLED_SHARE = 0.03
CALLS_READ = 20
CALLS_AT_LEAST = 2
NAMES_TRIED = 5
_NAMES = (
    "SELECT name, pages, called_by_user, called_by_agent FROM names "
    "WHERE name IN (SELECT CAST(value AS TEXT) FROM json_each(?))"
)
# For each side: the names that it calls the other side, most used first, and the texts of the given pages.
_SAID_BY = {
    "user": (
        "SELECT name, pages FROM names WHERE called_by_user >= ?1 AND called_by_user > ?2 * called_by_agent "
        "ORDER BY called_by_user DESC, name LIMIT ?3",
        "SELECT user_input FROM pages WHERE seq IN (SELECT value FROM json_each(?))",
    ),
    "agent": (
        "SELECT name, pages FROM names WHERE called_by_agent >= ?1 AND called_by_agent > ?2 * called_by_user "
        "ORDER BY called_by_agent DESC, name LIMIT ?3",
        "SELECT agent_response FROM pages WHERE seq IN (SELECT value FROM json_each(?))",
    ),
}


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

    def unknown(self, words: Sequence[str]) -> list[str]:
        """Return the words whose counts are not cached."""
        with self._lock:
            return [word for word in words if word not in self._known]

    def count(self, connection: Connection, words: Sequence[str], newest: int) -> dict[str, int]:
        """Return an upper limit on the number of pages that contain each word.

        The words must be in the form that `text.terms.words` returns. ``newest`` is the ``seq`` of the newest page that
        the connection can read.
        """
        with self._lock:
            known = {word: self._known[word] for word in words if word in self._known}
        counts = {word: count for word, (count, seq) in known.items() if seq == newest}
        for word, (count, seq) in known.items():
            if seq < newest:
                counts[word] = count + connection.words.count_after(word, seq)
        unknown = [word for word in dict.fromkeys(words) if word not in counts]
        if unknown:
            counts |= zip(unknown, connection.words.limits(unknown), strict=True)
        common = {word: (count, newest) for word, count in counts.items() if count >= REMEMBERED_FROM}
        with self._lock:
            if len(self._known) + len(common) > REMEMBERED_WORDS:
                self._known.clear()
            self._known |= {word: found for word, found in common.items() if word.isalnum() and not is_prefix(word)}
        return counts

    def called(self, connection: Connection, newest: int) -> tuple[str | None, str | None]:
        """Return the names by which the user and the assistant are most often addressed, in this order.

        Each name begins with a capital letter. A name is None if it is unknown.
        """
        with self._lock:
            known = self._called
        if known is None or known[0] != newest:
            least = max(ADDRESSED_AT_LEAST, CALLED_SHARE * newest)
            # Both statements are sent before the first result is read; see `PostgresConnection`.
            by_agent, by_user = (
                connection.execute(_SAID_BY[side][0], (least, ONE_SIDED, NAMES_TRIED)) for side in ("agent", "user")
            )
            known = (
                newest,
                _called(connection, self, newest, "agent", by_agent.fetchall()),
                _called(connection, self, newest, "user", by_user.fetchall()),
            )
            with self._lock:
                self._called = known
        return known[1], known[2]


def term_stats(connection: Connection, words: Sequence[str], names: Sequence[str], counts: WordCounts) -> TermStats:
    """Return statistics about ``words``, and which of ``names`` are names of the user or the assistant.

    `Index.search_words` describes the arguments.
    """
    words, names = words[:WORDS_AT_MOST], names[:WORDS_AT_MOST]
    # All statements are sent before the first result is read; see `PostgresConnection`.
    connection.words.expect(counts.unknown([*words, *names]), POSTING_BUDGET)
    newest_row = connection.execute(NEWEST_SEQ)
    epoch_row = connection.execute(FORGET_EPOCH)
    name_rows = connection.execute(_NAMES, (json.dumps(names),)) if names else ()
    newest = int(newest_row.get)
    counts.keep_if(int(epoch_row.get))
    called_user, called_agent = set(), set()
    found = counts.count(connection, [*words, *names], newest)
    for name, pages, by_user, by_agent in name_rows:
        if pages >= ADDRESSED_AT_LEAST and pages >= ADDRESSED_SHARE * found[name]:
            # A name that mainly one side uses is the name of the other side. A name that both use may be the name of
            # either.
            if by_user < ONE_SIDED * by_agent:
                called_user.add(name)
            if by_agent < ONE_SIDED * by_user:
                called_agent.add(name)
    searched = {word: found[word] for word in words}
    return TermStats(
        newest, searched, frozenset(called_user), frozenset(called_agent), *counts.called(connection, newest)
    )


def _called(
    connection: Connection,
    counts: WordCounts,
    newest: int,
    by: Literal["user", "agent"],
    candidates: Sequence[tuple[str, int]],
) -> str | None:
    """Return the name by which the user or the assistant most often addresses the other; None if no name is known.

    The name begins with a capital letter. ``by`` is the one who uses the name. ``candidates`` contains the names
    that ``by`` uses most, each with its number of pages.
    """
    _, texts_sql = _SAID_BY[by]
    limits = counts.count(connection, [name for name, _ in candidates], newest)
    for name, pages in candidates:
        if pages < ADDRESSED_SHARE * limits[name]:
            continue
        written = str(name).capitalize()
        newest_with = connection.words.newest_with([name], 0, CALLS_READ)
        texts = all_rows(connection, texts_sql, json.dumps(newest_with))
        if sum(is_called(str(text), written) for (text,) in texts) >= CALLS_AT_LEAST:
            return written
    return None
