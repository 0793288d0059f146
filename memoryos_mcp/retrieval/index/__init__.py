"""Vector indexes: find the rows nearest to a query, in RAM. They are caches; the store is the source of truth."""
