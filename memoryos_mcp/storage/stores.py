"""Choice of the storage implementation. This is the only module outside `storage.sqlite` that may import from it."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from memoryos_mcp.config import Settings

if TYPE_CHECKING:
    from memoryos_mcp.storage.interface import Stores


def make_stores(settings: Settings, clock: Callable[[], datetime], *, threads: int = 1) -> "Stores":
    """Return the stores in the configured data folder. No file is opened. Blocks while libraries are imported.

    Args:
        settings: The settings, which include the path of the data folder.
        clock: A function that returns the current time, with a time zone.
        threads: Number of threads that do the blocking work of all stores.
    """
    from memoryos_mcp.storage.sqlite.stores import SqliteStores

    return SqliteStores(settings.data_storage_path, clock, threads=threads)
