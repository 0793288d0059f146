"""The number of memories that can be open at the same time, by the limit of file descriptors."""

import logging
import sys
from contextlib import suppress

logger = logging.getLogger(__name__)

# Measured: twelve for a memory's five connections, each with a file and a journal; two more during verification.
DESCRIPTORS_PER_USER = 14
# Reserved for clients, models, logs and libraries.
DESCRIPTORS_BESIDE = 256


def fitting_users(wanted: int, *, besides: int) -> int:
    """Return how many memories can be open at the same time: ``wanted``, or fewer if the limit of files is too low.

    The process's own limit is raised first, as far as needed and allowed. ``besides`` is the number of additional
    memories that are still open for a moment while they close.
    """
    needed = DESCRIPTORS_BESIDE + (wanted + besides) * DESCRIPTORS_PER_USER
    allowed = _raised_limit(needed)
    if allowed is None or needed <= allowed:
        return wanted
    fitting = max(1, (allowed - DESCRIPTORS_BESIDE) // DESCRIPTORS_PER_USER - besides)
    logger.warning(
        "at most %d users' memories can be open at the same time, not %d, because this process may open only %d files. "
        "Raise that limit (ulimit -Hn) to %d, or lower max_open_users",
        fitting,
        wanted,
        allowed,
        needed,
    )
    return fitting


def _raised_limit(needed: int) -> int | None:
    """Raise the number of files that this process may open, if allowed, and return it; None means no limit."""
    if sys.platform == "win32":
        return None
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    if soft < needed:
        raised = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with suppress(ValueError, OSError):  # some systems allow less than their hard limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            soft = raised
    return soft
