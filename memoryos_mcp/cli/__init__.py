"""The command line: all commands, the installer that adds this server to MCP clients, and terminal output."""
