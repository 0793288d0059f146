"""Names and paths of the files in a user's folder: the memory, and backup copies made by restores."""

from datetime import UTC, datetime
from pathlib import Path

from memoryos_mcp.text.user_ids import user_folder

DATABASE_NAME = "memory.db"
_KEPT = "memory-before-"


def stamp(moment: datetime) -> str:
    """Convert a time to UTC and format it for use in a file name, such as ``20260131T093000123456Z``."""
    return f"{moment.astimezone(UTC):%Y%m%dT%H%M%S%f}Z"


def kept_name(at: datetime) -> str:
    """Return the file name for the backup copy of a memory that is replaced at the time ``at``."""
    return f"{_KEPT}{stamp(at)}.db"


def kept_copies(database: Path) -> list[Path]:
    """Return the paths of the backup copies in the folder of ``database``, the oldest first.

    A backup copy contains a memory that a restore replaced. Most copies are whole database files. Some are only the
    journal of a replaced database file.
    """
    journals = database.parent.glob(f"{_KEPT}*.db-wal")
    return sorted(
        [*database.parent.glob(f"{_KEPT}*.db"), *(it for it in journals if not it.with_suffix(".db").exists())]
    )


def remove_kept_copies(database: Path) -> None:
    """Remove all backup copies made by restores from the folder of ``database``, and all unfinished copies.

    Raises:
        OSError: A file cannot be removed.
    """
    for pattern in (f"{_KEPT}*.db*", f".*{DATABASE_NAME}.*"):
        for path in database.parent.glob(pattern):
            path.unlink(missing_ok=True)


def beginning_mark(database: Path) -> Path:
    """Return the path of the empty file that marks a database as new. It is removed once the tables exist."""
    return database.with_name(f".{database.name}.new")


def database_file(data_folder: Path, user_id: str) -> Path:
    """Return the path of a user's database file. The file need not exist.

    Raises:
        ArgumentError: The user id is not valid.
    """
    return user_folder(data_folder, user_id) / DATABASE_NAME


def database_files(data_folder: Path) -> list[Path]:
    """Return the paths of all users' database files in the data folder."""
    return sorted(data_folder.glob(f"users/*/{DATABASE_NAME}"))
