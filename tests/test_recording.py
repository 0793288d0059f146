import asyncio
import dataclasses
import json
import logging
import os
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from memoryos_mcp.errors import ModelError, ReplyFormatError
from memoryos_mcp.llm.chat import ChatModel, ChatReply, ChatRequest, Listener, Message, Purpose, ReplyForm, Usage
from memoryos_mcp.llm.log_lines import request_body, request_key
from memoryos_mcp.llm.recording import LOG_NAME, RecordingChat
from memoryos_mcp.llm.replaying import ReplayChat
from tests.fakes import Clock

LIMIT_S = 10
SCHEMA: Mapping[str, JsonValue] = {
    "type": "object",
    "properties": {"topic": {"type": "string"}},
    "required": ["topic"],
    "additionalProperties": False,
}
TEXTS = st.text(st.characters(codec="utf-8"))


class EchoChat:
    """Replies with the last message; can be made to fail or to wait."""

    name = "echo-1"

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.was_called = asyncio.Event()
        self.is_cut = False
        self.is_closed = False

    async def complete(self, request: ChatRequest, listener: Listener | None = None) -> ChatReply:
        self.was_called.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        text = request.messages[-1].content
        return ChatReply(text, Usage(len(text) + 7, len(text)), self.is_cut)

    async def aclose(self) -> None:
        self.is_closed = True


def ask(text: str, *, purpose: Purpose = Purpose.ORGANISE, schema: Mapping[str, JsonValue] = SCHEMA) -> ChatRequest:
    messages = (Message("system", "Find the topics."), Message("user", text))
    return ChatRequest(purpose, messages, ReplyForm("topics", schema))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def batch_output(request: ChatRequest, content: str | None, **changes: JsonValue) -> str:
    """Return a line of output as documented for the batch API."""
    body: dict[str, JsonValue] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1711652795,
        "model": "gpt-4o-mini-2024-07-18",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 22, "completion_tokens": 2, "total_tokens": 24},
        "system_fingerprint": "fp_1",
    }
    line: dict[str, JsonValue] = {
        "id": "batch_req_1",
        "custom_id": request_key(request),
        "response": {"status_code": 200, "request_id": "req_1", "body": body},
        "error": None,
    }
    return json.dumps(line | changes) + "\n"


async def calls(chat: ChatModel, *requests: ChatRequest) -> list[ChatReply]:
    async with asyncio.timeout(LIMIT_S):
        return [await chat.complete(request) for request in requests]


async def refusal(chat: ChatModel, request: ChatRequest) -> str:
    """Return the message of the error for a request."""
    with pytest.raises(ModelError) as caught:
        await calls(chat, request)
    return str(caught.value)


@given(TEXTS, TEXTS)
def test_only_equal_requests_have_equal_keys(one: str, other: str) -> None:
    assert request_key(ask(one)) == request_key(ask(one))
    assert (request_key(ask(one)) == request_key(ask(other))) is (one == other)


def test_a_key_depends_on_everything_but_the_order_in_a_schema() -> None:
    request = ask("x")
    reordered = ask("x", schema=dict(reversed(list(SCHEMA.items()))))
    # The key must never change, because files of replies are used with later versions.
    assert request_key(request) == request_key(reordered) == "70cf0a3fe7252e95334f076ce57f682e"
    others = [
        ask("x", purpose=Purpose.LEARN),
        ask("x", schema={**SCHEMA, "required": []}),
        dataclasses.replace(request, form=ReplyForm("other", SCHEMA)),
        dataclasses.replace(request, messages=request.messages[1:]),
        dataclasses.replace(request, messages=(request.messages[0], Message("assistant", "x"))),
    ]
    assert len({request_key(each) for each in [request, *others]}) == 6


async def test_a_call_is_logged_in_the_batch_format_with_its_request(tmp_path: Path) -> None:
    path, clock = tmp_path / LOG_NAME, Clock()
    chat = RecordingChat(EchoChat(), path, clock=clock)
    await calls(chat, ask("où est-ce ? 東京\u2028"))
    await chat.aclose()
    (line,) = lines(path)
    assert line.pop("took_ms") >= 0
    assert line == {
        "custom_id": request_key(ask("où est-ce ? 東京\u2028")),
        "at": "2026-05-08T12:00:00+00:00",
        "purpose": "organise",
        "request": {
            "model": "echo-1",
            "messages": [
                {"role": "system", "content": "Find the topics."},
                {"role": "user", "content": "où est-ce ? 東京\u2028"},
            ],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "topics", "strict": True, "schema": dict(SCHEMA)},
            },
        },
        "response": {
            "status_code": 200,
            "body": {
                "choices": [
                    {
                        "index": 0,
                        "message": {"role": "assistant", "content": "où est-ce ? 東京\u2028"},
                        "finish_reason": "stop",
                    }
                ],
                "usage": {"prompt_tokens": 22, "completion_tokens": 15, "total_tokens": 37},
                "model": "echo-1",
            },
        },
        "error": None,
    }


async def test_a_log_can_be_replayed(tmp_path: Path) -> None:
    path, echo = tmp_path / LOG_NAME, EchoChat()
    chat = RecordingChat(echo, path)
    requests = [ask(text) for text in ("", "one", "two\r\n\x00 lines", "😀")]
    replies = await calls(chat, *requests)
    echo.is_cut = True
    requests.append(ask("cut"))
    replies += await calls(chat, requests[-1])
    replay = ReplayChat(path, model_name="m")
    assert await calls(replay, *requests) == replies
    assert replies[-1].is_cut
    assert not (tmp_path / "llm-log.missing.jsonl").exists()
    assert (chat.name, replay.name) == ("echo-1", "replay")
    await replay.aclose()
    await chat.aclose()
    assert echo.is_closed


async def test_a_failed_call_is_logged_and_never_replayed(tmp_path: Path) -> None:
    path, echo = tmp_path / LOG_NAME, EchoChat()
    echo.failure = ReplyFormatError("no JSON; try another model")
    chat = RecordingChat(echo, path)
    assert await refusal(chat, ask("x")) == "no JSON; try another model"
    (line,) = lines(path)
    assert line["response"] is None
    assert line["error"] == {"code": "ReplyFormatError", "message": "no JSON; try another model"}
    assert "contains no reply" in await refusal(ReplayChat(path, model_name="m"), ask("x"))
    await chat.aclose()


async def test_only_the_name_of_an_unexpected_exception_is_logged(tmp_path: Path) -> None:
    path, echo = tmp_path / LOG_NAME, EchoChat()
    echo.failure = RuntimeError("Authorization: Bearer sk-live-1234567890")
    chat = RecordingChat(echo, path)
    with pytest.raises(RuntimeError):
        await calls(chat, ask("x"))
    await chat.aclose()
    assert "sk-live" not in path.read_text(encoding="utf-8")
    assert lines(path)[0]["error"]["code"] == "RuntimeError"


async def test_a_cancelled_call_is_logged(tmp_path: Path) -> None:
    path, echo = tmp_path / LOG_NAME, EchoChat()
    echo.gate = asyncio.Event()
    chat = RecordingChat(echo, path)
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as tasks:
        task = tasks.create_task(chat.complete(ask("x")))
        await echo.was_called.wait()
        task.cancel()
    await chat.aclose()
    assert task.cancelled()
    assert [line["error"]["code"] for line in lines(path)] == ["CancelledError"]


async def test_calls_cancelled_during_the_write_are_logged(tmp_path: Path) -> None:
    path, echo = tmp_path / LOG_NAME, EchoChat()
    chat = RecordingChat(echo, path)
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(chat.complete(ask(str(number)))) for number in range(50)]
        await echo.was_called.wait()
        for task in running:
            task.cancel()
    await chat.aclose()
    assert len(lines(path)) == 50


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
async def test_log_and_missing_requests_are_private_files(tmp_path: Path) -> None:
    path = tmp_path / LOG_NAME
    chat = RecordingChat(EchoChat(), path)
    await calls(chat, ask("x"))
    await chat.aclose()
    await refusal(ReplayChat(path, model_name="m"), ask("y"))
    modes = [stat.S_IMODE(file.stat().st_mode) for file in (path, path.with_name("llm-log.missing.jsonl"))]
    assert modes == [0o600, 0o600]


async def test_concurrent_calls_are_each_logged_once(tmp_path: Path) -> None:
    path = tmp_path / LOG_NAME
    chats = [RecordingChat(EchoChat(), path) for _ in range(4)]
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as tasks:
        for number in range(100):
            tasks.create_task(chats[number % 4].complete(ask(f"{number}:" + "x" * 50_000)))
    for chat in chats:
        await chat.aclose()
    contents = [line["request"]["messages"][1]["content"] for line in lines(path)]
    assert sorted(int(content.partition(":")[0]) for content in contents) == list(range(100))


async def test_an_unwritable_log_fails_no_call_and_warns_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    chat = RecordingChat(EchoChat(), tmp_path)
    replies = await calls(chat, ask("secret"), ask("b"))
    await chat.aclose()
    assert [reply.text for reply in replies] == ["secret", "b"]
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert str(tmp_path) in record.getMessage()
    assert "secret" not in caplog.text


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
async def test_a_full_disk_fails_no_call(caplog: pytest.LogCaptureFixture) -> None:
    chat = RecordingChat(EchoChat(), Path("/dev/full"))
    assert len(await calls(chat, ask("a"))) == 1
    await chat.aclose()
    assert "No space left" in caplog.text


async def test_lines_after_a_cut_line_are_readable(tmp_path: Path) -> None:
    path = tmp_path / LOG_NAME
    path.write_bytes(b'{"custom_id": "x", "resp')
    chat = RecordingChat(EchoChat(), path)
    (reply,) = await calls(chat, ask("a"))
    await chat.aclose()
    assert await calls(ReplayChat(path, model_name="m"), ask("a")) == [reply]


async def test_half_a_surrogate_pair_in_a_reply_does_not_lose_the_line(tmp_path: Path) -> None:
    chat = RecordingChat(EchoChat(), tmp_path / LOG_NAME)
    await calls(chat, ask("a\ud800b"))
    await chat.aclose()
    assert lines(tmp_path / LOG_NAME)[0]["response"]["body"]["choices"][0]["message"]["content"] == "a?b"


async def test_the_output_of_a_batch_can_be_replayed(tmp_path: Path) -> None:
    path = tmp_path / "output.jsonl"
    path.write_text(batch_output(ask("a"), "A") + batch_output(ask("b"), "B"), encoding="utf-8")
    replay = ReplayChat(path, model_name="m")
    assert await calls(replay, ask("b"), ask("a")) == [
        ChatReply("B", Usage(22, 2), is_cut=False),
        ChatReply("A", Usage(22, 2), is_cut=False),
    ]


async def test_the_last_successful_reply_is_replayed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, request = tmp_path / "output.jsonl", ask("a")
    bad_request: JsonValue = {"status_code": 400, "request_id": "r", "body": {"error": {"message": "too long"}}}
    broken_off: JsonValue = {"status_code": 500, "body": {"choices": [{"message": {"content": "half"}}]}}
    expired: JsonValue = {"code": "batch_expired", "message": "too late"}
    path.write_text(
        batch_output(request, "old")
        + batch_output(request, "new")
        + batch_output(request, "", response=bad_request)
        + batch_output(request, "", response=broken_off)
        + batch_output(request, "", response=None, error=expired)
        + batch_output(request, None),  # the model refused
        encoding="utf-8",
    )
    (reply,) = await calls(ReplayChat(path, model_name="m"), request)
    assert reply.text == "new"
    assert caplog.records == []


async def test_missing_token_counts_are_estimated(tmp_path: Path) -> None:
    path = tmp_path / "output.jsonl"
    body: JsonValue = {"choices": [{"message": {"content": "x" * 80}}]}
    path.write_text(batch_output(ask("a"), "", response={"status_code": 200, "body": body}), encoding="utf-8")
    (reply,) = await calls(ReplayChat(path, model_name="m"), ask("a"))
    assert reply.usage == Usage(prompt_tokens=6, completion_tokens=21)


async def test_a_missing_request_is_written_once_as_a_batch_line(tmp_path: Path) -> None:
    path, missing = tmp_path / "replies.jsonl", tmp_path / "replies.missing.jsonl"
    replay = ReplayChat(path, model_name="gpt-4o-mini")
    told = await refusal(replay, ask("my secret"))
    assert str(missing) in told
    assert request_key(ask("my secret")) in told
    assert "my secret" not in told
    await refusal(replay, ask("my secret"))
    await refusal(replay, ask("other"))
    await refusal(ReplayChat(path, model_name="gpt-4o-mini"), ask("my secret"))
    assert lines(missing) == [
        {
            "custom_id": request_key(ask(text)),
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": request_body(ask(text), model_name="gpt-4o-mini"),
        }
        for text in ("my secret", "other")
    ]
    assert not path.exists()


async def test_a_request_from_another_process_is_not_written_again(tmp_path: Path) -> None:
    replays = [ReplayChat(tmp_path / "r.jsonl", model_name="m") for _ in range(2)]
    for text in "abc":
        for replay in replays:
            await refusal(replay, ask(text))
    assert [line["custom_id"] for line in lines(tmp_path / "r.missing.jsonl")] == [request_key(ask(x)) for x in "abc"]


async def test_a_deleted_file_of_missing_requests_starts_again(tmp_path: Path) -> None:
    replay, missing = ReplayChat(tmp_path / "r.jsonl", model_name="m"), tmp_path / "r.missing.jsonl"
    await refusal(replay, ask("a"))
    await refusal(replay, ask("b"))
    missing.unlink()
    await refusal(replay, ask("b"))
    assert [line["custom_id"] for line in lines(missing)] == [request_key(ask("b"))]


async def test_replies_that_are_added_later_are_found(tmp_path: Path) -> None:
    path, replay = tmp_path / "r.jsonl", ReplayChat(tmp_path / "r.jsonl", model_name="m")
    await refusal(replay, ask("a"))
    for text in "ab":
        await refusal(replay, ask(text))
        with path.open("a", encoding="utf-8") as file:
            file.write(batch_output(ask(text), text.upper()))
        assert [reply.text for reply in await calls(replay, ask(text))] == [text.upper()]
    path.unlink()
    await refusal(replay, ask("a"))


async def test_a_file_is_read_again_only_if_time_or_size_changed(tmp_path: Path) -> None:
    path, replay = tmp_path / "r.jsonl", ReplayChat(tmp_path / "r.jsonl", model_name="m")
    path.write_text(batch_output(ask("a"), "A"), encoding="utf-8")
    await calls(replay, ask("a"))
    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    path.write_text(batch_output(ask("a"), "B"), encoding="utf-8")
    os.utime(path, ns=times)
    (reply,) = await calls(replay, ask("a"))
    assert reply.text == "A"
    path.touch()
    (reply,) = await calls(replay, ask("a"))
    assert reply.text == "B"


@pytest.mark.parametrize(
    "damage",
    [
        b"secret no JSON",
        b"[1, 2]",
        b"\xff\xfe",
        b'{"custom_id": 7}',
        b'{"custom_id": "k", "response": {"status_code": 200, "body": {"choices": []}}}',
        b'{"custom_id": "k", "response": {"status_code": 200, "body": {"object": "list", "data": []}}}',
        b'{"a":' * 10_000,
        b'{"custom_id": "secret cut sho',
    ],
)
async def test_invalid_lines_are_skipped_with_one_warning(
    damage: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "r.jsonl"
    good = batch_output(ask("a"), "A").encode()
    path.write_bytes(damage + b"\n\n" + good + damage + b"\n")
    replay = ReplayChat(path, model_name="m")
    replies = await calls(replay, ask("a"), ask("a"))
    assert [reply.text for reply in replies] == ["A", "A"]
    assert [record.getMessage() for record in caplog.records] == [
        f"{path} contains invalid lines, which are ignored (number of lines: 2); correct or delete them"
    ]


async def test_the_error_for_a_folder_as_replay_file_names_it(tmp_path: Path) -> None:
    told = await refusal(ReplayChat(tmp_path, model_name="m"), ask("a"))
    assert told.startswith(f"{tmp_path} cannot be read (")
    assert "llm_replay_file" in told


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), lambda path: path.symlink_to(path)])
async def test_the_error_names_an_unwritable_file_of_missing_requests(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    missing = tmp_path / "r.missing.jsonl"
    make(missing)
    told = await refusal(ReplayChat(tmp_path / "r.jsonl", model_name="m"), ask("a"))
    assert f"cannot be added to {missing} (" in told


@given(text=TEXTS, reply=TEXTS)
def test_any_logged_text_can_be_replayed(text: str, reply: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("log") / LOG_NAME

    async def there_and_back() -> None:
        echo = EchoChat()
        chat = RecordingChat(echo, path)
        given_reply = await calls(chat, ask(text), ask(reply))
        await chat.aclose()
        assert await calls(ReplayChat(path, model_name="m"), ask(text), ask(reply)) == given_reply

    asyncio.run(there_and_back())
