"""The tables of vectors and encoded token vectors, and the change sequence.

The change sequence is a numbered list of all changes to a memory. Other processes read it to find out which rows have
changed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from memoryos_mcp.model.pages import Window
from memoryos_mcp.model.segments import Vector
from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.mapping import to_blob
from memoryos_mcp.storage.values import PageVectors, TokenRows, Vectors

_COUNT = np.dtype("<u2")
# The key ``place`` of a page's encoded token vectors consists of the space and, in the low bits, the page's ``seq``.
SEQ_BITS = 40
SEQ_MASK = (1 << SEQ_BITS) - 1


def note_change(connection: Connection, kind: str, row: int) -> None:
    """Append a change to the change sequence, and remove the previous change of the same item.

    ``kind`` is the kind of the changed item, such as ``fact``, and ``row`` is the number of the item.
    """
    note_changes(connection, kind, [row])


def note_changes(connection: Connection, kind: str, rows: Iterable[int]) -> None:
    """Append changes of several items of the same kind; see `note_change`."""
    changed = [(kind, row) for row in rows]
    connection.executemany("DELETE FROM changes WHERE kind = ? AND row = ?", changed)
    connection.executemany("INSERT INTO changes (kind, row) VALUES (?, ?)", changed)


def page_kind(space: int) -> str:
    """Return the ``kind`` to pass to `note_change` when page vectors change in a vector space."""
    return f"page/{space}"


def set_vectors(connection: Connection, space: int, vectors: Vectors) -> None:
    """Set the vectors of pages, facts and segments in a vector space."""
    if vectors.pages:
        set_page_vectors(connection, space, vectors.pages)
    for fact, vector in vectors.facts.items():
        connection.execute(
            "INSERT INTO fact_vectors (fact, space, vector) VALUES (?, ?, ?) "
            "ON CONFLICT (fact, space) DO UPDATE SET vector = excluded.vector",
            (fact, space, to_blob(vector)),
        )
        note_change(connection, "fact", fact)
    for segment, vector in vectors.segments.items():
        set_segment_vector(connection, space, segment, vector)


def set_page_vectors(connection: Connection, space: int, windows: Mapping[int, Sequence[Window]]) -> None:
    """Replace the stored windows of pages, and the vectors of these windows, in a vector space.

    ``windows`` maps the ``seq`` of each page to the page's windows.
    """
    for seq, parts in windows.items():
        at = place(space, seq)
        connection.execute("DELETE FROM page_tokens WHERE place = ?", (at,))
        connection.execute("DELETE FROM page_vectors WHERE space = ? AND seq = ?", (space, seq))
        connection.executemany(
            "INSERT INTO page_vectors (space, seq, part, start_char, end_char, vector) VALUES (?, ?, ?, ?, ?, ?)",
            [(space, seq, part, w.start, w.end, to_blob(w.vector)) for part, w in enumerate(parts)],
        )
        codes = [(w.codes, w.parts) for w in parts if w.codes is not None]
        if any(len(rows) for rows, _ in codes):
            counts = np.array([each for _, each in codes], dtype=_COUNT)
            connection.execute(
                "INSERT INTO page_tokens (place, counts, codes) VALUES (?, ?, ?)",
                (at, counts.tobytes(), b"".join([rows.tobytes() for rows, _ in codes])),
            )
        note_change(connection, page_kind(space), seq)
    # Pages before ``next_seq`` have vectors; pages are embedded in order, except those that are embedded again.
    connection.execute(
        "UPDATE spaces SET next_seq = coalesce((SELECT min(seq) FROM pages WHERE seq >= next_seq AND NOT EXISTS "
        "(SELECT 1 FROM page_vectors AS v WHERE v.space = spaces.space AND v.seq = pages.seq)), "
        "(SELECT max(seq) + 1 FROM pages)) WHERE space = ?",
        (space,),
    )


def set_segment_vector(connection: Connection, space: int, segment: int, vector: Vector) -> None:
    """Set the vector of a segment in a vector space."""
    connection.execute(
        "INSERT INTO segment_vectors (segment, space, vector) VALUES (?, ?, ?) "
        "ON CONFLICT (segment, space) DO UPDATE SET vector = excluded.vector",
        (segment, space, to_blob(vector)),
    )
    note_change(connection, "segment", segment)


def drop_segment_vectors(connection: Connection, segment: int) -> None:
    """Delete a segment's vectors in all vector spaces, so that they are computed again."""
    connection.execute("DELETE FROM segment_vectors WHERE segment = ?", (segment,))


def to_token_rows(seqs: Sequence[int], sizes: Sequence[int], counts: bytes, codes: bytes) -> TokenRows:
    """Return the encoded token vectors of pages.

    Args:
        seqs: The pages.
        sizes: The size of each page's token counts, in bytes.
        counts: The token counts of all pages, joined.
        codes: The encoded token vectors of all pages, joined.
    """
    numbers = np.frombuffer(counts, dtype=_COUNT).reshape(-1, 4).astype(np.int64)
    windows = np.array(sizes, dtype=np.int64) // (4 * _COUNT.itemsize)
    encoded = np.frombuffer(codes, dtype=np.uint8)
    return TokenRows(
        seqs=np.repeat(np.array(seqs, dtype=np.int64), windows),
        counts=numbers,
        codes=encoded.reshape(int(numbers.sum()), -1 if seqs else 0),
    )


def place(space: int, seq: int) -> int:
    """Return the key of a page's encoded token vectors in a vector space."""
    return space << SEQ_BITS | seq


def read_page_vectors(connection: Connection, query: str, *parameters: Any) -> PageVectors:
    """Return the result of a query whose rows are a page's ``seq`` and one ``vector``."""
    seqs, vectors = connection.columns(query, parameters, values=["seq"], blobs=["vector"])
    halves = np.frombuffer(vectors, dtype=np.float16)
    return PageVectors(
        seqs=np.array(seqs, dtype=np.int64),
        vectors=halves.reshape(len(seqs), -1 if seqs else 0).astype(np.float32),
    )


def read_all_vectors(connection: Connection, space: int, after_seq: int, limit: int) -> PageVectors:
    """Return the vectors of the pages after ``after_seq``; see `Index.all_vectors`. ``limit`` may be 0."""
    last = "SELECT seq FROM page_vectors WHERE space = ?1 AND seq > ?2 ORDER BY seq, part LIMIT 1 OFFSET ?3"
    query = (
        "SELECT seq, vector FROM page_vectors WHERE space = ?1 AND seq > ?2 "  # noqa: S608 - constants
        f"AND seq <= coalesce(({last}), ?4) ORDER BY seq, part"
    )
    if limit == 0:
        return PageVectors(np.zeros(0, np.int64), np.zeros((0, 0), np.float32))
    return read_page_vectors(connection, query, space, after_seq, limit - 1, SEQ_MASK)
