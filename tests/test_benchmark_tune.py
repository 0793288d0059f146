"""Weights are learned from signals of gold pages, and scored on other conversations."""

import numpy as np
import pytest
from rich.progress import Progress

from benchmarks.metrics import UNRANKED
from benchmarks.tune import Case, figures, learn, objective, out_of_fold


def case(good: list[float], noise: list[float], gold: int | None, fold: str = "a") -> Case:
    count = len(good)
    return Case(
        signals={"good": np.array(good), "noise": np.array(noise)},
        seqs=np.arange(1, count + 1),
        eligible=np.ones(count, dtype=np.bool_),
        gold=(gold,),
        fold=fold,
    )


def cases(seed: int, fold: str) -> list[Case]:
    generator = np.random.default_rng(seed)
    made = []
    for _ in range(20):
        gold = int(generator.integers(0, 40))
        good = generator.normal(size=40)
        good[gold] += 2
        made.append(case(good.tolist(), (3 * generator.normal(size=40)).tolist(), gold, fold))
    return made


def test_the_weighted_sum_ranks_newer_pages_first_if_equal() -> None:
    asked = case([1.0, 2.0, 2.0], [9.0, 0.0, 0.0], gold=1)
    assert asked.places({"good": 1.0}) == (2,)
    assert asked.places({"good": 1.0, "noise": 1.0}) == (3,)
    assert asked.places({}) == (2,)


def test_shown_pages_and_non_candidates_have_no_rank() -> None:
    assert case([1.0], [0.0], gold=UNRANKED - 1).places({"good": 1.0}) == (UNRANKED,)
    assert case([1.0], [0.0], gold=None).places({"good": 1.0}) == (None,)


def test_learning_keeps_helpful_signals_and_drops_others() -> None:
    sets = [cases(1, "a") + cases(2, "b")]
    start = {"good": 0.5, "noise": 0.5}
    learned = learn(sets, list(start), start)
    assert objective(sets, learned) > objective(sets, start)
    assert learned["good"] > 4 * learned["noise"]
    assert figures(sets[0], learned)[10] > figures(sets[0], start)[10]


def test_a_conversation_is_scored_by_weights_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = [cases(1, "a") + cases(2, "b") + cases(3, "c")]
    learned_from: list[set[str]] = []

    def learn_nothing(kept: list[list[Case]], names: list[str], start: dict[str, float]) -> dict[str, float]:
        learned_from.append({each.fold for each in kept[0]})
        return {**start, "good": float(len(learned_from))}

    monkeypatch.setattr("benchmarks.tune.learn", learn_nothing)
    [apart] = out_of_fold(sets, ["good"], {"good": 0.0}, Progress(disable=True))
    assert learned_from == [{"b", "c"}, {"a", "c"}, {"a", "b"}]
    assert [weights["good"] for _, weights in apart[::20]] == [1, 2, 3]
