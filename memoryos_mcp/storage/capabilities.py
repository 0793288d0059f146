"""Protocols for access tokens, sign-ins, request rates and backups. Every method blocks."""

from collections.abc import Callable, Collection, Set
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from memoryos_mcp.model.callers import Caller, Scope, TokenEntry

# A sign-in ends after ``IDLE_S`` seconds without a request, and at the latest after ``LONGEST_S`` seconds.
IDLE_S, LONGEST_S = 2 * 3600.0, 12 * 3600.0
# Maximum number of sign-ins, in total and for one caller. If there are more, the least recently used one is ended.
SESSIONS_AT_MOST, SESSIONS_OF_ONE = 1_000, 100


class Tokens(Protocol):
    """The static access tokens of HTTP clients. Safe to share between threads and between processes.

    If another process adds or revokes a token, the next call already uses the new state. Every method raises
    `StorageError` if the tokens cannot be read or written, or if the file with the tokens was lost.
    """

    def add(self, user_id: str, scopes: Set[Scope], expires_at: datetime | None = None) -> str:
        """Create a token and return it. It cannot be retrieved later. If an error is raised, no token was added.

        Args:
            user_id: Owner of the memory to which the token gives access.
            scopes: The permissions of the token; at least one is required.
            expires_at: The time at which the token expires, with a time zone. With None, it never expires.

        Raises:
            ArgumentError: The user id is not valid, ``scopes`` is empty, or ``expires_at`` is in the past.
        """
        ...

    def entries(self) -> list[TokenEntry]:
        """Return a description of every token, in order of creation. Expired and revoked tokens are included."""
        ...

    def revoke(self, token_id: str) -> bool:
        """Revoke a token. Return True, or False if the token had already been revoked.

        Raises:
            ArgumentError: No token has this id.
        """
        ...

    def find(self, token: str) -> TokenEntry | None:
        """Return the stored description of a valid token, or None if the token is not valid.

        A token is not valid if it is malformed, unknown, expired or revoked. The duration of the call does not reveal
        which token ids exist.
        """
        ...

    def find_by_id(self, token_id: str) -> TokenEntry | None:
        """Return the stored description of a valid token; None if the token is unknown, expired or revoked."""
        ...

    def is_needed(self) -> bool:
        """Return whether the server must require a token.

        The result is True once any process has created a token, even if all tokens have since been revoked or lost.
        """
        ...

    def copy_to(self, target: "Tokens", user_ids: Collection[str] | None) -> int:
        """Copy tokens to ``target``. Return how many of these tokens ``target`` contains afterwards.

        A copy has the same secret, scopes and expiry time as its original. The originals are not changed. A token that
        is already in ``target`` is not copied again. If the original is already revoked, the token in ``target`` is
        revoked too. If the original is revoked later, its copy stays valid.

        Args:
            target: The tokens in another folder or database.
            user_ids: The users whose tokens are copied; None for all tokens.
        """
        ...


@dataclass(frozen=True, slots=True)
class SignIn:
    """A person who is signed in to the web pages, and the token that was used to sign in.

    Attributes:
        caller: The person's user id and permissions, and the id of the static token, if there is one.
        issuer: The issuer of the token; None for a static token, or if no token was needed.
        expires_at: The time at which the issuer's token expires; None for a static token, or if no token was needed.
    """

    caller: Caller
    issuer: str | None = None
    expires_at: datetime | None = None

    @property
    def has_token(self) -> bool:
        """Whether the person signed in with a token."""
        return self.issuer is not None or bool(self.caller.token_id)


class SignIns(Protocol):
    """The sign-ins to the web pages, each stored under a secret key. Safe to share between threads.

    A sign-in ends after `IDLE_S` seconds without a request, and at the latest after `LONGEST_S` seconds. There are at
    most `SESSIONS_AT_MOST` sign-ins in total, and at most `SESSIONS_OF_ONE` for each caller. Above these limits, the
    least recently used sign-in is removed. Every method raises `StorageError` if the sign-ins cannot be read or
    written.
    """

    def begin(self, key: str, sign_in: SignIn) -> bool:
        """Add a sign-in. Return False if it cannot be stored because the database is read-only.

        Args:
            key: A secret that identifies the browser. A database stores only a digest of the key.
            sign_in: The person and the token.
        """
        ...

    def find(self, key: str) -> SignIn | None:
        """Return a sign-in, and update the time of its last use. Return None if it does not exist or has ended."""
        ...

    def end(self, key: str) -> bool:
        """Remove a sign-in. Return whether it existed."""
        ...


@dataclass(frozen=True, slots=True)
class Grant:
    """A permission for a server to admit requests of one caller.

    Attributes:
        requests: Number of granted requests; may be 0.
        wait_s: Seconds until all requests that the server asked for can be granted; 0 if all of them were granted.
    """

    requests: int
    wait_s: float


class Rates(Protocol):
    """Limits the request rate of each caller across all servers that share a database. Safe to share between threads.

    Each caller has a token bucket. Servers take requests out of the bucket in advance, a few at a time.
    """

    def draw(self, caller: str, requests: int, *, per_second: float, burst: float) -> Grant:
        """Take requests out of a caller's bucket. The returned grant may contain fewer than ``requests``.

        Args:
            caller: A text that identifies the caller. Only a digest of the text is stored.
            requests: Number of requests to take; at least 1.
            per_second: Number of requests that are added to the bucket each second.
            burst: Capacity of the bucket, at least ``requests``. A new bucket is full.

        Raises:
            StorageError: The database cannot be reached or written.
        """
        ...


@dataclass(frozen=True, slots=True)
class MemorySummary:
    """Summary of a memory or a backup, returned by a check for damage.

    Attributes:
        place: Where the memory is stored, such as the path of a file.
        pages: Number of dialogue pages.
        last_added_at: When the newest page was stored; None if there are no pages.
        retention_waits_until: The earliest time at which old pages can be forgotten; None if forgetting is not delayed.
            Forgetting is delayed while the system clock may be wrong.
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
    """The place where a memory is stored, such as the path of a file, and the size of the memory in bytes."""

    place: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class StorageState:
    """How a memory is stored.

    Attributes:
        engine: The name and version of the database engine.
        footprint: The place and size of the memory; None if nothing is stored yet.
    """

    engine: str
    footprint: Footprint | None


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The changes that a restore will make.

    Attributes:
        file: The path of the backup.
        backup: Summary of the backup.
        replaced: Summary of the memory that will be replaced; None if it does not exist or cannot be read.
        kept: The path at which the replaced memory will be saved; None if no memory is replaced.
    """

    file: Path
    backup: MemorySummary
    replaced: MemorySummary | None
    kept: Path | None


class Backups(Protocol):
    """Backups of users' memories as files.

    A method with the argument ``tell`` reports its progress by calling ``tell(done, total)``. ``done`` is the number of
    blocks of the file copied so far, and ``total`` is the number of all blocks.
    """

    def names(self) -> list[str]:
        """Return the folder name (see `user_folder_name`) of each user who has a memory, even a damaged one."""
        ...

    def make(self, name: str, target: Path, tell: Callable[[int, int], None]) -> MemorySummary | None:
        """Copy the current state of a memory to a file, and check the copy for damage.

        Servers may write to the memory during the copy.

        Args:
            name: A name that `names` returned.
            target: The path of the copy. The file is created, or replaced, only when the copy is complete.
            tell: Called during the copy to report its progress; see `Backups`.

        Returns:
            The summary of the copy, or None if the memory does not exist.

        Raises:
            DamagedStoreError: The memory is damaged, or was created by another program.
            NewerStoreError: The memory was created by a newer version of this program.
            StorageError: The memory cannot be read, or the copy cannot be written.
        """
        ...

    def plan_restore(self, user_id: str, backup: Path) -> RestorePlan:
        """Check a backup, and return the changes that `restore` would make. Nothing is changed.

        Raises:
            ArgumentError: The backup belongs to another user.
            DamagedStoreError: The file is damaged or is not a backup.
            NewerStoreError: The backup was created by a newer version of this program.
            StorageError: The backup cannot be read.
        """
        ...

    def restore(self, plan: RestorePlan, tell: Callable[[int, int], None]) -> None:
        """Save the user's current memory at ``plan.kept``, then replace it with the backup ``plan.file``.

        Raises:
            StorageError: The memory is in use or cannot be written. Nothing was changed.
        """
        ...
