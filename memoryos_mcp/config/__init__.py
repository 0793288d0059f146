"""Settings: every knob, its unit, its range and its default.

The keys of the reference implementation keep their names and meaning, so that its config.json works unchanged.
"""

import zoneinfo
from datetime import tzinfo
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, SecretStr
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from memoryos_mcp.config.checks import (
    api_url,
    default_folder,
    different_names,
    dimension_name,
    file_path,
    folder_path,
    is_placeholder,
    json_object,
    lower_or_none,
    name_text,
    upper,
    zone_name,
)
from memoryos_mcp.config.http import HttpSettings
from memoryos_mcp.config.masks import masked, path_text, without_credentials

ENV_PREFIX = "MEMORYOS_"
LlmProvider = Literal["openai", "anthropic", "deepseek", "qwen", "vllm", "llama-factory", "ollama", "llama.cpp"]
BUNDLED_EMBEDDER_NAMES = frozenset({"all-minilm-l6-v2", "sentence-transformers/all-minilm-l6-v2", "bundled"})

# Pages of a batch, without an LLM and with one.
BATCH_PAGES = 10
LLM_BATCH_PAGES = 20

_COUNT_MAX = 1_000_000_000
_TOKENS_MAX = 1_000_000_000_000
_DAYS_MAX = 36_500
_YEAR_S = 365 * 86_400

_Name = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(name_text)]
_Dimension = Annotated[str, Field(min_length=1, max_length=60), AfterValidator(dimension_name)]


class Settings(HttpSettings):
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
    data_storage_path: Annotated[Path, BeforeValidator(folder_path)] = Field(
        default_factory=default_folder,
        description="Folder of all memories. `~` is expanded; a relative path starts at the config file's folder. "
        "Default: the platform's user data folder.",
    )
    short_term_capacity: int = Field(
        default=7,
        strict=True,
        ge=0,
        le=_COUNT_MAX,
        description="Newest pages kept verbatim. A retrieval returns the last two, and others that bear on the query.",
    )
    mid_term_capacity: int = Field(
        default=200,
        strict=True,
        ge=1,
        le=_COUNT_MAX,
        description="Topic segments kept; beyond it the coldest are archived.",
    )
    long_term_knowledge_capacity: int = Field(
        default=3000,
        strict=True,
        ge=1,
        le=_COUNT_MAX,
        description="Current facts about the user, and as many about the assistant; beyond it those longest unheard of "
        "are archived, which questions still find.",
    )
    retrieval_queue_capacity: int = Field(
        default=20,
        strict=True,
        ge=1,
        le=100,
        description="Pages found at most when a call names no `max_results`; mostly fewer answer, or fit.",
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
    openai_base_url: Annotated[str | None, AfterValidator(api_url)] = Field(
        default=None, repr=False, description="Address of an OpenAI-compatible API. Default: the provider's own."
    )
    llm_provider: Annotated[LlmProvider | None, BeforeValidator(lower_or_none)] = Field(
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
    llm_daily_token_limit: int | None = Field(
        default=None,
        strict=True,
        ge=0,
        le=_TOKENS_MAX,
        description="Tokens a day that may be spent on one user; then memory goes on without the LLM until the next. "
        "Null: no limit.",
    )
    llm_log: bool = Field(
        default=False,
        strict=True,
        description="Whether each request to the LLM and its reply are written to the user's folder; "
        "`memoryos-mcp llm-log` shows them.",
    )
    llm_replay_file: Annotated[Path | None, BeforeValidator(file_path)] = Field(
        default=None,
        description="Answer from this file of logged or batch replies instead of asking an LLM. "
        "What it lacks is written beside it as a batch to be sent.",
    )
    max_topics: int = Field(
        default=6, strict=True, ge=1, le=20, description="Topics at most that the LLM may find in one batch of pages."
    )
    profile_dimensions: Annotated[list[_Dimension], Field(max_length=100), AfterValidator(different_names)] = Field(
        default=[], description="Dimensions of the profile that are yours, beside the 90 of the catalogue."
    )
    embedding_model_name: _Name = Field(
        default="all-MiniLM-L6-v2",
        description="Name or folder of the embedding model; `all-MiniLM-L6-v2` is the bundled one, "
        "and with `none` words answer alone.",
    )
    embedding_model_kwargs: Annotated[dict[str, JsonValue] | None, AfterValidator(json_object)] = Field(
        default=None, repr=False, description="Further arguments of the embedding model's constructor, a JSON object."
    )
    embedding_base_url: Annotated[str | None, AfterValidator(api_url)] = Field(
        default=None,
        repr=False,
        description="Address of an OpenAI-compatible API that has the embedding model. Empty: the model runs here.",
    )
    embedding_api_key: SecretStr | None = Field(
        default=None,
        description="Key of that API; the LLM's is not used for it. Empty or a placeholder counts as none.",
    )
    embedding_timeout_s: float = Field(
        default=60.0, strict=True, gt=0, le=3600, description="Longest wait for one reply of that API, seconds."
    )
    session_gap_s: float = Field(
        default=1800.0, strict=True, ge=0, le=_YEAR_S, description="Silence after which a new session begins, seconds."
    )
    timezone: Annotated[str, AfterValidator(zone_name)] = Field(
        default="", description="IANA zone of times without one, like Europe/Berlin. Empty: this machine's."
    )
    consolidation_batch_pages: int | None = Field(
        default=None,
        strict=True,
        ge=1,
        le=100,
        description="Pages waiting from which a batch is consolidated at once; an LLM is asked about 20 at most. "
        "Null: 10, with an LLM 20.",
    )
    consolidation_idle_s: float = Field(
        default=60.0,
        strict=True,
        ge=0,
        le=_YEAR_S,
        description="Silence after which a smaller batch is consolidated, seconds. With an LLM the fewer pages wait, "
        "the longer: times the batch's size, by the pages.",
    )
    max_page_chars: int = Field(
        default=1_000_000,
        strict=True,
        ge=1,
        le=10_000_000,
        description="Upper limit of one page, both sides, characters.",
    )
    secret_policy: Literal["redact", "reject", "off"] = Field(
        default="redact",
        description="What becomes of keys, passwords and card numbers in a page: left out before it is stored, "
        "the page refused, or nothing.",
    )
    retention_days: int | None = Field(
        default=None,
        strict=True,
        ge=1,
        le=_DAYS_MAX,
        description="Days after which a page and what rests on it alone are forgotten, by when it was said; if "
        "the clock may be wrong, only at a second look a day later. Null: kept for ever.",
    )
    max_open_users: int = Field(
        default=200,
        strict=True,
        ge=1,
        le=100_000,
        description="Users' memories held open at once; beyond it the idlest close. "
        "Fewer where the system allows too few open files.",
    )
    act_as: bool = Field(default=False, strict=True, description="Whether calls over stdio may name another user.")
    log_level: Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"], BeforeValidator(upper)] = Field(
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
        """Use only the arguments: `load_settings` merges the sources, so that each error names its source."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)

    @property
    def zone(self) -> tzinfo | None:
        """The time zone of times without one; None means this machine's."""
        return zoneinfo.ZoneInfo(self.timezone) if self.timezone else None

    def batch_pages(self, *, has_llm: bool) -> int:
        """Return how many pages are consolidated at once: more with an LLM, since each batch costs a call."""
        if has_llm:
            return min(self.consolidation_batch_pages or LLM_BATCH_PAGES, LLM_BATCH_PAGES)
        return self.consolidation_batch_pages or BATCH_PAGES

    @property
    def has_llm_key(self) -> bool:
        """Whether a usable key is set: not a placeholder, and valid in a header."""
        return _usable(self.openai_api_key) is not None

    @property
    def embedding_key(self) -> SecretStr | None:
        """The key of the embedding model's API; None if no usable one is set."""
        return _usable(self.embedding_api_key)

    @property
    def wants_no_embedder(self) -> bool:
        """Whether only keyword search is wanted."""
        return self.embedding_model_name.strip().lower() == "none"

    @property
    def uses_bundled_embedder(self) -> bool:
        """Whether the configured embedding model is the bundled one."""
        return self.embedding_base_url is None and self.embedding_model_name.strip().lower() in BUNDLED_EMBEDDER_NAMES

    def public(self) -> dict[str, JsonValue]:
        """Return every setting as a JSON value that anyone may see: no key, no credential in a URL."""
        shown: dict[str, JsonValue] = {name: getattr(self, name) for name in type(self).model_fields}
        shown["data_storage_path"] = path_text(self.data_storage_path)
        shown["openai_api_key"] = "set" if self.has_llm_key else "not set"
        shown["openai_base_url"] = without_credentials(self.openai_base_url)
        shown["embedding_api_key"] = "set" if self.embedding_key else "not set"
        shown["embedding_base_url"] = without_credentials(self.embedding_base_url)
        shown["llm_replay_file"] = None if self.llm_replay_file is None else path_text(self.llm_replay_file)
        shown["profile_dimensions"] = list(self.profile_dimensions)
        shown["embedding_model_kwargs"] = masked(self.embedding_model_kwargs)
        return shown


def _usable(key: SecretStr | None) -> SecretStr | None:
    """Return a key without surrounding blanks; None if it is a placeholder or not valid in a header."""
    text = "" if key is None else key.get_secret_value().strip()
    return SecretStr(text) if text.isascii() and text.isprintable() and not is_placeholder(text) else None
