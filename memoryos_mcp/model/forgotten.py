"""Forgetting as values: the plan, its counts and the receipt. Only a sample, which a dry run shows, quotes text."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime

SAMPLE_CHARS = 200


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """What is to be forgotten: numbers of rows and names of traits, no other text.

    Attributes:
        runs: First and last ``seq`` of pages in a row.
        facts: Numbers of facts, beside those that rest on the pages.
        traits: Dimensions, beside those that rest on the pages.
        refuses: Whether the named facts and traits are not to be learned again from the pages that there are.
        is_all: Whether it is everything; then the copies that restores have kept go too.
    """

    runs: tuple[tuple[int, int], ...] = ()
    facts: tuple[int, ...] = ()
    traits: tuple[str, ...] = ()
    refuses: bool = False
    is_all: bool = False

    def to_json(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "ForgetPlan":
        """Return the plan of `to_json`'s text."""
        read = json.loads(text)
        return cls(
            runs=tuple(map(tuple, read["runs"])),
            facts=tuple(read["facts"]),
            traits=tuple(read["traits"]),
            refuses=read["refuses"],
            is_all=read.get("is_all", False),
        )


@dataclass(frozen=True, slots=True)
class ForgetCounts:
    """How much is forgotten.

    Attributes:
        pages: Pages.
        facts: Facts about the user and the assistant, with those that hold no more.
        traits: Traits of the profile.
        changed_traits: Traits that stay, since other pages speak for them, but lose reason and history.
        segments: Topics that go, or are given words anew.
    """

    pages: int = 0
    facts: int = 0
    traits: int = 0
    changed_traits: int = 0
    segments: int = 0

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))


@dataclass(frozen=True, slots=True)
class Sample:
    """The beginning of something that is to be forgotten.

    Attributes:
        id: Of the page, fact or trait.
        at: When it was said or holds from.
        text: At most `SAMPLE_CHARS` characters.
    """

    id: str
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class ForgetReceipt:
    """Proof that something was forgotten, without a word of it.

    Attributes:
        receipt: Its name: the handle that confirmed it.
        at: When that was.
        is_scrubbed: Whether the bytes are gone from the files too.
    """

    receipt: str
    at: datetime
    counts: ForgetCounts
    is_scrubbed: bool


def runs(seqs: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return ascending numbers as first and last of each run without a gap."""
    found: list[tuple[int, int]] = []
    for seq in seqs:
        if found and found[-1][1] == seq - 1:
            found[-1] = (found[-1][0], seq)
        else:
            found.append((seq, seq))
    return tuple(found)
