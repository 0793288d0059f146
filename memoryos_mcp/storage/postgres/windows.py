"""Searches for the windows (sections of pages) nearest to a query, inside the database.

Each vector has a code with one bit per dimension. The bit is 1 if the coordinate is not negative. The codes are
compared first, so that fewer bytes are read. The windows with the nearest codes are then ranked by their vectors.
"""

from typing import TYPE_CHECKING

import numpy as np

from memoryos_mcp.model.segments import Vector
from memoryos_mcp.storage.values import WindowHits

if TYPE_CHECKING:
    from memoryos_mcp.storage.postgres.connection import PostgresConnection

# Number of vectors that are read for each window of the result. With 10, a search for the 100 nearest of 57,000 windows
# of real conversations finds 98.5 of them on average; with 20, it finds 99.7.
RANKED_PER_RESULT = 10
_NEAREST = (
    "WITH nearest AS MATERIALIZED (SELECT seq, part FROM page_vectors WHERE space = $1 "
    "ORDER BY bit_count(code # CAST(CAST($2 AS text) AS bit varying)) LIMIT $3) "
    "SELECT seq, part, vector FROM nearest JOIN page_vectors USING (seq, part) WHERE space = $1"
)


def nearest(connection: "PostgresConnection", space: int, query: Vector, k: int) -> WindowHits:
    """Return the ``k`` windows (page sections) nearest to a query in a vector space; see `Index.nearest_windows`."""
    code = "".join("1" if is_positive else "0" for is_positive in (query >= 0).tolist())
    rows = connection.native(_NEAREST, space, code, k * RANKED_PER_RESULT).fetchall()
    vectors = np.frombuffer(b"".join([row[2] for row in rows]), dtype=np.float16).astype(np.float32)
    cosines = np.einsum("nd,d->n", vectors.reshape(len(rows), len(query)), query)
    best = np.argsort(-cosines, kind="stable")[:k]
    places = np.array([row[:2] for row in rows], dtype=np.int64).reshape(len(rows), 2)[best]
    return WindowHits(places[:, 0], places[:, 1], cosines[best])
