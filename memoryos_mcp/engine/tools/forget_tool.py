"""The tool that forgets: a dry run first, then the deletion, confirmed with the handle of the dry run."""

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field

from memoryos_mcp.engine.tools.arguments import RESULTS, Arguments, Count
from memoryos_mcp.engine.tools.texts import minute
from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.retrieval.rendering import head
from memoryos_mcp.text.amounts import amount
from memoryos_mcp.text.quoting import delimited, quoted

if TYPE_CHECKING:
    from memoryos_mcp.engine.engine import MemoryEngine
    from memoryos_mcp.model.forgotten import ForgetCounts

RESULTS_FOUND = 10


class ForgetMemoryArguments(Arguments):
    """What to forget, or the handle that confirms it."""

    ids: list[str] = Field(
        default=[], description="Pages p_..., all pages of topics s1 or chains c1, facts k1, trait:NAME."
    )
    query: str = Field(default="", description="Pages about this.")
    max_results: Count = Field(default=None, description="Most pages by query. Default: 10.", json_schema_extra=RESULTS)
    after: str = Field(default="", description="Pages from then on, ISO 8601.")
    before: str = Field(default="", description="Pages earlier than this, ISO 8601.")
    everything: bool = Field(default=False, description="All there is.")
    confirm: str = Field(default="", description="Handle of the dry run, alone.")


class ForgetSample(BaseModel):
    """How something begins that is to be forgotten."""

    id: str
    timestamp: str
    text: str


class ForgetMemoryResult(BaseModel):
    """What would be forgotten, or what was."""

    status: Literal["dry_run", "forgotten"]
    message: str
    pages: int
    facts: int
    traits: int
    changed_traits: int = Field(description="Traits that stay, but lose the reason that may quote what is forgotten.")
    affected_segments: int = Field(description="Topics that go, or are summed up anew from the pages that are left.")
    samples: list[ForgetSample] = Field(description="Of a dry run; empty else.")
    confirm: str | None = Field(description="Of a dry run: the handle to call again with; null else.")
    expires_at: str | None = Field(description="Until when the handle holds; null without one.")
    receipt: str | None = Field(description="Proof that it was forgotten, without a word of it; null in a dry run.")
    scrubbed: bool = Field(description="Whether the bytes are gone from the files too; if not, that is tried again.")
    kept_copies: list[str] = Field(
        description="Files beside the memory in which a restore kept what it replaced; only everything removes them."
    )


async def forget(engine: "MemoryEngine", arguments: ForgetMemoryArguments) -> ForgetMemoryResult:
    """Make a dry run, or carry out a confirmed one.

    Raises:
        ArgumentError: The arguments are not valid; nothing was forgotten.
    """
    from memoryos_mcp.consolidation.forgetting import Selection  # its imports would slow the server's start

    if not arguments.confirm:
        dry_run = await engine.plan_forgetting(
            Selection(
                ids=arguments.ids,
                query=arguments.query,
                max_results=RESULTS_FOUND if arguments.max_results is None else arguments.max_results,
                after=arguments.after or None,
                before=arguments.before or None,
                everything=arguments.everything,
            )
        )
        message = "Nothing is forgotten yet. Show the user what would go, and call again with confirm alone."
        return ForgetMemoryResult(
            status="dry_run",
            message=message if dry_run else "There is nothing to forget.",
            **_counts(dry_run.counts),
            samples=[
                ForgetSample(id=one.id, timestamp=one.at.isoformat(timespec="seconds"), text=one.text)
                for one in dry_run.samples
            ],
            confirm=dry_run.handle,
            expires_at=dry_run.expires_at.isoformat(timespec="seconds"),
            receipt=None,
            scrubbed=False,
            kept_copies=list(dry_run.kept_copies),
        )
    if len(arguments.model_fields_set) > 1:
        problem = "is given beside what to forget; give the handle alone: what the dry run found is forgotten"
        raise ArgumentError(argument="confirm", problem=problem)
    receipt = await engine.forget(arguments.confirm)
    later = "" if receipt.is_scrubbed else " Another process reads the files; the bytes are overwritten a little later."
    return ForgetMemoryResult(
        status="forgotten",
        message=f"Forgotten.{later}",
        **_counts(receipt.counts),
        samples=[],
        confirm=None,
        expires_at=None,
        receipt=receipt.receipt,
        scrubbed=receipt.is_scrubbed,
        kept_copies=await engine.kept_copies(),
    )


def forget_text(result: ForgetMemoryResult) -> str:
    """Return a result as a few lines of text."""
    verb = "would go" if result.status == "dry_run" else "are gone"
    pages, facts, traits = amount(result.pages, "page"), amount(result.facts, "fact"), amount(result.traits, "trait")
    lines = [f"{pages}, {facts} and {traits} {verb}; topics that change: {result.affected_segments}. {result.message}"]
    if result.kept_copies:
        names = ", ".join(result.kept_copies)
        lines.append(f"Copies that a restore kept, which only forgetting everything removes: {names}")
    if result.samples:
        samples = [f"{head(minute(one.timestamp), one.id)}\n{quoted(one.text)}" for one in result.samples]
        lines += ["How it begins:", delimited(samples)]
    if result.confirm is not None and (result.pages or result.facts or result.traits or result.kept_copies):
        lines.append(f"confirm: {result.confirm}")
    if result.receipt is not None:
        lines.append(f"receipt: {result.receipt}, scrubbed: {str(result.scrubbed).lower()}")
    return "\n".join(lines)


def _counts(counts: "ForgetCounts") -> dict[str, int]:
    return {
        "pages": counts.pages,
        "facts": counts.facts,
        "traits": counts.traits,
        "changed_traits": counts.changed_traits,
        "affected_segments": counts.segments,
    }
