"""Code that the SQLite and PostgreSQL stores share, such as all changes to the tables of a memory."""
