"""Statistics of a user's memory: its sizes, the state of its background work, and what an LLM cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # they bring NumPy, which a server does not load before its first reply
    from memoryos_mcp.model.knowledge import Fact
    from memoryos_mcp.model.profile import Trait
    from memoryos_mcp.model.segments import Segment


@dataclass(frozen=True, slots=True)
class ProfileView:
    """The long-term memory of a user; the most telling traits first, facts oldest first."""

    traits: Sequence["Trait"]
    user_facts: Sequence["Fact"]
    assistant_facts: Sequence["Fact"]


@dataclass(frozen=True, slots=True)
class Counts:
    """How much there is, by tier.

    Attributes:
        degraded: Pages that the fallback organised or read for an LLM that failed.
        attempts: Failed attempts on the page of the backlog that has had most.
        retention_waits_until: From when on pages older than ``retention_days`` are forgotten, where the clock may be
            wrong; None if that is not waited for.
    """

    pages: int
    short_term: int
    backlog: int
    degraded: int
    attempts: int
    mid_term: int
    unembedded: int
    segments: int
    archived_segments: int
    chains: int
    traits: int
    user_facts: int
    assistant_facts: int
    superseded_facts: int
    oldest_backlog_at: datetime | None
    retention_waits_until: datetime | None


@dataclass(frozen=True, slots=True)
class UsageEntry:
    """What calls of an LLM cost on one day.

    Attributes:
        day: The date in the user's zone, ``YYYY-MM-DD``.
        purpose: What the calls were for.
        calls: How many, the failed ones included.
        failed_calls: How many brought no reply.
    """

    day: str
    purpose: str
    calls: int
    failed_calls: int
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Health:
    """How a loop fares.

    Attributes:
        failed_attempts: Failures in a row; 0 after a success.
        last_error: The last failure's text, kept after a success; None if there never was one.
        last_error_at: When that was.
    """

    failed_attempts: int = 0
    last_error: str | None = None
    last_error_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """How far a change of the model has come.

    Attributes:
        identity: The space that is filled.
        pages_left: Pages that have no vectors in it yet.
    """

    identity: str
    pages_left: int


@dataclass(frozen=True, slots=True)
class LlmStats:
    """What the LLM does and costs.

    Attributes:
        name: The model.
        today: Its calls of this day, by purpose.
        total: Its calls of all days, by purpose.
    """

    name: str
    today: Sequence[UsageEntry]
    total: Sequence[UsageEntry]


@dataclass(frozen=True, slots=True)
class Stats:
    """The state of a user's memory.

    Attributes:
        top_segments: Segments with their heat, the most prominent first.
        titles: What each segment is called, by its number.
        health: Per background loop.
        is_semantic: Whether retrieval compares meaning now.
        is_settled: Whether the background has nothing to do now; pages may wait for their batch to be due.
        damaged_pages: How many pages the disk has changed, as far as they have been read through.
        space: Identity of the model whose vectors answer, None while words answer alone.
        move: The change to another model that is under way; None without one.
        recipe: Name and version of the ranking.
        llm: None without an LLM.
        only_reads_because: Why nothing can be written just now; None if it can.
    """

    counts: Counts
    top_segments: Sequence[tuple["Segment", float]]
    titles: Mapping[int, str]
    health: Mapping[str, Health]
    is_semantic: bool
    is_settled: bool
    damaged_pages: int
    space: str | None
    move: Move | None
    recipe: str
    llm: LlmStats | None
    only_reads_because: str | None
