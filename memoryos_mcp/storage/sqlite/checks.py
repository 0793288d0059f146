"""Record of recent integrity checks, so that a file is not checked again each time it is opened."""

import time
from pathlib import Path

# Time for which a check counts as recent. A recent check is not repeated.
CHECK_VALID_S = 3_600.0


class Checks:
    """The results of recent integrity checks of all users' files. Safe to share between threads."""

    def __init__(self) -> None:
        self._read_at_s: dict[Path, float] = {}
        self._damaged: dict[Path, tuple[float, tuple[str, ...]]] = {}

    def is_recent(self, path: Path) -> bool:
        """Return whether a recent check found the file intact."""
        read_at_s = self._read_at_s.get(path)
        return read_at_s is not None and time.monotonic() - read_at_s < CHECK_VALID_S

    def record(self, path: Path) -> None:
        """Record that a check has just found the file intact."""
        self._read_at_s[path] = time.monotonic()

    def damaged_pages(self, path: Path) -> tuple[str, ...] | None:
        """Return the ids of damaged pages that a recent check found, or None if there was no recent check of pages."""
        read_at_s, damaged = self._damaged.get(path, (-CHECK_VALID_S, ()))
        return damaged if time.monotonic() - read_at_s < CHECK_VALID_S else None

    def record_damaged_pages(self, path: Path, damaged: tuple[str, ...]) -> None:
        """Record the ids of damaged pages that a check of all pages has just found."""
        self._damaged[path] = (time.monotonic(), damaged)
