"""Hooks: an MCP client's own events store each exchange and put memories into the context, without a tool call.

`hook` runs at every event and imports only parts of the standard library, because a client waits for it. `daemon` is
the resident process that opens the memory.
"""
