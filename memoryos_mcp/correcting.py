"""Correcting: what the user says of a fact or trait, checked and carried out."""

from dataclasses import dataclass, replace

from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.ids import Kind, MemoryId, numbered_id, read_id, trait_id
from memoryos_mcp.pages import storable
from memoryos_mcp.profile import Level
from memoryos_mcp.redaction import SecretPolicy, redact_argument
from memoryos_mcp.storage.owned import OwnedStore

TEXT_MAX_CHARS = 400
REASON_MAX_CHARS = 300


@dataclass(frozen=True, slots=True)
class Correction:
    """What a user says of a fact or trait.

    Attributes:
        id: Of which.
        text: What is right instead of a fact; None says nothing instead.
        level: What is right of a trait; None leaves it.
        reason: Why the trait is so; None leaves it.
        is_wrong: Whether it is only wrong, with nothing instead.
    """

    id: str
    text: str | None = None
    level: str | None = None
    reason: str | None = None
    is_wrong: bool = False


async def correct(store: OwnedStore, correction: Correction, policy: SecretPolicy) -> str | None:
    """Carry out a correction, and return the id of what holds now; None if nothing is to.

    Args:
        store: The user's memory.
        correction: What the user says.
        policy: What becomes of secrets in it.

    Raises:
        ArgumentError: It cannot be carried out; nothing was changed.
        StorageError: The store could not be written; nothing was changed.
    """
    what = read_id(correction.id)
    correction = replace(
        correction,
        text=_checked("text", correction.text, TEXT_MAX_CHARS, policy),
        reason=_checked("reason", correction.reason, REASON_MAX_CHARS, policy),
    )
    if what.kind is Kind.FACT:
        return await _correct_fact(store, what, correction)
    if what.kind is Kind.TRAIT:
        return await _correct_trait(store, what, correction)
    problem = f"names a {what.kind}; only facts (k1) and traits (trait:NAME) are corrected, what was said is forgotten"
    raise ArgumentError(argument="id", problem=problem)


async def _correct_fact(store: OwnedStore, what: MemoryId, correction: Correction) -> str | None:
    if correction.level is not None or correction.reason is not None:
        raise ArgumentError(
            argument="level", problem="is of a trait, as is reason; a fact is corrected by text or wrong"
        )
    if (correction.text is None) is not correction.is_wrong:
        problem = "is needed for a fact, or else wrong: true if nothing holds instead; give one of the two"
        raise ArgumentError(argument="text", problem=problem)
    heir = await store.correct_fact(what.number, correction.text)
    return None if heir is None else numbered_id(Kind.FACT, heir)


async def _correct_trait(store: OwnedStore, what: MemoryId, correction: Correction) -> str | None:
    if correction.text is not None:
        raise ArgumentError(argument="text", problem="is of a fact; a trait is corrected by level, reason or wrong")
    if (correction.level is None and correction.reason is None) is not correction.is_wrong:
        problem = "or reason is needed for a trait, or else wrong: true if it is to be gone; not both"
        raise ArgumentError(argument="level", problem=problem)
    if correction.is_wrong:
        await store.drop_trait(what.name)
        return None
    level = None if correction.level is None else _level(correction.level)
    return trait_id(await store.correct_trait(what.name, level, correction.reason))


def _level(text: str) -> Level:
    try:
        return Level(text.strip().capitalize())
    except ValueError:
        raise ArgumentError(argument="level", problem=f"is none of {', '.join(Level)}") from None


def _checked(argument: str, text: str | None, max_chars: int, policy: SecretPolicy) -> str | None:
    """Return a text, if there is one, in one line and without secrets.

    Raises:
        ArgumentError: It is empty or too long, or holds a secret and must not.
    """
    if text is None:
        return None
    line = redact_argument(argument, " ".join(storable(text).split()), policy)
    if not line or len(line) > max_chars:
        problem = f"is empty or over {max_chars} characters; give one sentence that can be understood alone"
        raise ArgumentError(argument=argument, problem=problem)
    return line
