"""The implementation of storage on PostgreSQL."""
