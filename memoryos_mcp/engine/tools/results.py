"""Results of the tools. Keys of the reference implementation keep their names; further keys are ours."""

from typing import Literal

from pydantic import BaseModel, Field

from memoryos_mcp.engine.tools.pages import RetrievedPage, ShortTermPage


class RetrievedSegment(BaseModel):
    """A topic that retrieved pages belong to."""

    segment_id: str
    summary: str = Field(description="At most 40 tokens; get_memory has the whole.")
    keywords: list[str]
    page_count: int
    heat: float = Field(description="How much it matters now: visits, new pages, recency.")


class KnowledgeEntry(BaseModel):
    """A fact with its evidence."""

    knowledge: str
    timestamp: str = Field(description="Since when it holds; when it was said, if nothing else is known.")
    valid_until: str | None = Field(description="When it ends, if that is known.")
    knowledge_id: str
    evidence: list[str] = Field(description="Ids of the pages it rests on.")
    kind: Literal["statement", "wish"] = Field(default="statement", description="A wish holds for every answer.")
    attribute: str | None = Field(default=None, description="What it answers if only one answer can hold at a time.")


class RetrievedKnowledge(KnowledgeEntry):
    """A fact with its score for the query."""

    score: float


class UnderstoodQuery(BaseModel):
    """What the query was taken to ask for."""

    subject: str = Field(description="What is compared by meaning: the query without the names of the two sides.")
    side: Literal["user", "assistant"] | None = Field(description="Whose words count more, if one side is named.")
    words: dict[str, int] = Field(description="What is looked for by words, with the number of pages that hold it.")
    times: list[str] = Field(description="The stretches of time it names: first and last day, or each year's.")
    several: bool = Field(description="Whether it asks for several things, so that sessions take turns.")


class LeftOutOfResult(BaseModel):
    """What there was no room for."""

    pages: int
    excerpts: int = Field(description="Pages of which only parts came.")
    facts: int
    traits: int
    max_tokens: int = Field(description="Pass this to get all of it.")


class SpeakerNames(BaseModel):
    """What the two sides are called; null while it is not known."""

    user: str | None = None
    assistant: str | None = None


class RetrieveMemoryResult(BaseModel):
    """What all three tiers know about the query."""

    query: str
    timestamp: str
    relationship_with_user: str
    style_hint: str
    speakers: SpeakerNames = SpeakerNames()
    user_profile: str = Field(description="The traits that bear on the query; None if there are none.")
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
        description="hybrid compares words and meaning; lexical only words, while the model is loading or missing."
    )
    ranking: str = Field(description="Name and version of the ranking recipe.")
    understood: UnderstoodQuery | None = Field(description="With explain: what the query was taken to ask for.")
    token_estimate: int = Field(description="What the text takes, one for four bytes.")
    left_out: LeftOutOfResult | None = Field(default=None, description="What did not fit; null if all came.")


class TraitEntry(BaseModel):
    """One dimension of the profile."""

    id: str
    dimension: str
    level: Literal["Low", "Medium", "High"]
    reason: str
    evidence: list[str] = Field(description="Ids of the pages it rests on.")
    updated_at: str


class GetUserProfileResult(BaseModel):
    """The long-term memory of the user."""

    timestamp: str
    user_id: str
    assistant_id: str
    user_profile: str
    traits: list[TraitEntry]
    user_knowledge: list[KnowledgeEntry] = Field(description="Wishes, who the user is, then the newest 100 others.")
    user_knowledge_count: int = Field(description="Of all that are current.")
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
    """How a part of the background work fares."""

    failed_attempts: int = Field(description="Failures in a row; 0 is healthy.")
    last_error: str | None
    last_error_at: str | None


class LlmUsage(BaseModel):
    """What calls of the LLM for one purpose cost."""

    calls: int = Field(description="The failed ones included.")
    failed_calls: int
    prompt_tokens: int
    completion_tokens: int


class LlmStats(BaseModel):
    """The LLM that organises and learns, and what it costs for this user."""

    model: str
    usage_today: dict[str, LlmUsage] = Field(description="By purpose.")
    usage_total: dict[str, LlmUsage] = Field(description="By purpose, of all days.")
    tokens_today: int
    daily_token_limit: int | None


class EmbeddingMove(BaseModel):
    """How far a change to another embedding model has come; the one before answers until it is done."""

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
    backlog_pages: int = Field(description="Pages waiting to be filed into topics.")
    oldest_backlog_at: str | None
    retention_waits_until: str | None = Field(
        description="From when on pages older than retention_days are forgotten, where the clock may be wrong."
    )
    backlog_attempts: int = Field(description="How often filing has failed for the page that failed most.")
    degraded_pages: int = Field(description="Pages organised without the LLM because it failed; redone later.")
    damaged_pages: int = Field(description="Pages that the disk has changed; their text is withheld.")
    only_reads_because: str | None = Field(description="Why nothing can be stored now: a full or read-only disk.")
    mid_term_pages: int
    unembedded_pages: int = Field(description="Pages that are found by words alone so far.")
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
    embedding_space: str | None = Field(description="Whose vectors answer; null while words answer alone.")
    embedding_move: EmbeddingMove | None = Field(description="A change to another embedding model under way, if any.")
    ranking: str
    is_settled: bool = Field(description="Whether the background has nothing to do now; pages may await their batch.")
    background: dict[str, LoopStats]
    llm: LlmStats | None = Field(description="Null: memory is organised without an LLM.")
