"""Texts for the results of ``get_memory``, ``list_memories`` and ``correct_memory``."""

from collections.abc import Iterator, Sequence

from memoryos_mcp.engine.tools.memory_results import (
    CorrectMemoryResult,
    FactBeside,
    GetMemoryResult,
    ListMemoriesResult,
    ShownChain,
    ShownFact,
    ShownMemory,
    ShownSegment,
    ShownTrait,
)
from memoryos_mcp.engine.tools.pages import ShownPage
from memoryos_mcp.engine.tools.texts import minute
from memoryos_mcp.model.pages import ORDERS, page_marks
from memoryos_mcp.retrieval.rendering import page_text
from memoryos_mcp.text.amounts import amount
from memoryos_mcp.text.quoting import delimited, head, one_line, quoted


def shown_text(result: GetMemoryResult) -> str:
    """Return the result of ``get_memory`` as text."""
    return delimited(line for memory in result.memories for line in _lines(memory))


def listed_text(result: ListMemoriesResult) -> str:
    """Return a list of memories as text, with one memory per line."""
    if not result.memories:
        return "No memory matches."
    lines = [
        f"{one_line(entry.id)} ({entry.kind}, {entry.state}, {minute(entry.timestamp)}"
        f"{f', {ORDERS}' if entry.gives_orders else ''}): {one_line(entry.beginning)}"
        for entry in result.memories
    ]
    more = f"\nThere are more memories: call again with cursor {result.next_cursor}" if result.next_cursor else ""
    return delimited(lines) + more


def corrected_text(result: CorrectMemoryResult, *, is_restored: bool) -> str:
    """Return a correction or its dry run as text, with the old and the new version."""
    if result.status == "dry_run":
        message = "Nothing has been changed yet. If the user wants this change, call again without dry_run."
    elif is_restored:
        message = "Restored. The memory is current again, and can be learned from pages again."
    else:
        message = (
            "Corrected. The previous text stays in the history, and will not be learned again. "
            "To undo the correction, call again with restore."
        )
    lines = [
        head(result.corrected, result.status.replace("_", " ")),
        f"Before: {one_line(result.before)}" if result.before is not None else "Before: nothing.",
        f"After{f', {one_line(result.holds_now)}' if result.holds_now else ''}: {one_line(result.after)}"
        if result.after is not None
        else "After: nothing.",
    ]
    return f"{message}\n{delimited(lines)}"


def _lines(memory: ShownMemory) -> Iterator[str]:
    match memory:
        case ShownPage():
            yield from _page(memory)
        case ShownFact():
            yield from _fact(memory)
        case ShownTrait():
            yield from _trait(memory)
        case ShownSegment() | ShownChain():
            yield head(memory.id, memory.kind, amount(memory.page_count, "page"))
            yield quoted(memory.summary)
            yield f"Newest pages: {_ids(memory.newest_pages)}"


def _page(page: ShownPage) -> Iterator[str]:
    marks = page_marks(page, is_excerpt=page.excerpt)
    ids = [minute(page.timestamp), page.id, page.tier, page.segment_id, page.chain_id]
    yield page_text(page.user_input, page.agent_response, [*ids, *marks], page.source)
    for name, neighbour in (("Previous", page.previous_page), ("Next", page.next_page)):
        if neighbour is not None:
            yield f"{name} page {one_line(neighbour.page_id)}: {one_line(neighbour.beginning)}"


def _fact(fact: ShownFact) -> Iterator[str]:
    yield head(fact.id, f"about the {fact.about}", fact.state, fact.ended_by)
    yield quoted(fact.text)
    yield f"Since {fact.valid_from[:10]}{f', until {fact.valid_until[:10]}' if fact.valid_until else ''}"
    if fact.evidence:
        yield f"Said in: {_ids(fact.evidence)}"
    yield from (f"Replaces {_beside(each)}" for each in fact.supersedes)
    if fact.superseded_by is not None:
        yield f"Replaced by {_beside(fact.superseded_by)}"


def _beside(fact: FactBeside) -> str:
    return f"{fact.id}{_ended(fact.ended_by)}: {one_line(fact.text)}"


def _trait(trait: ShownTrait) -> Iterator[str]:
    yield head(trait.id)
    yield f"{trait.level} - {one_line(trait.reason or '')}" if trait.level else "No longer part of the profile."
    if trait.evidence:
        yield f"Evidence: {_ids(trait.evidence)}"
    for past in trait.history:
        yield f"Until {past.held_until[:10]}{_ended(past.ended_by)}: {past.level} - {one_line(past.reason)}"


def _ended(by: str | None) -> str:
    return f", {by}" if by else ""


def _ids(ids: Sequence[str]) -> str:
    return ", ".join(map(one_line, ids))
