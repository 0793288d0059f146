"""Storage of memories: protocols, the values that they use, and implementations for SQLite and PostgreSQL."""
