"""Ablation: the effect of each signal of the ranking, measured by ranking the same pages without it.

A page's score is the sum of its signals' shares, so one explained answer is enough to compute the ranking without a
signal. Pages that are missing in that answer because of the signal are missing in the computed ranking too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.metrics import CUTS, HEADLINE_CUT, Interval, Place, fraction_at, mean, paired_bootstrap, places

# Maximum number of pages in an answer.
RERANKED_PAGES = 100
# Scores and shares are rounded to this many digits, so closer scores count as equal.
SCORE_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Scored:
    """A page of an explained answer.

    Attributes:
        score: Higher is better.
        shares: The contribution of each signal to the score.
    """

    page_id: str
    score: float
    shares: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Reranked:
    """The ranks of one question's gold pages, in the order of the gold pages.

    Attributes:
        all_signals: Ranks with all signals.
        without: By signal, ranks without it; only for signals that this question's pages have.
    """

    all_signals: tuple[Place, ...]
    without: Mapping[str, tuple[Place, ...]]


@dataclass(frozen=True, slots=True)
class Row:
    """Results of a ranking, as means over questions.

    Attributes:
        questions: Number of questions that have the dropped signal; all questions if none is dropped.
        fractions: By k, the fraction of gold pages among the first k, 0 to 1.
        change: Difference to all signals, of the fraction at the headline's cut; None if no signal is dropped.
    """

    questions: int
    fractions: Mapping[int, float]
    change: Interval | None


def order_without(pages: Sequence[Scored], signal: str | None) -> list[str]:
    """Return the ids of the pages by score without a signal's share, best first; equal pages keep their order.

    Args:
        pages: The pages in the order of the answer.
        signal: The signal to drop; None drops none.
    """
    scores = {page.page_id: round(page.score - page.shares.get(signal or "", 0.0), SCORE_DIGITS) for page in pages}
    return sorted(scores, key=lambda page_id: -scores[page_id])


def rerank(gold: Sequence[str], pages: Sequence[Scored], short_term: Sequence[str]) -> Reranked:
    """Return the ranks of the gold pages with all signals and without each.

    Args:
        gold: Ids of the gold pages.
        pages: In the order of the answer.
        short_term: Ids of the pages that the answer contains regardless of the ranking.
    """
    signals = dict.fromkeys(signal for page in pages for signal in page.shares)
    return Reranked(
        all_signals=places(gold, order_without(pages, None), short_term),
        without={signal: places(gold, order_without(pages, signal), short_term) for signal in signals},
    )


def ablate(questions: Sequence[Reranked]) -> tuple[Row, dict[str, Row]]:
    """Return the row with all signals and, by signal, the row without it, in order of first occurrence.

    A question whose pages do not have a signal keeps its result.
    """
    whole = [question.all_signals for question in questions]
    rows = {}
    for signal in dict.fromkeys(signal for question in questions for signal in question.without):
        found = [question.without.get(signal, question.all_signals) for question in questions]
        rows[signal] = Row(
            questions=sum(signal in question.without for question in questions),
            fractions=_fractions(found),
            change=paired_bootstrap(
                [fraction_at(each, HEADLINE_CUT) for each in found], [fraction_at(each, HEADLINE_CUT) for each in whole]
            ),
        )
    return Row(questions=len(questions), fractions=_fractions(whole), change=None), rows


def _fractions(found: Sequence[Sequence[Place]]) -> dict[int, float]:
    return {k: mean([fraction_at(each, k) for each in found]) for k in CUTS}
