"""The stores of one deployment, chosen by the settings: the only place above a store's folder that names one."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from memoryos_mcp.config import Settings

if TYPE_CHECKING:
    from memoryos_mcp.storage.interface import Stores


def make_stores(settings: Settings, clock: Callable[[], datetime], *, threads: int = 1) -> "Stores":
    """Return the stores that the settings name; nothing is opened yet. Blocks: it imports libraries.

    Args:
        settings: Where memories are stored.
        clock: Returns the present, with a zone.
        threads: Threads for the blocking work of all users.
    """
    from memoryos_mcp.storage.sqlite.stores import SqliteStores

    return SqliteStores(settings.data_storage_path, clock, threads=threads)
