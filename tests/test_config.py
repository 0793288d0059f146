"""Settings: sources, errors, and secrets that are never shown."""

import json
import logging
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from memoryos_mcp.config import Settings
from memoryos_mcp.config.sources import check_data_folder, load_settings
from memoryos_mcp.config.values import describe_values, value_type
from memoryos_mcp.errors import ConfigError

ROOT = Path(__file__).parent.parent
SECRET = "sk-proj-4fQ9zT7mW2xB8kL1"  # noqa: S105  # made up; must never be shown
NAMES = list(Settings.model_fields)
NUMBERS = [name for name in NAMES if value_type(name) in (int, float)]
DIMENSIONS = (
    "must be a JSON list of up to 100 texts of 1 to 60 characters without control characters, "
    "all different even if case is ignored"
)
REFERENCE_CONFIG = {
    "user_id": "test_user",
    "openai_api_key": "your-api-key",
    "openai_base_url": "https://api.openai.com/v1",
    "data_storage_path": "./memoryos_data",
    "assistant_id": "default_assistant_profile",
    "short_term_capacity": 10,
    "mid_term_capacity": 2000,
    "long_term_knowledge_capacity": 3000,
    "retrieval_queue_capacity": 7,
    "mid_term_heat_threshold": 5.0,
    "mid_term_similarity_threshold": 0.6,
    "llm_model": "gpt-4o-mini",
    "embedding_model_name": "memoryos-small",
    "embedding_model_kwargs": None,
}

ConfigWriter = Callable[[object], Path]


pytestmark = pytest.mark.usefixtures("bare_environment")


@pytest.fixture
def config(tmp_path: Path) -> ConfigWriter:
    def write(content: object) -> Path:
        path = tmp_path / "config.json"
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        path.write_bytes(data)
        return path

    return write


def refusal(config_file: Path | None = None, **overrides: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        load_settings(config_file, overrides)
    line = str(caught.value)
    assert len(line.splitlines()) == 1
    return line


# Sources


def test_the_defaults_are_those_of_the_paper() -> None:
    settings = load_settings(None, {})
    assert settings.short_term_capacity == 7
    assert settings.mid_term_capacity == 200
    assert settings.long_term_knowledge_capacity == 3000
    assert settings.mid_term_heat_threshold == 5.0
    assert settings.mid_term_similarity_threshold == 0.6
    assert settings.retrieval_queue_capacity == 20
    assert (settings.heat_alpha, settings.heat_beta, settings.heat_gamma, settings.heat_mu_s) == (1.0, 1.0, 1.0, 1e7)


def test_the_environment_overrides_the_file_and_a_flag_both(
    config: ConfigWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = config({"short_term_capacity": 1, "mid_term_capacity": 1, "retrieval_queue_capacity": 1})
    monkeypatch.setenv("MEMORYOS_MID_TERM_CAPACITY", "2")
    monkeypatch.setenv("MEMORYOS_RETRIEVAL_QUEUE_CAPACITY", "2")
    settings = load_settings(path, {"retrieval_queue_capacity": 3})
    assert settings.short_term_capacity == 1
    assert settings.mid_term_capacity == 2
    assert settings.retrieval_queue_capacity == 3


def test_an_unused_flag_does_not_override_the_file(config: ConfigWriter) -> None:
    assert load_settings(config({"user_id": "ada"}), {"user_id": None}).user_id == "ada"


def test_a_config_of_the_reference_loads_unchanged(config: ConfigWriter, tmp_path: Path) -> None:
    settings = load_settings(config(REFERENCE_CONFIG), {})
    assert settings.mid_term_capacity == 2000
    assert settings.retrieval_queue_capacity == 7
    assert settings.data_storage_path == tmp_path / "memoryos_data"
    assert settings.uses_bundled_embedder
    assert not settings.has_llm_key


@pytest.mark.parametrize("kwargs", [None, {}, {"device": "cpu"}])
def test_embedding_model_kwargs_may_be_null_or_an_object(
    config: ConfigWriter, kwargs: dict[str, object] | None
) -> None:
    assert load_settings(config({"embedding_model_kwargs": kwargs}), {}).embedding_model_kwargs == kwargs


def test_null_means_the_default_for_every_key(config: ConfigWriter) -> None:
    assert load_settings(config(dict.fromkeys(NAMES)), {}) == load_settings(None, {})


def test_an_empty_variable_is_ignored(config: ConfigWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    path = config({"short_term_capacity": 3, "user_id": "ada"})
    for name in NAMES:
        monkeypatch.setenv(f"MEMORYOS_{name.upper()}", "")
    settings = load_settings(path, {})
    assert (settings.short_term_capacity, settings.user_id) == (3, "ada")


def test_a_variable_can_name_the_config_file(
    config: ConfigWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYOS_CONFIG", str(config({"user_id": "from the variable"})))
    other = tmp_path / "other.json"
    other.write_text('{"user_id": "from the flag"}', encoding="utf-8")
    assert load_settings(None, {}).user_id == "from the variable"
    assert load_settings(other, {}).user_id == "from the flag"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("short_term_capacity", "0", 0),
        ("max_page_chars", "1e6", 1_000_000),
        ("heat_mu_s", "2e6", 2e6),
        ("consolidation_idle_s", "5", 5.0),
        ("user_id", "12345", "12345"),
        ("log_level", "debug", "DEBUG"),
        ("embedding_model_kwargs", '{"device": "cpu"}', {"device": "cpu"}),
        ("llm_provider", "ollama", "ollama"),
        ("llm_provider", " Llama.CPP\n", "llama.cpp"),
        ("llm_provider", "  ", None),
        ("llm_timeout_s", "30", 30.0),
        ("llm_daily_token_limit", "0", 0),
        ("llm_daily_token_limit", "2e6", 2_000_000),
        ("llm_log", "true", True),
        ("llm_log", " YES ", True),
        ("llm_log", "1", True),
        ("llm_log", "On", True),
        ("llm_log", "False", False),
        ("llm_log", "no", False),
        ("llm_log", "0", False),
        ("llm_log", "OFF", False),
        ("llm_replay_file", " ", None),
        ("profile_dimensions", "[]", []),
        ("profile_dimensions", '["Tea", " Sailing at night "]', ["Tea", "Sailing at night"]),
    ],
)
def test_texts_of_variables_and_flags_are_parsed(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, value: object
) -> None:
    assert getattr(load_settings(None, {name: text}), name) == value
    monkeypatch.setenv(f"MEMORYOS_{name.upper()}", text)
    assert getattr(load_settings(None, {}), name) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("llm_provider", "ollama"),
        ("llm_daily_token_limit", 5),
        ("llm_replay_file", "replies.jsonl"),
        ("embedding_model_kwargs", {"device": "cpu"}),
    ],
)
def test_null_in_a_variable_or_flag_overrides_the_file(
    config: ConfigWriter, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    path = config({name: value})
    assert describe_values(name).endswith(" or null")
    assert getattr(load_settings(path, {}), name) is not None
    assert getattr(load_settings(path, {name: "null"}), name) is None
    monkeypatch.setenv(f"MEMORYOS_{name.upper()}", " null ")
    assert getattr(load_settings(path, {}), name) is None


def test_a_false_flag_overrides_a_true_setting_in_the_file(config: ConfigWriter) -> None:
    path = config({"llm_log": True})
    assert load_settings(path, {}).llm_log
    assert not load_settings(path, {"llm_log": "off"}).llm_log


def test_settings_are_read_only_and_use_only_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYOS_USER_ID", "from the environment")
    settings = Settings(short_term_capacity=3)
    assert (settings.short_term_capacity, settings.user_id) == (3, "default_user")
    with pytest.raises(ValidationError):
        settings.user_id = "other"


# Paths


def test_the_default_folder_is_the_platforms_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = load_settings(None, {}).data_storage_path
    assert folder.is_absolute()
    assert folder.name == "memoryos-mcp"
    assert tmp_path not in folder.parents


@pytest.mark.parametrize("answer", [Path("~/.local/share/memoryos-mcp"), RuntimeError("no home")])
def test_without_a_home_folder_a_data_folder_is_required(
    monkeypatch: pytest.MonkeyPatch, answer: Path | RuntimeError
) -> None:
    def user_data_path(*args: object, **options: object) -> Path:
        if isinstance(answer, RuntimeError):
            raise answer
        return answer

    monkeypatch.setattr("platformdirs.user_data_path", user_data_path)
    assert refusal().startswith("data_storage_path: this account has no home folder")
    assert load_settings(None, {"data_storage_path": "/memory"}).data_storage_path == Path("/memory").absolute()


def test_a_tilde_is_expanded_from_every_source(
    config: ConfigWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    assert load_settings(config({"data_storage_path": "~/memory"}), {}).data_storage_path == home / "memory"
    assert load_settings(None, {"data_storage_path": Path("~/memory")}).data_storage_path == home / "memory"
    assert load_settings(config({"llm_replay_file": "~/replies"}), {}).llm_replay_file == home / "replies"
    monkeypatch.setenv("MEMORYOS_DATA_STORAGE_PATH", "~/memory")
    assert load_settings(None, {}).data_storage_path == home / "memory"


def test_a_relative_folder_starts_at_the_config_files_folder(
    config: ConfigWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = config({"data_storage_path": "memory"})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert load_settings(path, {}).data_storage_path == tmp_path / "memory"
    assert load_settings(Path("../config.json"), {}).data_storage_path.resolve() == (tmp_path / "memory").resolve()
    assert load_settings(path, {"data_storage_path": "flag"}).data_storage_path == tmp_path / "flag"
    monkeypatch.setenv("MEMORYOS_DATA_STORAGE_PATH", "variable")
    assert load_settings(path, {}).data_storage_path == tmp_path / "variable"


def test_without_a_config_file_a_folder_starts_at_the_cwd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_settings(None, {"data_storage_path": "flag"}).data_storage_path == tmp_path / "flag"


def test_a_relative_replay_file_starts_at_the_config_file(
    config: ConfigWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = config({"llm_replay_file": "file.jsonl"})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert load_settings(path, {}).llm_replay_file == tmp_path / "file.jsonl"
    assert load_settings(path, {"llm_replay_file": "flag.jsonl"}).llm_replay_file == tmp_path / "flag.jsonl"
    assert load_settings(path, {"llm_replay_file": ""}).llm_replay_file is None
    assert load_settings(None, {"llm_replay_file": "flag.jsonl"}).llm_replay_file == elsewhere / "flag.jsonl"
    monkeypatch.setenv("MEMORYOS_LLM_REPLAY_FILE", "variable.jsonl")
    assert load_settings(path, {}).llm_replay_file == tmp_path / "variable.jsonl"


@pytest.mark.parametrize("path", ["", "  ", "C:\new", "a\x00b", "\ud800", "~nobody-of-this-name/x"])
def test_an_invalid_folder_is_refused(config: ConfigWriter, path: str) -> None:
    assert "config.json: data_storage_path" in refusal(config({"data_storage_path": path}))


@pytest.mark.parametrize("path", ["C:\new", "a\x00b", "\ud800", "~nobody-of-this-name/x"])
def test_an_invalid_replay_file_is_refused(config: ConfigWriter, path: str) -> None:
    assert "config.json: llm_replay_file" in refusal(config({"llm_replay_file": path}))


@pytest.mark.parametrize("path", ["", "  ", None])
def test_a_blank_replay_file_is_none(config: ConfigWriter, path: str | None) -> None:
    assert load_settings(config({"llm_replay_file": path}), {}).llm_replay_file is None


# Errors


def test_an_unknown_key_is_refused_with_a_suggestion(config: ConfigWriter) -> None:
    path = config({"short_term_capasity": 3})
    assert refusal(path) == f"{path}: short_term_capasity is not a setting; did you mean short_term_capacity?"
    assert "did you mean openai_api_key?" in refusal(config({"api-key": "x"}))
    assert refusal(config({"qqq": 1})).endswith("qqq is not a setting")
    assert "not a setting" in refusal(config({"qqq": None}))


@pytest.mark.parametrize("key", ["_env_file", "_secrets_dir", "self", "model_config", "__init__", "", "\ud800", SECRET])
def test_no_key_becomes_an_option_of_the_settings_class(config: ConfigWriter, key: str) -> None:
    line = refusal(config({key: "x", "max_open_users": 0}))
    assert "is not a setting" in line
    assert "max_open_users must be" in line
    assert "is not a setting" in refusal(config({key: "x"}))


def test_an_unknown_flag_is_refused() -> None:
    assert refusal(user="ada") == "user is not a setting; did you mean user_id?"


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("short_term_capacity", -1, "must be a whole number from 0 to 1,000,000,000, not -1"),
        ("short_term_capacity", "7", "must be a whole number from 0 to 1,000,000,000, not a text"),
        ("short_term_capacity", 7.0, "must be a whole number from 0 to 1,000,000,000, not 7.0"),
        ("short_term_capacity", True, "must be a whole number from 0 to 1,000,000,000, not true"),
        ("short_term_capacity", 10**30, "not a number with more than 15 digits"),
        ("mid_term_capacity", 0, "must be a whole number from 1"),
        ("long_term_knowledge_capacity", 0, "must be a whole number from 1"),
        ("retrieval_queue_capacity", 101, "must be a whole number from 1 to 100, not 101"),
        ("retrieval_max_tokens", 99, "must be a whole number from 100 to 1,000,000, not 99"),
        ("mid_term_heat_threshold", 0, "must be a number above 0, not 0"),
        ("mid_term_heat_threshold", True, "must be a number above 0, not true"),
        ("mid_term_similarity_threshold", 2.1, "must be a number from 0 to 2, not 2.1"),
        ("heat_alpha", -0.5, "must be a number of 0 or more, not -0.5"),
        ("heat_mu_s", 0, "must be a number above 0, not 0"),
        ("consolidation_batch_pages", 101, "must be a whole number from 1 to 100 or null, not 101"),
        ("consolidation_idle_s", -1, "must be a number from 0"),
        ("max_page_chars", 0, "must be a whole number from 1"),
        ("max_open_users", 0, "must be a whole number from 1"),
        ("user_id", "", "must be a text of 1 to 1,000 characters, not an empty text"),
        ("user_id", " \n", "is blank"),
        ("user_id", "x" * 1001, "not a text of 1,001 characters"),
        ("user_id", 7, "must be a text of 1 to 1,000 characters, not 7"),
        ("user_id", "\ud800", "surrogate"),
        ("llm_model", " ", "is blank"),
        ("openai_api_key", 5, "must be a text, not 5"),
        ("openai_base_url", "api.openai.com", "is not a valid URL"),
        ("openai_base_url", "ftp://x/y", "is not a valid URL"),
        ("openai_base_url", "http://x:99999", "is not a valid URL"),
        ("openai_base_url", "http://[::1", "is not a valid URL"),
        ("embedding_model_kwargs", [1], "must be a JSON object or null, not a list"),
        ("embedding_model_kwargs", {"a": "\ud800"}, "is not plain JSON"),
        ("timezone", "Europe/Berln", "is not an IANA time zone; did you mean Europe/Berlin?"),
        ("timezone", "europe-berlin", "did you mean Europe/Berlin?"),
        ("timezone", "/etc/passwd", "is not an IANA time zone"),
        ("timezone", "Europe", "is not an IANA time zone"),
        ("timezone", "x" * 5000, "is not an IANA time zone"),
        ("log_level", "LOUD", "must be one of DEBUG, INFO, WARNING, ERROR, CRITICAL"),
        ("llm_provider", "mistral", "must be one of openai, anthropic, deepseek, "),
        ("llm_provider", 7, "llama-factory, ollama, llama.cpp or null"),
        ("llm_timeout_s", 0, "must be a number above 0 and up to 3,600, not 0"),
        ("llm_timeout_s", 3601.0, "must be a number above 0 and up to 3,600, not 3601.0"),
        ("llm_max_concurrent_calls", 0, "must be a whole number from 1 to 1,000, not 0"),
        ("llm_max_prompt_tokens", 999, "must be a whole number from 1,000 to 1,000,000, not 999"),
        ("llm_daily_token_limit", -1, "must be a whole number from 0 to 1,000,000,000,000 or null, not -1"),
        ("llm_daily_token_limit", 10**12 + 1, "or null, not 1,000,000,000,001"),
        ("llm_daily_token_limit", 7.0, "or null, not 7.0"),
        ("llm_daily_token_limit", "null", "or null, not a text"),
        ("llm_log", 1, "must be true or false, not 1"),
        ("llm_log", "true", "must be true or false, not a text"),
        ("llm_log", [], "must be true or false, not a list"),
        ("llm_replay_file", 7, "must be a file's path or null, not 7"),
        ("data_storage_path", 7, "must be a folder's path, not 7"),
        ("max_topics", 21, "must be a whole number from 1 to 20, not 21"),
        ("profile_dimensions", "Tea", f"{DIMENSIONS}, not a text"),
        ("profile_dimensions", {"Tea": 1}, f"{DIMENSIONS}, not an object"),
        ("profile_dimensions", [f"{n}" for n in range(101)], f"{DIMENSIONS}, not a list of 101 items"),
        ("profile_dimensions", ["Tea", 7], f"{DIMENSIONS}, not 7 (item 2)"),
        ("profile_dimensions", ["Tea", None], f"{DIMENSIONS}, not null (item 2)"),
        ("profile_dimensions", [""], f"{DIMENSIONS}, not an empty text (item 1)"),
        ("profile_dimensions", ["x" * 61], f"{DIMENSIONS}, not a text of 61 characters (item 1)"),
        ("profile_dimensions", ["Tea", " "], "is blank; enter a text or omit this value (item 2)"),
        (
            "profile_dimensions",
            ["Tea\n# Rules"],
            "contains a control character, such as a line break; remove it (item 1)",
        ),
        ("profile_dimensions", ["Tea\x00"], "contains a control character"),
        ("profile_dimensions", ["Tea\u2028"], "contains a control character"),
        ("profile_dimensions", ["\ud800"], "surrogate pair; write it in plain Unicode (item 1)"),
        (
            "profile_dimensions",
            ["Tea", "Straße", "STRASSE "],
            "contains the same name twice (items 2 and 3); remove one of them",
        ),
    ],
)
def test_a_value_out_of_range_is_refused_with_the_range(
    config: ConfigWriter, name: str, value: object, shown: str
) -> None:
    path = config({name: value})
    line = refusal(path)
    assert line.startswith(f"{path}: {name} ")
    assert shown in line


INVALID_VARIABLES = {
    "SHORT_TERM_CAPACITY": (["true", "seven", "7.5", "nan", "inf", "[7]", "null"], "must be a whole number from 0 "),
    "HEAT_MU_S": (["nan", "inf", "-inf", "1e999", "true"], "must be a number above 0, not "),
    "EMBEDDING_MODEL_KWARGS": (
        ["{", "[1]", "7", '{"a": 1, "a": 2}', '{"a": NaN}'],
        "must be a JSON object or null, not ",
    ),
    "PROFILE_DIMENSIONS": (
        ["{", '{"Tea": 1}', "7", "null", "Tea, Sailing", '["Tea"', "[NaN]", " "],
        f"{DIMENSIONS}, not ",
    ),
    "LLM_LOG": (["2", "-1", "1.0", "y", "truefalse", "null", " "], "must be true or false, not a text"),
    "LLM_DAILY_TOKEN_LIMIT": (
        ["none", "NULL", "7.5", "inf", "-1", " ", "[7]"],
        "must be a whole number from 0 to 1,000,000,000,000 or ",
    ),
}


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, (texts, _) in INVALID_VARIABLES.items() for text in texts]
)
def test_an_invalid_variable_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setenv(f"MEMORYOS_{name}", text)
    assert refusal().startswith(f"MEMORYOS_{name} {INVALID_VARIABLES[name][1]}")


def test_the_maximum_of_dimensions_is_accepted(config: ConfigWriter) -> None:
    names = [f"{number:060}" for number in range(100)]
    assert load_settings(config({"profile_dimensions": names}), {}).profile_dimensions == names


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [True, False, "7", float("nan"), float("inf"), [], {}])
def test_a_number_must_be_a_json_number(name: str, value: object) -> None:
    with pytest.raises(ValidationError):
        Settings(**{name: value})  # type: ignore[arg-type]  # what is tried is the wrong type


def test_several_problems_are_reported_in_one_line(config: ConfigWriter) -> None:
    line = refusal(config({"short_term_capacity": -1, "mid_term_capacity": 0, "heat_mu_s": 0, "a": 1, "b": 2}))
    assert "a is not a setting; " in line
    assert "b is not a setting; " in line
    assert "short_term_capacity must" in line
    assert line.endswith("and 2 more")


# The config file


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"", "invalid JSON at line 1, column 1"),
        (b'{\n  "user_id": "a",\n}', "invalid JSON at line 3, column 1"),
        (b'{"data_storage_path": "C:\\Users\\me"}', "write a backslash twice"),
        (b"[]", "the file contains a list; it must contain a JSON object"),
        (b"null", "contains null"),
        (b'{"user_id": "\xff"}', "the file is not valid UTF-8 at byte 13"),
        ('{"user_id": "a"}'.encode("utf-16"), "the file is not valid UTF-8 at byte 0"),
        (b'{"user_id": "a", "user_id": "b"}', "user_id occurs twice"),
        (b'{"heat_mu_s": NaN}', "contains NaN"),
        (b'{"heat_mu_s": -Infinity}', "contains -Infinity"),
        (b'{"heat_mu_s": 1e999}', "too large"),
        (b'{"heat_mu_s": ' + b"9" * 5000 + b"}", "more than 300 digits"),
        (b"[" * 100_000, "nested too deeply"),
        (b" " * 2_000_000, "larger than 1,048,576 bytes"),
    ],
)
def test_an_invalid_config_file_is_refused_in_one_line(config: ConfigWriter, content: bytes, shown: str) -> None:
    path = config(content)
    line = refusal(path)
    assert line.startswith(f"{path}: ")
    assert shown in line


def test_a_file_with_a_byte_order_mark_loads(config: ConfigWriter) -> None:
    assert load_settings(config('{"user_id": "Ádám"}'.encode("utf-8-sig")), {}).user_id == "Ádám"


def test_a_missing_file_a_folder_and_an_unusable_path_are_named(tmp_path: Path) -> None:
    assert (
        refusal(tmp_path / "none.json")
        == f"{tmp_path / 'none.json'}: the config file does not exist; create it or choose another file"
    )
    assert "it is a folder" in refusal(tmp_path)
    assert "cannot be read" in refusal(tmp_path / "a\x00b\nc")
    assert "cannot be read" in refusal(tmp_path / ("x" * 5000))
    assert "use an absolute path" in refusal(Path("~nobody-of-this-name/config.json"))


# The environment


def test_an_unknown_variable_causes_a_warning_with_a_suggestion(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MEMORYOS_SHORT_TERM_CAPASITY", SECRET)
    monkeypatch.setenv("MEMORYOS_QQQ", SECRET)
    for known in ("EVAL_DATA", "INSPECTOR", "CONFIG"):
        monkeypatch.setenv(f"MEMORYOS_{known}", "")
    with caplog.at_level(logging.WARNING):
        assert load_settings(None, {}) == Settings()
    assert caplog.messages == [
        "environment variable MEMORYOS_QQQ is not a setting and is ignored",
        "environment variable MEMORYOS_SHORT_TERM_CAPASITY is not a setting and is ignored; "
        "did you mean MEMORYOS_SHORT_TERM_CAPACITY?",
    ]


# Properties


def test_the_zone_is_the_configured_one_or_the_machines() -> None:
    assert Settings().zone is None
    assert Settings(timezone="  ").zone is None
    zone = load_settings(None, {"timezone": "Asia/Kathmandu"}).zone
    assert datetime(2026, 5, 8, tzinfo=UTC).astimezone(zone).utcoffset() == timedelta(hours=5, minutes=45)


@pytest.mark.parametrize(
    "key",
    [
        "",
        "  ",
        "your-api-key",
        "YOUR_API_KEY",
        "your key here",
        "sk-...",
        "sk-…",
        "sk-",
        "sk-xxxx",
        "sk-your-key",
        "<your key>",
        "<OPENAI_API_KEY>",
        "${OPENAI_API_KEY}",
        "${user_config.api_key}",
        "{{key}}",
        "%OPENAI_API_KEY%",
        "xxx",
        "XXXX",
        "***",
        "changeme",
        "CHANGE_ME",
        "api-key",
        "insert-your-key",
        "你的密钥",
    ],
)
def test_a_placeholder_key_does_not_enable_the_llm(key: str) -> None:
    assert not Settings(openai_api_key=SecretStr(key)).has_llm_key
    assert Settings(openai_api_key=SecretStr(key)).public()["openai_api_key"] == "not set"


@pytest.mark.parametrize("key", [SECRET, "sk-1234", "EMPTY", "ollama", "lm-studio", "a" * 64, f" {SECRET}\n"])
def test_a_key_enables_the_llm(key: str) -> None:
    settings = load_settings(None, {"openai_api_key": key})
    assert settings.has_llm_key
    assert settings.public()["openai_api_key"] == "set"


def test_without_a_key_there_is_no_llm_at_any_address() -> None:
    assert not load_settings(None, {"openai_base_url": "http://localhost:11434/v1"}).has_llm_key


@pytest.mark.parametrize("url", ["", " ", "your-base-url", "<url>", None])
def test_a_blank_or_placeholder_address_means_the_default(config: ConfigWriter, url: str | None) -> None:
    assert load_settings(config({"openai_base_url": url}), {}).openai_base_url is None


@pytest.mark.parametrize(
    ("name", "is_bundled"),
    [
        ("memoryos-small", True),
        ("all-MiniLM-L6-v2", True),
        ("sentence-transformers/all-MiniLM-L6-v2", True),
        ("ALL-minilm-l6-V2", True),
        ("bundled", True),
        ("BAAI/bge-m3", False),
        ("all-MiniLM-L12-v2", False),
    ],
)
def test_the_bundled_embedder_has_several_names(name: str, is_bundled: bool) -> None:
    assert Settings(embedding_model_name=name).uses_bundled_embedder is is_bundled


# Secrets


def test_public_settings_contain_no_secret() -> None:
    settings = load_settings(
        None,
        {
            "openai_api_key": SECRET,
            "openai_base_url": f"https://me:{SECRET}@api.example.com:8443/v1?key={SECRET}#{SECRET}",
            "embedding_model_kwargs": {
                "device": "cpu",
                "token": SECRET,
                "model_kwargs": {"hfAccessToken": SECRET, "headers": [{"Authorization": SECRET}], "proxy": "ok"},
                "tokenizer_kwargs": {"use_fast": True, "API_KEY": [SECRET]},
                "proxy": f"http://me:{SECRET}@proxy",
                "first": [[["sk-abcdefghij", "Bearer abc"]]],
            },
        },
    )
    shown = settings.public()
    assert SECRET not in repr(settings)
    assert SECRET not in str(settings)
    assert SECRET not in json.dumps(shown)
    assert shown["openai_base_url"] == "https://api.example.com:8443/v1"
    assert shown["embedding_model_kwargs"] == {
        "device": "cpu",
        "token": "***",
        "model_kwargs": {"hfAccessToken": "***", "headers": [{"Authorization": "***"}], "proxy": "ok"},
        "tokenizer_kwargs": {"use_fast": True, "API_KEY": "***"},
        "proxy": "***",
        "first": [[["***", "***"]]],
    }


def test_public_settings_contain_every_setting_as_json() -> None:
    shown = Settings().public()
    assert list(shown) == NAMES
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown


def test_public_settings_copy_lists_of_the_settings(tmp_path: Path) -> None:
    settings = Settings(
        llm_provider="ollama",
        llm_daily_token_limit=5,
        llm_log=True,
        llm_replay_file=tmp_path / "replies.jsonl",
        profile_dimensions=["Tea"],
    )
    shown = settings.public()
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    assert shown["llm_replay_file"] == str(tmp_path / "replies.jsonl")
    assert (shown["llm_provider"], shown["llm_daily_token_limit"], shown["llm_log"]) == ("ollama", 5, True)
    assert shown["profile_dimensions"] == settings.profile_dimensions
    assert shown["profile_dimensions"] is not settings.profile_dimensions


@pytest.mark.parametrize("name", NAMES)
def test_no_error_repeats_a_text(config: ConfigWriter, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def assert_silent(value: object) -> None:
        try:
            load_settings(config({name: value}), {})
        except ConfigError as error:
            assert SECRET not in str(error)
            assert SECRET not in str(error.__cause__)

    for value in (SECRET, [SECRET], {SECRET: SECRET}, f"{SECRET}\x00", f"http://{SECRET}:x", f"{SECRET}\ud800"):
        assert_silent(value)
    monkeypatch.setenv("MEMORYOS_SHORT_TERM_CAPACITY", SECRET)
    assert_silent(SECRET)


@pytest.mark.parametrize(
    "content",
    [
        json.dumps({SECRET: 1}),
        json.dumps({SECRET: None}),
        f'{{"openai_api_key": "{SECRET}" "user_id": 1}}',
        f'{{"{SECRET}": 1, "{SECRET}": 2}}',
        f'{{"openai_api_key": {SECRET}}}',
        f'"{SECRET}"',
    ],
)
def test_no_error_about_a_file_repeats_its_text(config: ConfigWriter, content: str) -> None:
    assert SECRET not in refusal(config(content.encode()))


def test_a_key_of_letters_only_is_not_repeated(config: ConfigWriter) -> None:
    assert "sk-abcdefgh" not in refusal(config({"sk-abcdefgh": 1}))


# Arbitrary input

any_text = st.text(st.characters(), max_size=20)
odd_text = st.sampled_from(["", "\x00", "\ud800", "a\nb", "~", "~x", "..", "http://[", "Europe", "<x>", "C:\\x", "NaN"])
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text | odd_text | st.just(10**350),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text | odd_text, inner, max_size=4),
    max_leaves=10,
)
any_config = st.dictionaries(st.sampled_from(NAMES) | any_text, any_json, max_size=6) | st.dictionaries(
    st.sampled_from(NAMES), any_json, max_size=1
)
with_one_folder_for_all = hypothesis_settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300
)


def assert_settings_or_one_line(load: Callable[[], Settings]) -> None:
    try:
        settings = load()
    except ConfigError as error:
        line = str(error)
        assert line.strip()
        assert len(line.splitlines()) == 1
    else:
        json.dumps(settings.public(), allow_nan=False, ensure_ascii=False).encode()
        assert settings.data_storage_path.is_absolute()
        assert settings.llm_replay_file is None or settings.llm_replay_file.is_absolute()
        assert len({name.casefold() for name in settings.profile_dimensions}) == len(settings.profile_dimensions)
        assert all(name.strip() == name and len(name.splitlines()) == 1 for name in settings.profile_dimensions)
        assert settings.zone is None or settings.timezone
        assert settings.has_llm_key in {True, False}


@with_one_folder_for_all
@given(content=any_config)
def test_any_json_object_gives_settings_or_one_line(config: ConfigWriter, content: dict[str, Any]) -> None:
    path = config(content)
    assert_settings_or_one_line(lambda: load_settings(path, {}))


@with_one_folder_for_all
@given(content=st.binary(max_size=200))
def test_any_bytes_give_settings_or_one_line(config: ConfigWriter, content: bytes) -> None:
    path = config(content)
    assert_settings_or_one_line(lambda: load_settings(path, {}))


@with_one_folder_for_all
@given(
    name=st.sampled_from(NAMES),
    text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30)
    | st.sampled_from(["[" * 100_000, "9" * 5000, '{"a": NaN}', "{", "1e999", "-0", "0x7"]),
)
def test_any_variable_gives_settings_or_one_line(name: str, text: str) -> None:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(f"MEMORYOS_{name.upper()}", text)
        assert_settings_or_one_line(lambda: load_settings(None, {}))


# The data folder


def test_the_data_folder_is_private_and_empty(tmp_path: Path) -> None:
    settings = Settings(data_storage_path=tmp_path / "deep" / "memory")
    check_data_folder(settings)
    check_data_folder(settings)
    assert list(settings.data_storage_path.iterdir()) == []
    if os.name == "posix":
        assert stat.S_IMODE(settings.data_storage_path.stat().st_mode) == 0o700


def test_a_file_in_place_of_the_folder_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for folder in (file, file / "under"):
        with pytest.raises(ConfigError, match=r"^data_storage_path: .*file.* choose another folder$"):
            check_data_folder(Settings(data_storage_path=folder))


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_an_unwritable_folder_is_reported_with_the_fix(tmp_path: Path) -> None:
    folder = tmp_path / "read-only"
    folder.mkdir()
    program = (
        "import os, sys; from pathlib import Path\n"
        "from memoryos_mcp.config import Settings\n"
        "from memoryos_mcp.config.sources import check_data_folder\n"
        "settings = Settings(data_storage_path=Path(sys.argv[1]))\n"
        "os.setresuid(65534, 65534, 65534) if os.geteuid() == 0 else None\n"
        "check_data_folder(settings)\n"
    )
    # Root ignores modes, so another process without root privileges makes the attempt.
    for parent in (tmp_path, *tmp_path.parents[:-1]):
        if parent.stat().st_uid == os.getuid() and "pytest" in str(parent):
            parent.chmod(0o755)
    folder.chmod(0o555)
    try:
        attempt = subprocess.run(
            [sys.executable, "-c", program, str(folder)], capture_output=True, text=True, encoding="utf-8", timeout=60
        )
    finally:
        folder.chmod(0o755)
    last_line = attempt.stderr.strip().splitlines()[-1]
    assert (
        f"data_storage_path: {folder} cannot be created or written (Permission denied); make it writable" in last_line
    )


@pytest.mark.skipif(os.name != "posix", reason="limits are POSIX's")
def test_a_folder_on_a_full_disk_is_refused(tmp_path: Path) -> None:
    program = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from memoryos_mcp.config import Settings\n"
        "from memoryos_mcp.config.sources import check_data_folder\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "check_data_folder(Settings(data_storage_path=Path(sys.argv[1])))\n"
    )
    attempt = subprocess.run(
        [sys.executable, "-B", "-c", program, str(tmp_path)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )
    last_line = attempt.stderr.strip().splitlines()[-1]
    assert f"data_storage_path: {tmp_path} cannot be created or written (File too large)" in last_line


# Published files and documentation


def test_the_example_has_every_setting_with_its_default(tmp_path: Path) -> None:
    example = json.loads((ROOT / "config.example.json").read_text(encoding="utf-8"))
    assert list(example) == NAMES
    assert load_settings(ROOT / "config.example.json", {}) == Settings()
    defaults = {name: Settings.model_fields[name].default for name in NAMES if name != "data_storage_path"}
    assert example == {**defaults, "data_storage_path": None}


def test_the_client_block_starts_the_command() -> None:
    block = json.loads((ROOT / "mcp.json").read_text(encoding="utf-8"))
    assert block == {"mcpServers": {"memoryos": {"command": "memoryos-mcp", "args": ["serve"], "env": {}}}}


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_has_a_description_with_unit_and_values(name: str) -> None:
    description = Settings.model_fields[name].description
    assert description
    assert description.endswith(".")
    assert describe_values(name)
    if name.endswith("_s"):
        assert "seconds" in description


def test_reading_settings_imports_nothing_heavy() -> None:
    program = (
        "import sys, memoryos_mcp.config.sources\n"
        "heavy = {'numpy', 'faiss', 'onnxruntime', 'tokenizers', 'apsw', 'mcp', 'rich', 'memoryos_mcp.model.heat'}\n"
        "raise SystemExit(str(sorted(heavy & set(sys.modules))) if heavy & set(sys.modules) else 0)\n"
    )
    attempt = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, encoding="utf-8")
    assert (attempt.returncode, attempt.stderr) == (0, "")


URL_PARTS = [
    "ada",
    ":",
    "@",
    "/",
    "?",
    "#",
    "%",
    "%40",
    "[",
    "]",
    "[::1]",
    "[b",
    ",",
    "=",
    "5432",
    "password=",
    "\uff0f",
    "\xbd",
]


@given(
    before=st.lists(st.sampled_from(URL_PARTS), max_size=5).map("".join),
    after=st.lists(st.sampled_from(URL_PARTS), max_size=5).map("".join),
    host=st.sampled_from(["host", "[b", "a,b:5432", "[::1]:5432", "", "host:x", "host:5432"]),
)
def test_no_database_address_crashes_or_shows_its_password(before: str, after: str, host: str) -> None:
    password = "geheim-42"  # noqa: S105 - of nobody
    url = f"postgresql://ada:{before}{password}{after}@{host}/memories"
    try:
        settings = load_settings(None, {"database_url": url, "data_storage_path": "/nowhere"})
    except ConfigError as error:
        assert "database_url" in str(error)
        assert "is not a valid address; write it like" in str(error)
        assert "\n" not in str(error)
        assert password not in str(error)
    else:
        shown = f"{settings.public()} {settings.memories_place} {settings!r}"
        assert host in shown
        assert password not in shown


@pytest.mark.parametrize("url", ["postgresql://a@[b/c", "postgresql://a@b:c/d", "postgresql://[/", "postgresql://a]b"])
def test_a_malformed_database_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="is not a valid address"):
        load_settings(None, {"database_url": url})
