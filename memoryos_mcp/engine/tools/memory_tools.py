"""The tools ``get_memory``, ``list_memories`` and ``correct_memory``."""

from typing import TYPE_CHECKING, Literal

from memoryos_mcp.engine.service import Memories
from memoryos_mcp.engine.tools.definitions import Answer, ToolDefinition, shown_heat, text_time
from memoryos_mcp.engine.tools.memory_arguments import CorrectMemoryArguments, GetMemoryArguments, ListMemoriesArguments
from memoryos_mcp.engine.tools.memory_results import (
    CorrectMemoryResult,
    FactBeside,
    GetMemoryResult,
    ListedMemory,
    ListMemoriesResult,
    ShownChain,
    ShownFact,
    ShownMemory,
    ShownSegment,
    ShownTrait,
    TraitBefore,
)
from memoryos_mcp.engine.tools.memory_texts import corrected_text, listed_text, shown_text
from memoryos_mcp.engine.tools.pages import ChainPage, ShownPage, shown_notes, shown_turn
from memoryos_mcp.model.ids import Kind, numbered_id, trait_id

if TYPE_CHECKING:
    from memoryos_mcp.model.knowledge import Fact
    from memoryos_mcp.model.pages import Page
    from memoryos_mcp.model.views import ChainView, FactView, MemoryView, PageView, TraitView


async def get_memory(service: Memories, user_id: str, arguments: GetMemoryArguments) -> Answer:
    """Return the memories with the given ids."""
    async with service.user(user_id) as engine:
        shown = await engine.look(arguments.ids, max_tokens=arguments.max_tokens)
    result = GetMemoryResult(memories=[_shown(each) for each in shown])
    return Answer(result, shown_text(result))


async def list_memories(service: Memories, user_id: str, arguments: ListMemoriesArguments) -> Answer:
    """Return one part of a list of memories."""
    async with service.user(user_id) as engine:
        part = await engine.listed(**dict(arguments))
    result = ListMemoriesResult(
        memories=[
            ListedMemory.model_validate(
                {
                    "id": entry.id,
                    "kind": entry.kind.value,
                    "beginning": entry.beginning,
                    "timestamp": text_time(entry.at),
                    "state": entry.state.value,
                    "segment_id": _id(Kind.SEGMENT, entry.segment),
                    "gives_orders": entry.gives_orders,
                }
            )
            for entry in part.entries
        ],
        next_cursor=part.cursor,
    )
    return Answer(result, listed_text(result))


async def correct_memory(service: Memories, user_id: str, arguments: CorrectMemoryArguments) -> Answer:
    """Correct a fact or trait, and return the change."""
    async with service.user(user_id) as engine:
        corrected = await engine.correct(
            arguments.id,
            text=arguments.text,
            level=arguments.level,
            reason=arguments.reason,
            is_wrong=arguments.wrong,
            is_restored=arguments.restore,
            is_dry_run=arguments.dry_run,
        )
    done: Literal["corrected", "restored"] = "restored" if arguments.restore else "corrected"
    result = CorrectMemoryResult(
        status="dry_run" if arguments.dry_run else done,
        corrected=corrected.id,
        before=corrected.before,
        holds_now=corrected.current_id,
        after=corrected.current,
    )
    return Answer(result, corrected_text(result, is_restored=arguments.restore))


MEMORY_TOOLS = (
    ToolDefinition(
        name="get_memory",
        title="Show by id",
        description="Call when an excerpt is not enough, or to see where a memory comes from. Returns the full text, "
        "evidence and history.",
        arguments=GetMemoryArguments,
        result=GetMemoryResult,
        reads_only=True,
        call=get_memory,
    ),
    ToolDefinition(
        name="list_memories",
        title="List",
        description="Call when the user wants to see what is remembered, newest first. To look "
        "something up, use retrieve_memory.",
        arguments=ListMemoriesArguments,
        result=ListMemoriesResult,
        reads_only=True,
        call=list_memories,
    ),
    ToolDefinition(
        name="correct_memory",
        title="Correct",
        description="Call when the user says that a remembered fact or trait is wrong. Check the change in the "
        "result; restore undoes it.",
        arguments=CorrectMemoryArguments,
        result=CorrectMemoryResult,
        reads_only=False,
        call=correct_memory,
    ),
)


def _shown(view: "MemoryView") -> ShownMemory:
    if view.kind is Kind.PAGE:
        return _page(view)
    if view.kind is Kind.SEGMENT:
        segment = view.segment
        return ShownSegment(
            kind="segment",
            id=numbered_id(Kind.SEGMENT, segment.segment),
            summary=segment.summary,
            keywords=list(segment.keywords),
            state=view.state.value,
            heat=shown_heat(view.heat),
            n_visit=segment.n_visit,
            l_interaction=segment.l_interaction,
            page_count=segment.page_count,
            newest_pages=list(view.page_ids),
        )
    if view.kind is Kind.CHAIN:
        return _chain(view)
    return _fact(view) if view.kind is Kind.FACT else _trait(view)


def _page(view: "PageView") -> ShownPage:
    page = view.page
    return ShownPage(
        kind="page",
        id=page.page_id,
        **shown_turn(page, page, is_excerpt=view.is_excerpt),
        meta_data=shown_notes(page.meta_data),
        tier=page.tier.value,
        segment_id=_id(Kind.SEGMENT, page.segment),
        chain_id=_id(Kind.CHAIN, page.chain),
        chain_summary=page.chain_summary,
        previous_page=_neighbour(view.before),
        next_page=_neighbour(view.after),
    )


def _neighbour(page: "Page | None") -> ChainPage | None:
    if page is None:
        return None
    return ChainPage(page_id=page.page_id, timestamp=text_time(page.occurred_at), beginning=page.beginning)


def _chain(view: "ChainView") -> ShownChain:
    return ShownChain(
        kind="chain",
        id=numbered_id(Kind.CHAIN, view.chain),
        summary=view.summary,
        page_count=view.page_count,
        newest_pages=list(view.page_ids),
    )


def _fact(view: "FactView") -> ShownFact:
    fact = view.fact
    return ShownFact(
        **_beside(fact).model_dump(),
        kind="fact",
        about=fact.about.value,
        state=view.state.value,
        learned_by=fact.learned_by,
        evidence=list(fact.evidence),
        supersedes=[_beside(each) for each in view.superseded],
        superseded_by=None if view.superseded_by is None else _beside(view.superseded_by),
    )


def _beside(fact: "Fact") -> FactBeside:
    return FactBeside(
        id=numbered_id(Kind.FACT, fact.fact),
        text=fact.text,
        valid_from=fact.said_since or text_time(fact.valid_from),
        valid_until=fact.said_until or (text_time(fact.valid_until) if fact.valid_until else None),
        ended_by="corrected by the user" if fact.is_corrected else None,
    )


def _trait(view: "TraitView") -> ShownTrait:
    trait = view.trait
    return ShownTrait(
        kind="trait",
        id=trait_id(view.dimension),
        dimension=view.dimension,
        level=None if trait is None else trait.level.value,
        reason=None if trait is None else trait.reason,
        updated_at=None if trait is None else text_time(trait.updated_at),
        learned_by=None if trait is None else trait.learned_by,
        evidence=[] if trait is None else list(trait.evidence),
        history=[
            TraitBefore(
                level=past.level.value,
                reason=past.reason,
                held_from=text_time(past.held_from),
                held_until=text_time(past.held_until),
                ended_by="corrected by the user" if past.is_corrected else None,
            )
            for past in view.history
        ],
    )


def _id(kind: Kind, number: int | None) -> str | None:
    return None if number is None else numbered_id(kind, number)
