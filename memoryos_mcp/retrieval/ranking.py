"""Ranking: orders candidates by the weighted sum of their signals. A recipe defines the weights."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.retrieval.signals import Mask, Scores, z_scores

# Signals that are not scaled; all others become z-scores over the candidates of a query.
ABSOLUTE_SIGNALS = frozenset({"time", "project", "lead", "told"})
# Signals of neighbouring pages. They are divided by the number of windows of the page, because a short turn depends on
# its context and a long turn does not.
CONTEXT_SIGNALS = frozenset({"words_around"})
# The signal ``project`` exists only in queries that name a project. It is -1 for a page that is not of the project, and
# otherwise 0, so that pages of the project keep their scores. A page of another project then needs a score that is
# higher by this number. In ``benchmarks.projects``, 6.0 loses 0.7 points and 3.0 loses 1.2.
PROJECT_WEIGHT = 6.0
# The signal ``lead`` exists only in queries that ask how something went. Chosen on chats of BEAM: 2 and 4 lose 1 point.
LEAD_WEIGHT = 3.0
# The signal ``like_best`` exists only in such queries too. On chats with an assistant, 1.5 does as well. Without word
# vectors, the best pages are less certain, and it finds no more.
LIKE_BEST_WEIGHT = 1.0
# The signal ``told`` exists only if facts have vectors. With facts that an LLM wrote, 1.0 to 2.5 do as well.
TOLD_WEIGHT = 1.5
# If a query asks for several memories, a page loses this score for each better page of the same session.
SPREAD = 0.8
# Pages below this share of the best score are omitted, but at least `CUT_KEEPS` pages are returned. Pages that cover at
# least `ALIKE_SHARE` of what the best page covers of the query are not omitted, because the z-scores of many similar
# pages differ although the pages hardly do.
CUT_SHARE = 0.15
CUT_KEEPS = 3
ALIKE_SHARE = 0.8
# The signals that say how much of a query a page covers; the first that exists is used. Cosines of whole windows do not
# say it, because all of them are high with some models.
COVER_SIGNALS = "cover", "word_cover"


@dataclass(frozen=True, slots=True)
class Recipe:
    """The signals that a ranking uses, and their weights.

    Attributes:
        name: Name and version of the recipe. The version changes when the weights or signals change.
        weights: Weight of each signal. ``benchmarks.tune`` learns the weights from chats between people, which have
            short turns, and from dialogues with an assistant, which have long turns.
        is_absolute: Whether signals are used without scaling.
    """

    name: str
    weights: Mapping[str, float]
    is_absolute: bool = False


TOKENS = Recipe(
    "word-vectors+time/11",
    {
        "cover": 0.3,
        "first_cover": 0.9,
        "best_window": 0.6,
        # This signal exists only if the query is not in English, the language of the bundled model.
        "foreign_words": 1.5,
        # This signal exists only if the query asks for several memories.
        "own_words": 0.6,
        "told": TOLD_WEIGHT,
        "time": 4.5,
        "lead": LEAD_WEIGHT,
        "like_best": LIKE_BEST_WEIGHT,
        "project": PROJECT_WEIGHT,
    },
)
WINDOWS = Recipe(
    "words+windows+time/7",
    {
        "words": 0.8,
        "own_words": 0.8,
        "first_window": 1.6,
        "best_window": 0.9,
        "words_around": 0.8,
        "told": TOLD_WEIGHT,
        "time": 5.1,
        "lead": LEAD_WEIGHT,
        "project": PROJECT_WEIGHT,
    },
)
WORDS = Recipe(
    "words+time/6",
    {
        "words": 0.8,
        "word_cover": 0.7,
        "own_words": 0.8,
        "words_around": 0.8,
        "time": 3.8,
        "lead": LEAD_WEIGHT,
        "project": PROJECT_WEIGHT,
    },
)
# The signals of facts are not scaled, so that scores from different rankings are comparable.
FACTS = Recipe("facts/1", {"words": 1.0, "meaning": 1.0, "time": 0.5}, is_absolute=True)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A ranked candidate.

    Attributes:
        score: Weighted sum of the signals; higher is better. Only scores of the same query can be compared.
        shares: The contribution of each signal to the score.
    """

    seq: int
    score: float
    shares: Mapping[str, float]


def rank(
    recipe: Recipe,
    seqs: NDArray[np.int64],
    signals: Mapping[str, Scores],
    windows: NDArray[np.int64],
    eligible: Mask,
    limit: int,
    apart: NDArray[np.int64] | None = None,
) -> list[Ranked]:
    """Return the best candidates, best first. If two candidates have the same score, the newer one comes first.

    Args:
        recipe: The weights of the signals.
        seqs: Number of each candidate, such as a page's ``seq``, shape ``(n,)``. Newer candidates have higher numbers.
        signals: The raw values of each signal, shape ``(n,)``; signals that are not in the recipe are ignored.
        windows: Number of windows (text sections) of each candidate, at least 1, shape ``(n,)``.
        eligible: Whether each candidate may be returned, shape ``(n,)``. All candidates are used to scale the signals.
        limit: Maximum number of results.
        apart: The group of each candidate, shape ``(n,)``, to prefer results from different groups; None for no such
            preference. A candidate loses `SPREAD` for each better candidate in its group. This loss is in
            `Ranked.shares` under ``spread``.
    """
    shares = {
        name: recipe.weights[name] * (signals[name] if recipe.is_absolute else scaled(name, signals[name], windows))
        for name in recipe.weights.keys() & signals
    }
    totals = np.sum([shares[name] for name in sorted(shares)], axis=0) if shares else np.zeros(len(seqs))
    order = np.lexsort((-seqs, -totals))
    places = order[eligible[order]]
    if apart is None:
        places = places[:limit]
    else:
        places, shares["spread"] = spread(places, totals, apart, limit)
        totals = totals + shares["spread"]
    return [
        Ranked(
            seq=int(seqs[place]),
            score=float(totals[place]),
            shares={name: float(shares[name][place]) for name in (*recipe.weights, "spread") if name in shares},
        )
        for place in places.tolist()
    ]


def alike(ranked: Sequence[Ranked], seqs: NDArray[np.int64], signals: Mapping[str, Scores]) -> set[int]:
    """Return the ``seq`` of the candidates that cover nearly as much of the query as the best of ``ranked``.

    Candidates that are worse by the query's time or project are left out.

    Args:
        ranked: The ranked candidates, best first.
        seqs: All candidates, shape ``(n,)``.
        signals: The raw values of each signal, shape ``(n,)``.
    """
    covers = next((signals[name] for name in COVER_SIGNALS if name in signals), None)
    if covers is None or not ranked:
        return set()
    is_first = seqs == ranked[0].seq
    if not covers[is_first].any():
        return set()
    is_alike = covers >= ALIKE_SHARE * covers[is_first]
    for name in ("time", "project"):
        if name in signals:
            is_alike &= signals[name] >= signals[name][is_first]
    return {*seqs[is_alike].tolist()}


def cut(
    ranked: Sequence[Ranked], extra: AbstractSet[int] = frozenset(), kept: AbstractSet[int] = frozenset()
) -> list[Ranked]:
    """Return the candidates whose score is at least the best score times `CUT_SHARE`, best first.

    If these are fewer than `CUT_KEEPS`, the next best candidates are returned too, up to that number. What a page loses
    because its session has better pages (``spread`` in `rank`) does not count here.

    Args:
        ranked: The candidates, best first.
        extra: The ``seq`` of candidates that do not count towards `CUT_KEEPS`.
        kept: The ``seq`` of candidates that are returned whatever their score.
    """
    scores = [entry.score - entry.shares.get("spread", 0.0) for entry in ranked]
    least = CUT_SHARE * max(scores, default=0.0)
    left: list[Ranked] = []
    for entry, score in zip(ranked, scores, strict=True):
        if score >= least or entry.seq in kept or sum(each.seq not in extra for each in left) < CUT_KEEPS:
            left.append(entry)
    return left


def spread(
    places: NDArray[np.int64], totals: Scores, apart: NDArray[np.int64], limit: int
) -> tuple[NDArray[np.int64], Scores]:
    """Return the best candidates, preferably from different groups, and the change of every candidate's score.

    Candidates are chosen one after another. After each choice, the scores of the remaining candidates of the same group
    are lowered. So each change is 0 or negative.

    Args:
        places: The positions of the candidates that may be chosen. If two have the same score, the first is chosen.
        totals: The score of every candidate.
        apart: The group of every candidate, such as its session.
        limit: Maximum number of chosen candidates.

    Returns:
        The positions of the chosen candidates in the order of choice, and the changes.
    """
    taken: list[int] = []
    change = np.zeros_like(totals)
    left, groups = totals[places], apart[places]
    for _ in range(min(limit, len(places))):
        best = int(left.argmax())
        taken.append(best)
        left[best] = -np.inf
        beside = (groups == groups[best]) & np.isfinite(left)
        left[beside] -= SPREAD
        change[places[beside]] -= SPREAD
    return places[taken], change


def scaled(name: str, values: Scores, windows: NDArray[np.int64]) -> Scores:
    """Return the values of the signal ``name``, scaled but not yet weighted.

    Values are converted to z-scores, except those of `ABSOLUTE_SIGNALS`. The values of `CONTEXT_SIGNALS` are then
    divided by ``windows``, the number of windows (text sections) of each page.
    """
    if name in ABSOLUTE_SIGNALS:
        return values
    return z_scores(values) / windows if name in CONTEXT_SIGNALS else z_scores(values)
