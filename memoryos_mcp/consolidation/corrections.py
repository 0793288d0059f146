"""Rejects facts that contradict a correction by the user and are from pages older than this correction.

If the wrong fact is extracted again in the same words, the store rejects it. This module also rejects the wrong fact in
other words, and other values of an attribute that the user has corrected.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.errors import ModelError
from memoryos_mcp.model.knowledge import AddFact, CorrectedFact, KnowledgeChange, Lessons
from memoryos_mcp.text.terms import stems

# Returns one unit-length row per text, or None while no embedding model is loaded.
Embed = Callable[[Sequence[str]], Awaitable[NDArray[np.float32] | None]]

SAME_COSINE = 0.65
"""Minimum cosine of two facts that count as the same. With the bundled model, this recognises 27 of 29 rewordings of
ten corrected facts. It also rejects 8 of 32 different facts that were chosen to be similar, such as another favourite
colour or allergy. The text of a rejected fact is still found on its page."""

# Words that are removed before facts are compared. "I" and "the user" are the same subject, but have different vectors.
_SUBJECT = re.compile(r"\b(?:the (?:user|assistant)(?:['’]s)?|i(?:['’](?:m|ve))?|my|me)\b\s*", re.IGNORECASE)


def corrections_after(corrected: Sequence[CorrectedFact], seq: int) -> list[CorrectedFact]:
    """Return the corrections that were made after the page with the number ``seq`` was stored."""
    return [fact for fact in corrected if fact.until_seq >= seq]


async def without_corrected(lessons: Lessons, corrected: Sequence[CorrectedFact], embed: Embed | None) -> Lessons:
    """Return ``lessons`` (facts and traits learned from pages) without the facts that contradict a correction.

    In a correction, the user declares a fact wrong, and can state the correct fact. A new fact contradicts a correction
    if all pages that state it are older than the correction, and if it does one of the following:

    - it supersedes the correct fact;
    - it states the same attribute as the wrong fact;
    - it repeats the wrong fact in other words.

    Facts are compared by their vectors, or by their words if ``embed`` is None or fails.
    """
    kept: list[KnowledgeChange] = []
    for change in lessons.knowledge:
        if not isinstance(change, AddFact):
            kept.append(change)
            continue
        newest = max(change.evidence, default=0)
        against = [fact for fact in corrections_after(corrected, newest) if fact.about is change.about]
        if not any(_contradicts(change, fact) for fact in against) and not await _repeats_a_correction(
            change, against, embed
        ):
            kept.append(change)
    return replace(lessons, knowledge=tuple(kept))


def _contradicts(change: AddFact, corrected: CorrectedFact) -> bool:
    return corrected.heir in change.supersedes or (change.slot is not None and change.slot == corrected.slot)


async def _repeats_a_correction(change: AddFact, corrected: Sequence[CorrectedFact], embed: Embed | None) -> bool:
    """Return whether a new fact repeats one that the user has marked as wrong.

    A fact that is closer in meaning to the user's correct text than to the wrong text is not a repetition.
    """
    if not corrected:
        return False
    rights = [fact.right or "" for fact in corrected]
    texts = [change.text, *(fact.text for fact in corrected), *rights]
    vectors = None
    if embed is not None:
        with suppress(ModelError):
            vectors = await embed([_SUBJECT.sub("", text).strip() or text for text in texts])
    if vectors is None:
        return any(_has_all_words(change.text, fact) for fact in corrected)
    cosines = vectors[1:] @ vectors[0]
    to_wrong, to_right = np.split(cosines, 2)
    has_right = np.array([bool(right) for right in rights])
    is_nearer = ~has_right | (to_wrong > to_right)
    return bool(((to_wrong >= SAME_COSINE) & is_nearer).any())


def _has_all_words(text: str, corrected: CorrectedFact) -> bool:
    """Return whether ``text`` contains all those words of the wrong fact which the user's correct text lacks.

    If the correct text lacks none of them, return False.
    """
    said, wrong, right = (set(stems(_SUBJECT.sub("", each))) for each in (text, corrected.text, corrected.right or ""))
    return bool(wrong - right) and wrong - right <= said
