"""A per-user long-term memory for AI assistants, served over MCP."""

__version__ = "0.1.0"
