"""Knowledge: single facts about the user or the assistant, each with its evidence and the time it holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from memoryos_mcp.model.profile import TraitChange
from memoryos_mcp.text.addressees import Speakers, stated_name

if TYPE_CHECKING:  # a reply that shows facts needs no vectors
    from memoryos_mcp.model.segments import Vector

# Who a fact or trait was learned from, if the user has corrected it; else it is the name of an analyst.
LEARNED_BY_USER = "user"


class About(StrEnum):
    """Whom a fact is about."""

    USER = "user"
    ASSISTANT = "assistant"


class Kind(StrEnum):
    """What sort of fact it is."""

    STATEMENT = "statement"
    WISH = "wish"
    """What the user wants of every answer to come, while it holds."""


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
        kind: A statement, or a wish that holds for every answer.
        said_since: ``valid_from`` as exactly as it was said, "2023", "2023-05" or "2023-05-08"; None if it was not.
        said_until: ``valid_until`` in the same way, of which it is the end; None also if a newer fact has ended it.
        learned_by: Name of the analyst that told it; `LEARNED_BY_USER` if the user has corrected it.
        last_said: When the newest of its pages was said, and the ``seq`` of that page; None if it came without pages.
    """

    fact: int
    about: About
    text: str
    slot: str | None
    valid_from: datetime
    valid_until: datetime | None
    evidence: tuple[str, ...]
    vector: "Vector | None"
    is_archived: bool = False
    kind: Kind = Kind.STATEMENT
    said_since: str | None = None
    said_until: str | None = None
    learned_by: str = ""
    last_said: tuple[datetime, int] | None = None


@dataclass(frozen=True, slots=True)
class AddFact:
    """Keep a fact that is new.

    Attributes:
        valid_from: Since when it holds.
        evidence: ``seq`` of the pages it was said in.
        supersedes: Numbers of the facts whose place it takes.
        valid_until: Until when it holds, if that is known already.
        kind: A statement, or a wish that holds for every answer.
        said_since: ``valid_from`` as exactly as it was said, as in `Fact`.
        said_until: ``valid_until`` in the same way.
        ends: Texts of facts that the same lessons tell before, whose place it takes.
    """

    about: About
    text: str
    slot: str | None
    valid_from: datetime
    evidence: tuple[int, ...]
    supersedes: tuple[int, ...] = ()
    valid_until: datetime | None = None
    kind: Kind = Kind.STATEMENT
    said_since: str | None = None
    said_until: str | None = None
    ends: tuple[str, ...] = ()


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


# The slots of what one would say of somebody first, in this order; those of their family end in whom it is.
HEAD_SLOTS = ("name", "age", "birthday", "lives", "from", "work", "employer")
FAMILY = "family:"


def is_head(slot: str | None) -> bool:
    """Whether a fact of a slot tells who somebody is: name, age or birthday, place, work, family."""
    return slot is not None and (slot in HEAD_SLOTS or slot.startswith(FAMILY))


# Facts that tell a side's name: whom they are about, their slot, and whose name it is. A later one goes first.
NAME_SLOTS = {
    (About.USER, "name"): About.USER,
    (About.USER, "called"): About.USER,
    (About.ASSISTANT, "name"): About.ASSISTANT,
    (About.USER, "assistant called"): About.ASSISTANT,
}


def tells_name(fact: Fact) -> bool:
    """Return whether a fact tells what one of the sides is called."""
    return (fact.about, fact.slot) in NAME_SLOTS


def speakers_of(facts: Sequence[Fact]) -> Speakers:
    """Return what the sides are called: as the user wants it, else as they said themselves, the later the better."""
    named: dict[About, str] = {}
    wants = list(NAME_SLOTS)
    telling = [fact for fact in facts if tells_name(fact)]
    for fact in sorted(telling, key=lambda each: wants.index((each.about, each.slot or ""))):
        if name := stated_name(fact.text):
            named[NAME_SLOTS[fact.about, fact.slot or ""]] = name
    return Speakers(user=named.get(About.USER), agent=named.get(About.ASSISTANT))


def foremost_first(facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts about somebody in the order in which they are told: wishes, who they are, then the others."""
    places = {slot: place for place, slot in enumerate(HEAD_SLOTS, 1)}

    def place(fact: Fact) -> int:
        if fact.kind is Kind.WISH:
            return 0
        return places.get(fact.slot or "", len(places) + 1 if is_head(fact.slot) else len(places) + 2)

    return sorted(facts, key=place)
