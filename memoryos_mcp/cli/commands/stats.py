"""The command ``memoryos-mcp stats``: a user's memory at a glance."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import anyio.to_thread
import click
from pydantic import BaseModel, ConfigDict
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from memoryos_mcp.cli.commands.only_looking import INDENT, day, heading, minute, opened_to_look, print_parts, rows
from memoryos_mcp.cli.commands.space_status import EmbeddingStatus, embedding_status
from memoryos_mcp.cli.terminal import make_console, one_line, plain
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
from memoryos_mcp.storage.paths import database_file
from memoryos_mcp.text.amounts import amount

TOPICS_SHOWN, TRAITS_SHOWN, FACTS_SHOWN = 8, 8, 10
BAR_CELLS = 16
_HEAT_STYLES = ((1.0, "bold red"), (0.6, "yellow"), (0.0, "cyan"))
_UNITS = ("B", "kB", "MB", "GB")
# Only a running server knows these; the state in the file is shown under `embedding`.
_OF_A_SERVER = {"search_mode", "embedding_space", "embedding_move", "is_settled", "background", "ranking"}


class Overview(BaseModel):
    """A memory as it lies there.

    Attributes:
        file: Where it lies.
        file_bytes: Its size on disk, with its journal.
        text_bytes: Length of all pages' texts, UTF-8, by tier.
        last_errors: Of the background work, by its kind, in whatever process it was done; the newest first.
    """

    model_config = ConfigDict(frozen=True)

    file: str
    file_bytes: int
    text_bytes: dict[str, int]
    stats: GetMemoryStatsResult
    profile: GetUserProfileResult
    embedding: EmbeddingStatus
    last_errors: dict[str, LoopStats]


async def show_stats(settings: Settings, *, is_whole: bool, as_json: bool) -> None:
    """Print the contents, hot topics and pending work of the configured user's memory; nothing in it changes.

    ``is_whole`` shows all topics, traits and facts; the JSON output always has all traits and facts.

    Raises:
        click.Abort: The memory does not exist.
        StorageError: The memory cannot be read.
    """
    console = make_console()
    overview = await _overview(settings, is_whole=is_whole)
    if as_json:
        click.echo(json.dumps(overview.model_dump(mode="json", exclude={"stats": _OF_A_SERVER})))
        return
    print_parts(console, _parts(overview, settings, console, is_whole=is_whole))


async def _overview(settings: Settings, *, is_whole: bool) -> Overview:
    user_id = settings.user_id
    async with opened_to_look(settings) as (service, engine):
        stats = await engine.stats()
        text_bytes, failures = await engine.text_bytes(), await engine.failures()
        arguments = GetUserProfileArguments(include_assistant_knowledge=True)
        profile = (await get_user_profile(service, user_id, arguments)).result
    assert isinstance(profile, GetUserProfileResult)  # noqa: S101 - for the type checker: the tool's own
    file = database_file(settings.data_storage_path, user_id)
    return Overview(
        file=str(file),
        file_bytes=await anyio.to_thread.run_sync(_size, file),
        text_bytes={tier.value: size for tier, size in text_bytes.items()},
        stats=stats_result(service, user_id, stats, topics_shown=None if is_whole else TOPICS_SHOWN),
        profile=profile,
        embedding=await embedding_status(settings, has_memory=True),
        last_errors={
            work: LoopStats(
                failed_attempts=failure.attempts,
                last_error=failure.error,
                last_error_at=text_time(failure.at.astimezone(settings.zone)),
            )
            for work, failure in failures.items()
        },
    )


def _size(file: Path) -> int:
    return sum(each.stat().st_size for each in (file, file.with_name(f"{file.name}-wal")) if each.exists())


def _parts(overview: Overview, settings: Settings, console: Console, *, is_whole: bool) -> Iterator[RenderableType]:
    stats, profile = overview.stats, overview.profile
    yield Text.assemble("Memory of ", (one_line(stats.user_id), "bold"))
    yield Text(f"{plain(overview.file)}, {_bytes(overview.file_bytes)}", style="dim")
    yield heading("Tiers")
    yield Padding(_tiers(overview, settings), INDENT)
    yield from _topics(stats, console)
    yield from _traits(profile.traits, is_whole=is_whole)
    for title, facts in (
        ("Knowledge about the user", profile.user_knowledge),
        ("Knowledge about the assistant", profile.assistant_knowledge),
    ):
        yield from _facts(title, facts, is_whole=is_whole)
    yield heading("What waits")
    yield _lines(_waiting(overview))
    yield heading("Models")
    yield _lines(_models(overview))
    if overview.last_errors:
        yield heading("Last errors", "of the background work")
        yield Padding(_errors(overview.last_errors), INDENT)


def _tiers(overview: Overview, settings: Settings) -> RenderableType:
    stats, sizes = overview.stats, overview.text_bytes
    tiers = rows("", "dim", "")
    in_short_term = f"{stats.short_term_pages:,} of {amount(stats.short_term_capacity, 'page')}, word for word"
    tiers.add_row("short-term", _bytes(sizes["short_term"]), in_short_term)
    tiers.add_row(
        "backlog", _bytes(sizes["backlog"]), f"{amount(stats.backlog_pages, 'page')} to be sorted into topics"
    )
    archived = f", {stats.archived_segments:,} archived" if stats.archived_segments else ""
    in_mid_term = (
        f"{amount(stats.mid_term_pages, 'page')} in {stats.segments:,} of {amount(stats.segment_capacity, 'topic')}, "
        f"{amount(stats.chains, 'chain')}{archived}"
    )
    tiers.add_row("mid-term", _bytes(sizes["mid_term"]), in_mid_term)
    superseded = f"; {amount(stats.superseded_knowledge, 'fact')} of before" if stats.superseded_knowledge else ""
    in_long_term = (
        f"{amount(stats.traits, 'trait')}, {stats.user_knowledge:,} of "
        f"{amount(settings.long_term_knowledge_capacity, 'fact')} about the user, "
        f"{stats.assistant_knowledge:,} about the assistant{superseded}"
    )
    tiers.add_row("long-term", "", in_long_term)
    return tiers


def _topics(stats: GetMemoryStatsResult, console: Console) -> Iterator[RenderableType]:
    if not stats.top_segments:
        return
    yield heading(
        "Topics", f"the main ones first; a bar that is full, at heat {stats.heat_threshold:g}: what is new is learned"
    )
    topics = rows("cyan", "", "", "dim", "")
    for segment in stats.top_segments:
        style = _heat_style(segment, stats.heat_threshold)
        topics.add_row(
            segment.segment_id,
            Text(_bar(segment.heat / stats.heat_threshold, console), style=style),
            Text(f"{segment.heat:.2f}", style=style),
            amount(segment.page_count, "page"),
            Text(one_line(segment.title)),
        )
    yield Padding(topics, INDENT)
    yield from _more(stats.segments - len(stats.top_segments), "topic")


def _heat_style(segment: SegmentStats, threshold: float) -> str:
    return next(style for share, style in _HEAT_STYLES if segment.heat >= share * threshold)


def _bar(share: float, console: Console) -> str:
    full = min(BAR_CELLS, int(share * BAR_CELLS))
    # A console with another encoding would show question marks.
    filled, empty = "█░" if console.encoding.lower().startswith("utf") else "#."
    return filled * full + empty * (BAR_CELLS - full)


def _traits(traits: Sequence[TraitEntry], *, is_whole: bool) -> Iterator[RenderableType]:
    if not traits:
        return
    shown = traits if is_whole else traits[:TRAITS_SHOWN]
    yield heading("Profile", "how strongly it shows, and in how many pages")
    table = rows("cyan", "bold", "dim", "")
    for trait in shown:
        evidence = amount(len(trait.evidence), "page")
        table.add_row(Text(one_line(trait.id)), trait.level, evidence, Text(one_line(trait.reason)))
    yield Padding(table, INDENT)
    yield from _more(len(traits) - len(shown), "trait")


def _facts(title: str, facts: Sequence[KnowledgeEntry], *, is_whole: bool) -> Iterator[RenderableType]:
    if not facts:
        return
    newest = sorted(facts, key=lambda fact: fact.timestamp, reverse=True)
    shown = newest if is_whole else newest[:FACTS_SHOWN]
    yield heading(title, "newest first")
    table = rows("cyan", "dim", "")
    for fact in shown:
        until = f" (until {day(fact.valid_until)})" if fact.valid_until else ""
        table.add_row(fact.knowledge_id, day(fact.timestamp), Text(one_line(fact.knowledge) + until))
    yield Padding(table, INDENT)
    yield from _more(len(facts) - len(shown), "fact")


def _waiting(overview: Overview) -> Iterator[str]:
    stats = overview.stats
    without_vectors = sum(space.pages_left for space in overview.embedding.spaces if space.is_configured)
    if stats.backlog_pages:
        since = f", the oldest since {minute(stats.oldest_backlog_at)}" if stats.oldest_backlog_at else ""
        yield f"{amount(stats.backlog_pages, 'page')} to be sorted into topics{since}"
    if stats.backlog_attempts:
        yield f"Sorting them has failed {amount(stats.backlog_attempts, 'time')}."
    if stats.degraded_pages:
        yield f"{amount(stats.degraded_pages, 'page')} to be done again by the LLM, which failed"
    if without_vectors:
        yield f"{amount(without_vectors, 'page')} to be given vectors, which a running server does"
    if stats.damaged_pages:
        yield f"{amount(stats.damaged_pages, 'page')} damaged on disk; memoryos-mcp doctor tells what to do"
    if stats.retention_waits_until is not None:
        yield (
            f"Pages older than retention_days are forgotten from {minute(stats.retention_waits_until)} on; to keep "
            "them set the clock right, or raise retention_days."
        )
    is_waiting = stats.backlog_pages or stats.degraded_pages or without_vectors or stats.retention_waits_until
    if not (is_waiting or stats.damaged_pages):
        yield "Nothing."


def _models(overview: Overview) -> Iterator[str]:
    embedding, stats = overview.embedding, overview.stats
    if not any(space.is_configured for space in embedding.spaces):
        yield "Embedding: none is configured, words answer alone"
    for space in embedding.spaces:
        place = "" if space.is_configured else ", which is not the configured one"
        done = f"{embedding.pages - space.pages_left:,} of {amount(embedding.pages, 'page')} have vectors"
        yield f"Embedding: {plain(space.model)}{place}: {done}"
    if stats.llm is None:
        yield "LLM: none, which works too; memoryos-mcp doctor tells how to use one"
        return
    limit = f" of {stats.llm.daily_token_limit:,}" if stats.llm.daily_token_limit is not None else ""
    yield f"LLM: {plain(stats.llm.model)}, {stats.llm.tokens_today:,}{limit} tokens today"
    yield from (f"LLM, {purpose}: {_usage(usage)}" for purpose, usage in stats.llm.usage_total.items())


def _errors(errors: Mapping[str, LoopStats]) -> RenderableType:
    table = rows("cyan", "dim", "")
    for work, loop in errors.items():
        state = f"failed {amount(loop.failed_attempts, 'time')} in a row: " if loop.failed_attempts else "works again: "
        style = "bold red" if loop.failed_attempts else "green"
        told = Text.assemble((state, style), one_line(loop.last_error or ""))
        table.add_row(work, minute(loop.last_error_at or ""), told)
    return table


def _usage(usage: LlmUsage) -> str:
    failed = f", {usage.failed_calls:,} failed" if usage.failed_calls else ""
    return f"{amount(usage.calls, 'call')}{failed}, {usage.prompt_tokens + usage.completion_tokens:,} tokens in all"


def _lines(lines: Iterator[str]) -> RenderableType:
    return Padding(Text("\n".join(lines)), INDENT)


def _more(count: int, what: str) -> Iterator[RenderableType]:
    if count > 0:
        yield Padding(Text(f"and {amount(count, what)} more; --all shows them", style="dim"), INDENT)


def _bytes(size: float) -> str:
    for unit in _UNITS[:-1]:
        if size < 1000:
            return f"{size:,.0f} {unit}"
        size /= 1000
    return f"{size:,.1f} {_UNITS[-1]}"
