"""Choice of the store's implementation; no other module outside an implementation's folder may import it."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from memoryos_mcp.config import Settings

if TYPE_CHECKING:
    from memoryos_mcp.storage.interface import Stores


def make_stores(settings: Settings, clock: Callable[[], datetime], *, threads: int = 1) -> "Stores":
    """Return the stores for the settings; no file is opened yet. Blocks while it imports libraries.

    Args:
        settings: The settings, which name the data folder.
        clock: Returns the current time, with a time zone.
        threads: Number of threads for the blocking work of all users.
    """
    from memoryos_mcp.storage.sqlite.stores import SqliteStores

    return SqliteStores(settings.data_storage_path, clock, threads=threads)
