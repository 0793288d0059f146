"""Outcomes: the measurements of one run by question, and figures computed from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product

from benchmarks.ablation import Reranked
from benchmarks.asking import Answer
from benchmarks.datasets import SET_APART, Dataset
from benchmarks.metrics import (
    CUTS,
    HEADLINE_CUT,
    UNRANKED,
    Interval,
    Place,
    all_at,
    any_at,
    fraction_at,
    mean,
    ndcg_at,
    paired_bootstrap,
)

# The second counts the pages of wishes as found, because an answer contains all wishes, whatever the question is.
SERVER, WITH_WISHES = "server", "with wishes"
WORDS_ALONE, BM25, DENSE = "words alone", "BM25", "dense"
BASELINES = (WORDS_ALONE, BM25, DENSE)
METRICS: dict[str, Callable[[Sequence[Place], int], float]] = {"any": any_at, "all": all_at, "fraction": fraction_at}
COLUMNS = (*(f"{name}@{k}" for name, k in product(METRICS, CUTS)), f"nDCG@{HEADLINE_CUT}")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of one question.

    Attributes:
        places: By system, the place of each gold page, in the order of ``gold``.
        reranked: The same for a second call of the server for more pages, with and without each signal.
    """

    conversation: str
    category: str
    text: str
    gold: tuple[str, ...]
    places: dict[str, tuple[Place, ...]]
    reranked: Reranked

    @property
    def is_repeated(self) -> bool:
        """Whether the gold pages had the same places in the second call."""
        places = zip(self.places[SERVER], self.reranked.all_signals, strict=True)
        return all(was == (now if now is not None and now <= max(CUTS) else None) for was, now in places)

    @property
    def is_helped(self) -> bool:
        """Whether a gold page was in short-term memory, where it need not be found."""
        return UNRANKED in self.places[SERVER]


@dataclass(slots=True)
class Timings:
    """Waiting times of a client, seconds per call.

    Attributes:
        settled_s: For each conversation, time from its first page until no page is pending.
    """

    add_s: list[float] = field(default_factory=list)
    query_s: list[float] = field(default_factory=list)
    settled_s: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Run:
    """The results of a data set.

    Attributes:
        others: Servers with another embedding model or another store.
        modes: Number of questions by the search mode that the server reported.
        rankings: Name of the ranking of each server.
        same_pages: For each other server, number of questions with the same pages in the same order.
        stored_bytes: Size of the data folders after all questions.
    """

    dataset: Dataset
    others: Sequence[str] = ()
    outcomes: list[Outcome] = field(default_factory=list)
    timings: Timings = field(default_factory=Timings)
    modes: dict[str, int] = field(default_factory=dict)
    same_pages: dict[str, int] = field(default_factory=dict)
    rankings: dict[str, str] = field(default_factory=dict)
    stored_bytes: int = 0
    pages: int = 0

    def note_same(self, system: str, answers: Sequence[Answer], others: Sequence[Answer]) -> None:
        """Count the questions for which another server returned the same pages in the same order."""
        same = sum(one.pages == other.pages for one, other in zip(answers, others, strict=True))
        self.same_pages[system] = self.same_pages.get(system, 0) + same

    @property
    def compared(self) -> tuple[str, ...]:
        """The systems for comparison, in the order of the tables."""
        return (*self.others, *BASELINES)

    @property
    def systems(self) -> tuple[str, ...]:
        """All systems, the server first."""
        return (SERVER, WITH_WISHES, *self.compared)

    def sizes(self) -> dict[str, int]:
        """Return the numbers of questions, pages and conversations, by name."""
        conversations = self.dataset.conversations
        chars = sum(len(page.text) for conversation in conversations for page in conversation.pages)
        return {
            "conversations": len(conversations),
            "pages": self.pages,
            "chars_per_page": chars // max(self.pages, 1),
            "bytes_per_page": self.stored_bytes // max(self.pages, 1),
            "questions": len(self.outcomes),
            "questions_left_out": sum(conversation.left_out for conversation in conversations),
            "bad_citations": sum(conversation.bad_citations for conversation in conversations),
        }

    def settled_ms_per_page(self) -> float:
        """Return the milliseconds from adding a page until none is pending, as a mean over all pages."""
        return 1000 * sum(self.timings.settled_s) / max(self.pages, 1)


@dataclass(frozen=True, slots=True)
class Scope:
    """A set of questions to report on."""

    name: str
    outcomes: tuple[Outcome, ...]

    def figures(self, system: str) -> dict[str, float]:
        """Return a system's mean of every metric, 0 to 1, by column name."""
        found = [outcome.places[system] for outcome in self.outcomes]
        figures = {
            f"{name}@{k}": mean([metric(places, k) for places in found])
            for (name, metric), k in product(METRICS.items(), CUTS)
        }
        figures[COLUMNS[-1]] = mean([ndcg_at(places, HEADLINE_CUT) for places in found])
        return figures

    def lead(self, other: str) -> Interval:
        """Return the difference of fraction@10 between the server and another system."""
        ours, theirs = (
            [fraction_at(outcome.places[system], HEADLINE_CUT) for outcome in self.outcomes]
            for system in (SERVER, other)
        )
        return paired_bootstrap(ours, theirs)

    def short_term_share(self) -> float:
        """Return the part of the server's fraction@10 that comes from short-term pages alone."""
        return mean([fraction_at(outcome.places[SERVER], UNRANKED) for outcome in self.outcomes])


def headline(run: Run) -> Scope:
    """Return the questions that the mean is taken over."""
    counted = [outcome for outcome in run.outcomes if outcome.category not in SET_APART]
    left_out = SET_APART & {outcome.category for outcome in run.outcomes}
    return Scope(f"all but {', '.join(sorted(left_out))}" if left_out else "all", tuple(counted))


def unhelped(run: Run) -> Scope:
    """Return the headline's questions without those for which short-term memory helps the server."""
    counted = [outcome for outcome in headline(run).outcomes if not outcome.is_helped]
    return Scope("without short-term help", tuple(counted))


def scopes(run: Run) -> list[Scope]:
    """Return the sets of questions that have a row: each category, all, and all without help from short-term memory."""
    by_category = [
        Scope(name, tuple(outcome for outcome in run.outcomes if outcome.category == name))
        for name in run.dataset.categories
    ]
    return [scope for scope in (*by_category, headline(run), unhelped(run)) if scope.outcomes]
