"""The settings: all keys of the config file, with their units, ranges and defaults.

A config.json of MemoryOS, the reference implementation, works unchanged: its settings keep their names and meanings.
"""

import zoneinfo
from datetime import tzinfo
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, SecretStr, StrictBool, StrictFloat, StrictInt
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from memoryos_mcp.config import checks
from memoryos_mcp.config.http import HttpSettings
from memoryos_mcp.config.masks import masked, path_text, without_credentials

ENV_PREFIX = "MEMORYOS_"
LlmProvider = Literal["openai", "anthropic", "deepseek", "qwen", "vllm", "llama-factory", "ollama", "llama.cpp"]
# Names of the bundled model: its own, and those of the model that earlier versions contained.
BUNDLED_EMBEDDER_NAMES = frozenset(
    {"memoryos-small", "bundled", "all-minilm-l6-v2", "sentence-transformers/all-minilm-l6-v2"}
)

# Number of pages in a full batch: without an LLM, and with an LLM.
BATCH_PAGES = 10
LLM_BATCH_PAGES = 20

_COUNT_MAX = 1_000_000_000
_TOKENS_MAX = 1_000_000_000_000
_DAYS_MAX = 36_500
_YEAR_S = 365 * 86_400

_Name = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(checks.name_text)]
_Dimension = Annotated[str, Field(min_length=1, max_length=60), AfterValidator(checks.dimension_name)]
_Dimensions = Annotated[list[_Dimension], Field(max_length=100), AfterValidator(checks.different_names)]
_LogLevel = Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"], BeforeValidator(checks.upper)]


class Settings(HttpSettings):
    """All settings, validated and read-only.

    `load_settings` reads the settings from the config file, the environment and command-line flags. The constructor
    uses only its arguments and the defaults.

    Raises:
        pydantic.ValidationError: An argument is unknown or out of range; `load_settings` raises ConfigError instead.
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

    user_id: _Name = Field(
        default="default_user",
        description="Id of the user whose memory is used, unless a token or a call names another user; any text.",
    )
    assistant_id: _Name = Field(
        default="default_assistant_profile",
        description="Id of the assistant; any text. Facts about the assistant are stored under this id.",
    )
    data_storage_path: Annotated[Path, BeforeValidator(checks.folder_path)] = Field(
        default_factory=checks.default_folder,
        description="Folder in which all memories are stored. `~` means the home folder. A relative path is relative "
        "to the config file's folder. Default: the platform's folder for user data.",
    )
    database_url: Annotated[SecretStr | None, AfterValidator(checks.database_url)] = Field(
        default=None,
        description="Address of a PostgreSQL database in which all memories are stored, such as "
        "`postgresql://USER:PASSWORD@HOST/DATABASE`. Null means files in `data_storage_path`.",
    )
    short_term_capacity: Annotated[StrictInt, Field(ge=0, le=_COUNT_MAX)] = Field(
        default=7,
        description="Maximum number of pages in short-term memory. These are the newest pages. A retrieval "
        "returns the last two of them, and the others if they are relevant to the query.",
    )
    mid_term_capacity: Annotated[StrictInt, Field(ge=1, le=_COUNT_MAX)] = Field(
        default=200,
        description="Maximum number of topic segments. If there are more, those with the lowest heat are archived.",
    )
    long_term_knowledge_capacity: Annotated[StrictInt, Field(ge=1, le=_COUNT_MAX)] = Field(
        default=3000,
        description="Maximum number of current facts about the user. The same limit applies to facts about the "
        "assistant. If there are more, the least recently mentioned facts are archived. A retrieval can still return "
        "archived facts.",
    )
    retrieval_queue_capacity: Annotated[StrictInt, Field(ge=1, le=100)] = Field(
        default=20,
        description="Maximum number of pages that a retrieval returns in addition to those in short-term memory. A "
        "call can override this number with `max_results`. Fewer pages are returned if fewer are relevant, or if the "
        "result would be too long.",
    )
    retrieval_max_tokens: Annotated[StrictInt, Field(ge=100, le=1_000_000)] = Field(
        default=2000,
        description="Maximum length of a retrieval's result, in tokens. A call can override it with `max_tokens`.",
    )
    mid_term_heat_threshold: StrictFloat = Field(
        default=5.0,
        gt=0,
        description="Minimum heat at which a segment's new pages are used to update the profile; see `heat_alpha`.",
    )
    mid_term_similarity_threshold: Annotated[StrictFloat, Field(ge=0, le=2)] = Field(
        default=0.6,
        description="Minimum similarity at which a page joins a segment. The similarity is the cosine of their vectors "
        "plus the overlap of their keywords, which is 0 to 1.",
    )
    heat_alpha: StrictFloat = Field(
        default=1.0,
        ge=0,
        description="Weight of visits in a segment's heat. The heat is `heat_alpha * visits + heat_beta * pages + "
        "heat_gamma * recency`. A visit is a retrieval that returns the segment. After each update of the "
        "profile from the segment, visits and pages are counted from 0 again.",
    )
    heat_beta: StrictFloat = Field(
        default=1.0, ge=0, description="Weight of new pages in a segment's heat; see `heat_alpha`."
    )
    heat_gamma: StrictFloat = Field(
        default=1.0,
        ge=0,
        description="Weight of recency in a segment's heat; see `heat_alpha`. Recency falls from 1 at the last visit "
        "towards 0.",
    )
    heat_mu_s: StrictFloat = Field(
        default=1e7,
        gt=0,
        description="Time in which the recency of a segment's last visit falls from 1 to 0.37, in seconds.",
    )
    openai_api_key: SecretStr | None = Field(
        default=None, description="API key for the LLM. An empty string or a placeholder means that no key is set."
    )
    openai_base_url: Annotated[str | None, AfterValidator(checks.api_url)] = Field(
        default=None,
        repr=False,
        description="URL of the LLM's OpenAI-compatible API. Default: the provider's URL.",
    )
    llm_provider: Annotated[LlmProvider | None, BeforeValidator(checks.lower_or_none)] = Field(
        default=None,
        description="Provider of the LLM. It determines the API's URL and the environment variable that contains the "
        "API key. Null means the API at `openai_base_url`, or OpenAI if only `openai_api_key` is set.",
    )
    llm_model: _Name = Field(default="gpt-4o-mini", description="Name of the LLM in the provider's API.")
    llm_timeout_s: StrictFloat = Field(
        default=120.0, gt=0, le=3600, description="Maximum time to wait for one reply of the LLM, in seconds."
    )
    llm_max_concurrent_calls: StrictInt = Field(
        default=16, ge=1, le=1000, description="Maximum number of LLM calls that this process makes at the same time."
    )
    llm_max_prompt_tokens: Annotated[StrictInt, Field(ge=1000, le=1_000_000)] = Field(
        default=24_000,
        description="Maximum length of one LLM prompt, in tokens. If needed, the longest pages are shortened.",
    )
    llm_daily_token_limit: Annotated[int | None, Field(strict=True, ge=0, le=_TOKENS_MAX)] = Field(
        default=None,
        description="Maximum number of LLM tokens per user and day. When they are used up, the memory works without "
        "the LLM until the next day, which begins at midnight in `timezone`. Null means no limit.",
    )
    llm_log: StrictBool = Field(
        default=False,
        description="Whether all LLM requests and their replies are logged in the user's folder. The command "
        "`memoryos-mcp llm-log` shows the log.",
    )
    llm_replay_file: Annotated[Path | None, BeforeValidator(checks.file_path)] = Field(
        default=None,
        description="File with replies that are used instead of calling an LLM: a log written with `llm_log`, or the "
        "output of a batch API. Requests without a reply in `NAME.jsonl` are written to `NAME.missing.jsonl` in the "
        "same folder, as input for a batch API.",
    )
    max_topics: StrictInt = Field(
        default=6, ge=1, le=20, description="Maximum number of topics that the LLM may find in one batch of pages."
    )
    profile_dimensions: _Dimensions = Field(
        default=[],
        description="Names of additional dimensions that a profile can contain, like Chess. "
        "90 dimensions are built in.",
    )
    embedding_model_name: _Name = Field(
        default="memoryos-small",
        description="Name or folder of the embedding model. `memoryos-small` is bundled. With `none`, search uses "
        "only keywords.",
    )
    embedding_model_kwargs: Annotated[dict[str, JsonValue] | None, AfterValidator(checks.json_object)] = Field(
        default=None,
        repr=False,
        description="Additional arguments for the embedding model, as a JSON object. The bundled model ignores them. "
        "Other local models accept `use_fp16` and the arguments of `SentenceTransformer`. Models behind an API accept "
        "`dimensions`, `query_prompt` and `passage_prompt`.",
    )
    embedding_base_url: Annotated[str | None, AfterValidator(checks.api_url)] = Field(
        default=None,
        repr=False,
        description="URL of an OpenAI-compatible API that provides the embedding model. If empty, the model runs in "
        "this process.",
    )
    embedding_api_key: SecretStr | None = Field(
        default=None,
        description="API key for the embedding model. The LLM's API key is not used for it. An empty string or "
        "a placeholder means that no key is set.",
    )
    embedding_timeout_s: StrictFloat = Field(
        default=60.0,
        gt=0,
        le=3600,
        description="Maximum time to wait for one reply of the embedding model's API, in seconds.",
    )
    vector_index: Annotated[str, Field(min_length=1, max_length=100), AfterValidator(checks.name_text)] = Field(
        default="faiss",
        description="Index that finds the pages nearest to a question by their vectors. `faiss` keeps vectors in RAM. "
        "If a memory in PostgreSQL has more than `max_vectors_in_ram` vectors, PostgreSQL searches the vectors instead "
        "of `faiss`. `chroma` keeps vectors in the folder `chroma` of `data_storage_path`, or on the server at "
        "`chroma_url`. `pgvector` keeps them in PostgreSQL, with the extension `vector`. Installed packages may "
        "provide other indexes.",
    )
    chroma_url: Annotated[str | None, AfterValidator(checks.chroma_url)] = Field(
        default=None,
        description="URL of a Chroma server for `vector_index`, such as `http://localhost:8000`. "
        "Null means the folder `chroma` of `data_storage_path`.",
    )
    max_vectors_in_ram: Annotated[StrictInt, Field(ge=0, le=1_000_000_000)] = Field(
        default=20_000,
        description="Maximum number of page vectors of one user that `faiss` keeps in RAM. A memory in PostgreSQL with "
        "more vectors is searched in the database. Memories in files are always searched in RAM.",
    )
    retrieval_strategy: Annotated[str, Field(min_length=1, max_length=100), AfterValidator(checks.name_text)] = Field(
        default="all",
        description="How older pages are found. `all` ranks pages of all topics together. `paper` selects the best "
        "topics first and then their best pages, as the paper on MemoryOS describes. Installed packages may provide "
        "other strategies.",
    )
    session_gap_s: Annotated[StrictFloat, Field(ge=0, le=_YEAR_S)] = Field(
        default=1800.0, description="Pause in a conversation after which a new session begins, in seconds."
    )
    timezone: Annotated[str, AfterValidator(checks.zone_name)] = Field(
        default="",
        description="IANA time zone for times without a zone, like Europe/Berlin. If empty, this machine's time zone "
        "is used.",
    )
    consolidation_batch_pages: Annotated[int | None, Field(strict=True, ge=1, le=100)] = Field(
        default=None,
        description="Number of pages in a full batch. As soon as this many pages are waiting, they are organised into "
        "topics. With an LLM, a batch has at most 20 pages. Null means 20 with an LLM, and 10 without one.",
    )
    consolidation_idle_s: Annotated[StrictFloat, Field(ge=0, le=_YEAR_S)] = Field(
        default=60.0,
        description="Pause in a conversation after which an incomplete batch is organised, in seconds. With an LLM, "
        "the pause is longer: it is multiplied by the size of a full batch and divided by the number of waiting pages.",
    )
    max_page_chars: Annotated[StrictInt, Field(ge=1, le=10_000_000)] = Field(
        default=1_000_000,
        description="Maximum length of one page, in characters: the user's text and the assistant's together.",
    )
    secret_policy: Literal["redact", "reject", "off"] = Field(
        default="redact",
        description="How keys, passwords and card numbers in a page are handled: `redact` removes them before the page "
        "is stored, `reject` refuses the page, and `off` stores them.",
    )
    retention_days: Annotated[int | None, Field(strict=True, ge=1, le=_DAYS_MAX)] = Field(
        default=None,
        description="Age in days at which a page is forgotten, together with everything that was learned only from it. "
        "The age is counted from the time of the dialogue. If the system clock seems wrong, pages are forgotten only "
        "after a second check at least a day later. Null means that pages are not forgotten by age.",
    )
    project_isolation: StrictBool = Field(
        default=False,
        description="Whether a query finds only memories of its project and memories without a project. A query "
        "without a project then finds only memories without one.",
    )
    max_open_users: Annotated[StrictInt, Field(ge=1, le=100_000)] = Field(
        default=200,
        description="Maximum number of users whose memories are open at the same time. If there are more, the memory "
        "that has been idle longest is closed. The limit is lower if the system allows too few open files.",
    )
    act_as: StrictBool = Field(
        default=False,
        description="Whether a call over stdio may use the memory of another user, by passing a `user_id`.",
    )
    log_level: _LogLevel = Field(
        default="INFO", description="Lowest severity that is logged to stderr. DEBUG also logs the text of dialogues."
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
        """Return only the constructor's arguments as a source of settings.

        `load_settings` reads the other sources itself, so that each error message can name the source.
        """
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)

    @property
    def memories_place(self) -> str:
        """Text for messages: the path of the data folder, or the database's URL without credentials."""
        if self.database_url is None:
            return path_text(self.data_storage_path)
        return without_credentials(self.database_url.get_secret_value()) or ""

    @property
    def memories_setting(self) -> str:
        """The name of the setting that determines `memories_place`."""
        return "data_storage_path" if self.database_url is None else "database_url"

    @property
    def needs_data_folder(self) -> bool:
        """Whether files are written to `data_storage_path`."""
        has_chroma_folder = self.vector_index == "chroma" and self.chroma_url is None
        return self.database_url is None or self.llm_log or has_chroma_folder

    @property
    def zone(self) -> tzinfo | None:
        """The time zone for times without a zone; None means the zone of this machine."""
        return zoneinfo.ZoneInfo(self.timezone) if self.timezone else None

    def batch_pages(self, *, has_llm: bool) -> int:
        """Return the number of pages in a full batch.

        The default is larger with an LLM, because each batch costs a call.
        """
        if has_llm:
            return min(self.consolidation_batch_pages or LLM_BATCH_PAGES, LLM_BATCH_PAGES)
        return self.consolidation_batch_pages or BATCH_PAGES

    @property
    def has_llm_key(self) -> bool:
        """Whether the LLM's key is set, is not a placeholder, and is valid in an HTTP header."""
        return _usable(self.openai_api_key) is not None

    @property
    def embedding_key(self) -> SecretStr | None:
        """The API key for the embedding model; None if it is missing, a placeholder, or not valid in an HTTP header."""
        return _usable(self.embedding_api_key)

    @property
    def wants_no_embedder(self) -> bool:
        """Whether search uses only keywords, without an embedding model."""
        return self.embedding_model_name.strip().lower() == "none"

    @property
    def uses_bundled_embedder(self) -> bool:
        """Whether the configured embedding model is the bundled one."""
        return self.embedding_base_url is None and self.embedding_model_name.strip().lower() in BUNDLED_EMBEDDER_NAMES

    def public(self) -> dict[str, JsonValue]:
        """Return all settings as JSON values that are safe to show.

        An API key becomes "set" or "not set". Credentials are removed from URLs and masked in other values.
        """
        shown: dict[str, JsonValue] = {name: getattr(self, name) for name in type(self).model_fields}
        shown["data_storage_path"] = path_text(self.data_storage_path)
        url = self.database_url
        shown["database_url"] = without_credentials(None if url is None else url.get_secret_value())
        shown["openai_api_key"] = "set" if self.has_llm_key else "not set"
        shown["openai_base_url"] = without_credentials(self.openai_base_url)
        shown["embedding_api_key"] = "set" if self.embedding_key else "not set"
        shown["embedding_base_url"] = without_credentials(self.embedding_base_url)
        shown["llm_replay_file"] = None if self.llm_replay_file is None else path_text(self.llm_replay_file)
        shown["profile_dimensions"] = list(self.profile_dimensions)
        shown["embedding_model_kwargs"] = masked(self.embedding_model_kwargs)
        return shown


def _usable(key: SecretStr | None) -> SecretStr | None:
    """Return an API key without surrounding spaces; None if it is a placeholder or not valid in an HTTP header."""
    text = "" if key is None else key.get_secret_value().strip()
    return SecretStr(text) if text.isascii() and text.isprintable() and not checks.is_placeholder(text) else None
