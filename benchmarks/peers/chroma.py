"""Chroma: a collection with its default embedding function.

Documentation: ``PersistentClient``, ``collection.add``, ``collection.query``, each with its defaults.
"""

# /// script
# requires-python = ">=3.11"
# dependencies = ["chromadb>=1.5,<2"]
#
# [tool.peer]
# title = "Chroma"
# packages = ["chromadb"]
# weights = "int8"
# model-folder = ".cache/chroma/onnx_models/all-MiniLM-L6-v2/onnx"
# ///

from pathlib import Path
from typing import Any

import chromadb

from benchmarks.peers.library import Found, Library, Page, serve


class Collection(Library):
    """A collection in a folder."""

    def __init__(self, folder: Path) -> None:
        client = chromadb.PersistentClient(path=str(folder))
        self._collection = client.get_or_create_collection("pages")

    def add(self, page: Page) -> None:
        """Add a page as one document."""
        self._collection.add(ids=[page.page_id], documents=[page.text], metadatas=[{"timestamp": page.timestamp}])

    def find(self, question: str, limit: int | None) -> Found:
        """Query the collection."""
        given: dict[str, Any] = {} if limit is None else {"n_results": limit}
        answer = self._collection.query(query_texts=[question], **given)
        return Found(answer["ids"][0], (answer["documents"] or [[]])[0])


if __name__ == "__main__":
    serve(Collection)
