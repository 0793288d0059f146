"""The MCP server: tools, resources and prompts over one service, on stdio and over HTTP.

`arguments` and `results` are the models at the edge, `tools` joins them to the engine, `texts` renders what a person
or a model reads, `guides` holds instructions, prompts and resources, and `assembly` makes the server of them.
"""
