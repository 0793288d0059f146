"""Storage in SQLite files, one for each user. No module outside this folder imports apsw."""
