"""Value objects for forgetting memories: plan, counts, samples and receipt.

Only samples contain text of the memories. Only dry runs return samples.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime

SAMPLE_CHARS = 200


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """A list of memories to forget. The list contains only numbers and the dimensions of traits, and no other text.

    Facts and traits that are supported only by the listed pages need not be listed; they are forgotten too.

    Attributes:
        runs: First and last number (``seq``) of each run of consecutive pages to forget.
        facts: Numbers of the facts to forget.
        traits: Dimensions of the traits to forget.
        refuses: Whether to prevent the listed facts and traits from being learned again from existing pages.
        is_all: Whether to forget everything, including the backup copies made by restores.
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
        """Return the plan that `to_json` converted to ``text``."""
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
    """How many memories of each kind were forgotten or, after a dry run, would be forgotten.

    Attributes:
        facts: Number of facts about the user and the assistant, including ended facts.
        changed_traits: Number of traits that remain because other pages support them, but lose their reason and
            history.
        segments: Number of segments that are deleted or summarised again.
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
        at: Time of a page's dialogue, start of a fact's validity, or time of a trait's last change.
        text: The beginning of the text, at most `SAMPLE_CHARS` characters.
    """

    id: str
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class ForgetReceipt:
    """Proof that memories were forgotten. It contains none of their text.

    Attributes:
        receipt: Id of the receipt. If a dry run was confirmed, this is the handle of the dry run.
        is_scrubbed: Whether the deleted text has also been overwritten in the files.
    """

    receipt: str
    at: datetime
    counts: ForgetCounts
    is_scrubbed: bool


def runs(seqs: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return the first and last number of each run of consecutive numbers. ``seqs`` must be in ascending order."""
    found: list[tuple[int, int]] = []
    for seq in seqs:
        if found and found[-1][1] == seq - 1:
            found[-1] = (found[-1][0], seq)
        else:
            found.append((seq, seq))
    return tuple(found)
