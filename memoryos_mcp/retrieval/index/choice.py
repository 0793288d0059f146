"""Chooses the vector index according to the setting ``vector_index``."""

from importlib.util import find_spec

from memoryos_mcp.config import Settings
from memoryos_mcp.errors import ConfigError
from memoryos_mcp.retrieval.entry_points import load_entry_point
from memoryos_mcp.retrieval.index.faiss_index import FaissIndex
from memoryos_mcp.retrieval.index.interface import ENTRY_POINTS, IndexRequest, MakeIndex, VectorIndex

FAISS, CHROMA, PGVECTOR = "faiss", "chroma", "pgvector"
BUILT_IN = {FAISS, CHROMA, PGVECTOR}


def choose_index(settings: Settings) -> MakeIndex:
    """Return the function that creates the configured vector index.

    For Chroma and for indexes of other packages, this call blocks while it imports libraries.

    Raises:
        ConfigError: The index is unknown, or it cannot be used with the settings and the installed packages.
    """
    name = settings.vector_index
    if name == FAISS:
        return _faiss
    if name == CHROMA:
        return _chroma(settings)
    if name == PGVECTOR:
        if settings.database_url is None:
            msg = "vector_index: pgvector needs memories in PostgreSQL; set database_url, or set vector_index to faiss"
            raise ConfigError(msg)
        return _pgvector
    make: MakeIndex = load_entry_point(ENTRY_POINTS, name, "vector_index", BUILT_IN)
    return make


def _faiss(request: IndexRequest) -> VectorIndex:
    return FaissIndex(request.dimension)


def _pgvector(request: IndexRequest) -> VectorIndex:
    index = request.store.vector_index(request.dimension)
    assert index is not None  # noqa: S101 - of the store in PostgreSQL
    return index


def _chroma(settings: Settings) -> MakeIndex:
    if settings.chroma_url is None and find_spec("chromadb") is None:
        msg = (
            "vector_index: chroma needs additional packages; run `pip install 'memoryos-mcp-server[chroma]'`, or set "
            "chroma_url to the address of a Chroma server"
        )
        raise ConfigError(msg)
    from memoryos_mcp.retrieval.index.chroma_index import ChromaIndexes  # it imports more libraries

    return ChromaIndexes(settings)
