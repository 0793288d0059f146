"""File descriptors: how many memories this process may hold open at once."""

import logging
import sys
from contextlib import suppress

logger = logging.getLogger(__name__)

# Measured: twelve for five connections with a file and a journal each, shared ones included; two more during
# verification.
DESCRIPTORS_PER_USER = 14
# For connections of clients, models, logs and libraries.
DESCRIPTORS_BESIDE = 256


def fitting_users(wanted: int, *, besides: int) -> int:
    """Return how many users' memories may be open at once: as many as wanted, or fewer if the system allows fewer.

    The process's own limit is raised first, as far as needed and allowed.

    Args:
        wanted: Maximum number of open memories; 1 or more.
        besides: Number of additional memories that may be open for a moment while they close.
    """
    needed = DESCRIPTORS_BESIDE + (wanted + besides) * DESCRIPTORS_PER_USER
    allowed = _raised_limit(needed)
    if allowed is None or needed <= allowed:
        return wanted
    fitting = max(1, (allowed - DESCRIPTORS_BESIDE) // DESCRIPTORS_PER_USER - besides)
    logger.warning(
        "at most %d users' memories are held open at once, not %d: this process may have %d files open. "
        "Raise that limit (ulimit -Hn) to %d, or lower max_open_users",
        fitting,
        wanted,
        allowed,
        needed,
    )
    return fitting


def _raised_limit(needed: int) -> int | None:
    """Try to raise the number of files that this process may open, and return it; None means any number."""
    if sys.platform == "win32":
        return None
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    if soft < needed:
        raised = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with suppress(ValueError, OSError):  # some systems allow less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            soft = raised
    return soft
