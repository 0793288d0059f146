"""The reference, MemoryOS: its published package, with a stub in place of the LLM.

Documentation: ``Memoryos``, ``add_memory``; ``get_response`` shows which texts an LLM gets. The stub answers: no page
continues another, a topic is the beginning of its page, keywords are the longest words. The package demands old
releases of others, so it is installed without them.
"""

# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy>=1.24,<3", "sentence-transformers>=5,<6", "torch>=2.13,<2.14", "faiss-cpu>=1.7,<2", "openai<4"]
# [tool.peer]
# title = "MemoryOS (the reference), stub LLM"
# packages = ["memoryos-pro", "sentence-transformers", "torch"]
# alone = ["memoryos-pro==0.1.0"]
# weights = "fp32"
# model-folder = "all-MiniLM-L6-v2"
# ///

import json
import re
from pathlib import Path

from memoryos import Memoryos

from benchmarks.peers.library import Found, Library, Page, serve


def _reply(messages: list[dict[str, str]], **_: object) -> str:
    about, said = messages[0]["content"], messages[1]["content"]
    said = said.partition("Conversation content:\n" if "dialogue topics" in about else "\n")[2]
    words = sorted(set(re.findall(r"\w{5,}", said.lower())), key=lambda word: (-len(word), word))[:5]
    if "dialogue topics" in about:
        return json.dumps([{"theme": said[:30], "keywords": words, "content": said[:200]}])
    return ", ".join(words) if "keyword" in about else "false" if "continuity" in about else "None"


class Memory(Library):
    """The memory of one user."""

    def __init__(self, folder: Path) -> None:
        self._memory = Memoryos("user", "unused", str(folder))
        self._memory.client.chat_completion = _reply

    def add(self, page: Page) -> None:
        """Add a page; its time carries its id, since the reference does not search by it."""
        self._memory.add_memory(page.user_input, page.agent_response, timestamp=page.page_id)

    def find(self, question: str, limit: int | None) -> Found:  # noqa: ARG002 - it has no such option
        """Return what an LLM would get."""
        found = self._memory.retriever.retrieve_context(question, "user")["retrieved_pages"]
        newest = self._memory.short_term_memory.get_all()
        texts = [f"{page['user_input']}\n{page['agent_response']}" for page in (*newest, *found)]
        return Found([page["timestamp"] for page in found], texts, [page["timestamp"] for page in newest])


if __name__ == "__main__":
    serve(Memory)
