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
    """Which model: all that is needed to load it again, but for keys.

    Attributes:
        name: As it is configured.
        base_url: Address of the API that has it; None for a model that runs here.
        kwargs: Further arguments of its constructor, JSON with sorted keys.
    """

    name: str
    base_url: str | None = None
    kwargs: str = "{}"

    def to_json(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "EmbeddingModel":
        """Return what `to_json` was made of; what is missing has its default.

        Raises:
            ValueError: It is something else.
        """
        try:
            return cls(**json.loads(text))
        except TypeError as error:
            msg = "is no embedding model"
            raise ValueError(msg) from error


@dataclass(frozen=True, slots=True)
class Passage:
    """A page to embed.

    Attributes:
        user_input: The user's side.
        agent_response: The assistant's side.
    """

    user_input: str
    agent_response: str


@dataclass(frozen=True, slots=True)
class EmbeddedQuery:
    """A query's vectors.

    Attributes:
        vector: Unit length, shape ``(dimension,)``, float32.
        tokens: One unit-length row per word piece, comparable with decoded token codes, shape ``(n, m)``, float32; no
            rows from a model without token vectors.
        spans: Where each piece stands in the query: index of its first character and after its last.
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
        """Whether it gives vectors of word pieces too."""
        ...

    @property
    def is_loaded(self) -> bool:
        """Whether the next call answers at once."""
        ...

    async def load(self) -> None:
        """Load the model, once; later calls return at once.

        Raises:
            ModelError: It could not be loaded.
        """
        ...

    async def embed_query(self, query: str) -> EmbeddedQuery:
        """Return a query's vectors; one longer than the model's window is cut.

        Raises:
            ModelError: The model could not be loaded or did not answer.
        """
        ...

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit-length row per text that is to be found, shape ``(len(texts), dimension)``, float32.

        Args:
            texts: What to embed; order is kept; may be empty. A text longer than the model's window is cut.

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
