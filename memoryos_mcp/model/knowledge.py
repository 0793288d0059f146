"""Knowledge: facts about the user or the assistant, each with its evidence and its period of validity."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from memoryos_mcp.model.profile import TraitChange
from memoryos_mcp.text.addressees import Speakers, stated_name

if TYPE_CHECKING:  # a reply that shows facts must not import NumPy
    from memoryos_mcp.model.segments import Vector

# The value of ``learned_by`` in a fact or trait that the user corrected; in others it is the name of an analyst.
LEARNED_BY_USER = "user"


class About(StrEnum):
    """Whom a fact is about."""

    USER = "user"
    ASSISTANT = "assistant"


class Kind(StrEnum):
    """The kind of a fact."""

    STATEMENT = "statement"
    WISH = "wish"
    """A preference of the user that applies to every answer, such as "answer briefly"."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement about the user or the assistant.

    Attributes:
        fact: Its number within the user's memory.
        slot: The property that it states, if that has one value at a time, such as "lives"; None for other facts.
        valid_from: When its validity begins; the time at which it was said, if nothing else is known.
        valid_until: When its validity ends, or a newer fact replaced it; None if no end is known.
        evidence: Ids of the pages that support it, oldest first.
        vector: Unit length, shape ``(dimension,)``; None until it is embedded.
        is_archived: Whether it exceeds the capacity; queries still find an archived fact.
        said_since: ``valid_from`` as precisely as it was stated: "2023", "2023-05" or "2023-05-08"; None if no
            beginning was stated.
        said_until: The stated period that ends at ``valid_until``, in the same form; None if no end was stated, or if a
            newer fact replaced it.
        learned_by: Name of the analyst that extracted it; `LEARNED_BY_USER` if the user corrected it.
        last_said: Time and ``seq`` of its newest page; None for a fact without pages.
        is_corrected: Whether a correction by the user ended it.
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
    """A new fact. `Fact` describes the other fields.

    Attributes:
        evidence: ``seq`` of the pages that state it.
        supersedes: Numbers of the facts that it replaces.
        ends: Texts of earlier facts in the same `Lessons` that it replaces.
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
    """A known fact that was repeated.

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
        until_seq: The newest page at the time of the correction. The fact is not learned again from pages up to it.
        heir: Number of the corrected fact; None if the user gave no correct text.
        right: Text of the corrected fact.
    """

    about: About
    text: str
    slot: str | None
    until_seq: int
    heir: int | None
    right: str | None


@dataclass(frozen=True, slots=True)
class Lessons:
    """Changes to profile and knowledge that were learned from pages."""

    traits: tuple[TraitChange, ...]
    knowledge: tuple[KnowledgeChange, ...]


# Slots of the main facts about a person, in the order in which they are shown. ``family:`` precedes the relative.
HEAD_SLOTS = ("name", "age", "birthday", "lives", "from", "work", "employer")
FAMILY = "family:"


def is_head(slot: str | None) -> bool:
    """Return whether a slot belongs to a main fact about a person: name, age, birthday, place, work or family."""
    return slot is not None and (slot in HEAD_SLOTS or slot.startswith(FAMILY))


# Facts that state a name: subject and slot, mapped to the side that has the name. Later entries take precedence.
NAME_SLOTS = {
    (About.USER, "name"): About.USER,
    (About.USER, "called"): About.USER,
    (About.ASSISTANT, "name"): About.ASSISTANT,
    (About.USER, "assistant called"): About.ASSISTANT,
}


def states_name(fact: Fact) -> bool:
    """Return whether a fact states the name of the user or the assistant."""
    return (fact.about, fact.slot) in NAME_SLOTS


def speakers_of(facts: Sequence[Fact]) -> Speakers:
    """Return the names of both sides. A requested name precedes a stated one, and a later fact an earlier one."""
    named: dict[About, str] = {}
    wants = list(NAME_SLOTS)
    telling = [fact for fact in facts if states_name(fact)]
    for fact in sorted(telling, key=lambda each: wants.index((each.about, each.slot or ""))):
        if name := stated_name(fact.text):
            named[NAME_SLOTS[fact.about, fact.slot or ""]] = name
    return Speakers(user=named.get(About.USER), agent=named.get(About.ASSISTANT))


def foremost_first(facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts in display order: wishes, main facts about the person, then the others."""
    places = {slot: place for place, slot in enumerate(HEAD_SLOTS, 1)}

    def place(fact: Fact) -> int:
        if fact.kind is Kind.WISH:
            return 0
        return places.get(fact.slot or "", len(places) + 1 if is_head(fact.slot) else len(places) + 2)

    return sorted(facts, key=place)
