"""The MCP server: tools, resources and prompts, on stdio and over HTTP.

`assembly` builds the server. `tool_calls` lists and calls tools. `guides` contains the instructions and prompts.
`stdio` and `http` are the transports.
"""
