"""The value of each tier: questions about a life, answered with all memories, without each tier, and with none.

Run ``python -m benchmarks.answers --data benchmarks/life/year.toml --tiers``. Each question is recalled once. A tier is
removed from this recall before the prompt is made, and nothing takes its place. So a change of the score is the value
of the memories of this tier, not of the room that they take.
"""

import asyncio
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from anyio import CapacityLimiter
from rich.console import Console
from rich.table import Table

from benchmarks.answer_judging import STYLE, judged
from benchmarks.answer_scores import Question, is_exact, token_f1
from benchmarks.answer_state import Answer, State
from benchmarks.datasets import LIFE_QUESTIONS, Conversation, DatasetError
from benchmarks.learned import learn, settled
from benchmarks.metrics import mean, paired_bootstrap
from memoryos_mcp.config import Settings
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.responding import Manner, listen, response_request
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.errors import ModelError, ReplyFormatError
from memoryos_mcp.llm.chat import ChatModel, ChatRequest
from memoryos_mcp.llm.extractive import ExtractiveAnalyst
from memoryos_mcp.llm.log_lines import request_key
from memoryos_mcp.model.pages import estimate_tokens

# The recorded replies of an LLM that learns, next to the pages of the life.
LEARNING_REPLIES = "replies.jsonl"
TIER_TOKENS = 600
# Of the questions on the year, the first of each two is asked. They are in about the order of the year.
YEAR_STEP = 2
YEAR, FOLLOW_UP = "the year", "follow-up"
# Kinds of questions: their table in the file of questions, and the step between the questions that are asked.
KINDS = {YEAR: ("question", YEAR_STEP), FOLLOW_UP: ("follow_up", 1)}
# LoCoMo's number for questions with one place of evidence.
SINGLE_HOP = 4
FAILURES_IN_A_ROW = 5

Score = Callable[["Prompt", Answer], float]

_MID_TERM: Mapping[str, Any] = {"pages": (), "segments": ()}
_LONG_TERM: Mapping[str, Any] = {"user_facts": (), "assistant_facts": (), "traits": (), "wishes": ()}
_SHORT_TERM: Mapping[str, Any] = {"short_term": ()}
WHOLE = "whole recall"
# The fields of `Recall` that each variant replaces.
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    WHOLE: {},
    "without mid-term": _MID_TERM,
    "without long-term": _LONG_TERM,
    "without short-term": _SHORT_TERM,
    "no memory": {**_MID_TERM, **_LONG_TERM, **_SHORT_TERM},
}

_RULES = """\
F1: of the sets of words; exact: the same words, without articles; judged: right, as the LLM says. Percent, mean over \
questions. change: to the whole recall, in points, with the 95 % interval of a \
paired bootstrap over questions. tokens: of a prompt, at four bytes per token. mid-term: the pages that were found. \
long-term: facts, traits and wishes. short-term: the newest pages. The other tiers stay as they are in the whole \
recall."""


@dataclass(frozen=True, slots=True)
class LifeQuestion:
    """A question about a life.

    Attributes:
        kind: Key of `KINDS`.
    """

    kind: str
    asked: Question


@dataclass(frozen=True, slots=True)
class Prompt:
    """A question to the LLM with the memories of a variant.

    Attributes:
        variant: Key of `VARIANTS`.
        key: Identifies the request; the same for equal requests.
    """

    question: LifeQuestion
    variant: str
    request: ChatRequest
    key: str

    @property
    def tokens(self) -> int:
        """Approximate number of tokens of the messages."""
        return sum(estimate_tokens(message.content) for message in self.request.messages)


def load_life_questions(file: Path) -> list[LifeQuestion]:
    """Return the questions that are asked about a life: a part of those on the year, and all follow-ups.

    Args:
        file: The pages of the life; the questions are next to it.

    Raises:
        DatasetError: There are no valid questions next to the file.
    """
    questions = file.parent / LIFE_QUESTIONS
    try:
        tables = tomllib.loads(questions.read_text(encoding="utf-8"))
        return [
            LifeQuestion(
                kind, Question(f"{name}:{place}", file.parent.name, one["text"], SINGLE_HOP, one["answer"], "")
            )
            for kind, (name, step) in KINDS.items()
            for place, one in enumerate(tables.get(name, ()))
            if place % step == 0
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{questions} does not contain the questions of a life ({type(error).__name__}: {error})"
        raise DatasetError(message) from error


async def make_prompts(
    folder: Path,
    settings: Settings,
    data: Path,
    conversation: Conversation,
    questions: Sequence[LifeQuestion],
    reply_tokens: int | None = None,
) -> list[Prompt]:
    """Return the prompts of each question, one for each variant.

    An LLM's recorded replies next to the life organise the memory; without such a file, no LLM is used. The clock stops
    after the last page, so that the prompts are the same in each run. They may differ on a processor that rounds the
    embedding model's products in another way.

    Args:
        folder: An empty folder for the memory.
        settings: Settings of the memory.
        data: The file of the life.
        conversation: Its pages.
        questions: The questions.
        reply_tokens: Maximum tokens of an answer; None sets no limit.

    Raises:
        ServerError: The recorded replies are not complete.
        MemoryOSError: The memory could not be created.
    """
    now = max(page.timestamp for page in conversation.pages) + timedelta(hours=1)
    replies = data.parent / LEARNING_REPLIES
    if is_learned := replies.exists():
        await learn(folder, conversation, replies)
    settings = settings.model_copy(update={"data_storage_path": folder, "llm_replay_file": None, "llm_log": False})
    async with (
        MemoryService(settings, clock=lambda: now, analyst=ExtractiveAnalyst()) as service,
        service.user(conversation.id) as engine,
    ):
        if not is_learned:
            await _feed(engine, conversation)
        await settled(engine)
        manner = Manner(style_hint=STYLE, reply_tokens=reply_tokens)
        prompts = []
        for question in questions:
            text = question.asked.text
            # The newest pages are in the prompt as a conversation, as in a response of the engine.
            recall = await engine.retrieve(
                text, max_tokens=settings.retrieval_max_tokens, has_all_recent=True, is_visit=False
            )
            for variant, removed in VARIANTS.items():
                request = response_request(text, replace(recall, **removed), manner, now=now, zone=settings.zone)
                prompts.append(Prompt(question, variant, request, request_key(request)))
    return prompts


async def _feed(engine: MemoryEngine, conversation: Conversation) -> None:
    for page in conversation.pages:
        await engine.add(page.user_input, page.agent_response, timestamp=page.timestamp, idempotency_key=page.page_id)
    await engine.analyse()


class TierRun:
    """Has an LLM answer prompts. Equal prompts are sent once.

    Args:
        chat: The LLM.
        state: The answers so far, by key of the prompt.
        judges: Whether the LLM judges the answers.
        at_once: Maximum number of concurrent calls.
        goes_on: Whether the run continues after failures, so that a replay collects all missing requests.
    """

    def __init__(self, chat: ChatModel, state: State, *, judges: bool, at_once: int, goes_on: bool) -> None:
        self._chat = chat
        self._state = state
        self._judges = judges
        self._at_once = at_once
        self._goes_on = goes_on
        self._limiter = CapacityLimiter(1)
        self._failures = 0

    def open_prompts(self, prompts: Sequence[Prompt]) -> list[Prompt]:
        """Return the different prompts that have no answer or no verdict yet."""
        return [prompt for prompt in {prompt.key: prompt for prompt in prompts}.values() if self._is_open(prompt)]

    async def answer(self, prompts: Sequence[Prompt]) -> None:
        """Answer all prompts that are open.

        Raises:
            ModelError: Too many prompts in a row got no answer.
        """
        left = iter(self.open_prompts(prompts))
        try:
            await asyncio.gather(*(self._work(left) for _ in range(self._at_once)))
        finally:
            await self._chat.aclose()

    def _is_open(self, prompt: Prompt) -> bool:
        known = self._state.answers.get(prompt.key)
        return known is None or known.failure is not None or (self._judges and known.is_right is None)

    async def _work(self, left: Iterator[Prompt]) -> None:
        for prompt in left:
            known = self._state.answers.get(prompt.key)
            answer = known if known is not None and known.failure is None else await self._ask(prompt)
            if self._judges and answer.failure is None:
                asked = prompt.question.asked
                verdict = await judged(self._chat, asked.text, asked.answer, answer.text, self._limiter)
                answer = replace(answer, is_right=verdict)
            self._state.add(answer)

    async def _ask(self, prompt: Prompt) -> Answer:
        try:
            text, usage = await listen(self._chat, prompt.request)
        except ReplyFormatError:  # a reply without an answer, such as one that was cut off
            self._failures = 0
            return Answer(prompt.key, "")
        except ModelError as error:
            self._failures += 1
            if self._failures >= FAILURES_IN_A_ROW and not self._goes_on:
                raise
            return Answer(prompt.key, "", failure=str(error))
        self._failures = 0
        return Answer(prompt.key, text, prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens)


def print_tiers(console: Console, prompts: Sequence[Prompt], answers: Mapping[str, Answer]) -> None:
    """Print a table over all questions, and one for each kind of question if there are several.

    A question is left out unless all of its prompts have an answer, because variants are compared by question.

    Args:
        console: The output.
        prompts: All prompts of each question.
        answers: By key of the prompt.
    """
    failures = {prompt.question: answers[prompt.key].failure for prompt in prompts if answers[prompt.key].failure}
    asked = [prompt for prompt in prompts if prompt.question not in failures]
    by_kind = {kind: [prompt for prompt in asked if prompt.question.kind == kind] for kind in KINDS}
    for title, group in {"all questions": asked, **(by_kind if all(by_kind.values()) else {})}.items():
        if group:
            console.print(_table(title, group, answers))
    if failures:
        line = f"{len(failures)} questions left out, for lack of an answer, the last: {[*failures.values()][-1]}"
        console.print(line, highlight=False, soft_wrap=True)
    console.print(f"[dim]{_RULES}[/dim]", highlight=False, soft_wrap=True)


def _table(title: str, prompts: Sequence[Prompt], answers: Mapping[str, Answer]) -> Table:
    is_judged = all(answers[prompt.key].is_right is not None for prompt in prompts)
    scores: dict[str, Score] = {"F1": _f1, "exact": _exact, **({"judged": _judged} if is_judged else {})}
    table = Table(title=f"{title}, {len(prompts) // len(VARIANTS)}", title_justify="left")
    table.add_column("variant", no_wrap=True)
    for name in (*(column for score in scores for column in (score, "change")), "tokens"):
        table.add_column(name, justify="right", no_wrap=True)
    for variant in VARIANTS:
        of_variant = [prompt for prompt in prompts if prompt.variant == variant]
        cells = []
        for score in scores.values():
            ours, whole = (
                [100 * score(prompt, answers[prompt.key]) for prompt in prompts if prompt.variant == name]
                for name in (variant, WHOLE)
            )
            cells += [f"{mean(ours):.1f}", "" if variant == WHOLE else _change(ours, whole)]
        table.add_row(variant, *cells, f"{mean([prompt.tokens for prompt in of_variant]):.0f}")
    return table


def _change(ours: Sequence[float], whole: Sequence[float]) -> str:
    found = paired_bootstrap(ours, whole)
    return f"{found.mean:+.1f} ({found.low:+.1f} to {found.high:+.1f})"


def _f1(prompt: Prompt, answer: Answer) -> float:
    return token_f1(answer.text, prompt.question.asked.answer)


def _exact(prompt: Prompt, answer: Answer) -> float:
    return float(is_exact(answer.text, prompt.question.asked.answer))


def _judged(_: Prompt, answer: Answer) -> float:
    return float(answer.is_right is True)
