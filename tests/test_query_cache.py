import numpy as np

from memoryos_mcp.embedding import EmbeddedQuery
from memoryos_mcp.retrieval.query_cache import CACHED_QUERIES, CACHED_QUERY_CHARS, QueryCache


def embedded(number: int) -> EmbeddedQuery:
    return EmbeddedQuery(np.full(2, number, dtype=np.float32), np.zeros((0, 2), dtype=np.float32), [])


def test_the_most_recent_short_queries_are_cached() -> None:
    cache = QueryCache()
    for number in range(CACHED_QUERIES):
        cache.put(f"query {number}", embedded(number))
    assert cache.get("query 0") is not None
    cache.put("one more", embedded(0))
    cache.put("x" * (CACHED_QUERY_CHARS + 1), embedded(0))
    assert cache.get("query 1") is None
    assert cache.get("x" * (CACHED_QUERY_CHARS + 1)) is None
    kept = cache.get("query 0")
    assert kept is not None
    assert kept.vector.tolist() == [0, 0]
    assert cache.get("one more") is not None
