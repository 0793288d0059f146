"""Values of inspection: single memories with their context, and entries of lists."""

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
class Neighbour:
    """The beginning of the previous or next page of a chain."""

    page_id: str
    occurred_at: datetime
    beginning: str


@dataclass(frozen=True, slots=True)
class PageLook:
    """A page with its neighbours in its chain.

    Attributes:
        chain_summary: None until the page belongs to a chain.
        before: The previous page of the chain.
        after: The next page of the chain.
    """

    page: Page
    chain_summary: str | None
    before: Neighbour | None
    after: Neighbour | None
    kind: Literal[Kind.PAGE] = Kind.PAGE


@dataclass(frozen=True, slots=True)
class SegmentLook:
    """A segment with its newest pages.

    Attributes:
        page_ids: Newest first, at most a few dozen.
    """

    segment: Segment
    state: State
    page_ids: Sequence[str]
    kind: Literal[Kind.SEGMENT] = Kind.SEGMENT


@dataclass(frozen=True, slots=True)
class ChainLook:
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
class Answered:
    """A fact in the history of another.

    Attributes:
        is_corrected: Whether the user ended it; otherwise a newer fact or time did, if it has ended.
    """

    fact: int
    text: str
    valid_from: datetime
    valid_until: datetime | None
    is_corrected: bool
    said_since: str | None
    said_until: str | None


@dataclass(frozen=True, slots=True)
class FactLook:
    """A fact with its history.

    Attributes:
        is_corrected: Whether the user ended it.
        superseded: The facts that it replaced, newest first.
        superseded_by: The fact that replaced it.
    """

    fact: Fact
    state: State
    is_corrected: bool
    superseded: Sequence[Answered]
    superseded_by: Answered | None
    kind: Literal[Kind.FACT] = Kind.FACT


@dataclass(frozen=True, slots=True)
class PastTrait:
    """A previous state of a trait.

    Attributes:
        is_corrected: Whether the user ended it.
    """

    level: Level
    reason: str
    held_from: datetime
    held_until: datetime
    is_corrected: bool


@dataclass(frozen=True, slots=True)
class TraitLook:
    """A trait with its history.

    Attributes:
        dimension: Its name as stored.
        trait: None if it no longer exists.
        learned_by: Analyst that set it; "user" for a correction; None if it no longer exists.
        history: Newest first.
    """

    dimension: str
    trait: Trait | None
    learned_by: str | None
    history: Sequence[PastTrait]
    kind: Literal[Kind.TRAIT] = Kind.TRAIT


# Each has its kind, so that code that shows it need not import its class.
Look = PageLook | SegmentLook | ChainLook | FactLook | TraitLook


@dataclass(frozen=True, slots=True)
class Place:
    """Where a list continues.

    Attributes:
        kind: Kind of the next entry.
        after: The last entry listed: a number, or a trait's dimension; None before the first.
    """

    kind: Kind
    after: int | str | None


@dataclass(frozen=True, slots=True)
class ListRequest:
    """What to list.

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
class Listed:
    """A memory in a list.

    Attributes:
        beginning: Beginning of its text.
        at: When a page was said; since when a fact holds; time of a segment's newest page; a trait's last change.
        state: A page's tier; for other kinds, whether it is current.
        segment: A page's segment, once it has one.
        after: Its position in the list.
        gives_orders: Whether a page contains instructions to its reader.
    """

    id: str
    kind: Kind
    beginning: str
    at: datetime
    state: Tier | State
    segment: int | None
    after: int | str
    gives_orders: bool = False
