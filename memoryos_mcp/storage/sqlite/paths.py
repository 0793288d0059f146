"""A user's folder: any text as a user id, never a path out of the data folder, never two users in one folder."""

import hashlib
import re
from pathlib import Path

from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.model.pages import storable

USER_ID_MAX_CHARS = 10_000
DATABASE_NAME = "memory.db"
_KEPT = "memory-before-"

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_UNSAFE = re.compile(r"[^a-z0-9_-]+")
# Names that Windows keeps for devices, whatever the suffix.
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])")


def user_folder_name(user_id: str) -> str:
    """Return the folder name of a user: the id itself if it is plain, else a readable stub and a hash, joined by ``~``.

    Plain ids hold no ``~``, so the two kinds never meet; a case-blind file system never merges two ids, because a
    capital letter makes an id other than plain.

    Raises:
        ArgumentError: The id is blank, over 10,000 characters, or no Unicode text.
    """
    if storable(user_id) != user_id:
        raise ArgumentError(argument="user_id", problem="holds a NUL or a lone surrogate; give plain Unicode text")
    if not user_id.strip():
        raise ArgumentError(argument="user_id", problem="is blank; give the name of the user whose memory this is")
    if len(user_id) > USER_ID_MAX_CHARS:
        raise ArgumentError(argument="user_id", problem=f"is over {USER_ID_MAX_CHARS:,} characters; shorten it")
    if _PLAIN.fullmatch(user_id) and not _RESERVED.fullmatch(user_id):
        return user_id
    stub = _UNSAFE.sub("-", user_id.lower()).strip("-")[:32] or "user"
    return f"{stub}~{hashlib.sha256(user_id.encode()).hexdigest()[:24]}"


def kept_name(stamp: str) -> str:
    """Return what a restore calls the memory that it replaces.

    Args:
        stamp: When that is.
    """
    return f"{_KEPT}{stamp}.db"


def kept_copies(database: Path) -> list[Path]:
    """Return the files beside a memory that hold what it held before it was replaced, the oldest first.

    Mostly whole memories; a journal alone is what is left of one that was replaced while no server could keep it.
    """
    journals = database.parent.glob(f"{_KEPT}*.db-wal")
    return sorted(
        [*database.parent.glob(f"{_KEPT}*.db"), *(it for it in journals if not it.with_suffix(".db").exists())]
    )


def remove_kept_copies(database: Path) -> None:
    """Remove what restores have left beside a memory: what they kept, and what they did not finish.

    Raises:
        OSError: Something cannot be removed.
    """
    for pattern in (f"{_KEPT}*.db*", f".*{DATABASE_NAME}.*"):
        for path in database.parent.glob(pattern):
            path.unlink(missing_ok=True)


def beginning_mark(database: Path) -> Path:
    """Return the empty file that stands beside a memory from before it is made until it holds its tables."""
    return database.with_name(f".{database.name}.new")


def database_file(data_folder: Path, user_id: str) -> Path:
    """Return where a user's memory is kept under the data folder.

    Raises:
        ArgumentError: The id cannot name a user.
    """
    return data_folder / "users" / user_folder_name(user_id) / DATABASE_NAME
