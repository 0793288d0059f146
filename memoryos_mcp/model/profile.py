"""The profile: a user's character, taste and style, one trait per dimension."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from memoryos_mcp.text.quoting import one_line
from memoryos_mcp.text.terms import stems

# Dimensions of writing style. Nearly every page supports them, so the number of pages says little.
MANNER = frozenset({"Emotional Expression", "Sense of Humor", "Information Density", "Language Style", "Practicality"})

# Words that occur in the reasons of any trait. In a query they do not make a trait relevant.
_OF_ANY_TRAIT = frozenset(
    stems(
        "user assistant speaker person page message conversation dialogue question answer reply "
        "speak spoke spoken say said mention ask tell told talk show shown describe"
    )
)


class Level(StrEnum):
    """How strongly a trait shows."""

    LOW = "Low"
    MEDIUM = "Medium"
    HIGH = "High"


@dataclass(frozen=True, slots=True)
class Trait:
    """One dimension of the profile.

    Attributes:
        dimension: Its name in the catalogue.
        reason: The reason for the level, with citations from the pages.
        evidence: Ids of the pages that support it, oldest first.
        updated_at: When level, reason or evidence last changed.
        learned_by: Name of the analyst that set it; "user" for a correction.
    """

    dimension: str
    level: Level
    reason: str
    evidence: tuple[str, ...]
    updated_at: datetime
    learned_by: str = ""


@dataclass(frozen=True, slots=True)
class TraitChange:
    """A trait to set; other dimensions do not change.

    Attributes:
        evidence: ``seq`` of the pages that support it, in addition to those already stored.
    """

    dimension: str
    level: Level
    reason: str
    evidence: tuple[int, ...]


def most_telling_first(traits: Iterable[Trait]) -> list[Trait]:
    """Return the traits with the most evidence first, and those of writing style last."""
    return sorted(traits, key=lambda trait: (trait.dimension in MANNER, -len(trait.evidence), trait.dimension))


def relevant_traits(traits: Iterable[Trait], query_stems: AbstractSet[str]) -> list[Trait]:
    """Return the traits that share a meaningful word with a query, those with the most evidence first."""
    meaningful = query_stems - _OF_ANY_TRAIT
    return most_telling_first(trait for trait in traits if meaningful & {*stems(f"{trait.dimension} {trait.reason}")})


def profile_text(traits: Iterable[Trait]) -> str:
    """Return the profile as text, a line ``dimension: level - reason`` for each trait; "None" if nothing is known."""
    return "\n".join(map(trait_text, traits)) or "None"


def trait_text(trait: Trait) -> str:
    """Return a trait as one line ``dimension: level - reason``."""
    return one_line(f"{trait.dimension}: {trait.level} - {trait.reason}")
