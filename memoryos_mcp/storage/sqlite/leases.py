"""The lease: the row that says which process does a user's background work, and the check of every such write."""

import apsw

from memoryos_mcp.errors import LeaseLostError
from memoryos_mcp.storage.values import Lease

# A holder that commits is alive: each commit puts the end of its lease off by this much.
LEASE_EXTENSION_US = 15_000_000
LONGEST_LEASE_US = 300_000_000


def take_lease(connection: apsw.Connection, holder: str, now_us: int, ttl_us: int) -> Lease | None:
    """Take or renew the lease; None while another holder's has not run out."""
    current, epoch, expires_us = connection.execute("SELECT holder, epoch, expires_us FROM lease").get
    # An end beyond any lease's length was written by a clock that ran ahead; it must not hold up the work until then.
    if current not in {"", holder} and now_us < expires_us <= now_us + LONGEST_LEASE_US:
        return None
    if current != holder:
        epoch += 1
    connection.execute("UPDATE lease SET holder = ?, epoch = ?, expires_us = ?", (holder, epoch, now_us + ttl_us))
    return Lease(epoch=epoch)


def check_lease(connection: apsw.Connection, holder: str, lease: Lease, now_us: int) -> None:
    """Make sure that no other process has taken over, and put the end off: whoever commits is alive.

    Raises:
        LeaseLostError: The lease is another's.
    """
    current, epoch, expires_us = connection.execute("SELECT holder, epoch, expires_us FROM lease").get
    if (current, epoch) != (holder, lease.epoch):
        msg = "another process does this user's background work now; what was computed here was dropped"
        raise LeaseLostError(msg)
    connection.execute("UPDATE lease SET expires_us = ?", (max(expires_us, now_us + LEASE_EXTENSION_US),))


def release_leases(connection: apsw.Connection, holder: str) -> None:
    """Give back whatever a holder has."""
    connection.execute("UPDATE lease SET holder = '', expires_us = 0 WHERE holder = ?", (holder,))


def release_lease(connection: apsw.Connection, holder: str, lease: Lease) -> None:
    """Give the lease back, if it is still this holder's."""
    connection.execute(
        "UPDATE lease SET holder = '', expires_us = 0 WHERE holder = ? AND epoch = ?", (holder, lease.epoch)
    )
