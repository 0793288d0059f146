"""Hooks: commands that MCP clients run at events, to store exchanges and recall memories without tool calls.

The module `hook` runs at every event. It imports little, because the client waits for it. The module `daemon` is the
background process that opens the memory.
"""
