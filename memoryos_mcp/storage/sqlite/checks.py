"""The latest integrity checks of files, so that opening a file does not always read all of it."""

import time
from pathlib import Path

# How long a check is not repeated.
CHECK_VALID_S = 3_600.0


class Checks:
    """The latest integrity checks of all users' files. Safe to share between threads."""

    def __init__(self) -> None:
        self._read_at_s: dict[Path, float] = {}
        self._damaged: dict[Path, tuple[float, tuple[str, ...]]] = {}

    def is_recent(self, path: Path) -> bool:
        """Return whether a check found a file intact recently."""
        read_at_s = self._read_at_s.get(path)
        return read_at_s is not None and time.monotonic() - read_at_s < CHECK_VALID_S

    def record(self, path: Path) -> None:
        """Record that a check found a file intact now."""
        self._read_at_s[path] = time.monotonic()

    def damaged_pages(self, path: Path) -> tuple[str, ...] | None:
        """Return the damaged pages that a recent check found; None without a recent check of the pages."""
        read_at_s, damaged = self._damaged.get(path, (-CHECK_VALID_S, ()))
        return damaged if time.monotonic() - read_at_s < CHECK_VALID_S else None

    def record_damaged_pages(self, path: Path, damaged: tuple[str, ...]) -> None:
        """Record the damaged pages that a check of all pages found."""
        self._damaged[path] = (time.monotonic(), damaged)
