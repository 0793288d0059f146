"""The floor of all MCP figures: a server of the same SDK with one trivial tool."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("bare")


@server.tool()
def echo(user_input: str, agent_response: str) -> dict[str, int]:
    """Return the lengths of two texts."""
    return {"user_input_length": len(user_input), "agent_response_length": len(agent_response)}


if __name__ == "__main__":
    server.run()
