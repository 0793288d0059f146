"""Splits pages that are longer than the maximum page length."""

from collections.abc import Iterator
from dataclasses import replace

from memoryos_mcp.model.pages import NewTurn

# A part ends after the first of these marks that is in its last tenth, or else at the maximum length.
_ENDS = ("\n\n", "\n", ". ", " ")


def split(page: NewTurn, max_chars: int) -> Iterator[NewTurn]:
    """Yield a page unchanged if it has at most ``max_chars`` characters, otherwise in parts of at most this length.

    Each part contains text of only one speaker. The parts of the user's text come first, and no character is lost. The
    first part has the page's key. The other parts have the key followed by ``#2``, ``#3`` and so on.
    """
    if len(page.user_input) + len(page.agent_response) <= max_chars:
        yield page
        return
    parts = [(text, "") for text in _cut(page.user_input, max_chars)]
    parts += [("", text) for text in _cut(page.agent_response, max_chars)]
    for number, (user, assistant) in enumerate(parts, 1):
        name = page.idempotency_key if number == 1 else f"{page.idempotency_key}#{number}"
        yield replace(page, user_input=user, agent_response=assistant, idempotency_key=name)


def _cut(text: str, max_chars: int) -> Iterator[str]:
    start = 0
    while len(text) - start > max_chars:
        earliest, latest = start + max_chars - max_chars // 10, start + max_chars
        ends = (text.rfind(mark, earliest, latest) + len(mark) for mark in _ENDS if mark in text[earliest:latest])
        end = next(ends, latest)
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]
