"""The MCP server: tools, resources and prompts over one service, on stdio and over HTTP.

`assembly` builds the server, `tool_calls` lists and calls tools, `guides` has the instructions and prompts, and `stdio`
and `http` are the transports.
"""
