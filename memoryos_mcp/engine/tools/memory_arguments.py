"""Arguments of ``get_memory``, ``list_memories`` and ``correct_memory``."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from memoryos_mcp.engine.tools.arguments import RESULTS, TOKENS, Arguments, Count

# The same values as in the engine, which is not imported here because its libraries load slowly.
Tiers = Literal["", "pages", "short_term", "backlog", "mid_term", "segments", "knowledge", "profile", "long_term"]
States = Literal["", "current", "superseded", "archived"]


def _empty_is_none(value: object) -> object:
    return None if value == "" else value


def _one_is_a_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


# An optional text; "" means the same as null.
OptionalText = Annotated[str | None, BeforeValidator(_empty_is_none)]


class GetMemoryArguments(Arguments):
    """Arguments of ``get_memory``."""

    ids: Annotated[list[str], BeforeValidator(_one_is_a_list)] = Field(
        description="Up to 50 ids from other results: p_..., s1, c1, k1, trait:NAME."
    )
    max_tokens: Count = Field(default=50_000, description="Token limit for all pages.", json_schema_extra=TOKENS)


class ListMemoriesArguments(Arguments):
    """Arguments of ``list_memories``."""

    tier: Tiers = Field(default="", description="Default: pages. long_term: facts and traits.")
    topic: str = Field(default="", description="Topic id (s1) or part of a keyword.")
    state: States = Field(default="", description="State of knowledge or segments. Default: current.")
    after: str = Field(default="", description="From this time on, ISO 8601.")
    before: str = Field(default="", description="Before this time, ISO 8601.")
    project: str = Field(default="", description="Project.")
    cursor: str = Field(default="", description="next_cursor of the last call; keep the other arguments.")
    limit: Count = Field(default=20, description="Number of memories.", json_schema_extra=RESULTS)


class CorrectMemoryArguments(Arguments):
    """Arguments of ``correct_memory``."""

    id: str = Field(description="Id of a fact (k1), or trait:NAME.")
    text: OptionalText = Field(default=None, description="Correct text of a fact.")
    level: Annotated[Literal["Low", "Medium", "High"] | None, BeforeValidator(_empty_is_none)] = Field(
        default=None, description="Level of a trait."
    )
    reason: OptionalText = Field(default=None, description="Reason for the level.")
    wrong: bool = Field(default=False, description="Mark as wrong, with no replacement.")
    restore: bool = Field(default=False, description="Undo the last correction.")
    dry_run: bool = Field(default=False, description="Only show the change.")
