"""Values of forgetting: the plan, its counts and the receipt. Only the samples of a dry run contain text."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime

SAMPLE_CHARS = 200


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """What to forget: row numbers and trait names, no other text.

    Attributes:
        runs: First and last ``seq`` of each run of consecutive pages.
        facts: Numbers of facts, in addition to those that rest on the pages.
        traits: Dimensions, in addition to those that rest on the pages.
        refuses: Whether the named facts and traits must not be learned again from existing pages.
        is_all: Whether everything is forgotten, including the copies that restores have kept.
    """

    runs: tuple[tuple[int, int], ...] = ()
    facts: tuple[int, ...] = ()
    traits: tuple[str, ...] = ()
    refuses: bool = False
    is_all: bool = False

    def to_json(self) -> str:
        """Return the plan as JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "ForgetPlan":
        """Return the plan that `to_json` wrote."""
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
        facts: Facts about the user and the assistant, including those that no longer hold.
        changed_traits: Traits that stay because other pages support them, but lose their reason and history.
        segments: Segments that are deleted or summarised again.
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
    """The beginning of a page, fact or trait that is to be forgotten.

    Attributes:
        at: When it was said, or since when it holds.
        text: At most `SAMPLE_CHARS` characters.
    """

    id: str
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class ForgetReceipt:
    """Proof that something was forgotten; contains none of its text.

    Attributes:
        receipt: The handle that confirmed it.
        is_scrubbed: Whether the bytes are erased from the files too.
    """

    receipt: str
    at: datetime
    counts: ForgetCounts
    is_scrubbed: bool


def runs(seqs: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return the first and last number of each run of consecutive numbers; ``seqs`` is ascending."""
    found: list[tuple[int, int]] = []
    for seq in seqs:
        if found and found[-1][1] == seq - 1:
            found[-1] = (found[-1][0], seq)
        else:
            found.append((seq, seq))
    return tuple(found)
