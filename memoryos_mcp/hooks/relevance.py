"""Relevance: decides whether a prompt asks for memories, and shows those that are about it."""

from dataclasses import replace

from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.retrieval.rendering import recall_text
from memoryos_mcp.text.terms import content_words

# A prompt with fewer content words is a remark or an order like "run the tests", unless it is a question.
WORDS_AT_LEAST = 3
QUESTION_MARKS = "?？؟"
PROMPT_CHARS = 2_000


async def relevant_text(
    engine: MemoryEngine, prompt: str, *, session: str, project: str | None, max_tokens: int
) -> str:
    """Return the memories that are relevant to a prompt as text; an empty text if there are none.

    Pages of ``session`` are left out, because the client still has them in its context. Pages of ``project`` come
    first.
    """
    asked = prompt[:PROMPT_CHARS]
    words = set(content_words(asked))
    if not words or (len(words) < WORDS_AT_LEAST and not any(mark in asked for mark in QUESTION_MARKS)):
        return ""
    mark = f'"session": "{session}"'
    recall = await engine.recall(
        asked,
        max_tokens=max_tokens,
        project=project,
        is_new=lambda page: not session or mark not in (page.meta_data or ""),
    )
    pages = [replace(each, notes=None) for each in recall.pages]
    shown = replace(recall, pages=pages, has_topics=False, left_out=None)
    return recall_text(shown) if shown.pages or shown.user_facts or shown.assistant_facts else ""
