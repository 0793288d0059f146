"""Embedders: text in, vectors out. The protocol, and the way from a setting to one."""

from collections.abc import Sequence
from enum import Enum, auto
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.pages import Window


class TextKind(Enum):
    """What a text is to retrieval; models that tell the two apart add their instruction."""

    QUERY = auto()
    PASSAGE = auto()


class Embedder(Protocol):
    """Turns text into vectors. Safe to share between tasks."""

    @property
    def identity(self) -> str:
        """Name of the vector space, ``name:dimension:revision``; stored beside each vector. Loads nothing."""
        ...

    @property
    def dimension(self) -> int:
        """Length of every vector. Loads nothing."""
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

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> NDArray[np.float32]:
        """Return one unit-length row per text, shape ``(len(texts), dimension)``, float32.

        Args:
            texts: What to embed; order is kept; may be empty. A text longer than the model's window is cut.
            kind: Query or passage; models that tell them apart add their instruction.

        Raises:
            ModelError: The model could not be loaded or did not answer.
        """
        ...

    async def embed_whole(self, texts: Sequence[str]) -> list[list[Window]]:
        """Return each passage as windows that cover all of it; at least one per text, in order.

        Raises:
            ModelError: The model could not be loaded or did not answer.
        """
        ...

    async def aclose(self) -> None:
        """Release the model; later calls raise `ModelError`."""
        ...
