"""The endpoint that settings and environment configure."""

import logging
import re
from typing import Any, get_args
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

from memoryos_mcp.config import LlmProvider, Settings
from memoryos_mcp.errors import ConfigError
from memoryos_mcp.llm.providers import (
    OUTPUT_TOKENS,
    PRESETS,
    REASONING_OUTPUT_TOKENS,
    TEMPERATURE,
    Endpoint,
    ReplyFormat,
    endpoint_of,
    is_reasoning_model,
)

KEY = "sk-live-4f9a8b7c6d5e"
KEYED = [provider for provider, preset in PRESETS.items() if preset.key_variables]
LOCAL = [provider for provider, preset in PRESETS.items() if not preset.key_variables]


def settings(**values: Any) -> Settings:
    return Settings(**values)


def endpoint(environment: dict[str, str] | None = None, **values: Any) -> Endpoint:
    found = endpoint_of(settings(**values), environment or {})
    assert found is not None
    return found


def test_every_provider_in_the_settings_has_a_preset() -> None:
    assert set(PRESETS) == set(get_args(LlmProvider))


@pytest.mark.parametrize("provider", PRESETS)
def test_every_preset_has_an_address_valid_in_the_settings(provider: LlmProvider) -> None:
    assert settings(openai_base_url=PRESETS[provider].base_url).openai_base_url == PRESETS[provider].base_url


def test_without_configuration_there_is_no_llm() -> None:
    assert endpoint_of(settings(), {}) is None


def test_a_key_in_the_environment_alone_enables_no_llm() -> None:
    everything = {variable: KEY for preset in PRESETS.values() for variable in preset.key_variables}
    assert endpoint_of(settings(), everything) is None


@pytest.mark.parametrize("placeholder", ["", "your-api-key", "sk-...", "${OPENAI_API_KEY}", "<key>"])
@pytest.mark.parametrize("url", [None, "https://api.openai.com/v1", "https://eu.api.openai.com/v1"])
def test_a_placeholder_for_a_key_enables_no_llm(placeholder: str, url: str | None) -> None:
    assert endpoint_of(settings(openai_api_key=placeholder, openai_base_url=url), {"OPENAI_API_KEY": KEY}) is None


def test_a_key_alone_means_openai() -> None:
    found = endpoint(openai_api_key=KEY)
    assert (found.provider, found.api.base_url, found.model) == ("openai", "https://api.openai.com/v1", "gpt-4o-mini")
    assert found.api.key == SecretStr(KEY)
    assert found.dialect.reply_format is ReplyFormat.JSON_SCHEMA
    assert found.dialect.cap == "max_completion_tokens"
    assert found.rejects_length_limits


@pytest.mark.parametrize(
    ("url", "provider"),
    [
        ("https://api.deepseek.com/v1", "deepseek"),
        ("https://API.Anthropic.com./v1/", "anthropic"),
        ("https://dashscope.aliyuncs.com/compatible-mode/v1", "qwen"),
        ("https://w1.ap-southeast-1.maas.aliyuncs.com/compatible-mode/v1", "qwen"),
        ("https://us.api.openai.com/v1", "openai"),
        ("https://gateway.example.com/v1", None),
        ("https://api.deepseek.com.example.com/v1", None),
        ("https://notapi.openai.com/v1", None),
    ],
)
def test_the_dialect_is_that_of_the_provider_at_the_address(url: str, provider: LlmProvider | None) -> None:
    found = endpoint(openai_api_key=KEY, openai_base_url=url)
    assert (found.provider, found.api.base_url) == (provider, url)
    assert found.dialect.reply_format is (
        ReplyFormat.JSON_SCHEMA if provider is None else PRESETS[provider].reply_format
    )


def test_length_limits_are_sent_to_unknown_servers() -> None:
    assert not endpoint(openai_api_key=KEY, openai_base_url="https://gateway.example.com/v1").rejects_length_limits
    assert not endpoint(
        llm_provider="openai", openai_api_key=KEY, openai_base_url="https://gateway.example.com/v1"
    ).rejects_length_limits


def test_an_address_alone_means_a_server_without_a_key() -> None:
    found = endpoint({"OPENAI_API_KEY": KEY}, openai_base_url="http://192.168.1.7:1234/v1")
    assert found.api.key is None
    assert found.api.base_url == "http://192.168.1.7:1234/v1"


@pytest.mark.parametrize("provider", KEYED)
def test_a_providers_address_without_a_key_enables_no_llm(provider: LlmProvider) -> None:
    assert endpoint_of(settings(openai_base_url=PRESETS[provider].base_url), {}) is None


@pytest.mark.parametrize("provider", KEYED)
def test_a_named_provider_reads_its_key_from_its_own_variable(provider: LlmProvider) -> None:
    for variable in PRESETS[provider].key_variables:
        found = endpoint({variable: f" {KEY}\n"}, llm_provider=provider)
        assert (found.api.key, found.api.key_source) == (SecretStr(KEY), variable)
        assert found.api.base_url == PRESETS[provider].base_url


def test_the_first_variable_with_a_real_key_is_used() -> None:
    environment = {"QWEN_API_KEY": "your-api-key", "DASHSCOPE_API_KEY": KEY, "OPENAI_API_KEY": "sk-other"}
    assert endpoint(environment, llm_provider="qwen").api.key_source == "DASHSCOPE_API_KEY"
    assert endpoint({**environment, "QWEN_API_KEY": "q-1"}, llm_provider="qwen").api.key_source == "QWEN_API_KEY"


@pytest.mark.parametrize("provider", KEYED)
@pytest.mark.parametrize("value", [None, "", "  ", "sk-xxx", "clé"])
def test_the_error_for_a_missing_key_names_the_variables(provider: LlmProvider, value: str | None) -> None:
    variables = PRESETS[provider].key_variables
    environment = {} if value is None else dict.fromkeys(variables, value)
    with pytest.raises(ConfigError) as caught:
        endpoint_of(settings(llm_provider=provider), environment)
    text = str(caught.value)
    assert "\n" not in text
    assert all(name in text for name in (provider, "openai_api_key", *variables))


def test_settings_override_the_preset_and_the_environment() -> None:
    found = endpoint(
        {"DEEPSEEK_API_KEY": "sk-env"},
        llm_provider="deepseek",
        openai_api_key=KEY,
        openai_base_url="https://proxy.example.com/v1",
    )
    assert (found.api.key, found.api.key_source) == (SecretStr(KEY), "openai_api_key")
    assert found.api.base_url == "https://proxy.example.com/v1"
    assert found.dialect.reply_format is ReplyFormat.JSON_OBJECT


@pytest.mark.parametrize("provider", LOCAL)
def test_a_local_server_may_have_a_key_in_the_settings(provider: LlmProvider) -> None:
    assert endpoint({"OPENAI_API_KEY": KEY}, llm_provider=provider).api.key is None
    assert endpoint(llm_provider=provider, openai_api_key=KEY).api.key == SecretStr(KEY)
    assert endpoint(llm_provider=provider).api.is_on_this_machine


@pytest.mark.parametrize(
    "model",
    [
        "o1", "o3-mini", "o4-mini", "gpt-5-mini", "openai/gpt-5.1", "deepseek-r1:7b", "deepseek-reasoner", "QwQ-32B",
        "Qwen/Qwen3-8B", "qwen3:4b", "kimi-k2-thinking", "DeepSeek-R1-Distill-Qwen-7B", "my-r1", "gpt-oss:20b",
    ],
)  # fmt: skip
def test_reasoning_models_get_no_temperature_and_more_tokens(model: str) -> None:
    found = endpoint(openai_api_key=KEY, llm_model=model)
    assert is_reasoning_model(model)
    assert (found.dialect.temperature, found.output_tokens) == (None, REASONING_OUTPUT_TOKENS)


@pytest.mark.parametrize(
    "model", ["gpt-4o-mini", "gpt-4.1", "llama3.1", "deepseek-chat", "qwen2.5:7b", "phi-o1x", "r1x"]
)
def test_other_models_get_a_low_temperature(model: str) -> None:
    found = endpoint(openai_api_key=KEY, llm_model=model)
    assert not is_reasoning_model(model)
    assert (found.dialect.temperature, found.output_tokens) == (TEMPERATURE, OUTPUT_TOKENS)


@pytest.mark.parametrize(
    ("provider", "model", "is_told"),
    [
        ("qwen", "qwen3-8b", True),
        ("qwen", "qwen3.5-plus", True),
        ("qwen", "qwen3-235b-a22b-thinking-2507", False),
        ("qwen", "qwen-plus", False),
        ("vllm", "Qwen/Qwen3-8B", False),
    ],
)
def test_thinking_is_disabled_for_qwen_models_that_support_it(provider: LlmProvider, model: str, is_told: bool) -> None:
    found = endpoint({"QWEN_API_KEY": KEY}, llm_provider=provider, llm_model=model)
    assert found.dialect.disables_thinking is is_told


def test_the_repr_of_an_endpoint_hides_key_and_credentials(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "memoryos_mcp")
    found = endpoint(
        openai_api_key=KEY, openai_base_url="https://user:hunter2@gate.example.com:8443/v1/?token=t0ps3cret"
    )
    assert found.api.address == "https://gate.example.com:8443/v1"
    for text in (repr(found), str(found), found.api.address, caplog.text):
        assert not re.search(f"{KEY}|hunter2|t0ps3cret", text)


@pytest.mark.parametrize(
    ("url", "is_here"),
    [
        ("http://localhost:11434/v1", True),
        ("http://127.0.0.9/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://192.168.1.7/v1", False),
        ("https://localhost.example.com/v1", False),
    ],
)
def test_loopback_addresses_are_on_this_machine(url: str, is_here: bool) -> None:
    found = endpoint(openai_base_url=url)
    assert found.api.is_on_this_machine is is_here
    assert urlsplit(found.api.address).netloc == urlsplit(url).netloc
