"""The network client for chat models, with a real local server whose replies are valid, invalid or missing."""

import asyncio
import contextlib
import json
import logging
import socket
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, SecretStr

from memoryos_mcp.config import LlmProvider
from memoryos_mcp.errors import ModelError
from memoryos_mcp.llm.api import ATTEMPTS, Api, retry_after_seconds
from memoryos_mcp.llm.api_errors import LONGEST_RETRY_AFTER_S
from memoryos_mcp.llm.chat import ChatModel, ChatReply, ChatRequest, Message, Purpose, ReplyForm, Usage
from memoryos_mcp.llm.openai_chat import OpenAIChat
from memoryos_mcp.llm.providers import (
    OUTPUT_TOKENS,
    PRESETS,
    REASONING_OUTPUT_TOKENS,
    TEMPERATURE,
    WORDING,
    Dialect,
    Endpoint,
    ReplyFormat,
)
from memoryos_mcp.model.pages import estimate_tokens
from tests.llm_server import (
    Answer,
    Answering,
    Asked,
    Drip,
    Hang,
    LlmServer,
    api_error,
    completion,
    free_port,
    html,
    json_reply,
    llm_server,
)

TIME_LIMIT_S = 30
KEY = "sk-live-4f9a8b7c6d5e"
PASSWORD = "hunter2"  # noqa: S105 - of no account
DIALOGUE = "My sister Nadia moved to Porto."
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"topic": {"type": "string"}},
    "required": ["topic"],
    "additionalProperties": False,
}
FORM = ReplyForm("organised", SCHEMA)
REQUEST = ChatRequest(Purpose.ORGANISE, (Message("system", "You put pages in order."), Message("user", DIALOGUE)), FORM)
ALL = Dialect(ReplyFormat.JSON_SCHEMA, "max_completion_tokens")
BAREST = Dialect(ReplyFormat.PROMPT, None, temperature=None)


@dataclass(frozen=True, slots=True)
class Talk:
    """A chat model, its server, and the pauses before its retries, in seconds."""

    server: LlmServer
    chat: OpenAIChat
    pauses_s: list[float]


def endpoint_at(
    base_url: str,
    *,
    dialect: Dialect = ALL,
    key: str | None = KEY,
    key_source: str = "openai_api_key",
    rejects_length_limits: bool = False,
    provider: LlmProvider | None = "openai",
) -> Endpoint:
    return Endpoint(
        provider=provider,
        model="tiny",
        api=Api(base_url, None if key is None else SecretStr(key), key_source, WORDING),
        dialect=dialect,
        rejects_length_limits=rejects_length_limits,
        output_tokens=OUTPUT_TOKENS,
    )


@contextlib.asynccontextmanager
async def talk(
    answer: Answering | Answer | Sequence[Answer],
    *,
    timeout_s: float = 20.0,
    max_concurrent_calls: int = 16,
    **endpoint: Any,
) -> AsyncIterator[Talk]:
    """Start a server and a chat model that uses it, for a limited time; retries have no pause."""
    pauses_s: list[float] = []

    async def pause(seconds: float) -> None:
        pauses_s.append(seconds)

    async with asyncio.timeout(TIME_LIMIT_S), llm_server(answer) as server:
        chat = OpenAIChat(
            endpoint_at(server.base_url, **endpoint),
            timeout_s=timeout_s,
            max_concurrent_calls=max_concurrent_calls,
            pause=pause,
        )
        try:
            yield Talk(server, chat, pauses_s)
        finally:
            await chat.aclose()


async def failure(chat: ChatModel) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await chat.complete(REQUEST)
    return caught.value


async def failure_at(base_url: str, **endpoint: Any) -> str:
    """Return the message of the error for a request to an address."""

    async def pause(seconds: float) -> None:
        del seconds

    chat = OpenAIChat(endpoint_at(base_url, **endpoint), timeout_s=20.0, max_concurrent_calls=1, pause=pause)
    async with asyncio.timeout(TIME_LIMIT_S):
        try:
            return str(await failure(chat))
        finally:
            await chat.aclose()


def refusing(is_refused: Callable[[Any], bool], error: Answer) -> Answering:
    """Return a server that refuses requests with some bodies and replies to the others."""
    return lambda asked: error if is_refused(asked.body) else completion("{}")


def format_of(body: Any) -> ReplyFormat:
    return ReplyFormat(body["response_format"]["type"]) if "response_format" in body else ReplyFormat.PROMPT


# Requests


async def test_a_request_has_model_messages_schema_cap_and_key() -> None:
    async with talk(completion('{"topic":"Porto"}')) as talked:
        chat: ChatModel = talked.chat
        assert chat.name == "tiny"
        assert await chat.complete(REQUEST) == ChatReply('{"topic":"Porto"}', Usage(11, 7), is_cut=False)
        (asked,) = talked.server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "model": "tiny",
        "messages": [
            {"role": "system", "content": "You put pages in order."},
            {"role": "user", "content": DIALOGUE},
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "organised", "strict": True, "schema": SCHEMA},
        },
        "max_completion_tokens": OUTPUT_TOKENS,
        "temperature": TEMPERATURE,
    }


@pytest.mark.parametrize("reply_format", [ReplyFormat.JSON_OBJECT, ReplyFormat.PROMPT])
async def test_without_json_schema_the_system_message_has_the_form(reply_format: ReplyFormat) -> None:
    async with talk(completion("{}"), dialect=replace(ALL, reply_format=reply_format)) as talked:
        await talked.chat.complete(REQUEST)
        (body,) = talked.server.bodies
    system, user = (message["content"] for message in body["messages"])
    assert system.startswith("You put pages in order.\n")
    assert json.dumps(SCHEMA, separators=(",", ":")) in system
    assert "json" in system.lower()
    assert user == DIALOGUE
    assert format_of(body) is reply_format


async def test_a_sketch_replaces_the_schema_in_the_system_message() -> None:
    request = replace(REQUEST, form=replace(FORM, sketch='{"topic":"..."}'))
    async with talk(completion("{}"), dialect=replace(ALL, reply_format=ReplyFormat.JSON_OBJECT)) as talked:
        await talked.chat.complete(request)
        (body,) = talked.server.bodies
    system = body["messages"][0]["content"]
    assert system.endswith('{"topic":"..."}')
    assert "additionalProperties" not in system
    assert "json" in system.lower()


async def test_schemas_omit_length_limits_for_servers_that_reject_them() -> None:
    topic: JsonValue = {"type": "string", "minLength": 1, "maxLength": 40}
    bounded: dict[str, JsonValue] = {
        "type": "object",
        "properties": {"maxLength": topic, "tags": {"type": "array", "items": topic}},
    }
    request = replace(REQUEST, form=ReplyForm("organised", bounded))
    sent = []
    for refuses in (False, True):
        async with talk(completion("{}"), rejects_length_limits=refuses) as talked:
            await talked.chat.complete(request)
            sent.append(talked.server.bodies[0]["response_format"]["json_schema"]["schema"])
    text = {"type": "string"}
    assert sent[0] == bounded
    assert sent[1] == {"type": "object", "properties": {"maxLength": text, "tags": {"type": "array", "items": text}}}


async def test_a_minimal_dialect_sends_only_model_and_messages() -> None:
    async with talk(completion("{}"), dialect=BAREST) as talked:
        await talked.chat.complete(REQUEST)
        (body,) = talked.server.bodies
    assert set(body) == {"model", "messages"}


async def test_a_request_without_a_key_has_none_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-another-account")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-of-another-account")
    async with talk(completion("{}"), key=None) as talked:
        await talked.chat.complete(REQUEST)
        (asked,) = talked.server.asked
    assert KEY not in str(asked)
    assert "of-another-account" not in str(asked)


async def test_requests_to_this_machine_bypass_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(variable, f"http://127.0.0.1:{free_port()}")
    async with talk(completion("{}")) as talked:
        assert (await talked.chat.complete(REQUEST)).text == "{}"


def test_openai_is_not_imported_before_the_first_call() -> None:
    program = "import sys, memoryos_mcp.llm.openai_chat; sys.exit('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


# Replies


async def test_a_reply_without_content_is_an_empty_text() -> None:
    async with talk(completion(None)) as talked:
        assert (await talked.chat.complete(REQUEST)).text == ""


@pytest.mark.parametrize(("finish_reason", "is_cut"), [("stop", False), ("length", True), (None, False)])
async def test_a_reply_that_reached_the_cap_is_marked_as_cut(finish_reason: str | None, is_cut: bool) -> None:
    async with talk(completion('{"topic": "Po', finish_reason=finish_reason)) as talked:
        assert (await talked.chat.complete(REQUEST)).is_cut is is_cut


async def test_missing_token_counts_are_estimated() -> None:
    text = '{"topic": "ポルト"}'
    async with talk(completion(text, tokens=None)) as talked:
        usage = (await talked.chat.complete(REQUEST)).usage
    assert usage.completion_tokens == estimate_tokens(text)
    assert usage.prompt_tokens >= estimate_tokens(DIALOGUE)


@pytest.mark.parametrize("usage", ["many", {"prompt_tokens": None, "completion_tokens": 3}, {"prompt_tokens": -1}, []])
async def test_invalid_token_counts_are_replaced_by_estimates(usage: object) -> None:
    body = {"choices": [{"message": {"content": "{}"}}], "usage": usage}
    async with talk(json_reply(body)) as talked:
        assert (await talked.chat.complete(REQUEST)).usage.completion_tokens == estimate_tokens("{}")


@pytest.mark.parametrize(
    "answer",
    [
        html("<html>Welcome to nginx, sk-live-4f9a8b7c6d5e</html>"),
        html("", status=200),
        json_reply({"choices": None}),
        json_reply({"choices": []}),
        json_reply({"choices": [{"text": "an old completion"}]}),
        json_reply({"models": ["tiny"]}),
        json_reply(["{}"]),
        json_reply(None),
        replace(json_reply({}), body=b'{"choices": [{"mess'),
        replace(json_reply({}), body=b"[" * 100_000),
        replace(json_reply({}), body=b"\xff\xfe{}"),
    ],
)
async def test_a_200_without_a_completion_is_an_error(answer: Answer) -> None:
    async with talk(answer) as talked:
        text = str(await failure(talked.chat))
        assert len(talked.server.asked) == 1
    assert "is not a chat API" in text
    assert "/v1" in text
    assert KEY not in text


# Retries


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
async def test_temporary_failures_are_retried_after_growing_pauses(status: int) -> None:
    answers = [html("busy", status=status)] * 2 + [completion("{}")]
    async with talk(answers) as talked:
        assert (await talked.chat.complete(REQUEST)).text == "{}"
    first_s, second_s = talked.pauses_s
    assert 0.5 <= first_s <= 1.5
    assert 1.0 <= second_s <= 3.0


async def test_a_call_fails_after_three_attempts() -> None:
    async with talk(api_error(503, f"overloaded: {DIALOGUE}", code="server_error")) as talked:
        text = str(await failure(talked.chat))
        assert len(talked.server.asked) == ATTEMPTS
    assert "HTTP 503, server_error" in text


@pytest.mark.parametrize("header", ["7", "7.0"])
async def test_a_retry_waits_as_long_as_the_server_asks(header: str) -> None:
    async with talk([api_error(429, headers={"retry-after": header}), completion("{}")]) as talked:
        await talked.chat.complete(REQUEST)
    assert talked.pauses_s == [7.0]


async def test_a_retry_waits_until_the_date_in_the_header() -> None:
    until = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    async with talk([api_error(503, headers={"retry-after": until}), completion("{}")]) as talked:
        await talked.chat.complete(REQUEST)
    assert 30 < talked.pauses_s[0] <= 40


async def test_there_is_no_retry_after_too_long_a_pause() -> None:
    async with talk(api_error(429, headers={"retry-after": "3600"})) as talked:
        text = str(await failure(talked.chat))
        assert len(talked.server.asked) == 1
    assert "3600 s" in text
    assert talked.pauses_s == []


@given(st.one_of(st.none(), st.text(), st.floats().map(str), st.datetimes().map(format_datetime)))
def test_any_retry_after_header_gives_a_number_of_seconds(header: str | None) -> None:
    seconds = retry_after_seconds(header, now=datetime(2026, 1, 1, tzinfo=UTC))
    assert 0.0 <= seconds < float("inf")


def test_a_retry_after_date_in_the_past_means_no_pause() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert retry_after_seconds("Wed, 31 Dec 2025 23:59:00 GMT", now=now) == 0.0
    assert retry_after_seconds("Thu, 01 Jan 2026 00:00:59 GMT", now=now) == 59.0 < LONGEST_RETRY_AFTER_S


async def test_a_broken_connection_is_retried() -> None:
    whole = completion('{"topic":"Porto"}')
    async with talk([replace(whole, sent_bytes=20), replace(whole, sent_bytes=0), whole]) as talked:
        assert (await talked.chat.complete(REQUEST)).text == '{"topic":"Porto"}'
        assert len(talked.server.asked) == 3


async def test_a_rate_limit_with_a_link_to_billing_is_retried() -> None:
    error = api_error(429, "Rate limit reached. Add a payment method at /account/billing.", code="rate_limit_exceeded")
    async with talk([error, completion("{}")]) as talked:
        assert (await talked.chat.complete(REQUEST)).text == "{}"


async def test_repeated_resets_are_an_error_about_the_connection() -> None:
    async with talk(replace(completion("{}"), sent_bytes=20)) as talked:
        assert "broke" in str(await failure(talked.chat))
        assert len(talked.server.asked) == ATTEMPTS


@pytest.mark.parametrize("answer", [Hang(), Drip()])
async def test_a_slow_server_times_out_without_a_retry(answer: Answer) -> None:
    # Long enough for the request to arrive on a busy machine; otherwise the server would see no hang-up.
    async with talk(answer, timeout_s=2) as talked:
        text = str(await failure(talked.chat))
        await talked.server.hung_up.wait()
        assert len(talked.server.asked) == 1
    assert "within 2 s" in text
    assert "llm_timeout_s" in text


# Connection errors


async def test_the_error_names_a_server_that_does_not_run() -> None:
    port = free_port()
    text = await failure_at(f"http://user:{PASSWORD}@127.0.0.1:{port}/v1?token={PASSWORD}")
    assert f"nothing answers at http://127.0.0.1:{port}/v1" in text
    assert PASSWORD not in text


async def test_the_error_names_a_host_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)

    def unknown(*args: object, **kwargs: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    text = await failure_at("http://llm.invalid/v1")
    assert "llm.invalid/v1 was not found" in text


async def test_a_server_without_tls_is_an_error() -> None:
    async with llm_server(completion("{}")) as server:
        text = await failure_at(server.base_url.replace("http:", "https:"))
    assert "no secure connection" in text


async def test_the_error_for_an_invalid_proxy_hides_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", f"nonsense://user:{PASSWORD}@proxy.example.com")
    text = await failure_at("http://llm.invalid/v1")
    assert "ALL_PROXY" in text
    assert PASSWORD not in text


@pytest.mark.parametrize("key", ["clé", "sk-\nlive"])
async def test_the_error_for_an_invalid_key_does_not_show_it(key: str) -> None:
    async with talk(completion("{}"), key=key) as talked:
        error = await failure(talked.chat)
    assert "key" in str(error)
    assert key not in str(error)


async def test_a_redirect_is_not_followed() -> None:
    async with llm_server(completion("{}")) as other:
        answer = replace(html("moved", status=307), headers={"location": f"{other.base_url}/chat/completions"})
        async with talk(answer) as talked:
            text = str(await failure(talked.chat))
        assert other.asked == []
    assert "redirect" in text


# Error responses


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (api_error(401, code="invalid_api_key"), ("HTTP 401, invalid_api_key", "DEEPSEEK_API_KEY")),
        (api_error(403), ("HTTP 403", "DEEPSEEK_API_KEY")),
        (api_error(404, code="model_not_found"), ("HTTP 404, model_not_found", "llm_model", "openai_base_url")),
        (html("not found", status=404), ("HTTP 404", "llm_model", "openai_base_url")),
        (api_error(400, "Model Not Exist"), ("HTTP 400", "llm_model")),
        (api_error(429, "You exceeded your quota", code="insufficient_quota"), ("no credit", "billing")),
        (api_error(402, "Insufficient Balance"), ("no credit", "HTTP 402")),
        (api_error(400, "Your credit balance is too low to access the API."), ("no credit", "HTTP 400")),
        (html("method not allowed", status=405), ("HTTP 405", "/v1")),
        (html("too large", status=413), ("HTTP 413", "llm_max_prompt_tokens")),
        (api_error(401, code="sk-live-4f9a8b7c6d5e"), ("(HTTP 401)",)),
        (api_error(401, code=401), ("(HTTP 401)",)),
    ],
)
async def test_a_refused_request_is_not_retried_and_says_what_to_do(error: Answer, words: tuple[str, ...]) -> None:
    async with talk(error, key_source="DEEPSEEK_API_KEY") as talked:
        text = str(await failure(talked.chat))
        assert len(talked.server.asked) == 1
    assert all(word in text for word in words), text


async def test_an_unset_key_has_its_own_error() -> None:
    async with talk(api_error(401), key=None) as talked:
        text = str(await failure(talked.chat))
    assert "requires a key" in text
    assert "set openai_api_key" in text


TOO_LONG = [
    api_error(400, f"This model's maximum context length is 8192 tokens. {DIALOGUE}", code="context_length_exceeded"),
    api_error(400, "request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it"),
    api_error(400, "prompt is too long: 208310 tokens > 200000 maximum"),
    api_error(400, "Range of input length should be [1, 30720]"),
    api_error(500, "Context size has been exceeded."),
]


@pytest.mark.parametrize("error", TOO_LONG)
async def test_too_long_a_prompt_does_not_change_the_reply_format(error: Answer) -> None:
    async with talk(error) as talked:
        text = str(await failure(talked.chat))
        assert {format_of(body) for body in talked.server.bodies} == {ReplyFormat.JSON_SCHEMA}
        assert len(talked.server.asked) == 2
        assert talked.pauses_s == []
    assert "llm_max_prompt_tokens" in text


@pytest.mark.parametrize("error", TOO_LONG)
async def test_a_cap_that_exceeds_the_context_is_dropped(error: Answer) -> None:
    async with talk(refusing(lambda body: "max_completion_tokens" in body, error)) as talked:
        await talked.chat.complete(REQUEST)
        (_, body) = talked.server.bodies
    assert format_of(body) is ReplyFormat.JSON_SCHEMA


# The dialect


LADDER = [
    ("response_format", api_error(400, "response_format.type `json_schema` is unavailable now")),
    ("response_format", api_error(422, "Unprocessable Entity")),
    ("response_format", api_error(400, "'response_format' is not supported", param="response_format")),
    ("temperature", api_error(400, "`temperature` is deprecated for this model.")),
    ("temperature", api_error(400, "Only the default (1) value is supported.", param="temperature")),
    ("max_completion_tokens", json_reply({"detail": [{"loc": ["body", "max_completion_tokens"]}]}, status=422)),
]


@pytest.mark.parametrize(("refused", "error"), LADDER)
async def test_only_the_refused_parameter_is_omitted(refused: str, error: Answer) -> None:
    async with talk(refusing(lambda body: refused in body, error)) as talked:
        assert (await talked.chat.complete(REQUEST)).text == "{}"
        first, *_, last = talked.server.bodies
    assert set(first) - set(last) == {refused}


@pytest.mark.parametrize(("refused", "error"), LADDER)
async def test_an_accepted_dialect_is_used_for_the_next_request(refused: str, error: Answer) -> None:
    async with talk(refusing(lambda body: refused in body, error)) as talked:
        await talked.chat.complete(REQUEST)
        asked_at_first = len(talked.server.asked)
        await talked.chat.complete(REQUEST)
        bodies = talked.server.bodies
    assert len(bodies) == asked_at_first + 1
    assert bodies[-1] == bodies[-2]


async def test_reply_formats_are_tried_from_strict_to_simple() -> None:
    async with talk(refusing(lambda body: "response_format" in body, api_error(400))) as talked:
        await talked.chat.complete(REQUEST)
        assert [format_of(body) for body in talked.server.bodies] == list(ReplyFormat)


@pytest.mark.parametrize(
    ("sent", "wanted"), [("max_tokens", "max_completion_tokens"), ("max_completion_tokens", "max_tokens")]
)
async def test_a_refused_cap_is_sent_under_its_other_name(sent: Any, wanted: Any) -> None:
    error = api_error(400, f"Unsupported parameter: '{sent}'. Use '{wanted}' instead.", param=sent)
    async with talk(refusing(lambda body: sent in body, error), dialect=replace(ALL, cap=sent)) as talked:
        await talked.chat.complete(REQUEST)
        _, body = talked.server.bodies
    assert body[wanted] == OUTPUT_TOKENS


async def test_thinking_is_disabled_only_if_the_server_supports_that() -> None:
    error = api_error(400, "parameter.enable_thinking must be set to false for non-streaming calls")
    async with talk(refusing(lambda body: "enable_thinking" not in body, error)) as talked:
        await talked.chat.complete(REQUEST)
        assert talked.server.bodies[-1]["enable_thinking"] is False
    error = api_error(400, "Unrecognized request argument: enable_thinking")
    dialect = replace(ALL, disables_thinking=True)
    async with talk(refusing(lambda body: "enable_thinking" in body, error), dialect=dialect) as talked:
        await talked.chat.complete(REQUEST)
        assert len(talked.server.asked) == 2


async def test_refused_parameters_are_removed_one_after_another() -> None:
    def answer(asked: Asked) -> Answer:
        for name in ("temperature", "max_completion_tokens", "max_tokens", "response_format"):
            if name in asked.body:
                return api_error(400, f"unknown argument {name}")
        return completion("{}")

    async with talk(answer) as talked:
        await talked.chat.complete(REQUEST)
        assert set(talked.server.bodies[-1]) == {"model", "messages"}


@pytest.mark.parametrize("message", ["", "temperature, max_tokens, response_format and enable_thinking are all wrong"])
@pytest.mark.parametrize("dialect", [ALL, BAREST])
async def test_after_all_dialects_fail_the_next_call_tries_them_again(message: str, dialect: Dialect) -> None:
    async with talk(api_error(400, message, code="bad_request"), dialect=dialect) as talked:
        text = str(await failure(talked.chat))
        first = talked.server.bodies
        assert len({json.dumps(body) for body in first}) == len(first) < 20
        await failure(talked.chat)
        assert talked.server.bodies == first * 2
    assert "HTTP 400, bad_request" in text


@pytest.mark.parametrize("provider", PRESETS)
async def test_every_preset_has_a_valid_dialect(provider: LlmProvider) -> None:
    preset = PRESETS[provider]
    async with talk(completion("{}"), dialect=Dialect(preset.reply_format, preset.cap), provider=provider) as talked:
        await talked.chat.complete(REQUEST)
        (body,) = talked.server.bodies
    assert format_of(body) is preset.reply_format
    assert body[preset.cap] == OUTPUT_TOKENS < REASONING_OUTPUT_TOKENS


# Secrets


@pytest.mark.parametrize("status", [200, 307, 400, 401, 403, 404, 413, 422, 429, 500])
async def test_errors_and_logs_contain_no_key_dialogue_or_server_text(
    status: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_LOG", "debug")
    caplog.set_level(logging.DEBUG)
    words = f"your key {KEY} may not say {DIALOGUE}: {PASSWORD}"
    async with talk(api_error(status, words, code=words, param=words)) as talked:
        error = await failure(talked.chat)
        told = [str(error), repr(error), "".join(traceback.format_exception(error)), caplog.text, repr(talked.chat)]
    assert "\n" not in str(error)
    for secret in (KEY, DIALOGUE, PASSWORD):
        assert not any(secret in text for text in told)


async def test_credentials_in_an_address_are_used_and_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with asyncio.timeout(TIME_LIMIT_S), llm_server([api_error(400), completion("{}")]) as server:
        endpoint = endpoint_at(server.base_url.replace("//", f"//user:{PASSWORD}@"), key=None)
        chat = OpenAIChat(endpoint, timeout_s=20, max_concurrent_calls=1)
        await chat.complete(REQUEST)
        await chat.aclose()
        assert server.asked[0].headers["authorization"].startswith("Basic ")
    assert server.base_url in caplog.text
    assert PASSWORD not in caplog.text


# Concurrent calls


async def test_concurrent_calls_are_limited() -> None:
    waves = asyncio.Barrier(3)

    async def answer(asked: Asked) -> Answer:
        await waves.wait()
        return completion("{}")

    async with talk(answer, max_concurrent_calls=3) as talked:
        await asyncio.gather(*(talked.chat.complete(REQUEST) for _ in range(12)))
        assert talked.server.most_at_once == 3


async def test_a_call_that_waits_for_a_retry_does_not_block_others() -> None:
    is_second_done = asyncio.Event()

    async def pause(seconds: float) -> None:
        await is_second_done.wait()

    async with asyncio.timeout(TIME_LIMIT_S), llm_server([api_error(503), completion("{}")]) as server:
        chat = OpenAIChat(endpoint_at(server.base_url), timeout_s=20, max_concurrent_calls=1, pause=pause)
        async with asyncio.TaskGroup() as callers:
            callers.create_task(chat.complete(REQUEST))
            await server.was_asked(1)
            await chat.complete(REQUEST)
            is_second_done.set()
        await chat.aclose()


async def test_a_cancelled_call_ends_and_lets_the_next_one_start() -> None:
    async with talk([Hang(), completion("{}")], max_concurrent_calls=1) as talked, asyncio.TaskGroup() as callers:
        call = callers.create_task(talked.chat.complete(REQUEST))
        queued = callers.create_task(talked.chat.complete(REQUEST))
        await talked.server.was_asked(1)
        queued.cancel()
        call.cancel()
        await asyncio.wait([call, queued])
        assert call.cancelled()
        assert queued.cancelled()
        await talked.server.hung_up.wait()
        assert (await talked.chat.complete(REQUEST)).text == "{}"


async def test_concurrent_calls_find_the_dialect_together() -> None:
    async with talk(refusing(lambda body: "response_format" in body, api_error(400))) as talked:
        await asyncio.gather(*(talked.chat.complete(REQUEST) for _ in range(5)))
        asked = len(talked.server.asked)
        await talked.chat.complete(REQUEST)
        assert len(talked.server.asked) == asked + 1


# Closing


async def test_a_closed_chat_sends_nothing_and_can_be_closed_again() -> None:
    async with talk(completion("{}")) as talked:
        await talked.chat.complete(REQUEST)
        await talked.chat.aclose()
        await talked.chat.aclose()
        assert "closed" in str(await failure(talked.chat))
        assert len(talked.server.asked) == 1


async def test_an_unused_chat_can_be_closed() -> None:
    async with talk(completion("{}")) as talked:
        await talked.chat.aclose()
        assert "closed" in str(await failure(talked.chat))
        assert talked.server.asked == []


async def test_running_calls_fail_when_the_chat_is_closed() -> None:
    async with talk(Hang(), max_concurrent_calls=1) as talked, asyncio.TaskGroup() as callers:
        calls = [callers.create_task(failure(talked.chat)) for _ in range(2)]
        await talked.server.was_asked(1)
        await talked.chat.aclose()
        errors = await asyncio.gather(*calls)
        assert all("closed" in str(error) for error in errors)
        assert len(talked.server.asked) == 1
