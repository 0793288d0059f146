"""The embedders of a process, for the configured model and for previous models whose vectors are still in use."""

from collections.abc import Callable

from memoryos_mcp.config import BUNDLED_EMBEDDER_NAMES
from memoryos_mcp.embedding import Embedder, EmbeddingModel
from memoryos_mcp.embedding.bundled import NAME as BUNDLED_NAME


class Embedders:
    """The embedders of a process. They can be shared between tasks.

    Args:
        configured: The embedder for new vectors; None to use only keywords.
        make: A function that creates the embedder for a model, or raises `ModelError`.
    """

    def __init__(self, configured: Embedder | None, make: Callable[[EmbeddingModel], Embedder]) -> None:
        self.configured = configured
        self._make = make
        self._before: dict[EmbeddingModel, Embedder] = {}

    def of(self, model: EmbeddingModel) -> Embedder:
        """Return the embedder for a model. Create the embedder on first use, without loading the model.

        Earlier versions stored other names for the bundled model. Its embedder is returned for these names too, and its
        identity shows whether the vectors are of the present model.

        Raises:
            ModelError: The embedder cannot be created.
        """
        if model.base_url is None and model.name.lower() in BUNDLED_EMBEDDER_NAMES:
            model = EmbeddingModel(BUNDLED_NAME)
        if self.configured is not None and model == self.configured.model:
            return self.configured
        if model not in self._before:
            self._before[model] = self._make(model)
        return self._before[model]

    async def aclose(self) -> None:
        """Close all embedders."""
        for embedder in ([self.configured] if self.configured else []) + list(self._before.values()):
            await embedder.aclose()
