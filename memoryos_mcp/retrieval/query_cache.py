"""The query cache: agents often repeat short queries."""

from collections import OrderedDict

from memoryos_mcp.embedding import EmbeddedQuery

# Long queries are rarely repeated, and their vectors are large.
CACHED_QUERIES = 32
CACHED_QUERY_CHARS = 200


class QueryCache:
    """The vectors of one user's most recent short queries. Used from one event loop.

    It is not shared by users: response times must not reveal what another user asked.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, EmbeddedQuery] = OrderedDict()

    def get(self, query: str) -> EmbeddedQuery | None:
        """Return a query's vectors if they are cached."""
        if (found := self._kept.get(query)) is not None:
            self._kept.move_to_end(query)
        return found

    def put(self, query: str, embedded: EmbeddedQuery) -> None:
        """Cache a query's vectors, and drop those that were not used for longest."""
        if len(query) <= CACHED_QUERY_CHARS:
            self._kept[query] = embedded
            self._kept.move_to_end(query)
            if len(self._kept) > CACHED_QUERIES:
                self._kept.popitem(last=False)
