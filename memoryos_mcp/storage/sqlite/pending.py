"""Lists all users, and the users with pending background work."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw

from memoryos_mcp.storage.sqlite.connections import connect_to_read
from memoryos_mcp.storage.sqlite.file_errors import translated
from memoryos_mcp.storage.sqlite.file_header import check_content, check_header
from memoryos_mcp.storage.sqlite.paths import beginning_mark, database_files
from memoryos_mcp.storage.sqlite.schema import APPLICATION_ID, CURRENT_VERSION, version

_OWNER = "SELECT value FROM meta WHERE key = 'user_id'"
# The user id, if there are pages in the backlog, or pages without vectors of the configured model.
_OWNER_WITH_WORK = """
SELECT value FROM meta WHERE key = 'user_id' AND (
    EXISTS (SELECT 1 FROM pages WHERE tier = 'backlog')
    OR ?1 IS NOT NULL
    AND EXISTS (SELECT 1 FROM pages WHERE seq >= coalesce((SELECT max(next_seq) FROM spaces WHERE model = ?1), 1))
)
"""


def users(data_folder: Path) -> Iterator[str]:
    """Yield the ids of all users who have a file; see `Stores.users`."""
    for path in database_files(data_folder):
        if path.stat().st_size == 0 and beginning_mark(path).exists():
            continue  # a server was killed before it created the tables
        with translated(path):
            check_header(path)
            with closing(connect_to_read(path, is_in_use=True)) as connection:
                check_content(connection, path)
                user_id: str = connection.execute(_OWNER).get
        yield user_id


def users_with_work(data_folder: Path, model: str | None) -> Iterator[str]:
    """Yield the ids of users with pages that are not yet organised or embedded; see `Stores.users_with_work`.

    If ``model`` is None, only pages that are not yet organised count. Unreadable files are skipped. A user whose file
    has an earlier schema version is always included. The search takes about half a millisecond for each user.
    """
    for path in database_files(data_folder):
        try:
            user_id = _user_with_work(path, model)
        except apsw.Error:  # the next request of this user reports the error
            continue
        if user_id is not None:
            yield user_id


def _user_with_work(path: Path, model: str | None) -> str | None:
    with closing(connect_to_read(path, is_in_use=False)) as connection:
        if connection.pragma("application_id") != APPLICATION_ID:
            return None
        is_earlier = version(connection) < CURRENT_VERSION
        cursor = connection.execute(_OWNER) if is_earlier else connection.execute(_OWNER_WITH_WORK, (model,))
        user_id: str | None = cursor.get
        return user_id
