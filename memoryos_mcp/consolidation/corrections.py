"""Corrections: what the user has declared wrong is not learned again from pages older than the correction.

The store refuses the same words. This module finds the same statement in other words, and other answers to what the
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
"""From this cosine on, two facts count as the same. With the bundled model, this recognises 32 of 33 other wordings of
nine corrected facts. It also takes 3 of 42 different facts for one of them, such as another favourite colour. A fact
that is lost in this way is still on its page."""

# Both facts have the same subject, and "I" against "the user" would be the greatest difference between them.
_SUBJECT = re.compile(r"\b(?:the (?:user|assistant)(?:['’]s)?|i(?:['’](?:m|ve))?|my|me)\b\s*", re.IGNORECASE)


def counting_against(corrected: Sequence[CorrectedFact], seq: int) -> list[CorrectedFact]:
    """Return the corrections that are newer than a page."""
    return [fact for fact in corrected if fact.until_seq >= seq]


async def without_corrected(lessons: Lessons, corrected: Sequence[CorrectedFact], embed: Embed | None) -> Lessons:
    """Return the lessons without those that contradict a correction.

    Such a lesson has no evidence newer than the correction. It replaces what the user gave instead, answers what the
    corrected fact answered, or says in other words what was corrected.

    Args:
        lessons: As they would be committed.
        corrected: The user's corrections.
        embed: Used to compare by meaning. If it is None or fails, words are compared.
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
    """Whether a fact replaces the user's, or gives another answer to what the user has answered."""
    return corrected.heir in change.supersedes or (change.slot is not None and change.slot == corrected.slot)


async def _says_one_of(change: AddFact, corrected: Sequence[CorrectedFact], embed: Embed | None) -> bool:
    """Whether a fact says the same as a corrected one, and is not nearer to the right one."""
    if not corrected:
        return False
    rights = [fact.right or "" for fact in corrected]
    texts = [change.text, *(fact.text for fact in corrected), *rights]
    vectors = None
    if embed is not None:
        try:
            vectors = await embed([_SUBJECT.sub("", text).strip() or text for text in texts])
        except ModelError:  # words are compared instead
            vectors = None
    if vectors is None:
        return any(_has_all_words(change.text, fact) for fact in corrected)
    cosines = vectors[1:] @ vectors[0]
    to_wrong, to_right = np.split(cosines, 2)
    has_right = np.array([bool(right) for right in rights])
    is_nearer = ~has_right | (to_wrong > to_right)
    return bool(((to_wrong >= SAME_COSINE) & is_nearer).any())


def _has_all_words(text: str, corrected: CorrectedFact) -> bool:
    """Whether a text contains every word that is in the wrong fact but not in the right one."""
    told, wrong, right = (set(stems(_SUBJECT.sub("", each))) for each in (text, corrected.text, corrected.right or ""))
    return bool(wrong - right) and wrong - right <= told
