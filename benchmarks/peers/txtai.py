"""txtai: an embeddings database with content and hybrid search.

Documentation: ``Embeddings(hybrid=True, content=True)``, ``upsert``, ``search``, ``save``. Nothing is on disk before
``save``.
"""

# /// script
# requires-python = ">=3.11"
# dependencies = ["txtai>=9.14,<10", "torch>=2.13,<2.14"]
#
# [tool.peer]
# title = "txtai, hybrid"
# packages = ["txtai", "torch", "transformers"]
# weights = "fp32"
# model-folder = "all-MiniLM-L6-v2"
# ///

from pathlib import Path
from typing import Any

from txtai import Embeddings

from benchmarks.peers.library import Found, Library, Page, serve


class Database(Library):
    """An embeddings database."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder / "index")
        self._embeddings = Embeddings(path=str(Path.home() / "all-MiniLM-L6-v2"), hybrid=True, content=True)
        if Path(self._folder).exists():
            self._embeddings.load(self._folder)

    def add(self, page: Page) -> None:
        """Add a page as one text."""
        self._embeddings.upsert([(page.page_id, page.text, None)])

    def settle(self) -> None:
        """Save the database."""
        self._embeddings.save(self._folder)

    def find(self, question: str, limit: int | None) -> Found:
        """Search the database."""
        given: dict[str, Any] = {} if limit is None else {"limit": limit}
        found = self._embeddings.search(question, **given)
        return Found([each["id"] for each in found], [each["text"] for each in found])


if __name__ == "__main__":
    serve(Database)
