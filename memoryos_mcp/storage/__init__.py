"""Storage of memories: the protocols, their values, and the implementation on SQLite."""
