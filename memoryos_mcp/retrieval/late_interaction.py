"""Late interaction: each word piece of a query is compared with its best match among the pieces of a page.

After "ColBERT" (Khattab and Zaharia 2020, arXiv 2004.12832). Here the best matches are kept separately for each piece,
window and side of the dialogue, so that the ranking can weigh them. A rare word counts more than a common one, the
named side more than the other, and a neighbouring page less than the page itself.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.embedding.token_codes import cosines
from memoryos_mcp.retrieval.query import Side
from memoryos_mcp.storage.values import TokenRows

# Exponent of the cosine of a match: one close match says more than two vague ones.
SHARPNESS = 2.5
# Weight of a match in a question if a side is named: a person who asks about a thing has not told of it.
IN_QUESTION = 0.8
# Weights of a match on the side that is not named, and of one on a page this many pages away.
OTHER_SIDE = 0.6
NEIGHBOURS = {1: 0.6, 2: 0.4, 3: 0.4, 4: 0.2, 5: 0.2, 6: 0.2, 7: 0.2, 8: 0.2}

Matches = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class PieceMatches:
    """How well each word piece of a query is matched, 0 to 1: the sharpened cosine of its best match.

    Attributes:
        seqs: The page of each window, ascending within a page by part, shape ``(w,)``.
        user: Within the user's side of each window, shape ``(w, q)``.
        agent: Within the assistant's, shape ``(w, q)``.
    """

    seqs: NDArray[np.int64]
    user: Matches
    agent: Matches


@dataclass(frozen=True, slots=True)
class Cover:
    """How much of a query each page covers, 0 to 1.

    Attributes:
        best: By its best window, shape ``(n,)``.
        first: By its first window, shape ``(n,)``.
        best_part: Which window is the best, shape ``(n,)``; -1 for a page whose pieces are unknown.
    """

    best: NDArray[np.float64]
    first: NDArray[np.float64]
    best_part: NDArray[np.int64]


def match_pieces(tokens: NDArray[np.float32], rows: TokenRows, side: Side | None) -> PieceMatches:
    """Return how well the pieces of a query are matched in each window.

    Args:
        tokens: The query's token vectors, unit length, shape ``(q, m)``.
        rows: Token codes of the candidates' windows.
        side: The side whose words are asked for.
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
    return PieceMatches(
        seqs=rows.seqs,
        user=np.maximum(user_states, asks * user_asks),
        agent=np.maximum(agent_states, asks * agent_asks),
    )


def _of_pages(matches: PieceMatches, seqs: NDArray[np.int64]) -> PieceMatches:
    is_held = np.isin(matches.seqs, seqs)
    if is_held.all():
        return matches
    return PieceMatches(matches.seqs[is_held], matches.user[is_held], matches.agent[is_held])


def cover(
    matches: PieceMatches,
    weights: NDArray[np.float64],
    side: Side | None,
    seqs: NDArray[np.int64],
    sessions: NDArray[np.int64],
    windows: NDArray[np.int64],
) -> Cover:
    """Return how much of a query each candidate covers, together with its neighbours.

    A page's cover is the weighted mean, over the query's pieces, of the best match: its own or a neighbour's. A
    neighbour's match counts less with its distance, and with the length of the page itself: a long page stands alone.

    Args:
        matches: Of the candidates' windows; those of other pages are ignored.
        weights: How much each piece says, at least one above 0, shape ``(q,)``.
        side: The side whose words are asked for.
        seqs: The candidates, ascending, shape ``(n,)``.
        sessions: Their sessions, shape ``(n,)``.
        windows: Their lengths in windows, at least 1, shape ``(n,)``.
    """
    matches = _of_pages(matches, seqs)
    places = np.searchsorted(seqs, matches.seqs)
    either = np.maximum(matches.user, matches.agent)
    of_page = np.zeros((len(seqs), len(weights)), dtype=np.float32)
    np.maximum.at(of_page, places, either)
    lent = _lent(of_page, seqs, sessions) / np.sqrt(windows)[:, None]
    if side is not None:
        named = matches.user if side is Side.USER else matches.agent
        either = np.maximum(named, OTHER_SIDE * either)
    covers = np.maximum(either, lent[places]) @ (weights / weights.sum())
    return _by_page(covers, places, len(seqs))


def _by_page(covers: NDArray[np.float64], places: NDArray[np.int64], count: int) -> Cover:
    best, first, part = np.zeros(count), np.zeros(count), np.full(count, -1)
    if len(places):
        starts = np.flatnonzero(np.r_[True, places[1:] != places[:-1]])
        present = places[starts]
        best[present] = np.maximum.reduceat(covers, starts)
        first[present] = covers[starts]
        for start, end, place in zip(starts, [*starts[1:], len(places)], present, strict=True):
            part[place] = covers[start:end].argmax()
    return Cover(best, first, part)


def _lent(of_page: Matches, seqs: NDArray[np.int64], sessions: NDArray[np.int64]) -> Matches:
    """Return the best match that the neighbours of each candidate lend to it; only candidates lend."""
    lent = np.zeros_like(of_page)
    for apart, share in NEIGHBOURS.items():
        earlier = np.searchsorted(seqs, seqs - apart)
        are = np.flatnonzero((seqs[earlier] == seqs - apart) & (sessions[earlier] == sessions))
        pairs = earlier[are]
        lent[are] = np.maximum(lent[are], share * of_page[pairs])
        lent[pairs] = np.maximum(lent[pairs], share * of_page[are])
    return lent
