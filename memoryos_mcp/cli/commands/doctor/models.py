"""Checks that send a small request to the configured models, and hints about the cause of a failure.

The request is a fixed text. It contains nothing from a memory.
"""

import asyncio
import importlib
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import anyio
import anyio.to_thread
import click
from pydantic import BaseModel

from memoryos_mcp.cli.commands.common import try_model
from memoryos_mcp.cli.commands.doctor.checks import Check, failed, failed_by, parts, passed, warned
from memoryos_mcp.config import LlmProvider, Settings
from memoryos_mcp.embedding.api import embeddings_api
from memoryos_mcp.embedding.embedders import configured_model
from memoryos_mcp.errors import ModelError, ReplyFormatError
from memoryos_mcp.llm.api import Api
from memoryos_mcp.llm.chat import ChatReply, ChatRequest, Message, Purpose, ReplyForm
from memoryos_mcp.llm.openai_chat import OpenAIChat
from memoryos_mcp.llm.providers import KEY_SETTING, PRESETS, Endpoint, ReplyFormat
from memoryos_mcp.llm.replies import json_object

# Time limits in seconds. They are short, because a person is waiting for the result.
LONGEST_WAIT_S = 30.0
LONGEST_PAUSE_S = 1.0
PROBE_TIMEOUT_S = 5.0
SLOW_LOAD_S = 1.0
MODELS_SHOWN = 10
MODEL_NAME_MAX_CHARS = 100

REQUEST = ChatRequest(
    purpose=Purpose.CHECK,
    messages=(Message("system", "You check a connection."), Message("user", 'Set "ok" to true.')),
    form=ReplyForm(
        name="check",
        schema={
            "type": "object",
            "properties": {"ok": {"type": "boolean"}},
            "required": ["ok"],
            "additionalProperties": False,
        },
        sketch='{"ok": true}',
    ),
)

_VERSIONED = re.compile(r"/v\d+\w*$")
_STARTED_WITH: Mapping[LlmProvider, str] = {
    "vllm": "vllm serve MODEL",
    "llama-factory": "llamafactory-cli api CONFIG.yaml",
    "ollama": "ollama serve",
    "llama.cpp": "llama-server -m MODEL.gguf",
}
_EMBEDDINGS_STARTED_WITH: Mapping[LlmProvider, str] = {
    "vllm": "vllm serve MODEL",
    "ollama": "ollama serve",
    "llama.cpp": "llama-server -m MODEL.gguf --embeddings",
}
_FORMS = {
    ReplyFormat.JSON_SCHEMA: "the request requires the JSON schema (json_schema)",
    ReplyFormat.JSON_OBJECT: "the request requires JSON (json_object)",
    ReplyFormat.PROMPT: "only the prompt asks for JSON",
}


def configured(settings: Settings, endpoint: Endpoint | None) -> str:
    """Return a description of the configured LLM, including where its API key comes from."""
    if settings.llm_replay_file is not None:
        return "the LLM's replies come from a file (llm_replay_file)"
    if endpoint is None:
        return "no LLM is configured"
    api = endpoint.api
    source = KEY_SETTING if api.key_source == KEY_SETTING else f"the variable {api.key_source}"
    key = "not set" if api.key is None else f"set (from {source})"
    provider = f"provider {endpoint.provider}" if endpoint.provider else "no provider set"
    return f"{provider}, address {api.address}, model {endpoint.model}, key {key}"


def how_to_use_one(environment: Mapping[str, str]) -> str:
    """Return instructions for configuring an LLM.

    If the environment contains a provider's API key, the instructions are for this provider.
    """
    for provider, preset in PRESETS.items():
        for variable in preset.key_variables:
            if environment.get(variable, "").strip():
                return f"set llm_provider to {provider}, and set llm_model; {variable} alone does not enable an LLM"
    return (
        f"set llm_provider ({', '.join(PRESETS)}) and llm_model, and the key if the provider needs one; "
        "for any other server, set openai_base_url and llm_model"
    )


async def check_embedder(settings: Settings) -> Check:
    """Check whether the embedding model works. The model may run in this process or behind an API."""
    name = "embedding_model"
    model = configured_model(settings)
    if model is None:
        return passed(name, "no embedding model is configured, so search uses only keywords")
    try:
        tried = await try_model(model, settings)
    except ModelError as error:
        if settings.embedding_base_url is None:
            return failed_by(name, error)
        api = embeddings_api(settings.embedding_base_url, settings.embedding_key)
        return await _failed_call(name, error, api, model.name, None, _EMBEDDINGS_STARTED_WITH)
    where = "on this machine" if model.base_url is None else f"at the embeddings API {model.base_url}"
    took = f", loaded in {tried.load_s:,.1f} s" if tried.load_s > SLOW_LOAD_S else ""
    return passed(name, f"{model.name} {where} works; its vectors have {tried.dimension:,} dimensions{took}")


def check_replay(path: Path) -> Check:
    """Check whether the file with the recorded replies of the LLM exists."""
    found = f"no LLM is called, because replies are read from {path}"
    if path.exists():
        return passed("llm", found)
    fix = (
        "the server writes its requests to a .missing.jsonl file in the folder of llm_replay_file; "
        "send these requests to a batch API, and save the replies at the path in llm_replay_file"
    )
    return warned("llm", f"{found}, but this file does not exist yet", fix)


async def check_llm(settings: Settings, endpoint: Endpoint) -> list[Check]:
    """Send one request to the LLM. Return a check of the connection and, if a reply arrives, a check of the reply."""
    if sys.stderr.isatty():
        click.echo(f"sending a request to the LLM at {endpoint.api.address} ...", err=True)
    with suppress(ImportError):  # imported here so that the import is not measured; the chat reports an ImportError
        await anyio.to_thread.run_sync(importlib.import_module, "openai")
    chat = OpenAIChat(endpoint, timeout_s=settings.llm_timeout_s, max_concurrent_calls=1, pause=_pause_briefly)
    began = time.perf_counter()
    try:
        async with asyncio.timeout(LONGEST_WAIT_S):
            reply = await chat.complete(REQUEST)
    except TimeoutError:
        found = f"the LLM at {endpoint.api.address} did not finish its reply within {LONGEST_WAIT_S:g} s"
        fix = "try again if the server is still loading its model; otherwise choose a faster model"
        return [failed("llm", found, fix)]
    except ModelError as error:
        return [await _failed_call("llm", error, endpoint.api, endpoint.model, endpoint.provider, _STARTED_WITH)]
    finally:
        await chat.aclose()
    took_ms = (time.perf_counter() - began) * 1000
    tokens = f"{reply.usage.prompt_tokens:,} prompt tokens, {reply.usage.completion_tokens:,} reply tokens"
    return [passed("llm", f"replied in {took_ms:,.0f} ms, {tokens}"), _check_reply(reply, chat.reply_format)]


async def _pause_briefly(seconds: float) -> None:
    await asyncio.sleep(min(seconds, LONGEST_PAUSE_S))


def _check_reply(reply: ChatReply, reply_format: ReplyFormat) -> Check:
    name, form = "llm_reply", _FORMS[reply_format]
    fix = (
        "choose a larger model, or a server that enforces a JSON schema; otherwise pages are organised without the LLM"
    )
    try:
        is_valid = json_object(reply).get("ok") is True
    except ReplyFormatError as error:
        return failed(name, f"{parts(error)[0]}; {form}", fix)
    if is_valid:
        return passed(name, f"the reply is the requested JSON; {form}")
    return warned(name, f"the reply is JSON, but not the requested object; {form}", fix)


async def _failed_call(
    name: str,
    error: ModelError,
    api: Api,
    model: str,
    provider: LlmProvider | None,
    started_with: Mapping[LlmProvider, str],
) -> Check:
    """Return the result of a check whose request to a model failed.

    The ``fix`` of the result contains hints: how to start a local server, which models the server has, or which
    address is correct.
    """
    found, fix = parts(error)
    hints = [fix or f"try again; if the problem persists, see the log of {api.wording.name}'s server"]
    if api.is_on_this_machine and not await _is_listening(api):
        provider = provider or _provider_at_port(api, started_with)
        if provider is not None and provider in started_with:
            hints.append(f"start {provider} with: {started_with[provider]}")
    elif names := await _model_names(api):
        if model not in names:
            hints.append(f"the server has these models: {_nearest(names, model)}")
    elif not _VERSIONED.search(api.address):
        versioned = replace(api, base_url=_with_version(api.base_url))
        if await _model_names(versioned):
            hints.append(f"an API replies at {versioned.address}: set {api.wording.url_setting} to that address")
    return failed(name, found, "; ".join(hints))


def _nearest(names: Sequence[str], model: str) -> str:
    """Return a comma-separated list of the names that are most similar to ``model``, the most similar name first.

    The list contains at most `MODELS_SHOWN` names, followed by the number of further names.
    """
    nearest = sorted(names, key=lambda name: -SequenceMatcher(None, name, model).ratio())
    more = f" and {len(names) - MODELS_SHOWN} more" if len(names) > MODELS_SHOWN else ""
    return ", ".join(nearest[:MODELS_SHOWN]) + more


def _with_version(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/v1"))


async def _is_listening(api: Api) -> bool:
    """Return whether a server on this machine accepts connections at the port of an API."""
    parts = urlsplit(api.base_url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            stream = await anyio.connect_tcp(parts.hostname or "", port)
    except (OSError, TimeoutError):
        return False
    await stream.aclose()
    return True


def _provider_at_port(api: Api, providers: Iterable[LlmProvider]) -> LlmProvider | None:
    """Return the first provider that uses the API's port by default, or None if there is no such provider."""
    port = urlsplit(api.base_url).port
    return next((name for name in providers if urlsplit(PRESETS[name].base_url).port == port), None)


class _Model(BaseModel):
    id: str


class _Models(BaseModel):
    data: list[_Model]


async def _model_names(api: Api) -> list[str]:
    """Return the names of the models that an API offers. The list is empty if the API cannot list its models."""
    try:
        import openai
    except ImportError:
        return []
    key = "none" if api.key is None else api.key.get_secret_value()
    http_client = openai.DefaultAsyncHttpxClient(follow_redirects=False, trust_env=not api.is_on_this_machine)
    try:
        client = openai.AsyncOpenAI(api_key=key, base_url=api.base_url, max_retries=0, http_client=http_client)
        client.organization = client.project = None  # in the environment, they may belong to another account
        async with asyncio.timeout(PROBE_TIMEOUT_S), client:
            reply = await client.models.with_raw_response.list()
            models = _Models.model_validate_json(reply.content)
    except (openai.OpenAIError, ValueError, RuntimeError, OSError):
        return []
    return [model.id for model in models.data if _is_showable(model.id, key)]


def _is_showable(name: str, key: str) -> bool:
    """Return whether a server's model name is short, printable and free of the API key."""
    return 0 < len(name) <= MODEL_NAME_MAX_CHARS and name.isprintable() and key not in name
