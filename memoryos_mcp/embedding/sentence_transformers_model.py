"""Loads a sentence-transformers model and corrects three problems that the library does not report.

Some models do not contain the instructions with which they were trained, so the instructions are added. Some models
were saved without their pooling, so the pooling is set. The library's tokenizer cannot be used from two threads at
once, so a lock protects it.
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

# Windows are not longer than this even if the model accepts longer texts, because the vector of a long text represents
# each part of the text too weakly.
LONGEST_WINDOW_TOKENS = 512
# A window's text may have a few more tokens when it is tokenized alone than within its page.
SPARE_TOKENS = 8
FEWEST_WINDOW_TOKENS = 16
# Maximum number of rows and tokens of a batch. On a CPU, larger batches are not faster and delay cancellation.
CPU_BATCH = (8, 512)
GPU_BATCH = (64, 16_384)
# Replaces a blank text. A blank text may have no tokens, and some models cannot embed a text without tokens.
BLANK = "."
# The names that the library uses for the prompts of queries and of passages.
_QUERY_PROMPTS = ("query",)
_PASSAGE_PROMPTS = ("document", "passage", "corpus")
# Decoders, in which only the last token's vector depends on the whole text. The library recognises decoders by their
# text-generation head, but embedding models are saved without this head.
_LAST_TOKEN_ARCHITECTURES = ("qwen2", "qwen3", "mistral", "gemma2")

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A loaded model. One thread may embed queries while another thread embeds passages.

    Attributes:
        name: Name of the model in the configuration, for messages.
        identity: Name of the model's vector space.
        dimension: Length of every vector.
        library: The library's ``SentenceTransformer`` object.
        instructions: Texts that are put before queries and before passages.
        tokenizer: The tokenizer; None if it does not return the positions of tokens.
        window_tokens: Maximum number of tokens in the text of a window.
        overhead_tokens: Number of tokens that the instruction and special tokens add to a passage.
    """

    name: str
    identity: str
    dimension: int
    library: "SentenceTransformer"
    instructions: Instructions
    tokenizer: "Tokenizer | None"
    window_tokens: int
    overhead_tokens: int

    def starts(self, text: str, offset: int = 0) -> NDArray[np.int64]:
        """Return the start of each token of ``text``, shape ``(n,)``.

        ``offset`` is the position of ``text`` in a longer text. It is added to each start. Without a tokenizer, every
        character counts as a token.
        """
        if self.tokenizer is None:
            return np.arange(len(text), dtype=np.int64) + offset
        with _failures_as_model_errors(self.name):
            places = self.tokenizer.encode(text, add_special_tokens=False).offsets
        # Some tokenizers include the space before a word; windows assign it to the previous word.
        begins = [end - len(text[start:end].lstrip()) for start, end in places]
        return np.array(begins, dtype=np.int64) + offset

    def batches(self, sizes: Sequence[int]) -> Iterator[list[int]]:
        """Yield the indices of the passages in each batch. ``sizes`` contains the number of tokens of each passage."""
        rows, tokens = CPU_BATCH if self.library.device.type == "cpu" else GPU_BATCH
        return batches([size + self.overhead_tokens for size in sizes], max_rows=rows, max_size=tokens)

    def size(self, text: str) -> int:
        """Return the number of tokens in ``text``, but at most ``window_tokens``."""
        return min(len(self.starts(text)), self.window_tokens)

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed ``texts`` as passages in one batch, and return one unit-length row for each."""
        return self._unit(self.library.encode_document, texts, self.instructions.passage)

    def queries(self, queries: Sequence[str]) -> list[EmbeddedQuery]:
        """Return the vectors of ``queries``, in the same order.

        Queries of similar length are embedded together, so that short queries are not padded to the length of a long
        query.
        """
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
            msg = f"the embedding model {self.name} now returns vectors of a different length; restart this program"
            raise ModelError(msg)
        return rows


def load_model(given: str, kwargs: Mapping[str, Any]) -> LoadedModel:
    """Load a model from a folder, or by its name on the Hugging Face Hub.

    The call blocks its thread. If the model must be downloaded, the call may take minutes.

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
    # Two threads cannot use a tokenizer of this library at once, because each call reconfigures it.
    library.preprocess = _one_at_a_time(library.preprocess)
    instructions = _instructions(given, library, prompts)
    with _failures_as_model_errors(given):
        tokenizer = _tokenizer(library)
        limit = int(min(library.max_seq_length or LONGEST_WINDOW_TOKENS, LONGEST_WINDOW_TOKENS))
        with suppress(AttributeError):  # the model accepts texts of any length
            library.max_seq_length = limit
        overhead = _overhead_tokens(tokenizer, instructions.passage)
    window_tokens = limit - overhead - SPARE_TOKENS
    if window_tokens < FEWEST_WINDOW_TOKENS:
        msg = (
            f"the embedding model {given} accepts only {limit} tokens, and its passage prompt needs {overhead} tokens; "
            "shorten the prompt under 'prompts' in embedding_model_kwargs, or use another model"
        )
        raise ModelError(msg)
    probe = _encoded(given, library.encode_document, [PROBE], instructions.passage)[0]
    # The revision is not the hub's commit, because a commit also changes when only the model's description changes.
    identity = f"{name}:{len(probe)}:{revision_of(probe)}"
    _logger.info("loaded %s on %s", identity, library.device)
    return LoadedModel(given, identity, len(probe), library, instructions, tokenizer, window_tokens, overhead)


def _from_library(given: str, kwargs: dict[str, Any]) -> tuple["SentenceTransformer", str]:
    """Load a model with the library, from a folder or from the hub. Return the model and its name."""
    folder = Path(given).expanduser()
    with _load_failures_as_model_errors(given, is_folder=folder.is_dir()):
        from huggingface_hub import resolve_revision
        from sentence_transformers import SentenceTransformer

        if folder.is_dir():
            return SentenceTransformer(str(folder), **kwargs), folder.absolute().name
        name = given if "/" in given else f"{SentenceTransformer.default_huggingface_organization}/{given}"
        # If the hub cannot be reached, this call fails at once. The library would retry each file for minutes.
        commit = resolve_revision(
            name,
            revision=kwargs.get("revision"),
            token=kwargs.get("token"),
            cache_dir=kwargs.get("cache_folder") or os.environ.get("SENTENCE_TRANSFORMERS_HOME"),
            local_files_only=kwargs.get("local_files_only", False),
        )
        return SentenceTransformer(name, **kwargs | {"revision": commit}), given


def _quieten() -> None:
    """Turn off telemetry, progress bars and irrelevant warnings of the libraries."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    for library in ("sentence_transformers", "transformers", "huggingface_hub"):
        logging.getLogger(library).setLevel(logging.ERROR)


def _put_pooling_right(library: "SentenceTransformer", name: str) -> None:
    """Set how a model combines its token vectors into one (pooling), if the model was saved without this setting.

    Models whose architecture is in `_LAST_TOKEN_ARCHITECTURES` use the last token's vector. Other models with "bge" in
    their name use the first token's vector. All others keep the library's default, which is the mean.
    """
    # The library has arguments, perhaps empty ones, for each module of a model that was saved with its modules.
    if library.module_kwargs or len(library) != 2:
        return
    transformer, pooling = library
    if transformer.config.model_type in _LAST_TOKEN_ARCHITECTURES:
        pooling.pooling_mode = "lasttoken"
        library.tokenizer.padding_side = "left"
    elif "bge" in Path(name).name.lower():
        pooling.pooling_mode = "cls"


def _halve(library: "SentenceTransformer") -> None:
    if library.device.type in ("cuda", "mps"):
        library.half()
    else:
        _logger.info("use_fp16 is ignored, because half precision is slower on %s", library.device.type)


def _one_at_a_time(work: Callable[P, T]) -> Callable[P, T]:
    lock = threading.Lock()

    def locked(*args: P.args, **kwargs: P.kwargs) -> T:
        with lock:
            return work(*args, **kwargs)

    return locked


def _instructions(name: str, library: "SentenceTransformer", given: Mapping[str, str]) -> Instructions:
    """Return the instructions that a model needs before queries and passages.

    The configured instructions in ``given`` take precedence over the instructions that are saved with the model. If no
    instructions are saved, those from `instructions_of` are used instead.
    """
    own = dict(library.prompts)
    if library.default_prompt_name is not None:
        default = own[library.default_prompt_name]
        own = {side: own.get(side) or default for side in (_QUERY_PROMPTS[0], _PASSAGE_PROMPTS[0])}
    query, passage = _first(own, _QUERY_PROMPTS) or "", _first(own, _PASSAGE_PROMPTS) or ""
    # The library saves empty prompts with every model, so empty prompts do not mean that the model needs none.
    known = Instructions(query, passage) if query or passage else instructions_of(name)
    query_given, passage_given = _first(given, _QUERY_PROMPTS), _first(given, _PASSAGE_PROMPTS)
    return Instructions(
        query=known.query if query_given is None else query_given,
        passage=known.passage if passage_given is None else passage_given,
    )


def _first(prompts: Mapping[str, str], names: Sequence[str]) -> str | None:
    return next((prompts[name] for name in names if name in prompts), None)


def _tokenizer(library: "SentenceTransformer") -> "Tokenizer | None":
    """Return a copy of the model's tokenizer, without truncation and padding.

    Return None if the tokenizer is not from the library ``tokenizers``.
    """
    import tokenizers

    own = getattr(library, "tokenizer", None)
    fast = getattr(own, "backend_tokenizer", own)
    if not isinstance(fast, tokenizers.Tokenizer):
        return None
    fast = copy.deepcopy(fast)
    fast.no_truncation()
    fast.no_padding()
    return fast


def _overhead_tokens(tokenizer: "Tokenizer | None", instruction: str) -> int:
    if tokenizer is None:
        return len(instruction)
    return len(tokenizer.encode(instruction, add_special_tokens=True).ids)


def _encoded(name: str, encode: Callable[..., Any], texts: Sequence[str], instruction: str) -> NDArray[np.float32]:
    """Embed ``texts`` in one batch and return one unit-length row for each, shape ``(len(texts), dimension)``."""
    with _failures_as_model_errors(name):
        rows = np.asarray(
            encode(
                [text if text.strip() else BLANK for text in texts],
                prompt=instruction,  # even an empty one; without a prompt, the library uses the model's own
                batch_size=len(texts),
                show_progress_bar=False,
            ),
            dtype=np.float32,
        )
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    if np.isfinite(lengths).all() and list(texts) != [BLANK]:
        for row in np.flatnonzero(lengths == 0):
            # The model has no tokens for this text, such as a symbol that a small vocabulary lacks.
            [rows[row]], lengths[row] = _encoded(name, encode, [BLANK], instruction), 1
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        msg = (
            f"the embedding model {name} returned an invalid vector (zero or not a number); "
            "turn off half precision (use_fp16) in embedding_model_kwargs, or download the model again"
        )
        raise ModelError(msg)
    return np.asarray(rows / lengths, dtype=np.float32)


@contextmanager
def _failures_as_model_errors(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # code of any model may run here
        if _is_out_of_memory(error):
            message = f"the embedding model {name} ran out of memory; use a smaller model or shorter pages"
        else:
            kind = type(error).__name__
            message = f"the embedding model {name} failed with {kind}; if this happens again, use another model"
        raise ModelError(message) from error


@contextmanager
def _load_failures_as_model_errors(name: str, *, is_folder: bool) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # code of any model may run here
        message = f"the embedding model {name} cannot be loaded: {_reason(error, is_folder=is_folder)}"
        raise ModelError(message) from error


def _reason(error: Exception, *, is_folder: bool) -> str:
    """Return the end of an error message: why a model could not be loaded, and what to do."""
    text = str(error)
    if isinstance(error, ModuleNotFoundError) and error.name in ("sentence_transformers", "torch"):
        return "it needs optional packages; in a checkout of this program run: pip install '.[sentence-transformers]'"
    if isinstance(error, ImportError):
        return f"it needs a package that is not installed; install the package: {text.strip().splitlines()[0]}"
    if _is_out_of_memory(error):
        return "there is not enough memory; use a smaller model"
    if "trust_remote_code" in text:
        return "it contains its own code; if you trust it, set trust_remote_code to true in embedding_model_kwargs"
    if isinstance(error, TypeError) and "argument" in text:
        return f"the library does not accept these embedding_model_kwargs: {text}"
    if is_folder:
        return f"its folder is damaged or does not contain a model ({type(error).__name__}); download it again"
    return _hub_reason(error)


def _hub_reason(error: Exception) -> str:
    from huggingface_hub.errors import (
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
        RevisionResolutionError,
    )

    if isinstance(error, HFValidationError):
        return "it is neither an existing folder nor a valid Hugging Face model name; use a name like maker/model"
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None and isinstance(cause, Exception):
        causes.append(cause)
    if any(isinstance(each, RevisionNotFoundError) for each in causes):
        return "the Hugging Face Hub does not have this revision; correct 'revision' in embedding_model_kwargs"
    if any(isinstance(each, RepositoryNotFoundError) for each in causes):
        return "the Hugging Face Hub has no public model of this name; correct it, or set HF_TOKEN for a private one"
    if any(isinstance(each, RevisionResolutionError | OSError) for each in causes):
        return (
            "it is not a folder, and the Hugging Face Hub cannot be reached; "
            "run `memoryos-mcp warmup` with a network connection, or set embedding_model_name to the folder of a copy"
        )
    return f"{type(error).__name__}; download it again, or use another model"


def _is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or any(
        words in str(error).lower() for words in ("out of memory", "not enough memory", "can't allocate memory")
    )
