"""The command line ``memoryos-mcp``: commands, the installer for clients, and what a terminal shows."""
