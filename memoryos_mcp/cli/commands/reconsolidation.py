"""The command ``memoryos-mcp reconsolidate``: the LLM does the work of the fallback again.

Each page keeps its place until the LLM has found a new one, and pending pages are marked in the store. However the
command ends, finished work stays, and the next process with the LLM does the rest.
"""

import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from pydantic import BaseModel

from memoryos_mcp.cli.commands.common import (
    FAILURES_IN_A_ROW,
    Show,
    gave_up,
    has_memory_or_note,
    note_if_stopped,
    open_memory,
    open_store,
    watch,
)
from memoryos_mcp.cli.terminal import print_report
from memoryos_mcp.config import Settings
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.errors import BudgetSpentError, ConfigError, MemoryOSError
from memoryos_mcp.llm.analysis import LEARN_PAGES_MAX, Surroundings
from memoryos_mcp.llm.chat import ChatRequest
from memoryos_mcp.llm.extractive import ExtractiveAnalyst
from memoryos_mcp.llm.prompts import USER_SHOWN_MAX_CHARS, learn_request, organise_request, page_tokens
from memoryos_mcp.llm.providers import endpoint_of
from memoryos_mcp.model.pages import BYTES_PER_TOKEN, estimate_tokens
from memoryos_mcp.model.stats import Stats
from memoryos_mcp.storage.values import PageQuery

# Estimated context of a call in addition to its pages: up to five known segments and some facts; traits.
ORGANISE_CONTEXT_TOKENS = 900
LEARN_CONTEXT_TOKENS = 400
_PAGES_AT_ONCE = 1000

_LIMIT = "llm_daily_token_limit"
_KEPT = "what was done stays done, and the next server with this LLM does the rest"
_NOTHING = "Nothing to do again: no page was organised or learned from without the LLM."


class Ending(StrEnum):
    """Why the command ended."""

    DONE = "done"
    FAILED = "failed"
    BUDGET_SPENT = "budget_spent"


class Outcome(BaseModel, frozen=True):
    """What the command did.

    Attributes:
        pages: Pages to be done again.
        left: Those of them that the LLM has not sorted yet.
        calls: Calls of the LLM, failed ones included.
        error: Text of the last failure; None if all was done.
    """

    ended: Ending = Ending.DONE
    pages: int = 0
    left: int = 0
    calls: int = 0
    failed_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str | None = None


class Forecast(BaseModel, frozen=True):
    """An estimate of the work.

    Attributes:
        pages: Pages to be done again.
        batches: Batches in which they are sorted, a call each.
        calls: Those calls, and the ones that learn from what was sorted.
        prompt_tokens: Tokens of all prompts; replies add a small part.
    """

    pages: int
    batches: int
    calls: int
    prompt_tokens: int


def check_llm(settings: Settings, environment: Mapping[str, str]) -> None:
    """Raise `ConfigError` if no LLM is configured."""
    if settings.llm_replay_file is None and endpoint_of(settings, environment) is None:
        msg = (
            "no LLM is configured; set llm_provider and its key, or openai_base_url, "
            "and llm_model. `memoryos-mcp doctor` checks whether they work"
        )
        raise ConfigError(msg)


async def reconsolidate(settings: Settings, *, as_json: bool) -> None:
    """Have the LLM do all work of the fallback again for the configured user; print the outcome to stdout.

    After a failure the rest stays marked.
    """
    check_llm(settings, os.environ)
    outcome = Outcome()
    if await has_memory_or_note(settings):
        with note_if_stopped(_KEPT):
            async with open_memory(settings) as (_, engine):
                outcome = await _until_done(engine, settings)
    print_report(outcome, [_told(outcome)], as_json=as_json)
    if outcome.ended is Ending.BUDGET_SPENT:
        msg = f"{outcome.error}; {_KEPT}"
        raise BudgetSpentError(msg)
    if outcome.ended is Ending.FAILED:
        raise MemoryOSError(gave_up(str(outcome.error), _KEPT))


async def forecast(settings: Settings, *, as_json: bool) -> None:
    """Print an estimate of the work to stdout; calls no LLM and changes nothing."""
    check_llm(settings, os.environ)
    found = _estimate(await _to_do_again(settings) if await has_memory_or_note(settings) else [], settings)
    line = (
        f"{found.pages:,} pages would be done again, in {found.batches:,} batches: about {found.calls:,} calls "
        f"with {found.prompt_tokens:,} tokens of prompts. Pages that were never organised come on top. Nothing was "
        "asked or changed."
    )
    print_report(found, [line if found.pages else _NOTHING], as_json=as_json)


# The work -----------------------------------------------------------------------------------------------------------


async def _until_done(engine: MemoryEngine, settings: Settings) -> Outcome:
    """Mark the pages to do again, and watch the engine's background work until it is done or blocked."""
    before = _spent(await engine.stats())
    pages = await engine.reconsolidate()
    patience = _Patience(settings.llm_daily_token_limit)
    was_done, hindered_at = False, None

    def look(stats: Stats, show: Show) -> Outcome | None:
        nonlocal pages, was_done, hindered_at
        left = stats.counts.degraded
        pages = max(pages, left)
        spent = {name: count - before[name] for name, count in _spent(stats).items()}
        step = "sorting pages" if left else "learning from them"
        tokens = spent["prompt_tokens"] + spent["completion_tokens"]
        show(f"{step}, {spent['calls']:,} calls, {tokens:,} tokens", pages - left, pages)
        # Required twice: the statistics are not one snapshot, and a reply may not be committed yet.
        is_done = stats.is_settled and not left
        obstacle = None if is_done else patience.obstacle(stats)
        if (obstacle is not None and hindered_at == left) or (is_done and was_done):
            ended, error = obstacle or (Ending.DONE, None)
            return Outcome(ended=ended, pages=pages, left=left, error=error, **spent)
        was_done, hindered_at = is_done, None if obstacle is None else left
        return None

    return await watch(engine, look)


class _Patience:
    """Decides when further waiting is useless; a limit of None means no limit."""

    def __init__(self, daily_token_limit: int | None) -> None:
        self._limit = daily_token_limit
        self._least_left: int | None = None
        # Failures of each loop when a page was last done: the wait continues while some batches succeed.
        self._forgiven: dict[str, int] = {}

    def obstacle(self, stats: Stats) -> tuple[Ending, str] | None:
        """Return what blocks the work; None if nothing does."""
        failed = {name: health.failed_attempts for name, health in stats.health.items()}
        if self._least_left is None or stats.counts.degraded < self._least_left:
            self._least_left = stats.counts.degraded
            self._forgiven = failed
        spent = sum(entry.prompt_tokens + entry.completion_tokens for entry in (stats.llm.today if stats.llm else ()))
        # A spent budget shows as a refused redo, or as work done by the fallback. Running calls may finish.
        if self._limit is not None and spent >= self._limit and (failed["redo"] or stats.is_settled):
            return Ending.BUDGET_SPENT, f"{spent:,} tokens are spent today and {_LIMIT} is {self._limit:,}"
        for name, health in stats.health.items():
            # A loop that has succeeded since counts from 0 again.
            forgiven = min(self._forgiven.get(name, 0), failed[name])
            if failed[name] - forgiven >= FAILURES_IN_A_ROW:
                error = health.last_error or "unknown"
                # Running calls are reserved in advance, so the rest of a budget may be refused before it is spent.
                return (Ending.BUDGET_SPENT if _LIMIT in error else Ending.FAILED), error
        return None


def _spent(stats: Stats) -> dict[str, int]:
    """Return the usage of the LLM for all purposes together."""
    names = ("calls", "failed_calls", "prompt_tokens", "completion_tokens")
    entries = stats.llm.total if stats.llm else ()
    return {name: sum(getattr(entry, name) for entry in entries) for name in names}


def _told(outcome: Outcome) -> str:
    if not outcome.pages and not outcome.calls:
        return _NOTHING
    if not outcome.pages:
        return f"Nothing to do again. Pending pages were organised, with {outcome.calls:,} calls."
    return (
        f"{outcome.pages - outcome.left:,} of {outcome.pages:,} pages were done again, with {outcome.calls:,} calls "
        f"({outcome.failed_calls:,} failed), {outcome.prompt_tokens:,} tokens of prompts and "
        f"{outcome.completion_tokens:,} of replies."
    )


# The forecast -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Again:
    """A page to be done again.

    Attributes:
        tokens: Estimated length in a prompt.
        is_filed: Whether the fallback segmented it, so that it is segmented again.
        is_read: Whether the fallback learned from it, so that its segment is read again.
    """

    seq: int
    segment: int
    tokens: int
    is_filed: bool
    is_read: bool


async def _to_do_again(settings: Settings) -> list[_Again]:
    """Return the pages that the fallback worked on, in order of arrival."""
    found: list[_Again] = []
    worker = ExtractiveAnalyst().name
    query = PageQuery(done_by=worker, after_seq=0, limit=_PAGES_AT_ONCE)
    async with open_store(settings) as store:
        while done := await store.pages(replace(query, after_seq=found[-1].seq if found else 0)):
            found += [
                _Again(
                    seq=page.seq,
                    segment=page.segment or 0,
                    tokens=page_tokens(page),
                    is_filed=page.organised_by == worker,
                    is_read=page.learned_by == worker,
                )
                for page in done
            ]
    return found


def _estimate(pages: Sequence[_Again], settings: Settings) -> Forecast:
    """Return an estimate of the work to do pages again.

    Pages are segmented in batches of the configured size. Each batch is one call, which also extracts facts. The LLM's
    segments are not known yet, so the present ones are used. If the fallback has read a page of a segment, all its
    pages are judged again for the profile. A prompt contains instructions, form, pages and an allowance for context,
    up to `llm_max_prompt_tokens`. Second calls after an unusable reply are not included.
    """
    size, limit = settings.batch_pages(has_llm=True), settings.llm_max_prompt_tokens
    filed = [page.tokens for page in pages if page.is_filed]
    batches = [sum(filed[start : start + size]) for start in range(0, len(filed), size)]
    organise = organise_request([], Surroundings(before=None), max_topics=settings.max_topics, max_prompt_tokens=limit)
    sorting = [min(limit, _tokens(organise) + ORGANISE_CONTEXT_TOKENS + tokens) for tokens in batches]
    segments: dict[int, list[_Again]] = defaultdict(list)
    for page in pages:
        segments[page.segment].append(page)
    judge = learn_request([], [], None, dimensions=settings.profile_dimensions, max_prompt_tokens=limit)
    judged = [
        min(page.tokens, USER_SHOWN_MAX_CHARS // BYTES_PER_TOKEN)
        for read in segments.values()
        if any(page.is_read for page in read)
        for page in read
    ]
    portions = [sum(judged[start : start + LEARN_PAGES_MAX]) for start in range(0, len(judged), LEARN_PAGES_MAX)]
    judging = [min(limit, _tokens(judge) + LEARN_CONTEXT_TOKENS + tokens) for tokens in portions]
    return Forecast(
        pages=len(pages),
        batches=len(batches),
        calls=len(sorting) + len(judging),
        prompt_tokens=sum(sorting) + sum(judging),
    )


def _tokens(request: ChatRequest) -> int:
    """Return the estimated number of tokens of a request."""
    form = json.dumps(dict(request.form.schema), separators=(",", ":")) if request.form else ""
    return estimate_tokens(form) + sum(estimate_tokens(message.content) for message in request.messages)
