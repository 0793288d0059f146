"""Code that the SQLite and PostgreSQL stores share: reading and changing the tables of a memory."""
