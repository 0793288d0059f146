"""The command line: its commands, the installer for MCP clients, and terminal output."""
