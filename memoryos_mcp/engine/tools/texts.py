"""Text of results and receipts for readers. Memories in it are delimited and marked as information."""

from collections.abc import Mapping, Sequence

from memoryos_mcp.engine.tools.pages import AddMemoryResult
from memoryos_mcp.engine.tools.results import GetMemoryStatsResult
from memoryos_mcp.model.knowledge import About, Fact, Kind, is_head
from memoryos_mcp.model.profile import Trait
from memoryos_mcp.retrieval.rendering import KNOWN, TRAITS, WISHES, fact_line, section, trait_line
from memoryos_mcp.text.amounts import amount
from memoryos_mcp.text.quoting import delimited, one_line


def receipt_text(result: AddMemoryResult) -> str:
    """Return a receipt as text, with the kinds of removed secrets."""
    left_out = f" Left out: {', '.join(result.redacted)}." if result.redacted else ""
    return f"{result.message} page_id {result.page_id}{left_out}"


def profile_text(traits: Sequence[Trait], known: Mapping[About, Sequence[Fact]], older: Mapping[About, int]) -> str:
    """Return the profile and the known facts as text; ``older`` is the number of facts left out about each side."""
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
    """Return the state as a few lines of text."""
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
        lines.append(f"Organised without the LLM, to be redone when it answers: {pages}.")
    if result.damaged_pages:
        lines.append(
            f"Damaged on disk, text withheld: {amount(result.damaged_pages, 'page')}. `memoryos-mcp doctor` names them."
        )
    if result.only_reads_because is not None:
        lines.append(f"Nothing is stored or learned: {one_line(result.only_reads_because)}.")
    if result.retention_waits_until is not None:
        lines.append(
            f"Pages older than retention_days are forgotten from {minute(result.retention_waits_until)} on; to keep "
            "them, set the clock right or raise retention_days."
        )
    for name, loop in result.background.items():
        if loop.failed_attempts:
            error = one_line(loop.last_error or "")
            lines.append(f"{name} has failed {amount(loop.failed_attempts, 'time')} in a row: {error}")
    return "\n".join(lines)


def minute(timestamp: str) -> str:
    """Return a time as in texts: to the minute."""
    return timestamp[:16].replace("T", " ")
