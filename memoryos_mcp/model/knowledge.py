"""Knowledge: facts about the user or the assistant, each with its evidence and its period of validity."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from memoryos_mcp.model import ids
from memoryos_mcp.model.profile import TraitChange
from memoryos_mcp.text.addressees import Speakers, stated_name

if TYPE_CHECKING:  # code that only shows facts must not import NumPy
    from memoryos_mcp.model.segments import Vector

# The value of ``learned_by`` for facts and traits that the user corrected. For others, it is the name of an analyst.
LEARNED_BY_USER = "user"
LEARNED_BY_RULES = "extractive"


class About(StrEnum):
    """Whether a fact is about the user or the assistant."""

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
        fact: Number of the fact, unique within the user's memory.
        slot: Name of the property that the fact states, such as "lives". Only properties that have one value at a time
            have a slot; for other facts, None.
        valid_from: Start of the fact's validity. If no start was stated, this is the time of the dialogue.
        valid_until: End of the fact's validity: the stated end, or the time at which a newer fact or a correction
            ended the fact. None if no end is known.
        evidence: Ids of the pages that support the fact, oldest first.
        vector: Embedding of the fact, unit length, shape ``(dimension,)``; None if it has not been embedded yet.
        is_archived: Whether the fact was archived because there were too many facts. Searches still find archived
            facts.
        said_since: The stated start, as precise as it was stated: "2023", "2023-05" or "2023-05-08"; None if no start
            was stated.
        said_until: The stated end in the same form; None if no end was stated or a newer fact replaced this one.
        learned_by: Name of the analyst that extracted the fact, such as the LLM's name; `LEARNED_BY_USER` if the fact
            is the user's correction.
        last_said: Time and ``seq`` of the newest page that supports the fact; None if no page does.
        is_corrected: Whether the user ended the fact with a correction.
        pages: The ``seq`` of the pages that support the fact, in ascending order.
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
    pages: tuple[int, ...] = ()

    @property
    def id(self) -> str:
        """The public id, such as k1."""
        return ids.numbered_id(ids.Kind.FACT, self.fact)


@dataclass(frozen=True, slots=True)
class AddFact:
    """A fact to add. `Fact` describes the fields that are not listed here.

    Attributes:
        evidence: ``seq`` of each page that states the fact.
        supersedes: Numbers of the stored facts that the new fact replaces.
        ends: Texts of further facts that the new fact replaces. These facts have no numbers yet, because they are
            earlier items of the same `Lessons`.
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
    """A stored fact that was repeated.

    Attributes:
        fact: Number of the fact.
        evidence: ``seq`` of each page that repeats the fact.
    """

    fact: int
    evidence: tuple[int, ...]


KnowledgeChange = AddFact | ConfirmFact


@dataclass(frozen=True, slots=True)
class CorrectedFact:
    """A fact that the user declared wrong.

    Attributes:
        text: The wrong text.
        slot: Slot of the wrong fact; see `Fact`.
        until_seq: ``seq`` of the newest page at the time of the correction. The wrong fact is not learned again from
            this page or earlier ones.
        heir: Number of the fact that replaced the wrong one; None if the user gave no correct text.
        right: Text of the fact that replaced the wrong one; None if the user gave no correct text.
    """

    about: About
    text: str
    slot: str | None
    until_seq: int
    heir: int | None
    right: str | None


@dataclass(frozen=True, slots=True)
class Lessons:
    """Changes to a user's profile and knowledge, as learned from pages."""

    traits: tuple[TraitChange, ...]
    knowledge: tuple[KnowledgeChange, ...]


# Slots of the main facts about a person, in display order. Family slots, such as ``family:brother``, are shown last.
HEAD_SLOTS = ("name", "age", "birthday", "lives", "from", "work", "employer")
FAMILY = "family:"


def is_head(slot: str | None) -> bool:
    """Return whether a slot is a main property: name, age, birthday, home, origin, work or family."""
    return slot is not None and (slot in HEAD_SLOTS or slot.startswith(FAMILY))


# Facts that state a name. Keys: whom the fact is about, and its slot. Values: whose name it is. Later items take
# precedence.
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
    """Return the names of the user and the assistant; None for a name that is unknown.

    The name by which somebody wants to be called takes precedence over the actual name. A later fact takes precedence
    over an earlier one.
    """
    named: dict[About, str] = {}
    wants = list(NAME_SLOTS)
    telling = [fact for fact in facts if states_name(fact)]
    for fact in sorted(telling, key=lambda each: wants.index((each.about, each.slot or ""))):
        if name := stated_name(fact.text):
            named[NAME_SLOTS[fact.about, fact.slot or ""]] = name
    return Speakers(user=named.get(About.USER), agent=named.get(About.ASSISTANT))


def foremost_first(facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts in display order: first wishes, then main facts (see `is_head`), then all other facts."""
    places = {slot: place for place, slot in enumerate(HEAD_SLOTS, 1)}

    def place(fact: Fact) -> int:
        if fact.kind is Kind.WISH:
            return 0
        return places.get(fact.slot or "", len(places) + 1 if is_head(fact.slot) else len(places) + 2)

    return sorted(facts, key=place)
