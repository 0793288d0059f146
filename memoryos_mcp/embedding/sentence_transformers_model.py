"""Loads a sentence-transformers model by its name or folder, and corrects what the library gets wrong silently.

The corrections are: instructions that a model was trained with but does not contain, pooling of a model that was saved
without it, and use by two threads.
"""

import copy
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.embedding import EmbeddedQuery
from memoryos_mcp.embedding.batching import batches
from memoryos_mcp.embedding.instructions import Instructions, instructions_of
from memoryos_mcp.embedding.revision import PROBE, revision_of
from memoryos_mcp.embedding.windowing import head
from memoryos_mcp.errors import ModelError
from memoryos_mcp.model.pages import storable

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

P = ParamSpec("P")
T = TypeVar("T")

# A vector of more text than this says too little about each part of it, even from models that take more.
LONGEST_WINDOW_PIECES = 512
# The text of a window, tokenized alone, may have a few more pieces than within its page.
SPARE_PIECES = 8
FEWEST_WINDOW_PIECES = 16
# On a CPU larger batches are not faster, and a cancelled caller waits for the current one.
CPU_BATCH = (8, 512)
GPU_BATCH = (64, 16_384)
# Replaces a blank text, which may have no pieces at all; some models cannot embed that.
BLANK = "."
# The library's names for the two sides of a search.
_QUERY_PROMPTS = ("query",)
_PASSAGE_PROMPTS = ("document", "passage", "corpus")
# Decoders, in which only the last piece has seen all of the text. The library recognises them only by heads that are
# not saved with embedding models.
_LAST_PIECE_ARCHITECTURES = ("qwen2", "qwen3", "mistral", "gemma2")

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """The loaded model; queries and passages may use a thread each.

    Attributes:
        name: As configured, for messages.
        identity: Name of its vector space.
        library: The library's model.
        tokenizer: Splits text into pieces; None if the model's own does not return their positions.
        window_pieces: How many pieces of text fit its window.
        overhead_pieces: How many more pieces a passage takes.
    """

    name: str
    identity: str
    dimension: int
    library: "SentenceTransformer"
    instructions: Instructions
    tokenizer: "Tokenizer | None"
    window_pieces: int
    overhead_pieces: int

    def starts(self, text: str, offset: int = 0) -> NDArray[np.int64]:
        """Return where each piece of a slice begins in its text, shape ``(n,)``; the slice begins at ``offset``.

        Without a tokenizer, every character counts as a piece.
        """
        if self.tokenizer is None:
            return np.arange(len(text), dtype=np.int64) + offset
        with _failures_as_model_errors(self.name):
            places = self.tokenizer.encode(text, add_special_tokens=False).offsets
        # Some tokenizers count the space before a word as part of it; windows count it as part of the previous word.
        begins = [end - len(text[start:end].lstrip()) for start, end in places]
        return np.array(begins, dtype=np.int64) + offset

    def batches(self, sizes: Sequence[int]) -> Iterator[list[int]]:
        """Yield the indices of texts that go through the model together, given the number of pieces of each."""
        rows, pieces = CPU_BATCH if self.library.device.type == "cpu" else GPU_BATCH
        return batches([size + self.overhead_pieces for size in sizes], max_rows=rows, max_pieces=pieces)

    def size(self, text: str) -> int:
        """Return how many pieces of a text are embedded."""
        return min(len(self.starts(text)), self.window_pieces)

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit-length row per text, in one pass."""
        return self._unit(self.library.encode_document, texts, self.instructions.passage)

    def queries(self, queries: Sequence[str]) -> list[EmbeddedQuery]:
        """Return each query's vectors; short queries are not padded to the length of a long one."""
        texts = [head(storable(query)) for query in queries]
        found: dict[int, EmbeddedQuery] = {}
        for batch in self.batches([self.size(text) for text in texts]):
            rows = self._unit(self.library.encode_query, [texts[index] for index in batch], self.instructions.query)
            tokens = np.zeros((0, self.dimension), dtype=np.float32)
            found.update((index, EmbeddedQuery(row, tokens, [])) for index, row in zip(batch, rows, strict=True))
        return [found[index] for index in range(len(queries))]

    def _unit(self, encode: Callable[..., Any], texts: Sequence[str], instruction: str) -> NDArray[np.float32]:
        rows = _encoded(self.name, encode, texts, instruction)
        if rows.shape != (len(texts), self.dimension):
            msg = f"the embedding model {self.name} gave vectors of another length than before; start this program anew"
            raise ModelError(msg)
        return rows


def load_model(given: str, kwargs: Mapping[str, Any]) -> LoadedModel:
    """Return a loaded model, fetched from the hub the first time. Blocks.

    Args:
        given: Its name on the hub or its folder.
        kwargs: Further arguments of its constructor.

    Raises:
        ModelError: The library is not installed, or the model could not be loaded.
    """
    wants_half, prompts = bool(kwargs.get("use_fp16")), kwargs.get("prompts") or {}
    _quieten()
    passed_on = {name: value for name, value in kwargs.items() if name not in {"use_fp16", "prompts"}}
    library, name = _from_library(given, passed_on)
    _put_pooling_right(library, name)
    if wants_half:
        _halve(library)
    # Two threads cannot share a tokenizer of this library, because each call configures it again.
    library.preprocess = _one_at_a_time(library.preprocess)
    instructions = _instructions(given, library, prompts)
    with _failures_as_model_errors(given):
        tokenizer = _tokenizer(library)
        limit = int(min(library.max_seq_length or LONGEST_WINDOW_PIECES, LONGEST_WINDOW_PIECES))
        with suppress(AttributeError):  # a model that takes any length
            library.max_seq_length = limit
        overhead = _overhead_pieces(tokenizer, instructions.passage)
    window_pieces = limit - overhead - SPARE_PIECES
    if window_pieces < FEWEST_WINDOW_PIECES:
        msg = (
            f"the embedding model {given} takes {limit} pieces, and the prompt of passages needs {overhead}; "
            "shorten it in prompts of embedding_model_kwargs, or name another model"
        )
        raise ModelError(msg)
    probe = _encoded(given, library.encode_document, [PROBE], instructions.passage)[0]
    # The hub's commit is not used, because it also changes with the model's description.
    identity = f"{name}:{len(probe)}:{revision_of(probe)}"
    _logger.info("loaded %s on %s", identity, library.device)
    return LoadedModel(given, identity, len(probe), library, instructions, tokenizer, window_pieces, overhead)


def _from_library(given: str, kwargs: dict[str, Any]) -> tuple["SentenceTransformer", str]:
    """Return the library's model of a folder or a name, with that name."""
    folder = Path(given).expanduser()
    with _load_failures_as_model_errors(given, is_folder=folder.is_dir()):
        from huggingface_hub import resolve_revision
        from sentence_transformers import SentenceTransformer

        if folder.is_dir():
            return SentenceTransformer(str(folder), **kwargs), folder.absolute().name
        name = given if "/" in given else f"{SentenceTransformer.default_huggingface_organization}/{given}"
        # The library does this too, but if the hub cannot be reached, it goes on asking for each file, for minutes.
        commit = resolve_revision(
            name,
            revision=kwargs.get("revision"),
            token=kwargs.get("token"),
            cache_dir=kwargs.get("cache_folder") or os.environ.get("SENTENCE_TRANSFORMERS_HOME"),
            local_files_only=kwargs.get("local_files_only", False),
        )
        return SentenceTransformer(name, **kwargs | {"revision": commit}), given


def _quieten() -> None:
    """Turn off the libraries' telemetry, progress bars and irrelevant warnings."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    for library in ("sentence_transformers", "transformers", "huggingface_hub"):
        logging.getLogger(library).setLevel(logging.ERROR)


def _put_pooling_right(library: "SentenceTransformer", name: str) -> None:
    """Set the pooling that the model was trained with, if it was saved without it; the library would use the mean."""
    # A model saved with its modules has arguments for each, even if they are empty.
    if library.module_kwargs or len(library) != 2:
        return
    transformer, pooling = library
    if transformer.config.model_type in _LAST_PIECE_ARCHITECTURES:
        pooling.pooling_mode = "lasttoken"
        library.tokenizer.padding_side = "left"
    elif "bge" in Path(name).name.lower():
        pooling.pooling_mode = "cls"


def _halve(library: "SentenceTransformer") -> None:
    if library.device.type in ("cuda", "mps"):
        library.half()
    else:
        _logger.info("use_fp16 is ignored: half precision is slower on %s", library.device.type)


def _one_at_a_time(work: Callable[P, T]) -> Callable[P, T]:
    lock = threading.Lock()

    def locked(*args: P.args, **kwargs: P.kwargs) -> T:
        with lock:
            return work(*args, **kwargs)

    return locked


def _instructions(name: str, library: "SentenceTransformer", given: Mapping[str, str]) -> Instructions:
    """Return the texts before inputs: as configured, else the model's own, else those known for its name."""
    own = dict(library.prompts)
    if library.default_prompt_name is not None:
        default = own[library.default_prompt_name]
        own = {side: own.get(side) or default for side in (_QUERY_PROMPTS[0], _PASSAGE_PROMPTS[0])}
    query, passage = _first(own, _QUERY_PROMPTS) or "", _first(own, _PASSAGE_PROMPTS) or ""
    # The library saves empty prompts with every model; they mean nothing.
    known = Instructions(query, passage) if query or passage else instructions_of(name)
    query_given, passage_given = _first(given, _QUERY_PROMPTS), _first(given, _PASSAGE_PROMPTS)
    return Instructions(
        query=known.query if query_given is None else query_given,
        passage=known.passage if passage_given is None else passage_given,
    )


def _first(prompts: Mapping[str, str], names: Sequence[str]) -> str | None:
    return next((prompts[name] for name in names if name in prompts), None)


def _tokenizer(library: "SentenceTransformer") -> "Tokenizer | None":
    """Return a copy of the model's tokenizer without truncation and padding; None if it is not a fast tokenizer."""
    import tokenizers

    own = getattr(library, "tokenizer", None)
    fast = getattr(own, "backend_tokenizer", own)
    if not isinstance(fast, tokenizers.Tokenizer):
        return None
    fast = copy.deepcopy(fast)
    fast.no_truncation()
    fast.no_padding()
    return fast


def _overhead_pieces(tokenizer: "Tokenizer | None", instruction: str) -> int:
    if tokenizer is None:
        return len(instruction)
    return len(tokenizer.encode(instruction, add_special_tokens=True).ids)


def _encoded(name: str, encode: Callable[..., Any], texts: Sequence[str], instruction: str) -> NDArray[np.float32]:
    """Return one unit-length row per text, shape ``(len(texts), dimension)``."""
    with _failures_as_model_errors(name):
        rows = np.asarray(
            encode(
                [text if text.strip() else BLANK for text in texts],
                prompt=instruction,  # also an empty one; without any the library uses its own
                batch_size=len(texts),
                show_progress_bar=False,
            ),
            dtype=np.float32,
        )
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    if np.isfinite(lengths).all() and list(texts) != [BLANK]:
        for row in np.flatnonzero(lengths == 0):
            # The model has no pieces for this text, such as a symbol that a small vocabulary lacks.
            [rows[row]], lengths[row] = _encoded(name, encode, [BLANK], instruction), 1
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        msg = (
            f"the embedding model {name} gave a vector that is zero or not a number; "
            "if it is loaded in half precision, leave that out of embedding_model_kwargs, else fetch it again"
        )
        raise ModelError(msg)
    return np.asarray(rows / lengths, dtype=np.float32)


@contextmanager
def _failures_as_model_errors(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # code of any model may run here
        if _is_out_of_memory(error):
            message = f"the embedding model {name} ran out of memory; name a smaller one, or hand over shorter pages"
        else:
            message = f"the embedding model {name} failed with {type(error).__name__}; if it persists, name another"
        raise ModelError(message) from error


@contextmanager
def _load_failures_as_model_errors(name: str, *, is_folder: bool) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # code of any model may run here
        message = f"the embedding model {name} cannot be loaded: {_reason(error, is_folder=is_folder)}"
        raise ModelError(message) from error


def _reason(error: Exception, *, is_folder: bool) -> str:
    """Return what went wrong and what to do."""
    text = str(error)
    if isinstance(error, ModuleNotFoundError) and error.name in ("sentence_transformers", "torch"):
        return "that needs an extra; in a checkout of this program run: pip install '.[sentence-transformers]'"
    if isinstance(error, ImportError):
        return f"a package that it needs is missing; install it: {text.strip().splitlines()[0]}"
    if _is_out_of_memory(error):
        return "it needs more memory than there is; name a smaller model"
    if "trust_remote_code" in text:
        return "it brings code of its own; if you trust it, set trust_remote_code to true in embedding_model_kwargs"
    if isinstance(error, TypeError) and "argument" in text:
        return f"embedding_model_kwargs has what the library does not take: {text}"
    if is_folder:
        return f"its folder is damaged or holds no such model ({type(error).__name__}); copy or fetch it again"
    return _hub_reason(error)


def _hub_reason(error: Exception) -> str:
    from huggingface_hub.errors import (
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
        RevisionResolutionError,
    )

    if isinstance(error, HFValidationError):
        return "it is neither a folder that is there nor a name on the hub, like maker/model; correct it"
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None and isinstance(cause, Exception):
        causes.append(cause)
    if any(isinstance(each, RevisionNotFoundError) for each in causes):
        return "the hub has no such revision of it; correct revision in embedding_model_kwargs"
    if any(isinstance(each, RepositoryNotFoundError) for each in causes):
        return "the hub has none of this name that you may see; correct the name, or for a private one set HF_TOKEN"
    if any(isinstance(each, RevisionResolutionError | OSError) for each in causes):
        return (
            "it is no folder, and the hub cannot be reached; "
            "`memoryos-mcp warmup` fetches it where there is a network, or name the folder of a copy"
        )
    return f"{type(error).__name__}; fetch it again, or name another"


def _is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or any(
        words in str(error).lower() for words in ("out of memory", "not enough memory", "can't allocate memory")
    )
