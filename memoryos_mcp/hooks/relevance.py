"""Relevance: decides whether a prompt asks for memories, and which memories are good enough to be shown unasked.

A retrieval that an assistant asks for always returns its best pages. A hook runs on every prompt, so it needs a limit
that does not depend on the other candidates.
"""

from dataclasses import replace

from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.retrieval.query import rarity
from memoryos_mcp.retrieval.recall import Recall
from memoryos_mcp.retrieval.rendering import recall_text
from memoryos_mcp.retrieval.retrieving import ABOUT_COSINE, Candidates
from memoryos_mcp.text.terms import content_words

# A prompt with fewer content words is a remark or an order like "run the tests", unless it is a question.
WORDS_AT_LEAST = 3
QUESTION_MARKS = "?？؟"
# A page without vectors must contain this share of the prompt's words; rare words count more.
WORD_SHARE = 0.5
# The score of a fact is the share of the prompt's words in it plus a cosine.
FACT_SCORE = 0.6
PROMPT_CHARS = 2_000


async def relevant_text(
    engine: MemoryEngine, prompt: str, *, session: str, project: str | None, max_tokens: int
) -> str:
    """Return the memories that are relevant to a prompt as text; an empty text if there are none.

    Pages of ``session`` are left out, because the client still has them in its context. Pages of ``project`` come
    first.
    """
    query = prompt[:PROMPT_CHARS]
    words = set(content_words(query))
    if not words or (len(words) < WORDS_AT_LEAST and not any(mark in query for mark in QUESTION_MARKS)):
        return ""
    recall = await engine.retrieve(query, max_tokens=max_tokens, project=project, has_all_recent=True, is_visit=False)
    fitting = _fitting(recall, await engine.candidates(query, project))
    mark = f'"session": "{session}"'
    pages = [
        replace(each, notes=None)
        for each in (*recall.pages, *recall.short_term)
        if each.page.seq in fitting and not (session and mark in (each.page.meta_data or ""))
    ]
    chosen = replace(
        recall,
        short_term=(),
        pages=pages,
        wishes=(),
        traits=(),
        user_facts=[fact for fact in recall.user_facts if fact.score >= FACT_SCORE],
        assistant_facts=[fact for fact in recall.assistant_facts if fact.score >= FACT_SCORE],
        has_topics=False,
        left_out=None,
    )
    return recall_text(chosen) if chosen.pages or chosen.user_facts or chosen.assistant_facts else ""


def _fitting(recall: Recall, found: Candidates) -> set[int]:
    """Return the ``seq`` of each candidate that is about the prompt."""
    seqs = found.outlines.seqs.tolist()
    cosines = found.signals.get("best_window")
    if cosines is not None:
        near = zip(seqs, cosines.tolist(), found.best_parts.tolist(), strict=True)
        return {seq for seq, cosine, part in near if cosine >= ABOUT_COSINE and part >= 0}
    cover = found.signals.get("word_cover")
    total = sum(rarity(count, recall.asked.pages) for count in recall.asked.counts.values())
    if cover is None or total <= 0:
        return set()
    return {seq for seq, share in zip(seqs, cover.tolist(), strict=True) if share >= WORD_SHARE * total}
