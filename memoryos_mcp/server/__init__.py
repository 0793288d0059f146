"""The server: MCP on stdio and over HTTP, the web pages, and the hooks of MCP clients.

`assembly` builds the MCP server. `tool_calls` lists and calls tools. `guides` contains the instructions and prompts.
`stdio` and `http` are the transports. `web` contains the web pages, which `http` serves, and `hooks` the commands that
MCP clients run at events. Nothing is imported here, because a client waits for a hook.
"""
