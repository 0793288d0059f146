"""Maps user ids to folders.

Almost any text is a valid user id. Each user has a separate folder in the data folder.
"""

import hashlib
import re
from pathlib import Path

from memoryos_mcp.config.checks import storable_text
from memoryos_mcp.errors import ArgumentError

USER_ID_MAX_CHARS = 10_000

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_UNSAFE = re.compile(r"[^a-z0-9_-]+")
# Names that Windows reserves for devices, whatever the suffix.
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])")


def user_folder(data_folder: Path, user_id: str) -> Path:
    """Return the path of a user's folder inside the data folder. The folder need not exist.

    Raises:
        ArgumentError: The user id is not valid.
    """
    return data_folder / "users" / user_folder_name(user_id)


def user_folder_name(user_id: str) -> str:
    """Return the name of a user's folder.

    A plain id consists of at most 64 lower-case ASCII letters, digits, ``_`` and ``-``. It begins with a letter or
    digit, and is not a name that Windows reserves. The folder of a plain id has the same name as the id. For any other
    id, the name is a readable prefix and a hash of the id, joined by ``~``. Plain ids do not contain ``~``, so the two
    forms cannot collide. Ids with capital letters are not plain, so two ids never share a folder on a case-insensitive
    file system.

    Raises:
        ArgumentError: The id is blank, longer than 10,000 characters, not valid Unicode text, or contains a NUL.
    """
    try:
        storable_text(user_id)
    except ValueError:
        problem = "contains a NUL or a lone surrogate; pass valid Unicode text without NULs"
        raise ArgumentError(argument="user_id", problem=problem) from None
    if not user_id.strip():
        raise ArgumentError(
            argument="user_id", problem="is blank; pass the id of the user whose memory you want to use"
        )
    if len(user_id) > USER_ID_MAX_CHARS:
        raise ArgumentError(argument="user_id", problem=f"is over {USER_ID_MAX_CHARS:,} characters; shorten it")
    if _PLAIN.fullmatch(user_id) and not _RESERVED.fullmatch(user_id):
        return user_id
    stub = _UNSAFE.sub("-", user_id.lower()).strip("-")[:32] or "user"
    return f"{stub}~{hashlib.sha256(user_id.encode()).hexdigest()[:24]}"
