"""The benchmark of answers with and without each tier, on a life of a few pages."""

import asyncio
import json
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from benchmarks.answer_scores import is_exact
from benchmarks.answer_state import State
from benchmarks.answer_tiers import (
    FOLLOW_UP,
    VARIANTS,
    WHOLE,
    YEAR,
    Prompt,
    TierRun,
    load_life_questions,
    make_prompts,
    print_tiers,
)
from benchmarks.answers import main
from benchmarks.datasets import DatasetError, load
from memoryos_mcp.config import Settings
from memoryos_mcp.errors import ModelError
from memoryos_mcp.llm.chat import ChatModel, ChatReply, ChatRequest, Listener, Purpose, Usage

pytestmark = pytest.mark.usefixtures("bare_environment")

LIMIT_S = 60
SAID = [
    "I'm allergic to penicillin.",
    "Does a red kayak stand out on a lake?",
    *(f"Number {number} of the series was fine." for number in range(1, 8)),
    "The ferry leaves at nine.",
]
QUESTIONS = """
[[question]]
text = "Which medicine am I allergic to?"
gold = ["p0"]
answer = "penicillin"

[[question]]
text = "What is never asked, because it is the second?"
gold = ["p0"]
answer = "nothing"

[[question]]
text = "What colour is the kayak on the lake?"
gold = ["p1"]
answer = "red"

[[follow_up]]
text = "When does it leave?"
gold = ["p9"]
answer = "at nine"
"""
WORDS = {"medicine": "penicillin", "kayak": "red", "leave": "at nine"}


class Reader:
    """A chat model that answers if the answer is in the prompt. Implements `memoryos_mcp.llm.chat.ChatModel`."""

    name = "reader"

    def __init__(self) -> None:
        self.requests: list[ChatRequest] = []

    async def complete(self, request: ChatRequest, listener: Listener | None = None) -> ChatReply:
        self.requests.append(request)
        if request.purpose is Purpose.CHECK:
            key, given = request.messages[-1].content.splitlines()[-2:]
            return reply(json.dumps({"right": key.removeprefix("key: ") == given.removeprefix("given: ")}))
        *_, question = request.messages[-1].content.splitlines()
        answer = next(text for word, text in WORDS.items() if word in question)
        told = "\n".join(message.content for message in request.messages[1:])
        return reply(answer if answer in told else "Not mentioned.")

    async def aclose(self) -> None:
        """Do nothing."""


class Silent(Reader):
    """A chat model that always fails."""

    async def complete(self, request: ChatRequest, listener: Listener | None = None) -> ChatReply:
        self.requests.append(request)
        message = "down"
        raise ModelError(message)


def reply(text: str) -> ChatReply:
    return ChatReply(text, Usage(1, 1), is_cut=False)


@pytest.fixture
def life(tmp_path: Path) -> Path:
    folder = tmp_path / "life"
    folder.mkdir()
    pages = [
        f'[[page]]\nid = "p{place}"\nat = 2025-01-{place + 1:02}T09:00:00\nuser = "{text}"\nassistant = "Good."\n'
        for place, text in enumerate(SAID)
    ]
    (folder / "year.toml").write_text("\n".join(pages), encoding="utf-8")
    (folder / "questions.toml").write_text(QUESTIONS, encoding="utf-8")
    return folder / "year.toml"


async def prompts_of(life: Path, folder: Path) -> list[Prompt]:
    settings = Settings(data_storage_path=folder, embedding_model_name="none", timezone="UTC", retrieval_max_tokens=600)
    (conversation,) = load(life).conversations
    async with asyncio.timeout(LIMIT_S):
        return await make_prompts(folder, settings, life, conversation, load_life_questions(life))


def tier_run(chat: ChatModel, state: State, *, judges: bool = False, goes_on: bool = False) -> TierRun:
    return TierRun(chat, state, judges=judges, at_once=1, goes_on=goes_on)


def answered(prompts: Sequence[Prompt], state: State, variant: str) -> list[str]:
    return [state.answers[prompt.key].text for prompt in prompts if prompt.variant == variant]


def test_every_second_question_and_all_follow_ups_are_asked(life: Path) -> None:
    questions = load_life_questions(life)
    assert [(each.kind, each.asked.id) for each in questions] == [
        (YEAR, "question:0"),
        (YEAR, "question:2"),
        (FOLLOW_UP, "follow_up:0"),
    ]


def test_a_life_without_questions_is_rejected(life: Path) -> None:
    (life.parent / "questions.toml").unlink()
    with pytest.raises(DatasetError, match="questions of a life"):
        load_life_questions(life)


def test_exact_answers_differ_at_most_in_articles() -> None:
    assert is_exact("Greyhound.", "a greyhound")
    assert not is_exact("a grey dog", "a greyhound")


async def test_a_missing_tier_takes_its_answers_along(life: Path, tmp_path: Path) -> None:
    prompts = await prompts_of(life, tmp_path / "memory")
    state, reader = State(None, {}), Reader()
    async with asyncio.timeout(LIMIT_S):
        await tier_run(reader, state, judges=True).answer(prompts)
    assert answered(prompts, state, WHOLE) == ["penicillin", "red", "at nine"]
    assert answered(prompts, state, "without short-term") == ["penicillin", "red", "Not mentioned."]
    assert answered(prompts, state, "no memory") == ["Not mentioned."] * 3
    assert answered(prompts, state, "without mid-term")[1] == "Not mentioned."
    told = StringIO()
    print_tiers(Console(file=told, width=150), prompts, state.answers)
    assert "judged" in told.getvalue()
    assert "-33.3 (-100.0 to +0.0)" in told.getvalue()


async def test_equal_prompts_are_sent_once(life: Path, tmp_path: Path) -> None:
    prompts = await prompts_of(life, tmp_path / "memory")
    reader = Reader()
    async with asyncio.timeout(LIMIT_S):
        await tier_run(reader, State(None, {})).answer([*prompts, *prompts])
    assert len(reader.requests) == len({prompt.key for prompt in prompts}) <= len(prompts)


async def test_prompts_are_the_same_in_each_run(life: Path, tmp_path: Path) -> None:
    first, second = [await prompts_of(life, tmp_path / name) for name in ("first", "second")]
    assert [prompt.key for prompt in first] == [prompt.key for prompt in second]


async def test_an_llm_that_is_down_ends_the_run(life: Path, tmp_path: Path) -> None:
    prompts = await prompts_of(life, tmp_path / "memory")
    chat = Silent()
    with pytest.raises(ModelError, match="down"):
        async with asyncio.timeout(LIMIT_S):
            await tier_run(chat, State(None, {})).answer(prompts)
    assert len(chat.requests) == 5


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments), "--tiers", "--embedding-model-name", "none"])


def test_a_replay_collects_all_prompts_then_answers_them(life: Path, tmp_path: Path) -> None:
    replay = tmp_path / "replay.jsonl"
    replay.touch()
    arguments = ("--data", life, "--llm-replay-file", replay)
    first = run(*arguments)
    assert first.exit_code == 0, first.output
    assert "3 questions left out" in first.output
    missing = [json.loads(line) for line in (tmp_path / "replay.missing.jsonl").read_text("utf-8").splitlines()]
    assert 3 * (len(VARIANTS) - 1) <= len(missing) <= 3 * len(VARIANTS)

    choices = [{"message": {"role": "assistant", "content": "red"}, "finish_reason": "stop"}]
    lines = [
        json.dumps({"custom_id": each["custom_id"], "response": {"status_code": 200, "body": {"choices": choices}}})
        for each in missing
    ]
    replay.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    second = run(*arguments)
    assert second.exit_code == 0, second.output
    assert "left out" not in second.output
    assert "33.3" in second.output


def test_tiers_exclude_options_of_locomo(life: Path) -> None:
    assert run("--data", life, "--learn").exit_code == 2
