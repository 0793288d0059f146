"""The installer for MCP clients: finds the clients' configuration files, and adds, updates or removes entries.

A client's file contains an entry for each MCP server. `ClientFileError` is raised if a file cannot be read or changed.
The file is then left unchanged. `ArgumentError` is raised if a client does not support what was requested.
"""
