"""Tools: checked arguments in, a result and its text out; for the MCP server, the command line and `Memoryos`.

`core_tools` holds the list of all, `arguments` and `results` the models at the edge, `texts` what a reader gets.
"""
