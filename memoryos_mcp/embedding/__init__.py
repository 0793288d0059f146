"""Embedders: text in, vectors out. The protocol, and the way from a setting to one."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.model.pages import Window


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """Everything that is needed to load a model again, except keys.

    Attributes:
        name: As configured.
        base_url: URL of its API; None for a local model.
        kwargs: Further arguments of its constructor, JSON with sorted keys.
    """

    name: str
    base_url: str | None = None
    kwargs: str = "{}"

    def to_json(self) -> str:
        """Return the model as JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "EmbeddingModel":
        """Return the model from the text of `to_json`; missing fields have their defaults.

        Raises:
            ValueError: The text is something else.
        """
        try:
            return cls(**json.loads(text))
        except TypeError as error:
            msg = "is no embedding model"
            raise ValueError(msg) from error


@dataclass(frozen=True, slots=True)
class Passage:
    """A page to embed."""

    user_input: str
    agent_response: str


@dataclass(frozen=True, slots=True)
class EmbeddedQuery:
    """A query's vectors.

    Attributes:
        vector: Unit length, shape ``(dimension,)``, float32.
        tokens: One unit-length row per word piece, comparable with decoded token codes, shape ``(n, m)``, float32; no
            rows from a model without token vectors.
        spans: Index of each piece's first character in the query and after its last.
    """

    vector: NDArray[np.float32]
    tokens: NDArray[np.float32]
    spans: Sequence[tuple[int, int]]


class Embedder(Protocol):
    """Turns text into vectors. Safe to share between tasks."""

    @property
    def model(self) -> EmbeddingModel:
        """Which model it is."""
        ...

    @property
    def identity(self) -> str:
        """Name of the vector space, ``name:dimension:revision``, once it is loaded."""
        ...

    @property
    def dimension(self) -> int:
        """Length of every vector, once it is loaded."""
        ...

    @property
    def has_tokens(self) -> bool:
        """Whether it returns vectors of word pieces too."""
        ...

    @property
    def is_loaded(self) -> bool:
        """Whether the next call need not load the model first."""
        ...

    async def load(self) -> None:
        """Load the model, once; later calls return at once.

        Raises:
            ModelError: It could not be loaded.
        """
        ...

    async def embed_query(self, query: str) -> EmbeddedQuery:
        """Return a query's vectors; a query longer than the model's window is cut.

        Raises:
            ModelError: The model could not be loaded or did not answer.
        """
        ...

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit-length row per passage text, shape ``(len(texts), dimension)``, float32.

        Args:
            texts: Texts to embed; order is kept; may be empty. A text longer than the model's window is cut.

        Raises:
            ModelError: The model could not be loaded or did not answer.
        """
        ...

    async def embed_pages(self, passages: Sequence[Passage]) -> list[list[Window]]:
        """Return each page as windows that cover all of its text; at least one per page, in order.

        Raises:
            ModelError: The model could not be loaded or did not answer.
        """
        ...

    async def aclose(self) -> None:
        """Release the model; later calls raise `ModelError`."""
        ...
