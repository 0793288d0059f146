"""Converts tool results to text for models and people. Memories in the text are delimited and marked as information."""

from collections.abc import Mapping, Sequence

from memoryos_mcp.engine.tools.pages import AddMemoryResult
from memoryos_mcp.engine.tools.results import GetMemoryStatsResult
from memoryos_mcp.model.knowledge import About, Fact, Kind, is_head
from memoryos_mcp.model.profile import Trait
from memoryos_mcp.retrieval.rendering import KNOWN, TRAITS, WISHES, fact_line, trait_line
from memoryos_mcp.text.amounts import amount
from memoryos_mcp.text.quoting import delimited, one_line, section


def receipt_text(result: AddMemoryResult) -> str:
    """Return a receipt as text, including the kinds of secrets that were removed."""
    left_out = f" Removed secrets: {', '.join(result.redacted)}." if result.redacted else ""
    return f"{result.message} page_id {result.page_id}{left_out}"


def profile_text(traits: Sequence[Trait], known: Mapping[About, Sequence[Fact]], older: Mapping[About, int]) -> str:
    """Return the user's profile and known facts as text.

    Args:
        traits: The user's traits.
        known: Facts to show about the user and about the assistant.
        older: How many older facts are not shown, separately for the user and the assistant.
    """
    lines = section(WISHES, (fact_line(fact) for fact in known[About.USER] if fact.kind is Kind.WISH))
    for whom, facts in known.items():
        lines += section(f"Who the {whom} is", (fact_line(fact) for fact in facts if is_head(fact.slot)))
        if whom is About.USER:
            lines += section(TRAITS, map(trait_line, traits))
        others = (fact for fact in facts if fact.kind is not Kind.WISH and not is_head(fact.slot))
        lines += section(KNOWN[whom], map(fact_line, others))
        if older[whom]:
            more = amount(older[whom], "older fact")
            lines.append(f"({more} about the {whom}: list_memories with tier knowledge, or retrieve_memory)")
    return delimited(lines)


def stats_text(result: GetMemoryStatsResult) -> str:
    """Return the state of a memory as a few lines of text."""
    lines = [
        f"{amount(result.total_pages, 'page')}: {result.short_term_pages} short-term, {result.backlog_pages} in the "
        f"backlog, {result.mid_term_pages} mid-term in {amount(result.segments, 'segment')} and "
        f"{amount(result.chains, 'chain')}.",
        f"Long-term: {amount(result.traits, 'trait')}, {amount(result.user_knowledge, 'fact')} about the user, "
        f"{result.assistant_knowledge} about the assistant.",
        f"Search: {result.search_mode}; {amount(result.unembedded_pages, 'page')} not embedded yet.",
    ]
    if result.embedding_move is not None:
        lines.append(
            f"The embedding model is being changed to {result.embedding_move.space}: "
            f"{amount(result.embedding_move.pages_left, 'page')} to go; the previous model is used until then."
        )
    if result.llm is not None:
        lines.append(f"LLM: {result.llm.model}; {amount(result.llm.tokens_today, 'token')} today.")
    if result.degraded_pages:
        pages = amount(result.degraded_pages, "page")
        lines.append(f"Organised without the LLM because it failed, to be redone later: {pages}.")
    if result.damaged_pages:
        lines.append(
            f"Damaged on disk, text not shown: {amount(result.damaged_pages, 'page')}. "
            "`memoryos-mcp doctor` lists them."
        )
    if result.only_reads_because is not None:
        lines.append(f"Nothing can be stored or learned: {one_line(result.only_reads_because)}.")
    if result.retention_waits_until is not None:
        lines.append(
            f"Pages older than retention_days will be forgotten at {minute(result.retention_waits_until)}. "
            "To keep them, correct the clock or increase retention_days."
        )
    for name, loop in result.background.items():
        if loop.failed_attempts:
            error = one_line(loop.last_error or "")
            lines.append(f"{name} has failed {amount(loop.failed_attempts, 'time')} in a row: {error}")
    return "\n".join(lines)


def minute(timestamp: str) -> str:
    """Convert an ISO 8601 timestamp to a shorter form, such as "2026-05-08 13:56"."""
    return timestamp[:16].replace("T", " ")
