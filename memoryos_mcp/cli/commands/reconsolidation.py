"""The command ``memoryos-mcp reconsolidate``: let the LLM redo the work that was done without it.

While no LLM is available, a fallback without an LLM organises pages and learns from them. The command marks these
pages in the store, so that the LLM processes them again. Each page stays in its segment until the LLM has chosen a new
segment. If the command stops early, finished work is kept, and the next process with an LLM continues.
"""

import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from pydantic import BaseModel

from memoryos_mcp.cli.commands import common
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

# Estimated tokens in a prompt in addition to its pages: for up to five segments and some facts, and for traits.
ORGANISE_CONTEXT_TOKENS = 900
LEARN_CONTEXT_TOKENS = 400
_PAGES_AT_ONCE = 1000

_LIMIT = "llm_daily_token_limit"
_HINT = "finished work is kept, and the next server with this LLM continues"
_NOTHING = "There is nothing to redo: an LLM has processed all organised pages."


class Ending(StrEnum):
    """The reason why the command ``reconsolidate`` ended."""

    DONE = "done"
    FAILED = "failed"
    BUDGET_SPENT = "budget_spent"


class Outcome(BaseModel, frozen=True):
    """The result of the command ``reconsolidate``.

    ``pages`` is the number of pages that the LLM had to process again. ``left`` is the number of these pages
    that the LLM has not processed yet. ``calls`` includes failed calls.
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
    """An estimate of the LLM calls and tokens needed to redo the work that was done without the LLM.

    ``calls`` is the number of LLM calls: one for each batch of pages to organise, and further calls for learning
    from pages.
    """

    pages: int
    batches: int
    calls: int
    prompt_tokens: int


def check_llm(settings: Settings, environment: Mapping[str, str]) -> None:
    """Raise `ConfigError` if no LLM is configured."""
    if settings.llm_replay_file is None and endpoint_of(settings, environment) is None:
        msg = (
            "no LLM is configured; set llm_provider or openai_base_url, then set llm_model, and the API key if one is "
            "needed. "
            "To check the settings, run memoryos-mcp doctor"
        )
        raise ConfigError(msg)


async def reconsolidate(settings: Settings, *, as_json: bool) -> None:
    """For the configured user, let the LLM redo the work that was done without it. Print the outcome to stdout."""
    check_llm(settings, os.environ)
    outcome = Outcome()
    if await common.has_memory_or_note(settings):
        with common.note_if_stopped(_HINT):
            async with common.open_memory(settings) as (_, engine):
                outcome = await _until_done(engine, settings)
    print_report(outcome, [_summary(outcome)], as_json=as_json)
    if outcome.ended is Ending.BUDGET_SPENT:
        msg = f"{outcome.error}; {_HINT}"
        raise BudgetSpentError(msg)
    if outcome.ended is Ending.FAILED:
        raise MemoryOSError(common.gave_up(str(outcome.error), _HINT))


async def forecast(settings: Settings, *, as_json: bool) -> None:
    """Print to stdout how many LLM calls and tokens `reconsolidate` would need. No LLM is called."""
    check_llm(settings, os.environ)
    estimate = _estimate(await _pages_to_redo(settings) if await common.has_memory_or_note(settings) else [], settings)
    line = (
        f"{estimate.pages:,} pages would be redone in {estimate.batches:,} batches with about {estimate.calls:,} calls "
        f"and {estimate.prompt_tokens:,} prompt tokens. Pages that were never organised are not included. No LLM "
        "was called, and nothing was changed."
    )
    print_report(estimate, [line if estimate.pages else _NOTHING], as_json=as_json)


# The work -----------------------------------------------------------------------------------------------------------


async def _until_done(engine: MemoryEngine, settings: Settings) -> Outcome:
    """Mark the pages that the LLM must process again, wait for the background work, and return the outcome.

    The wait ends when the LLM has processed all pages, or when the work cannot continue.
    """
    before = _spent(await engine.stats())
    pages = await engine.reconsolidate()
    blockage = _Blockage(settings.llm_daily_token_limit)
    was_done, blocked_at = False, None

    def look(stats: Stats, show: common.Show) -> Outcome | None:
        nonlocal pages, was_done, blocked_at
        left = stats.counts.degraded
        pages = max(pages, left)
        spent = {name: count - before[name] for name, count in _spent(stats).items()}
        step = "organising pages" if left else "learning from pages"
        tokens = spent["prompt_tokens"] + spent["completion_tokens"]
        show(f"{step}, {spent['calls']:,} calls, {tokens:,} tokens", pages - left, pages)
        # A state counts only if it is seen twice in a row, because the statistics are not one snapshot,
        # and a reply may not be committed yet.
        is_done = stats.is_settled and not left
        reason = None if is_done else blockage.reason(stats)
        if (reason is not None and blocked_at == left) or (is_done and was_done):
            ended, error = reason or (Ending.DONE, None)
            return Outcome(ended=ended, pages=pages, left=left, error=error, **spent)
        was_done, blocked_at = is_done, None if reason is None else left
        return None

    return await common.watch(engine, look)


class _Blockage:
    """Detects that the work cannot continue: the daily token limit is reached, or a background loop keeps failing.

    If ``daily_token_limit`` is None, tokens are not limited.
    """

    def __init__(self, daily_token_limit: int | None) -> None:
        self._limit = daily_token_limit
        self._failures = common.Failures()

    def reason(self, stats: Stats) -> tuple[Ending, str] | None:
        """Return why the work cannot continue (an `Ending` and an error message), or None if it can continue."""
        error = self._failures.last(stats, stats.counts.degraded)
        spent = sum(entry.prompt_tokens + entry.completion_tokens for entry in (stats.llm.today if stats.llm else ()))
        # When the budget is spent, a redo is refused or the fallback does the work. Running calls may finish first.
        if (
            self._limit is not None
            and spent >= self._limit
            and (stats.health["redo"].failed_attempts or stats.is_settled)
        ):
            return Ending.BUDGET_SPENT, f"{spent:,} tokens were spent today and {_LIMIT} is {self._limit:,}"
        if error is not None:
            # Running calls reserve tokens, so a call may be refused before the budget is spent.
            return (Ending.BUDGET_SPENT if _LIMIT in error else Ending.FAILED), error
        return None


def _spent(stats: Stats) -> dict[str, int]:
    """Return four totals by name: LLM calls, failed calls, prompt tokens and reply tokens."""
    names = ("calls", "failed_calls", "prompt_tokens", "completion_tokens")
    entries = stats.llm.total if stats.llm else ()
    return {name: sum(getattr(entry, name) for entry in entries) for name in names}


def _summary(outcome: Outcome) -> str:
    if not outcome.pages and not outcome.calls:
        return _NOTHING
    if not outcome.pages:
        return f"There is nothing to redo. Pending pages were organised with {outcome.calls:,} calls."
    return (
        f"{outcome.pages - outcome.left:,} of {outcome.pages:,} pages were redone with {outcome.calls:,} calls "
        f"({outcome.failed_calls:,} failed), {outcome.prompt_tokens:,} prompt tokens and "
        f"{outcome.completion_tokens:,} reply tokens."
    )


# The forecast -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _RedoPage:
    """A page that the LLM must process again.

    ``is_organised`` is True if the fallback (which needs no LLM) organised the page. ``is_learned`` is True if the
    fallback learned from the page. ``tokens`` is the length of the page in a prompt.
    """

    seq: int
    segment: int
    tokens: int
    is_organised: bool
    is_learned: bool


async def _pages_to_redo(settings: Settings) -> list[_RedoPage]:
    """Return the pages that were organised, or used for learning, without the LLM. The oldest page is the first."""
    found: list[_RedoPage] = []
    worker = ExtractiveAnalyst().name
    query = PageQuery(done_by=worker, after_seq=0, limit=_PAGES_AT_ONCE)
    async with common.open_store(settings) as store:
        while done := await store.pages(replace(query, after_seq=found[-1].seq if found else 0)):
            found += [
                _RedoPage(
                    seq=page.seq,
                    segment=page.segment or 0,
                    tokens=page_tokens(page),
                    is_organised=page.organised_by == worker,
                    is_learned=page.learned_by == worker,
                )
                for page in done
            ]
    return found


def _estimate(pages: Sequence[_RedoPage], settings: Settings) -> Forecast:
    """Return an estimate of the LLM calls and tokens that are needed to process ``pages`` again.

    The LLM organises pages in batches of the configured size. Each batch needs one call, which also extracts facts. For
    learning, the pages are grouped by segment. If the LLM must learn from any page of a group, all pages of this
    group are counted, because the LLM learns from the whole group. The segments that the LLM will choose are not known
    yet, so the current segments are used.

    A prompt contains instructions, the JSON schema of the reply, pages and context. Its size is at most
    `llm_max_prompt_tokens` tokens. Repeated calls after invalid replies are not counted.
    """
    size, limit = settings.batch_pages(has_llm=True), settings.llm_max_prompt_tokens
    organised = [page.tokens for page in pages if page.is_organised]
    batches = [sum(organised[start : start + size]) for start in range(0, len(organised), size)]
    organise = organise_request([], Surroundings(), max_topics=settings.max_topics, max_prompt_tokens=limit)
    organising = [min(limit, _tokens(organise) + ORGANISE_CONTEXT_TOKENS + tokens) for tokens in batches]
    segments: dict[int, list[_RedoPage]] = defaultdict(list)
    for page in pages:
        segments[page.segment].append(page)
    known = Surroundings(is_read=True)
    learn = learn_request([], known, dimensions=settings.profile_dimensions, max_prompt_tokens=limit)
    learned = [
        min(page.tokens, USER_SHOWN_MAX_CHARS // BYTES_PER_TOKEN)
        for segment in segments.values()
        if any(page.is_learned for page in segment)
        for page in segment
    ]
    portions = [sum(learned[start : start + LEARN_PAGES_MAX]) for start in range(0, len(learned), LEARN_PAGES_MAX)]
    learning = [min(limit, _tokens(learn) + LEARN_CONTEXT_TOKENS + tokens) for tokens in portions]
    return Forecast(
        pages=len(pages),
        batches=len(batches),
        calls=len(organising) + len(learning),
        prompt_tokens=sum(organising) + sum(learning),
    )


def _tokens(request: ChatRequest) -> int:
    """Return the estimated number of tokens in a request."""
    form = json.dumps(dict(request.form.schema), separators=(",", ":")) if request.form else ""
    return estimate_tokens(form) + sum(estimate_tokens(message.content) for message in request.messages)
