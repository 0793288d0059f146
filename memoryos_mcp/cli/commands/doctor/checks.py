"""Classes and functions for the results of the checks that ``memoryos-mcp doctor`` makes."""

from collections.abc import Sequence
from enum import StrEnum

from pydantic import BaseModel

from memoryos_mcp.errors import MemoryOSError


class Verdict(StrEnum):
    """Whether a check passed, passed with a warning, or failed. Only FAIL makes the command ``doctor`` fail."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Check(BaseModel, frozen=True):
    """The result of one check: what was found and, if necessary, what to change."""

    name: str
    verdict: Verdict
    found: str
    fix: str | None = None


class Diagnosis(BaseModel, frozen=True):
    """The results of all checks. ``ok`` is True if no check failed."""

    checks: Sequence[Check]
    ok: bool


def passed(name: str, found: str, fix: str | None = None) -> Check:
    """Return the result of a check that passed. ``fix`` is an optional suggestion."""
    return Check(name=name, verdict=Verdict.OK, found=found, fix=fix)


def warned(name: str, found: str, fix: str | None = None) -> Check:
    """Return the result of a check that passed with a warning."""
    return Check(name=name, verdict=Verdict.WARN, found=found, fix=fix)


def failed(name: str, found: str, fix: str | None = None) -> Check:
    """Return the result of a check that failed. ``fix`` says what to change, if this is known."""
    return Check(name=name, verdict=Verdict.FAIL, found=found, fix=fix)


def failed_by(name: str, error: MemoryOSError) -> Check:
    """Return the result of a check that failed with ``error``. The error's message contains the problem and the fix."""
    return failed(name, *parts(error))


def parts(error: MemoryOSError) -> tuple[str, str | None]:
    """Split an error message at its first semicolon, and return the problem and the fix.

    The fix is None if there is no semicolon.
    """
    found, _, fix = str(error).partition("; ")
    return found, fix or None
