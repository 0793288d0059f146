"""Providers: the address, the key and the dialect of the OpenAI chat API of each LLM provider.

Differences between providers are data here, with their sources. What an endpoint still refuses is learned from its
answers. This module uses no network and does not read the environment: the caller passes that in.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlsplit

from pydantic import SecretStr

from memoryos_mcp.config import LlmProvider, Settings
from memoryos_mcp.errors import ConfigError
from memoryos_mcp.llm.api import Api, Wording

# Low, since facts are asked for. Not 0, at which small models repeat themselves endlessly.
TEMPERATURE = 0.2
# Path of the chat API below the base URL; users often paste both.
CHAT_PATH = "/chat/completions"
# Several times the longest reply asked for.
OUTPUT_TOKENS = 8192
# Hidden reasoning counts as output: the smaller cap might leave nothing for the reply.
REASONING_OUTPUT_TOKENS = 32_768

KEY_SETTING = "openai_api_key"
_WORDING = Wording(
    what="the LLM",
    url_setting="openai_base_url",
    timeout_setting="llm_timeout_s",
    model_setting="llm_model",
    relief="lower llm_max_concurrent_calls",
)

_REASONING_MODEL = re.compile(
    r"""
    ^(?: o\d (?!\w) | gpt-5 | gpt-oss | deepseek-(?:reasoner|r\d|v[4-9]) | q[wv]q | qwen3 | magistral )
    | [-_]r1 (?!\w) | thinking | reasoning
    """,
    re.VERBOSE,
)
# Qwen3 thinks unless told not to, and only in streams. QwQ and "-thinking" models cannot be told not to.
_QWEN_TOLD_NOT_TO_THINK = re.compile(r"^qwen3(?!.*thinking)")

CapName = Literal["max_completion_tokens", "max_tokens"]


class FormRung(StrEnum):
    """How the form of a reply is requested, from the strictest way to the plainest."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    PROMPT = "prompt"


@dataclass(frozen=True, slots=True)
class Dialect:
    """The parameters of a request other than model and messages.

    Attributes:
        rung: How the reply's form is requested.
        cap: Name of the parameter that limits the reply's tokens; None leaves the limit to the server.
        temperature: From 0 to 1; None leaves it to the server.
        forbids_thinking: Whether to send ``enable_thinking: false``, which only some servers know.
    """

    rung: FormRung
    cap: CapName | None
    temperature: float | None = TEMPERATURE
    forbids_thinking: bool = False


@dataclass(frozen=True, slots=True)
class Preset:
    """What a provider's documentation says.

    Attributes:
        base_url: Default address of the API.
        key_variables: Environment variables for the key, of which the first that is set counts; empty if it needs none.
        hosts: The provider's own host names; their subdomains count too.
        rung: The strictest form that it honours.
        cap: Its name for the limit of a reply's tokens.
        refuses_lengths: Whether its JSON schemas support neither ``minLength`` nor ``maxLength``.
        told_not_to_think: Models that ``enable_thinking: false`` is sent to.
    """

    base_url: str
    key_variables: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    rung: FormRung = FormRung.JSON_SCHEMA
    cap: CapName = "max_tokens"
    refuses_lengths: bool = False
    told_not_to_think: re.Pattern[str] | None = None


PRESETS: Mapping[LlmProvider, Preset] = MappingProxyType(
    {
        # https://platform.openai.com/docs/api-reference/chat: max_tokens is deprecated, reasoning models refuse it.
        # https://platform.openai.com/docs/guides/structured-outputs: the supported schema keywords.
        "openai": Preset(
            base_url="https://api.openai.com/v1",
            key_variables=("OPENAI_API_KEY",),
            hosts=("api.openai.com",),
            cap="max_completion_tokens",
            refuses_lengths=True,
        ),
        # https://docs.anthropic.com/en/api/openai-sdk: response_format is ignored.
        "anthropic": Preset(
            base_url="https://api.anthropic.com/v1",
            key_variables=("ANTHROPIC_API_KEY",),
            hosts=("api.anthropic.com",),
            rung=FormRung.PROMPT,
        ),
        # https://api-docs.deepseek.com/guides/json_mode: json_object only, and the prompt must say "json".
        "deepseek": Preset(
            base_url="https://api.deepseek.com",
            key_variables=("DEEPSEEK_API_KEY",),
            hosts=("api.deepseek.com",),
            rung=FormRung.JSON_OBJECT,
        ),
        # https://www.alibabacloud.com/help/en/model-studio/qwen-structured-output: json_schema with a few models only.
        # The address is Singapore's; other regions have other addresses and keys.
        "qwen": Preset(
            base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
            key_variables=("QWEN_API_KEY", "DASHSCOPE_API_KEY"),
            hosts=(
                "dashscope.aliyuncs.com",
                "dashscope-intl.aliyuncs.com",
                "dashscope-us.aliyuncs.com",
                "maas.aliyuncs.com",
            ),
            rung=FormRung.JSON_OBJECT,
            told_not_to_think=_QWEN_TOLD_NOT_TO_THINK,
        ),
        # https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html
        "vllm": Preset(base_url="http://localhost:8000/v1"),
        # https://github.com/hiyouga/LlamaFactory, src/llamafactory/api/protocol.py: response_format is ignored.
        "llama-factory": Preset(base_url="http://localhost:8000/v1", rung=FormRung.PROMPT),
        # https://docs.ollama.com/api/openai-compatibility; its page on structured outputs advises showing the schema.
        "ollama": Preset(base_url="http://localhost:11434/v1"),
        # https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
        "llama.cpp": Preset(base_url="http://localhost:8080/v1"),
    }
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model at an address, with all that is needed to call it. Its ``repr`` shows no key and no credentials.

    Attributes:
        provider: The provider whose preset applies; None for a server known only by its address.
        model: The model's name at that address.
        base_url: Address of the API; may hold credentials.
        key: None if the server needs none.
        key_source: The setting or environment variable that holds the key, or would hold it.
        dialect: The dialect to start with.
        refuses_lengths: Whether its JSON schemas support neither ``minLength`` nor ``maxLength``.
        output_tokens: Maximum number of tokens of one reply.
    """

    provider: LlmProvider | None
    model: str
    base_url: str = field(repr=False)
    key: SecretStr | None = field(repr=False)
    key_source: str
    dialect: Dialect
    refuses_lengths: bool
    output_tokens: int

    @property
    def api(self) -> Api:
        """The API that serves the model."""
        return Api(self.base_url, self.key, self.key_source, _WORDING)

    @property
    def address(self) -> str:
        """The base URL without credentials and query, for messages."""
        return self.api.address

    @property
    def is_on_this_machine(self) -> bool:
        """Whether the address is a loopback one."""
        return self.api.is_on_this_machine


def endpoint_of(settings: Settings, environment: Mapping[str, str]) -> Endpoint | None:
    """Return the endpoint that the settings ask for; None if they ask for no LLM.

    A named provider has a default address and environment variables for its key; the settings override both. Without
    a named provider, a usable `openai_api_key` means OpenAI, or the server at `openai_base_url`. A base URL without a
    usable key means a server that needs none. If it is the URL of a provider that needs one, the result is None: such
    settings were copied from a template, with a placeholder for the key.

    A key in the environment alone never turns the LLM on. Most people set it for other programs, and the dialogue
    would be sent out without their asking.

    Args:
        settings: The configuration.
        environment: Environment variables; only the named provider's keys are looked up.

    Raises:
        ConfigError: The named provider needs a key and there is none; the message names the variable to set.
    """
    if settings.llm_provider is not None:
        return _named(settings, settings.llm_provider, environment)
    url = settings.openai_base_url
    provider = "openai" if url is None else _provider_at(url)
    if settings.has_llm_key:
        return _endpoint(settings, provider, key=settings.openai_api_key)
    return _endpoint(settings, None, key=None) if provider is None else None


def is_reasoning_model(model: str) -> bool:
    """Return whether a model reasons first, by its name; such models take no temperature and need more tokens.

    Args:
        model: The name; the maker's name and a slash may come before it.
    """
    return _REASONING_MODEL.search(_bare(model)) is not None


def _named(settings: Settings, provider: LlmProvider, environment: Mapping[str, str]) -> Endpoint:
    if settings.has_llm_key:
        return _endpoint(settings, provider, key=settings.openai_api_key)
    variables = PRESETS[provider].key_variables
    for variable in variables:
        key = SecretStr(environment.get(variable, "").strip())
        # A placeholder counts as little in the environment as in the settings.
        if settings.model_copy(update={KEY_SETTING: key}).has_llm_key:
            return _endpoint(settings, provider, key=key, key_source=variable)
    if variables:
        held = next((variable for variable in variables if environment.get(variable, "").strip()), None)
        found = "needs a key" if held is None else f"needs a key, and {held} holds only a placeholder for one"
        message = f"llm_provider: {provider} {found}; set {' or '.join(variables)} in the environment, or {KEY_SETTING}"
        raise ConfigError(message)
    return _endpoint(settings, provider, key=None)


def _endpoint(
    settings: Settings, provider: LlmProvider | None, *, key: SecretStr | None, key_source: str = KEY_SETTING
) -> Endpoint:
    # A server known only by its address gets vLLM's dialect, which most servers speak.
    preset = PRESETS[provider or "vllm"]
    base_url = re.sub(rf"{CHAT_PATH}/*$", "", settings.openai_base_url or preset.base_url)
    reasons = is_reasoning_model(settings.llm_model)
    forbids_thinking = bool(preset.told_not_to_think and preset.told_not_to_think.search(_bare(settings.llm_model)))
    return Endpoint(
        provider=provider,
        model=settings.llm_model,
        base_url=base_url,
        key=None if key is None else SecretStr(key.get_secret_value().strip()),
        key_source=key_source,
        dialect=Dialect(
            preset.rung,
            preset.cap,
            temperature=None if reasons else TEMPERATURE,
            forbids_thinking=forbids_thinking,
        ),
        refuses_lengths=preset.refuses_lengths and _provider_at(base_url) == provider,
        output_tokens=REASONING_OUTPUT_TOKENS if reasons and not forbids_thinking else OUTPUT_TOKENS,
    )


def _provider_at(url: str) -> LlmProvider | None:
    """Return the provider whose own host the URL names, among those that need a key."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    for provider, preset in PRESETS.items():
        if any(host == known or host.endswith(f".{known}") for known in preset.hosts):
            return provider
    return None


def _bare(model: str) -> str:
    return model.strip().lower().rpartition("/")[2]
