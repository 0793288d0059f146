"""The tools of the MCP server, also used by the command line and `Memoryos`.

`core_tools` lists all tools. `arguments` and `results` define their arguments and results, and `texts` renders results
as text.
"""
