"""Vector indexes, which find the vectors nearest to a query. They are caches; the store is the source of truth."""
