"""Implementation of the commands; `memoryos_mcp.cli.main` defines the names and options of most commands."""
