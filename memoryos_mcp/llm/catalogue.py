"""The catalogue of the 90 dimensions of a profile. A fixed list keeps an LLM from using two names for one dimension.

51 of them are from the reference implementation of MemoryOS, the others from published models; the sources are in
``data/dimensions.json``. Users can add their own dimensions.
"""

import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

_OWN_GROUP = "Own"
# In this group, a level describes what the user wants from an assistant.
_WISHES_GROUP = "AI alignment"
# Unicode categories: separators, punctuation, controls, and the backtick and caret, which Unicode counts as symbols.
_IGNORED_CATEGORIES = ("Z", "P", "C", "Sk")


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension of the catalogue.

    Attributes:
        name: ASCII, at most three words, no comma.
        group: The group of dimensions that it belongs to.
        meaning: A description of a user with the level High.
        source: The published model from which it is taken.
    """

    name: str
    group: str
    meaning: str
    source: str


@cache
def dimensions() -> tuple[Dimension, ...]:
    """Return the catalogue, ordered by group."""
    source = resources.files("memoryos_mcp.llm") / "data" / "dimensions.json"
    return tuple(
        Dimension(entry["dimension"], entry["group"], entry["meaning"], entry["source"])
        for entry in json.loads(source.read_text(encoding="utf-8"))
    )


def find(name: str, extra: Sequence[str] = ()) -> str | None:
    """Return the canonical spelling of a dimension's name, or None if there is no such dimension.

    Args:
        name: Any spelling; case, spaces and punctuation do not matter.
        extra: The user's own dimensions; the catalogue's spelling takes precedence.
    """
    folded = _fold(name)
    return _spellings().get(folded) or _own_spellings(extra).get(folded)


def as_text(extra: Sequence[str] = ()) -> str:
    """Return the names for a prompt, with one line ``group: name, name`` per group.

    Args:
        extra: The user's own dimensions, which come last; those that the catalogue contains are not repeated.
    """
    groups: dict[str, list[str]] = {}
    for dimension in dimensions():
        groups.setdefault(dimension.group, []).append(dimension.name)
    own = list(_own_spellings(extra).values())
    if own:
        groups[_OWN_GROUP] = own
    titles = {_WISHES_GROUP: f"{_WISHES_GROUP} (what the user wants of an assistant)"}
    return "\n".join(f"{titles.get(group, group)}: {', '.join(names)}" for group, names in groups.items())


@cache
def _spellings() -> Mapping[str, str]:
    return {_fold(dimension.name): dimension.name for dimension in dimensions()}


def _own_spellings(extra: Sequence[str]) -> dict[str, str]:
    """Return the user's own names by folded form, without names in the catalogue and names of only punctuation."""
    found: dict[str, str] = {}
    for name in extra:
        folded = _fold(name)
        if folded and folded not in _spellings():
            found.setdefault(folded, " ".join(name.split()))
    return found


def _fold(name: str) -> str:
    plain = unicodedata.normalize("NFKC", name).casefold()
    return "".join(char for char in plain if not unicodedata.category(char).startswith(_IGNORED_CATEGORIES))
