"""Choice of the storage implementation. Only this module imports from `storage.sqlite` and `storage.postgres`."""

from collections.abc import Callable, Sequence
from datetime import datetime

from memoryos_mcp.errors import StorageError

TYPE_CHECKING = False  # the module typing would delay hooks
if TYPE_CHECKING:
    from pathlib import Path

    from memoryos_mcp.config import Settings
    from memoryos_mcp.storage.interface import Stores


# Maximum number of threads for the memories of many users.
STORE_THREADS = 8


def make_stores(settings: "Settings", clock: Callable[[], datetime], *, threads: int = 1) -> "Stores":
    """Return the stores in the configured database or, if none is configured, in the data folder.

    No file or connection is opened yet. The call blocks while libraries are imported.

    Args:
        settings: The settings, which include the address of a database and the path of the data folder.
        clock: A function that returns the current time, with a time zone.
        threads: Number of threads that do the blocking work of all stores.

    Raises:
        ArgumentError: The address of the database is not valid.
        StorageError: The library for the database is not installed.
    """
    if settings.database_url is None:
        from memoryos_mcp.storage.sqlite.stores import SqliteStores

        return SqliteStores(settings.data_storage_path, clock, threads=threads)
    try:
        from memoryos_mcp.storage.postgres.stores import PostgresStores
    except ImportError as error:
        msg = "database_url needs the extra postgres; run `pip install 'memoryos-mcp-server[postgres]'`"
        raise StorageError(msg) from error
    from memoryos_mcp.storage.sqlite.words import tokenizer

    url = settings.database_url.get_secret_value()
    return PostgresStores(url, clock, threads=threads, tokenize=tokenizer())


def file_of(settings: "Settings") -> "Path | None":
    """Return the path of the configured user's file; None if memories are in a database."""
    if settings.database_url is not None:
        return None
    from memoryos_mcp.storage.sqlite.paths import database_file

    return database_file(settings.data_storage_path, settings.user_id)


def pages_by_words(
    file: str, words: Sequence[str], least_share: float, limit: int
) -> list[tuple[str, datetime, str, str, str | None]]:
    """Return the pages in ``file`` that contain many of the ``words``; see `storage.sqlite.reading_alone`."""
    from memoryos_mcp.storage.sqlite.reading_alone import pages_by_words

    return pages_by_words(file, words, least_share, limit)
