"""The tool ``forget_memory``. The first call is a dry run, and the second call confirms it."""

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field

from memoryos_mcp.engine.tools.arguments import RESULTS, Arguments, Count
from memoryos_mcp.engine.tools.texts import minute
from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.text.amounts import amount
from memoryos_mcp.text.quoting import delimited, head, quoted

if TYPE_CHECKING:
    from memoryos_mcp.engine.engine import MemoryEngine
    from memoryos_mcp.model.forgotten import ForgetCounts

RESULTS_FOUND = 10


class ForgetMemoryArguments(Arguments):
    """Arguments of ``forget_memory``: the memories to forget, or the handle of a dry run."""

    ids: list[str] = Field(default=[], description="Ids: page p_..., fact k1, trait:NAME, whole topic s1 or chain c1.")
    query: str = Field(default="", description="What the pages are about.")
    max_results: Count = Field(
        default=None, description="Page limit for 'query'. Default: 10.", json_schema_extra=RESULTS
    )
    after: str = Field(default="", description="From this time on, ISO 8601.")
    before: str = Field(default="", description="Before this time, ISO 8601.")
    everything: bool = Field(default=False, description="Select all memories.")
    confirm: str = Field(default="", description="Handle of the dry run. Pass no other argument.")


class ForgetSample(BaseModel):
    """A memory that would be forgotten, with the beginning of its text."""

    id: str
    timestamp: str
    text: str


class ForgetMemoryResult(BaseModel):
    """Counts of the memories that were forgotten or, in a dry run, would be forgotten."""

    status: Literal["dry_run", "forgotten"]
    message: str
    pages: int
    facts: int
    traits: int
    changed_traits: int = Field(
        description="Number of traits whose reason was removed, because it may quote forgotten text."
    )
    affected_segments: int = Field(
        description="Number of topics that are removed, or summarised again from their remaining pages."
    )
    samples: list[ForgetSample] = Field(description="In a dry run, some of the selected memories; otherwise empty.")
    confirm: str | None = Field(
        description="In a dry run, the handle that the confirming call must pass; otherwise null."
    )
    expires_at: str | None = Field(description="When the handle expires; null if there is no handle.")
    receipt: str | None = Field(description="Id of the receipt, which contains no forgotten text; null in a dry run.")
    scrubbed: bool = Field(
        description="Whether the forgotten content is already overwritten in the files. "
        "If not, it will be overwritten later."
    )
    kept_copies: list[str] = Field(
        description="Backup copies made by restores. They are removed only if everything is forgotten."
    )


async def forget(engine: "MemoryEngine", arguments: ForgetMemoryArguments) -> ForgetMemoryResult:
    """Do a dry run, or forget the memories that an earlier dry run selected. Return the result.

    ``arguments.confirm`` is the handle of the earlier dry run; it is empty for a new dry run.

    Raises:
        ArgumentError: An argument is not valid; nothing was forgotten.
    """
    from memoryos_mcp.consolidation.forgetting import Selection  # importing it would slow the server's start

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
        message = (
            "Nothing has been forgotten yet. Show the user what would be forgotten. "
            "If the user agrees, call again with only 'confirm'."
        )
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
        problem = "must be the only argument; leave out all other arguments"
        raise ArgumentError(argument="confirm", problem=problem)
    receipt = await engine.forget(arguments.confirm)
    later = (
        "" if receipt.is_scrubbed else " Another process is reading the files, so the bytes will be overwritten later."
    )
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
    """Return a result of ``forget_memory`` as a few lines of text."""
    verb = "would be forgotten" if result.status == "dry_run" else "were forgotten"
    pages, facts, traits = amount(result.pages, "page"), amount(result.facts, "fact"), amount(result.traits, "trait")
    lines = [f"{pages}, {facts} and {traits} {verb}; affected topics: {result.affected_segments}. {result.message}"]
    if result.kept_copies:
        names = ", ".join(result.kept_copies)
        lines.append(f"Backup copies made by a restore (removed only if everything is forgotten): {names}")
    if result.samples:
        samples = [f"{head(minute(one.timestamp), one.id)}\n{quoted(one.text)}" for one in result.samples]
        lines += ["Samples:", delimited(samples)]
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
