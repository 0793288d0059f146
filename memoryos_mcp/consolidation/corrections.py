"""Corrections: what the user has said is wrong is not learned again from pages that were there before they said so.

The same words are refused by the store. Here is where other words for the same are, and other answers to what the
user has answered.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.errors import ModelError
from memoryos_mcp.model.knowledge import AddFact, CorrectedFact, KnowledgeChange, Lessons
from memoryos_mcp.text.terms import stems

# Returns one unit-length row per text; None while there is no model.
Embed = Callable[[Sequence[str]], Awaitable[NDArray[np.float32] | None]]

SAME_COSINE = 0.55
"""From this cosine on two facts are taken for one. Of 33 other wordings of nine corrected facts the bundled model finds
32, and of 42 other facts it takes 3 for one of them, as one favourite colour for another. A fact that is missed for
that is still on its page."""

# Who a fact is about is the same on both sides, and "I" and "the user" would be the greatest difference between them.
_SUBJECT = re.compile(r"\b(?:the (?:user|assistant)(?:['’]s)?|i(?:['’](?:m|ve))?|my|me)\b\s*", re.IGNORECASE)


def counting_against(corrected: Sequence[CorrectedFact], seq: int) -> list[CorrectedFact]:
    """Return the corrections that were made after a page was there."""
    return [fact for fact in corrected if fact.until_seq >= seq]


async def without_corrected(lessons: Lessons, corrected: Sequence[CorrectedFact], embed: Embed | None) -> Lessons:
    """Return the lessons without those that go back behind a correction.

    Such a lesson rests on nothing newer than the correction, and it takes the place of what the user gave instead,
    answers what the corrected fact answered, or says in other words what was corrected.

    Args:
        lessons: As they would be taken over.
        corrected: What the user has said is wrong.
        embed: Tells nearness by meaning; None leaves it to the words, and so does a model that fails.
    """
    kept: list[KnowledgeChange] = []
    for change in lessons.knowledge:
        if not isinstance(change, AddFact):
            kept.append(change)
            continue
        newest = max(change.evidence, default=0)
        against = [fact for fact in counting_against(corrected, newest) if fact.about is change.about]
        if not any(_contradicts(change, fact) for fact in against) and not await _says_one_of(change, against, embed):
            kept.append(change)
    return replace(lessons, knowledge=tuple(kept))


def _contradicts(change: AddFact, corrected: CorrectedFact) -> bool:
    """Whether a fact takes the place of the user's, or gives another answer to what they have answered."""
    return corrected.heir in change.supersedes or (change.slot is not None and change.slot == corrected.slot)


async def _says_one_of(change: AddFact, corrected: Sequence[CorrectedFact], embed: Embed | None) -> bool:
    """Whether a fact says what one of the corrected ones said, and not rather what is right."""
    if not corrected:
        return False
    rights = [fact.right or "" for fact in corrected]
    texts = [change.text, *(fact.text for fact in corrected), *rights]
    vectors = None
    if embed is not None:
        try:
            vectors = await embed([_SUBJECT.sub("", text).strip() or text for text in texts])
        except ModelError:  # what the model cannot tell the words must
            vectors = None
    if vectors is None:
        return any(_has_all_words(change.text, fact) for fact in corrected)
    cosines = vectors[1:] @ vectors[0]
    to_wrong, to_right = np.split(cosines, 2)
    has_right = np.array([bool(right) for right in rights])
    is_nearer = ~has_right | (to_wrong > to_right)
    return bool(((to_wrong >= SAME_COSINE) & is_nearer).any())


def _has_all_words(text: str, corrected: CorrectedFact) -> bool:
    """Whether a text holds every word that only the wrong fact has and not the right one."""
    told, wrong, right = (set(stems(_SUBJECT.sub("", each))) for each in (text, corrected.text, corrected.right or ""))
    return bool(wrong - right) and wrong - right <= told
