"""The catalogue: the 90 dimensions a trait may have, so that an LLM never names one thing in two ways.

51 of them are the reference's own; the others come from published models. Each names its source in
``data/dimensions.json``. A user can have dimensions of their own beside these.
"""

import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

_OWN_GROUP = "Own"
# A level of these says what the user wants of an assistant, not what the assistant is like.
_WISHES_GROUP = "AI alignment"
# Unicode categories: separators, punctuation, controls, and the backtick and caret, which are counted as symbols.
_IGNORED_CATEGORIES = ("Z", "P", "C", "Sk")


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension of the catalogue.

    Attributes:
        name: What a trait calls it; ASCII, at most three words, no comma.
        group: The part of the catalogue it belongs to.
        meaning: What the level High says of a user.
        source: The published model it comes from.
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
    """Return the spelling of a dimension's name to keep, or None if there is no such dimension.

    Args:
        name: As somebody wrote it; case, spaces and punctuation do not matter.
        extra: The user's own dimensions; one that the catalogue has as well goes by the catalogue's spelling.
    """
    folded = _fold(name)
    return _spellings().get(folded) or _own_spellings(extra).get(folded)


def as_text(extra: Sequence[str] = ()) -> str:
    """Return the names for a prompt, one line ``group: name, name`` per group, the user's own last.

    Args:
        extra: The user's own dimensions; those that the catalogue has as well are not repeated.
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
    """Return the user's own names by their folded form, without those that are the catalogue's or only punctuation."""
    found: dict[str, str] = {}
    for name in extra:
        folded = _fold(name)
        if folded and folded not in _spellings():
            found.setdefault(folded, " ".join(name.split()))
    return found


def _fold(name: str) -> str:
    plain = unicodedata.normalize("NFKC", name).casefold()
    return "".join(char for char in plain if not unicodedata.category(char).startswith(_IGNORED_CATEGORIES))
