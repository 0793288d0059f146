"""Values for forgetting: plan, counts, samples and receipt. Only samples, which a dry run returns, contain text."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime

SAMPLE_CHARS = 200


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """The memories to forget, as row numbers and trait names; it contains no other text.

    Attributes:
        runs: First and last ``seq`` of each run of consecutive pages.
        facts: Numbers of facts, in addition to those that the pages support.
        traits: Dimensions, in addition to those that the pages support.
        refuses: Whether the listed facts and traits must not be learned again from existing pages.
        is_all: Whether everything is forgotten, including the copies of the memory that were saved before a restore.
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
    """Number of forgotten memories, by kind.

    Attributes:
        facts: Current and ended facts about the user and the assistant.
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
    """The beginning of a page, fact or trait that would be forgotten.

    Attributes:
        at: When a page was said, a fact became valid, or a trait last changed.
        text: At most `SAMPLE_CHARS` characters.
    """

    id: str
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class ForgetReceipt:
    """Proof that memories were forgotten, without any of their text.

    Attributes:
        receipt: The handle of the dry run that was confirmed.
        is_scrubbed: Whether the bytes have been erased from the files too.
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
