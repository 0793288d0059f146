"""Writes of vectors, and the change sequence that tells other processes of them."""

from collections.abc import Mapping, Sequence

import apsw

from memoryos_mcp.pages import Window
from memoryos_mcp.segments import Vector
from memoryos_mcp.storage.rows import to_blob


def note_change(connection: apsw.Connection, kind: str, row: int) -> None:
    """Put a row at the end of the change sequence, where every process looks for what is new."""
    connection.execute("INSERT INTO changes (kind, row) VALUES (?, ?)", (kind, row))


def set_page_vectors(connection: apsw.Connection, space: int, windows: Mapping[int, Sequence[Window]]) -> None:
    """Set the space's vectors of pages."""
    for seq, parts in windows.items():
        connection.execute("DELETE FROM page_vectors WHERE space = ? AND seq = ?", (space, seq))
        connection.executemany(
            "INSERT INTO page_vectors (space, seq, part, start_char, end_char, vector) VALUES (?, ?, ?, ?, ?, ?)",
            [(space, seq, part, w.start, w.end, to_blob(w.vector)) for part, w in enumerate(parts)],
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
