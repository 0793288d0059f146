"""Late interaction: compares each token of a query with the most similar token of a page (MaxSim).

The method is from "ColBERT" (Khattab and Zaharia 2020, arXiv 2004.12832). In contrast to ColBERT, each match has a
weight. A rare word counts more than a common word. If the query names the user or the assistant, matches in what that
speaker said count more. A match on a neighbouring page counts less than a match on the page itself. Therefore, the best
matches are computed separately for each query token, each window (section of a page), and each side of the dialogue.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.embedding.token_vectors import cosines
from memoryos_mcp.retrieval.query import Side
from memoryos_mcp.storage.values import TokenRows

# Exponent of the cosine of a match. It makes one close match count more than two vague matches.
SHARPNESS = 4.0
# Weight of a match in a question, if the query names a side. Someone who asks about a thing says little about it.
IN_QUESTION = 0.8
# Weight of a match in the words of the side that the query does not name.
OTHER_SIDE = 0.6
# Weight of a match on a neighbouring page, by its distance in pages.
NEIGHBOURS = {1: 0.6, 2: 0.4, 3: 0.4, 4: 0.2, 5: 0.2, 6: 0.2, 7: 0.2, 8: 0.2}

Matches = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class TokenMatches:
    """For each window (section of a page), the best match of each query token, from 0 to 1.

    A match is the cosine of two token vectors, raised to the power of `SHARPNESS`. There are ``w`` windows and ``q``
    query tokens.

    Attributes:
        seqs: The ``seq`` of each window's page, shape ``(w,)``. Windows are sorted by page and position in the page.
        user: Best matches in the user's text of each window, shape ``(w, q)``.
        agent: Best matches in the assistant's text of each window, shape ``(w, q)``.
    """

    seqs: NDArray[np.int64]
    user: Matches
    agent: Matches


@dataclass(frozen=True, slots=True)
class Similarities:
    """The similarity of each page to a query, from 0 to 1.

    Attributes:
        best: Similarity of each page's best window (section of its text), shape ``(n,)``.
        first: Similarity of each page's first window, shape ``(n,)``.
        best_part: Position of the best window in each page, shape ``(n,)``; -1 for a page without token vectors.
    """

    best: NDArray[np.float64]
    first: NDArray[np.float64]
    best_part: NDArray[np.int64]


def match_tokens(tokens: NDArray[np.float32], rows: TokenRows, side: Side | None) -> TokenMatches:
    """Return, for each window (section of a page), the best match of each query token.

    Args:
        tokens: Token vectors of the query, unit length, shape ``(q, m)``.
        rows: Token vectors of all windows of the candidate pages.
        side: The side of the dialogue that the query names; None if it names neither.
    """
    counts = rows.counts.ravel()
    best = np.zeros((len(counts), len(tokens)), dtype=np.float32)
    filled = np.flatnonzero(counts)
    if len(filled):
        starts = (np.cumsum(counts) - counts)[filled]
        best[filled] = np.maximum.reduceat(cosines(rows.codes, tokens), starts, axis=0)
    user_states, user_asks, agent_states, agent_asks = (
        np.clip(best, 0, 1).reshape(-1, 4, len(tokens)).swapaxes(0, 1) ** SHARPNESS
    )
    asks = 1 if side is None else IN_QUESTION
    return TokenMatches(
        seqs=rows.seqs,
        user=np.maximum(user_states, asks * user_asks),
        agent=np.maximum(agent_states, asks * agent_asks),
    )


def maxsim(
    matches: TokenMatches,
    weights: NDArray[np.float64],
    side: Side | None,
    seqs: NDArray[np.int64],
    sessions: NDArray[np.int64],
    windows: NDArray[np.int64],
) -> Similarities:
    """Return the similarity of each candidate page to a query.

    The similarity is the weighted mean of the best matches of all query tokens. A match may be on the page itself or on
    a neighbouring page. A match on a distant neighbour counts less than on a near one. All neighbours count less if the
    page itself is long, because a long page is understood without its neighbours.

    Args:
        matches: For each window (section of a page), the best match of each query token. Windows of pages that are not
            candidates are ignored.
        weights: Weight of each query token, shape ``(q,)``; at least one must be above 0.
        side: The side of the dialogue that the query names; None if it names neither.
        seqs: The ``seq`` of each candidate page, ascending, shape ``(n,)``.
        sessions: Session of each candidate, shape ``(n,)``.
        windows: Number of windows of each candidate page, at least 1, shape ``(n,)``.
    """
    is_candidate = np.isin(matches.seqs, seqs)
    if not is_candidate.all():
        matches = TokenMatches(matches.seqs[is_candidate], matches.user[is_candidate], matches.agent[is_candidate])
    places = np.searchsorted(seqs, matches.seqs)
    either = np.maximum(matches.user, matches.agent)
    of_page = np.zeros((len(seqs), len(weights)), dtype=np.float32)
    np.maximum.at(of_page, places, either)
    lent = _lent(of_page, seqs, sessions) / np.sqrt(windows)[:, None]
    if side is not None:
        named = matches.user if side is Side.USER else matches.agent
        either = np.maximum(named, OTHER_SIDE * either)
    similarities = np.einsum("nq,q->n", np.maximum(either, lent[places]), weights / weights.sum())
    return _by_page(similarities, places, len(seqs))


def _by_page(similarities: NDArray[np.float64], places: NDArray[np.int64], count: int) -> Similarities:
    best, first, part = np.zeros(count), np.zeros(count), np.full(count, -1)
    if len(places):
        starts = np.flatnonzero(np.r_[True, places[1:] != places[:-1]])
        present = places[starts]
        best[present] = np.maximum.reduceat(similarities, starts)
        first[present] = similarities[starts]
        for start, end, place in zip(starts, [*starts[1:], len(places)], present, strict=True):
            part[place] = similarities[start:end].argmax()
    return Similarities(best, first, part)


def _lent(of_page: Matches, seqs: NDArray[np.int64], sessions: NDArray[np.int64]) -> Matches:
    """Return, for each candidate page, the best match of each query token on neighbouring candidates.

    Neighbours are pages of the same session. Each match is multiplied by the weight that `NEIGHBOURS` contains for
    the neighbour's distance. A candidate without neighbours has the value 0 for every token. Each argument has one
    row for each candidate, in ascending order of ``seq``.
    """
    lent = np.zeros_like(of_page)
    for apart, share in NEIGHBOURS.items():
        earlier = np.searchsorted(seqs, seqs - apart)
        are = np.flatnonzero((seqs[earlier] == seqs - apart) & (sessions[earlier] == sessions))
        pairs = earlier[are]
        lent[are] = np.maximum(lent[are], share * of_page[pairs])
        lent[pairs] = np.maximum(lent[pairs], share * of_page[are])
    return lent
