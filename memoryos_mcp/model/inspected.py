"""The values of looking: what a store shows of one memory, and of many in a row."""

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
    """Whether a memory holds."""

    CURRENT = "current"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The beginning of a page of the same chain."""

    page_id: str
    occurred_at: datetime
    beginning: str


@dataclass(frozen=True, slots=True)
class PageLook:
    """A page with what stands around it.

    Attributes:
        chain_summary: None while it is not organised.
        before: The page before it in its chain, if there is one.
        after: The page after it in its chain, if there is one.
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
        page_ids: Public names, newest first, at most a few dozen.
    """

    segment: Segment
    state: State
    page_ids: Sequence[str]
    kind: Literal[Kind.SEGMENT] = Kind.SEGMENT


@dataclass(frozen=True, slots=True)
class ChainLook:
    """A chain with its newest pages.

    Attributes:
        page_count: Of all.
        page_ids: Public names, newest first, at most a few dozen.
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
        is_corrected: Whether the user ended it; else a newer fact or time did, if it has ended.
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
        superseded: What it took the place of, the newest first.
        superseded_by: What took its place.
    """

    fact: Fact
    state: State
    is_corrected: bool
    superseded: Sequence[Answered]
    superseded_by: Answered | None
    kind: Literal[Kind.FACT] = Kind.FACT


@dataclass(frozen=True, slots=True)
class PastTrait:
    """What a trait said before.

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
        dimension: Its name as it is kept.
        trait: None if it is no more.
        learned_by: Who set it; "user" for a correction; None if it is no more.
        history: The newest first.
    """

    dimension: str
    trait: Trait | None
    learned_by: str | None
    history: Sequence[PastTrait]
    kind: Literal[Kind.TRAIT] = Kind.TRAIT


# Each tells its kind, so that who shows it need not load what it is made of.
Look = PageLook | SegmentLook | ChainLook | FactLook | TraitLook


@dataclass(frozen=True, slots=True)
class Place:
    """Where a list goes on.

    Attributes:
        kind: Of what comes next.
        after: The last that was listed: a number, or a trait's dimension; None before the first.
    """

    kind: Kind
    after: int | str | None


@dataclass(frozen=True, slots=True)
class ListRequest:
    """What to list.

    Attributes:
        kinds: In this order.
        tier: Pages of this tier only; None means of all.
        state: Facts and segments of this state only.
        after: Nothing from before this instant.
        before: Nothing from this instant on.
        topic: A segment's number, or a part of a keyword; None means of all.
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
        id: Its public name.
        beginning: Of its text.
        at: When it was said; since when a fact holds; a segment's newest page; when a trait last changed.
        state: A page's tier; else whether it holds.
        segment: Of a page, once it is organised.
        after: Its place in the list.
        gives_orders: Whether a page tells its reader what to do.
    """

    id: str
    kind: Kind
    beginning: str
    at: datetime
    state: Tier | State
    segment: int | None
    after: int | str
    gives_orders: bool = False
