"""Results of inspection: single memories with their context, and entries of lists."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from memoryos_mcp.model.ids import Kind
from memoryos_mcp.model.knowledge import Fact
from memoryos_mcp.model.pages import Page, Tier
from memoryos_mcp.model.profile import Level, Trait
from memoryos_mcp.model.segments import Segment


class State(StrEnum):
    """Whether a memory is current."""

    CURRENT = "current"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"


@dataclass(frozen=True, slots=True)
class PageView:
    """A page with its neighbours in its chain.

    Attributes:
        before: The previous page of the chain.
        after: The next page of the chain.
        is_excerpt: Whether parts of its text were omitted to fit the budget.
    """

    page: Page
    before: Page | None
    after: Page | None
    is_excerpt: bool = False
    kind: Literal[Kind.PAGE] = Kind.PAGE


@dataclass(frozen=True, slots=True)
class SegmentView:
    """A segment with its newest pages.

    Attributes:
        page_ids: Newest first, at most a few dozen.
        heat: Its current heat.
    """

    segment: Segment
    state: State
    page_ids: Sequence[str]
    heat: float = 0.0
    kind: Literal[Kind.SEGMENT] = Kind.SEGMENT


@dataclass(frozen=True, slots=True)
class ChainView:
    """A chain with its newest pages.

    Attributes:
        page_count: Number of all its pages.
        page_ids: Newest first, at most a few dozen.
    """

    chain: int
    summary: str
    page_count: int
    page_ids: Sequence[str]
    kind: Literal[Kind.CHAIN] = Kind.CHAIN


@dataclass(frozen=True, slots=True)
class FactView:
    """A fact with its history.

    Attributes:
        superseded: The facts that it replaced, newest first.
        superseded_by: The fact that replaced it.
    """

    fact: Fact
    state: State
    superseded: Sequence[Fact]
    superseded_by: Fact | None
    kind: Literal[Kind.FACT] = Kind.FACT


@dataclass(frozen=True, slots=True)
class PastTrait:
    """A previous state of a trait.

    Attributes:
        is_corrected: Whether a correction by the user ended it.
    """

    level: Level
    reason: str
    held_from: datetime
    held_until: datetime
    is_corrected: bool


@dataclass(frozen=True, slots=True)
class TraitView:
    """A trait with its history.

    Attributes:
        dimension: Its name as stored.
        trait: None if it no longer exists.
        history: Newest first.
    """

    dimension: str
    trait: Trait | None
    history: Sequence[PastTrait]
    kind: Literal[Kind.TRAIT] = Kind.TRAIT


# The field ``kind`` distinguishes the views without an import of their classes.
MemoryView = PageView | SegmentView | ChainView | FactView | TraitView


@dataclass(frozen=True, slots=True)
class Place:
    """The position at which a list continues.

    Attributes:
        kind: Kind of the next entry.
        after: The last entry listed: a number, or a trait's dimension; None before the first.
    """

    kind: Kind
    after: int | str | None


@dataclass(frozen=True, slots=True)
class ListRequest:
    """The filters of a list.

    Attributes:
        kinds: Listed in this order.
        tier: Only pages of this tier; None means all.
        state: Only facts and segments in this state.
        after: Only memories from this time on.
        before: Only memories before this time.
        topic: A segment's number, or a part of a keyword; None means all.
    """

    kinds: Sequence[Kind]
    tier: Tier | None
    state: State
    after: datetime | None
    before: datetime | None
    topic: int | str | None


@dataclass(frozen=True, slots=True)
class ListEntry:
    """A memory in a list.

    Attributes:
        beginning: Beginning of its text.
        at: When a page was said, a fact became valid, or a trait last changed; for a segment, its newest page's time.
        state: A page's tier; for other kinds, whether it is current.
        segment: A page's segment, once it has one.
        after: Its position in the list.
        gives_orders: Whether a page contains instructions to an assistant that reads it.
    """

    id: str
    kind: Kind
    beginning: str
    at: datetime
    state: Tier | State
    segment: int | None
    after: int | str
    gives_orders: bool = False
