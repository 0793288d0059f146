"""The profile of a user: traits of character, taste and writing style, at most one for each dimension."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from memoryos_mcp.model.ids import trait_id
from memoryos_mcp.text.quoting import one_line
from memoryos_mcp.text.terms import stems

# Dimensions of writing style. Nearly every page supports them, so the number of pages does not show their importance.
MANNER = frozenset({"Emotional Expression", "Sense of Humor", "Information Density", "Language Style", "Practicality"})

# Stems of words that occur in the reasons of traits of all kinds. In a query, they do not make a trait relevant.
_OF_ANY_TRAIT = frozenset(
    stems(
        "user assistant speaker person page message conversation dialogue question answer reply "
        "speak spoke spoken say said mention ask tell told talk show shown describe"
    )
)


class Level(StrEnum):
    """The strength of a trait."""

    LOW = "Low"
    MEDIUM = "Medium"
    HIGH = "High"


@dataclass(frozen=True, slots=True)
class Trait:
    """A trait of the user: the level of one dimension of the profile.

    Attributes:
        dimension: Name of the dimension, such as "Sense of Humor".
        reason: Why the trait has this level, with quotations from the pages.
        evidence: Ids of the pages that support the trait, oldest first.
        updated_at: When the level, reason or evidence last changed.
        learned_by: Name of the analyst that learned the trait, such as the LLM's name; "user" if the user corrected it.
    """

    dimension: str
    level: Level
    reason: str
    evidence: tuple[str, ...]
    updated_at: datetime
    learned_by: str = ""

    @property
    def id(self) -> str:
        """The public id, such as trait:Practicality."""
        return trait_id(self.dimension)


@dataclass(frozen=True, slots=True)
class TraitChange:
    """A trait to add or update. Traits of other dimensions do not change.

    Attributes:
        evidence: Number (``seq``) of each page that supports the trait, in addition to the evidence already stored.
    """

    dimension: str
    level: Level
    reason: str
    evidence: tuple[int, ...]


def most_telling_first(traits: Iterable[Trait]) -> list[Trait]:
    """Return the traits in display order: those with the most evidence first, and traits of writing style last."""
    return sorted(traits, key=lambda trait: (trait.dimension in MANNER, -len(trait.evidence), trait.dimension))


def relevant_traits(traits: Iterable[Trait], query_stems: AbstractSet[str]) -> list[Trait]:
    """Return the traits that share a meaningful word stem with a query, in the order of `most_telling_first`."""
    meaningful = query_stems - _OF_ANY_TRAIT
    return most_telling_first(trait for trait in traits if meaningful & {*stems(f"{trait.dimension} {trait.reason}")})


def profile_text(traits: Iterable[Trait]) -> str:
    """Return traits as text, one line ``dimension: level - reason`` for each; "None" if there are no traits."""
    return "\n".join(map(trait_text, traits)) or "None"


def trait_text(trait: Trait) -> str:
    """Return a trait as the line ``dimension: level - reason``."""
    return one_line(f"{trait.dimension}: {trait.level} - {trait.reason}")
