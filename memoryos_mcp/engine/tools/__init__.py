"""The tools of the MCP server. The command line and `Memoryos` use them too.

`core_tools` lists all tools. `arguments` and `results` define their arguments and results, and `texts` converts results
to text.
"""
