"""Settings: every knob, its unit, its range and its default, read once at the door.

A config file weighs least, then the environment (``MEMORYOS_*``), then flags. The keys of the reference keep their
names and meaning, so that its config.json starts this server unchanged. What cannot be used is refused in one line
that says where it stands and what would be right, and that never repeats a text: a text may be a key.
"""

import json
import logging
import os
import re
import tempfile
import zoneinfo
from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit, urlunsplit

import platformdirs
from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, SecretStr, ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from memoryos_mcp.config_file import parse_json, read_config_file
from memoryos_mcp.config_problems import CONTROL, config_error, kind_of, nearest_name, shown_key
from memoryos_mcp.errors import ConfigError

ENV_PREFIX = "MEMORYOS_"
CONFIG_FILE_VARIABLE = f"{ENV_PREFIX}CONFIG"
OTHER_VARIABLES = frozenset({"CONFIG", "EVAL_DATA", "INSPECTOR"})  # names after the prefix that are no settings
APP_NAME = "memoryos-mcp"
LlmProvider = Literal["openai", "anthropic", "deepseek", "qwen", "vllm", "llama-factory", "ollama", "llama.cpp"]
BUNDLED_EMBEDDER_NAMES = frozenset({"all-minilm-l6-v2", "sentence-transformers/all-minilm-l6-v2", "bundled"})

_COUNT_MAX = 1_000_000_000
_TOKENS_MAX = 1_000_000_000_000
_YEAR_S = 365 * 86_400
_KWARGS_DEPTH_SHOWN = 8
_HIDDEN = "***"
_NO_HOME = "data_storage_path: this account has no home folder to put memory in; set it to an absolute path"
_UNSTORABLE = "holds a NUL or half of a surrogate pair; write it in plain Unicode"

_SURROGATE = re.compile("[\ud800-\udfff]")
_PLACEHOLDER_KEY = re.compile(
    r"""
    (?:sk-)?(?:proj-)?
    (?: (?:your|insert|enter|paste|replace).*   # your-api-key
      | [x*.…]+                                 # xxx
      | .*(?:\.\.\.|…).*                        # sk-...
      | change[-_ ]?(?:me|it|this) | todo | placeholder | (?:openai[-_ ]?)?api[-_ ]?key
      | <.*> | \[.*\] | \$?\{.*\} | %.*%        # a client's template that nobody filled in
    )?
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_SECRET_NAME = re.compile(r"token(?!i[sz]er)|key|secret|passw|auth|credential|cookie|bearer", re.IGNORECASE)
_SECRET_VALUE = re.compile(r"://[^/\s]*@|\b(?:sk|hf|pk)[-_]\w{6}|\bbearer\s|\bbasic\s", re.IGNORECASE)

logger = logging.getLogger(__name__)


def _storable_text(text: str) -> str:
    if "\x00" in text or _SURROGATE.search(text):
        raise ValueError(_UNSTORABLE)
    return text


def _name_text(text: str) -> str:
    if not text.strip():
        msg = "is blank; give it a text or leave it out"
        raise ValueError(msg)
    return _storable_text(text)


def _folder(value: object) -> object:
    """Return the absolute path, `~` expanded; what is neither text nor path is left to the type check."""
    if not isinstance(value, str | Path):
        return value
    text = str(value)
    if not text.strip():
        msg = "is blank; name a folder or leave it out for the platform's"
        raise ValueError(msg)
    if CONTROL.search(text):
        msg = "holds a control character; in JSON write each backslash twice, or use /"
        raise ValueError(msg)
    try:
        os.fsencode(text)
        return Path(text).expanduser().absolute()
    except UnicodeError as error:
        msg = "holds characters that no file name can hold; write it in plain Unicode"
        raise ValueError(msg) from error
    except (RuntimeError, OSError) as error:
        msg = "cannot be made absolute (no such home or working folder); write the whole path"
        raise ValueError(msg) from error


def _default_folder() -> Path:
    try:
        folder = platformdirs.user_data_path(APP_NAME, appauthor=False)
    except RuntimeError as error:
        raise ConfigError(_NO_HOME) from error
    if not folder.is_absolute():  # how older platformdirs say the same; it would be the working directory
        raise ConfigError(_NO_HOME)
    return folder


def _upper(value: object) -> object:
    return value.strip().upper() if isinstance(value, str) else value


def _lower(value: object) -> object:
    return (value.strip().lower() or None) if isinstance(value, str) else value


def _base_url(url: str | None) -> str | None:
    """Return the URL without blanks around it; a blank or a placeholder is None."""
    if url is None or _PLACEHOLDER_KEY.fullmatch(url.strip()):
        return None
    url = _storable_text(url.strip())
    msg = "is no address of an API; write it like https://api.openai.com/v1"
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise ValueError(msg) from error
    if not is_usable or CONTROL.search(url) or " " in url:
        raise ValueError(msg)
    return url


def _zone_name(name: str) -> str:
    name = name.strip()
    if not name:
        return ""
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        known = zoneinfo.available_timezones()
        close = nearest_name(name, known)
        msg = "is no IANA time zone; write it like Europe/Berlin, or leave it empty for this machine's"
        if close:
            msg = f"is no IANA time zone; did you mean {close}?"
        elif not known:
            msg = "cannot be looked up: this machine has no time zone database; pip install tzdata"
        raise ValueError(msg) from error
    return name


def _json_object(value: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        msg = "is not plain JSON (NaN, half of a surrogate pair, or nested too deep)"
        raise ValueError(msg) from error
    return value


_Name = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_name_text)]


class Settings(BaseSettings):
    """Every setting, checked; read-only. Made by `load_settings`; called directly it takes only its arguments.

    Raises:
        pydantic.ValidationError: An argument is unknown or out of range; `load_settings` says it as a ConfigError.
    """

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        hide_input_in_errors=True,
        env_prefix=ENV_PREFIX,
        env_ignore_empty=True,
        enable_decoding=False,
    )

    user_id: _Name = Field(default="default_user", description="Whose memory this process serves; any text.")
    assistant_id: _Name = Field(
        default="default_assistant_profile", description="Which assistant the knowledge about the assistant belongs to."
    )
    data_storage_path: Annotated[Path, BeforeValidator(_folder)] = Field(
        default_factory=_default_folder,
        description="Folder of all memories. `~` is expanded; a relative path starts at the config file's folder. "
        "Default: the platform's user data folder.",
    )
    short_term_capacity: int = Field(
        default=7, strict=True, ge=0, le=_COUNT_MAX, description="Pages kept verbatim and returned on every retrieval."
    )
    mid_term_capacity: int = Field(
        default=200,
        strict=True,
        ge=1,
        le=_COUNT_MAX,
        description="Topic segments kept; beyond it the coldest are archived.",
    )
    long_term_knowledge_capacity: int = Field(
        default=100,
        strict=True,
        ge=1,
        le=_COUNT_MAX,
        description="Facts kept about the user, and as many about the assistant.",
    )
    retrieval_queue_capacity: int = Field(
        default=10, strict=True, ge=1, le=100, description="Pages returned when a call names no `max_results`."
    )
    retrieval_max_tokens: int = Field(
        default=2000,
        strict=True,
        ge=100,
        le=1_000_000,
        description="Tokens of a reply when a call names no `max_tokens`.",
    )
    mid_term_heat_threshold: float = Field(
        default=5.0, strict=True, gt=0, description="Heat from which a segment is promoted to profile and knowledge."
    )
    mid_term_similarity_threshold: float = Field(
        default=0.6,
        strict=True,
        ge=0,
        le=2,
        description="Cosine plus keyword overlap from which a page joins a segment.",
    )
    heat_alpha: float = Field(default=1.0, strict=True, ge=0, description="Weight of a segment's visits in its heat.")
    heat_beta: float = Field(default=1.0, strict=True, ge=0, description="Weight of a segment's pages in its heat.")
    heat_gamma: float = Field(default=1.0, strict=True, ge=0, description="Weight of a segment's recency in its heat.")
    heat_mu_s: float = Field(default=1e7, strict=True, gt=0, description="Decay time of a segment's recency, seconds.")
    openai_api_key: SecretStr | None = Field(
        default=None, description="Key of the LLM. Empty or a placeholder counts as none."
    )
    openai_base_url: Annotated[str | None, AfterValidator(_base_url)] = Field(
        default=None, repr=False, description="Address of an OpenAI-compatible API. Default: the provider's own."
    )
    llm_provider: Annotated[LlmProvider | None, BeforeValidator(_lower)] = Field(
        default=None,
        description="Preset of an API's address and its key's own environment variable. "
        "Null: OpenAI's with `openai_api_key`, or `openai_base_url`.",
    )
    llm_model: _Name = Field(default="gpt-4o-mini", description="Name of the LLM.")
    llm_timeout_s: float = Field(
        default=120.0, strict=True, gt=0, le=3600, description="Longest wait for one reply of the LLM, seconds."
    )
    llm_max_concurrent_calls: int = Field(
        default=16, strict=True, ge=1, le=1000, description="Calls to the LLM that may run at once in this process."
    )
    llm_max_prompt_tokens: int = Field(
        default=24_000,
        strict=True,
        ge=1000,
        le=1_000_000,
        description="Tokens of one prompt; longer pages are shown to the LLM in part.",
    )
    llm_daily_token_limit: Annotated[int, Field(strict=True, ge=0, le=_TOKENS_MAX)] | None = Field(
        default=None,
        description="Tokens a day that may be spent on one user; then memory goes on without the LLM until the next. "
        "Null: no limit.",
    )
    llm_log: bool = Field(
        default=False,
        strict=True,
        description="Whether each request to the LLM and its reply are written to the user's folder; "
        "`memoryos-mcp llm-log` shows them.",
    )
    llm_replay_file: Annotated[Path | None, BeforeValidator(_folder)] = Field(
        default=None,
        description="Answer from this file of logged or batch replies instead of asking an LLM. "
        "What it lacks is written beside it as a batch to be sent.",
    )
    max_topics: int = Field(
        default=4, strict=True, ge=1, le=20, description="Topics at most that the LLM may find in one batch of pages."
    )
    profile_dimensions: Annotated[list[_Name], Field(max_length=100)] = Field(
        default=[], description="Dimensions of the profile that are yours, beside the 90 of the catalogue."
    )
    embedding_model_name: _Name = Field(
        default="all-MiniLM-L6-v2", description="Name of the embedding model; `all-MiniLM-L6-v2` is the bundled one."
    )
    embedding_model_kwargs: Annotated[dict[str, JsonValue] | None, AfterValidator(_json_object)] = Field(
        default=None, repr=False, description="Further arguments of the embedding model's constructor, a JSON object."
    )
    session_gap_s: float = Field(
        default=1800.0, strict=True, ge=0, le=_YEAR_S, description="Silence after which a new session begins, seconds."
    )
    timezone: Annotated[str, AfterValidator(_zone_name)] = Field(
        default="", description="IANA zone of times without one, like Europe/Berlin. Empty: this machine's."
    )
    consolidation_batch_pages: int = Field(
        default=10, strict=True, ge=1, le=100, description="Pages waiting from which a batch is consolidated at once."
    )
    consolidation_idle_s: float = Field(
        default=60.0,
        strict=True,
        ge=0,
        le=_YEAR_S,
        description="Silence after which a smaller batch is consolidated, seconds.",
    )
    max_page_chars: int = Field(
        default=1_000_000,
        strict=True,
        ge=1,
        le=10_000_000,
        description="Upper limit of one page, both sides, characters.",
    )
    max_open_users: int = Field(
        default=200,
        strict=True,
        ge=1,
        le=100_000,
        description="Users' memories held open at once; beyond it the idlest close.",
    )
    log_level: Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"], BeforeValidator(_upper)] = Field(
        default="INFO", description="Least severity that is logged to stderr. DEBUG logs dialogue text."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take only the arguments: `load_settings` merges the sources, so that each error names its own."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)

    @property
    def zone(self) -> tzinfo | None:
        """The zone of times without one; None means this machine's."""
        return zoneinfo.ZoneInfo(self.timezone) if self.timezone else None

    @property
    def has_llm_key(self) -> bool:
        """Whether a key is set that could be one: no placeholder, and fit for a header."""
        if self.openai_api_key is None:
            return False
        key = self.openai_api_key.get_secret_value().strip()
        return key.isascii() and key.isprintable() and not _PLACEHOLDER_KEY.fullmatch(key)

    @property
    def uses_bundled_embedder(self) -> bool:
        """Whether the embedding model named is the one that comes with the package."""
        return self.embedding_model_name.strip().lower() in BUNDLED_EMBEDDER_NAMES

    def public(self) -> dict[str, JsonValue]:
        """Return every setting in JSON's types, fit for anyone's eyes: no key, no credential in an address."""
        shown: dict[str, JsonValue] = {name: getattr(self, name) for name in type(self).model_fields}
        shown["data_storage_path"] = os.fsencode(self.data_storage_path).decode("utf-8", "replace")
        shown["openai_api_key"] = "set" if self.has_llm_key else "not set"
        shown["openai_base_url"] = _without_credentials(self.openai_base_url)
        shown["embedding_model_kwargs"] = _masked(self.embedding_model_kwargs, depth=0)
        return shown


def load_settings(config_file: Path | None, overrides: Mapping[str, Any]) -> Settings:
    """Return the settings of the config file, the environment over it, and the overrides over both.

    Args:
        config_file: JSON object of settings; None means the one that ``MEMORYOS_CONFIG`` names, if any.
        overrides: Settings from flags, by name; None means not given. A text for a number is parsed.

    Raises:
        ConfigError: A setting is unknown or out of range, or the file cannot be read; one line, no value of a text.
    """
    path = _config_path(config_file)
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    if path is not None:
        for name, value in read_config_file(path).items():
            if value is not None or name not in Settings.model_fields:
                values[name] = value
                origins[name] = f"{path}: {shown_key(name)}"
    for name, text in EnvSettingsSource(Settings)().items():
        values[name] = _from_text(name, text)
        origins[name] = f"{ENV_PREFIX}{name.upper()}"
    for name, value in overrides.items():
        if value is not None:
            values[name] = _from_text(name, value)
            origins[name] = shown_key(name)
    if "data_storage_path" in values:
        values["data_storage_path"] = _against(path, values["data_storage_path"])
    _warn_of_unknown_variables(os.environ)
    # Checked here as well as by the model, whose constructor has options of its own, like `_env_file`.
    unknown = [_unknown_key(name, origins[name]) for name in values if name not in Settings.model_fields]
    try:
        settings = Settings(**{name: value for name, value in values.items() if name in Settings.model_fields})
    except ValidationError as error:
        raise config_error([*unknown, *_problems(error, origins)]) from error
    if unknown:
        raise config_error(unknown)
    return settings


def check_data_folder(settings: Settings) -> None:
    """Make the data folder, for this account only, and prove that it can be written.

    Raises:
        ConfigError: It cannot be made or written; names the folder and the fix.
    """
    folder = settings.data_storage_path
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder, prefix=".write-test-") as file:
            file.write(b"memory")
            file.flush()
    except (FileExistsError, NotADirectoryError) as error:
        problem = f"data_storage_path: {folder} is a file or lies under one; name a folder"
        raise config_error([problem]) from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        problem = (
            f"data_storage_path: {folder} cannot be written ({reason}); "
            "make it writable for this account, or name another folder"
        )
        raise config_error([problem]) from error


def describe_values(name: str) -> str:
    """Return what a setting may be, as its errors and the documentation say it: "a whole number from 1 to 100".

    Args:
        name: Name of a setting.
    """
    field = Settings.model_fields[name]
    kind = next((part for part in get_args(field.annotation) or () if part is not NoneType), field.annotation)
    if kind in (int, float):
        return f"{'a whole number' if kind is int else 'a number'} {_range(field.metadata)}"
    if name == "log_level":
        return f"one of {', '.join(get_args(field.annotation))}"
    if name == "embedding_model_kwargs":
        return "a JSON object or null"
    if kind is Path:
        return "a folder's path"
    longest = _limit(field.metadata, "max_length")
    return f"a text of 1 to {longest:,} characters" if longest else "a text"


def _limit(metadata: Iterable[object], bound: str) -> Any:
    return next((getattr(part, bound) for part in metadata if getattr(part, bound, None) is not None), None)


def _range(metadata: Sequence[object]) -> str:
    at_least, above, at_most = (_limit(metadata, bound) for bound in ("ge", "gt", "le"))
    if above is not None:
        return f"above {above:,}" if at_most is None else f"above {above:,} and up to {at_most:,}"
    if at_most is None:
        return f"of {at_least:,} or more"
    return f"from {at_least:,} to {at_most:,}"


def _config_path(config_file: Path | None) -> Path | None:
    named = config_file if config_file is not None else os.environ.get(CONFIG_FILE_VARIABLE)
    if not named:
        return None
    try:
        return Path(named).expanduser().absolute()
    except (RuntimeError, OSError) as error:
        problem = f"{named}: the config file's path cannot be made absolute; write the whole path"
        raise config_error([problem]) from error


def _from_text(name: str, value: Any) -> Any:
    """Return a variable's or flag's text as the setting's type; what does not parse is left to the check."""
    field = Settings.model_fields.get(name)
    if field is None or not isinstance(value, str):
        return value
    try:
        if field.annotation is float:
            return float(value)
        if field.annotation is int:
            return _whole_number(value)
        return parse_json(value) if name == "embedding_model_kwargs" else value
    except ValueError:
        return value


def _whole_number(text: str) -> float:
    """Return an int for "7" and for "1e6", and a float, which the check refuses by its value, for "7.5"."""
    try:
        return int(text)
    except ValueError:
        number = float(text)
        return int(number) if number.is_integer() else number


def _against(config_file: Path | None, folder: Any) -> Any:
    """Return a relative data folder as one that starts at the config file's; anything else as it is."""
    if config_file is None or not isinstance(folder, str | Path):
        return folder
    text = str(folder)
    return folder if not text.strip() or text.startswith("~") else str(config_file.parent / text)


def _warn_of_unknown_variables(environment: Mapping[str, str]) -> None:
    known = {name.upper() for name in Settings.model_fields} | OTHER_VARIABLES
    for variable in sorted(environment):
        prefix, name = variable[: len(ENV_PREFIX)].upper(), variable[len(ENV_PREFIX) :].upper()
        if prefix == ENV_PREFIX and name not in known:
            close = nearest_name(name, known)
            hint = f"; did you mean {ENV_PREFIX}{close}?" if close else ""
            logger.warning("environment variable %s is no setting and is ignored%s", shown_key(variable), hint)


def _unknown_key(name: str, where: str) -> str:
    close = nearest_name(name, Settings.model_fields)
    return f"{where} is no setting" + (f"; did you mean {close}?" if close else "")


def _problems(error: ValidationError, origins: Mapping[str, str]) -> list[str]:
    """Return one phrase for each setting that cannot be used, without the text of any value."""
    found: dict[str, str] = {}
    for problem in error.errors(include_url=False):
        name = str(problem["loc"][0])
        where = origins[name]
        if problem["type"] == "value_error":
            phrase = f"{where} {problem['ctx']['error']}"
        elif problem["type"] == "string_unicode":
            phrase = f"{where} {_UNSTORABLE}"
        elif problem["type"] == "literal_error":
            phrase = f"{where} must be {describe_values(name)}"
        else:
            phrase = f"{where} must be {describe_values(name)}, not {kind_of(problem['input'])}"
        found.setdefault(name, phrase)
    return list(found.values())


def _without_credentials(url: str | None) -> str | None:
    if url is None:
        return None
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _masked(value: JsonValue, *, depth: int) -> JsonValue:
    """Return the value with everything hidden that stands under a key-like name, looks like a key, or lies too deep."""
    if isinstance(value, dict | list) and depth >= _KWARGS_DEPTH_SHOWN:
        return _HIDDEN
    if isinstance(value, dict):
        return {
            name: _HIDDEN if _SECRET_NAME.search(name) else _masked(inner, depth=depth + 1)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_masked(inner, depth=depth + 1) for inner in value]
    return _HIDDEN if isinstance(value, str) and _SECRET_VALUE.search(value) else value
