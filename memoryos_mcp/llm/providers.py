"""LLM providers: the address, API key and supported parameters of each provider's OpenAI-compatible chat API.

This module lists the known differences between providers, each with its source. The client detects other differences
from error responses. This module does no I/O; the caller passes in the environment variables.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlsplit

from pydantic import SecretStr

from memoryos_mcp.config import LlmProvider, Settings
from memoryos_mcp.errors import ConfigError
from memoryos_mcp.llm.api import Api, Wording

# The temperature is low, because replies must be factual. With 0, small models may repeat themselves endlessly.
TEMPERATURE = 0.2
# Path of the chat API below the base URL. Users often include this path when they paste the base URL.
CHAT_PATH = "/chat/completions"
# Several times the length of the longest reply that a prompt requests.
OUTPUT_TOKENS = 8192
# Hidden reasoning counts as output. With the lower limit, no tokens might be left for the reply.
REASONING_OUTPUT_TOKENS = 32_768

KEY_SETTING = "openai_api_key"
WORDING = Wording(
    name="the LLM",
    url_setting="openai_base_url",
    timeout_setting="llm_timeout_s",
    model_setting="llm_model",
    rate_limit_advice="lower llm_max_concurrent_calls",
)

_REASONING_MODEL = re.compile(
    r"""
    ^(?: o\d (?!\w) | gpt-5 | gpt-oss | deepseek-(?:reasoner|r\d|v[4-9]) | q[wv]q | qwen3 | magistral )
    | [-_]r1 (?!\w) | thinking | reasoning
    """,
    re.VERBOSE,
)
# Qwen3 thinks by default, but supports thinking only in streams. QwQ and "-thinking" models cannot disable thinking.
_QWEN_THINKING_OPTIONAL = re.compile(r"^qwen3(?!.*thinking)")

CapName = Literal["max_completion_tokens", "max_tokens"]


class ReplyFormat(StrEnum):
    """Ways to request a reply in JSON, the strictest first."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    PROMPT = "prompt"


@dataclass(frozen=True, slots=True)
class Dialect:
    """The parameters of a request that differ between servers and models.

    Attributes:
        reply_format: How a reply in JSON is requested.
        cap: Name of the parameter that limits the tokens of the reply; None to set no limit.
        temperature: The temperature, from 0 to 1; None to use the server's default.
        disables_thinking: Whether to send ``enable_thinking: false``, which only some servers support.
    """

    reply_format: ReplyFormat
    cap: CapName | None
    temperature: float | None = TEMPERATURE
    disables_thinking: bool = False


@dataclass(frozen=True, slots=True)
class Preset:
    """The properties of a provider's API, according to its documentation.

    Attributes:
        base_url: Default address of the API.
        key_variables: Environment variables for the key, in order of precedence; empty if the API needs no key.
        hosts: Host names of the provider. Their subdomains also belong to the provider.
        reply_format: The strictest reply format that the API supports.
        cap: Name of the parameter that limits the tokens of a reply.
        rejects_length_limits: Whether the API refuses JSON schemas with ``minLength`` or ``maxLength``.
        disable_thinking_for: Pattern for the names of some models. Requests to these models must contain
            ``enable_thinking: false``. None if there are no such models.
    """

    base_url: str
    key_variables: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    reply_format: ReplyFormat = ReplyFormat.JSON_SCHEMA
    cap: CapName = "max_tokens"
    rejects_length_limits: bool = False
    disable_thinking_for: re.Pattern[str] | None = None


PRESETS: Mapping[LlmProvider, Preset] = MappingProxyType(
    {
        # https://platform.openai.com/docs/api-reference/chat: max_tokens is deprecated; reasoning models refuse it.
        # https://platform.openai.com/docs/guides/structured-outputs: the supported schema keywords.
        "openai": Preset(
            base_url="https://api.openai.com/v1",
            key_variables=("OPENAI_API_KEY",),
            hosts=("api.openai.com",),
            cap="max_completion_tokens",
            rejects_length_limits=True,
        ),
        # https://docs.anthropic.com/en/api/openai-sdk: response_format is ignored.
        "anthropic": Preset(
            base_url="https://api.anthropic.com/v1",
            key_variables=("ANTHROPIC_API_KEY",),
            hosts=("api.anthropic.com",),
            reply_format=ReplyFormat.PROMPT,
        ),
        # https://api-docs.deepseek.com/guides/json_mode: json_object only; the prompt must contain the word "json".
        "deepseek": Preset(
            base_url="https://api.deepseek.com",
            key_variables=("DEEPSEEK_API_KEY",),
            hosts=("api.deepseek.com",),
            reply_format=ReplyFormat.JSON_OBJECT,
        ),
        # https://www.alibabacloud.com/help/en/model-studio/qwen-structured-output: json_schema for a few models only.
        # The address is for the region Singapore; other regions have other addresses and keys.
        "qwen": Preset(
            base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
            key_variables=("QWEN_API_KEY", "DASHSCOPE_API_KEY"),
            hosts=(
                "dashscope.aliyuncs.com",
                "dashscope-intl.aliyuncs.com",
                "dashscope-us.aliyuncs.com",
                "maas.aliyuncs.com",
            ),
            reply_format=ReplyFormat.JSON_OBJECT,
            disable_thinking_for=_QWEN_THINKING_OPTIONAL,
        ),
        # https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html
        "vllm": Preset(base_url="http://localhost:8000/v1"),
        # https://github.com/hiyouga/LlamaFactory, src/llamafactory/api/protocol.py: response_format is ignored.
        "llama-factory": Preset(base_url="http://localhost:8000/v1", reply_format=ReplyFormat.PROMPT),
        # https://docs.ollama.com/api/openai-compatibility; its page on structured outputs advises showing the schema.
        "ollama": Preset(base_url="http://localhost:11434/v1"),
        # https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
        "llama.cpp": Preset(base_url="http://localhost:8080/v1"),
    }
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model and the API that serves it. Its ``repr`` contains neither the key nor other credentials.

    Attributes:
        provider: The provider whose preset applies; None if only the server's address is known.
        model: The model's name in the API.
        api: The address and key of the API.
        dialect: The request parameters to try first. If the API refuses them, simpler ones are tried.
        rejects_length_limits: Whether the API refuses JSON schemas with ``minLength`` or ``maxLength``.
        output_tokens: Maximum number of tokens in one reply.
    """

    provider: LlmProvider | None
    model: str
    api: Api
    dialect: Dialect
    rejects_length_limits: bool
    output_tokens: int


def endpoint_of(settings: Settings, environment: Mapping[str, str]) -> Endpoint | None:
    """Return the configured LLM endpoint; None if no LLM is configured.

    If `llm_provider` is set, that provider's default address is used, and the provider's key is read from the
    environment. If set, `openai_base_url` and `openai_api_key` are used instead.

    A key is usable if it is not a placeholder and is valid in an HTTP header. If `llm_provider` is not set, there are
    three cases:

    - With a usable `openai_api_key`, the endpoint is the server at `openai_base_url`, or OpenAI if no URL is set.
    - With only a URL, the endpoint is the server at this URL, without a key. If the URL belongs to a provider that
      needs a key, the result is None, because the settings were probably copied from a template.
    - With neither, the result is None.

    A key in the environment does not enable the LLM by itself. Most users have set it for other programs and have not
    agreed that their dialogue is sent to the provider.

    Args:
        settings: The configuration.
        environment: Environment variables. Only those for the key of the configured provider are read.

    Raises:
        ConfigError: `llm_provider` needs a key, and no usable key is set. The message names the variables to set.
    """
    if settings.llm_provider is not None:
        return _named(settings, settings.llm_provider, environment)
    url = settings.openai_base_url
    provider = "openai" if url is None else _provider_at(url)
    if settings.has_llm_key:
        return _endpoint(settings, provider, key=settings.openai_api_key)
    return _endpoint(settings, None, key=None) if provider is None else None


def is_reasoning_model(model: str) -> bool:
    """Return whether a model's name shows that the model reasons before it replies.

    Such models accept no temperature, and need more tokens for a reply than other models.
    """
    return _REASONING_MODEL.search(_bare(model)) is not None


def _named(settings: Settings, provider: LlmProvider, environment: Mapping[str, str]) -> Endpoint:
    if settings.has_llm_key:
        return _endpoint(settings, provider, key=settings.openai_api_key)
    variables = PRESETS[provider].key_variables
    for variable in variables:
        key = SecretStr(environment.get(variable, "").strip())
        # A placeholder in an environment variable is ignored too.
        if settings.model_copy(update={KEY_SETTING: key}).has_llm_key:
            return _endpoint(settings, provider, key=key, key_source=variable)
    if variables:
        held = next((variable for variable in variables if environment.get(variable, "").strip()), None)
        problem = "needs a key" if held is None else f"needs a key, but {held} contains only a placeholder"
        names = " or ".join(variables)
        message = f"llm_provider: {provider} {problem}; set {names} in the environment, or set {KEY_SETTING}"
        raise ConfigError(message)
    return _endpoint(settings, provider, key=None)


def _endpoint(
    settings: Settings, provider: LlmProvider | None, *, key: SecretStr | None, key_source: str = KEY_SETTING
) -> Endpoint:
    # Most servers support vLLM's dialect.
    preset = PRESETS[provider or "vllm"]
    base_url = re.sub(rf"{CHAT_PATH}/*$", "", settings.openai_base_url or preset.base_url)
    reasons = is_reasoning_model(settings.llm_model)
    thinking = preset.disable_thinking_for
    disables_thinking = thinking is not None and thinking.search(_bare(settings.llm_model)) is not None
    stripped_key = None if key is None else SecretStr(key.get_secret_value().strip())
    return Endpoint(
        provider=provider,
        model=settings.llm_model,
        api=Api(base_url, stripped_key, key_source, WORDING),
        dialect=Dialect(
            preset.reply_format,
            preset.cap,
            temperature=None if reasons else TEMPERATURE,
            disables_thinking=disables_thinking,
        ),
        rejects_length_limits=preset.rejects_length_limits and _provider_at(base_url) == provider,
        output_tokens=REASONING_OUTPUT_TOKENS if reasons and not disables_thinking else OUTPUT_TOKENS,
    )


def _provider_at(url: str) -> LlmProvider | None:
    """Return the provider to which the host of a URL belongs; None for other hosts."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    for provider, preset in PRESETS.items():
        if any(host == known or host.endswith(f".{known}") for known in preset.hosts):
            return provider
    return None


def _bare(model: str) -> str:
    """Return the name of a model in lower case, without a prefix such as "openai/"."""
    return model.strip().lower().rpartition("/")[2]
