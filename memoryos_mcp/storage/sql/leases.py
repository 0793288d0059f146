"""The lease on a user's background work: taking, checking and releasing it.

The expiry of a lease is measured with the database's clock, because the clocks of several machines differ.
"""

from memoryos_mcp.errors import LeaseLostError
from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.forget_plans import forget_epoch
from memoryos_mcp.storage.values import Lease

# The minimum remaining time of a lease after each commit by its holder.
LEASE_EXTENSION_US = 15_000_000
LONGEST_LEASE_US = 300_000_000


def take_lease(connection: Connection, holder: str, now_us: int, ttl_us: int) -> Lease | None:
    """Take or renew the lease for ``holder``.

    Return None if another holder has an unexpired lease. If that holder's process is known to have ended, its lease is
    taken over.
    """
    now_us += connection.clock_offset_us()
    current, epoch, expires_us = connection.execute("SELECT holder, epoch, expires_us FROM lease").get
    # A lease that would expire later than the longest possible lease was stored with a wrong clock, and is ignored.
    is_held = current not in {"", holder} and now_us < expires_us <= now_us + LONGEST_LEASE_US
    if is_held and not connection.has_ended(current):
        return None
    if current != holder:
        epoch += 1
    connection.execute("UPDATE lease SET holder = ?, epoch = ?, expires_us = ?", (holder, epoch, now_us + ttl_us))
    return Lease(epoch, forget_epoch(connection))


def check_lease(connection: Connection, holder: str, lease: Lease, now_us: int) -> None:
    """Check that ``holder`` still has ``lease``, and extend the lease.

    Raises:
        LeaseLostError: Another process has taken over the lease.
    """
    current, epoch, expires_us = connection.execute("SELECT holder, epoch, expires_us FROM lease").get
    if (current, epoch) != (holder, lease.epoch):
        msg = (
            "another process is now doing this user's background work; the result of this process was discarded. No "
            "action is needed"
        )
        raise LeaseLostError(msg)
    now_us += connection.clock_offset_us()
    connection.execute("UPDATE lease SET expires_us = ?", (max(expires_us, now_us + LEASE_EXTENSION_US),))


def release_lease(connection: Connection, holder: str, lease: Lease | None) -> None:
    """Release the lease if ``holder`` still has it. If ``lease`` is None, release any lease of ``holder``."""
    connection.execute(
        "UPDATE lease SET holder = '', expires_us = 0 WHERE holder = ?1 AND epoch = coalesce(?2, epoch)",
        (holder, None if lease is None else lease.epoch),
    )
