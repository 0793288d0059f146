"""Arguments of the tools that show, list and correct memories."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from memoryos_mcp.engine.tools.arguments import RESULTS, TOKENS, Arguments, Count

# The engine's values, repeated here because the engine is imported only when it is needed.
Tiers = Literal["", "pages", "short_term", "backlog", "mid_term", "segments", "knowledge", "profile", "long_term"]
States = Literal["", "current", "superseded", "archived"]


def _empty_is_none(value: object) -> object:
    return None if value == "" else value


def _one_is_a_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


# A replacement text. A missing value, null and "" mean that there is none.
Instead = Annotated[str | None, BeforeValidator(_empty_is_none)]


class GetMemoryArguments(Arguments):
    """What to show."""

    ids: Annotated[list[str], BeforeValidator(_one_is_a_list)] = Field(
        description="From other results, up to 50: p_..., s1, c1, k1, trait:NAME."
    )
    max_tokens: Count = Field(
        default=50_000, description="About how long the pages may be together.", json_schema_extra=TOKENS
    )


class ListMemoriesArguments(Arguments):
    """Which memories to list."""

    tier: Tiers = Field(default="", description="Default: all pages. long_term: profile and knowledge.")
    topic: str = Field(default="", description="Topic id (s1) or part of its keyword.")
    state: States = Field(default="", description="Of knowledge and segments. Default: current.")
    after: str = Field(default="", description="From then on, ISO 8601.")
    before: str = Field(default="", description="Earlier than this, ISO 8601.")
    cursor: str = Field(default="", description="next_cursor of the previous list; same arguments.")
    limit: Count = Field(default=20, description="Most memories.", json_schema_extra=RESULTS)


class CorrectMemoryArguments(Arguments):
    """What the user says is right."""

    id: str = Field(description="knowledge_id of a fact, or trait:NAME.")
    text: Instead = Field(default=None, description="Of a fact: what is right, one sentence.")
    level: Annotated[Literal["Low", "Medium", "High"] | None, BeforeValidator(_empty_is_none)] = Field(
        default=None, description="Of a trait."
    )
    reason: Instead = Field(default=None, description="Of a trait: why, one sentence.")
    wrong: bool = Field(default=False, description="It is wrong and nothing replaces it.")
    restore: bool = Field(default=False, description="Undo its last correction.")
    dry_run: bool = Field(default=False, description="Only show the change.")
