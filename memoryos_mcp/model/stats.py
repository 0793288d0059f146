"""Statistics of a user's memory: its size, the state of its background work, and LLM usage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # these modules import NumPy, which a server loads only after its first reply
    from memoryos_mcp.model.knowledge import Fact
    from memoryos_mcp.model.profile import Trait
    from memoryos_mcp.model.segments import Segment


@dataclass(frozen=True, slots=True)
class ProfileView:
    """The long-term memory of a user: traits with the most evidence first, oldest facts first."""

    traits: Sequence["Trait"]
    user_facts: Sequence["Fact"]
    assistant_facts: Sequence["Fact"]


@dataclass(frozen=True, slots=True)
class Counts:
    """Sizes of a memory, by tier.

    Attributes:
        degraded: Pages that the fallback processed because the LLM failed.
        attempts: Largest number of failed attempts on a page of the backlog.
        retention_waits_until: When pages older than ``retention_days`` will be forgotten, if that is delayed because
            the clock may be wrong; None otherwise.
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
    """LLM usage of one day for one purpose.

    Attributes:
        day: Date in the user's zone, ``YYYY-MM-DD``.
        calls: Number of calls, including failed ones.
        failed_calls: Number of calls without a reply.
    """

    day: str
    purpose: str
    calls: int
    failed_calls: int
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Health:
    """The state of a background loop.

    Attributes:
        failed_attempts: Failures in a row; 0 after a success.
        last_error: Text of the last failure, even if later attempts succeeded; None without a failure.
    """

    failed_attempts: int = 0
    last_error: str | None = None
    last_error_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """Progress of a change of the embedding model.

    Attributes:
        identity: The vector space that is being filled.
        pages_left: Pages without vectors in it.
    """

    identity: str
    pages_left: int


@dataclass(frozen=True, slots=True)
class LlmStats:
    """LLM usage.

    Attributes:
        name: Name of the model.
        today: Usage of the current day, by purpose.
        total: Usage of all days, by purpose.
    """

    name: str
    today: Sequence[UsageEntry]
    total: Sequence[UsageEntry]


@dataclass(frozen=True, slots=True)
class Stats:
    """The state of a user's memory.

    Attributes:
        top_segments: Segments with their heat, most prominent first.
        titles: Title of each segment, by its number.
        health: By background loop.
        is_semantic: Whether retrieval uses vectors now.
        is_settled: Whether background work has nothing to do now; pages may wait until their batch is due.
        damaged_pages: Pages that changed on disk, among those verified so far.
        space: Identity of the model whose vectors are searched; None while only keywords are.
        move: Progress of a change to another model; None if there is none.
        recipe: Name and version of the ranking.
        llm: None without an LLM.
        only_reads_because: Why the memory is read-only now; None if it is not.
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
