"""Results of the tools.

Values that also exist in MemoryOS, the reference implementation, have the same keys as there.
"""

from typing import Literal

from pydantic import BaseModel, Field

from memoryos_mcp.engine.tools.pages import RetrievedPage, ShortTermPage


class RetrievedSegment(BaseModel):
    """A topic (segment) that contains retrieved pages."""

    segment_id: str
    summary: str = Field(description="Summary, cut to 40 tokens; get_memory returns the full summary.")
    keywords: list[str]
    page_count: int
    heat: float = Field(description="Current importance, computed from visits, new pages and recency.")


class KnowledgeEntry(BaseModel):
    """A fact with its evidence."""

    knowledge: str
    timestamp: str = Field(description="When the fact became true or, if that is not known, when it was stated.")
    valid_until: str | None = Field(description="When the fact ceased or will cease to be true; null if not known.")
    knowledge_id: str
    evidence: list[str] = Field(description="Ids of the pages that state the fact.")
    kind: Literal["statement", "wish"] = Field(
        default="statement", description="A wish is a preference of the user that applies to every answer."
    )
    attribute: str | None = Field(
        default=None,
        description="Attribute that the fact states, if the attribute has only one value at a time; otherwise null.",
    )


class RetrievedKnowledge(KnowledgeEntry):
    """A fact with its relevance to the query."""

    score: float


class UnderstoodQuery(BaseModel):
    """How the query was interpreted."""

    subject: str = Field(
        description="Text for semantic search: the query without the names of the user and the assistant."
    )
    side: Literal["user", "assistant"] | None = Field(
        description="The speaker whose messages rank higher; null if the query names neither speaker, or both together."
    )
    words: dict[str, int] = Field(description="Search terms, each with the number of pages that contain it.")
    times: list[str] = Field(
        description="Periods in the query, as first and last day. A period without a year means every year."
    )
    several: bool = Field(
        description="Whether the query asks for several memories. If so, results alternate between sessions."
    )


class LeftOutOfResult(BaseModel):
    """How many memories of each kind did not fit into the token budget."""

    pages: int
    excerpts: int = Field(description="Number of pages of which only excerpts are returned.")
    facts: int
    traits: int
    max_tokens: int = Field(description="Value of max_tokens with which all memories fit.")


class SpeakerNames(BaseModel):
    """The names of the user and the assistant; null if a name is unknown."""

    user: str | None = None
    assistant: str | None = None


class RetrieveMemoryResult(BaseModel):
    """The memories that are relevant to the query, from all three tiers."""

    query: str
    timestamp: str
    relationship_with_user: str
    style_hint: str
    speakers: SpeakerNames = SpeakerNames()
    user_profile: str = Field(
        description='Traits that are relevant to the query, as text; the text "None" if there are none.'
    )
    short_term_memory: list[ShortTermPage]
    short_term_count: int
    retrieved_pages: list[RetrievedPage]
    retrieved_user_knowledge: list[RetrievedKnowledge]
    retrieved_assistant_knowledge: list[RetrievedKnowledge]
    total_pages_found: int
    total_user_knowledge_found: int
    total_assistant_knowledge_found: int
    segments: list[RetrievedSegment]
    search_mode: Literal["hybrid", "lexical"] = Field(
        description="hybrid: keyword and semantic search. lexical: only keyword search, because the embedding model "
        "is loading or missing."
    )
    ranking: str = Field(description="Name and version of the ranking method.")
    understood: UnderstoodQuery | None = Field(
        description="With explain: how the query was interpreted; otherwise null."
    )
    token_estimate: int = Field(description="Estimated number of tokens in the text: one per four bytes.")
    left_out: LeftOutOfResult | None = Field(
        default=None, description="Numbers of memories that did not fit into max_tokens; null if all memories fit."
    )


class TraitEntry(BaseModel):
    """A trait: one dimension of the user's profile."""

    id: str
    dimension: str
    level: Literal["Low", "Medium", "High"]
    reason: str
    evidence: list[str] = Field(description="Ids of the pages that support the trait.")
    updated_at: str


class GetUserProfileResult(BaseModel):
    """The user's traits, and facts about the user and the assistant."""

    timestamp: str
    user_id: str
    assistant_id: str
    user_profile: str
    traits: list[TraitEntry]
    user_knowledge: list[KnowledgeEntry] = Field(
        description="All wishes, then all facts about the user's identity, then the newest 100 other facts."
    )
    user_knowledge_count: int = Field(description="Number of all current facts about the user.")
    assistant_knowledge: list[KnowledgeEntry]
    assistant_knowledge_count: int


class SegmentStats(BaseModel):
    """A topic (segment) with its heat."""

    segment_id: str
    title: str
    heat: float
    n_visit: int
    l_interaction: int
    page_count: int
    keywords: list[str]


class LoopStats(BaseModel):
    """The health of one background loop."""

    failed_attempts: int = Field(description="Number of consecutive failures; 0 means no problem.")
    last_error: str | None
    last_error_at: str | None


class LlmUsage(BaseModel):
    """LLM usage for one purpose."""

    calls: int = Field(description="Number of calls, including failed ones.")
    failed_calls: int
    prompt_tokens: int
    completion_tokens: int


class LlmStats(BaseModel):
    """The configured LLM, and its usage for this user."""

    model: str
    usage_today: dict[str, LlmUsage] = Field(description="Usage since local midnight, by purpose.")
    usage_total: dict[str, LlmUsage] = Field(description="Total usage, by purpose.")
    tokens_today: int
    daily_token_limit: int | None


class EmbeddingMove(BaseModel):
    """Progress of a change to another embedding model. The previous model is used until the change is complete."""

    space: str
    pages_left: int


class GetMemoryStatsResult(BaseModel):
    """Counts of a user's memories, and the state of the background work."""

    timestamp: str
    user_id: str
    version: str
    total_pages: int
    short_term_pages: int
    short_term_capacity: int
    backlog_pages: int = Field(description="Number of pages that are not assigned to a topic yet.")
    oldest_backlog_at: str | None
    retention_waits_until: str | None = Field(
        description="Earliest time at which pages older than retention_days can be forgotten. "
        "Null unless forgetting is delayed because the clock may be wrong."
    )
    backlog_attempts: int = Field(description="Highest number of failed attempts to assign the same page to a topic.")
    degraded_pages: int = Field(
        description="Number of pages organised without the LLM because it failed. "
        "They will be organised again with the LLM."
    )
    damaged_pages: int = Field(description="Number of pages that are damaged on disk. Their text is not shown.")
    only_reads_because: str | None = Field(
        description="Why nothing can be stored at the moment, for example a full disk; null if memories can be stored."
    )
    mid_term_pages: int
    unembedded_pages: int = Field(description="Number of pages without vectors, which only keyword search can find.")
    segments: int
    archived_segments: int
    segment_capacity: int
    chains: int
    top_segments: list[SegmentStats]
    heat_threshold: float
    traits: int
    user_knowledge: int
    assistant_knowledge: int
    superseded_knowledge: int
    search_mode: Literal["hybrid", "lexical"]
    embedding_space: str | None = Field(
        description="Name of the vector space in use; null while only keyword search is available."
    )
    embedding_move: EmbeddingMove | None = Field(
        description="Progress of a change to another embedding model; null if no change is in progress."
    )
    ranking: str
    is_settled: bool = Field(
        description="True if no background work is due now. Some pages may still be waiting for a full batch."
    )
    background: dict[str, LoopStats]
    llm: LlmStats | None = Field(description="The LLM and its usage; null if no LLM is configured.")
