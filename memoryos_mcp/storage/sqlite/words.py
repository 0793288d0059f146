"""The word index on SQLite's full-text search (FTS5)."""

import json
import threading
from collections.abc import Callable, Sequence

import apsw

from memoryos_mcp.text.terms import index_forms, index_text, is_prefix

TYPE_CHECKING = False  # `reading_alone` must not import NumPy or typing
if TYPE_CHECKING:
    from typing import Any

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
        """Return an upper limit on the number of pages that contain each word.

        The index may contain several forms of a word, and the tokenizer may split a form into several tokens. For each
        form, the pages that contain its rarest token are counted. The limit is the sum of these counts.
        """
        forms = {word: [tokenize(self._connection, form) for form in index_forms(word)] for word in words}
        tokens = {token for of_word in forms.values() for form in of_word for token in form}
        sql = "SELECT term, doc FROM page_vocabulary WHERE term IN (SELECT value FROM json_each(?))"
        pages = dict(self._connection.execute(sql, (json.dumps([*tokens]),)))
        return [
            self._prefix_limit(word)
            if is_prefix(word)
            else sum(min((pages.get(token, 0) for token in form), default=0) for form in forms[word])
            for word in words
        ]

    def count_after(self, word: str, seq: int) -> int:
        sql = "SELECT count(*) FROM page_words WHERE page_words MATCH ? AND rowid > ?"
        return int(self._connection.execute(sql, (_phrase(word), seq)).get)

    def best(self, words: Sequence[str], limit: int) -> list[tuple[int, float]]:
        sql = (
            "SELECT rowid, bm25(page_words, 1.0, 1.0) AS badness FROM page_words WHERE page_words MATCH ? "
            "ORDER BY badness, rowid DESC LIMIT ?"
        )
        any_of = " OR ".join(map(_phrase, words))
        seqs, badnesses = columns(self._connection, sql, (any_of, limit), values=["rowid", "badness"])
        return [(seq, -badness) for seq, badness in zip(seqs, badnesses, strict=True)]

    def newest_with(self, words: Sequence[str], after_seq: int, limit: int) -> list[int]:
        sql = "SELECT rowid FROM page_words WHERE page_words MATCH ? AND rowid > ? ORDER BY rowid DESC LIMIT ?"
        all_of = " AND ".join(map(_phrase, words))
        return self._seqs(sql, all_of, after_seq, limit)

    def sides_with(self, words: Sequence[str], seqs: Sequence[int]) -> "NDArray[np.bool_]":
        import numpy as np

        found = np.zeros((2, len(seqs), len(words)), dtype=np.bool_)
        sql = "SELECT rowid FROM page_words WHERE page_words MATCH ?"
        for side, column in enumerate(_SIDES):
            for number, word in enumerate(words):
                found[side, :, number] = np.isin(seqs, self._seqs(sql, f"{{{column}}} : {_phrase(word)}"))
        return found

    def _seqs(self, sql: str, *bindings: "str | int") -> list[int]:
        seqs: list[int] = columns(self._connection, sql, bindings, values=["rowid"])[0]
        return seqs

    def _prefix_limit(self, prefix: str) -> int:
        sql = "SELECT coalesce(sum(doc), 0) FROM page_vocabulary WHERE term >= ? AND term < ?"
        return int(self._connection.execute(sql, (prefix, chr(ord(prefix) + 1))).get)


def columns(
    connection: apsw.Connection,
    query: str,
    bindings: "Sequence[object]",
    *,
    values: Sequence[str],
    blobs: Sequence[str] = (),
) -> "list[Any]":
    """Return the result of a query as columns; see `storage.sql.connection.Connection`.

    SQLite joins all values into one row. Otherwise, the library would release and take Python's global lock for each
    row, which takes longer than reading the row if many threads are at work.
    """
    packed = [f"json_group_array({name})" for name in values]
    packed += [f"CAST(group_concat({name}, '') AS BLOB)" for name in blobs]
    row: Any = connection.execute(f"SELECT {', '.join(packed)} FROM ({query})", bindings).fetchall()[0]  # noqa: S608
    return [json.loads(text) for text in row[: len(values)]] + [joined or b"" for joined in row[len(values) :]]


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
