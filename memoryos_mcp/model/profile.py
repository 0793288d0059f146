"""The profile: what is known of a user's character, taste and manner, one trait per dimension."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from memoryos_mcp.text.quoting import one_line
from memoryos_mcp.text.terms import stems

# Dimensions of how a user writes: nearly every page speaks for them, and each says little.
MANNER = frozenset({"Emotional Expression", "Sense of Humor", "Information Density", "Language Style", "Practicality"})

# What reasons are written with, whatever they are about; in a question such a word asks for no trait.
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
        level: How strongly it shows.
        reason: Why, in words that cite what was said.
        evidence: Public names of the pages it rests on, oldest first.
        updated_at: When level, reason or evidence last changed.
    """

    dimension: str
    level: Level
    reason: str
    evidence: tuple[str, ...]
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class TraitChange:
    """A trait to set; dimensions not named stay as they are.

    Attributes:
        dimension: Its name in the catalogue.
        level: The new level.
        reason: Why.
        evidence: ``seq`` of the pages that speak for it, in addition to those already kept.
    """

    dimension: str
    level: Level
    reason: str
    evidence: tuple[int, ...]


def most_telling_first(traits: Iterable[Trait]) -> list[Trait]:
    """Return the traits, what a user cares for before how they write, and what rests on most pages first."""
    return sorted(traits, key=lambda trait: (trait.dimension in MANNER, -len(trait.evidence), trait.dimension))


def bearing_on(traits: Iterable[Trait], query_stems: AbstractSet[str]) -> list[Trait]:
    """Return the traits that share a telling word with a query, the most telling traits first."""
    asked = query_stems - _OF_ANY_TRAIT
    return most_telling_first(trait for trait in traits if asked & {*stems(f"{trait.dimension} {trait.reason}")})


def profile_text(traits: Iterable[Trait]) -> str:
    """Return the profile as text, a line ``dimension: level - reason`` for each trait; "None" if nothing is known."""
    return "\n".join(map(trait_text, traits)) or "None"


def trait_text(trait: Trait) -> str:
    """Return a trait as one line ``dimension: level - reason``."""
    return one_line(f"{trait.dimension}: {trait.level} - {trait.reason}")
