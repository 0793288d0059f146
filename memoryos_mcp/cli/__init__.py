"""The command line ``memoryos-mcp``: its commands, the installer for MCP clients, and output on a terminal."""
