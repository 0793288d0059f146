"""Views: what is told of a user's memory as a whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memoryos_mcp.background import Health
from memoryos_mcp.knowledge import Fact
from memoryos_mcp.profile import Trait
from memoryos_mcp.segments import Segment
from memoryos_mcp.spaces import Move
from memoryos_mcp.storage.values import Counts, UsageEntry


@dataclass(frozen=True, slots=True)
class ProfileView:
    """The long-term memory of a user; the most telling traits first, facts oldest first."""

    traits: Sequence[Trait]
    user_facts: Sequence[Fact]
    assistant_facts: Sequence[Fact]


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
    top_segments: Sequence[tuple[Segment, float]]
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
