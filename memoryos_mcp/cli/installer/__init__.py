"""MCP clients: where each keeps its list of servers, what an entry looks like, and how the file is changed."""
