"""Long-term memory for AI assistants: an MCP server and a Python library. Each user has a separate memory.

Public names are imported on first use, so that ``import memoryos_mcp`` is fast.
"""

import importlib

TYPE_CHECKING = False  # the module typing would delay hooks
if TYPE_CHECKING:
    from memoryos_mcp.config import Settings as Settings
    from memoryos_mcp.consolidation.forgetting import Selection as Selection
    from memoryos_mcp.engine.engine import MemoryEngine as MemoryEngine
    from memoryos_mcp.engine.service import MemoryService as MemoryService
    from memoryos_mcp.errors import ArgumentError as ArgumentError
    from memoryos_mcp.errors import ConfigError as ConfigError
    from memoryos_mcp.errors import MemoryOSError as MemoryOSError
    from memoryos_mcp.errors import ModelError as ModelError
    from memoryos_mcp.errors import StorageError as StorageError
    from memoryos_mcp.sync import Memoryos as Memoryos

__version__ = "0.1.0"

_PLACES = {
    "ArgumentError": "errors",
    "ConfigError": "errors",
    "MemoryEngine": "engine.engine",
    "MemoryOSError": "errors",
    "MemoryService": "engine.service",
    "Memoryos": "sync",
    "ModelError": "errors",
    "Selection": "consolidation.forgetting",
    "Settings": "config",
    "StorageError": "errors",
}

__all__ = ["__version__", *_PLACES]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
