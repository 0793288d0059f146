"""Command line: commands, the installer for MCP clients, and output on a terminal."""
