"""Learns the ranking's weights from development data, and checks them on other conversations.

Run ``python -m benchmarks.tune --data FILE --data FILE``. Every question is asked in process, and its candidates are
stored with all their signals. Then weights are changed one at a time while that helps. The same is done for each
conversation with the data of the others, and the resulting weights are scored on it. Only these figures are an
estimate for other conversations.
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
from benchmarks.metrics import UNRANKED, Place, fraction_at, mean, ndcg_at
from memoryos_mcp.config import Settings
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.retrieval.ranking import TOKENS, WINDOWS, WORDS, Recipe, scaled
from memoryos_mcp.retrieval.signals import Mask, Scores

RECIPES = {recipe.name: recipe for recipe in (TOKENS, WINDOWS, WORDS)}
CUTS = (5, 10, 20)
# The objective: mostly the figure of the headline, and a little of the others.
OBJECTIVE = {5: 0.15, 10: 0.6, 20: 0.1}
NDCG_SHARE = 0.15
STEPS = (0.4, 0.2, 0.1)
ROUNDS = 6
# Penalty in points of the objective for each 1 by which a weight differs from 0.
PRICE = 0.05
POLL_S = 0.1


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
    """

    signals: Mapping[str, Scores]
    seqs: NDArray[np.int64]
    eligible: Mask
    gold: tuple[int | None, ...]
    fold: str

    def places(self, weights: Mapping[str, float]) -> tuple[Place, ...]:
        """Return the place of each gold page in the ranking with these weights."""
        total = np.zeros(len(self.seqs))
        for name, weight in weights.items():
            if weight and name in self.signals:
                total = total + weight * self.signals[name]
        total = np.where(self.eligible, total, -np.inf)
        return tuple(self._place(total, gold) for gold in self.gold)

    def _place(self, total: Scores, gold: int | None) -> Place:
        if gold is None:
            return None
        if gold < 0:
            return UNRANKED
        ahead = (total > total[gold]) | ((total == total[gold]) & (self.seqs > self.seqs[gold]))
        return int(ahead.sum()) + 1


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
    )


def figures(cases: Sequence[Case], weights: Mapping[str, float]) -> dict[int, float]:
    """Return the mean fraction of gold pages within each cut."""
    found = [case.places(weights) for case in cases]
    return {cut: mean([fraction_at(places, cut) for places in found]) for cut in CUTS}


def objective(sets: Sequence[Sequence[Case]], weights: Mapping[str, float]) -> float:
    """Return the objective in points; every data set counts the same, regardless of its number of questions."""
    total = 0.0
    for cases in sets:
        found = [case.places(weights) for case in cases]
        total += sum(share * mean([fraction_at(places, cut) for places in found]) for cut, share in OBJECTIVE.items())
        total += NDCG_SHARE * mean([ndcg_at(places, 10) for places in found])
    return 100 * total / len(sets) - PRICE * sum(map(abs, weights.values()))


def learn(sets: Sequence[Sequence[Case]], names: Sequence[str], start: Mapping[str, float]) -> dict[str, float]:
    """Return weights that are better than ``start``, by changing one at a time in ever smaller steps."""
    weights = {name: start.get(name, 0.0) for name in names}
    best = objective(sets, weights)
    for step in STEPS:
        for _ in range(ROUNDS):
            before = best
            for name in names:
                for change in (step, -step):
                    tried = {**weights, name: round(max(0.0, weights[name] + change), 3)}
                    if tried != weights and (score := objective(sets, tried)) > best + 1e-3:
                        weights, best = tried, score
            if best == before:
                break
    return weights


def out_of_fold(
    sets: Sequence[Sequence[Case]], names: Sequence[str], start: Mapping[str, float], progress: Progress
) -> list[list[tuple[Case, dict[str, float]]]]:
    """Return every case with weights that were learned without its conversation."""
    folds = sorted({case.fold for cases in sets for case in cases})
    learned: dict[str, dict[str, float]] = {}
    bar = progress.add_task("cross-validation", total=len(folds))
    for fold in folds:
        learned[fold] = learn([[case for case in cases if case.fold != fold] for cases in sets], names, start)
        progress.advance(bar)
    return [[(case, learned[case.fold]) for case in cases] for cases in sets]


def _report(
    console: Console,
    recipe: Recipe,
    names: Sequence[str],
    data: Sequence[str],
    sets: Sequence[Sequence[Case]],
    fitted: Mapping[str, float],
    apart: Sequence[Sequence[tuple[Case, dict[str, float]]]],
) -> None:
    table = Table(title=f"{recipe.name}: fraction @{' / @'.join(map(str, CUTS))}, percent", title_justify="left")
    table.add_column("weights")
    for name in data:
        table.add_column(name, justify="right")
    table.add_row("in the code", *(_percent(figures(cases, recipe.weights)) for cases in sets))
    table.add_row("fitted", *(_percent(figures(cases, fitted)) for cases in sets))
    held_out = [
        {cut: mean([fraction_at(case.places(weights), cut) for case, weights in cases]) for cut in CUTS}
        for cases in apart
    ]
    table.add_row("out of fold", *map(_percent, held_out), end_section=True)
    for name in names:
        without = {**recipe.weights, name: 0.0}
        table.add_row(f"in the code, without {name}", *(_percent(figures(cases, without)) for cases in sets))
    console.print(table)
    kept = {name: weight for name, weight in fitted.items() if weight}
    console.print("fitted weights:", kept, highlight=False)


def _percent(found: Mapping[int, float]) -> str:
    return " / ".join(f"{100 * found[cut]:.1f}" for cut in CUTS)


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
        names = list(recipe.weights)
        fitted = learn(sets, names, recipe.weights)
        apart = out_of_fold(sets, names, recipe.weights, progress)
    _report(Console(width=130), recipe, names, [file.stem for file in files], sets, fitted, apart)


if __name__ == "__main__":
    main()
