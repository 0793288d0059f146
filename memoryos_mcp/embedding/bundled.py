"""The default embedder: a small model on the CPU, loaded from this package's files without a network.

The model is bge-small-en-v1.5, trained further with ``benchmarks.training`` to find pages of conversations. The SHA-256
of the weights and of the tokenizer is checked, so that the embedder's identity always refers to the same model. The
large libraries are imported only by ``load``, so that the server can answer its first message before loading them.
"""

import asyncio
import ctypes
import hashlib
import logging
import os
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.embedding import EmbeddedQuery, EmbeddingModel, Passage, token_vectors
from memoryos_mcp.embedding.windowing import (
    SLICE_CHARS,
    WINDOW_TOKENS,
    Stretch,
    head,
    in_questions,
    slices,
    stretches,
)
from memoryos_mcp.errors import ModelClosedError, ModelError
from memoryos_mcp.model.pages import Window, storable
from memoryos_mcp.text.terms import is_unspaced, stop_words

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

P = ParamSpec("P")
T = TypeVar("T")

NAME = "memoryos-small"
DIMENSION = 384
ENDING = "the program is ending"
MODEL_SHA256 = "e50b4c710fa99f8150f9b3c9cccef5e2820abbb8326a55e27f2e933a8d7e3267"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
# Token vectors also depend on how tokens are merged, so the way of merging is part of the identity.
_MERGING = "words"
IDENTITY = f"{NAME}:{DIMENSION}:{MODEL_SHA256[:12]}.{_MERGING}"

_DATA = Path(__file__).parent / "data"
MODEL_FILE = _DATA / "memoryos-small.onnx"
TOKENIZER_FILE = _DATA / "tokenizer.json"
_REINSTALL = "run: pip install --force-reinstall --no-deps memoryos-mcp-server"
# Ids of two special tokens in the pinned tokenizer.
CLS, SEP = 101, 102
_APOSTROPHES = ("'", "’")
# Stands for every stop word. No word is a space.
_STOP_WORD = " "

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Output:
    """The model's output for one sequence of tokens.

    Attributes:
        vector: The vector of the sequence, unit length, shape ``(384,)``.
        tokens: The vector of each token, unit length, shape ``(n, 80)``.
    """

    vector: NDArray[np.float32]
    tokens: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Model:
    """The loaded model. Its methods may run in several threads at once."""

    session: "InferenceSession"
    tokenizer: "Tokenizer"

    def encode(self, text: str, offset: int = 0) -> NDArray[np.int64]:
        """Return the id, start and end of each token of ``text``, and 0 if it begins a word, shape ``(4, n)``.

        ``offset`` is the position of ``text`` in a longer text. It is added to each start and end.
        """
        with _failures_as_model_errors():
            encoding = self.tokenizer.encode(text, add_special_tokens=False)
        numbers = np.array(encoding.ids, dtype=np.int64)
        starts, ends = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2).T + offset
        continues = np.diff(np.array(encoding.word_ids, dtype=np.int64), prepend=-1) == 0
        return np.stack([numbers, starts, ends, continues])

    def output(self, run: NDArray[np.int64]) -> _Output:
        """Return the model's output for a sequence of token ids.

        Each sequence is processed alone. In a batch, the 8-bit scales would depend on the other sequences, so that a
        text would not always have the same vector.
        """
        ids = np.concatenate([[CLS], run, [SEP]])[None]
        with _failures_as_model_errors():
            vector, tokens = self.session.run(["vector", "tokens"], {"input_ids": ids})
        return _Output(vector, tokens[1:-1])

    def vector(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a text's first window, shape ``(384,)``."""
        return self.output(self.encode(head(storable(text)))[0, :WINDOW_TOKENS]).vector

    def query(self, text: str) -> EmbeddedQuery:
        """Return the vectors of a query. Everything is done in one call, so that it needs only one thread switch."""
        start = head(storable(text))
        encoded = self.encode(start)[:, :WINDOW_TOKENS]
        output = self.output(encoded[0])
        spans, groups = query_words(start, encoded)
        return EmbeddedQuery(output.vector, token_vectors.merge(output.tokens, groups), spans)


class BundledEmbedder:
    """An `Embedder` that runs the bundled model with int8 weights in onnxruntime. Close it after use.

    Loading fails if the SHA-256 of a file is not the expected one.

    Args:
        model_file: File with the weights; None for the file in this package.
        tokenizer_file: File with the tokenizer; None for the file in this package.
    """

    def __init__(self, *, model_file: Path | None = None, tokenizer_file: Path | None = None) -> None:
        self._model_file = model_file or MODEL_FILE
        self._tokenizer_file = tokenizer_file or TOKENIZER_FILE
        self._model: Model | None = None
        self._loading = asyncio.Lock()
        # With these permanent threads, a query takes 0.1 ms less (of 6 ms), because AnyIO's threads wake more slowly.
        self._queries = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="memoryos-query")
        # One thread, so that bulk work uses one core and leaves the others to queries.
        self._passages = ThreadPoolExecutor(1, thread_name_prefix="memoryos-embed")

    @property
    def model(self) -> EmbeddingModel:
        return EmbeddingModel(NAME)

    @property
    def has_tokens(self) -> bool:
        return True

    @property
    def identity(self) -> str:
        return IDENTITY

    @property
    def dimension(self) -> int:
        return DIMENSION

    @property
    def is_loaded(self) -> bool:
        return self._model is not None

    async def load(self) -> None:
        await self._loaded()

    async def embed_query(self, query: str) -> EmbeddedQuery:
        model = await self._loaded()
        return await _in_thread(self._queries, model.query, query)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        model = await self._loaded()
        # Each text is a separate call to the thread, so that after a cancellation no further texts are embedded.
        vectors = [await _in_thread(self._passages, model.vector, text) for text in texts]
        return np.array(vectors, dtype=np.float32).reshape(-1, DIMENSION)

    async def embed_pages(self, passages: Sequence[Passage]) -> list[list[Window]]:
        model = await self._loaded()
        return [await self._windows(model, passage) for passage in passages]

    async def aclose(self) -> None:
        for pool in (self._queries, self._passages):
            await anyio.to_thread.run_sync(pool.shutdown)

    async def _loaded(self) -> Model:
        if self._model is None:
            async with self._loading:
                if self._model is None:
                    self._model = await _in_thread(self._passages, _load, self._model_file, self._tokenizer_file)
        return self._model

    async def _windows(self, model: Model, passage: Passage) -> list[Window]:
        text = passage.text
        parts = [await _in_thread(self._passages, model.encode, text[a:b], a) for a, b in slices(text)]
        encoded = np.concatenate(parts, axis=1)
        windows = []
        for layout in await _in_thread(self._passages, layouts, text, encoded, len(passage.user_input)):
            run = encoded[0, layout.stretch.first : layout.stretch.last]
            windows.append(_window(layout, await _in_thread(self._passages, model.output, run)))
        return windows


@dataclass(frozen=True, slots=True)
class Layout:
    """The tokens of a window, and how they are merged.

    Attributes:
        groups: The group of each token, shape ``(n,)``; -1 for a token that is left out.
        kinds: The kind of each group, ascending, shape ``(g,)``. The kinds are the user's statements (0), the user's
            questions (1), the assistant's statements (2) and the assistant's questions (3).
    """

    stretch: Stretch
    groups: NDArray[np.int64]
    kinds: NDArray[np.int64]


def layouts(text: str, encoded: NDArray[np.int64], user_chars: int) -> list[Layout]:
    """Return the windows of a page.

    Args:
        text: The page's text.
        encoded: Its tokens; see `Model.encode`.
        user_chars: Length of the user's message, with which ``text`` begins.
    """
    _, starts, ends, _ = encoded
    kinds = (2 * (starts >= user_chars) + in_questions(text, starts)).tolist()
    stops = stop_words(text[:SLICE_CHARS])
    # The kind and the word of each token. The word is empty for punctuation, and the same for all stop words.
    named: list[tuple[int, str]] = []
    for first, last in _words(text, encoded):
        named += [(kinds[first], _name(text, int(starts[first]), int(ends[last - 1]), stops))] * (last - first)
    return [_layout(part, named[part.first : part.last]) for part in stretches(text, starts)]


def _layout(stretch: Stretch, named: Sequence[tuple[int, str]]) -> Layout:
    # A window without words keeps its punctuation, so that it has vectors.
    has_words = any(word for _, word in named)
    groups = sorted({each for each in named if each[1] or not has_words})
    numbers = {each: number for number, each in enumerate(groups)}
    return Layout(
        stretch,
        np.array([numbers.get(each, -1) for each in named], dtype=np.int64),
        np.array([kind for kind, _ in groups], dtype=np.int64),
    )


def query_words(text: str, encoded: NDArray[np.int64]) -> tuple[list[tuple[int, int]], NDArray[np.int64]]:
    """Return the start and end of each word of a query, and the number of each token's word; -1 for punctuation.

    If there is only punctuation, each mark is a word.
    """
    starts, ends = encoded[1].tolist(), encoded[2].tolist()
    words = _words(text, encoded)
    kept = [(a, b) for a, b in words if _is_word(text[starts[a] : ends[b - 1]])] or words
    groups = np.full(len(starts), -1)
    for number, (first, last) in enumerate(kept):
        groups[first:last] = number
    return [(starts[first], ends[last - 1]) for first, last in kept], groups


def _words(text: str, encoded: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the index of each word's first token, and the index after its last one.

    In a script without spaces, each token is a word.
    """
    _, starts, ends, continues = encoded.tolist()
    begins = [token for token, is_inside in enumerate(continues) if not is_inside]
    words = []
    for first, last in zip(begins, [*begins[1:], len(starts)], strict=False):
        if last - first > 1 and is_unspaced(text[starts[first] : ends[last - 1]]):
            words += [(token, token + 1) for token in range(first, last)]
        else:
            words.append((first, last))
    return words


def _name(text: str, start: int, end: int, stops: Set[str]) -> str:
    """Return the word from ``start`` to ``end``, `_STOP_WORD` for any stop word, or an empty text for punctuation."""
    word = unicodedata.normalize("NFKC", text[start:end]).lower()
    if not _is_word(word):
        return ""
    # The "C" in "vitamin C" is a word. The "t" in "don't" is not.
    is_ending = len(word) == 1 and text[max(start - 1, 0) : start] in _APOSTROPHES
    return _STOP_WORD if word in stops or is_ending else word


def _is_word(text: str) -> bool:
    return any(map(str.isalnum, text))


def _window(layout: Layout, output: _Output) -> Window:
    user_states, user_asks, agent_states, agent_asks = np.bincount(layout.kinds, minlength=4).tolist()
    return Window(
        layout.stretch.start,
        layout.stretch.end,
        output.vector,
        token_vectors.encode(token_vectors.merge(output.tokens, layout.groups)),
        (user_states, user_asks, agent_states, agent_asks),
    )


async def _in_thread(pool: ThreadPoolExecutor, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        future = pool.submit(work, *args, **kwargs)
    except RuntimeError as error:  # the embedder was closed, or the interpreter is shutting down
        raise ModelClosedError(ENDING) from error
    return await asyncio.wrap_future(future)


def _load(model_file: Path, tokenizer_file: Path) -> Model:
    try:
        # Otherwise onnxruntime on Linux stores a device id under ~/.cache and sends telemetry.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        import onnxruntime
        import tokenizers
    except ImportError as error:
        message = f"the bundled embedder cannot import {error.name or 'a library'}; reinstall this program"
        raise ModelError(message) from error
    _check(model_file, MODEL_SHA256)
    _check(tokenizer_file, TOKENIZER_SHA256)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # onnxruntime's memory patterns would use additional memory for each batch length. Its memory arena stays enabled,
    # because without the arena a batch takes at least 5% longer.
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    with _failures_as_model_errors():
        session = onnxruntime.InferenceSession(str(model_file), options, providers=["CPUExecutionProvider"])
        tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_file))
        # The file sets truncation and padding to 128 tokens, but windows are longer.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        # The text "[SEP]" in a page must not become the model's special token.
        tokenizer.encode_special_tokens = True
    _return_freed_memory()
    _logger.info("loaded %s", IDENTITY)
    return Model(session, tokenizer)


def _check(file: Path, sha256: str) -> None:
    try:
        # The whole content at once: in parts, the thread would wait for the interpreter after each part.
        found = hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        message = f"the bundled embedder cannot read {file}; {_REINSTALL}"
        raise ModelError(message) from error
    if found != sha256:
        message = f"{file} is not the file that this version needs: its SHA-256 begins with {found[:12]}; {_REINSTALL}"
        raise ModelError(message)


def _return_freed_memory() -> None:
    """Return freed memory to the operating system. Otherwise, glibc keeps about 60 MB after the model is loaded."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


@contextmanager
def _failures_as_model_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # the native code of both libraries raises bare Exception
        kind = type(error).__name__
        message = f"the bundled embedder failed with {kind}; if this happens again, reinstall this program"
        raise ModelError(message) from error
