"""Folder and file names: each user id has its own folder inside the data folder."""

import hashlib
import re
from datetime import UTC, datetime
from pathlib import Path

from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.model.pages import storable

USER_ID_MAX_CHARS = 10_000
DATABASE_NAME = "memory.db"
_KEPT = "memory-before-"

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_UNSAFE = re.compile(r"[^a-z0-9_-]+")
# Names that Windows reserves for devices, whatever the suffix.
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])")


def user_folder_name(user_id: str) -> str:
    """Return a user's folder name: the id itself if it is plain, else a readable part of it, ``~`` and a hash.

    Plain ids do not contain ``~``, so the two kinds cannot collide. Ids with capital letters are not plain, so two ids
    never share a folder on a case-insensitive file system.

    Raises:
        ArgumentError: The id is blank, over 10,000 characters, or not valid Unicode text.
    """
    if storable(user_id) != user_id:
        raise ArgumentError(argument="user_id", problem="contains a NUL or a lone surrogate; give plain Unicode text")
    if not user_id.strip():
        raise ArgumentError(argument="user_id", problem="is blank; give the id of the user who owns the memory")
    if len(user_id) > USER_ID_MAX_CHARS:
        raise ArgumentError(argument="user_id", problem=f"is over {USER_ID_MAX_CHARS:,} characters; shorten it")
    if _PLAIN.fullmatch(user_id) and not _RESERVED.fullmatch(user_id):
        return user_id
    stub = _UNSAFE.sub("-", user_id.lower()).strip("-")[:32] or "user"
    return f"{stub}~{hashlib.sha256(user_id.encode()).hexdigest()[:24]}"


def stamp(moment: datetime) -> str:
    """Return a time as it is written in file names, in UTC."""
    return f"{moment.astimezone(UTC):%Y%m%dT%H%M%S%f}Z"


def kept_name(at: datetime) -> str:
    """Return the file name of a memory that was replaced at this time."""
    return f"{_KEPT}{stamp(at)}.db"


def kept_copies(database: Path) -> list[Path]:
    """Return the copies of replaced memories beside a memory, the oldest first.

    Most are whole memories. A journal without a memory file is from a memory that was replaced while no server ran.
    """
    journals = database.parent.glob(f"{_KEPT}*.db-wal")
    return sorted(
        [*database.parent.glob(f"{_KEPT}*.db"), *(it for it in journals if not it.with_suffix(".db").exists())]
    )


def remove_kept_copies(database: Path) -> None:
    """Remove the copies of replaced memories, and unfinished copies, beside a memory.

    Raises:
        OSError: A file cannot be removed.
    """
    for pattern in (f"{_KEPT}*.db*", f".*{DATABASE_NAME}.*"):
        for path in database.parent.glob(pattern):
            path.unlink(missing_ok=True)


def beginning_mark(database: Path) -> Path:
    """Return the path of the empty file that exists beside a new memory until its tables are created."""
    return database.with_name(f".{database.name}.new")


def database_file(data_folder: Path, user_id: str) -> Path:
    """Return the path of a user's memory under the data folder.

    Raises:
        ArgumentError: The user id is not valid.
    """
    return data_folder / "users" / user_folder_name(user_id) / DATABASE_NAME


def database_files(data_folder: Path) -> list[Path]:
    """Return the paths of all users' memories under the data folder."""
    return sorted(data_folder.glob(f"users/*/{DATABASE_NAME}"))
