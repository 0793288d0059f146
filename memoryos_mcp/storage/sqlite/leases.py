"""The lease: the row that names the process doing a user's background work, and the check before every such write."""

import apsw

from memoryos_mcp.errors import LeaseLostError
from memoryos_mcp.storage.sqlite.forget_plans import forget_epoch
from memoryos_mcp.storage.values import Lease

# A holder that commits is alive: each commit extends its lease to at least this long from now.
LEASE_EXTENSION_US = 15_000_000
LONGEST_LEASE_US = 300_000_000


def take_lease(connection: apsw.Connection, holder: str, now_us: int, ttl_us: int) -> Lease | None:
    """Take or renew the lease; None while another holder's lease has not expired."""
    current, epoch, expires_us = connection.execute("SELECT holder, epoch, expires_us FROM lease").get
    # An expiry beyond the longest lease was written by a clock that ran ahead; it must not block the work until then.
    if current not in {"", holder} and now_us < expires_us <= now_us + LONGEST_LEASE_US:
        return None
    if current != holder:
        epoch += 1
    connection.execute("UPDATE lease SET holder = ?, epoch = ?, expires_us = ?", (holder, epoch, now_us + ttl_us))
    return Lease(epoch, forget_epoch(connection))


def check_lease(connection: apsw.Connection, holder: str, lease: Lease, now_us: int) -> None:
    """Check that no other process has taken the lease over, and extend it.

    Raises:
        LeaseLostError: Another process holds the lease.
    """
    current, epoch, expires_us = connection.execute("SELECT holder, epoch, expires_us FROM lease").get
    if (current, epoch) != (holder, lease.epoch):
        msg = "another process does this user's background work now; what was computed here was dropped"
        raise LeaseLostError(msg)
    connection.execute("UPDATE lease SET expires_us = ?", (max(expires_us, now_us + LEASE_EXTENSION_US),))


def release_lease(connection: apsw.Connection, holder: str, lease: Lease | None) -> None:
    """Release a lease, if this holder still has it; None releases whichever it has."""
    connection.execute(
        "UPDATE lease SET holder = '', expires_us = 0 WHERE holder = ?1 AND epoch = coalesce(?2, epoch)",
        (holder, None if lease is None else lease.epoch),
    )
