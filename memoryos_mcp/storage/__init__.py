"""Storage of memories: protocols, the values that they use, and an implementation for SQLite."""
