"""The word index, stored as a table of postings. A posting is a pair of a token and a page that contains the token.

The tokens and scores are the same as in the word index on SQLite, so both indexes rank pages in the same order.
"""

import math
from collections.abc import Callable, Sequence, Set
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.text.terms import index_forms, index_text, is_prefix

if TYPE_CHECKING:
    from memoryos_mcp.storage.postgres.connection import PostgresConnection, PostgresRows

# The parameters of BM25 in FTS5: https://www.sqlite.org/fts5.html#the_bm25_function
K1, B = 1.2, 0.75
LEAST_IDF = 1e-6
# The positions of the tokens in the assistant's text begin at this number.
AGENT_PLACE = 1 << 24
_PLACE = np.dtype("<u4")
# The form in which the database sends a posting: the page's ``seq``, the number of the page's tokens, and the number of
# occurrences of the token.
_POSTING = np.dtype([("seq", ">i8"), ("size", ">i4"), ("count", ">i4")])
_ALL_POSTINGS = (
    "SELECT term, string_agg(int8send(seq) || int4send(size) || int4send(length(places) / 4), '' ORDER BY seq) "
    "FROM postings WHERE term = ANY($1) GROUP BY term"
)
_TOTALS = "SELECT indexed_pages, indexed_tokens FROM counters"
# The number of pages with each token, and the postings of the rarest tokens. These tokens together have at most $2
# postings.
_COUNTED_POSTINGS = f"""
WITH counted AS MATERIALIZED (SELECT term, count(*) AS pages FROM postings WHERE term = ANY($1) GROUP BY term),
totals AS (SELECT term, sum(pages) OVER (ORDER BY pages, term) AS total FROM counted),
rare AS MATERIALIZED (SELECT term FROM totals WHERE total <= $2),
found (term, places) AS ({_ALL_POSTINGS.replace("ANY($1)", "ANY(ARRAY(SELECT term FROM rare))")})
SELECT term, pages, places FROM counted LEFT JOIN found USING (term)
"""  # noqa: S608 - constants


class _Expected:
    """The results of the queries that `PostingWords.expect` has sent. They are read only when needed."""

    def __init__(self, tokens: Set[str], found: "PostgresRows", totals: "PostgresRows") -> None:
        self._tokens = tokens
        self._found, self._totals = found, totals

    @cached_property
    def _rows(self) -> list[tuple[str, int, bytes | None]]:
        return self._found.fetchall()

    def counts(self) -> dict[str, int]:
        """Return, for each token, the number of pages that contain it."""
        return dict.fromkeys(self._tokens, 0) | {token: count for token, count, _ in self._rows}

    def postings(self) -> dict[str, bytes]:
        """Return the encoded postings of each token. Tokens with too many postings are left out."""
        known = {token: found for token, _, found in self._rows if found is not None}
        return dict.fromkeys(self._tokens - {token for token, *_ in self._rows}, b"") | known

    @cached_property
    def totals(self) -> tuple[int, int]:
        """The number of pages in the index, and the number of tokens on these pages."""
        pages, tokens = self._totals.get
        return pages, tokens


class PostingWords:
    """The word index of one user's memory. Implements `WordIndex`."""

    def __init__(self, connection: "PostgresConnection", tokenize: Callable[[str], list[str]]) -> None:
        self._connection = connection
        self._tokenize = tokenize
        self._expected: _Expected | None = None

    def add_newest(self, user_input: str, agent_response: str) -> None:
        self._count(1, self._add(None, user_input, agent_response))

    def add_many(self, pages: Sequence[tuple[int, str, str]]) -> None:
        self._count(len(pages), sum(self._add(*page) for page in pages))

    def _add(self, seq: int | None, user_input: str, agent_response: str) -> int:
        """Add the postings of a page, or of the newest page if ``seq`` is None. Return the number of its tokens."""
        terms, places, size = postings(self._tokenize, user_input, agent_response)
        self._connection.native(
            "INSERT INTO indexed_postings (term, seq, size, places) "
            "SELECT term, coalesce(CAST($4 AS bigint), page), $2, decode(places, 'hex') "
            "FROM counters, unnest(string_to_array($1, ' '), string_to_array($3, ' ')) AS new (term, places)",
            terms,
            size,
            places,
            seq,
        )
        return size

    def index_new(self) -> None:
        """Move the postings of new pages from a separate table into the index, where searches are faster."""
        self._connection.native("SELECT index_postings()")

    def remove_going(self) -> None:
        self.index_new()
        sizes = "SELECT DISTINCT seq, size FROM postings WHERE seq IN (SELECT seq FROM going)"
        pages, tokens = self._connection.native(f"SELECT count(*), coalesce(sum(size), 0) FROM ({sizes}) AS gone").get  # noqa: S608
        wordless = self._connection.native(
            "SELECT count(*) FROM going JOIN pages USING (seq) WHERE NOT EXISTS "
            "(SELECT 1 FROM postings WHERE postings.seq = going.seq)"
        ).get
        self._connection.native("DELETE FROM indexed_postings WHERE seq IN (SELECT seq FROM going)")
        self._count(-pages - wordless, -int(tokens))

    def optimise(self) -> None:
        self.index_new()  # VACUUM does all other maintenance

    def expect(self, words: Sequence[str], postings: int) -> None:
        tokens = {form[0] for word in words if not is_prefix(word) for form in self._forms(word) if len(form) == 1}
        self._expected = _Expected(
            tokens,
            self._connection.native(_COUNTED_POSTINGS, list(tokens), postings),
            self._connection.native(_TOTALS),
        )

    def has(self, word: str) -> bool:
        if is_prefix(word):
            return bool(self._prefix_count(word, after_seq=0))
        return any(len(self._pages(tokens)) for tokens in self._forms(word))

    def limits(self, words: Sequence[str]) -> list[int]:
        forms = {word: self._forms(word) for word in words if not is_prefix(word)}
        tokens = {token for each in forms.values() for form in each for token in form}
        counts = self._expected.counts() if self._expected else {}
        if missing := tokens - counts.keys():
            sql = "SELECT term, count(*) FROM postings WHERE term = ANY($1) GROUP BY term"
            counts |= self._connection.native(sql, list(missing)).fetchall()
        return [
            self._prefix_count(word, after_seq=0)
            if is_prefix(word)
            else sum(min((counts.get(token, 0) for token in form), default=0) for form in forms[word])
            for word in words
        ]

    def count_after(self, word: str, seq: int) -> int:
        if is_prefix(word):
            return self._prefix_count(word, after_seq=seq)
        return len(set().union(*(self._pages(form, after_seq=seq) for form in self._forms(word))))

    def best(self, words: Sequence[str], limit: int) -> list[tuple[int, float]]:
        pages, tokens = self._expected.totals if self._expected else self._connection.native(_TOTALS).get
        mean_size = tokens / pages if tokens else 1.0
        scores: dict[int, float] = {}
        for found in self._phrases(words):
            idf = math.log((pages - len(found) + 0.5) / (len(found) + 0.5))
            count, size = found["count"].astype(np.float64), found["size"].astype(np.float64)
            gains = (idf if idf > 0 else LEAST_IDF) * (count * (K1 + 1) / (count + K1 * (1 - B + B * size / mean_size)))
            for seq, gain in zip(found["seq"].tolist(), gains.tolist(), strict=True):
                scores[seq] = scores.get(seq, 0.0) + gain
        return sorted(scores.items(), key=lambda hit: (-hit[1], -hit[0]))[:limit]

    def newest_with(self, words: Sequence[str], after_seq: int, limit: int) -> list[int]:
        forms = [[] if is_prefix(word) else self._forms(word) for word in words]
        if forms and all(each and all(len(form) == 1 for form in each) for each in forms):
            return self._newest_with_tokens([[form[0] for form in each] for each in forms], after_seq, limit)
        sets: list[set[int]] = []
        for word in words:
            if is_prefix(word):
                sets.append(self._prefix_pages(word, after_seq))
            else:
                sets.append(set().union(*(self._pages(form, after_seq=after_seq) for form in self._forms(word))))
        return sorted(set.intersection(*sets), reverse=True)[:limit] if sets else []

    def _newest_with_tokens(self, words: Sequence[Sequence[str]], after_seq: int, limit: int) -> list[int]:
        """Return up to ``limit`` pages after ``after_seq`` with at least one token of each word, newest first."""
        first, *others = words
        also = "".join(
            f" AND EXISTS (SELECT 1 FROM indexed_postings AS b WHERE b.term = ANY(${number}) AND b.seq = a.seq)"  # noqa: S608
            for number in range(4, 4 + len(others))
        )
        sql = f"SELECT seq FROM indexed_postings AS a WHERE term = $1 AND seq > $2{also} ORDER BY seq DESC LIMIT $3"  # noqa: S608
        others_lists = [list(each) for each in others]
        found = [self._connection.native(sql, token, after_seq, limit, *others_lists) for token in first]
        every = " AND ".join(f"string_to_array(terms, ' ') && ${number}" for number in range(2, 2 + len(words)))
        new_sql = f"SELECT seq FROM new_postings WHERE seq > $1 AND {every}"  # noqa: S608 - constants
        found.append(self._connection.native(new_sql, after_seq, *(list(each) for each in words)))
        return sorted({seq for rows in found for (seq,) in rows}, reverse=True)[:limit]

    def sides_with(self, words: Sequence[str], seqs: Sequence[int]) -> NDArray[np.bool_]:
        rows = {seq: row for row, seq in enumerate(seqs)}
        found = np.zeros((2, len(seqs), len(words)), dtype=np.bool_)
        forms = {word: self._forms(word) for word in words if not is_prefix(word)}
        tokens = list({token for each in forms.values() for form in each for token in form})
        sql = "SELECT term, seq, places FROM postings WHERE term = ANY($1) AND seq = ANY($2)"
        places: dict[str, dict[int, bytes]] = {token: {} for token in tokens}
        for token, seq, at in self._connection.native(sql, tokens, list(seqs)) if tokens and seqs else ():
            places[token][seq] = at
        prefix_sql = "SELECT seq, places FROM postings WHERE term >= $1 AND term < $2 AND seq = ANY($3)"
        for column, word in enumerate(words):
            if is_prefix(word):
                hits = self._connection.native(prefix_sql, word, chr(ord(word) + 1), list(seqs)).fetchall()
            else:
                hits = [hit for form in forms[word] for hit in _adjacent([places[token] for token in form]).items()]
            for seq, at in hits:
                starts = np.frombuffer(at, dtype=_PLACE) if isinstance(at, bytes) else at
                found[0, rows[seq], column] |= bool((starts < AGENT_PLACE).any())
                found[1, rows[seq], column] |= bool((starts >= AGENT_PLACE).any())
        return found

    def _count(self, pages: int, tokens: int) -> None:
        sql = "UPDATE counters SET indexed_pages = indexed_pages + $1, indexed_tokens = indexed_tokens + $2"
        self._connection.native(sql, pages, tokens)

    def _forms(self, word: str) -> list[list[str]]:
        """Return the forms of a word for which the index is searched, such as its stem; see `index_forms`.

        Each form is a list of tokens. A form without tokens is left out.
        """
        return [tokens for form in index_forms(word) if (tokens := self._tokenize(form))]

    def _phrases(self, words: Sequence[str]) -> list[NDArray[np.void]]:
        """Return one array of postings for each form of each word, in the order of the words; see `_forms`."""
        forms = [(word, form) for word in words for form in ([[word]] if is_prefix(word) else self._forms(word))]
        single = {form[0] for word, form in forms if len(form) == 1 and not is_prefix(word)}
        postings = self._expected.postings() if self._expected else {}
        if missing := single - postings.keys():
            postings |= self._connection.native(_ALL_POSTINGS, list(missing)).fetchall()
        return [
            self._prefix_postings(word)
            if is_prefix(word)
            else np.frombuffer(postings.get(form[0], b""), dtype=_POSTING)
            if len(form) == 1
            else self._phrase_postings(form)
            for word, form in forms
        ]

    def _phrase_postings(self, tokens: Sequence[str]) -> NDArray[np.void]:
        """Return the postings of a form that consists of several tokens."""
        starts = self._starts(tokens, after_seq=0)
        sql = "SELECT seq, size FROM postings WHERE term = $1 AND seq = ANY($2)"
        sizes = dict(self._connection.native(sql, tokens[0], list(starts)).fetchall()) if starts else {}
        return np.array([(seq, sizes[seq], len(at)) for seq, at in sorted(starts.items())], dtype=_POSTING)

    def _prefix_postings(self, word: str) -> NDArray[np.void]:
        sql = (
            "SELECT seq, max(size), sum(length(places) / 4) FROM postings WHERE term >= $1 AND term < $2 "
            "GROUP BY seq ORDER BY seq"
        )
        rows = self._connection.native(sql, word, chr(ord(word) + 1)).fetchall()
        return np.array([(seq, size, int(count)) for seq, size, count in rows], dtype=_POSTING)

    def _prefix_count(self, word: str, *, after_seq: int) -> int:
        sql = "SELECT count(*) FROM postings WHERE term >= $1 AND term < $2 AND seq > $3"
        return int(self._connection.native(sql, word, chr(ord(word) + 1), after_seq).get)

    def _prefix_pages(self, word: str, after_seq: int) -> set[int]:
        sql = "SELECT DISTINCT seq FROM postings WHERE term >= $1 AND term < $2 AND seq > $3"
        return {seq for (seq,) in self._connection.native(sql, word, chr(ord(word) + 1), after_seq)}

    def _pages(self, tokens: Sequence[str], *, after_seq: int = 0) -> set[int]:
        """Return the ``seq`` of the pages after ``after_seq`` that contain the sequence of tokens."""
        if len(tokens) > 1:
            return set(self._starts(tokens, after_seq=after_seq))
        sql = "SELECT seq FROM postings WHERE term = $1 AND seq > $2"
        return {seq for (seq,) in self._connection.native(sql, tokens[0], after_seq)}

    def _starts(self, tokens: Sequence[str], *, after_seq: int) -> "dict[int, NDArray[np.uint32]]":
        """Return, for each page after ``after_seq``, the positions at which the sequence of tokens begins."""
        rarest = (
            "SELECT seq FROM postings WHERE term = ANY($1) AND seq > $2 GROUP BY seq "
            "HAVING count(*) = array_length($1, 1)"
        )
        sql = f"SELECT term, seq, places FROM postings WHERE term = ANY($1) AND seq IN ({rarest})"  # noqa: S608 - constant
        places: dict[str, dict[int, bytes]] = {token: {} for token in tokens}
        for token, seq, at in self._connection.native(sql, list(places), after_seq):
            places[token][seq] = at
        return _adjacent([places[token] for token in tokens])


def postings(tokenize: Callable[[str], list[str]], user_input: str, agent_response: str) -> tuple[str, str, int]:
    """Return the postings of a new page: a text of tokens, a text of positions, and the number of tokens.

    The first text contains each different token once, separated by spaces. The second text contains the positions of
    each of these tokens, in the same order. Each position is a hexadecimal number of 8 digits. The numbers for one
    token are joined without a separator, and those for different tokens are separated by a space.
    """
    places: dict[str, str] = {}
    size = 0
    for start, side in ((0, user_input), (AGENT_PLACE, agent_response)):
        tokens = tokenize(index_text(side))
        size += len(tokens)
        for token, place in zip(tokens, _encoded(start, len(tokens)), strict=False):
            places[token] = places.get(token, "") + place
    return " ".join(places), " ".join(places.values()), size


@lru_cache(maxsize=32)
def _encoded_places(start: int, count: int) -> tuple[str, ...]:
    return tuple(np.arange(start, start + count, dtype=_PLACE).tobytes().hex(" ", _PLACE.itemsize).split())


def _encoded(start: int, count: int) -> tuple[str, ...]:
    """Return at least ``count`` consecutive positions, beginning with ``start``, as hexadecimal texts.

    The number of positions is rounded up to a power of two, so that there are few different lists to cache.
    """
    return _encoded_places(start, 1 << max(count - 1, 63).bit_length())


def _adjacent(places: Sequence[dict[int, bytes]]) -> "dict[int, NDArray[np.uint32]]":
    """Return, for each page, the positions at which a sequence of tokens begins.

    ``places`` contains a mapping for each token: from the ``seq`` of a page to the token's encoded positions.
    """
    found = {}
    for seq in set.intersection(*map(set, places)):
        starts = np.frombuffer(places[0][seq], dtype=_PLACE)
        for distance, each in enumerate(places[1:], start=1):
            starts = starts[np.isin(starts + distance, np.frombuffer(each[seq], dtype=_PLACE))]
        if len(starts):
            found[seq] = starts
    return found
