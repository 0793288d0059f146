"""Quality of answers: each of LoCoMo's questions gets one response of the engine, from an LLM or a recording.

Run ``python -m benchmarks.answers --data FILE`` with the settings of an LLM. Each conversation becomes one user's
memory once; answers are not added to it. With ``--state`` a run that was interrupted can be resumed.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import click
from anyio import CapacityLimiter
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.answer_judging import JUDGE_INSTRUCTIONS, STYLE, judged
from benchmarks.answer_report import LEAST_WIDTH, print_report
from benchmarks.answer_scores import ADVERSARIAL, Question, load_key, load_questions, spread
from benchmarks.answer_state import Answer, State
from benchmarks.answer_tiers import TIER_TOKENS, TierRun, load_life_questions, make_prompts, print_tiers
from benchmarks.client import ServerError
from benchmarks.datasets import Conversation, DatasetError, load
from memoryos_mcp.cli.command_line import settings_options
from memoryos_mcp.config import Settings
from memoryos_mcp.config.sources import load_settings
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.responding import INSTRUCTIONS
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.engine.wiring import configured_chat
from memoryos_mcp.errors import ConfigError, MemoryOSError, ModelError, ReplyFormatError
from memoryos_mcp.llm.chat import ChatModel
from memoryos_mcp.llm.extractive import ExtractiveAnalyst
from memoryos_mcp.llm.providers import endpoint_of
from memoryos_mcp.llm.recording import LOG_NAME, RecordingChat
from memoryos_mcp.model.pages import estimate_tokens

FAILURES_IN_A_ROW = 5
ANALYSES = 20
# For the estimate: tokens of a short reply, and of the fixed text of a call that organises or learns.
REPLY_TOKENS = 30
ORGANISING_TOKENS = 2_000
JUDGE_TOKENS = 200


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run.

    Attributes:
        learns_with_llm: Whether the LLM organises the memory too.
        judges: Whether the LLM judges the answers.
        at_once: Maximum number of concurrent questions.
        reply_tokens: Maximum tokens of an answer; None sets no limit.
        corrected: The corrected key, by question id; None without one.
    """

    learns_with_llm: bool
    judges: bool
    at_once: int
    reply_tokens: int | None
    corrected: Mapping[str, str] | None


class Run:
    """One run over questions.

    Args:
        settings: Settings of the memory and the LLM.
        chat: The LLM.
        state: The answers so far.
        options: The options of the run.
        progress: Shows the progress.
    """

    def __init__(self, settings: Settings, chat: ChatModel, state: State, options: Options, progress: Progress) -> None:
        self._settings = settings
        self._chat = chat
        self._state = state
        self._options = options
        self._progress = progress
        self._limiter = CapacityLimiter(1)
        self._failures = 0

    async def answer(self, conversations: Sequence[Conversation], questions: Sequence[Question]) -> None:
        """Answer the questions without an answer, one conversation after another.

        Raises:
            MemoryOSError: The memory could not be created, or too many questions in a row got no answer.
        """
        for conversation in conversations:
            asked = [question for question in questions if question.conversation == conversation.id]
            left = [question for question in asked if is_open(question, self._state, judges=self._options.judges)]
            if left:
                await self._answer_about(conversation, left)

    async def _answer_about(self, conversation: Conversation, questions: Sequence[Question]) -> None:
        # The clock stops just after the conversation, so that all runs have the same prompts and can be replayed.
        now = max(page.timestamp for page in conversation.pages) + timedelta(hours=1)
        analyst = None if self._options.learns_with_llm else ExtractiveAnalyst()
        async with AsyncExitStack() as stack:
            service = await stack.enter_async_context(
                MemoryService(self._settings, clock=_standing_at(now), chat=_Lent(self._chat), analyst=analyst)
            )
            engine = await stack.enter_async_context(service.user(conversation.id))
            await self._feed(engine, conversation)
            bar = self._progress.add_task(f"{conversation.id}: answering", total=len(questions))
            left = iter(questions)
            await asyncio.gather(*(self._work(engine, left, bar) for _ in range(self._options.at_once)))
            self._progress.remove_task(bar)

    async def _feed(self, engine: MemoryEngine, conversation: Conversation) -> None:
        """Create the conversation's memory, if it does not exist yet."""
        bar = self._progress.add_task(f"{conversation.id}: adding", total=len(conversation.pages))
        for page in conversation.pages:
            await engine.add(
                page.user_input, page.agent_response, timestamp=page.timestamp, idempotency_key=page.page_id
            )
            self._progress.advance(bar)
        self._progress.update(bar, description=f"{conversation.id}: organising", total=None)
        for attempt in range(ANALYSES):
            try:
                await engine.analyse()
                break
            except ReplyFormatError:  # after some failed attempts, the fallback processes the pages
                if attempt + 1 == ANALYSES:
                    raise
        self._progress.remove_task(bar)

    async def _work(self, engine: MemoryEngine, questions: Iterator[Question], bar: Any) -> None:
        for question in questions:
            known = self._state.answers.get(question.id)
            answer = known if known is not None and known.failure is None else await self._ask(engine, question)
            if answer.failure is None and _is_judged(question, judges=self._options.judges):
                answer = replace(answer, is_right=await self._judge(question, answer.text))
            self._state.add(answer)
            self._progress.advance(bar)

    async def _ask(self, engine: MemoryEngine, question: Question) -> Answer:
        began = time.perf_counter()
        try:
            response = await engine.respond(
                question.text,
                relationship="",
                style_hint=STYLE,
                max_reply_tokens=self._options.reply_tokens,
                remember=False,
            )
        except ModelError as error:
            # An unusable reply does not mean that the next question will fail.
            self._failures = 0 if isinstance(error, ReplyFormatError) else self._failures + 1
            if self._failures >= FAILURES_IN_A_ROW:
                raise
            return Answer(question.id, "", failure=str(error))
        self._failures = 0
        return Answer(
            id=question.id,
            text=response.text,
            prompt_tokens=response.usage.prompt_tokens,
            completion_tokens=response.usage.completion_tokens,
            recalled_tokens=response.recalled_tokens,
            took_s=time.perf_counter() - began,
        )

    async def _judge(self, question: Question, answer: str) -> bool | None:
        """Return whether the judge calls an answer right; None without a verdict."""
        key = (self._options.corrected or {}).get(question.id, question.answer)
        return await judged(self._chat, question.text, key, answer, self._limiter)


class _Lent:
    """A chat model that stays open when the memory that uses it is closed."""

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat
        self.name = chat.name
        self.complete = chat.complete

    async def aclose(self) -> None:
        """Do nothing."""


def _standing_at(now: datetime) -> Any:
    return lambda: now


def is_open(question: Question, state: State, *, judges: bool) -> bool:
    """Return whether a question has no answer or no verdict yet."""
    known = state.answers.get(question.id)
    if known is None or known.failure is not None:
        return True
    return known.is_right is None and _is_judged(question, judges=judges)


def _is_judged(question: Question, *, judges: bool) -> bool:
    return judges and question.category != ADVERSARIAL


def estimate(
    settings: Settings, conversations: Sequence[Conversation], questions: Sequence[Question], options: Options
) -> tuple[int, int]:
    """Return a rough upper estimate of the calls and tokens of a run.

    Args:
        settings: Settings of the memory.
        conversations: The conversations that become memories.
        questions: The remaining questions.
        options: What is done.
    """
    per_answer = settings.retrieval_max_tokens * 5 // 4 + estimate_tokens(INSTRUCTIONS + STYLE) + 2 * REPLY_TOKENS
    calls, tokens = len(questions), len(questions) * per_answer
    if options.judges:
        judged = sum(question.category != ADVERSARIAL for question in questions)
        calls, tokens = calls + judged, tokens + judged * (estimate_tokens(JUDGE_INSTRUCTIONS) + JUDGE_TOKENS)
    if options.learns_with_llm:
        pages = [page for conversation in conversations for page in conversation.pages]
        # One call for each batch, and about as many to learn from filed pages.
        organising = 2 * -(-len(pages) // settings.batch_pages(has_llm=True))
        said = 2 * sum(estimate_tokens(page.text) for page in pages)
        calls, tokens = calls + organising, tokens + said + organising * ORGANISING_TOKENS
    return calls, tokens


@dataclass(frozen=True, slots=True)
class Asking:
    """What all runs of the command need.

    Attributes:
        is_agreed: Whether the LLM may be called without confirmation.
    """

    settings: Settings
    chat: ChatModel
    state: State
    options: Options
    is_agreed: bool

    def confirm(self, what: str, calls: int, tokens: int) -> None:
        """Print what is left to do, and ask for confirmation if there is anything."""
        click.echo(f"{what} to answer by {self.chat.name}: about {calls:,} calls, {tokens:,} tokens")
        if calls and not self.is_agreed:
            click.confirm("Go on?", abort=True)


async def _run(
    settings: Settings,
    chat: ChatModel,
    state: State,
    options: Options,
    conversations: Sequence[Conversation],
    questions: Sequence[Question],
) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            await Run(settings, chat, state, options, progress).answer(conversations, questions)
    finally:
        await chat.aclose()


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--data",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="LoCoMo's JSON; with --tiers, a life.",
)
@click.option(
    "--conversations", "conversation_limit", type=click.IntRange(min=1), help="Maximum number of conversations."
)
@click.option(
    "--questions", "question_limit", type=click.IntRange(min=1), help="Maximum number of questions, evenly spread."
)
@click.option(
    "--replay",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Answer from this recording instead of asking an LLM.",
)
@click.option(
    "--key",
    "key_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='A corrected key, JSON: {"conv-26:0": "7 May 2023", ...}; scored in addition to the original one.',
)
@click.option(
    "--tiers",
    "is_by_tier",
    is_flag=True,
    help=f"Ask about a life with and without each tier, at {TIER_TOKENS} tokens unless --retrieval-max-tokens is set.",
)
@click.option("--judge", "judges", is_flag=True, help="Let the LLM judge the answers too.")
@click.option("--learn", "learns", is_flag=True, help="Let the LLM organise the memory too.")
@click.option("--at-once", type=click.IntRange(min=1), default=4, show_default=True, help="Concurrent questions.")
@click.option(
    "--reply-tokens",
    type=click.IntRange(min=1),
    help="Discard a longer answer, for a model that may never stop.",
)
@click.option(
    "--state",
    "state_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Store the answers in this file and the memories next to it, so that a run can be resumed.",
)
@click.option("--yes", "is_agreed", is_flag=True, help="Call the LLM without confirmation.")
@settings_options
def main(
    data: Path,
    conversation_limit: int | None,
    question_limit: int | None,
    replay: Path | None,
    key_file: Path | None,
    is_by_tier: bool,
    judges: bool,
    learns: bool,
    at_once: int,
    reply_tokens: int | None,
    state_file: Path | None,
    is_agreed: bool,
    config_file: Path | None,
    **flags: str | None,
) -> None:
    """Have an LLM answer questions with the memory, and score its answers."""
    if is_by_tier and (conversation_limit or key_file or learns):
        message = "--tiers cannot be combined with --conversations, --key or --learn; omit them"
        raise click.UsageError(message)
    if is_by_tier and flags.get("retrieval_max_tokens") is None:
        flags["retrieval_max_tokens"] = str(TIER_TOKENS)
    try:
        conversations = load(data).conversations[:conversation_limit]
        corrected = None if key_file is None else load_key(key_file)
        options = Options(learns, judges, at_once, reply_tokens, corrected)
        with tempfile.TemporaryDirectory(prefix="memoryos-answers-") as temporary:
            folder = Path(temporary) if state_file is None else state_file.with_name(f"{state_file.name}.memory")
            folder.mkdir(exist_ok=True)
            fixed = {"data_storage_path": str(folder.absolute()), "timezone": "UTC"}
            if replay is not None:
                fixed["llm_replay_file"] = str(replay.absolute())
            settings = load_settings(config_file, {**flags, **fixed})
            chat = _chat(settings, folder)
            settings = settings.model_copy(update={"llm_log": False})  # errors are logged by the engine too
            about = {"data": data.name, "model": chat.name, "learns": learns, "tokens": settings.retrieval_max_tokens}
            state = State(state_file, {**about, "tiers": True} if is_by_tier else about)
            asking = Asking(settings, chat, state, options, is_agreed or settings.llm_replay_file is not None)
            if is_by_tier:
                report = _ask_by_tier(asking, data, conversations[0], question_limit)
            else:
                report = _ask(asking, data, conversations, question_limit)
    except (DatasetError, MemoryOSError, ServerError) as error:
        raise click.ClickException(str(error)) from error
    output = Console()
    report(output if output.width >= LEAST_WIDTH else Console(width=LEAST_WIDTH))


def _ask(
    asking: Asking, data: Path, conversations: Sequence[Conversation], question_limit: int | None
) -> Callable[[Console], None]:
    """Have LoCoMo's questions answered, and return a function that prints the report."""
    known = {conversation.id for conversation in conversations}
    questions = spread([each for each in load_questions(data) if each.conversation in known], question_limit)
    state, options = asking.state, asking.options
    left = [question for question in questions if is_open(question, state, judges=options.judges)]
    calls, tokens = estimate(asking.settings, conversations, left, options)
    asking.confirm(f"{len(left)} questions", calls, tokens)
    anyio.run(_run, asking.settings, asking.chat, state, options, conversations, questions)
    return partial(print_report, questions=questions, answers=state.answers, corrected=options.corrected)


def _ask_by_tier(
    asking: Asking, data: Path, conversation: Conversation, question_limit: int | None
) -> Callable[[Console], None]:
    """Have questions about a life answered with and without each tier, and return a function that prints the report."""
    questions = spread(load_life_questions(data), question_limit)
    options = asking.options
    with tempfile.TemporaryDirectory(prefix="memoryos-tiers-") as folder:
        prompts = anyio.run(
            make_prompts, Path(folder), asking.settings, data, conversation, questions, options.reply_tokens
        )
    goes_on = asking.settings.llm_replay_file is not None
    run = TierRun(asking.chat, asking.state, judges=options.judges, at_once=options.at_once, goes_on=goes_on)
    left = run.open_prompts(prompts)
    tokens = sum(prompt.tokens + REPLY_TOKENS for prompt in left)
    calls = len(left)
    if options.judges:
        calls, tokens = 2 * calls, tokens + calls * (estimate_tokens(JUDGE_INSTRUCTIONS) + JUDGE_TOKENS)
    asking.confirm(f"{len(left)} prompts", calls, tokens)
    anyio.run(run.answer, prompts)
    return partial(print_tiers, prompts=prompts, answers=asking.state.answers)


def _chat(settings: Settings, folder: Path) -> ChatModel:
    """Return the LLM of the settings.

    Raises:
        ConfigError: The settings name no LLM.
    """
    chat = configured_chat(settings, endpoint_of(settings, os.environ))
    if chat is None:
        message = "no LLM is configured; set llm_provider with its key, or openai_base_url and llm_model, or --replay"
        raise ConfigError(message)
    # One file for all users, so that it can be replayed.
    return RecordingChat(chat, folder / LOG_NAME) if settings.llm_log else chat


if __name__ == "__main__":
    main()
