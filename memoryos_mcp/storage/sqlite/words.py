"""The word index on SQLite's full-text search (FTS5)."""

import threading
from collections.abc import Callable, Sequence

import apsw

from memoryos_mcp.text.terms import index_forms, index_text, is_prefix

TYPE_CHECKING = False  # `reading_alone` must not import NumPy or typing
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2", "categories", "L* N* Co Mn Mc"])
_SIDES = ("user_input", "agent_response")


class FtsWords:
    """The word index of one file. Implements `WordIndex`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def add_newest(self, user_input: str, agent_response: str) -> None:
        self.add_many([(self._connection.last_insert_rowid(), user_input, agent_response)])

    def add_many(self, pages: Sequence[tuple[int, str, str]]) -> None:
        sql = "INSERT INTO page_words (rowid, user_input, agent_response) VALUES (?, ?, ?)"
        for seq, user_input, agent_response in pages:
            self._connection.execute(sql, (seq, index_text(user_input), index_text(agent_response)))

    def remove_going(self) -> None:
        self._connection.execute("DELETE FROM page_words WHERE rowid IN (SELECT seq FROM going)")

    def optimise(self) -> None:
        self._connection.execute("INSERT INTO page_words (page_words) VALUES ('optimize')")

    def expect(self, words: Sequence[str], postings: int) -> None:
        pass  # the file is read directly

    def has(self, word: str) -> bool:
        sql = "SELECT EXISTS (SELECT 1 FROM page_words WHERE page_words MATCH ?)"
        return bool(self._connection.execute(sql, (_phrase(word),)).get)

    def limits(self, words: Sequence[str]) -> list[int]:
        return [self._limit(word) for word in words]

    def count_after(self, word: str, seq: int) -> int:
        sql = "SELECT count(*) FROM page_words WHERE page_words MATCH ? AND rowid > ?"
        return int(self._connection.execute(sql, (_phrase(word), seq)).get)

    def best(self, words: Sequence[str], limit: int) -> list[tuple[int, float]]:
        sql = (
            "SELECT rowid, bm25(page_words, 1.0, 1.0) AS badness FROM page_words WHERE page_words MATCH ? "
            "ORDER BY badness, rowid DESC LIMIT ?"
        )
        any_of = " OR ".join(map(_phrase, words))
        return [(seq, -badness) for seq, badness in self._connection.execute(sql, (any_of, limit))]

    def newest_with(self, words: Sequence[str], after_seq: int, limit: int) -> list[int]:
        sql = "SELECT rowid FROM page_words WHERE page_words MATCH ? AND rowid > ? ORDER BY rowid DESC LIMIT ?"
        all_of = " AND ".join(map(_phrase, words))
        return [seq for (seq,) in self._connection.execute(sql, (all_of, after_seq, limit))]

    def sides_with(self, words: Sequence[str], seqs: Sequence[int]) -> "NDArray[np.bool_]":
        import numpy as np

        places = {seq: place for place, seq in enumerate(seqs)}
        found = np.zeros((2, len(seqs), len(words)), dtype=np.bool_)
        sql = "SELECT rowid FROM page_words WHERE page_words MATCH ?"
        for side, column in enumerate(_SIDES):
            for number, word in enumerate(words):
                for (seq,) in self._connection.execute(sql, (f"{{{column}}} : {_phrase(word)}",)):
                    if (place := places.get(seq)) is not None:
                        found[side, place, number] = True
        return found

    def _limit(self, word: str) -> int:
        """Return an upper limit on the number of pages that contain a word.

        The index may contain several forms of a word, and the tokenizer may split a form into several tokens. For each
        form, the pages that contain its rarest token are counted. The limit is the sum of these counts.
        """
        if is_prefix(word):
            sql = "SELECT coalesce(sum(doc), 0) FROM page_vocabulary WHERE term >= ? AND term < ?"
            return int(self._connection.execute(sql, (word, chr(ord(word) + 1))).get)
        sql = "SELECT doc FROM page_vocabulary WHERE term = ?"
        return sum(
            min((self._connection.execute(sql, (token,)).get or 0 for token in tokens), default=0)
            for tokens in (tokenize(self._connection, form) for form in index_forms(word))
        )


def tokenize(connection: apsw.Connection, text: str) -> list[str]:
    """Split a text into tokens, as the word index does."""
    name, options = _TOKENIZER
    tokens = connection.fts5_tokenizer(name, options)(
        text.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False
    )
    return list(map(str, tokens))


def _phrase(word: str) -> str:
    """Return the FTS5 query for pages that contain any indexed form of a word."""
    quoted = ['"{}"'.format(form.replace('"', '""')) for form in index_forms(word)]
    if is_prefix(word):
        return f"{quoted[0]} *"
    return quoted[0] if len(quoted) == 1 else f"({' OR '.join(quoted)})"


def tokenizer() -> Callable[[str], list[str]]:
    """Return a function that splits a text into tokens, as the word index does. It is safe to share between threads."""
    local = threading.local()

    def split(text: str) -> list[str]:
        if not hasattr(local, "connection"):
            local.connection = apsw.Connection(":memory:")
        return tokenize(local.connection, text)

    return split
