"""The query cache: agents ask the same again and again, in few words."""

from collections import OrderedDict

from memoryos_mcp.embedding import EmbeddedQuery

# A long query is hardly ever repeated, and its vectors weigh much.
CACHED_QUERIES = 32
CACHED_QUERY_CHARS = 200


class QueryCache:
    """The vectors of one user's short queries that were asked last. Used from one event loop.

    Not shared by users: what one of them has asked must not show in how soon another is answered.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, EmbeddedQuery] = OrderedDict()

    def get(self, query: str) -> EmbeddedQuery | None:
        """Return a query's vectors if they are there."""
        if (found := self._kept.get(query)) is not None:
            self._kept.move_to_end(query)
        return found

    def put(self, query: str, embedded: EmbeddedQuery) -> None:
        """Keep a query's vectors; those that were not asked for longest go."""
        if len(query) <= CACHED_QUERY_CHARS:
            self._kept[query] = embedded
            self._kept.move_to_end(query)
            if len(self._kept) > CACHED_QUERIES:
                self._kept.popitem(last=False)
