"""The ids of memories. Tools and commands use ids to show, correct and forget memories."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from memoryos_mcp.errors import ArgumentError

IDS_AT_MOST = 50
TELLING_IDS = "list_memories and retrieve_memory"

PAGE_PATTERN = "^p_[0-9a-f]{1,64}$"
_PAGE = re.compile(PAGE_PATTERN)
# Any number of up to 18 digits fits in an SQLite integer.
_NUMBERED = re.compile(r"([sck])([1-9]\d{0,17})")
_TRAIT = "trait:"
_TRAIT_MAX_CHARS = 200
_FORMS = "p_... for a page, s1 for a segment, c1 for a chain, k1 for a fact, trait:NAME for a trait"


class Kind(StrEnum):
    """The kind of memory that an id identifies."""

    PAGE = "page"
    SEGMENT = "segment"
    CHAIN = "chain"
    FACT = "fact"
    TRAIT = "trait"


_KIND_OF_LETTER = {"s": Kind.SEGMENT, "c": Kind.CHAIN, "k": Kind.FACT}
_LETTER_OF_KIND = {kind: letter for letter, kind in _KIND_OF_LETTER.items()}


@dataclass(frozen=True, slots=True)
class MemoryId:
    """The parsed id of a memory.

    Attributes:
        name: The id of a page, or the dimension of a trait with single spaces between words; empty for other kinds.
        number: The number of a segment, chain or fact; 0 for other kinds.
    """

    kind: Kind
    name: str = ""
    number: int = 0

    def __str__(self) -> str:
        if self.kind is Kind.PAGE:
            return self.name
        return trait_id(self.name) if self.kind is Kind.TRAIT else numbered_id(self.kind, self.number)


def numbered_id(kind: Kind, number: int) -> str:
    """Return the id of a segment, chain or fact."""
    return f"{_LETTER_OF_KIND[kind]}{number}"


def trait_id(dimension: str) -> str:
    """Return the id of a trait."""
    return f"{_TRAIT}{dimension}"


def fold_dimension(name: str) -> str:
    """Return the name of a trait's dimension with case and spacing normalised, for comparison."""
    return " ".join(name.casefold().split())


def read_id(text: str, argument: str = "id") -> MemoryId:
    """Parse the id of a memory; ``argument`` is the argument's name in error messages.

    Raises:
        ArgumentError: The text is not a valid id.
    """
    text = text.strip()
    if _PAGE.fullmatch(text):
        return MemoryId(Kind.PAGE, name=text)
    numbered = _NUMBERED.fullmatch(text)
    if numbered:
        return MemoryId(_KIND_OF_LETTER[numbered[1]], number=int(numbered[2]))
    if text.startswith(_TRAIT) and text[len(_TRAIT) :].strip() and len(text) <= _TRAIT_MAX_CHARS:
        return MemoryId(Kind.TRAIT, name=" ".join(text[len(_TRAIT) :].split()))
    raise ArgumentError(argument=argument, problem=f"is not a valid id; use {_FORMS}")


def read_ids(texts: Sequence[str], argument: str = "ids", *, at_most: int = IDS_AT_MOST) -> list[MemoryId]:
    """Parse the ids of memories, and drop duplicates; ``argument`` is the argument's name in error messages.

    Raises:
        ArgumentError: The list is empty or has more than ``at_most`` ids, or an id is not valid.
    """
    if not texts:
        raise ArgumentError(argument=argument, problem="is empty; pass at least one id")
    if len(texts) > at_most:
        problem = f"contains {len(texts):,} ids; pass at most {at_most:,} in one call"
        raise ArgumentError(argument=argument, problem=problem)
    if len(texts) == 1:
        return [read_id(texts[0], argument)]
    return list(dict.fromkeys(read_id(text, f"{argument}[{place}]") for place, text in enumerate(texts)))


def not_there(missing: Sequence[MemoryId], argument: str = "ids") -> ArgumentError:
    """Return the error to raise if ids do not exist."""
    names = " or ".join(map(str, missing))
    problem = f"no memory has the id {names}; to find ids, use {TELLING_IDS}"
    return ArgumentError(argument=argument, problem=problem)
