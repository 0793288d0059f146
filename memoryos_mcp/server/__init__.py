"""The MCP server: tools, resources and prompts over one service, on stdio and over HTTP.

`arguments` and `results` are the models at the edge. `tools` calls the engine, `texts` renders text for people and
models, `guides` holds the instructions and prompts, and `assembly` builds the server.
"""
