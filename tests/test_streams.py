"""Streamed replies of an LLM, from a real server on this machine."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_mcp.errors import ModelError
from memoryos_mcp.llm.api import ATTEMPTS, PassingError
from memoryos_mcp.llm.chat import ChatRequest, Message, Purpose, Usage
from memoryos_mcp.llm.providers import OUTPUT_TOKENS
from memoryos_mcp.llm.replies import Speech, said_aloud
from memoryos_mcp.llm.streams import Stream
from memoryos_mcp.model.pages import estimate_tokens
from tests.llm_server import Reply, api_error, completion
from tests.test_openai_chat import BAREST, FORM, format_of, refusing, talk

REQUEST = ChatRequest(Purpose.RESPOND, (Message("system", "You talk."), Message("user", "Where is Nadia?")))
USAGE = {"prompt_tokens": 11, "completion_tokens": 7}


def event(data: object) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


def chunk(content: str | None = None, finish_reason: str | None = None) -> bytes:
    return event({"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": finish_reason}]})


def stream(*events: bytes, **reply: Any) -> Reply:
    return Reply(b"".join(events), headers={"content-type": "text/event-stream"}, **reply)


DONE = b"data: [DONE]\n\n"
WHOLE = (
    chunk("In "),
    chunk("Porto."),
    chunk(None, "stop"),
    event({"choices": [], "usage": USAGE}),
    DONE,
)


async def listen(talked: Any, request: ChatRequest = REQUEST) -> tuple[Any, list[str]]:
    heard: list[str] = []
    return await talked.chat.complete(request, heard.append), heard


async def test_pieces_are_passed_on_and_the_whole_reply_is_counted() -> None:
    async with talk(stream(*WHOLE)) as talked:
        reply, heard = await listen(talked)
    assert heard == ["In ", "Porto."]
    assert (reply.text, reply.usage, reply.is_cut) == ("In Porto.", Usage(11, 7), False)
    (body,) = talked.server.bodies
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert "response_format" not in body


async def test_a_reply_without_schema_or_listener_is_not_streamed() -> None:
    async with talk(completion("In Porto.")) as talked:
        assert (await talked.chat.complete(REQUEST)).text == "In Porto."
    (body,) = talked.server.bodies
    assert "response_format" not in body
    assert "stream" not in body
    assert body["messages"][0]["content"] == "You talk."


async def test_a_request_may_lower_the_endpoints_reply_limit() -> None:
    async with talk(completion("In Porto.")) as talked:
        await talked.chat.complete(replace(REQUEST, reply_tokens=48))
        await talked.chat.complete(replace(REQUEST, reply_tokens=10**9))
    assert [body["max_completion_tokens"] for body in talked.server.bodies] == [48, OUTPUT_TOKENS]


async def test_tokens_are_estimated_if_the_server_does_not_count() -> None:
    async with talk(stream(chunk("In Porto."), DONE)) as talked:
        reply, _ = await listen(talked)
    assert reply.usage.completion_tokens == estimate_tokens("In Porto.")


async def test_a_reply_at_the_token_limit_is_marked_as_cut() -> None:
    async with talk(stream(chunk("In"), chunk(None, "length"))) as talked:
        reply, _ = await listen(talked)
    assert reply.is_cut


async def test_a_reply_that_is_not_streamed_is_passed_on_in_one_piece() -> None:
    async with talk(completion("In Porto.")) as talked:
        reply, heard = await listen(talked)
    assert heard == ["In Porto."]
    assert reply.usage == Usage(11, 7)


@pytest.mark.parametrize(
    "events",
    [
        (chunk("In "),),
        (chunk("In "), event({"error": {"message": "Nadia", "code": 500}})),
        (chunk("In "), b"data: {broken\n\n"),
    ],
)
async def test_an_incomplete_stream_is_an_error_and_not_retried(events: Sequence[bytes]) -> None:
    async with talk(stream(*events)) as talked:
        with pytest.raises(ModelError, match="ended its reply too early") as caught:
            await listen(talked)
    assert len(talked.server.asked) == 1
    assert "Nadia" not in str(caught.value)


async def test_a_break_after_the_first_piece_is_not_retried() -> None:
    async with talk(stream(*WHOLE, sent_bytes=len(WHOLE[0]) + 4)) as talked:
        with pytest.raises(PassingError):
            await listen(talked)
    assert len(talked.server.asked) == 1


async def test_a_failure_before_the_first_piece_is_retried() -> None:
    async with talk([api_error(503), stream(*WHOLE)]) as talked:
        reply, heard = await listen(talked)
    assert "".join(heard) == reply.text == "In Porto."
    assert len(talked.pauses_s) == 1


async def test_attempts_end_if_no_piece_ever_arrives() -> None:
    async with talk(api_error(503)) as talked:
        with pytest.raises(PassingError):
            await listen(talked)
    assert len(talked.server.asked) == ATTEMPTS


async def test_an_answer_of_another_api_is_an_error() -> None:
    async with talk(Reply(b"<html>hello</html>", headers={"content-type": "text/html"})) as talked:
        with pytest.raises(ModelError, match="is not a chat API"):
            await listen(talked)


async def test_a_refused_plain_reply_does_not_change_the_dialect() -> None:
    async with talk(refusing(lambda body: "temperature" in body, api_error(400))) as talked:
        await talked.chat.complete(REQUEST)
        await talked.chat.complete(replace(REQUEST, form=FORM))
    assert format_of(talked.server.bodies[-1]).value == "json_schema"


async def test_the_plainest_dialect_does_not_ask_for_token_counts() -> None:
    async with talk(stream(*WHOLE), dialect=BAREST) as talked:
        await listen(talked)
    assert "stream_options" not in talked.server.bodies[0]


@given(st.lists(st.integers(1, 200), max_size=20))
def test_a_stream_reads_the_same_in_any_chunks(cuts: list[int]) -> None:
    body = b": a comment\r\n" + b"".join(WHOLE).replace(b"\n", b"\r\n")
    heard: list[str] = []
    read = Stream(heard.append)
    places = [0, *sorted({min(cut, len(body)) for cut in cuts}), len(body)]
    for start, end in itertools.pairwise(places):
        read.feed(body[start:end])
    assert (heard, read.text, read.is_complete, read.usage) == (["In ", "Porto."], "In Porto.", True, USAGE)


@given(st.lists(st.sampled_from(["<think>", "</think>", "<", "thin", "k>", "a", " ", "\n", "<b>", "</"]), max_size=12))
def test_passed_on_pieces_are_a_prefix_of_the_reply(parts: list[str]) -> None:
    speech = Speech()
    heard = "".join(speech.hear(part) for part in parts)
    whole = "".join(parts)
    if "</think>" not in whole or whole.lstrip().startswith("<think>"):
        assert said_aloud(whole).startswith(heard.strip()) or said_aloud(whole) in heard
