"""Values for inspecting a memory: views of single records, list entries and list filters."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

from memoryos_mcp.model.heat import HeatPoint, HeatWeights
from memoryos_mcp.model.ids import Kind
from memoryos_mcp.model.knowledge import About, Fact
from memoryos_mcp.model.pages import Page, Source, Tier
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
        lineage: This fact with its direct and indirect predecessors and successors, in the order in which they became
            valid.
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


@dataclass(frozen=True, slots=True)
class Learned:
    """What was learned from a page.

    Attributes:
        facts: The newest facts that the page states or repeats, newest first; at most 100. Some may no longer be
            current.
        traits: The dimensions of the current traits that the page supports.
    """

    facts: Sequence[Fact]
    traits: Sequence[str]


# The field ``kind`` identifies the class of a view, so that code that receives a view need not import the classes.
MemoryView = PageView | SegmentView | ChainView | FactView | TraitView


@dataclass(frozen=True, slots=True)
class Place:
    """The position from which a list of memories continues.

    Attributes:
        kind: The kind of the next memory in the list.
        after: Number of the last listed memory of this kind; for traits, the dimension of the last listed trait. None
            to begin with the first memory of this kind. In a list ordered by time, a tuple: the time of the last listed
            page, in microseconds since 1970-01-01 UTC, and the page's number.
    """

    kind: Kind
    after: int | str | tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class ListRequest:
    """The filters for a list of memories.

    Attributes:
        kinds: The kinds of memories to list, in this order.
        tier: The tier of the pages to list; None means all tiers.
        state: The state of the facts and segments to list.
        after: Earliest time of the memories, inclusive; None means no limit.
        before: Latest time of the memories, exclusive; None means no limit.
        topic: The number of a segment, or part of a keyword, which matches all segments with such a keyword. None means
            all topics.
        chain: The number of the chain whose pages to list; None means all chains.
        about: Whether to list only facts about the user or only facts about the assistant; None means both.
        source: Origin of the pages to list; None means any.
        words: The words that each page must contain, in the form that `text.terms.words` returns.
        project: Name of a project, to list only its pages, and the segments, facts and traits based on at least one of
            them. None means no filter.
        is_by_time: Whether pages are listed by the time of their dialogue. Otherwise, they are listed in the order in
            which they were added.
    """

    kinds: Sequence[Kind]
    tier: Tier | None
    state: State
    after: datetime | None
    before: datetime | None
    topic: int | str | None
    # These fields are left out of ``repr``, so that cursors from earlier versions remain valid.
    chain: int | None = field(default=None, repr=False)
    about: About | None = field(default=None, repr=False)
    source: Source | None = field(default=None, repr=False)
    words: Sequence[str] = field(default=(), repr=False)
    is_by_time: bool = field(default=False, repr=False)
    project: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ListEntry:
    """A memory in a list.

    Attributes:
        beginning: Beginning of the memory's text.
        at: Time of a page's dialogue, time of a segment's newest page, start of a fact's validity, or time of a trait's
            last change.
        state: For a page, its tier; for other kinds, whether the memory is current, superseded or archived.
        segment: For a page, the number of its segment, or None if it has none yet; None for other kinds.
        after: The position of this memory in the list. To continue the list after this memory, use this value as
            `Place.after`.
        gives_orders: Whether the memory is a page that contains instructions to an assistant.
        source: Origin of a page's text; None for other kinds.
        project: Name of a page's project; None if the page has no project, and for other kinds.
        corrected: For a page, the wrong texts of its facts that the user has corrected.
    """

    id: str
    kind: Kind
    beginning: str
    at: datetime
    state: Tier | State
    segment: int | None
    after: int | str | tuple[int, int]
    gives_orders: bool = False
    source: Source | None = None
    project: str | None = None
    corrected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChainEntry:
    """A chain in a segment.

    Attributes:
        page_count: Number of the chain's pages in the segment.
        newest_at: The time of the newest of these pages.
    """

    chain: int
    summary: str
    page_count: int
    newest_at: datetime


@dataclass(frozen=True, slots=True)
class SegmentPages:
    """The times of a segment's pages, and the chains that these pages belong to.

    Attributes:
        times: The times of all pages of the segment, in ascending order.
        chains: The chains with the newest pages, newest first; at most a few dozen.
        chain_count: Number of all chains that have pages in the segment.
    """

    times: Sequence[datetime]
    chains: Sequence[ChainEntry]
    chain_count: int


@dataclass(frozen=True, slots=True)
class TitledSegment:
    """A current segment with its current heat, and a title for display."""

    segment: Segment
    heat: float
    title: str


@dataclass(frozen=True, slots=True)
class TopicView:
    """A segment with its chains and with its past, current and future heat.

    Attributes:
        title: The title for display. The title of a current segment depends on the other current segments; the title of
            an archived segment depends only on that segment.
        heat: The segment's current heat.
        weights: The constants of the heat formula.
        threshold: The heat at which the segment's new pages are used to update the profile.
        now: The time for which ``heat`` was computed.
        history: The heat until ``now``; see `model.heat.heat_history`.
        future: The heat from ``now`` on, assuming no visits, new pages or analyses; see `model.heat.cooling`.
    """

    segment: Segment
    state: State
    title: str
    heat: float
    weights: HeatWeights
    threshold: float
    now: datetime
    pages: SegmentPages
    history: Sequence[HeatPoint]
    future: Sequence[HeatPoint]
