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
    """The long-term memory of a user.

    Attributes:
        traits: Traits of the user: those with the most evidence first, and traits of writing style last.
        user_facts: Current facts about the user, oldest first.
        assistant_facts: Current facts about the assistant, oldest first.
    """

    traits: Sequence["Trait"]
    user_facts: Sequence["Fact"]
    assistant_facts: Sequence["Fact"]


@dataclass(frozen=True, slots=True)
class Counts:
    """How many pages, segments, chains, traits and facts a memory contains.

    Attributes:
        degraded: Number of pages that were processed without the LLM because it failed.
        attempts: Highest number of failed attempts to consolidate any one page of the backlog.
        unembedded: Number of pages without vectors.
        user_facts: Number of current facts about the user, without archived ones.
        assistant_facts: Number of current facts about the assistant, without archived ones.
        superseded_facts: Number of facts that are no longer valid.
        oldest_backlog_at: When the oldest page of the backlog was added; None if the backlog is empty.
        retention_waits_until: The earliest time at which old pages are forgotten; None if forgetting is not delayed.
            The program delays forgetting while the system clock may be wrong.
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
    """LLM usage for one purpose on one day.

    Attributes:
        day: Date in the user's zone, ``YYYY-MM-DD``.
        calls: Number of calls, including failed ones.
        failed_calls: Number of calls that returned no reply.
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
        failed_attempts: Number of consecutive failures; 0 after a success.
        last_error: Text of the last error, even if later attempts succeeded; None if there was no error.
        last_error_at: When the last error occurred; None if there was no error.
    """

    failed_attempts: int = 0
    last_error: str | None = None
    last_error_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """Progress of the change to a new embedding model.

    Attributes:
        identity: Identity of the new model, as ``name:dimension:revision``.
        pages_left: Number of pages that have no vectors of the new model yet.
    """

    identity: str
    pages_left: int


@dataclass(frozen=True, slots=True)
class LlmStats:
    """The name of the LLM and its usage.

    Attributes:
        name: Name of the LLM.
        today: Usage on the current day, one item per purpose.
        total: Usage over all days, one item per purpose.
    """

    name: str
    today: Sequence[UsageEntry]
    total: Sequence[UsageEntry]


@dataclass(frozen=True, slots=True)
class Stats:
    """The state of a user's memory.

    Attributes:
        top_segments: The current segments, each with its heat. The segment with the highest `Segment.prominence` comes
            first.
        titles: Title of each of these segments, by segment number.
        health: State of each background loop, by the loop's name.
        is_semantic: Whether retrieval currently uses vectors.
        is_settled: Whether no background work is due. Pages that do not fill a batch yet may still be waiting.
        damaged_pages: Number of damaged pages that the last check of all pages found.
        space: Identity of the embedding model that search uses; None while search uses only keywords.
        move: Progress of the change to a new embedding model; None if no change is in progress.
        recipe: Name and version of the ranking method.
        llm: The name of the LLM and its usage; None if no LLM is used.
        only_reads_because: Why the memory is currently read-only; None if it is writable.
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
