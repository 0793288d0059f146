import subprocess
import sys

from tests.servers import clean_environment

MODEL_LIBRARIES = ("numpy", "faiss", "onnxruntime", "tokenizers", "torch", "transformers", "sentence_transformers")
LIMIT_S = 60


def imported_by(statement: str) -> set[str]:
    """Return the top-level packages that a statement loads in a new interpreter, by ``-X importtime``."""
    command = [sys.executable, "-X", "importtime", "-c", statement]
    done = subprocess.run(command, capture_output=True, check=True, timeout=LIMIT_S, env=clean_environment())
    names = [line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines() if "import time:" in line]
    assert "memoryos_mcp" in names
    return {name.partition(".")[0] for name in names}


def test_importing_the_package_loads_no_heavy_library() -> None:
    assert not imported_by("import memoryos_mcp") & {*MODEL_LIBRARIES, "openai", "mcp"}


def test_the_server_replies_without_loading_a_model_library() -> None:
    entry_points = "import memoryos_mcp.cli.main, memoryos_mcp.engine.service"
    entry_points += ", memoryos_mcp.server.stdio, memoryos_mcp.server.assembly"
    loaded = imported_by(entry_points)
    assert not loaded & {*MODEL_LIBRARIES, "openai"}
    assert "mcp" in loaded


def test_importing_the_package_prints_nothing_and_writes_no_file(tmp_path: object) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import memoryos_mcp.cli.main, memoryos_mcp.server.stdio"],
        capture_output=True,
        check=True,
        timeout=LIMIT_S,
        cwd=str(tmp_path),
        env=clean_environment(),
    )
    assert (done.stdout, done.stderr) == (b"", b"")
