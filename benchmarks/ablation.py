"""Ablation: what each signal of the ranking brings, told by ranking the same pages without it.

A page's score is the sum of its signals' shares, so what a ranking without one of them looks like follows from one
explained answer. It knows only the pages of that answer: one that a signal keeps out of it does not come back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.metrics import CUTS, HEADLINE_CUT, Interval, Place, fraction_at, mean, paired_bootstrap, places

# The most that an answer holds.
RERANKED_PAGES = 100
# Scores and shares come rounded to so many digits: closer scores are equal.
SCORE_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Scored:
    """A page of an explained answer.

    Attributes:
        score: Higher is better.
        shares: What each signal adds to the score.
    """

    page_id: str
    score: float
    shares: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Reranked:
    """Where one question's gold pages are, in the order of the gold pages.

    Attributes:
        all_signals: In the ranking as it is.
        without: By signal, in the ranking without it; only the signals that this question's pages have.
    """

    all_signals: tuple[Place, ...]
    without: Mapping[str, tuple[Place, ...]]


@dataclass(frozen=True, slots=True)
class Row:
    """What a ranking finds, mean over questions.

    Attributes:
        questions: How many of them have the signal that is dropped; all of them where none is.
        fractions: By k the fraction of gold pages among the first k, 0 to 1.
        change: How far the fraction at the headline's cut is above that with all signals; None where none is dropped.
    """

    questions: int
    fractions: Mapping[int, float]
    change: Interval | None


def order_without(pages: Sequence[Scored], signal: str | None) -> list[str]:
    """Return the ids of the pages by score less a signal's share, best first; equal ones keep their order.

    Args:
        pages: In the order of the answer.
        signal: What to drop; None drops nothing.
    """
    scores = {page.page_id: round(page.score - page.shares.get(signal or "", 0.0), SCORE_DIGITS) for page in pages}
    return sorted(scores, key=lambda page_id: -scores[page_id])


def rerank(gold: Sequence[str], pages: Sequence[Scored], short_term: Sequence[str]) -> Reranked:
    """Return where the gold pages are with all signals and without each.

    Args:
        gold: Ids of the gold pages.
        pages: In the order of the answer.
        short_term: Ids of the pages that the answer holds whatever the ranking is.
    """
    signals = dict.fromkeys(signal for page in pages for signal in page.shares)
    return Reranked(
        all_signals=places(gold, order_without(pages, None), short_term),
        without={signal: places(gold, order_without(pages, signal), short_term) for signal in signals},
    )


def ablate(questions: Sequence[Reranked]) -> tuple[Row, dict[str, Row]]:
    """Return the row of all signals and, by signal, the row without it, in the order they come up in.

    A question whose pages do not have a signal counts as it is.
    """
    whole = [question.all_signals for question in questions]
    rows = {}
    for signal in dict.fromkeys(signal for question in questions for signal in question.without):
        found = [question.without.get(signal, question.all_signals) for question in questions]
        rows[signal] = Row(
            questions=sum(signal in question.without for question in questions),
            fractions=_fractions(found),
            change=paired_bootstrap(*([fraction_at(each, HEADLINE_CUT) for each in side] for side in (found, whole))),
        )
    return Row(questions=len(questions), fractions=_fractions(whole), change=None), rows


def _fractions(found: Sequence[Sequence[Place]]) -> dict[int, float]:
    return {k: mean([fraction_at(each, k) for each in found]) for k in CUTS}
