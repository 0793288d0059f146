"""Decides whether a prompt needs memories, and returns the relevant memories as text.

If the daemon does not run, a hook imports this module while the client waits, so the import must be quick.
"""

from collections.abc import Sequence

from memoryos_mcp.storage.stores import pages_by_words
from memoryos_mcp.text.quoting import ASSISTANT, USER, framed, head, quoted, section
from memoryos_mcp.text.terms import ABOUT_WORD_SHARE, content_words

TYPE_CHECKING = False  # the module typing would delay hooks
if TYPE_CHECKING:
    from memoryos_mcp.engine.engine import MemoryEngine

# A prompt with fewer content words is a remark or an order like "run the tests", unless it is a question.
WORDS_AT_LEAST = 3
QUESTION_MARKS = "?？؟"
PROMPT_CHARS = 2_000
# Without the daemon, at most this much is shown, about 800 tokens.
PAGES_AT_MOST = 4
SIDE_CHARS = 400
BY_WORDS = "Earlier conversations with the same words"


async def relevant_text(
    engine: "MemoryEngine", prompt: str, *, session: str, project: str | None, max_tokens: int
) -> str:
    """Return the memories that are relevant to a prompt, as text. The text is empty if there are none.

    Pages of ``session`` are left out, because the client still has them in its context. Pages of ``project`` come
    first.
    """
    from dataclasses import replace

    from memoryos_mcp.retrieval.rendering import recall_text

    if not _words(prompt):
        return ""
    recall = await engine.recall(
        prompt[:PROMPT_CHARS],
        max_tokens=max_tokens,
        project=project,
        is_new=lambda page: not _is_of(page.meta_data, session),
    )
    pages = [replace(each, notes=None) for each in recall.pages]
    shown = replace(recall, pages=pages, has_topics=False, left_out=None)
    return recall_text(shown) if shown.pages or shown.user_facts or shown.assistant_facts else ""


def text_by_words(file: str, prompt: str, session: str) -> str:
    """Return the pages in ``file`` that share many words with a prompt, as text. The text is empty if there are none.

    Pages of ``session`` are left out.

    Raises:
        StorageError: The file could not be read.
    """
    words = _words(prompt)
    found = pages_by_words(file, words, ABOUT_WORD_SHARE, 2 * PAGES_AT_MOST) if words else []
    lines = []
    for page_id, at, user, agent, _ in [page for page in found if not _is_of(page[-1], session)][:PAGES_AT_MOST]:
        lines.append(head(f"{at:%Y-%m-%d %H:%M}", page_id))
        sides = ((USER, user), (ASSISTANT, agent))
        lines += [quoted(_shortened(text), f"{who}: ") for who, text in sides if text]
    return "\n".join(framed(section(BY_WORDS, lines))) if lines else ""


def _words(prompt: str) -> Sequence[str]:
    """Return the content words of a prompt, or an empty list if the prompt is short and not a question."""
    asked = prompt[:PROMPT_CHARS]
    words = list(dict.fromkeys(content_words(asked)))
    is_question = any(mark in asked for mark in QUESTION_MARKS)
    return words if is_question or len(words) >= WORDS_AT_LEAST else []


def _shortened(text: str) -> str:
    return text if len(text) <= SIDE_CHARS else f"{text[:SIDE_CHARS]}…"


def _is_of(meta_data: str | None, session: str) -> bool:
    return bool(session) and f'"session": "{session}"' in (meta_data or "")
