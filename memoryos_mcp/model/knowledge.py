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

# ``learned_by`` of a fact or trait that the user corrected; otherwise it is the name of an analyst.
LEARNED_BY_USER = "user"


class About(StrEnum):
    """Whom a fact is about."""

    USER = "user"
    ASSISTANT = "assistant"


class Kind(StrEnum):
    """The kind of a fact."""

    STATEMENT = "statement"
    WISH = "wish"
    """What the user wants in every answer, while the fact holds."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One piece of knowledge.

    Attributes:
        fact: Its number within the user's memory.
        slot: What it answers, if only one answer can hold at a time ("lives in"); None if others can hold beside it.
        valid_from: Since when it holds; when it was said, if nothing else is known.
        valid_until: When it ends, or a newer fact replaced it; None if no end is known.
        evidence: Ids of the pages it rests on, oldest first.
        vector: Unit length, shape ``(dimension,)``; None until it is embedded.
        is_archived: Whether it is over the capacity: found by queries, otherwise not shown.
        said_since: ``valid_from`` as precisely as it was stated: "2023", "2023-05" or "2023-05-08"; None if it was not.
        said_until: The period whose end ``valid_until`` is, in the same form; None also if a newer fact ended it.
        learned_by: Name of the analyst that extracted it; `LEARNED_BY_USER` if the user corrected it.
        last_said: Time and ``seq`` of its newest page; None if it came without pages.
        is_corrected: Whether the user ended it.
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
    is_corrected: bool = False


@dataclass(frozen=True, slots=True)
class AddFact:
    """Add a new fact. Fields that are not described here are those of `Fact`.

    Attributes:
        evidence: ``seq`` of the pages that state it.
        supersedes: Numbers of the facts that it replaces.
        ends: Texts of facts that it replaces and that come before it in the same lessons.
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
        evidence: ``seq`` of the pages that repeat it.
    """

    fact: int
    evidence: tuple[int, ...]


KnowledgeChange = AddFact | ConfirmFact


@dataclass(frozen=True, slots=True)
class CorrectedFact:
    """A fact that the user declared wrong.

    Attributes:
        text: The wrong text.
        slot: As in `Fact`.
        until_seq: The newest page at the time of the correction; no page up to it can bring the fact back.
        heir: Number of the fact that the user gave instead; None without one.
        right: Text of that fact.
    """

    about: About
    text: str
    slot: str | None
    until_seq: int
    heir: int | None
    right: str | None


@dataclass(frozen=True, slots=True)
class Lessons:
    """What was learned from pages: changes to profile and knowledge."""

    traits: tuple[TraitChange, ...]
    knowledge: tuple[KnowledgeChange, ...]


# Slots of the main facts about a person, in the order they are shown. ``family:`` is followed by the relative.
HEAD_SLOTS = ("name", "age", "birthday", "lives", "from", "work", "employer")
FAMILY = "family:"


def is_head(slot: str | None) -> bool:
    """Whether a slot is of a main fact about a person: name, age or birthday, place, work, family."""
    return slot is not None and (slot in HEAD_SLOTS or slot.startswith(FAMILY))


# Facts that state a name: whom they are about, their slot, and whose name it is. Later entries take precedence.
NAME_SLOTS = {
    (About.USER, "name"): About.USER,
    (About.USER, "called"): About.USER,
    (About.ASSISTANT, "name"): About.ASSISTANT,
    (About.USER, "assistant called"): About.ASSISTANT,
}


def tells_name(fact: Fact) -> bool:
    """Return whether a fact states the name of the user or the assistant."""
    return (fact.about, fact.slot) in NAME_SLOTS


def speakers_of(facts: Sequence[Fact]) -> Speakers:
    """Return the names of both sides: the name the user asked for, else the stated one; later facts win."""
    named: dict[About, str] = {}
    wants = list(NAME_SLOTS)
    telling = [fact for fact in facts if tells_name(fact)]
    for fact in sorted(telling, key=lambda each: wants.index((each.about, each.slot or ""))):
        if name := stated_name(fact.text):
            named[NAME_SLOTS[fact.about, fact.slot or ""]] = name
    return Speakers(user=named.get(About.USER), agent=named.get(About.ASSISTANT))


def foremost_first(facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts in the order they are shown: wishes, main facts about the person, then the others."""
    places = {slot: place for place, slot in enumerate(HEAD_SLOTS, 1)}

    def place(fact: Fact) -> int:
        if fact.kind is Kind.WISH:
            return 0
        return places.get(fact.slot or "", len(places) + 1 if is_head(fact.slot) else len(places) + 2)

    return sorted(facts, key=place)
