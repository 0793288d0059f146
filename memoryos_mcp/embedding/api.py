"""The embedder for any API that is compatible with OpenAI's ``/v1/embeddings``.

Such an API does not report the dimension or the weights of its model, and provides no tokenizer. Therefore, a probe
text is embedded first: its vector shows the dimension and identifies the weights. Texts are split into
windows of a maximum size in bytes.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from memoryos_mcp.embedding import EmbeddedQuery, EmbeddingModel, Passage
from memoryos_mcp.embedding.batching import batches
from memoryos_mcp.embedding.instructions import instructions_of
from memoryos_mcp.embedding.revision import PROBE, revision_of
from memoryos_mcp.embedding.windowing import first_window, windows
from memoryos_mcp.errors import ModelError
from memoryos_mcp.llm.api import Api, ApiClient, Attempts, ErrorResponse, PassingError, Wording
from memoryos_mcp.llm.api_errors import common_error, no_such_api
from memoryos_mcp.model.pages import Window, storable

if TYPE_CHECKING:
    import openai

# Limits of one request. The CPU of a small server embeds 24,000 characters (about 6,000 tokens) well within the time
# limit.
BATCH_TEXTS = 64
BATCH_CHARS = 24_000
# Queries have a separate limit, so that they never wait for an import.
BULK_CALLS_AT_ONCE = 4
QUERY_CALLS_AT_ONCE = 16
# A text that is rejected as too long is split in half, unless it has fewer characters than this. A window can thus be
# split up to four times.
SHORTEST_HALVED_CHARS = 150

# Users often include this path when they paste the base URL.
_EMBEDDINGS_PATH = re.compile(r"/embeddings/*$")
# Error messages about a text that is too long (llama.cpp, vLLM and Text Embeddings Inference), and about too many texts
# or tokens in a request (OpenAI and Qwen).
_TOO_MUCH = re.compile(
    r"too large to process|maximum model length|must have less than|tokens per request|batch.?size|array too long"
)
# Replaces an empty text, which an API would reject.
_NO_TEXT = "."
_WORDING = Wording(
    name="the embeddings API",
    url_setting="embedding_base_url",
    timeout_setting="embedding_timeout_s",
    model_setting="embedding_model_name",
    rate_limit_advice="ask its provider for a higher limit",
)
_KEY_SETTING = "embedding_api_key"
_RESTART = "if the server's model was changed, restart this program"


class TooMuchError(ModelError):
    """The API rejected a request as too long. A request with fewer or shorter strings may work."""


class _Options(BaseModel):
    """The arguments in `EmbeddingModel.kwargs` that are valid for an embeddings API."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    query_prompt: str = ""
    passage_prompt: str = ""
    dimensions: int | None = Field(default=None, ge=1)


class _Item(BaseModel):
    embedding: list[float | None]  # some servers write NaN as null
    index: int | None = None


class _Reply(BaseModel):
    data: list[_Item]


@dataclass(frozen=True, slots=True)
class _Space:
    """The vector space of a model, determined from the model's vector for the fixed text `PROBE`.

    Attributes:
        dimension: Length of every vector.
        revision: Text that differs between models with the same name and different weights.
    """

    dimension: int
    revision: str


def embeddings_api(base_url: str, key: SecretStr | None) -> Api:
    """Return the embeddings API at a URL. The URL may contain credentials and may end with ``/embeddings``."""
    return Api(_EMBEDDINGS_PATH.sub("", base_url), key, _KEY_SETTING, _WORDING)


class ApiEmbedder:
    """An `Embedder` for an OpenAI-compatible API. Close it after use.

    Args:
        model: The model, with its base URL. If its ``kwargs`` contain ``query_prompt`` or ``passage_prompt``, these
            replace the built-in prompts for this model. If they contain ``dimensions``, this number is sent
            with each request.
        key: The API key; None if the server needs no key.
        timeout_s: Maximum number of seconds to wait for a reply.
        base_url: The base URL including credentials; None to use the base URL of ``model``.
        pause: Function that waits for a given number of seconds. It is called before a request is repeated.
    """

    def __init__(
        self,
        model: EmbeddingModel,
        key: SecretStr | None,
        *,
        timeout_s: float,
        base_url: str | None = None,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._model = model
        self._options = _Options()
        self._api = embeddings_api(base_url or model.base_url or "", key)
        self._client = ApiClient(self._api, timeout_s=timeout_s)
        self._pause = pause
        self._loading = asyncio.Lock()
        self._space: _Space | None = None
        self._bulk = asyncio.Semaphore(BULK_CALLS_AT_ONCE)
        self._querying = asyncio.Semaphore(QUERY_CALLS_AT_ONCE)

    @property
    def model(self) -> EmbeddingModel:
        return self._model

    @property
    def identity(self) -> str:
        return f"{self._model.name}:{self._known_space.dimension}:{self._known_space.revision}"

    @property
    def dimension(self) -> int:
        return self._known_space.dimension

    @property
    def has_tokens(self) -> bool:
        return False

    @property
    def is_loaded(self) -> bool:
        return self._space is not None

    async def load(self) -> None:
        if self._space is not None:
            return
        async with self._loading:
            if self._space is None:
                self._options = _options(self._model)
                (vector,) = await self._request([PROBE], before=self._options.passage_prompt, slots=self._bulk)
                self._space = _Space(len(vector), revision_of(vector))

    async def embed_query(self, query: str) -> EmbeddedQuery:
        await self.load()
        text = first_window(storable(query)) or _NO_TEXT
        (vector,) = await self._embedded([text], before=self._options.query_prompt, slots=self._querying)
        return EmbeddedQuery(vector, np.empty((0, 0), dtype=np.float32), ())

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        await self.load()
        return await self._in_batches([first_window(storable(text)) or _NO_TEXT for text in texts])

    async def embed_pages(self, passages: Sequence[Passage]) -> list[list[Window]]:
        await self.load()
        pages = [passage.text for passage in passages]
        spans = [await anyio.to_thread.run_sync(windows, text) for text in pages]
        texts = [text[start:end] for text, found in zip(pages, spans, strict=True) for start, end in found]
        rows = iter(await self._in_batches(texts))
        return [[Window(start, end, next(rows)) for start, end in found] for found in spans]

    async def aclose(self) -> None:
        await self._client.aclose()

    @property
    def _known_space(self) -> _Space:
        if self._space is None:
            message = f"the model of {self._api.where} is not loaded; load the model first"
            raise ModelError(message)
        return self._space

    async def _in_batches(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed ``texts`` as passages and return one unit-length row for each text."""
        rows = np.empty((len(texts), self.dimension), dtype=np.float32)

        async def embed(batch: Sequence[int]) -> None:
            rows[batch] = await self._embedded(
                [texts[index] for index in batch], before=self._options.passage_prompt, slots=self._bulk
            )

        try:
            async with asyncio.TaskGroup() as group:
                for batch in batches([len(text) for text in texts], max_rows=BATCH_TEXTS, max_size=BATCH_CHARS):
                    group.create_task(embed(batch))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return rows

    async def _embedded(self, texts: Sequence[str], *, before: str, slots: asyncio.Semaphore) -> NDArray[np.float32]:
        """Embed ``texts`` with the prompt ``before``, and return one unit-length row for each.

        If the API rejects a request as too long, each half of ``texts`` is sent in a separate request. If a single
        string is too long, its two halves are embedded. Its row is then the mean of their vectors.
        """
        try:
            rows = await self._request(texts, before=before, slots=slots)
        except TooMuchError:
            if len(texts) > 1:
                middle = len(texts) // 2
                halves = [
                    await self._embedded(part, before=before, slots=slots) for part in (texts[:middle], texts[middle:])
                ]
                return np.concatenate(halves)
            (text,) = texts
            if len(text) < SHORTEST_HALVED_CHARS:
                raise
            middle = len(text) // 2
            rows = await self._embedded([text[:middle], text[middle:]], before=before, slots=slots)
            return _unit(rows.mean(axis=0, keepdims=True), self._api)
        if rows.shape[1] != self.dimension:
            lengths = f"vectors of length {rows.shape[1]}, but earlier vectors had length {self.dimension}"
            message = f"{self._api.where} returned {lengths}; {_RESTART}"
            raise ModelError(message)
        return rows

    async def _request(self, texts: Sequence[str], *, before: str, slots: asyncio.Semaphore) -> NDArray[np.float32]:
        """Embed all texts with one request, and return one unit-length row per text. Up to three attempts are made.

        ``before`` is the prompt that is put before each text. ``slots`` limits the number of simultaneous requests.
        """
        body: dict[str, Any] = {"input": [before + text for text in texts]}
        if self._options.dimensions is not None:
            body["dimensions"] = self._options.dimensions
        send = partial(_send, self._model.name, body)
        attempts = Attempts(self._pause)
        while True:
            try:
                async with slots:
                    reply = await self._client.post(send, self._refused)
                return await anyio.to_thread.run_sync(_rows, reply, len(texts), self._api)
            except PassingError as error:
                await attempts.wait_after(error)

    def _refused(self, said: ErrorResponse) -> ModelError:
        where = self._api.where
        if said.is_too_long or (said.status in {400, 422, 500} and _TOO_MUCH.search(said.text)):
            return TooMuchError(
                f"{where} rejects even short texts as too long ({said.label}); "
                "raise its context and batch size, or use another model"
            )
        error = common_error(said, self._api)
        if error is not None:
            return error
        return ModelError(
            f"{where} rejected the request ({said.label}); check embedding_model_name and embedding_model_kwargs"
        )


def _options(model: EmbeddingModel) -> _Options:
    known = instructions_of(model.name)
    try:
        given = _Options.model_validate_json(model.kwargs)
    except ValidationError:
        names = ", ".join(_Options.model_fields)
        message = (
            f"embedding_model_kwargs is not valid for an embeddings API; it may contain only {names}. "
            "Each prompt must be text, and dimensions must be a whole number above 0"
        )
        raise ModelError(message) from None
    prompts = {"query_prompt": known.query, "passage_prompt": known.passage}
    return given.model_copy(update={name: text for name, text in prompts.items() if name not in given.model_fields_set})


async def _send(name: str, body: dict[str, Any], client: "openai.AsyncOpenAI") -> Any:
    # The client does not process texts in ``extra_body``. Not every server supports base64, the client's default.
    return await client.embeddings.with_raw_response.create(
        model=name, input=[], encoding_format="float", extra_body=body
    )


def _rows(body: bytes, count: int, api: Api) -> NDArray[np.float32]:
    """Return the vectors in a reply as unit-length rows, in the order of the texts in the request.

    The shape is ``(count, n)``; ``count`` is the number of texts.

    Raises:
        ModelError: The reply does not contain one usable vector for each text.
    """
    try:
        items = _Reply.model_validate_json(body).data
    except ValidationError:
        raise no_such_api(api, "an embeddings API") from None
    if all(item.index is not None for item in items):
        items = sorted(items, key=lambda item: item.index or 0)
        is_complete = [item.index for item in items] == list(range(count))
    else:
        is_complete = len(items) == count
    if not is_complete:
        message = f"{api.where} did not return one vector for each text; check embedding_base_url and any proxy"
        raise ModelError(message)
    if len({len(item.embedding) for item in items}) != 1:
        message = f"{api.where} returned vectors of different lengths in one reply; {_RESTART}"
        raise ModelError(message)
    return _unit(np.array([item.embedding for item in items], dtype=np.float64), api)


def _unit(rows: NDArray[np.floating[Any]], api: Api) -> NDArray[np.float32]:
    """Return the rows scaled to unit length.

    Raises:
        ModelError: A row is zero or not finite.
    """
    with np.errstate(all="ignore"):
        lengths = np.sqrt((rows * rows).sum(axis=1))
    if not (np.isfinite(lengths).all() and lengths.all()):
        message = (
            f"{api.where} returned an invalid vector (zero or not finite); check the server's log or use another model"
        )
        raise ModelError(message)
    return np.asarray(rows / lengths[:, None], dtype=np.float32)
