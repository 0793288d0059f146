"""Knowledge: single facts about the user or the assistant, each with its evidence and the time it holds."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from memoryos_mcp.profile import TraitChange
from memoryos_mcp.segments import Vector

# Who a fact or trait was learned from, if the user has corrected it; else it is the name of an analyst.
LEARNED_BY_USER = "user"


class About(StrEnum):
    """Whom a fact is about."""

    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class Fact:
    """One piece of knowledge.

    Attributes:
        fact: Its number within the user's memory.
        about: Whom it is about.
        text: The fact in words.
        slot: What it answers if only one answer can hold at a time ("lives in"); None if it stands beside others.
        valid_from: Since when it holds; when it was said, if nothing else is known.
        valid_until: When it ends, or a newer fact took its place; None if no end is known.
        evidence: Public names of the pages it rests on, oldest first.
        vector: Unit length, shape ``(dimension,)``; None while it is not embedded.
        is_archived: Whether it is beyond the knowledge that is kept at hand: found when asked for, else not told.
    """

    fact: int
    about: About
    text: str
    slot: str | None
    valid_from: datetime
    valid_until: datetime | None
    evidence: tuple[str, ...]
    vector: Vector | None
    is_archived: bool = False


@dataclass(frozen=True, slots=True)
class AddFact:
    """Keep a fact that is new.

    Attributes:
        valid_from: Since when it holds.
        evidence: ``seq`` of the pages it was said in.
        supersedes: Numbers of the facts whose place it takes.
        valid_until: Until when it holds, if that is known already.
    """

    about: About
    text: str
    slot: str | None
    valid_from: datetime
    evidence: tuple[int, ...]
    supersedes: tuple[int, ...] = ()
    valid_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class ConfirmFact:
    """A known fact was said again.

    Attributes:
        fact: Its number.
        evidence: ``seq`` of the pages it was said in.
    """

    fact: int
    evidence: tuple[int, ...]


KnowledgeChange = AddFact | ConfirmFact


@dataclass(frozen=True, slots=True)
class CorrectedFact:
    """What the user has said is wrong.

    Attributes:
        text: What was wrong.
        slot: What it answered, if only one answer can hold at a time.
        until_seq: The newest page when it was corrected; no page up to it can bring it back.
        heir: Number of the fact that the user gave instead; None if they gave none.
        right: That fact in words.
    """

    about: About
    text: str
    slot: str | None
    until_seq: int
    heir: int | None
    right: str | None


@dataclass(frozen=True, slots=True)
class Lessons:
    """What pages teach about the user and the assistant: changes only, never a whole profile."""

    traits: tuple[TraitChange, ...]
    knowledge: tuple[KnowledgeChange, ...]
