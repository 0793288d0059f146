"""Results of the doctor's checks."""

from collections.abc import Sequence
from enum import StrEnum

from pydantic import BaseModel

from memoryos_mcp.errors import MemoryOSError


class Verdict(StrEnum):
    """How a check went; only FAIL fails the whole."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Check(BaseModel, frozen=True):
    """The result of one check; ``fix`` is what to change, if anything."""

    name: str
    verdict: Verdict
    found: str
    fix: str | None = None


class Diagnosis(BaseModel, frozen=True):
    """All checks; ``ok`` if none failed."""

    checks: Sequence[Check]
    ok: bool


def passed(name: str, found: str, fix: str | None = None) -> Check:
    """Return a check that passed; ``fix`` is then a suggestion."""
    return Check(name=name, verdict=Verdict.OK, found=found, fix=fix)


def warned(name: str, found: str, fix: str | None = None) -> Check:
    """Return a check with a warning."""
    return Check(name=name, verdict=Verdict.WARN, found=found, fix=fix)


def failed(name: str, error: MemoryOSError) -> Check:
    """Return an error as a failed check."""
    found, fix = parts(error)
    return Check(name=name, verdict=Verdict.FAIL, found=found, fix=fix)


def parts(error: MemoryOSError) -> tuple[str, str | None]:
    """Return an error's problem and fix, which are separated by a semicolon in our messages."""
    found, _, fix = str(error).partition("; ")
    return found, fix or None
