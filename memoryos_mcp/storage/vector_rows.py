"""Vectors and token codes: their rows, and the change sequence that tells other processes of them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import apsw
import numpy as np

from memoryos_mcp.pages import Window
from memoryos_mcp.segments import Vector
from memoryos_mcp.storage import PageVectors, TokenRows
from memoryos_mcp.storage.rows import to_blob


def note_change(connection: apsw.Connection, kind: str, row: int) -> None:
    """Put a row at the end of the change sequence, where every process looks for what is new."""
    connection.execute("INSERT INTO changes (kind, row) VALUES (?, ?)", (kind, row))


def set_page_vectors(connection: apsw.Connection, space: int, windows: Mapping[int, Sequence[Window]]) -> None:
    """Set the space's vectors of pages."""
    for seq, parts in windows.items():
        of_page = "FROM page_vectors WHERE space = ? AND seq = ?"
        connection.execute(f"DELETE FROM page_tokens WHERE vector_id IN (SELECT vector_id {of_page})", (space, seq))  # noqa: S608
        connection.execute(f"DELETE {of_page}", (space, seq))
        for part, window in enumerate(parts):
            connection.execute(
                "INSERT INTO page_vectors (space, seq, part, start_char, end_char, vector) VALUES (?, ?, ?, ?, ?, ?)",
                (space, seq, part, window.start, window.end, to_blob(window.vector)),
            )
            if window.codes is not None and len(window.codes):
                connection.execute(
                    "INSERT INTO page_tokens VALUES (?, ?, ?, ?)",
                    (connection.last_insert_rowid(), len(window.codes), window.user_tokens, window.codes.tobytes()),
                )
        connection.execute("UPDATE pages SET space = ? WHERE seq = ?", (space, seq))
        note_change(connection, "page", seq)


def set_fact_vectors(connection: apsw.Connection, space: int, vectors: Mapping[int, Vector]) -> None:
    """Set the space's vectors of facts."""
    for fact, vector in vectors.items():
        connection.execute("UPDATE facts SET space = ?, vector = ? WHERE fact = ?", (space, to_blob(vector), fact))
        note_change(connection, "fact", fact)


def set_segment_vectors(connection: apsw.Connection, space: int, vectors: Mapping[int, Vector]) -> None:
    """Set the space's vectors of segments."""
    for segment, vector in vectors.items():
        connection.execute(
            "UPDATE segments SET space = ?, vector = ? WHERE segment = ?", (space, to_blob(vector), segment)
        )
        note_change(connection, "segment", segment)


def page_tokens(connection: apsw.Connection, space: int, seqs: Sequence[int], max_bytes: int) -> TokenRows:
    """Return the space's token codes of pages, in the order of ``seqs``, whole pages until ``max_bytes`` are read."""
    # The list is the outer loop, so that rows come page after page as they were asked for.
    rows = connection.execute(
        "SELECT v.seq, t.tokens, t.user_tokens, t.codes FROM json_each(?) AS asked CROSS JOIN page_vectors AS v "
        "ON v.space = ? AND v.seq = asked.value CROSS JOIN page_tokens AS t USING (vector_id)",
        (json.dumps(list(seqs)), space),
    )
    windows: list[tuple[int, int, int, bytes]] = []
    spent = 0
    for row in rows:
        spent += len(row[3])
        if spent > max_bytes:
            windows = [window for window in windows if window[0] != row[0]]
            break
        windows.append(row)
    numbers = np.array([row[:3] for row in windows], dtype=np.int64).reshape(-1, 3)
    codes = np.frombuffer(b"".join([row[3] for row in windows]), dtype=np.uint8)
    return TokenRows(
        seqs=numbers[:, 0],
        counts=numbers[:, 1],
        user_counts=numbers[:, 2],
        codes=codes.reshape(int(numbers[:, 1].sum()), -1 if windows else 0),
    )


def to_page_vectors(rows: list[tuple[Any, ...]]) -> PageVectors:
    """Return the vectors of rows of a page's number and a blob."""
    halves = np.frombuffer(b"".join([row[1] for row in rows]), dtype=np.float16)
    return PageVectors(
        seqs=np.array([row[0] for row in rows], dtype=np.int64),
        vectors=halves.reshape(len(rows), -1 if rows else 0).astype(np.float32),
    )
