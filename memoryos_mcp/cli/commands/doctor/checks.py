"""Results of the doctor's checks."""

from collections.abc import Sequence
from enum import StrEnum

from pydantic import BaseModel

from memoryos_mcp.errors import MemoryOSError


class Verdict(StrEnum):
    """Result of a check; only FAIL makes the command fail."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Check(BaseModel, frozen=True):
    """One check: what was found, and what to change, if anything."""

    name: str
    verdict: Verdict
    found: str
    fix: str | None = None


class Diagnosis(BaseModel, frozen=True):
    """All checks; ``ok`` is true if none failed."""

    checks: Sequence[Check]
    ok: bool


def passed(name: str, found: str, fix: str | None = None) -> Check:
    """Return a successful check; ``fix`` is only a suggestion."""
    return Check(name=name, verdict=Verdict.OK, found=found, fix=fix)


def warned(name: str, found: str, fix: str | None = None) -> Check:
    """Return a check with a warning."""
    return Check(name=name, verdict=Verdict.WARN, found=found, fix=fix)


def failed(name: str, found: str, fix: str | None = None) -> Check:
    """Return a failed check."""
    return Check(name=name, verdict=Verdict.FAIL, found=found, fix=fix)


def failed_by(name: str, error: MemoryOSError) -> Check:
    """Return an error as a failed check."""
    return failed(name, *parts(error))


def parts(error: MemoryOSError) -> tuple[str, str | None]:
    """Return the problem and the fix of an error, which our messages separate by a semicolon."""
    found, _, fix = str(error).partition("; ")
    return found, fix or None
