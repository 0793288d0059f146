"""Embedding: text to vectors. The protocol and its implementations."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.model.pages import Window, page_text, storable


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """The settings with which a model is loaded, except keys.

    Attributes:
        name: The configured name.
        base_url: URL of its API; None for a local model.
        kwargs: Additional arguments, as JSON with sorted keys.
    """

    name: str
    base_url: str | None = None
    kwargs: str = "{}"

    def to_json(self) -> str:
        """Return the model as JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "EmbeddingModel":
        """Return the model that `to_json` wrote; missing fields get their defaults.

        Raises:
            ValueError: The text does not describe a model.
        """
        try:
            return cls(**json.loads(text))
        except TypeError as error:
            msg = "not a valid embedding model"
            raise ValueError(msg) from error


@dataclass(frozen=True, slots=True)
class Passage:
    """A page to embed."""

    user_input: str
    agent_response: str

    @property
    def text(self) -> str:
        """The text that is embedded: both sides, without characters that no store can hold."""
        return storable(page_text(self.user_input, self.agent_response))


@dataclass(frozen=True, slots=True)
class EmbeddedQuery:
    """A query's vectors.

    Attributes:
        vector: Unit length, shape ``(dimension,)``, float32.
        tokens: One unit-length row per token, in the vector space of the pages' tokens, shape ``(n, m)``, float32; no
            rows from a model without token vectors.
        spans: Start and end of each token in the query, in characters.
    """

    vector: NDArray[np.float32]
    tokens: NDArray[np.float32]
    spans: Sequence[tuple[int, int]]


class Embedder(Protocol):
    """Turns text into vectors. Safe to share between tasks."""

    @property
    def model(self) -> EmbeddingModel:
        """The model's settings."""
        ...

    @property
    def identity(self) -> str:
        """Name of the vector space, ``name:dimension:revision``.

        Raises:
            ModelError: The model is not loaded.
        """
        ...

    @property
    def dimension(self) -> int:
        """Length of every vector.

        Raises:
            ModelError: The model is not loaded.
        """
        ...

    @property
    def has_tokens(self) -> bool:
        """Whether queries and pages get token vectors too."""
        ...

    @property
    def is_loaded(self) -> bool:
        """Whether the model is loaded."""
        ...

    async def load(self) -> None:
        """Load the model; does nothing if it is loaded.

        Raises:
            ModelError: The model could not be loaded; the message says what to do.
        """
        ...

    async def embed_query(self, query: str) -> EmbeddedQuery:
        """Return the vectors of a query, without waiting for pages in progress.

        A query longer than the model's window is cut.

        Raises:
            ModelError: The model could not be loaded or did not answer.
        """
        ...

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit-length row per passage text, shape ``(len(texts), dimension)``, float32.

        Args:
            texts: Texts to embed; may be empty. A text longer than the model's window is cut.

        Raises:
            ModelError: The model could not be loaded or did not answer.
        """
        ...

    async def embed_pages(self, passages: Sequence[Passage]) -> list[list[Window]]:
        """Return the windows of each page, which cover all of its text; a page has at least one.

        Raises:
            ModelError: The model could not be loaded or did not answer.
        """
        ...

    async def aclose(self) -> None:
        """Release the model; later calls raise `ModelError`."""
        ...
