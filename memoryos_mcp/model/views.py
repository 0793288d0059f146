"""Values for inspecting a memory: views of one record, list items and list filters."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from memoryos_mcp.model.ids import Kind
from memoryos_mcp.model.knowledge import About, Fact
from memoryos_mcp.model.pages import Page, Tier
from memoryos_mcp.model.profile import Level, Trait
from memoryos_mcp.model.segments import Segment


class State(StrEnum):
    """The state of a memory: current, superseded or archived."""

    CURRENT = "current"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"


@dataclass(frozen=True, slots=True)
class PageView:
    """A page, with the previous and the next page of its chain.

    Attributes:
        before: The previous page of the chain; None if there is none.
        after: The next page of the chain; None if there is none.
        is_excerpt: Whether parts of the page's text were left out to stay within the token budget.
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
        page_ids: Ids of the newest pages, newest first; at most a few dozen.
        heat: The segment's current heat.
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
        page_count: Number of all pages in the chain.
        page_ids: Ids of the newest pages, newest first; at most a few dozen.
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
        superseded: The facts that this fact replaced, newest first.
        superseded_by: The fact that replaced this one; None if no fact did.
        lineage: This fact, the facts that it replaced directly or through others, and those that replaced it; in the
            order in which they became valid.
    """

    fact: Fact
    state: State
    superseded: Sequence[Fact]
    superseded_by: Fact | None
    lineage: Sequence[Fact]
    kind: Literal[Kind.FACT] = Kind.FACT


@dataclass(frozen=True, slots=True)
class PastTrait:
    """A previous state of a trait.

    Attributes:
        held_from: When this state began.
        held_until: When this state ended.
        is_corrected: Whether the user ended this state by a correction.
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
        dimension: Name of the trait's dimension, as stored.
        trait: The current trait; None if it no longer exists.
        history: Previous states of the trait, newest first.
    """

    dimension: str
    trait: Trait | None
    history: Sequence[PastTrait]
    kind: Literal[Kind.TRAIT] = Kind.TRAIT


# The field ``kind`` distinguishes the views, so that code that receives a view need not import the classes.
MemoryView = PageView | SegmentView | ChainView | FactView | TraitView


@dataclass(frozen=True, slots=True)
class Place:
    """The position at which a list continues.

    Attributes:
        kind: The kind of memory with which the list continues.
        after: Number of the last listed memory of this kind, or dimension if it is a trait; None to begin with the
            first memory of this kind.
    """

    kind: Kind
    after: int | str | None


@dataclass(frozen=True, slots=True)
class ListRequest:
    """The filters for a list of memories.

    Attributes:
        kinds: The kinds of memories to list, in this order.
        tier: The tier of the pages to list; None means all tiers.
        state: The state of the facts and segments to list.
        after: Earliest time of the memories, inclusive; None means no limit.
        before: Latest time of the memories, exclusive; None means no limit.
        topic: The number of a segment, or a part of a segment's keyword; None means all topics.
        about: Whom the facts are about; None means both.
    """

    kinds: Sequence[Kind]
    tier: Tier | None
    state: State
    after: datetime | None
    before: datetime | None
    topic: int | str | None
    about: About | None = None


@dataclass(frozen=True, slots=True)
class ListEntry:
    """A memory in a list.

    Attributes:
        beginning: Beginning of the memory's text.
        at: For a page, the time of the dialogue; for a fact, when it became valid; for a trait, when it last changed;
            for a segment, the time of its newest page.
        state: For a page, its tier; for other kinds, whether the memory is current, superseded or archived.
        segment: For a page, the number of its segment, or None if it has none yet; None for other kinds.
        after: Number of this memory, or dimension if it is a trait. To continue the list after this memory, use this
            value as `Place.after`.
        gives_orders: Whether the memory is a page with instructions to an assistant that reads it.
    """

    id: str
    kind: Kind
    beginning: str
    at: datetime
    state: Tier | State
    segment: int | None
    after: int | str
    gives_orders: bool = False
