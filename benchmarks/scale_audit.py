"""What a database must contain after servers were killed, read past all servers."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg

from benchmarks.figures import Figure

SCHEMA = "memoryos"
Row = tuple[Any, ...]


@dataclass(slots=True)
class Sent:
    """The pages that clients have sent.

    Attributes:
        acknowledged: The page id of each acknowledged page, by its marker.
        unknown: The markers of pages without an answer, which the memory may or may not contain.
    """

    acknowledged: dict[str, str] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)


class Reader:
    """Follows the change sequence of some users, as a server does, while others write.

    Args:
        url: The address of the database, for an account that row-level security restricts.
        users: The users to follow.
    """

    def __init__(self, url: str, users: Iterable[str]) -> None:
        self._connection = psycopg.connect(url, autocommit=True, options=f"-c search_path={SCHEMA}")
        self._is_reading = threading.Lock()  # a task that was cancelled may still read in its thread
        self._users = dict.fromkeys(users, 0)
        self._numbers: dict[str, int] = {}
        self._seen: dict[str, dict[tuple[str, int], int]] = {user: {} for user in self._users}
        self.changes = 0

    def read(self) -> None:
        """Read the changes after those that were read before."""
        sql = "SELECT change, kind, row FROM changes WHERE change > %s ORDER BY change"
        with self._is_reading:
            for user, position in self._users.items():
                for change, kind, row in self._rows(user, sql, position):
                    self._seen[user][kind, row] = self._users[user] = change
                    self.changes += 1

    def lost(self) -> int:
        """Return how many of the latest changes this reader has not seen, or not with their last number."""
        sql = "SELECT kind, row, change FROM changes"
        return sum(
            self._seen[user].get((kind, row)) != change
            for user in self._users
            for kind, row, change in self._rows(user, sql)
        )

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _rows(self, user: str, sql: str, *parameters: int) -> list[Row]:
        if user not in self._numbers:
            found = self._connection.execute("SELECT user_no FROM users WHERE user_id = %s", (user,)).fetchone()
            if found is None:
                return []
            self._numbers[user] = found[0]
        with self._connection.transaction():
            self._connection.execute("SELECT set_config('memoryos.user_no', %s, true)", (str(self._numbers[user]),))
            return self._connection.execute(sql, parameters).fetchall()


def audit(superuser_url: str, sent: Sent, marker_of: Callable[[str], tuple[str, str]]) -> list[Figure]:
    """Compare the database with what was sent.

    Args:
        superuser_url: The address of the database, for an account that row-level security does not restrict.
        sent: The pages that were sent.
        marker_of: Returns the user and the marker in the text of a page.
    """
    with psycopg.connect(superuser_url, options=f"-c search_path={SCHEMA}") as connection:
        return _audit(lambda sql: connection.execute(sql).fetchall(), sent, marker_of)


def _audit(rows: Callable[[str], list[Row]], sent: Sent, marker_of: Callable[[str], tuple[str, str]]) -> list[Figure]:
    stored: Counter[str] = Counter()
    misplaced, ids = 0, {}
    for user_id, page_id, text in rows("SELECT user_id, page_id, user_input FROM pages JOIN users USING (user_no)"):
        user, marker = marker_of(text)
        misplaced += user != user_id
        stored[marker] += 1
        ids[marker] = page_id
    missing = sum(ids.get(marker) != page_id for marker, page_id in sent.acknowledged.items())
    doubled = sum(count > 1 for count in stored.values())
    strange = len(stored.keys() - sent.acknowledged.keys() - sent.unknown)
    [(gaps,)] = rows(
        "SELECT count(*) FROM (SELECT user_no, max(seq) AS newest, count(*) AS number FROM pages GROUP BY user_no) "
        "AS each JOIN counters USING (user_no) WHERE newest <> number OR page <> newest"
    )
    [(unfiled,)] = rows(
        "SELECT count(*) FROM pages WHERE tier = 'backlog' OR (tier = 'mid_term') "
        "<> (segment IS NOT NULL AND chain IS NOT NULL) OR (segment IS NULL) <> (chain IS NULL)"
    )
    [(filed,)] = rows("SELECT count(*) FROM pages WHERE segment IS NOT NULL")
    [(miscounted,)] = rows(
        "SELECT count(*) FROM segments WHERE page_count <> "
        "(SELECT count(*) FROM pages WHERE (pages.user_no, pages.segment) = (segments.user_no, segments.segment))"
    )
    [(empty,)] = rows(
        "SELECT (SELECT count(*) FROM segments WHERE NOT EXISTS (SELECT 1 FROM pages WHERE "
        "(pages.user_no, pages.segment) = (segments.user_no, segments.segment))) + (SELECT count(*) FROM chains "
        "WHERE NOT EXISTS (SELECT 1 FROM pages WHERE (pages.user_no, pages.chain) = (chains.user_no, chains.chain)))"
    )
    acknowledged = len(sent.acknowledged)
    return [
        none_of(f"{acknowledged:,} acknowledged pages that are missing", missing),
        none_of(f"{len(stored):,} stored pages that are stored twice", doubled),
        none_of("stored pages that nobody sent, or of another user", strange + misplaced),
        none_of("users whose pages are not numbered without gaps", gaps),
        none_of(f"pages without a segment or a chain; {filed:,} have both", unfiled),
        none_of("segments with a wrong count, segments and chains without pages", miscounted + empty),
    ]


def isolation(url: str) -> list[Figure]:
    """Send queries that leave out or mistake the user, as an account that row-level security restricts."""
    with psycopg.connect(url, autocommit=True, options=f"-c search_path={SCHEMA}") as connection:
        one, other = (row[0] for row in connection.execute("SELECT user_no FROM users ORDER BY user_no LIMIT 2"))
        seen = changed = 0
        with suppress(psycopg.Error):  # without a user, a query fails
            seen += len(connection.execute("SELECT 1 FROM pages").fetchall())
        with connection.transaction():
            connection.execute("SELECT set_config('memoryos.user_no', %s, true)", (str(one),))
            for sql in (
                "SELECT count(*) FROM pages WHERE user_no <> %s",
                "SELECT count(*) FROM postings WHERE user_no <> %s",
            ):
                seen += (connection.execute(sql, (one,)).fetchone() or (1,))[0]
            changed += connection.execute("UPDATE pages SET tier = tier WHERE user_no = %s", (other,)).rowcount
            changed += connection.execute("DELETE FROM lease WHERE user_no = %s", (other,)).rowcount
        with suppress(psycopg.Error), connection.transaction():
            connection.execute("SELECT set_config('memoryos.user_no', %s, true)", (str(one),))
            connection.execute("INSERT INTO meta (user_no, key, value) VALUES (%s, 'wrong', '')", (other,))
            changed += 1
    return [
        none_of("rows of others in a query for all rows, and in a query that names no user", seen),
        none_of("rows of others that a wrong statement changes, deletes or adds", changed),
    ]


def none_of(what: str, count: int) -> Figure:
    """Return a row of the table for something that must not occur."""
    return Figure(what=what, floor="-", ours=f"{count:,}", ratio=None, target="0", is_reached=count == 0)


def pending(superuser_url: str) -> Mapping[str, int]:
    """Return the number of pages of each user in the backlog."""
    with psycopg.connect(superuser_url, options=f"-c search_path={SCHEMA}") as connection:
        sql = "SELECT user_id, count(*) FROM pages JOIN users USING (user_no) WHERE tier = 'backlog' GROUP BY user_id"
        return dict(connection.execute(sql).fetchall())
