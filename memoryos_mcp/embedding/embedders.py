"""The embedders of a process, for the configured model and for previous models whose vectors are still in use."""

import json
from collections.abc import Callable

from memoryos_mcp.config import BUNDLED_EMBEDDER_NAMES, Settings
from memoryos_mcp.config.masks import without_credentials, without_secrets
from memoryos_mcp.embedding import Embedder, EmbeddingModel
from memoryos_mcp.embedding.bundled import NAME as BUNDLED_NAME
from memoryos_mcp.embedding.bundled import BundledEmbedder


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


def configured_model(settings: Settings) -> EmbeddingModel | None:
    """Return the configured embedding model. None means that there is only keyword search."""
    if settings.wants_no_embedder:
        return None
    if settings.uses_bundled_embedder:
        return EmbeddingModel(BUNDLED_NAME)
    kwargs = json.dumps(without_secrets(settings.embedding_model_kwargs or {}), sort_keys=True)
    return EmbeddingModel(settings.embedding_model_name, without_credentials(settings.embedding_base_url), kwargs)


def configured_embedder(settings: Settings) -> Embedder | None:
    """Return an embedder for the configured model, which is not loaded yet. None means only keyword search."""
    model = configured_model(settings)
    return None if model is None else make_embedder(model, settings)


def make_embedder(model: EmbeddingModel, settings: Settings) -> Embedder:
    """Return an embedder for the configured model or a previous one. The model is not loaded yet.

    The API key is used only with the configured base URL, and secret model arguments only with the configured model.
    """
    if model == EmbeddingModel(BUNDLED_NAME):
        return BundledEmbedder()
    if model.base_url is not None:
        from memoryos_mcp.embedding.api import ApiEmbedder

        is_configured_api = model.base_url == without_credentials(settings.embedding_base_url)
        return ApiEmbedder(
            model,
            settings.embedding_key if is_configured_api else None,
            timeout_s=settings.embedding_timeout_s,
            base_url=settings.embedding_base_url if is_configured_api else None,
        )
    from memoryos_mcp.embedding.sentence_transformers import SentenceTransformersEmbedder

    return SentenceTransformersEmbedder(
        model,
        settings.embedding_model_kwargs or {} if model == configured_model(settings) else json.loads(model.kwargs),
    )
