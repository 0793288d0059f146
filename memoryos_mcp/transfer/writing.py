"""Translates errors that occur while an export is written."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from memoryos_mcp.errors import StorageError


@contextmanager
def writing(target: str) -> Iterator[None]:
    """Convert an `OSError` in the ``with`` block to a `StorageError` that names the export's target.

    Without this conversion, the store would report the error as a problem with the store's own file.
    """
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        msg = f"{target} cannot be written ({reason}); free some space or choose another file, then export again"
        raise StorageError(msg) from error
