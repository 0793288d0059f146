"""The protocol of retrieval strategies, and the entry points through which other packages provide one.

A strategy decides which older pages answer a query, and in which order. Everything else in a result is the same for all
strategies: short-term pages, facts, wishes, traits and the token budget.

A package adds a strategy with an entry point in the group `ENTRY_POINTS`. The entry point refers to a function without
parameters that returns a `RetrievalStrategy`::

    [project.entry-points."memoryos_mcp.retrieval_strategies"]
    mine = "my_package:make_strategy"

To use the strategy, set ``retrieval_strategy`` to the name of the entry point, here ``mine``.
"""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.model.segments import Segment
from memoryos_mcp.retrieval.query import ParsedQuery
from memoryos_mcp.retrieval.ranking import Ranked, Recipe
from memoryos_mcp.retrieval.signals import Scores
from memoryos_mcp.storage.values import Outlines

__all__ = ["ENTRY_POINTS", "Candidates", "Ranked", "RetrievalStrategy", "Search", "SearchedMemory"]

ENTRY_POINTS = "memoryos_mcp.retrieval_strategies"


@dataclass(frozen=True, slots=True)
class Candidates:
    """Pages that may answer a query, with their signals.

    Attributes:
        recipe: The ranking for which the signals were computed.
        outlines: The properties by which the pages are ranked, in ascending order of ``seq``.
        signals: The values of each signal by its name, shape ``(n,)``.
        windows: Number of windows (text sections) of each page, at least 1, shape ``(n,)``.
        best_parts: Position of each page's best window, shape ``(n,)``; -1 if unknown.
        code_bytes: Size in bytes of the token vectors that were read.
    """

    recipe: Recipe
    outlines: Outlines
    signals: Mapping[str, Scores]
    windows: NDArray[np.int64]
    best_parts: NDArray[np.int64]
    code_bytes: int = 0


class SearchedMemory(Protocol):
    """The parts of a memory that a strategy can read in addition to the candidates."""

    async def segments(self) -> Sequence[tuple[Segment, AbstractSet[str]]]:
        """Return the segments that are not archived, each with the stems of its keywords.

        Raises:
            StorageError: The store could not be read.
        """
        ...

    async def pages_of(self, segment: int) -> Sequence[int]:
        """Return the ``seq`` of each page of a segment that the query may find, in ascending order.

        Raises:
            StorageError: The store could not be read.
        """
        ...

    async def cosines(self, pages: Collection[int]) -> Mapping[int, float]:
        """Return the cosine between the query and the best window of each page, by ``seq``.

        Pages without vectors are left out. Without an embedding model, the result is empty.
        """
        ...


@dataclass(frozen=True, slots=True)
class Search:
    """A query and what a strategy needs to answer it.

    Attributes:
        query: The query, with its vectors if there is an embedding model.
        candidates: The pages that keywords and vectors find, and their neighbours.
        newest: The ``seq`` of each short-term page.
        limit: Maximum number of pages in the answer, not counting the pages in ``newest``.
        memory: The memory that is searched.
    """

    query: ParsedQuery
    candidates: Candidates
    newest: AbstractSet[int]
    limit: int
    memory: SearchedMemory


class RetrievalStrategy(Protocol):
    """Ranks the pages that answer a query. Safe to share between tasks and users: it keeps nothing of a search.

    Attributes:
        name: Name and version, as shown in explained results.
    """

    name: str

    async def rank(self, search: Search) -> Sequence[Ranked]:
        """Return the pages that answer a query, best first.

        The result contains at most ``search.limit`` pages that are not in ``search.newest``. A page of the result must
        be a candidate or a page that ``search.memory.pages_of`` returned.

        Raises:
            StorageError: The store could not be read.
        """
        ...
