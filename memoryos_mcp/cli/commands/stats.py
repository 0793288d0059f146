"""The command ``memoryos-mcp stats``: an overview of a user's memory."""

from collections.abc import Iterator, Sequence
from itertools import starmap

from pydantic import BaseModel
from rich.console import RenderableType
from rich.text import Text

from memoryos_mcp.cli.commands.common import footprint, open_memory, tool_result
from memoryos_mcp.cli.commands.space_status import EmbeddingStatus, embedding_status
from memoryos_mcp.cli.terminal import day, make_console, minute, one_line, plain, print_report, section, table
from memoryos_mcp.config import Settings
from memoryos_mcp.engine.tools.arguments import GetUserProfileArguments
from memoryos_mcp.engine.tools.core_tools import get_user_profile, stats_result
from memoryos_mcp.engine.tools.definitions import text_time
from memoryos_mcp.engine.tools.results import (
    GetMemoryStatsResult,
    GetUserProfileResult,
    KnowledgeEntry,
    LlmUsage,
    LoopStats,
    SegmentStats,
    TraitEntry,
)
from memoryos_mcp.storage.capabilities import Footprint
from memoryos_mcp.text.amounts import amount

TOPICS_SHOWN, TRAITS_SHOWN, FACTS_SHOWN = 8, 8, 10
BAR_CELLS = 16
_HEAT_STYLES = ((1.0, "bold red"), (0.6, "yellow"), (0.0, "cyan"))
_UNITS = ("B", "kB", "MB", "GB")
# Only a running server knows these values. `embedding` contains the state in the file.
_OF_A_SERVER = {"search_mode", "embedding_space", "embedding_move", "is_settled", "background", "ranking"}

Row = Sequence[RenderableType]


class Overview(BaseModel, frozen=True):
    """An overview of a memory.

    ``last_errors`` contains the last error of each kind of background work, from any process that uses the memory.
    """

    file: str
    file_bytes: int
    text_bytes: dict[str, int]
    stats: GetMemoryStatsResult
    profile: GetUserProfileResult
    embedding: EmbeddingStatus
    last_errors: dict[str, LoopStats]


async def show_stats(settings: Settings, *, is_whole: bool, as_json: bool) -> None:
    """Print an overview of the configured user's memory. The memory is not changed.

    With ``is_whole``, the overview contains all topics, traits and facts, otherwise only some of each. The JSON output
    always contains all traits and facts.
    """
    overview = await _overview(settings, is_whole=is_whole)
    result = overview.model_dump(mode="json", exclude={"stats": _OF_A_SERVER})
    print_report(result, _parts(overview, settings, is_whole=is_whole), as_json=as_json)


async def _overview(settings: Settings, *, is_whole: bool) -> Overview:
    user_id = settings.user_id
    async with open_memory(settings, only_reads=True) as (service, engine):
        stats = await engine.stats()
        text_bytes, failures = await engine.text_bytes(), await engine.failures()
        arguments = GetUserProfileArguments(include_assistant_knowledge=True)
        profile = await tool_result(GetUserProfileResult, get_user_profile, service, arguments)
    stored = await footprint(settings) or Footprint("", 0)
    return Overview(
        file=stored.place,
        file_bytes=stored.size_bytes,
        text_bytes={tier.value: size for tier, size in text_bytes.items()},
        stats=stats_result(service, user_id, stats, topics_shown=None if is_whole else TOPICS_SHOWN),
        profile=profile,
        embedding=await embedding_status(settings),
        last_errors={
            work: LoopStats(
                failed_attempts=failure.attempts,
                last_error=failure.error,
                last_error_at=text_time(failure.at.astimezone(settings.zone)),
            )
            for work, failure in failures.items()
        },
    )


def _parts(overview: Overview, settings: Settings, *, is_whole: bool) -> Iterator[RenderableType]:
    stats, profile = overview.stats, overview.profile
    yield Text.assemble("Memory of ", (one_line(stats.user_id), "bold"))
    yield Text(f"{plain(overview.file)}, {_bytes(overview.file_bytes)}", style="dim")
    yield from section("Tiers", "", _tiers(overview, settings), "", "dim", "")
    yield from _topics(stats)
    traits = profile.traits if is_whole else profile.traits[:TRAITS_SHOWN]
    yield from section(
        "Profile",
        "level of each trait, and the number of pages that show it",
        map(_trait, traits),
        "cyan",
        "bold",
        "dim",
        "",
    )
    yield from _more(len(profile.traits) - len(traits), "trait")
    for title, facts in (
        ("Knowledge about the user", profile.user_knowledge),
        ("Knowledge about the assistant", profile.assistant_knowledge),
    ):
        newest = sorted(facts, key=lambda fact: fact.timestamp, reverse=True)[: None if is_whole else FACTS_SHOWN]
        yield from section(title, "newest first", map(_fact, newest), "cyan", "dim", "")
        yield from _more(len(facts) - len(newest), "fact")
    for title, lines in (("Pending", _pending(overview)), ("Models", _models(overview))):
        yield from section(title, "", ((Text(line),) for line in lines), "")
    yield from section(
        "Last errors", "of the background work", starmap(_error, overview.last_errors.items()), "cyan", "dim", ""
    )


def _tiers(overview: Overview, settings: Settings) -> Iterator[Row]:
    stats, sizes = overview.stats, overview.text_bytes
    in_short_term = f"{stats.short_term_pages:,} of {amount(stats.short_term_capacity, 'page')}, word for word"
    yield "short-term", _bytes(sizes["short_term"]), in_short_term
    yield "backlog", _bytes(sizes["backlog"]), f"{amount(stats.backlog_pages, 'page')} to be organised into topics"
    archived = f", {stats.archived_segments:,} archived" if stats.archived_segments else ""
    in_mid_term = (
        f"{amount(stats.mid_term_pages, 'page')} in {stats.segments:,} of {amount(stats.segment_capacity, 'topic')}, "
        f"{amount(stats.chains, 'chain')}{archived}"
    )
    yield "mid-term", _bytes(sizes["mid_term"]), in_mid_term
    superseded = f"; {amount(stats.superseded_knowledge, 'earlier fact')}" if stats.superseded_knowledge else ""
    in_long_term = (
        f"{amount(stats.traits, 'trait')}, {stats.user_knowledge:,} of "
        f"{amount(settings.long_term_knowledge_capacity, 'fact')} about the user, "
        f"{stats.assistant_knowledge:,} about the assistant{superseded}"
    )
    yield "long-term", "", in_long_term


def _topics(stats: GetMemoryStatsResult) -> Iterator[RenderableType]:
    # A console with an encoding other than UTF would show question marks instead of blocks.
    cells = "█░" if make_console().encoding.lower().startswith("utf") else "#."
    remark = f"main topics first; when the bar is full (heat {stats.heat_threshold:g}), new pages update the profile"
    rows = (_topic(segment, stats.heat_threshold, cells) for segment in stats.top_segments)
    yield from section("Topics", remark, rows, "cyan", "", "", "dim", "")
    yield from _more(stats.segments - len(stats.top_segments), "topic")


def _topic(segment: SegmentStats, threshold: float, cells: str) -> Row:
    share = segment.heat / threshold
    style = next(style for least, style in _HEAT_STYLES if segment.heat >= least * threshold)
    full = min(BAR_CELLS, int(share * BAR_CELLS))
    return (
        segment.segment_id,
        Text(cells[0] * full + cells[1] * (BAR_CELLS - full), style=style),
        Text(f"{segment.heat:.2f}", style=style),
        amount(segment.page_count, "page"),
        Text(one_line(segment.title)),
    )


def _trait(trait: TraitEntry) -> Row:
    return Text(one_line(trait.id)), trait.level, amount(len(trait.evidence), "page"), Text(one_line(trait.reason))


def _fact(fact: KnowledgeEntry) -> Row:
    until = f" (until {day(fact.valid_until)})" if fact.valid_until else ""
    return fact.knowledge_id, day(fact.timestamp), Text(one_line(fact.knowledge) + until)


def _pending(overview: Overview) -> Iterator[str]:
    stats = overview.stats
    without_vectors = sum(space.pages_left for space in overview.embedding.spaces if space.is_configured)
    if stats.backlog_pages:
        since = f", the oldest since {minute(stats.oldest_backlog_at)}" if stats.oldest_backlog_at else ""
        yield f"{amount(stats.backlog_pages, 'page')} to be organised into topics{since}"
    if stats.backlog_attempts:
        yield f"Organising these pages has failed {amount(stats.backlog_attempts, 'time')}."
    if stats.degraded_pages:
        yield f"{amount(stats.degraded_pages, 'page')} that the LLM has to redo, because it was not available"
    if without_vectors:
        yield f"{amount(without_vectors, 'page')} without vectors; a running server embeds them"
    if stats.damaged_pages:
        yield f"{amount(stats.damaged_pages, 'page')} damaged on disk; memoryos-mcp doctor shows what to do"
    if stats.retention_waits_until is not None:
        yield (
            f"Pages older than retention_days will be forgotten after {minute(stats.retention_waits_until)}; to keep "
            "these pages, correct the clock or raise retention_days."
        )
    is_waiting = stats.backlog_pages or stats.degraded_pages or without_vectors or stats.retention_waits_until
    if not (is_waiting or stats.damaged_pages):
        yield "Nothing."


def _models(overview: Overview) -> Iterator[str]:
    embedding, stats = overview.embedding, overview.stats
    if not any(space.is_configured for space in embedding.spaces):
        yield "Embedding: no model is configured; search uses only keywords"
    for space in embedding.spaces:
        place = "" if space.is_configured else " (not the configured model)"
        done = f"{embedding.pages - space.pages_left:,} of {amount(embedding.pages, 'page')} have vectors"
        yield f"Embedding: {plain(space.model)}{place}: {done}"
    if stats.llm is None:
        yield "LLM: not configured (it is optional); memoryos-mcp doctor shows how to use one"
        return
    limit = f" of {stats.llm.daily_token_limit:,}" if stats.llm.daily_token_limit is not None else ""
    yield f"LLM: {plain(stats.llm.model)}, {stats.llm.tokens_today:,}{limit} tokens today"
    yield from (f"LLM, {purpose}: {_usage(usage)}" for purpose, usage in stats.llm.usage_total.items())


def _error(work: str, loop: LoopStats) -> Row:
    state = f"failed {amount(loop.failed_attempts, 'time')} in a row: " if loop.failed_attempts else "works again: "
    style = "bold red" if loop.failed_attempts else "green"
    return work, minute(loop.last_error_at or ""), Text.assemble((state, style), one_line(loop.last_error or ""))


def _usage(usage: LlmUsage) -> str:
    failed = f", {usage.failed_calls:,} failed" if usage.failed_calls else ""
    return f"{amount(usage.calls, 'call')}{failed}, {usage.prompt_tokens + usage.completion_tokens:,} tokens in total"


def _more(count: int, what: str) -> Iterator[RenderableType]:
    if count > 0:
        yield table([(Text(f"and {amount(count, what)} more; --all shows them", style="dim"),)], "")


def _bytes(size: float) -> str:
    for unit in _UNITS[:-1]:
        if size < 1000:
            return f"{size:,.0f} {unit}"
        size /= 1000
    return f"{size:,.1f} {_UNITS[-1]}"
