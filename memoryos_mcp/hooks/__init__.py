"""Hooks: commands that MCP clients run at events, to store exchanges and recall memories without tool calls.

`hook` runs at every event and imports only parts of the standard library, because the client waits. `daemon` is the
background process that opens the memory.
"""
