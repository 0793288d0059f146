"""What the stores of a deployment offer besides memories: tokens for callers over HTTP, summaries, and backups.

Every method here blocks.
"""

from collections.abc import Callable, Set
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from memoryos_mcp.model.callers import Scope, TokenEntry


class Tokens(Protocol):
    """The static tokens with which callers connect over HTTP. Safe to share between threads and between processes.

    Every call uses the present tokens: a token that another process adds or revokes takes effect with the next call.
    Every method raises `StorageError` if the tokens cannot be read or written, also if they were lost.
    """

    def add(self, user_id: str, scopes: Set[Scope], expires_at: datetime | None = None) -> str:
        """Create a token and return it; it cannot be retrieved later. An error means that none was added.

        Args:
            user_id: Owner of the memory to which it gives access.
            scopes: What it permits, at least one.
            expires_at: End of its validity, with a zone; None for never.

        Raises:
            ArgumentError: The user id is not valid, no scope is given, or ``expires_at`` is past.
        """
        ...

    def entries(self) -> list[TokenEntry]:
        """Return all tokens, including expired and revoked ones, in the order in which they were added."""
        ...

    def revoke(self, token_id: str) -> bool:
        """Revoke a token; return False if it was already revoked.

        Raises:
            ArgumentError: No token has this id.
        """
        ...

    def find(self, token: str) -> TokenEntry | None:
        """Return the entry of a valid token; None if it is malformed, unknown, expired or revoked.

        The time that this takes does not reveal which ids exist.
        """
        ...

    def is_needed(self) -> bool:
        """Return whether a token was ever made, in any process.

        Once true it stays true, even if every token is revoked or lost: the server then requires a token for good.
        """
        ...


@dataclass(frozen=True, slots=True)
class MemorySummary:
    """What a memory or a backup contains, found by reading all of it.

    Attributes:
        place: Where it is stored, such as the path of a file.
        pages: Number of dialogue pages.
        last_added_at: When the newest page was stored; None without any.
        retention_waits_until: When old pages can be forgotten, if the clock may be wrong; else None.
        damaged: Ids of the pages damaged on disk.
    """

    place: str
    user_id: str
    pages: int
    last_added_at: datetime | None
    retention_waits_until: datetime | None
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Footprint:
    """Where a memory is stored, such as the path of a file, and how many bytes it takes there."""

    place: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """What a restore will do.

    Attributes:
        file: The backup's file.
        replaced: The memory to be replaced; None if there is none, or it cannot be read.
        kept: Where the replaced memory will be kept; None if there is none.
    """

    file: Path
    backup: MemorySummary
    replaced: MemorySummary | None
    kept: Path | None


class Backups(Protocol):
    """Backups of users' memories as files.

    Each ``tell`` is called with the number of parts copied so far and the number of all parts.
    """

    def names(self) -> list[str]:
        """Return the names of all memories, damaged ones included; a name is the user's `user_folder_name`."""
        ...

    def make(self, name: str, target: Path, tell: Callable[[int, int], None]) -> MemorySummary | None:
        """Copy the present state of a memory, even while servers write to it, and check the copy.

        Args:
            name: The name of the memory.
            target: The copy, which appears only once it is complete; an existing file is replaced.
            tell: Shows the progress.

        Returns:
            What was copied; None if there is no such memory.

        Raises:
            DamagedStoreError: The memory is damaged or foreign.
            NewerStoreError: A newer version wrote it.
            StorageError: It cannot be read, or the copy cannot be written.
        """
        ...

    def plan_restore(self, user_id: str, backup: Path) -> RestorePlan:
        """Check a backup, and return what `restore` would do with it. Nothing is changed.

        Raises:
            ArgumentError: It belongs to another user.
            DamagedStoreError: It is damaged, or the file is not a backup.
            NewerStoreError: A newer version wrote it.
            StorageError: It cannot be read.
        """
        ...

    def restore(self, plan: RestorePlan, tell: Callable[[int, int], None]) -> None:
        """Replace a user's memory with a backup. The backup stays, and the replaced memory is kept.

        Raises:
            StorageError: The memory is in use or cannot be written; nothing was changed.
        """
        ...
