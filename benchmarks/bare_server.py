"""The floor of all MCP figures: a server of the same SDK with one trivial tool.

It serves stdio, or with ``--port`` HTTP on loopback.
"""

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("bare")


@server.tool()
def echo(user_input: str, agent_response: str) -> dict[str, int]:
    """Return the lengths of two texts."""
    return {"user_input_length": len(user_input), "agent_response_length": len(agent_response)}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--port"]:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]), json_response=True, stateless_http=True)
    else:
        server.run()
