"""Notices when another server of the same database ends or is lost, so that this server can take over the other's work.

Each server has a connection on which it holds an advisory lock with its number. The list of these locks is the list of
running servers. A lease contains the number of the server that holds it, so that other servers can see which leases
belong to servers that have ended. A server that ends also sends a notification, so that the others notice its end
sooner.
"""

import logging
import secrets
import threading
import time
from contextlib import suppress

import psycopg

logger = logging.getLogger(__name__)

# The first key of the locks, and the name of the channel of notifications. The second key is the server's number.
LOCK_KEY = 0x6D6F7332
MOST_SERVERS = 2**31 - 1
CHANNEL = "memoryos"
# How often the list of servers is read.
LIST_EVERY_S = 2.0
# Programs without a `Watch`, such as commands and servers over stdio, may also leave unfinished work. Servers search
# for such work at this interval.
LOOK_EVERY_S = 600.0
# Maximum time for which a thread waits at a time. When a server is stopped, it waits for this thread.
SLICE_S = 0.2
CONNECT_TIMEOUT_S = 10
# With these settings, the database detects within 20 s that the machine of a server was lost. It then ends the server's
# transactions, and thereby unlocks the memories that they change. PgBouncer rejects these settings as options of the
# connection, so a statement sets them.
KEEPALIVE_SQL = (
    "SELECT set_config('tcp_keepalives_idle', '8', false), set_config('tcp_keepalives_interval', '4', false), "
    "set_config('tcp_keepalives_count', '3', false)"
)
# The numbers of the running servers.
SERVERS_SQL = (
    "SELECT CAST(objid AS bigint) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND objsubid = 2 "  # noqa: S608
    f"AND classid = {LOCK_KEY} AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


class Watch:
    """A connection that announces this server to other servers, and shows which of them are running.

    Args:
        url: The address of the database.
        where: The host and the name of the database, for messages.
    """

    def __init__(self, url: str, where: str) -> None:
        self._url = url
        self._where = where
        self._number = 1 + secrets.randbelow(MOST_SERVERS)
        self._lock = threading.Lock()
        self._connection: psycopg.Connection[tuple[int]] | None = None
        self._servers: set[int] = set()
        self._was_lost = False
        self._look_at = time.monotonic() + LOOK_EVERY_S
        self._closing = threading.Event()

    @property
    def number(self) -> int | None:
        """The number of this server; None if other servers cannot see that it is running."""
        return self._number if self._number in self._servers else None

    def wait(self, timeout_s: float) -> bool:
        """Wait until another server has ended or was lost, but at most ``timeout_s`` seconds.

        Return True if another server has ended or was lost since the last call. Also return True `LOOK_EVERY_S` seconds
        after the last True, because programs without a `Watch` may have left work too. If the database cannot be
        reached, return False after ``timeout_s``. The first call that reaches the database again returns True,
        because servers may have ended meanwhile.
        """
        give_up_at = time.monotonic() + timeout_s
        with self._lock:
            try:
                while not self._closing.is_set():
                    if self._has_one_ended() or time.monotonic() >= self._look_at:
                        self._look_at = time.monotonic() + LOOK_EVERY_S
                        return True
                    if time.monotonic() >= give_up_at:
                        break
            except psycopg.Error as error:
                self._disconnect()
                self._was_lost = True
                logger.warning(
                    "the database %s does not answer, so this server does not notice when other servers end; check "
                    "that the database runs: %s",
                    self._where,
                    type(error).__name__,
                )
                self._closing.wait(max(0.0, give_up_at - time.monotonic()))
        return False

    def close(self) -> None:
        """Notify the other servers that this server has ended, and close the connection."""
        self._closing.set()
        with self._lock:
            if self._connection is not None:
                with suppress(psycopg.Error):  # the others then notice the end when they read the list
                    self._connection.execute(f"NOTIFY {CHANNEL}")
            self._disconnect()

    def _has_one_ended(self) -> bool:
        """Wait for up to `LIST_EVERY_S` seconds, then read the list of servers. Return whether one has ended."""
        if self._connection is None:
            self._connection = psycopg.connect(self._url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S)
            self._connection.execute(KEEPALIVE_SQL)
            self._connection.execute(f"SELECT pg_advisory_lock_shared({LOCK_KEY}, {self._number})")
            self._connection.execute(f"LISTEN {CHANNEL}")
            self._servers = self._listed(self._connection)
            was_lost, self._was_lost = self._was_lost, False
            return was_lost
        is_told = self._is_told(self._connection)
        before, self._servers = self._servers, self._listed(self._connection)
        return is_told or bool(before - self._servers)

    def _is_told(self, connection: "psycopg.Connection[tuple[int]]") -> bool:
        """Wait up to `LIST_EVERY_S` seconds for a notification from another server. Return whether one arrived."""
        until = time.monotonic() + LIST_EVERY_S
        while time.monotonic() < until and not self._closing.is_set():
            for told in connection.notifies(timeout=SLICE_S, stop_after=1):
                if told.pid != connection.info.backend_pid:
                    return True
        return False

    @staticmethod
    def _listed(connection: "psycopg.Connection[tuple[int]]") -> set[int]:
        return {number for (number,) in connection.execute(SERVERS_SQL)}

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection, self._servers = None, set()
