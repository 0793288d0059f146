"""Embedding: turns text into vectors. The package contains the protocol `Embedder` and its implementations."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.model.pages import Window, page_text, storable


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """The settings that select and configure an embedding model. They do not contain API keys.

    Attributes:
        name: Name of the model in the configuration.
        base_url: URL of the embeddings API; None for a local model.
        kwargs: Additional arguments for the model, as JSON with sorted keys.
    """

    name: str
    base_url: str | None = None
    kwargs: str = "{}"

    def to_json(self) -> str:
        """Return the settings as JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "EmbeddingModel":
        """Return the settings from JSON that `to_json` returned. Missing fields get their default values.

        Raises:
            ValueError: ``text`` does not describe an embedding model.
        """
        try:
            return cls(**json.loads(text))
        except TypeError as error:
            msg = "the JSON does not describe an embedding model; pass JSON that EmbeddingModel.to_json returned"
            raise ValueError(msg) from error


@dataclass(frozen=True, slots=True)
class Passage:
    """The text of one page to embed: what the user and the assistant said."""

    user_input: str
    agent_response: str

    @property
    def text(self) -> str:
        """The user's and the assistant's text, with U+FFFD in place of characters that cannot be stored."""
        return storable(page_text(self.user_input, self.agent_response))


@dataclass(frozen=True, slots=True)
class EmbeddedQuery:
    """The vectors of a query.

    Attributes:
        vector: Vector of the whole query, unit length, shape ``(dimension,)``, float32.
        tokens: One row per word, shape ``(n, m)``, float32: the mean direction of the vectors of its tokens. The rows
            are comparable with the token vectors of pages. There are no rows if the model has no token vectors.
        spans: Start and end of each row's word in the query, in characters.
    """

    vector: NDArray[np.float32]
    tokens: NDArray[np.float32]
    spans: Sequence[tuple[int, int]]


class Embedder(Protocol):
    """Turns text into vectors. Safe to share between tasks."""

    @property
    def model(self) -> EmbeddingModel:
        """The settings of the model."""
        ...

    @property
    def identity(self) -> str:
        """Name of the model's vector space, in the form ``name:dimension:revision``.

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
        """Whether the model also returns a vector for each token of a query or page."""
        ...

    @property
    def is_loaded(self) -> bool:
        """Whether the model is loaded."""
        ...

    async def load(self) -> None:
        """Load the model. If it is already loaded, do nothing.

        Raises:
            ModelError: The model could not be loaded. The message says what to do.
        """
        ...

    async def embed_query(self, query: str) -> EmbeddedQuery:
        """Return the vectors of a query.

        Queries do not wait for pages that are being embedded. If a query is too long for the model, its end is ignored.

        Raises:
            ModelError: The model could not be loaded or did not answer.
        """
        ...

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed strings as passages and return one unit-length row per string.

        The result has shape ``(len(texts), dimension)`` and type float32. If a string is too long for the model, its
        end is ignored.

        Args:
            texts: The strings to embed; may be empty.

        Raises:
            ModelError: The model could not be loaded or did not answer.
        """
        ...

    async def embed_pages(self, passages: Sequence[Passage]) -> list[list[Window]]:
        """Return the windows of each page with their vectors.

        Windows are parts of a page's text. Together, they cover the whole text. Each page has at least one window.

        Raises:
            ModelError: The model could not be loaded or did not answer.
        """
        ...

    async def aclose(self) -> None:
        """Release the model's resources, such as threads or network connections. Later calls raise `ModelError`."""
        ...
