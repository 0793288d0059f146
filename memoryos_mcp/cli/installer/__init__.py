"""The installer: adds this server to MCP clients, updates its entries, and removes them.

A client's configuration file contains an entry for each MCP server. `ClientFileError` is raised if a file cannot be
read or changed. The file is then left unchanged. `ArgumentError` is raised if a client does not support what was
requested.
"""
