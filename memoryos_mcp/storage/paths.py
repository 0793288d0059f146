"""Names of the files in a user's folder."""

from datetime import UTC, datetime
from pathlib import Path

from memoryos_mcp.text.user_ids import user_folder

DATABASE_NAME = "memory.db"
_KEPT = "memory-before-"


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
    return user_folder(data_folder, user_id) / DATABASE_NAME


def database_files(data_folder: Path) -> list[Path]:
    """Return the paths of all users' memories under the data folder."""
    return sorted(data_folder.glob(f"users/*/{DATABASE_NAME}"))
