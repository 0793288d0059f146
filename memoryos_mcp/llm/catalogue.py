"""The catalogue: the 90 dimensions that a trait may have, so that an LLM never gives one thing two names.

51 of them are the reference's own; the others come from published models. ``data/dimensions.json`` has their sources.
Users can add dimensions of their own.
"""

import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

_OWN_GROUP = "Own"
# A level in this group says what the user wants of an assistant, not what the assistant is like.
_WISHES_GROUP = "AI alignment"
# Unicode categories: separators, punctuation, controls, and the backtick and caret, which Unicode counts as symbols.
_IGNORED_CATEGORIES = ("Z", "P", "C", "Sk")


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension of the catalogue.

    Attributes:
        name: ASCII, at most three words, no comma.
        group: Its part of the catalogue.
        meaning: What the level High says about a user.
        source: The published model that it comes from.
    """

    name: str
    group: str
    meaning: str
    source: str


@cache
def dimensions() -> tuple[Dimension, ...]:
    """Return the catalogue, group by group."""
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
    """Return the names for a prompt, one line ``group: name, name`` per group, the user's own last.

    Args:
        extra: The user's own dimensions; those that are in the catalogue too are not repeated.
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
    """Return the user's own names by folded form, without those in the catalogue or of punctuation only."""
    found: dict[str, str] = {}
    for name in extra:
        folded = _fold(name)
        if folded and folded not in _spellings():
            found.setdefault(folded, " ".join(name.split()))
    return found


def _fold(name: str) -> str:
    plain = unicodedata.normalize("NFKC", name).casefold()
    return "".join(char for char in plain if not unicodedata.category(char).startswith(_IGNORED_CATEGORIES))
