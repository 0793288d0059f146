"""Arguments of the tools by which a memory is seen and corrected."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from memoryos_mcp.server.arguments import Arguments, Count, OptionalText, none_is_empty

# As in the engine, which is not imported before it is needed.
Tiers = Literal["", "pages", "short_term", "backlog", "mid_term", "segments", "knowledge", "profile", "long_term"]
States = Literal["", "current", "superseded", "archived"]


def _empty_is_none(value: object) -> object:
    return None if value == "" else value


def _one_is_a_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


# A text that says what holds instead; left out, null and "" mean that there is none.
Instead = Annotated[str | None, BeforeValidator(_empty_is_none)]


class GetMemoryArguments(Arguments):
    """What to show."""

    ids: Annotated[list[str], BeforeValidator(_one_is_a_list)] = Field(
        description="Up to 50 ids from other results: page p_..., segment s1, chain c1, fact k1, trait:NAME."
    )
    max_tokens: Count = Field(default=50_000, description="About how many tokens the pages may take, 100 to 1000000.")


class ListMemoriesArguments(Arguments):
    """Which memories to list."""

    tier: Annotated[Tiers, BeforeValidator(none_is_empty)] = Field(
        default="", description="pages are of all tiers (default); long_term is profile and knowledge."
    )
    topic: OptionalText = Field(default="", description="Segment id, or part of a segment's keyword.")
    state: Annotated[States, BeforeValidator(none_is_empty)] = Field(
        default="", description="Of knowledge, or archived segments. Default: current."
    )
    after: OptionalText = Field(default="", description="From this time on, ISO 8601.")
    before: OptionalText = Field(default="", description="Before this time, ISO 8601.")
    cursor: OptionalText = Field(default="", description="next_cursor of the list before, with the same arguments.")
    limit: Count = Field(default=20, description="1 to 100.")


class CorrectMemoryArguments(Arguments):
    """What the user says is right."""

    id: str = Field(description="A fact's knowledge_id, or trait:NAME.")
    text: Instead = Field(default=None, description="Of a fact: what is right, one sentence.")
    level: Annotated[Literal["Low", "Medium", "High"] | None, BeforeValidator(_empty_is_none)] = Field(
        default=None, description="Of a trait."
    )
    reason: Instead = Field(default=None, description="Of a trait: why, one sentence.")
    wrong: bool = Field(default=False, description="It is only wrong: nothing holds instead.")
    restore: bool = Field(default=False, description="Take the last correction of id back: it holds again.")
    dry_run: bool = Field(default=False, description="Only show what would change.")
