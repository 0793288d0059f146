"""The catalogue: a list of 90 personality dimensions that a profile can contain.

A fixed list prevents an LLM from using two names for the same dimension. 51 of the dimensions are from the reference
implementation of MemoryOS, and the others are from published models. The sources are in ``data/dimensions.json``. Users
can add their own dimensions.
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
# Unicode categories of ignored characters: separators, punctuation, control characters, and a category of symbols that
# contains the backtick and the caret.
_IGNORED_CATEGORIES = ("Z", "P", "C", "Sk")


@dataclass(frozen=True, slots=True)
class Dimension:
    """A personality dimension that a profile can contain, such as "Extraversion".

    Attributes:
        name: Name in ASCII, of at most three words and without commas.
        group: Name of the group to which the dimension belongs.
        meaning: Description of a user whose level in this dimension is High.
        source: The published model from which the dimension is taken.
    """

    name: str
    group: str
    meaning: str
    source: str


@cache
def dimensions() -> tuple[Dimension, ...]:
    """Return the personality dimensions that a profile can contain, ordered by group."""
    source = resources.files("memoryos_mcp.llm") / "data" / "dimensions.json"
    return tuple(
        Dimension(entry["dimension"], entry["group"], entry["meaning"], entry["source"])
        for entry in json.loads(source.read_text(encoding="utf-8"))
    )


def find(name: str, extra: Sequence[str] = ()) -> str | None:
    """Return the name of a profile dimension in its standard spelling; None if the name is unknown.

    Args:
        name: The name in any spelling. Case, spaces and punctuation do not matter.
        extra: Dimensions that the user has added. If such a dimension is also built in, the built-in spelling is
            the standard spelling.
    """
    folded = _fold(name)
    return _spellings().get(folded) or _own_spellings(extra).get(folded)


def as_text(extra: Sequence[str] = ()) -> str:
    """Return the names of all profile dimensions for a prompt. Each line is one group: ``group: name, name``.

    Args:
        extra: Dimensions that the user has added. They come last. Those that are also built in are not repeated.
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
    """Return the names of the dimensions that the user has added, keyed by their normalised spelling.

    Names of built-in dimensions, and names that consist only of punctuation, are omitted.
    """
    found: dict[str, str] = {}
    for name in extra:
        folded = _fold(name)
        if folded and folded not in _spellings():
            found.setdefault(folded, " ".join(name.split()))
    return found


def _fold(name: str) -> str:
    plain = unicodedata.normalize("NFKC", name).casefold()
    return "".join(char for char in plain if not unicodedata.category(char).startswith(_IGNORED_CATEGORIES))
