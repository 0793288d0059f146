"""Learns the ranking's weights from development data, and checks them on other conversations.

Run ``python -m benchmarks.tune --data FILE --data FILE``. Every question is asked in process, and its candidates are
stored with all their signals. Then weights are changed one at a time while that helps, beginning with no signal at all:
a signal that does not help enough keeps the weight 0. The weights are learned once without each conversation, and their
mean is used. It depends less on any single conversation. Two kinds of figures are an estimate for other conversations:

- out of fold: each conversation is scored with weights, and a choice of signals, from all other conversations;
- from one data set alone: the other data sets are scored with its weights.
"""

import asyncio
import pickle
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.datasets import SET_APART, Conversation, Dataset, Question, load
from benchmarks.metrics import CUTS, HEADLINE_CUT, UNRANKED, Interval, grouped_bootstrap
from memoryos_mcp.config import Settings
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.retrieval.query import asks_for_several, normalised
from memoryos_mcp.retrieval.ranking import TOKENS, WINDOWS, WORDS, Recipe, scaled, spread
from memoryos_mcp.retrieval.signals import Mask, Scores

RECIPES = {recipe.name: recipe for recipe in (TOKENS, WINDOWS, WORDS)}
# The objective: mostly the figure of the headline, and a little of the others.
OBJECTIVE = {5: 0.25, 10: 0.6, 20: 0.15}
STEPS = (0.8, 0.4, 0.2, 0.1)
ROUNDS = 8
# Penalty in points of the objective for each 1 by which a weight differs from 0.
PRICE = 0.05
POLL_S = 0.1
# Signals that a recipe cannot use: those that its models lack, and the one that no question of a data set has.
_OF_WORD_VECTORS = {"cover", "first_cover", "foreign_words", "like_best"}
_OF_VECTORS = {*_OF_WORD_VECTORS, "best_window", "first_window", "told"}
_ABSENT = {
    TOKENS.name: {"project"},
    WINDOWS.name: {"project", *_OF_WORD_VECTORS},
    WORDS.name: {"project", *_OF_VECTORS},
}
_NOT_FOUND = 1_000_000


@dataclass(frozen=True, slots=True)
class Case:
    """A question with its candidates.

    Attributes:
        signals: Scaled signals, shape ``(n,)`` each.
        seqs: The candidates, shape ``(n,)``.
        eligible: Which of them are ranked: all except short-term pages, shape ``(n,)``.
        gold: Index of each gold page among the candidates; `UNRANKED` - 1 for a short-term page, None for a page that
            is not a candidate.
        fold: Its conversation.
        apart: The session of each candidate, shape ``(n,)``, if the question asks for several memories; None
            otherwise.
    """

    signals: Mapping[str, Scores]
    seqs: NDArray[np.int64]
    eligible: Mask
    gold: tuple[int | None, ...]
    fold: str
    apart: NDArray[np.int64] | None = None


class Questions:
    """The cases of a data set as arrays, so that a change of a weight is scored at once.

    Each gold page is compared with all candidates of its question. ``_others`` lists these candidates for one gold page
    after another, and ``_firsts`` is where each list begins.

    Args:
        cases: The questions, at least one. Each has a gold page.
        names: The signals that may get a weight.
    """

    def __init__(self, cases: Sequence[Case], names: Sequence[str]) -> None:
        sizes = [len(case.seqs) for case in cases]
        begins = np.concatenate([[0], np.cumsum(sizes)])
        self.folds = np.array([case.fold for case in cases])
        self.signals: dict[str, Scores] = {
            name: np.concatenate([case.signals.get(name, np.zeros(len(case.seqs))) for case in cases]) for name in names
        }
        self._eligible = np.concatenate([case.eligible for case in cases])
        golds = [(number, gold) for number, case in enumerate(cases) for gold in case.gold]
        self._question = np.array([number for number, _ in golds])
        self._gold_counts = np.bincount(self._question)
        # A gold page has a fixed place if it is a short-term page or was not found as a candidate.
        self._fixed = np.array([_NOT_FOUND if gold is None else UNRANKED if gold < 0 else -1 for _, gold in golds])
        self._others = np.concatenate([np.arange(begins[number], begins[number + 1]) for number, _ in golds])
        counts = np.array([sizes[number] for number, _ in golds])
        self._firsts = np.cumsum(counts) - counts
        self._golds = np.repeat([begins[number] + max(gold or 0, 0) for number, gold in golds], counts)
        self._placed = [*zip(begins.tolist(), cases, strict=False)]
        seqs = np.concatenate([case.seqs for case in cases])
        self._is_newer = seqs[self._others] > seqs[self._golds]

    def scores(self, weights: Mapping[str, float]) -> Scores:
        """Return the score of every candidate."""
        total = np.zeros(len(self._eligible))
        for name, weight in weights.items():
            total += weight * self.signals[name]
        return total

    def spread(self, scores: Scores) -> Scores:
        """Return scores with which questions for several memories prefer pages of different sessions.

        This is slow, so weights are learned without it.
        """
        changed = scores.copy()
        for begin, case in self._placed:
            if case.apart is not None:
                totals = changed[begin : begin + len(case.seqs)]
                order = np.lexsort((-case.seqs, -totals))
                _, change = spread(order[case.eligible[order]], totals, case.apart, max(CUTS))
                totals += change
        return changed

    def found(self, scores: Scores) -> dict[int, Scores]:
        """Return for each cut the share of each question's gold pages that are within it, 0 to 1."""
        ranked = np.where(self._eligible, scores, -np.inf)
        others, golds = ranked[self._others], ranked[self._golds]
        ahead = np.add.reduceat((others > golds) | ((others == golds) & self._is_newer), self._firsts)
        places = np.where(self._fixed >= 0, self._fixed, ahead + 1)
        return {cut: np.bincount(self._question, weights=places <= cut) / self._gold_counts for cut in CUTS}


@dataclass(frozen=True, slots=True)
class Part:
    """Some questions of a data set."""

    of: Questions
    chosen: Mask

    def without(self, fold: str) -> "Part":
        """Return this part without a conversation."""
        return Part(self.of, self.chosen & (self.of.folds != fold))

    def figure(self, scores: Scores) -> float:
        """Return the objective in points, without the price of weights."""
        found = self.of.found(scores)
        return sum(100 * share * float(found[cut][self.chosen].mean()) for cut, share in OBJECTIVE.items())


async def collect(dataset: Dataset, embedding_model_name: str, progress: Progress) -> list[Case]:
    """Return a case for every question that counts, asked over its conversation's memory."""
    cases: list[Case] = []
    bar = progress.add_task(dataset.name, total=len(dataset.conversations))
    for conversation in dataset.conversations:
        with tempfile.TemporaryDirectory(prefix="memoryos-tune-") as folder:
            settings = Settings(
                data_storage_path=Path(folder), consolidation_idle_s=0.5, embedding_model_name=embedding_model_name
            )
            async with MemoryService(settings) as service, service.user(conversation.id) as engine:
                cases += await _cases(engine, conversation)
        progress.advance(bar)
    return cases


async def _cases(engine: MemoryEngine, conversation: Conversation) -> list[Case]:
    seqs: dict[str, int] = {}
    for seq, page in enumerate(conversation.pages, start=1):
        await engine.add(page.user_input, page.agent_response, timestamp=page.timestamp)
        seqs[page.page_id] = seq
    while not await _is_settled(engine):
        await asyncio.sleep(POLL_S)
    shown = {recalled.page.seq for recalled in (await engine.retrieve("-", max_tokens=200_000)).short_term}
    asked = [question for question in conversation.questions if question.category not in SET_APART]
    return [await _case(engine, conversation.id, question, seqs, shown) for question in asked]


async def _is_settled(engine: MemoryEngine) -> bool:
    stats = await engine.stats()
    is_embedded = stats.space is None or (stats.is_semantic and not stats.counts.unembedded)
    return is_embedded and not stats.counts.backlog


async def _case(
    engine: MemoryEngine, conversation: str, question: Question, seqs: Mapping[str, int], shown: set[int]
) -> Case:
    found = await engine.candidates(question.text)
    index = {seq: place for place, seq in enumerate(found.outlines.seqs.tolist())}
    gold = [seqs[page] for page in question.gold]
    return Case(
        signals={name: scaled(name, values, found.windows) for name, values in found.signals.items()},
        seqs=found.outlines.seqs,
        eligible=~np.isin(found.outlines.seqs, list(shown)),
        gold=tuple(UNRANKED - 1 if seq in shown else index.get(seq) for seq in gold),
        fold=conversation,
        apart=found.outlines.sessions if asks_for_several(normalised(question.text)) else None,
    )


def learn(parts: Sequence[Part], names: Sequence[str]) -> dict[str, float]:
    """Return the mean of the weights that `climb` finds without each conversation, or with it if it is the only one."""
    folds = sorted({fold for part in parts for fold in part.of.folds[part.chosen].tolist()})
    rests = [[each for part in parts if (each := part.without(fold)).chosen.any()] for fold in folds]
    climbs = [climb(rest, names) for rest in rests if rest] or [climb(parts, names)]
    return {name: round(float(np.mean([weights[name] for weights in climbs])), 2) for name in names}


def climb(parts: Sequence[Part], names: Sequence[str]) -> dict[str, float]:
    """Return weights, by changing one at a time in ever smaller steps. A weight that does not pay remains 0.

    Every part counts the same, regardless of its number of questions.
    """
    weights = dict.fromkeys(names, 0.0)
    totals = [part.of.scores(weights) for part in parts]

    def worth(of: Sequence[Scores], tried: Mapping[str, float]) -> float:
        figures = [part.figure(scores) for part, scores in zip(parts, of, strict=True)]
        return float(np.mean(figures)) - PRICE * sum(tried.values())

    best = worth(totals, weights)
    for step in STEPS:
        for _ in range(ROUNDS):
            before = best
            for name in names:
                for change in (step, -step):
                    weight = round(max(0.0, weights[name] + change), 3)
                    by = weight - weights[name]
                    moved = [scores + by * part.of.signals[name] for part, scores in zip(parts, totals, strict=True)]
                    tried = {**weights, name: weight}
                    if by and (score := worth(moved, tried)) > best + 1e-3:
                        weights, totals, best = tried, moved, score
            if best == before:
                break
    return weights


def out_of_fold(sets: Sequence[Questions], names: Sequence[str], progress: Progress) -> list[dict[int, Scores]]:
    """Return what every question finds with weights that were learned without its conversation."""
    found = [{cut: np.zeros(len(each.folds)) for cut in CUTS} for each in sets]
    folds = sorted({fold for each in sets for fold in each.folds.tolist()})
    bar = progress.add_task("cross-validation", total=len(folds))
    for fold in folds:
        parts = [_whole(each).without(fold) for each in sets]
        weights = learn([part for part in parts if part.chosen.any()], names)
        for each, shares in zip(sets, found, strict=True):
            of_fold = each.folds == fold
            for cut, values in each.found(each.spread(each.scores(weights))).items():
                shares[cut][of_fold] = values[of_fold]
        progress.advance(bar)
    return found


def _whole(questions: Questions) -> Part:
    return Part(questions, np.ones(len(questions.folds), dtype=np.bool_))


def _report(
    console: Console,
    recipe: Recipe,
    data: Sequence[str],
    sets: Sequence[Questions],
    names: Sequence[str],
    apart: Sequence[Mapping[int, Scores]],
) -> None:
    table = Table(title=f"{recipe.name}: fraction @{' / @'.join(map(str, CUTS))}, percent", title_justify="left")
    table.add_column("weights")
    for name in data:
        table.add_column(name, justify="right")

    def row(title: str, weights: Mapping[str, float]) -> None:
        table.add_row(title, *(_percent(each.found(each.spread(each.scores(weights)))) for each in sets))

    used = {name: weight for name, weight in recipe.weights.items() if name in names}
    row("in the code", used)
    fitted = {"all data": learn([_whole(each) for each in sets], names)}
    fitted |= {f"{name} alone": learn([_whole(each)], names) for name, each in zip(data, sets, strict=True)}
    for title, weights in fitted.items():
        row(f"learned from {title}", weights)
    table.add_row("out of fold", *map(_percent, apart))
    spans = [_interval(each, found) for each, found in zip(sets, apart, strict=True)]
    table.add_row(
        f"out of fold @{HEADLINE_CUT}, 95 % over conversations",
        *(f"{100 * span.low:.1f} to {100 * span.high:.1f}" for span in spans),
        end_section=True,
    )
    for name in used:
        row(f"in the code, without {name}", {**used, name: 0.0})
    console.print(table)
    for title, weights in fitted.items():
        kept = {name: weight for name, weight in weights.items() if weight}
        console.print(f"learned from {title}:", kept, highlight=False)


def _interval(questions: Questions, found: Mapping[int, Scores]) -> Interval:
    return grouped_bootstrap(found[HEADLINE_CUT], questions.folds)


def _percent(found: Mapping[int, Scores]) -> str:
    return " / ".join(f"{100 * found[cut].mean():.1f}" for cut in CUTS)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--data",
    "files",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    required=True,
    help="A data set; give one of each kind of conversation.",
)
@click.option("--lexical", is_flag=True, help="Learn for keyword search, without an embedding model.")
@click.option("--recipe", "recipe_name", type=click.Choice(sorted(RECIPES)), help="The recipe to learn.")
@click.option(
    "--cases",
    "cases_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Store the cases in this file, or read them from it if it exists.",
)
def main(files: Sequence[Path], lexical: bool, recipe_name: str | None, cases_file: Path | None) -> None:
    """Learn the weights of a ranking recipe and print them with their figures."""
    recipe = RECIPES[recipe_name] if recipe_name else WORDS if lexical else TOKENS
    model = "none" if lexical else Settings.model_fields["embedding_model_name"].default
    with Progress(console=Console(stderr=True), transient=True) as progress:
        if cases_file is not None and cases_file.exists():
            sets: list[list[Case]] = pickle.loads(cases_file.read_bytes())  # noqa: S301 - this command wrote it
        else:
            sets = [asyncio.run(collect(load(file), model, progress)) for file in files]
            if cases_file is not None:
                cases_file.write_bytes(pickle.dumps(sets))
        names = sorted({name for cases in sets for case in cases for name in case.signals} - _ABSENT[recipe.name])
        asked = [Questions(cases, names) for cases in sets]
        apart = out_of_fold(asked, names, progress)
    _report(Console(width=130), recipe, [file.stem for file in files], asked, names, apart)


if __name__ == "__main__":
    main()
