"""Results of the doctor's checks."""

from collections.abc import Sequence
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from memoryos_mcp.errors import MemoryOSError


class Verdict(StrEnum):
    """How a check went; only FAIL fails the whole."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Check(BaseModel):
    """What one look has found.

    Attributes:
        fix: What to change; None if there is nothing to.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    verdict: Verdict
    found: str
    fix: str | None = None


class Diagnosis(BaseModel):
    """All checks; ``ok`` if none failed."""

    model_config = ConfigDict(frozen=True)

    checks: Sequence[Check]
    ok: bool


def failed(name: str, error: MemoryOSError) -> Check:
    """Return an error as a failed check."""
    found, fix = parts(error)
    return Check(name=name, verdict=Verdict.FAIL, found=found, fix=fix)


def parts(error: MemoryOSError) -> tuple[str, str | None]:
    """Return an error's problem and fix, which are separated by a semicolon in our messages."""
    found, _, fix = str(error).partition("; ")
    return found, fix or None
