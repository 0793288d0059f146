"""The query cache: keeps the vectors of recent queries, because agents often repeat short queries."""

from collections import OrderedDict

from memoryos_mcp.embedding import EmbeddedQuery

# Long queries are rarely repeated, and their vectors are large.
CACHED_QUERIES = 32
CACHED_QUERY_CHARS = 200


class QueryCache:
    """A cache for the vectors of one user's most recent short queries. Use it from one event loop only.

    Each user has a separate cache, because the response times of a shared cache would reveal other users' queries.
    """

    def __init__(self) -> None:
        self._recent: OrderedDict[str, EmbeddedQuery] = OrderedDict()

    def get(self, query: str) -> EmbeddedQuery | None:
        """Return the cached vectors of a query; None if the query is not in the cache."""
        if (found := self._recent.get(query)) is not None:
            self._recent.move_to_end(query)
        return found

    def put(self, query: str, embedded: EmbeddedQuery) -> None:
        """Cache the vectors of a query if the query is short.

        If the cache is full, the least recently used query is removed.
        """
        if len(query) <= CACHED_QUERY_CHARS:
            self._recent[query] = embedded
            self._recent.move_to_end(query)
            if len(self._recent) > CACHED_QUERIES:
                self._recent.popitem(last=False)
