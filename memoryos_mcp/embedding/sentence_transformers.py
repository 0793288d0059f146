"""The embedder for any model that the library sentence-transformers can load, from the Hugging Face Hub or a folder.

The library is an optional dependency, because it requires PyTorch. Only ``load`` imports it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.embedding import EmbeddedQuery, EmbeddingModel, Passage
from memoryos_mcp.embedding.batching import MicroBatches
from memoryos_mcp.embedding.sentence_transformers_model import LoadedModel, load_model
from memoryos_mcp.embedding.windowing import Stretch, head, slices, stretches
from memoryos_mcp.errors import ModelError
from memoryos_mcp.model.pages import Window, storable

P = ParamSpec("P")
T = TypeVar("T")

# Maximum number of queries in one call of `LoadedModel.queries`, which splits them into batches of similar length.
QUERIES_PER_PASS = 64


class SentenceTransformersEmbedder:
    """An `Embedder` for sentence-transformers, on the device that the library chooses. Close it after use.

    Args:
        model: The model. Its name is a folder or the name of a model on the Hugging Face Hub.
        kwargs: Additional arguments for the library's ``SentenceTransformer``. They may contain access tokens. The
            argument ``prompts`` overrides the model's own prompts for queries and passages. The argument ``use_fp16``
            requests half precision, which is used on a GPU only.
    """

    def __init__(self, model: EmbeddingModel, kwargs: Mapping[str, Any]) -> None:
        self._configured = model
        self._kwargs = kwargs
        self._model: LoadedModel | None = None
        self._is_closed = False
        # Queries have a separate thread, so that they do not wait for pages that are being embedded.
        self._query_thread = ThreadPoolExecutor(1, thread_name_prefix="memoryos-query")
        self._passage_thread = ThreadPoolExecutor(1, thread_name_prefix="memoryos-embed")
        self._queries = MicroBatches(self._query_thread, self._run_queries, QUERIES_PER_PASS)

    @property
    def model(self) -> EmbeddingModel:
        return self._configured

    @property
    def has_tokens(self) -> bool:
        return False

    @property
    def identity(self) -> str:
        return self._present().identity

    @property
    def dimension(self) -> int:
        return self._present().dimension

    @property
    def is_loaded(self) -> bool:
        return self._model is not None

    async def load(self) -> None:
        await self._loaded()

    async def embed_query(self, query: str) -> EmbeddedQuery:
        await self._loaded()
        return await self._queries.answer(query)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        model = await self._loaded()
        heads = [head(storable(text)) for text in texts]
        sizes = [await self._in_passage_thread(model.size, text) for text in heads]
        return await self._in_batches(model, heads, sizes)

    async def embed_pages(self, passages: Sequence[Passage]) -> list[list[Window]]:
        model = await self._loaded()
        pages = [passage.text for passage in passages]
        found = [await self._stretches(model, text) for text in pages]
        texts = [text[part.start : part.end] for text, parts in zip(pages, found, strict=True) for part in parts]
        rows = iter(await self._in_batches(model, texts, [part.last - part.first for parts in found for part in parts]))
        return [[Window(part.start, part.end, next(rows)) for part in parts] for parts in found]

    async def aclose(self) -> None:
        self._is_closed = True
        for thread in (self._query_thread, self._passage_thread):
            await anyio.to_thread.run_sync(thread.shutdown)
        self._model = None

    def _present(self) -> LoadedModel:
        if self._model is None:
            msg = f"the embedding model {self._configured.name} is not loaded; load the model first"
            raise ModelError(msg)
        return self._model

    async def _loaded(self) -> LoadedModel:
        if self._is_closed:
            msg = f"the embedding model {self._configured.name} was already closed; restart this program"
            raise ModelError(msg)
        if self._model is None:
            await self._in_passage_thread(self._load_once)
        return self._present()

    def _load_once(self) -> None:
        # There is only one passage thread, so the model is loaded once, even if the first caller was cancelled.
        if self._model is None:
            self._model = load_model(self._configured.name, self._kwargs)

    def _run_queries(self, queries: list[str]) -> list[EmbeddedQuery]:
        return self._present().queries(queries)

    async def _stretches(self, model: LoadedModel, text: str) -> list[Stretch]:
        parts = [await self._in_passage_thread(model.starts, text[start:end], start) for start, end in slices(text)]
        found = await self._in_passage_thread(stretches, text, np.concatenate(parts), model.window_tokens)
        # Some tokenizers have tokens for white space, but a window that contains only white space is useless.
        return [part for part in found if text[part.start : part.end].strip()] or found[:1]

    async def _in_batches(self, model: LoadedModel, texts: Sequence[str], sizes: Sequence[int]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), model.dimension), dtype=np.float32)
        # Each batch is a separate call to the thread, so that after a cancellation no further batches are computed.
        for batch in model.batches(sizes):
            rows[batch] = await self._in_passage_thread(model.passages, [texts[index] for index in batch])
        return rows

    async def _in_passage_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.wrap_future(self._passage_thread.submit(work, *args, **kwargs))
