"""MCP clients: where each keeps its list of servers, what an entry looks like there, and how a file is changed."""
