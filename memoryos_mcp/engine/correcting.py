"""Checks a user's correction of a fact or trait, and applies it."""

from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.model.ids import Kind, read_id
from memoryos_mcp.model.pages import storable
from memoryos_mcp.model.profile import Level
from memoryos_mcp.storage.user_data import UserData
from memoryos_mcp.storage.values import Corrected, Correction
from memoryos_mcp.text.secrets import SecretPolicy, redact_argument

TEXT_MAX_CHARS = 400
REASON_MAX_CHARS = 300


async def correct(
    store: UserData,
    memory_id: str,
    policy: SecretPolicy,
    *,
    text: str | None = None,
    level: str | None = None,
    reason: str | None = None,
    is_wrong: bool = False,
    is_restored: bool = False,
    is_dry_run: bool = False,
) -> Corrected:
    """Check a correction, apply it and return the change. `MemoryEngine.correct` describes the arguments."""
    what = read_id(memory_id)
    if what.kind not in (Kind.FACT, Kind.TRAIT):
        problem = (
            f"is the id of a {what.kind}, but only facts (k1) and traits (trait:NAME) can be corrected; "
            "to remove a page, forget it"
        )
        raise ArgumentError(argument="id", problem=problem)
    correction = Correction(
        text=_checked("text", text, TEXT_MAX_CHARS, policy),
        level=None if level is None else _level(level),
        reason=_checked("reason", reason, REASON_MAX_CHARS, policy),
        is_wrong=is_wrong,
        is_restored=is_restored,
    )
    if is_restored:
        _check_restore(correction)
    elif what.kind is Kind.FACT:
        _check_fact(correction)
    else:
        _check_trait(correction)
    return await store.correct(what, correction, is_dry_run=is_dry_run)


def _check_restore(correction: Correction) -> None:
    if correction != Correction(is_restored=True):
        problem = "cannot be combined with 'text', 'level', 'reason' or 'wrong'; leave these out"
        raise ArgumentError(argument="restore", problem=problem)


def _check_fact(correction: Correction) -> None:
    if correction.level is not None or correction.reason is not None:
        problem = "'level' and 'reason' apply only to traits; to correct a fact, pass 'text' or set 'wrong' to true"
        raise ArgumentError(argument="level", problem=problem)
    if (correction.text is None) is not correction.is_wrong:
        problem = (
            "either 'text' or 'wrong' is required, but not both; set 'wrong' to true if the fact has no replacement"
        )
        raise ArgumentError(argument="text", problem=problem)


def _check_trait(correction: Correction) -> None:
    if correction.text is not None:
        raise ArgumentError(
            argument="text",
            problem="applies only to facts; to correct a trait, pass 'level' or 'reason', or set 'wrong' to true",
        )
    if (correction.level is None and correction.reason is None) is not correction.is_wrong:
        problem = "pass 'level', 'reason' or both to correct a trait; to remove the trait, set only 'wrong' to true"
        raise ArgumentError(argument="level", problem=problem)


def _level(text: str) -> Level:
    try:
        return Level(text.strip().capitalize())
    except ValueError:
        raise ArgumentError(argument="level", problem=f"is not valid; use one of {', '.join(Level)}") from None


def _checked(argument: str, text: str | None, max_chars: int, policy: SecretPolicy) -> str | None:
    """Return ``text`` on one line, redacted according to ``policy``. Return None if ``text`` is None.

    Raises:
        ArgumentError: The text is empty or too long, or the policy rejects a secret in it.
    """
    if text is None:
        return None
    line = redact_argument(argument, " ".join(storable(text).split()), policy)
    if not line or len(line) > max_chars:
        problem = f"must have 1 to {max_chars} characters; write one sentence that is clear without context"
        raise ArgumentError(argument=argument, problem=problem)
    return line
