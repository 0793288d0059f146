"""Storage of memories: protocols, the values that they exchange, and an implementation for SQLite."""
