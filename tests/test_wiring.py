"""The embedding model that settings name, which is stored without secrets."""

import json

import pytest

from memoryos_mcp.config import Settings
from memoryos_mcp.embedding.api import ApiEmbedder
from memoryos_mcp.embedding.bundled import BundledEmbedder
from memoryos_mcp.embedding.embedders import configured_model, make_embedder
from memoryos_mcp.embedding.sentence_transformers import SentenceTransformersEmbedder

SECRET = "hf_abcdefghijklmnop"  # noqa: S105 - made up


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({}, BundledEmbedder),
        ({"embedding_model_name": "BAAI/bge-m3"}, SentenceTransformersEmbedder),
        ({"embedding_model_name": "bge-m3", "embedding_base_url": "http://127.0.0.1:9/v1"}, ApiEmbedder),
        ({"embedding_base_url": "http://127.0.0.1:9/v1"}, ApiEmbedder),
    ],
)
def test_name_and_address_select_the_embedder(settings: dict[str, object], kind: type) -> None:
    configured = Settings(**settings)  # type: ignore[arg-type]
    model = configured_model(configured)
    assert model is not None
    embedder = make_embedder(model, configured)
    assert isinstance(embedder, kind)
    assert embedder.model == model


def test_a_stored_model_contains_no_secret() -> None:
    kwargs = {"token": SECRET, "device": "cpu", "model_kwargs": {"proxies": [f"http://me:{SECRET}@proxy", "plain"]}}
    settings = Settings(embedding_model_name="BAAI/bge-m3", embedding_model_kwargs=kwargs)  # type: ignore[arg-type]
    model = configured_model(settings)
    assert model is not None
    assert SECRET not in model.to_json()
    assert json.loads(model.kwargs) == {"device": "cpu", "model_kwargs": {"proxies": ["plain"]}}
    url = f"https://me:{SECRET}@api.example.com/v1?key={SECRET}"
    behind_api = configured_model(Settings(embedding_model_name="bge-m3", embedding_base_url=url))
    assert behind_api is not None
    assert SECRET not in behind_api.to_json()
