"""MCP clients: where each keeps its list of servers, what an entry looks like, and how the file is changed.

A file that cannot be read or changed raises `ClientFileError` and stays as it is. A client that does not support a
request raises `ArgumentError`.
"""
