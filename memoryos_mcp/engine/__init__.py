"""The engine of one user's memory, and the service that opens an engine for each user.

`engine` contains the class for one user, `service` manages the engines of many users, and `wiring` builds the
components that all engines share. `tools` defines the MCP tools: their arguments, results and texts.
"""
