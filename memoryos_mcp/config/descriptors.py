"""Computes how many memories can be open at the same time, given the limit on open files."""

import logging
import sys
from contextlib import suppress

logger = logging.getLogger(__name__)

# Measured: twelve for the five connections of a memory, each with a file and a journal; two more for file checks.
DESCRIPTORS_PER_USER = 14
# Reserved for clients, models, logs and libraries.
DESCRIPTORS_BESIDE = 256


def fitting_users(wanted: int, *, besides: int) -> int:
    """Return how many memories can be open at the same time.

    This process's limit on open files is first raised, as far as needed and allowed.

    Args:
        wanted: Desired number of open memories. The result is smaller if the limit is too low.
        besides: Maximum number of other memories that are still open because they are being closed.
    """
    needed = DESCRIPTORS_BESIDE + (wanted + besides) * DESCRIPTORS_PER_USER
    allowed = _raised_limit(needed)
    if allowed is None or needed <= allowed:
        return wanted
    fitting = max(1, (allowed - DESCRIPTORS_BESIDE) // DESCRIPTORS_PER_USER - besides)
    logger.warning(
        "at most %d memories can be open at the same time, not %d, because this process may open only %d files. "
        "Raise the limit on open files (ulimit -Hn) to %d, or lower max_open_users",
        fitting,
        wanted,
        allowed,
        needed,
    )
    return fitting


def _raised_limit(needed: int) -> int | None:
    """Return this process's limit on open files; None means no limit.

    A limit below ``needed`` is first raised to ``needed``, or as far as the system allows.
    """
    if sys.platform == "win32":
        return None
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    if soft < needed:
        raised = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with suppress(ValueError, OSError):  # some systems allow less than the hard limit that they report
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            soft = raised
    return soft
