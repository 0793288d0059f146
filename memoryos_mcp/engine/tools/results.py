"""Results of the tools. Keys that exist in the reference implementation have the same names here."""

from typing import Literal

from pydantic import BaseModel, Field

from memoryos_mcp.engine.tools.pages import RetrievedPage, ShortTermPage


class RetrievedSegment(BaseModel):
    """A topic (segment) of retrieved pages."""

    segment_id: str
    summary: str = Field(description="At most 40 tokens; get_memory returns all of it.")
    keywords: list[str]
    page_count: int
    heat: float = Field(description="Current importance: visits, new pages and recency.")


class KnowledgeEntry(BaseModel):
    """A fact with its evidence."""

    knowledge: str
    timestamp: str = Field(description="Since when it is true; when it was said, if that is not known.")
    valid_until: str | None = Field(description="When it ended or will end; null if no end is known.")
    knowledge_id: str
    evidence: list[str] = Field(description="Ids of the pages that state it.")
    kind: Literal["statement", "wish"] = Field(default="statement", description="A wish applies to every answer.")
    attribute: str | None = Field(default=None, description="Name of an attribute with only one value at a time.")


class RetrievedKnowledge(KnowledgeEntry):
    """A fact with its relevance to the query."""

    score: float


class UnderstoodQuery(BaseModel):
    """The interpretation of the query."""

    subject: str = Field(description="Text compared by meaning: the query without the names of the two sides.")
    side: Literal["user", "assistant"] | None = Field(
        description="The side whose words count more, if the query names it."
    )
    words: dict[str, int] = Field(description="Search terms, with the number of pages that contain each.")
    times: list[str] = Field(description="Periods that the query names: first and last day, or those of each year.")
    several: bool = Field(description="Whether it asks for several things, so that results alternate between sessions.")


class LeftOutOfResult(BaseModel):
    """Numbers of memories that did not fit into the budget."""

    pages: int
    excerpts: int = Field(description="Number of pages returned in part.")
    facts: int
    traits: int
    max_tokens: int = Field(description="The max_tokens that returns all of them.")


class SpeakerNames(BaseModel):
    """The names of the two sides; null while unknown."""

    user: str | None = None
    assistant: str | None = None


class RetrieveMemoryResult(BaseModel):
    """The memories of all three tiers that are relevant to the query."""

    query: str
    timestamp: str
    relationship_with_user: str
    style_hint: str
    speakers: SpeakerNames = SpeakerNames()
    user_profile: str = Field(description="The traits relevant to the query as text; None if there are none.")
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
        description="hybrid uses words and meaning; lexical only words, while the model is loading or missing."
    )
    ranking: str = Field(description="Name and version of the ranking.")
    understood: UnderstoodQuery | None = Field(description="With explain: the interpretation of the query.")
    token_estimate: int = Field(description="Estimated tokens of the text: one per four bytes.")
    left_out: LeftOutOfResult | None = Field(default=None, description="Memories that did not fit; null if all did.")


class TraitEntry(BaseModel):
    """One dimension of the profile."""

    id: str
    dimension: str
    level: Literal["Low", "Medium", "High"]
    reason: str
    evidence: list[str] = Field(description="Ids of the pages that support it.")
    updated_at: str


class GetUserProfileResult(BaseModel):
    """The long-term memory of the user."""

    timestamp: str
    user_id: str
    assistant_id: str
    user_profile: str
    traits: list[TraitEntry]
    user_knowledge: list[KnowledgeEntry] = Field(
        description="Wishes, facts about the user's identity, then the newest 100 others."
    )
    user_knowledge_count: int = Field(description="Number of all current facts.")
    assistant_knowledge: list[KnowledgeEntry]
    assistant_knowledge_count: int


class SegmentStats(BaseModel):
    """A topic with its heat."""

    segment_id: str
    title: str
    heat: float
    n_visit: int
    l_interaction: int
    page_count: int
    keywords: list[str]


class LoopStats(BaseModel):
    """The health of one background loop."""

    failed_attempts: int = Field(description="Consecutive failures; 0 is healthy.")
    last_error: str | None
    last_error_at: str | None


class LlmUsage(BaseModel):
    """The usage of the LLM for one purpose."""

    calls: int = Field(description="Including failed calls.")
    failed_calls: int
    prompt_tokens: int
    completion_tokens: int


class LlmStats(BaseModel):
    """The LLM in use, and its usage for this user."""

    model: str
    usage_today: dict[str, LlmUsage] = Field(description="By purpose.")
    usage_total: dict[str, LlmUsage] = Field(description="By purpose, for all days.")
    tokens_today: int
    daily_token_limit: int | None


class EmbeddingMove(BaseModel):
    """Progress of a change to another embedding model; the previous model is used until the change is complete."""

    space: str
    pages_left: int


class GetMemoryStatsResult(BaseModel):
    """The state of the user's memory."""

    timestamp: str
    user_id: str
    version: str
    total_pages: int
    short_term_pages: int
    short_term_capacity: int
    backlog_pages: int = Field(description="Number of pages that are not filed under a topic yet.")
    oldest_backlog_at: str | None
    retention_waits_until: str | None = Field(
        description="When pages older than retention_days are forgotten; null unless the clock may be wrong."
    )
    backlog_attempts: int = Field(description="Highest number of failed attempts to file a page.")
    degraded_pages: int = Field(
        description="Number of pages organised without the LLM because it failed; redone later."
    )
    damaged_pages: int = Field(description="Number of pages damaged on disk; their text is not shown.")
    only_reads_because: str | None = Field(
        description="Why nothing can be stored now, for example a full disk; null if it can."
    )
    mid_term_pages: int
    unembedded_pages: int = Field(description="Number of pages that are found only by keywords so far.")
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
    embedding_space: str | None = Field(description="Name of the vectors in use; null while search uses keywords only.")
    embedding_move: EmbeddingMove | None = Field(
        description="A change to another embedding model in progress; null if there is none."
    )
    ranking: str
    is_settled: bool = Field(
        description="Whether no background work is due now; pages may still wait for a full batch."
    )
    background: dict[str, LoopStats]
    llm: LlmStats | None = Field(description="Null without an LLM.")
