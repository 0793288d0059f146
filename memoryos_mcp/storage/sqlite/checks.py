"""The latest integrity checks of files, so that a file is not read whole each time it is opened."""

import time
from pathlib import Path

# A check is not repeated within this time.
CHECK_VALID_S = 3_600.0


class Checks:
    """The latest integrity checks of files; shared by all users of a process, and thread-safe."""

    def __init__(self) -> None:
        self._read_at_s: dict[Path, float] = {}
        self._damaged: dict[Path, tuple[float, tuple[str, ...]]] = {}

    def is_recent(self, path: Path) -> bool:
        """Return whether a file was found intact recently, so that it need not be read again."""
        read_at_s = self._read_at_s.get(path)
        return read_at_s is not None and time.monotonic() - read_at_s < CHECK_VALID_S

    def record(self, path: Path) -> None:
        """Record that a file was found intact just now."""
        self._read_at_s[path] = time.monotonic()

    def damaged_pages(self, path: Path) -> tuple[str, ...] | None:
        """Return the pages that were found damaged recently; None if all pages must be read again."""
        read_at_s, damaged = self._damaged.get(path, (-CHECK_VALID_S, ()))
        return damaged if time.monotonic() - read_at_s < CHECK_VALID_S else None

    def record_damaged_pages(self, path: Path, damaged: tuple[str, ...]) -> None:
        """Record the damaged pages after all pages were read."""
        self._damaged[path] = (time.monotonic(), damaged)
