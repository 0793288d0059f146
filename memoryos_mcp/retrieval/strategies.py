"""The built-in retrieval strategies, and the choice of one by the setting ``retrieval_strategy``."""

import heapq
from collections.abc import Callable, Sequence

import numpy as np

from memoryos_mcp.errors import ConfigError
from memoryos_mcp.model.segments import segment_match
from memoryos_mcp.retrieval.entry_points import load_entry_point
from memoryos_mcp.retrieval.ranking import Ranked, rank
from memoryos_mcp.retrieval.strategy import ENTRY_POINTS, RetrievalStrategy, Search
from memoryos_mcp.text.terms import stems

# The numbers of the paper's published implementation.
PAPER_SEGMENTS_AT_MOST = 5
PAPER_COSINE_AT_LEAST = 0.1


class AllPages:
    """Ranks all candidates by the weighted sum of their signals, whatever their segments are."""

    name = "all"

    async def rank(self, search: Search) -> Sequence[Ranked]:
        """Return the best candidates, and in addition all candidates among the short-term pages, best first.

        Short-term pages have a separate section in the result. Those that do not fit there can be shown among the found
        pages.
        """
        found = search.candidates
        is_newest = np.isin(found.outlines.seqs, [*search.newest])
        apart = found.outlines.sessions if search.query.is_for_several else None
        given = (found.recipe, found.outlines.seqs, found.signals, found.windows)
        best = rank(*given, ~is_newest, search.limit, apart=apart)
        return [*heapq.merge(best, rank(*given, is_newest, len(search.newest)), key=lambda entry: -entry.score)]


class Paper:
    """Selects the best segments first, and then the best pages in them.

    This is the retrieval of "Memory OS of AI Agent" (arXiv 2506.06326), section 3.4. The score of a segment is its
    cosine to the query plus the Jaccard index of the keywords. The score of a page is its cosine to the query, or the
    score of its keywords without an embedding model. Candidates that have no segment yet, such as pages of the
    backlog, are treated as pages of a selected segment.
    """

    name = "paper/1"

    async def rank(self, search: Search) -> Sequence[Ranked]:
        """Return the best pages of the best segments, best first."""
        query, outlines = search.query, search.candidates.outlines
        vector = query.embedded.vector if query.embedded else None
        said = frozenset(stems(query.subject))
        matches = {
            segment.segment: segment_match(segment.vector, keywords, vector, said)
            for segment, keywords in await search.memory.segments()
        }
        best = sorted(matches, key=lambda segment: -matches[segment])[:PAPER_SEGMENTS_AT_MOST]
        pages = {seq for segment in best for seq in await search.memory.pages_of(segment)}
        pages.update(outlines.seqs[~np.isin(outlines.segments, [*matches])].tolist())
        if vector is None:
            words = search.candidates.signals.get("words", np.zeros(len(outlines.seqs)))
            scores = {
                seq: score for seq, score in zip(outlines.seqs.tolist(), words.tolist(), strict=True) if score > 0
            }
            name = "words"
        else:
            near = (await search.memory.cosines(pages)).items()
            scores = {seq: cosine for seq, cosine in near if cosine >= PAPER_COSINE_AT_LEAST}
            name = "best_window"
        ranked = sorted((seq for seq in pages - search.newest if seq in scores), key=lambda seq: (-scores[seq], -seq))
        return [Ranked(seq, scores[seq], {name: scores[seq]}) for seq in ranked[: search.limit]]


BUILT_IN: dict[str, Callable[[], RetrievalStrategy]] = {"all": AllPages, "paper": Paper}


def choose_strategy(name: str) -> RetrievalStrategy:
    """Return the strategy with a name, which is the value of the setting ``retrieval_strategy``.

    Raises:
        ConfigError: No built-in strategy and no installed package has this name, or the package cannot be loaded.
    """
    make = BUILT_IN.get(name) or load_entry_point(ENTRY_POINTS, name, "retrieval_strategy", BUILT_IN)
    strategy: RetrievalStrategy = make()
    if not hasattr(strategy, "rank"):
        msg = f"retrieval_strategy: the object of {name!r} has no method rank; install another version of its package"
        raise ConfigError(msg)
    return strategy
