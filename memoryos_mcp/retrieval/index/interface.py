"""The protocol of vector indexes, and the entry points through which other packages provide an index.

A vector index finds the windows (sections of pages) that are nearest to a query. The store is the source of truth: an
index that is lost or outdated is filled again from the store.

A package adds an index with an entry point in the group `ENTRY_POINTS`. The entry point refers to a `MakeIndex`::

    [project.entry-points."memoryos_mcp.vector_indexes"]
    mine = "my_package:make_index"

To use the index, set ``vector_index`` to the name of the entry point, here ``mine``.

`retrieval.index.conformance` contains a test suite for such an index.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from memoryos_mcp.config import Settings
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.values import WindowHits
from memoryos_mcp.storage.vector_index import VectorIndex, parts_of

__all__ = ["ENTRY_POINTS", "IndexRequest", "MakeIndex", "VectorIndex", "no_hits", "parts_of"]

ENTRY_POINTS = "memoryos_mcp.vector_indexes"


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """The arguments of the function that creates a vector index.

    Attributes:
        settings: All settings.
        user_id: The owner of the memory. Indexes of different users must be separate.
        space: The vector space, as ``name:dimension:revision``. Indexes of different spaces must be separate.
        dimension: Length of every vector.
        store: The store of the memory, which uses the same vector space.
    """

    settings: Settings
    user_id: str
    space: str
    dimension: int
    store: Store


MakeIndex: TypeAlias = Callable[[IndexRequest], VectorIndex]
"""Returns the index for a request. It does not block; slow work is left to the methods of the index.

A method ``close`` is optional; it is called in a worker thread after the last use of an index. A method ``check`` is
optional too; `memoryos-mcp doctor` calls it. It raises `StorageError` if indexes cannot be used.
"""


def no_hits() -> WindowHits:
    """Return a search result without hits."""
    none = np.empty(0, dtype=np.int64)
    return WindowHits(none, none, np.empty(0, dtype=np.float32))
