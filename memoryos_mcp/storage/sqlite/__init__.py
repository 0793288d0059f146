"""The store on SQLite, one file per user. Nothing outside this folder imports apsw."""
