"""The recipes of docs/frameworks.md run with the packages of the frameworks, each in its own environment.

A recipe stores in one process, and another process finds it there. `tests.clients.frameworks` contains the programs.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from memoryos_mcp import Memoryos
from tests.documents import ROOT, Block, blocks
from tests.memories import NO_MODEL
from tests.programs import (
    LANGCHAIN_MCP_PYTHON,
    LANGGRAPH_PYTHON,
    LLAMA_INDEX_PYTHON,
    OPENAI_AGENTS_PYTHON,
    PYDANTIC_AI_PYTHON,
    program,
)
from tests.servers import clean_environment

pytestmark = pytest.mark.campaign

LIMIT_S = 120
PAGE = ROOT / "docs" / "frameworks.md"
PROGRAMS = Path(__file__).parent / "clients" / "frameworks"
COMMAND = "/absolute/path/to/checkout/.venv/bin/memoryos-mcp"
SAID = "I keep bees on the roof."
# The sign of each block of the page, with its environment and its program.
RECIPES = {
    "class PageStore": (LANGGRAPH_PYTHON, "langgraph_store.py"),
    "def memory_toolset": (PYDANTIC_AI_PYTHON, "pydantic_ai_toolset.py"),
    "class MemorySession": (OPENAI_AGENTS_PYTHON, "openai_agents_session.py"),
    "class PagesBlock": (LLAMA_INDEX_PYTHON, "llama_index_block.py"),
}
SERVERS = {
    "MultiServerMCPClient(": (LANGCHAIN_MCP_PYTHON, "langchain_mcp.py"),
    "MCPToolset(": (PYDANTIC_AI_PYTHON, "pydantic_ai_mcp.py"),
    "MCPServerStdio(": (OPENAI_AGENTS_PYTHON, "openai_agents_mcp.py"),
    "BasicMCPClient(": (LLAMA_INDEX_PYTHON, "llama_index_mcp.py"),
}


def recipes() -> list[Block]:
    return [block for block in blocks(PAGE) if block.kind == "python"]


def run(sign: str, step: str, folder: Path) -> None:
    """Copy the block with this sign into the folder, and run one step of its program there."""
    python, script = {**RECIPES, **SERVERS}[sign]
    (block,) = [block for block in recipes() if sign in block.text]
    own_command = str(Path(sys.executable).with_name("memoryos-mcp"))
    (folder / "recipe.py").write_text(block.text.replace(COMMAND, own_command), encoding="utf-8")
    environment = {
        "HOME": str(folder),
        "PYTHONPATH": str(folder),
        "MEMORYOS_DATA_STORAGE_PATH": str(folder / "data"),
        "MEMORYOS_USER_ID": "ada",
        "MEMORYOS_EMBEDDING_MODEL_NAME": "none",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
    }
    done = subprocess.run(
        [program(python), str(PROGRAMS / script), step],
        capture_output=True,
        encoding="utf-8",
        timeout=LIMIT_S,
        check=False,
        cwd=folder,
        env=clean_environment(environment),
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_block_of_the_page_has_a_program() -> None:
    signs = {**RECIPES, **SERVERS}
    assert [block for block in recipes() if sum(sign in block.text for sign in signs) != 1] == []
    assert len(recipes()) == len(signs)


@pytest.mark.parametrize("sign", [*RECIPES, *SERVERS])
def test_another_process_finds_what_a_recipe_stored(sign: str, tmp_path: Path) -> None:
    run(sign, "store", tmp_path)
    with Memoryos("ada", data_storage_path=tmp_path / "data", **NO_MODEL) as memory:
        assert memory.get_memory_stats()["total_pages"] == 1
        [entry] = memory.listed().entries
        assert SAID in entry.beginning
    run(sign, "find", tmp_path)


@pytest.mark.parametrize("sign", ["class PageStore", "class MemorySession"])
def test_the_limits_of_a_recipe_are_as_described(sign: str, tmp_path: Path) -> None:
    run(sign, "limits", tmp_path)
