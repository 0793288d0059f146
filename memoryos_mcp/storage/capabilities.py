"""Protocols of a deployment's stores besides memories: access tokens and backups. Every method blocks."""

from collections.abc import Callable, Set
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from memoryos_mcp.model.callers import Scope, TokenEntry


class Tokens(Protocol):
    """The static access tokens of HTTP clients. Safe to share between threads and between processes.

    If another process adds or revokes a token, the next call uses the change. Every method raises `StorageError` if the
    tokens cannot be read or written, or were lost.
    """

    def add(self, user_id: str, scopes: Set[Scope], expires_at: datetime | None = None) -> str:
        """Create a token and return it; it cannot be retrieved later. After an error no token was added.

        Args:
            user_id: Owner of the memory to which the token gives access.
            scopes: The permissions of the token, at least one.
            expires_at: When the token expires, with a time zone; None for never.

        Raises:
            ArgumentError: The user id is not valid, no scope is given, or ``expires_at`` is in the past.
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
        """Return whether the server must require a token: whether any process has ever created one.

        The result stays true even if every token is revoked or lost.
        """
        ...


@dataclass(frozen=True, slots=True)
class MemorySummary:
    """A summary of a memory or a backup that was checked for damage.

    Attributes:
        place: Where the memory is stored, such as the path of a file.
        pages: Number of dialogue pages.
        last_added_at: When the newest page was stored; None without pages.
        retention_waits_until: When old pages will be forgotten, if that is delayed because the clock may be wrong.
        damaged: The ids of the pages that are damaged on disk.
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
        file: The file of the backup.
        replaced: The memory that will be replaced; None if it does not exist or cannot be read.
        kept: Where the replaced memory will be saved; None if there is no memory to replace.
    """

    file: Path
    backup: MemorySummary
    replaced: MemorySummary | None
    kept: Path | None


class Backups(Protocol):
    """Backups of users' memories as files.

    ``tell`` reports progress: it is called with the number of copied parts and the number of all parts.
    """

    def names(self) -> list[str]:
        """Return the `user_folder_name` of each user with a memory, including damaged ones."""
        ...

    def make(self, name: str, target: Path, tell: Callable[[int, int], None]) -> MemorySummary | None:
        """Copy a memory in its current state and check the copy; servers may write to the memory meanwhile.

        Args:
            name: A name that `names` returned.
            target: The file of the copy. It appears only once it is complete, and replaces an existing file.
            tell: Called to report progress.

        Returns:
            The summary of the copy; None if the memory does not exist.

        Raises:
            DamagedStoreError: The memory is damaged, or another program made it.
            NewerStoreError: A newer version made the memory.
            StorageError: The memory cannot be read, or the copy cannot be written.
        """
        ...

    def plan_restore(self, user_id: str, backup: Path) -> RestorePlan:
        """Check a backup, and return what `restore` would do with it. Nothing is changed.

        Raises:
            ArgumentError: The backup belongs to another user.
            DamagedStoreError: The file is damaged or is not a backup.
            NewerStoreError: A newer version made the backup.
            StorageError: The backup cannot be read.
        """
        ...

    def restore(self, plan: RestorePlan, tell: Callable[[int, int], None]) -> None:
        """Replace a user's memory with a backup, and save the replaced memory at ``plan.kept``.

        Raises:
            StorageError: The memory is in use or cannot be written; nothing was changed.
        """
        ...
