"""The vector index ``chroma``: in a folder and on a server."""

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import numpy as np
import pytest

from memoryos_mcp.config import Settings
from memoryos_mcp.errors import StorageError
from memoryos_mcp.retrieval.index.chroma_index import ChromaIndex, ChromaIndexes
from memoryos_mcp.retrieval.index.conformance import DIMENSION, RULES, Make
from memoryos_mcp.retrieval.index.faiss_index import FaissIndex
from memoryos_mcp.retrieval.index.interface import IndexRequest
from memoryos_mcp.storage.values import PageVectors, Space
from tests.servers import wait_until

Rule = Callable[[Make], Awaitable[None]]
SPACE = f"tiny:{DIMENSION}:1"


class FewVectors:
    """The part of a store that the index uses."""

    def __init__(self) -> None:
        self.known = [SPACE]
        self.vectors: dict[int, np.ndarray] = {}

    async def spaces(self) -> list[Space]:
        return [Space(identity, "", 0, datetime.now(UTC)) for identity in self.known]

    async def all_vectors(self, after: int, limit: int) -> PageVectors:
        return of_pages({seq: rows for seq, rows in sorted(self.vectors.items()) if seq > after}, limit)


def of_pages(pages: dict[int, np.ndarray], limit: int | None = None) -> PageVectors:
    some = [*pages.items()][:limit]
    seqs = np.repeat(np.array([seq for seq, _ in some], dtype=np.int64), [len(rows) for _, rows in some])
    return PageVectors(seqs, np.concatenate([rows for _, rows in some]) if some else np.empty((0, DIMENSION)))


def request(settings: Settings, user_id: str = "ada", store: FewVectors | None = None) -> IndexRequest:
    return IndexRequest(settings, user_id, SPACE, DIMENSION, store or FewVectors())  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", RULES)
async def test_a_folder_keeps_the_rules(rule: Rule, tmp_path: Path) -> None:
    settings = Settings(data_storage_path=tmp_path, vector_index="chroma")
    with closing(ChromaIndexes(settings)) as indexes:
        await rule(lambda user_id: indexes(request(settings, user_id)))
        assert isinstance(indexes(request(settings)), ChromaIndex)
